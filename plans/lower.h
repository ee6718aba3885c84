/*
 * Lowering: model + plan -> step program. Everything that stepcast knows about a technique is how
 * these files order and place operations.
 */
#ifndef STEPCAST_PLANS_LOWER_H
#define STEPCAST_PLANS_LOWER_H

#include "plans/plan.h"
#include "plans/program.h"

/* Builds the program of a checked plan. Waits are not derived and memory is not planned yet
 * (sc_program_prepare). The caller destroys *out. */
enum sc_status sc_lower(const struct sc_plan *plan, struct sc_program **out, struct sc_error *err);

#endif
