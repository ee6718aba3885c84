/*
 * NCCL: a clique is what the members of one communicator share. A collective runs when it is at the
 * head of a stream of every member; sums are taken in the order of ranks, as the host backend's
 * transports do, so the bits are theirs.
 */
#include "tests/standin/internal.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/transport.h"

enum { MOST_MEMBERS = 64, MOST_PARTS = 64 };

struct standin_clique {
    struct standin_clique *next;
    ncclUniqueId id;
    int ranks, joined;
    struct ncclComm *members[MOST_MEMBERS];
};

struct ncclComm {
    struct standin_object object;
    struct standin_clique *clique;
    struct ncclComm *group_next; /* joined in a group that has not ended */
    int rank, device;
    bool ready, aborted;
    ncclResult_t error;
    uint64_t pending;
};

static const char communicator[] = "communicator";

static ncclResult_t unavailable(void)
{
    return standin.on ? ncclSystemError : ncclUnhandledCudaError;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    size_t count = sizeof texts / sizeof *texts;
    return (size_t)code < count ? texts[code] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return standin.complaint;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* ---- members come and go --------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    if (standin_enter("ncclGetUniqueId"))
        return unavailable();
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "stand-in %llu",
             (unsigned long long)++standin.numbers);
    return ncclSuccess;
}

static struct standin_clique *clique_of(ncclUniqueId id, int ranks)
{
    for (struct standin_clique *c = standin.cliques; c; c = c->next)
        if (!memcmp(&c->id, &id, sizeof id))
            return c->ranks == ranks ? c : NULL;
    struct standin_clique *clique = calloc(1, sizeof *clique);
    if (!clique)
        return NULL;
    clique->id = id;
    clique->ranks = ranks;
    clique->next = standin.cliques;
    standin.cliques = clique;
    return clique;
}

void standin_free_cliques(void)
{
    while (standin.cliques) {
        struct standin_clique *next = standin.cliques->next;
        free(standin.cliques);
        standin.cliques = next;
    }
}

static bool may_join(const struct standin_clique *clique, int rank)
{
    if (!clique || clique->members[rank]) {
        standin_complain("ncclCommInitRank: rank %d: %s", rank,
                         clique ? "is there already" : "members disagree on their number");
        return false;
    }
    for (int r = 0; r < clique->ranks; r++)
        if (clique->members[r] && clique->members[r]->device == standin_me->device) {
            standin_complain("ncclCommInitRank: ranks %d and %d are both on device %d", r, rank,
                             standin_me->device);
            return false;
        }
    return true;
}

static bool complete(const void *what)
{
    const struct ncclComm *comm = what;
    return comm->clique->joined == comm->clique->ranks;
}

static ncclResult_t await_members(struct ncclComm *comm)
{
    if (!standin_wait("ncclCommInitRank", complete, comm, true))
        return ncclSystemError;
    comm->ready = true;
    return ncclSuccess;
}

static void leave(struct ncclComm *comm)
{
    comm->object.destroyed = true;
    if (!comm->ready) {
        comm->clique->members[comm->rank] = NULL;
        comm->clique->joined--;
    }
}

static ncclResult_t init_rank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    if (standin_enter("ncclCommInitRank"))
        return unavailable();
    if (!out || ranks < 1 || ranks > MOST_MEMBERS || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    struct standin_clique *clique = clique_of(id, ranks);
    if (!may_join(clique, rank))
        return ncclInvalidUsage;
    struct ncclComm *comm = standin_object(communicator, sizeof *comm);
    if (!comm)
        return ncclSystemError;
    comm->clique = clique;
    comm->rank = rank;
    comm->device = standin_me->device;
    clique->members[rank] = comm;
    clique->joined++;
    *out = comm;
    if (standin_me->group_depth > 0) {
        comm->group_next = standin_me->group_joined;
        standin_me->group_joined = comm;
        return ncclSuccess;
    }
    ncclResult_t result = await_members(comm);
    if (result != ncclSuccess) {
        leave(comm);
        *out = NULL;
    }
    return result;
}

/* A call that fails in a group makes the group fail. */
ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    ncclResult_t result = init_rank(out, ranks, id, rank);
    if (result != ncclSuccess && standin_me && standin_me->group_depth > 0)
        standin_me->group_failed = true;
    return result;
}

