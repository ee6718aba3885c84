/*
 * Does a plan compute what the model says? The same training on one rank, without any technique, is
 * the reference: same seed, same tokens, same dropout masks. What differs is the order of floating
 * sums.
 */
#ifndef STEPCAST_REPORTS_RUN_CHECK_H
#define STEPCAST_REPORTS_RUN_CHECK_H

#include "base/status.h"
#include "exec/launch.h"
#include "plans/plan.h"

/* Relative differences that another order of sums explains. */
#define SC_CHECK_LOSS_LIMIT_FP32 1e-4
#define SC_CHECK_GRADIENT_LIMIT_FP32 1e-3
#define SC_CHECK_LOSS_LIMIT_BF16 2e-2
#define SC_CHECK_GRADIENT_LIMIT_BF16 5e-2

struct sc_run_check {
    double loss_error;     /* largest |loss - reference| / |reference| of any step */
    double gradient_error; /* of the snapshot step, the worst tensor: largest difference / largest
                              magnitude of the reference */
    double loss_limit, gradient_limit;
    char worst_name[128]; /* that tensor */
    bool passed;
};

/* The plan's model and training on one rank with every technique off. */
void sc_run_reference_plan(const struct sc_plan *plan, struct sc_plan *out);
/* Runs the reference (as threads of this process) and compares. `result` comes from a run of `plan`
 * with the same options and a snapshot step. */
enum sc_status sc_run_check(const struct sc_plan *plan, const struct sc_run_options *options,
                            const struct sc_run_result *result, struct sc_run_check *out,
                            struct sc_error *err);

#endif
