/*
 * The operations of a program by what they do: matrix products, attention, norms, ..., and of
 * collectives one kind for each of all-reduce, all-gather, ... and group ("all_reduce of tensor").
 * What a critical path is summed by and what may be thought free.
 */
#ifndef STEPCAST_SIM_WORK_KINDS_H
#define STEPCAST_SIM_WORK_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"
#include "plans/program.h"

struct sc_work_kind {
    const char *name; /* "gemm", "all_reduce of tensor"; in the arena or a literal */
    bool waits;       /* no computation: a step waits for it */
};

struct sc_work_kinds {
    SC_ARRAY(struct sc_work_kind) kinds; /* those that the program has, in the order of the table */
    uint32_t *of_op;                     /* [operations of all step lists, class after class] */
    uint32_t *first;                     /* [classes] where a class begins in of_op */
    struct sc_arena arena;
};

/* `out` is freed with sc_work_kinds_free. */
enum sc_status sc_work_kinds_of(const struct sc_program *program, struct sc_work_kinds *out,
                                struct sc_error *err);
/* Zeroed is empty. */
void sc_work_kinds_free(struct sc_work_kinds *kinds);

static inline uint32_t sc_work_kind_of(const struct sc_work_kinds *kinds, uint32_t class_index,
                                       uint32_t op)
{
    return kinds->of_op[kinds->first[class_index] + op];
}

#endif
