/*
 * The MLP of the worked example, made to run: first contents, tensors, optimizer, tokens that are
 * really its input. And the same in plain double arithmetic on one rank.
 */
#ifndef STEPCAST_TESTS_RUN_EXAMPLE_H
#define STEPCAST_TESTS_RUN_EXAMPLE_H

#include "exec/launch.h"
#include "plans/program.h"

enum { SC_EXAMPLE_ROWS = 8, SC_EXAMPLE_HIDDEN = 8, SC_EXAMPLE_FFN = 32 };

/* Numbers of its tensors: W1 [32, 8], b1 [32], W2 [8, 32], b2 [8], gamma [8], beta [8]. */
enum sc_example_tensor {
    EXAMPLE_W1,
    EXAMPLE_B1,
    EXAMPLE_W2,
    EXAMPLE_B2,
    EXAMPLE_GAMMA,
    EXAMPLE_BETA,
    EXAMPLE_TENSORS
};

/* Prepared (waits, memory, verified). NULL on failure. */
struct sc_program *sc_run_example(void);
/* Options to run it with: its input as data, no warm-up. */
void sc_run_example_options(struct sc_run_options *options, int64_t steps);

/* Plain arithmetic: starts from `parameters` [EXAMPLE_TENSORS], which become those after the step,
 * and leaves the step's gradients. m and v are zero before step 0. */
struct sc_example_state {
    double parameter[EXAMPLE_TENSORS][256], gradient[EXAMPLE_TENSORS][256];
    double m[EXAMPLE_TENSORS][256], v[EXAMPLE_TENSORS][256];
};
int sc_example_elements(enum sc_example_tensor tensor);
void sc_example_step(struct sc_example_state *state, int64_t step);

#endif