static bool comm_ok(const char *call, const struct ncclComm *comm)
{
    if (!standin_object_ok(call, communicator, comm))
        return false;
    if (!comm->ready)
        standin_complain("%s: the group that makes the communicator has not ended", call);
    return comm->ready;
}

static bool nothing_pending(const void *what)
{
    return ((const struct ncclComm *)what)->pending == 0;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    if (standin_enter("ncclCommFinalize"))
        return unavailable();
    if (!comm_ok("ncclCommFinalize", comm))
        return ncclInvalidArgument;
    return standin_wait("ncclCommFinalize", nothing_pending, comm, true) ? ncclSuccess
                                                                         : ncclSystemError;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    bool fails = standin_enter("ncclCommDestroy");
    if (!standin.on || !standin_object_ok("ncclCommDestroy", communicator, comm))
        return ncclInvalidArgument;
    bool ended = standin_wait("ncclCommDestroy", nothing_pending, comm, true);
    leave(comm);
    return ended && !fails ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    bool fails = standin_enter("ncclCommAbort");
    if (!standin.on || !standin_object_ok("ncclCommAbort", communicator, comm))
        return ncclInvalidArgument;
    comm->aborted = true;
    leave(comm);
    return fails ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (standin_enter("ncclCommGetAsyncError"))
        return unavailable();
    if (!comm_ok("ncclCommGetAsyncError", comm))
        return ncclInvalidArgument;
    *error = comm->error;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    if (standin_enter("ncclCommCount"))
        return unavailable();
    if (!comm_ok("ncclCommCount", comm))
        return ncclInvalidArgument;
    *count = comm->clique->ranks;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    if (standin_enter("ncclCommUserRank"))
        return unavailable();
    if (!comm_ok("ncclCommUserRank", comm))
        return ncclInvalidArgument;
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    if (standin_enter("ncclCommCuDevice"))
        return unavailable();
    if (!comm_ok("ncclCommCuDevice", comm))
        return ncclInvalidArgument;
    *device = comm->device;
    return ncclSuccess;
}

/* ---- collectives ----------------------------------------------------------------------------- */

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, EXCHANGE };

static const char *const names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
                                    "ncclBroadcast", "ncclSend and ncclRecv"};

struct part { /* of an exchange */
    bool send;
    int peer;
    char *buffer;
    size_t bytes;
};

/* `bytes` is what `count` elements have: of the whole for all_reduce and broadcast, of one
 * member's share otherwise. */
struct collective {
    struct standin_command base;
    struct ncclComm *comm;
    enum kind kind;
    const char *from;
    char *to;
    size_t bytes;
    enum sc_reduction reduction;
    int root, parts;
    struct part part[];
};

static const struct standin_kind collective_kind;

static struct collective *head_of(const struct ncclComm *comm)
{
    for (const struct CUstream_st *s = standin.streams; s; s = s->next) {
        struct collective *head = (struct collective *)s->first;
        if (head && head->base.kind == &collective_kind && head->comm == comm)
            return head;
    }
    return NULL;
}

/* The heads of the members that an operation needs; false while one is missing. */
static bool find_heads(const struct collective *c, struct collective *heads[MOST_MEMBERS])
{
    const struct standin_clique *clique = c->comm->clique;
    memset(heads, 0, MOST_MEMBERS * sizeof *heads);
    if (c->kind != EXCHANGE) {
        for (int r = 0; r < clique->ranks; r++)
            if (!clique->members[r] || !(heads[r] = head_of(clique->members[r])))
                return false;
        return true;
    }
    heads[c->comm->rank] = head_of(c->comm);
    for (bool again = true; again;) { /* whom one needs, and whom those need */
        again = false;
        for (int r = 0; r < clique->ranks; r++)
            for (int p = 0; heads[r] && p < heads[r]->parts; p++) {
                int peer = heads[r]->part[p].peer;
                if (heads[peer])
                    continue;
                if (!clique->members[peer] || !(heads[peer] = head_of(clique->members[peer])))
                    return false;
                again = true;
            }
    }
    return true;
}

static bool collective_ready(const struct standin_command *command)
{
    struct collective *heads[MOST_MEMBERS];
    const struct collective *c = (const struct collective *)command;
    return c->comm->aborted || find_heads(c, heads);
}

static void describe_collective(const struct standin_command *command, char *out, size_t size)
{
    const struct collective *c = (const struct collective *)command;
    snprintf(out, size, "%s of rank %d of %d", names[c->kind], c->comm->rank,
             c->comm->clique->ranks);
}

