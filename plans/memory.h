/*
 * The memory planner: packs the lifetimes of a class's buffers into one arena a place. Step buffers
 * come first, at [0, step_bytes), persistent ones behind.
 *
 * First mode: two step buffers may share bytes only where every access of the one happens-before
 * every access of the other within the step, and the other way round into the next step, by the
 * waits already derived, so that reuse never adds a wait. If that exceeds the capacity of the
 * device: packing by issue order; sc_program_derive_waits_shared then adds the waits.
 */
#ifndef STEPCAST_PLANS_MEMORY_H
#define STEPCAST_PLANS_MEMORY_H

#include <stdio.h>

#include "plans/program.h"

/* Fills offsets, memory[] and memory_mode of every class. capacity 0 or NULL: unlimited.
 * bound_bytes is the heaviest set found of buffers of which no two may share (memory_pack.h). SC_NO
 * when a class does not fit a place even in issue order: the line names place, bytes needed and
 * there. */
enum sc_status sc_memory_plan(struct sc_program *program, const uint64_t capacity[SC_PLACE_COUNT],
                              struct sc_error *err);

/* Adds the waits that shared bytes need (program_deps.c); none in the first mode. */
enum sc_status sc_program_derive_waits_shared(struct sc_program *program, struct sc_error *err);

/* Buffers alive at the peak of a place, largest first. */
struct sc_alive {
    uint32_t buffer;
    uint64_t bytes;
};
enum sc_status sc_memory_peak(const struct sc_program *program, const struct sc_class *class,
                              enum sc_place place, struct sc_alive *out, size_t room, size_t *count,
                              struct sc_error *err);

#endif
