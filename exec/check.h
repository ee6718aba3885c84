/*
 * Is a plan's run right? The plan beside its reference: the same model, seed and tokens on one
 * rank, the global batch as one micro-batch, no Domino, no ZeRO, nothing recomputed, fused
 * attention. Both gradients are compared as full tensors, so whatever the layout does must give the
 * same mathematics; what is left is the order of sums in fp32.
 */
#ifndef STEPCAST_EXEC_CHECK_H
#define STEPCAST_EXEC_CHECK_H

#include "exec/launch.h"

/* What counts as equal. */
#define SC_CHECK_GRADIENT 1e-5 /* |dg| / |g|, each tensor, 2-norms */
/* Gradients below this share of the norm of all are not compared, on condition that both are: what
 * is zero by mathematics (key biases; queries and keys of sequences of one token) is rounding. */
#define SC_CHECK_GRADIENT_FLOOR 1e-7
#define SC_CHECK_LOSS 1e-5 /* |dloss|, each step */

struct sc_check_result {
    bool root; /* false on processes other than 0: nothing else is set */
    int64_t steps;
    double gradient;           /* largest relative difference of a tensor, in the first step */
    char gradient_tensor[128]; /* which one */
    double loss;               /* largest difference of a step's loss */
    double parameter;          /* the same of parameters, after the last step; not part of
                                  `equal`: Adam divides by |g|, so where a gradient is nearly zero
                                  its rounding decides the sign of a whole update */
    char parameter_tensor[128];
    bool equal; /* gradients and losses within the bounds above */
};

/* Runs both for `options->steps` steps without warm-up, and compares. With MPI, called by all
 * processes. SC_OK also where they differ: see result->equal. */
enum sc_status sc_check(const struct sc_plan *plan, const struct sc_run_options *options,
                        struct sc_check_result *result, struct sc_error *err);

#endif