static void end_collective(struct collective *c)
{
    c->comm->pending--;
    standin_pop(c->base.stream);
}

static bool heads_agree(struct collective *const heads[MOST_MEMBERS])
{
    const struct collective *first = NULL;
    for (int r = 0; r < MOST_MEMBERS; r++) {
        const struct collective *c = heads[r];
        if (!c)
            continue;
        first = first ? first : c;
        bool same = c->kind == first->kind && c->reduction == first->reduction &&
                    c->root == first->root && (c->kind == EXCHANGE || c->bytes == first->bytes);
        if (same)
            continue;
        standin_complain("members disagree: rank %d: %s of %zu bytes, rank %d: %s of %zu bytes",
                         first->comm->rank, names[first->kind], first->bytes, c->comm->rank,
                         names[c->kind], c->bytes);
        return false;
    }
    return true;
}

/* ---- what they do ---------------------------------------------------------------------------- */

static void reduce_into(struct collective *const heads[], int members, size_t offset, char *to,
                        size_t bytes)
{
    const float *x[MOST_MEMBERS];
    for (int r = 0; r < members; r++)
        x[r] = (const float *)(heads[r]->from + offset);
    sc_collective_reduce(heads[0]->reduction, x, (size_t)members, (float *)to,
                         bytes / sizeof(float));
}

static void run_reductions(struct collective *const heads[], int members, char *scratch)
{
    size_t bytes = heads[0]->bytes;
    if (heads[0]->kind == ALL_REDUCE) {
        reduce_into(heads, members, 0, scratch, bytes);
        for (int r = 0; r < members; r++)
            memcpy(heads[r]->to, scratch, bytes);
        return;
    }
    for (int r = 0; r < members; r++)
        reduce_into(heads, members, (size_t)r * bytes, scratch + (size_t)r * bytes, bytes);
    for (int r = 0; r < members; r++)
        memcpy(heads[r]->to, scratch + (size_t)r * bytes, bytes);
}

static void run_moves(struct collective *const heads[], int members, char *scratch)
{
    size_t bytes = heads[0]->bytes, whole = bytes;
    if (heads[0]->kind == BROADCAST) {
        memcpy(scratch, heads[heads[0]->root]->from, bytes);
    } else {
        whole = bytes * (size_t)members;
        for (int r = 0; r < members; r++)
            memcpy(scratch + (size_t)r * bytes, heads[r]->from, bytes);
    }
    for (int r = 0; r < members; r++)
        memcpy(heads[r]->to, scratch, whole);
}

static bool run_together(struct collective *const heads[MOST_MEMBERS], int members)
{
    char *scratch = malloc(heads[0]->bytes * (size_t)members + 1);
    if (!scratch)
        return false;
    if (heads[0]->kind == ALL_REDUCE || heads[0]->kind == REDUCE_SCATTER)
        run_reductions(heads, members, scratch);
    else
        run_moves(heads, members, scratch);
    free(scratch);
    return true;
}

/* The receive at `peer` that the send `index` of `rank` goes to: the one of equal number between
 * the two. */
static const struct part *receive_of(struct collective *const heads[], int rank, int index)
{
    int number = 0, peer = heads[rank]->part[index].peer;
    for (int p = 0; p < index; p++)
        number += heads[rank]->part[p].send && heads[rank]->part[p].peer == peer;
    for (int p = 0; p < heads[peer]->parts; p++) {
        const struct part *part = &heads[peer]->part[p];
        if (!part->send && part->peer == rank && number-- == 0)
            return part;
    }
    return NULL;
}

static int count_parts(struct collective *const heads[], bool send)
{
    int count = 0;
    for (int r = 0; r < MOST_MEMBERS; r++)
        for (int p = 0; heads[r] && p < heads[r]->parts; p++)
            count += heads[r]->part[p].send == send;
    return count;
}

static bool run_exchange(struct collective *const heads[MOST_MEMBERS])
{
    bool equal = count_parts(heads, true) == count_parts(heads, false);
    for (int r = 0; equal && r < MOST_MEMBERS; r++)
        for (int p = 0; equal && heads[r] && p < heads[r]->parts; p++) {
            const struct part *send = &heads[r]->part[p];
            const struct part *receive = send->send ? receive_of(heads, r, p) : send;
            equal = receive && receive->bytes == send->bytes;
            if (equal && send->send)
                memmove(receive->buffer, send->buffer, send->bytes);
        }
    if (!equal)
        standin_complain("a send without an equal receive, or the other way round");
    return equal;
}

