/* What is allowed but rarely meant. */
#ifndef STEPCAST_PLANS_PLAN_WARNINGS_H
#define STEPCAST_PLANS_PLAN_WARNINGS_H

#include "plans/plan.h"

/* One line each, for as many as are true of the plan; `each` is called in a fixed order. */
typedef void (*sc_plan_warning_fn)(void *context, const char *line);
void sc_plan_warnings(const struct sc_plan *plan, sc_plan_warning_fn each, void *context);

#endif
