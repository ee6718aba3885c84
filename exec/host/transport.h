/*
 * Collectives among ranks: one interface, three transports (threads of one process; processes over
 * MPI; processes over TCP).
 *
 * A *member* is one rank's end of one group. A collective is begun by every member and then tested
 * until it is done; testing does the member's share of the work, never blocks, and never spins. A
 * group's collectives follow one another; groups are independent.
 *
 * Sums are taken in the order of the ranks of the group, element by element, in fp32:
 * ((x0 + x1) + x2) + ... So the result is the same bits in every run, on all transports and
 * whatever the sizes. Each rank reduces its slice, then the slices are gathered.
 */
#ifndef STEPCAST_EXEC_HOST_TRANSPORT_H
#define STEPCAST_EXEC_HOST_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "exec/failure.h"
#include "exec/host/wake.h"
#include "exec/process.h"
#include "plans/op.h"
#include "plans/program.h"

enum sc_collective_kind {
    SC_COLLECTIVE_ALL_REDUCE,
    SC_COLLECTIVE_REDUCE_SCATTER,
    SC_COLLECTIVE_ALL_GATHER,
    SC_COLLECTIVE_BROADCAST,
    SC_COLLECTIVE_ALL_TO_ALL,
    SC_COLLECTIVE_COUNT
};

/* `bytes` is the whole tensor: what x holds (all_reduce, reduce_scatter, all_to_all, broadcast) or
 * what y holds (all_gather). Shards are bytes / members, in group order.
 *   all_reduce, broadcast  y in place (x unused); broadcast from member 0
 *   reduce_scatter         y may be x + index * shard, or lie outside x
 *   all_gather             x may be y + index * shard, or lie outside y
 *   all_to_all             x and y do not overlap
 * Reductions take fp32 elements; what only moves takes any. */
struct sc_collective {
    enum sc_collective_kind kind;
    enum sc_reduction reduction;
    const void *x;
    void *y;
    size_t bytes;
};

struct sc_member;
struct sc_transport;

struct sc_transport_functions {
    /* The end of a local rank in its group. `wake` is called when the member may go on. */
    struct sc_member *(*member)(struct sc_transport *transport, size_t group, int64_t rank,
                                struct sc_wake *wake);
    enum sc_status (*begin)(struct sc_member *member, const struct sc_collective *collective,
                            struct sc_error *err);
    /* *done when the member's result is complete and its buffers are its own again; *moved when
     * something happened. */
    enum sc_status (*test)(struct sc_member *member, bool *done, bool *moved, struct sc_error *err);
    /* Sleeps as sc_wake_sleep does, and until a member of this wake may go on; NULL: sc_wake_sleep
     * is all there is. */
    void (*wait)(struct sc_transport *transport, struct sc_wake *wake, unsigned ticket,
                 int64_t limit_ns);
    /* All members have begun: testing them in turn, without any other work, ends it. */
    bool (*gathered)(const struct sc_member *member);
    /* Equal for members of one group. */
    const void *(*group)(const struct sc_member *member);
    void (*close)(struct sc_transport *transport);
};

/* First member of each transport's own struct. */
struct sc_transport {
    const struct sc_transport_functions *functions;
    const char *name;
    bool polled; /* nobody calls a waiting member's wake: test it now and then */
};

struct sc_transport_setup {
    const struct sc_mesh *mesh;
    size_t groups;
    const unsigned *axis_masks;      /* [groups] */
    int64_t first_rank, local_ranks; /* ranks of this process */
    struct sc_process *process;      /* sockets: through which addresses are exchanged */
};

typedef enum sc_status sc_transport_fn(const struct sc_transport_setup *setup,
                                       struct sc_transport **out, struct sc_error *err);

/* Ranks are threads of this process: all of them are local. */
enum sc_status sc_transport_threads(const struct sc_transport_setup *setup,
                                    struct sc_transport **out, struct sc_error *err);
/* One rank a process, MPI_COMM_WORLD's; SC_NO in a build without MPI. Called by all processes. */
enum sc_status sc_transport_mpi(const struct sc_transport_setup *setup, struct sc_transport **out,
                                struct sc_error *err);
/* One rank a process; TCP between every two that share a group. Called by all processes. */
enum sc_status sc_transport_sockets(const struct sc_transport_setup *setup,
                                    struct sc_transport **out, struct sc_error *err);
void sc_transport_close(struct sc_transport **transport); /* accepts NULL; sets NULL */

/* Slice [*begin, *end) of `count` elements that member `index` of `members` reduces: multiples of
 * 16 elements where it can be. */
void sc_collective_slice(size_t count, size_t index, size_t members, size_t *begin, size_t *end);
/* out[i] = x[0][i] (+ or max) x[1][i] ...; out may be one of x. Small fixed stack space. */
void sc_collective_reduce(enum sc_reduction reduction, const float *const *x, size_t members,
                          float *out, size_t count);

/*
 * A direct exchange between processes: each member sends every other its part of the data
 * (contributions, of what reduces), reduces its own part, and sends the result, or what needs no
 * reducing, to all.
 */
struct sc_transfer {
    const char *send;
    size_t send_bytes;
    char *receive; /* of a contribution NULL: where it goes is the transport's business */
    size_t receive_bytes;
};
bool sc_collective_reduces(enum sc_collective_kind kind);
/* Part of member m, in bytes of the whole tensor: where it begins, how long it is. */
size_t sc_collective_part(const struct sc_collective *call, size_t m, size_t members,
                          size_t *bytes);
/* What member `index` sends `peer` and gets from it. */
struct sc_transfer sc_collective_contribution(const struct sc_collective *call, size_t index,
                                              size_t members, size_t peer);
struct sc_transfer sc_collective_result(const struct sc_collective *call, size_t index,
                                        size_t members, size_t peer);
/* Copies what a member gives to itself. */
void sc_collective_keep_own(const struct sc_collective *call, size_t index, size_t members);
/* For `gathered` and `group` where a process has one member of a group. */
bool sc_member_always_gathered(const struct sc_member *member);
const void *sc_member_as_group(const struct sc_member *member);

#endif
