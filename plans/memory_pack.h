/*
 * Lifetimes of step buffers and their packing. Internal to memory.c.
 *
 * Two step buffers may share bytes when all accesses of the one precede all of the other, in the
 * step, and the other way round into the next step. "Precede" is by the waits (no_added_waits) or
 * by issue order alone.
 */
#ifndef STEPCAST_PLANS_MEMORY_PACK_H
#define STEPCAST_PLANS_MEMORY_PACK_H

#include "plans/program.h"

/* One step buffer that an op touches. */
struct sc_life {
    uint32_t buffer;
    int32_t first, last; /* issue positions; init ops are before 0 */
    uint64_t bytes;      /* rounded to 256 */
    uint64_t offset;     /* found by packing */
};

struct sc_lives {
    SC_ARRAY(struct sc_life) items; /* of every place, in buffer order */
    uint32_t *of_buffer;            /* index in items; UINT32_MAX: none */
    size_t streams;
    int32_t ops;
    bool by_waits;
    int32_t *last;   /* [items * streams] last access on a stream, as in sc_clocks */
    int32_t *before; /* [items * streams] what has ended before any access starts */
};

/* The caller frees, after a failure too. */
enum sc_status sc_lives_find(const struct sc_program *program, const struct sc_class *class,
                             struct sc_lives *out, struct sc_error *err);
void sc_lives_free(struct sc_lives *lives);
/* Whether the two need bytes of their own. */
bool sc_lives_conflict(const struct sc_lives *lives, uint32_t a, uint32_t b);

/* Packs the lives numbered in `which` from offset 0; *bytes is the region's size. */
enum sc_status sc_pack(struct sc_lives *lives, const uint32_t *which, uint32_t count,
                       uint64_t bound, uint64_t *bytes, struct sc_error *err);
/* *bound: a size below which no packing can come, the heaviest set found of which no two may share.
 * In issue order it is the heaviest there is (a clique of intervals is a set alive at one op); by
 * waits it is that one, enlarged greedily, so that the true bound may be a little higher. `scratch`
 * has room for `count`. */
enum sc_status sc_pack_bound(const struct sc_lives *lives, const uint32_t *which, uint32_t count,
                             uint32_t *scratch, uint64_t *bound, struct sc_error *err);

#endif
