/*
 * A lower bound of the period that needs no play: a step takes at least as long as the operations
 * of any one stream alone, as the work on any one resource instance, and as its issue.
 */
#ifndef STEPCAST_SIM_BOUND_H
#define STEPCAST_SIM_BOUND_H

#include "base/status.h"
#include "plans/program.h"
#include "sim/machine.h"
#include "sim/price.h"

/* Microseconds; never more than sc_play's period (up to rounding). */
enum sc_status sc_bound_period(const struct sc_program *program, const struct sc_prices *prices,
                               const struct sc_machine *machine, double *period_us,
                               struct sc_error *err);

#endif