static void run_collective(struct CUstream_st *stream, struct standin_command *command)
{
    struct collective *heads[MOST_MEMBERS];
    struct collective *c = (struct collective *)command;
    (void)stream;
    if (c->comm->aborted) {
        end_collective(c);
        return;
    }
    find_heads(c, heads);
    bool good =
        heads_agree(heads) &&
        (c->kind == EXCHANGE ? run_exchange(heads) : run_together(heads, c->comm->clique->ranks));
    for (int r = 0; r < MOST_MEMBERS; r++) {
        if (!heads[r])
            continue;
        if (!good) {
            heads[r]->comm->error = ncclInvalidUsage;
            standin.device_error[heads[r]->comm->device] = cudaErrorLaunchFailure;
        }
        end_collective(heads[r]);
    }
}

static const struct standin_kind collective_kind = {"in a collective:", false, collective_ready,
                                                    run_collective, describe_collective};

/* ---- calls ----------------------------------------------------------------------------------- */

static size_t size_of(ncclDataType_t type)
{
    static const size_t sizes[] = {
        [ncclInt8] = 1,    [ncclUint8] = 1,   [ncclInt32] = 4,   [ncclUint32] = 4,
        [ncclInt64] = 8,   [ncclUint64] = 8,  [ncclFloat16] = 2, [ncclFloat32] = 4,
        [ncclFloat64] = 8, [ncclBfloat16] = 2};
    return (size_t)type < sizeof sizes / sizeof *sizes ? sizes[type] : 0;
}

static ncclResult_t check_call(const char *call, const struct ncclComm *comm,
                               struct CUstream_st *stream)
{
    if (!comm_ok(call, comm) || !standin_stream_ok(call, stream))
        return ncclInvalidArgument;
    if (stream->device == comm->device)
        return comm->error;
    standin_complain("%s: a communicator of device %d, a stream of device %d", call, comm->device,
                     stream->device);
    return ncclInvalidArgument;
}

static void enqueue_collective(struct CUstream_st *stream, struct collective *c)
{
    c->comm->pending++;
    standin_enqueue(stream, &c->base);
}

struct call {
    enum kind kind;
    const void *from;
    void *to;
    size_t from_count, to_count, count; /* elements; count: as given */
    ncclDataType_t type;
    ncclRedOp_t op;
    bool reduces;
    int root;
};

/* Where `to` may lie beside `from`: at this distance, or apart. */
static bool placed_well(const struct call *call, size_t size, int rank)
{
    const char *from = call->from, *to = call->to;
    size_t share = call->count * size * (size_t)rank;
    const char *from_part = from + (call->kind == REDUCE_SCATTER ? share : 0);
    const char *to_part = to + (call->kind == ALL_GATHER ? share : 0);
    bool apart = from + call->from_count * size <= to || to + call->to_count * size <= from;
    if (!apart && from_part != to_part)
        standin_complain("%s: the buffers overlap, but not as in place", names[call->kind]);
    return apart || from_part == to_part;
}

static ncclResult_t enqueue_call(const struct call *call, ncclComm_t comm, cudaStream_t stream)
{
    const char *name = names[call->kind];
    size_t size = size_of(call->type);
    if (standin_enter(name))
        return unavailable();
    ncclResult_t result = check_call(name, comm, stream);
    if (result != ncclSuccess)
        return result;
    if (size == 0 || (call->reduces && (call->type != ncclFloat32 ||
                                        (call->op != ncclSum && call->op != ncclMax)))) {
        standin_complain("%s: this type or reduction is not provided", name);
        return ncclInvalidArgument;
    }
    bool reads = call->kind != BROADCAST || comm->rank == call->root;
    if ((reads &&
         (!standin_range_ok(name, "sendbuff", comm->device, call->from, call->from_count * size) ||
          !placed_well(call, size, comm->rank))) ||
        !standin_range_ok(name, "recvbuff", comm->device, call->to, call->to_count * size))
        return ncclInvalidArgument;
    struct collective *c = standin_command(&collective_kind, sizeof *c);
    if (!c)
        return ncclSystemError;
    c->comm = comm;
    c->kind = call->kind;
    c->from = call->from;
    c->to = call->to;
    c->bytes = call->count * size;
    c->reduction = call->op == ncclMax ? SC_MAX : SC_SUM;
    c->root = call->root;
    enqueue_collective(stream, c);
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {ALL_REDUCE, from, to, count, count, count, type, op, true, 0};
    return enqueue_call(&call, comm, stream);
}

