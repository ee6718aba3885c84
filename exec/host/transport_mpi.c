/*
 * Collectives among processes, over MPI: a direct exchange (every member sends each other member
 * its slice, reduces its own in rank order, sends the result to all). Tensors are cut into chunks,
 * a few of which are under way at once, so that reducing one hides behind the transfer of others.
 * Nothing blocks: `test` asks MPI what has arrived; whoever calls it sleeps between calls.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/host/mpi_check.h"
#include "exec/host/transport.h"

enum { CHUNK_BYTES = 256 * 1024, WINDOW = 4, TAGS = 1024 };

/* A chunk under way. */
struct slot {
    bool active;
    size_t chunk;
    int phase; /* 0: towards the reducer, 1: results (and what is not reduced) */
    int requests;
    MPI_Request *request; /* [2 members] */
    char *scratch;        /* [members] pieces of CHUNK_BYTES */
};

struct sc_member {
    MPI_Comm comm;
    size_t index, members;
    struct sc_collective call;
    size_t chunks, next, ended;
    struct slot slot[WINDOW];
};

struct mpi {
    struct sc_transport base;
    size_t groups;
    struct sc_member *members; /* [groups] */
};

static bool returns(enum sc_collective_kind kind)
{
    return kind != SC_COLLECTIVE_REDUCE_SCATTER;
}

/* The chunk's part of `bytes`. */
static size_t cut(size_t bytes, size_t chunk)
{
    size_t begin = chunk * CHUNK_BYTES;
    if (begin >= bytes)
        return 0;
    return bytes - begin < CHUNK_BYTES ? bytes - begin : CHUNK_BYTES;
}

static enum sc_status post_one(struct sc_member *member, struct slot *slot, size_t peer,
                               struct sc_error *err)
{
    struct sc_transfer message =
        slot->phase == 0
            ? sc_collective_contribution(&member->call, member->index, member->members, peer)
            : sc_collective_result(&member->call, member->index, member->members, peer);
    size_t at = slot->chunk * CHUNK_BYTES;
    size_t in = cut(message.receive_bytes, slot->chunk), out = cut(message.send_bytes, slot->chunk);
    char *to = slot->phase == 0 ? slot->scratch + peer * CHUNK_BYTES : message.receive + at;
    int tag = (int)(slot->chunk % TAGS) * 2 + slot->phase;
    if (in > 0)
        SC_MPI(MPI_Irecv(to, (int)in, MPI_BYTE, (int)peer, tag, member->comm,
                         &slot->request[slot->requests++]),
               err);
    if (out > 0)
        SC_MPI(MPI_Isend(message.send + at, (int)out, MPI_BYTE, (int)peer, tag, member->comm,
                         &slot->request[slot->requests++]),
               err);
    return SC_OK;
}

static enum sc_status post(struct sc_member *member, struct slot *slot, struct sc_error *err)
{
    slot->requests = 0;
    for (size_t peer = 0; peer < member->members; peer++)
        if (peer != member->index)
            SC_TRY(post_one(member, slot, peer, err));
    return SC_OK;
}

/* Sums the chunk of this member's part, in rank order, its own in its place. */
static void reduce_chunk(struct sc_member *member, struct slot *slot)
{
    const float *x[2];
    size_t bytes, begin = sc_collective_part(&member->call, member->index, member->members, &bytes);
    size_t at = slot->chunk * CHUNK_BYTES, length = cut(bytes, slot->chunk);
    bool whole = member->call.kind == SC_COLLECTIVE_ALL_REDUCE;
    const char *own = whole ? member->call.y : member->call.x;
    char *out = (char *)member->call.y + (whole ? begin : 0) + at;
    char *total = slot->scratch + member->index * CHUNK_BYTES;
    if (length == 0)
        return;
    memcpy(total, own + begin + at, length);
    for (size_t m = 1; m < member->members;
         m++) { /* pairwise, so that any number of members fits */
        x[0] = (const float *)(m == 1 ? slot->scratch : out);
        x[1] = (const float *)(slot->scratch + m * CHUNK_BYTES);
        sc_collective_reduce(member->call.reduction, x, 2, (float *)out, length / sizeof(float));
    }
}

static enum sc_status start_chunk(struct sc_member *member, struct slot *slot, struct sc_error *err)
{
    slot->active = true;
    slot->chunk = member->next++;
    slot->phase = sc_collective_reduces(member->call.kind) ? 0 : 1;
    return post(member, slot, err);
}

static enum sc_status advance(struct sc_member *member, struct slot *slot, bool *moved,
                              struct sc_error *err)
{
    int there = 0;
    SC_MPI(MPI_Testall(slot->requests, slot->request, &there, MPI_STATUSES_IGNORE), err);
    if (!there)
        return SC_OK;
    *moved = true;
    if (slot->phase == 0) {
        reduce_chunk(member, slot);
        slot->phase = 1;
        if (returns(member->call.kind))
            return post(member, slot, err);
    }
    slot->active = false;
    member->ended++;
    return SC_OK;
}

