/*
 * The golden cases of tests/golden: small models trained for five steps by PyTorch
 * (make_golden.py), loaded for comparison.
 */
#ifndef STEPCAST_TESTS_SUPPORT_GOLDEN_H
#define STEPCAST_TESTS_SUPPORT_GOLDEN_H

#include <limits.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/data.h"
#include "exec/options.h"
#include "plans/plan.h"

enum { GOLDEN_STEPS = 5 };

extern const char *const golden_cases[]; /* NULL-terminated */

struct golden {
    struct sc_plan plan;  /* one rank, or what `set` made of it */
    struct sc_data *data; /* read with the plan's seed */
    double losses[GOLDEN_STEPS], losses_fp32[GOLDEN_STEPS];
    double gradient_norms[GOLDEN_STEPS]; /* before clipping */
    char initial[PATH_MAX];              /* safetensors: parameters before step 0 */
    char gradients[PATH_MAX];            /* safetensors: gradients of step 0, before clipping */
};

/* Loads a case; `set` (NULL-terminated "path=value") changes its plan. golden_close frees it. */
enum sc_status golden_open(const char *name, const char *const *set, struct golden *out,
                           struct sc_error *err);
void golden_close(struct golden *golden);
/* Options of a run that repeats it: its steps, its data, its initial parameters. They point into
 * *golden. */
void golden_options(const struct golden *golden, struct sc_run_options *out);

#endif
