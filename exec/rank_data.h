/*
 * Where one rank's values lie: arenas by place, addresses of values, the ranges that the flat
 * operations work on. A backend allocates the arenas; everything is set before the first step.
 */
#ifndef STEPCAST_EXEC_RANK_DATA_H
#define STEPCAST_EXEC_RANK_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "exec/backend.h"
#include "exec/kernels/kernels.h"
#include "plans/program.h"

/* One allocation a place. */
struct sc_rank_arena {
    char *base;
    size_t bytes;
};

/* Ranges of one flat operation (adam, norm_squares): `count` from `first` on. */
struct sc_rank_ranges {
    int64_t first, count;
};

struct sc_rank_data {
    const struct sc_backend_setup *setup;
    const struct sc_program *program;
    const struct sc_class *class;
    int64_t rank, coordinates[SC_AXIS_COUNT];
    struct sc_rank_arena arenas[SC_PLACE_COUNT]; /* the backend's */
    struct sc_rank_ranges *flat;                 /* by operation of the step list */
    struct sc_kernel_range *ranges;              /* of all of them, owned */
    int64_t range_count;
    const struct sc_kernel_range *kernel_ranges; /* `ranges` where kernels can read them */
    double *read_outs, *step_ends;               /* by step */
};

/* Tables of a rank, no arenas. On failure nothing is left. */
enum sc_status sc_rank_data_open(struct sc_rank_data *rank, const struct sc_backend_setup *setup,
                                 int64_t number, struct sc_error *err);
/* Frees the tables; arenas are the backend's. A zeroed struct is accepted. */
void sc_rank_data_close(struct sc_rank_data *rank);

/* Where a value's first element lies in `step` (bytes); NULL for a token. */
char *sc_rank_address(const struct sc_rank_data *rank, uint32_t value, enum sc_version version,
                      int64_t step);

#endif
