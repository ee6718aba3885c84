/* The persistent value `step_state`: everything that changes from step to step. Kernels read it;
 * `scalar` writes it. One a rank, 256 bytes. */
#ifndef STEPCAST_PLANS_STEP_STATE_H
#define STEPCAST_PLANS_STEP_STATE_H

#include <stdint.h>

struct sc_step_state {
    int64_t step;  /* steps begun: 1 in the first step, after `scalar advance` */
    uint64_t seed; /* of dropout */
    float learning_rate;
    float correction1;   /* 1 / (1 - beta1^step) */
    float correction2;   /* 1 / (1 - beta2^step) */
    float clip;          /* factor on gradients: min(1, limit / global norm); 1 without */
    float gradient_norm; /* global norm of this step, 0 without clipping */
    int32_t skip;        /* 1: adam leaves everything as it is */
};

#endif
