/* What a run measured, as JSON and for people. */
#ifndef STEPCAST_REPORTS_RUN_REPORT_H
#define STEPCAST_REPORTS_RUN_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "exec/check.h"
#include "exec/launch.h"
#include "model/hardware.h"
#include "plans/plan.h"

/* What a run is reported with, beside its result. */
struct sc_run_context {
    const struct sc_plan *plan;
    const struct sc_check_result *check; /* NULL: not checked */
    /* The profile whose forecasts the run may be compared with; NULL: none, or not known. */
    const struct sc_hardware *hardware;
};

/* stepcast.result/1 with command "run": {step_time_s, steps[], losses[], memory{}, contention{},
 * warnings[], ...}. The caller deletes it; NULL when out of memory. */
cJSON *sc_run_result_to_json(const struct sc_run_context *context,
                             const struct sc_run_result *result);
void sc_run_result_print(const struct sc_run_context *context, const struct sc_run_result *result,
                         FILE *stream);
/* {others_share, steal_share, spread}: null where it is not known. */
void sc_contention_add_json(cJSON *root, const struct sc_contention *contention);

#endif
