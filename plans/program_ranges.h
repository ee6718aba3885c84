/*
 * The distinct byte ranges that a list's operands touch, and which of them overlap. Internal to the
 * passes that derive waits; the verifier has its own.
 *
 * A range is rows x width bytes, `pitch` apart. Two ranges of one pitch, or of which one is a
 * single run, are compared exactly; others by their extents. Shards of one axis and stride are the
 * same piece of a rank; beside anything else a shard counts as everything it can be on any rank.
 */
#ifndef STEPCAST_PLANS_PROGRAM_RANGES_H
#define STEPCAST_PLANS_PROGRAM_RANGES_H

#include "plans/program.h"

struct sc_byte_range {
    uint32_t space;         /* bytes of different spaces never meet */
    int8_t axis;            /* of a shard, else -1 */
    uint64_t stride;        /* of a shard, else 0 */
    uint64_t offset, width; /* first byte; bytes a row */
    uint64_t pitch, rows;   /* one run: rows 1, pitch 0 */
    uint64_t whole_end;     /* behind the last byte on any rank */
};

struct sc_ranges {
    SC_ARRAY(struct sc_byte_range) items;
    uint32_t *of_value;   /* range of each value of the class; UINT32_MAX: not an operand */
    uint32_t *first;      /* [items.count + 1] in neighbours */
    uint32_t *neighbours; /* overlapping ranges, each range itself among them */
};

/* Whether ranges are told apart by buffer, or step buffers by the bytes of their place's arena. */
enum sc_range_space { SC_BY_BUFFER, SC_BY_ADDRESS };

struct sc_byte_range sc_byte_range(const struct sc_program *program, const struct sc_class *class,
                                   uint32_t value, enum sc_range_space space);
bool sc_ranges_overlap(const struct sc_byte_range *a, const struct sc_byte_range *b);
/* Free with sc_ranges_free, after a failure too. */
enum sc_status sc_ranges_find(const struct sc_program *program, const struct sc_class *class,
                              const struct sc_list *list, enum sc_range_space space,
                              struct sc_ranges *out, struct sc_error *err);
void sc_ranges_free(struct sc_ranges *ranges);

#endif
