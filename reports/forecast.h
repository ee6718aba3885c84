/*
 * A forecast for people: step time and what it means, where the time goes, memory by place with
 * what is alive at the peak, warnings.
 */
#ifndef STEPCAST_REPORTS_FORECAST_H
#define STEPCAST_REPORTS_FORECAST_H

#include <stdio.h>

#include "base/status.h"
#include "sim/simulate.h"

/* Lowers the plan and plans its memory for the hardware, as sc_simulate does; the caller destroys
 * *out. With `verify` the rules of the program are checked. */
enum sc_status sc_forecast_program(const struct sc_plan *plan, const struct sc_hardware *hardware,
                                   bool verify, struct sc_program **out, struct sc_error *err);
/* `program` NULL: without what is alive at the peak. */
enum sc_status sc_forecast_print(const struct sc_sim_result *result,
                                 const struct sc_program *program, FILE *stream,
                                 struct sc_error *err);

#endif
