/* What a run measured, as JSON and for people. */
#ifndef STEPCAST_REPORTS_RUN_REPORT_H
#define STEPCAST_REPORTS_RUN_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "exec/check.h"
#include "exec/launch.h"
#include "plans/plan.h"

/* {step_time_s, steps[], losses[], memory{}, ...}; `check` may be NULL. The caller deletes it; NULL
 * when out of memory. */
cJSON *sc_run_result_to_json(const struct sc_plan *plan, const struct sc_run_result *result,
                             const struct sc_check_result *check);
void sc_run_result_print(const struct sc_plan *plan, const struct sc_run_result *result,
                         const struct sc_check_result *check, FILE *stream);

#endif