static size_t members_of(const struct ncclComm *comm)
{
    return standin_object_ok("a collective", communicator, comm) ? (size_t)comm->clique->ranks : 1;
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {
        REDUCE_SCATTER, from, to, count * members_of(comm), count, count, type, op, true, 0};
    return enqueue_call(&call, comm, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct call call = {ALL_GATHER, from, to,      count, count * members_of(comm),
                              count,      type, ncclSum, false, 0};
    return enqueue_call(&call, comm, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    if (root < 0 || (size_t)root >= members_of(comm))
        return ncclInvalidArgument;
    const struct call call = {BROADCAST, from, to, count, count, count, type, ncclSum, false, root};
    return enqueue_call(&call, comm, stream);
}

/* ---- sends and receives, groups -------------------------------------------------------------- */

/* The exchange that the open group has for this communicator and stream, or a new one. */
static struct collective *open_exchange(ncclComm_t comm, cudaStream_t stream)
{
    for (struct standin_command *at = standin_me->group_first; at; at = at->next)
        if (at->stream == stream && ((struct collective *)at)->comm == comm)
            return (struct collective *)at;
    struct collective *c =
        standin_command(&collective_kind, sizeof *c + MOST_PARTS * sizeof c->part[0]);
    if (!c)
        return NULL;
    c->comm = comm;
    c->kind = EXCHANGE;
    c->base.stream = stream;
    c->base.next = standin_me->group_first;
    standin_me->group_first = &c->base;
    return c;
}

static void close_exchanges(void)
{
    while (standin_me->group_first) {
        struct standin_command *next = standin_me->group_first->next;
        struct collective *c = (struct collective *)standin_me->group_first;
        c->base.next = NULL;
        enqueue_collective(c->base.stream, c);
        standin_me->group_first = next;
    }
}

static ncclResult_t add_part(const char *name, bool send, void *buffer, size_t count,
                             ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    if (standin_enter(name))
        return unavailable();
    ncclResult_t result = check_call(name, comm, stream);
    if (result != ncclSuccess)
        return result;
    size_t bytes = count * size_of(type);
    if (peer < 0 || peer >= comm->clique->ranks ||
        !standin_range_ok(name, "the buffer", comm->device, buffer, bytes))
        return ncclInvalidArgument;
    struct collective *c = open_exchange(comm, stream);
    if (!c || c->parts == MOST_PARTS)
        return ncclSystemError;
    c->part[c->parts++] = (struct part){send, peer, buffer, bytes};
    if (standin_me->group_depth == 0)
        close_exchanges();
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add_part("ncclSend", true, (void *)(uintptr_t)buffer, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add_part("ncclRecv", false, buffer, count, type, peer, comm, stream);
}

/* The header declares them without arguments. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    if (standin_enter("ncclGroupStart"))
        return unavailable();
    standin_me->group_depth++;
    return ncclSuccess;
}

/* A group that fails waits for nobody and makes none of its communicators. */
static ncclResult_t end_joining(bool fails)
{
    ncclResult_t result = fails || standin_me->group_failed ? unavailable() : ncclSuccess;
    struct ncclComm *first = standin_me->group_joined;
    standin_me->group_joined = NULL;
    standin_me->group_failed = false;
    for (struct ncclComm *c = first; c && result == ncclSuccess; c = c->group_next)
        result = await_members(c);
    for (struct ncclComm *c = first; c && result != ncclSuccess; c = c->group_next)
        leave(c);
    return result;
}

ncclResult_t ncclGroupEnd(void)
{
    bool fails = standin_enter("ncclGroupEnd");
    if (!standin.on)
        return unavailable();
    if (standin_me->group_depth == 0) {
        standin_complain("ncclGroupEnd: no group was started");
        return ncclInvalidUsage;
    }
    if (--standin_me->group_depth > 0)
        return fails ? unavailable() : ncclSuccess;
    ncclResult_t result = end_joining(fails);
    close_exchanges();
    return result;
}
