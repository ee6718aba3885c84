/* What the host backend keeps for one rank, shared by the files of this folder. */
#ifndef STEPCAST_EXEC_HOST_HOST_RANK_H
#define STEPCAST_EXEC_HOST_HOST_RANK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/backend.h"
#include "exec/host/team.h"
#include "exec/host/transport.h"
#include "plans/program.h"

struct sc_kernel_range;

/* Ranges of one flat operation (adam, norm_squares), counted from this rank's first element. */
struct sc_host_ranges {
    struct sc_kernel_range *items;
    int64_t count;
};

/* One allocation a place. */
struct sc_host_arena {
    char *base;
    size_t bytes;
};

/* The data of one rank: where its values lie. Everything is set before the first step. */
struct sc_host_rank {
    const struct sc_backend_setup *setup;
    const struct sc_program *program;
    const struct sc_class *class;
    int64_t rank, coordinates[SC_AXIS_COUNT];
    struct sc_host_arena arenas[SC_PLACE_COUNT];
    struct sc_host_ranges *ranges; /* by operation of the step list */
    double *read_outs, *step_ends; /* by step */
};

/* Allocates arenas and tables; on failure nothing is left. */
enum sc_status sc_host_rank_open(struct sc_host_rank *rank, const struct sc_backend_setup *setup,
                                 int64_t number, struct sc_error *err);
void sc_host_rank_close(struct sc_host_rank *rank); /* a zeroed struct is accepted */

/* Where a value's first element lies in `step` (bytes); NULL for a token. */
char *sc_host_address(const struct sc_host_rank *rank, uint32_t value, enum sc_version version,
                      int64_t step);

/* One operation to do. */
struct sc_host_call {
    const struct sc_host_rank *rank;
    const struct sc_list *list;
    const struct sc_op *op;
    uint32_t index; /* of the operation in its list */
    int64_t step;
    struct sc_team *team; /* NULL: the caller alone */
    char *scratch;        /* sc_host_scratch bytes */
};

/* Does it, start to end; not for collectives. */
enum sc_status sc_host_run(const struct sc_host_call *call, struct sc_error *err);
/* Whether the host can do the kind at all (collectives included). */
bool sc_host_supports(enum sc_op_kind kind);
/* Bytes of scratch that an operation needs with a team of so many members. */
size_t sc_host_scratch(const struct sc_host_rank *rank, const struct sc_list *list,
                       const struct sc_op *op, int team);
/* Fills rank->ranges for adam and norm_squares. */
enum sc_status sc_host_make_ranges(struct sc_host_rank *rank, struct sc_error *err);
/* The collective of an operation, with this rank's addresses. */
struct sc_collective sc_host_collective(const struct sc_host_call *call);

/* An operand of a call: its data and shape; data NULL where the operation has none. */
struct sc_host_view {
    char *data;
    const struct sc_value *value;
    bool accumulate; /* the operand is inout */
};
struct sc_host_view sc_host_operand(const struct sc_host_call *call, enum sc_role role);

/* host_init.c: first contents of parameters. */
enum sc_status sc_host_initialize(const struct sc_host_call *call, struct sc_error *err);

/* host_poison.c. A build with the address sanitizer poisons what an operation does not name; any
 * build fills `out` operands with NaN. */
void sc_host_poison_all(const struct sc_host_rank *rank);
void sc_host_poison_none(const struct sc_host_rank *rank);
void sc_host_poison_open(const struct sc_host_call *call);
void sc_host_poison_shut(const struct sc_host_call *call);

#endif
