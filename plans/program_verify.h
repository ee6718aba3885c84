/*
 * Parts of the verifier (internal; sc_program_verify in program.h is what others call). Nothing
 * here uses the passes that derive waits or pack memory: ranges, clocks and orders are worked out
 * anew from the finished program.
 */
#ifndef STEPCAST_PLANS_PROGRAM_VERIFY_H
#define STEPCAST_PLANS_PROGRAM_VERIFY_H

#include "plans/program.h"
#include "plans/program_builder.h"

/* One list of a class under examination. */
struct sc_verify {
    const struct sc_program *program;
    const struct sc_class *class;
    const struct sc_list *list;
    bool init;
    struct sc_error *err;
};

/* "RULE: class "NAME", [init ]op N (...): WHAT". */
enum sc_status sc_verify_fail(const struct sc_verify *verify, const char *rule, uint32_t op,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Bytes that a value occupies: rows x width, pitch apart, from `begin`. A shard stands for its
 * piece at coordinate 0 and moves by `stride` a coordinate, of which there are `pieces`. */
struct sc_region {
    uint64_t begin, width, pitch, rows;
    uint64_t stride, pieces;
    int axis;
    uint32_t space; /* regions of different spaces never meet */
};

/* Region of a value, version `slot` of its buffer; by place and address when `addresses`, else
 * inside its buffer. */
struct sc_region sc_region_of(const struct sc_verify *verify, uint32_t value, uint32_t slot,
                              bool addresses);
uint64_t sc_region_end(const struct sc_region *region); /* at coordinate 0 */
uint64_t sc_region_whole_end(const struct sc_region *region);
bool sc_regions_meet(const struct sc_region *a, const struct sc_region *b);

/* Nothing outside its buffer or its arena; no persistent bytes shared (verify_bytes.c). */
enum sc_status sc_verify_bytes(const struct sc_verify *verify);
/* Step buffers are written before they are read, every byte (verify_written.c). */
enum sc_status sc_verify_written(const struct sc_verify *verify);
/* Conflicting accesses are ordered by the waits (verify_order.c). */
enum sc_status sc_verify_order(const struct sc_verify *verify);
/* Collectives: streams, orders, matching, no deadlock (verify_groups.c). */
enum sc_status sc_verify_groups(const struct sc_program *program, struct sc_error *err);

#endif
