/*
 * Which machine something was measured on: what must agree for times of one machine to hold on
 * another. A profile has it under measured_on, a trace in its header.
 */
#ifndef STEPCAST_MODEL_IDENTITY_H
#define STEPCAST_MODEL_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/architecture.h"

/* What is not known is "" or 0, and is not compared. */
struct sc_identity {
    char processor[SC_NAME_SIZE]; /* as it names itself: "AMD EPYC 9B14" */
    int64_t cores;                /* used, of one node */
    char library[SC_NAME_SIZE];   /* of products and kernels: "openblas 0.3.21 SkylakeX, ..." */
};

/* True where two machines are known to differ. Then `out` says in what, each named:
 * "processor A against B; 2 cores against 4". */
bool sc_identity_differs(const struct sc_identity *then, const struct sc_identity *now, char *out,
                         size_t size);
/* Nothing is known of it. */
bool sc_identity_empty(const struct sc_identity *identity);

#endif
