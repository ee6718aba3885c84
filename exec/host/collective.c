/* What transports share: slices, the sum in rank order, and what members of different processes
 * send each other. */
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

/* ---- a direct exchange ----------------------------------------------------------------------- */

bool sc_collective_reduces(enum sc_collective_kind kind)
{
    return kind == SC_COLLECTIVE_ALL_REDUCE || kind == SC_COLLECTIVE_REDUCE_SCATTER;
}

size_t sc_collective_part(const struct sc_collective *call, size_t m, size_t members, size_t *bytes)
{
    size_t begin, end;
    if (call->kind == SC_COLLECTIVE_ALL_REDUCE) {
        sc_collective_slice(call->bytes / sizeof(float), m, members, &begin, &end);
        *bytes = (end - begin) * sizeof(float);
        return begin * sizeof(float);
    }
    *bytes = call->bytes / members;
    return m * *bytes;
}

struct sc_transfer sc_collective_contribution(const struct sc_collective *call, size_t index,
                                              size_t members, size_t peer)
{
    struct sc_transfer out = {0};
    const char *x = call->kind == SC_COLLECTIVE_ALL_REDUCE ? call->y : call->x;
    out.send = x + sc_collective_part(call, peer, members, &out.send_bytes);
    sc_collective_part(call, index, members, &out.receive_bytes);
    return out;
}

struct sc_transfer sc_collective_result(const struct sc_collective *call, size_t index,
                                        size_t members, size_t peer)
{
    size_t bytes, mine, begin = sc_collective_part(call, peer, members, &bytes);
    const char *x = call->x;
    char *y = call->y;
    switch (call->kind) {
    case SC_COLLECTIVE_REDUCE_SCATTER:
        return (struct sc_transfer){0};
    case SC_COLLECTIVE_BROADCAST:
        return (struct sc_transfer){.send = y,
                                    .send_bytes = index == 0 ? call->bytes : 0,
                                    .receive = y,
                                    .receive_bytes = index != 0 && peer == 0 ? call->bytes : 0};
    case SC_COLLECTIVE_ALL_TO_ALL:
        return (struct sc_transfer){x + begin, bytes, y + begin, bytes};
    case SC_COLLECTIVE_ALL_GATHER:
        return (struct sc_transfer){x, bytes, y + begin, bytes};
    default:
        x = y + sc_collective_part(call, index, members, &mine);
        return (struct sc_transfer){x, mine, y + begin, bytes};
    }
}

void sc_collective_keep_own(const struct sc_collective *call, size_t index, size_t members)
{
    size_t bytes, begin = sc_collective_part(call, index, members, &bytes);
    const char *from = call->x;
    char *to = (char *)call->y + begin;
    if (call->kind == SC_COLLECTIVE_ALL_TO_ALL)
        from += begin;
    else if (call->kind == SC_COLLECTIVE_REDUCE_SCATTER && members == 1)
        to = call->y;
    else if (call->kind != SC_COLLECTIVE_ALL_GATHER)
        return;
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

bool sc_member_always_gathered(const struct sc_member *member)
{
    (void)member;
    return true;
}

const void *sc_member_as_group(const struct sc_member *member)
{
    return member;
}

/* ---- any transport --------------------------------------------------------------------------- */

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