static size_t largest_part(const struct sc_member *member)
{
    size_t largest = 0, bytes;
    if (member->call.kind == SC_COLLECTIVE_BROADCAST)
        return member->call.bytes;
    for (size_t m = 0; m < member->members; m++) {
        sc_collective_part(&member->call, m, member->members, &bytes);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static enum sc_status mpi_begin(struct sc_member *member, const struct sc_collective *collective,
                                struct sc_error *err)
{
    member->call = *collective;
    member->next = member->ended = 0;
    member->chunks = (largest_part(member) + CHUNK_BYTES - 1) / CHUNK_BYTES;
    sc_collective_keep_own(collective, member->index, member->members);
    for (int s = 0; s < WINDOW && member->next < member->chunks; s++)
        SC_TRY(start_chunk(member, &member->slot[s], err));
    return SC_OK;
}

static enum sc_status mpi_test(struct sc_member *member, bool *done, bool *moved,
                               struct sc_error *err)
{
    *moved = false;
    for (int s = 0; s < WINDOW; s++) {
        struct slot *slot = &member->slot[s];
        if (slot->active)
            SC_TRY(advance(member, slot, moved, err));
        if (!slot->active && member->next < member->chunks)
            SC_TRY(start_chunk(member, slot, err));
    }
    *done = member->ended == member->chunks;
    return SC_OK;
}

static struct sc_member *mpi_member(struct sc_transport *transport, size_t group, int64_t rank,
                                    struct sc_wake *wake)
{
    (void)rank;
    (void)wake;
    return &((struct mpi *)transport)->members[group];
}

/* After a failure, transfers are still under way: receives are cancelled, sends forgotten. */
static void abandon(struct slot *slot)
{
    for (int r = 0; slot->active && r < slot->requests; r++) {
        if (slot->request[r] == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&slot->request[r]);
        MPI_Request_free(&slot->request[r]);
    }
}

static void close_member(struct sc_member *member)
{
    for (int s = 0; s < WINDOW; s++) {
        abandon(&member->slot[s]);
        free(member->slot[s].request);
        free(member->slot[s].scratch);
    }
    if (member->comm != MPI_COMM_NULL)
        MPI_Comm_free(&member->comm);
}

static void mpi_close(struct sc_transport *transport)
{
    struct mpi *mpi = (struct mpi *)transport;
    for (size_t g = 0; g < mpi->groups; g++)
        close_member(&mpi->members[g]);
    free(mpi->members);
    free(mpi);
}

static const struct sc_transport_functions functions = {
    .member = mpi_member,
    .begin = mpi_begin,
    .test = mpi_test,
    .gathered = sc_member_always_gathered,
    .group = sc_member_as_group,
    .close = mpi_close,
};

/* Scratch for the contributions of all members, no more than the largest collective needs. */
static enum sc_status open_slot(struct slot *slot, size_t members, struct sc_error *err)
{
    slot->request = calloc(2 * members, sizeof(MPI_Request));
    slot->scratch = calloc(members, CHUNK_BYTES);
    if (!slot->request || !slot->scratch)
        return sc_fail_memory(err, members * CHUNK_BYTES);
    return SC_OK;
}

static enum sc_status open_member(const struct sc_transport_setup *setup, size_t group,
                                  struct sc_member *member, struct sc_error *err)
{
    int64_t rank = setup->first_rank, *ranks;
    unsigned mask = setup->axis_masks[group];
    member->members = (size_t)sc_mesh_group_size(setup->mesh, mask);
    member->index = (size_t)sc_mesh_group_index(setup->mesh, mask, rank);
    ranks = calloc(member->members, sizeof *ranks);
    if (!ranks)
        return sc_fail_memory(err, member->members * sizeof *ranks);
    sc_mesh_group_members(setup->mesh, mask, rank, ranks);
    int colour = (int)ranks[0];
    free(ranks);
    SC_MPI(MPI_Comm_split(MPI_COMM_WORLD, colour, (int)rank, &member->comm), err);
    for (int s = 0; s < WINDOW; s++)
        SC_TRY(open_slot(&member->slot[s], member->members, err));
    return SC_OK;
}

enum sc_status sc_transport_mpi(const struct sc_transport_setup *setup, struct sc_transport **out,
                                struct sc_error *err)
{
    struct mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi)
        return sc_fail_memory(err, sizeof *mpi);
    mpi->base = (struct sc_transport){&functions, "mpi", true};
    mpi->members = calloc(setup->groups + 1, sizeof *mpi->members);
    if (!mpi->members) {
        free(mpi);
        return sc_fail_memory(err, (setup->groups + 1) * sizeof *mpi->members);
    }
    enum sc_status status = SC_OK;
    for (; mpi->groups < setup->groups && status == SC_OK; mpi->groups++) {
        struct sc_member *member = &mpi->members[mpi->groups];
        member->comm = MPI_COMM_NULL;
        status = open_member(setup, mpi->groups, member, err);
    }
    if (status != SC_OK) {
        mpi_close(&mpi->base);
        return status;
    }
    *out = &mpi->base;
    return SC_OK;
}
