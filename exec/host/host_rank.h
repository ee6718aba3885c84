/* One rank on the host: its arenas, and doing its operations. */
#ifndef STEPCAST_EXEC_HOST_HOST_RANK_H
#define STEPCAST_EXEC_HOST_HOST_RANK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/host/team.h"
#include "exec/host/transport.h"
#include "exec/op_call.h"

/* Allocates arenas and tables; on failure nothing is left. */
enum sc_status sc_host_rank_open(struct sc_rank_data *rank, const struct sc_backend_setup *setup,
                                 int64_t number, struct sc_error *err);
void sc_host_rank_close(struct sc_rank_data *rank); /* a zeroed struct is accepted */

/* How the host starts kernels; a call's `where` is its team, NULL: the caller alone. */
extern const struct sc_call_machine sc_host_machine;

/* Does it, start to end; not for collectives. */
enum sc_status sc_host_run(const struct sc_call *call, struct sc_error *err);
/* Whether the host can do the kind at all (collectives included). */
bool sc_host_supports(enum sc_op_kind kind);
/* Bytes of scratch that an operation needs with a team of so many members. */
size_t sc_host_scratch(const struct sc_rank_data *rank, const struct sc_list *list,
                       const struct sc_op *op, int team);
/* The collective of an operation, with this rank's addresses. */
struct sc_collective sc_host_collective(const struct sc_call *call);

/* host_poison.c. A build with the address sanitizer poisons what an operation does not name; any
 * build fills `out` operands with NaN. */
void sc_host_poison_all(const struct sc_rank_data *rank);
void sc_host_poison_none(const struct sc_rank_data *rank);
void sc_host_poison_open(const struct sc_call *call);
void sc_host_poison_shut(const struct sc_call *call);

#endif
