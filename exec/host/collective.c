/* What both transports share: slices, and the sum in rank order. */
#include "exec/host/transport.h"

#include <string.h>

enum { SLICE_ELEMENTS = 16, BLOCK = 512 };

void sc_collective_slice(size_t count, size_t index, size_t members, size_t *begin, size_t *end)
{
    size_t lines = (count + SLICE_ELEMENTS - 1) / SLICE_ELEMENTS;
    *begin = lines * index / members * SLICE_ELEMENTS;
    *end = lines * (index + 1) / members * SLICE_ELEMENTS;
    *begin = *begin < count ? *begin : count;
    *end = *end < count ? *end : count;
}

/* A NaN in either place stays. */
static float larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

static void combine(enum sc_reduction reduction, float *restrict total, const float *restrict x,
                    size_t count)
{
    if (reduction == SC_MAX) {
        for (size_t i = 0; i < count; i++)
            total[i] = larger(total[i], x[i]);
    } else if (count == BLOCK) { /* a constant count makes the loop a vector loop */
        for (size_t i = 0; i < BLOCK; i++)
            total[i] += x[i];
    } else {
        for (size_t i = 0; i < count; i++)
            total[i] += x[i];
    }
}

void sc_collective_reduce(enum sc_reduction reduction, const float *const *x, size_t members,
                          float *out, size_t count)
{
    float total[BLOCK];
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t length = count - i < BLOCK ? count - i : BLOCK;
        memcpy(total, x[0] + i, length * sizeof *total);
        for (size_t m = 1; m < members; m++)
            combine(reduction, total, x[m] + i, length);
        memcpy(out + i, total, length * sizeof *total);
    }
}

void sc_transport_close(struct sc_transport **transport)
{
    if (*transport)
        (*transport)->functions->close(*transport);
    *transport = NULL;
}

#ifndef STEPCAST_HAVE_MPI
enum sc_status sc_transport_mpi(const struct sc_transport_setup *setup, struct sc_transport **out,
                                struct sc_error *err)
{
    (void)setup;
    (void)out;
    return sc_fail(err, SC_NO, "transport mpi: this build has no MPI");
}
#endif
