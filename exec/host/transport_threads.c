/*
 * Collectives among threads of one process. Every member publishes its buffers and arrives at a
 * barrier; then each works straight on the others' buffers, phase by phase, with a barrier behind
 * every phase. A barrier is a count that only grows; who completes it wakes the others.
 */
#include "exec/host/transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { MEMBERS_AT_ONCE = 64 };

struct group;

struct sc_member {
    struct group *group;
    size_t index;
    struct sc_wake *wake;
    size_t target; /* arrivals that the barrier ahead needs */
    int phase;     /* next one to do */
    struct sc_collective call;
};

struct group {
    size_t members;
    atomic_size_t arrivals;
    struct sc_member *member; /* [members] */
};

struct threads {
    struct sc_transport base;
    const struct sc_transport_setup *setup;
    int64_t ranks;
    struct sc_member **ends; /* [groups * ranks] */
    struct sc_arena arena;
};

typedef void phase_fn(struct sc_member *member);

static void reduce_slice(struct sc_member *member)
{
    const struct group *group = member->group;
    const float *x[MEMBERS_AT_ONCE];
    size_t begin, end;
    sc_collective_slice(member->call.bytes / sizeof(float), member->index, group->members, &begin,
                        &end);
    for (size_t m = 0; m < group->members; m++)
        x[m] = (const float *)group->member[m].call.y + begin;
    sc_collective_reduce(member->call.reduction, x, group->members, (float *)member->call.y + begin,
                         end - begin);
}

static void gather_slices(struct sc_member *member)
{
    const struct group *group = member->group;
    for (size_t m = 0; m < group->members; m++) {
        size_t begin, end;
        sc_collective_slice(member->call.bytes / sizeof(float), m, group->members, &begin, &end);
        if (m != member->index && end > begin)
            memcpy((float *)member->call.y + begin, (const float *)group->member[m].call.y + begin,
                   (end - begin) * sizeof(float));
    }
}

static void reduce_shard(struct sc_member *member)
{
    const struct group *group = member->group;
    const float *x[MEMBERS_AT_ONCE];
    size_t shard = member->call.bytes / sizeof(float) / group->members;
    for (size_t m = 0; m < group->members; m++)
        x[m] = (const float *)group->member[m].call.x + member->index * shard;
    sc_collective_reduce(member->call.reduction, x, group->members, member->call.y, shard);
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

static void gather_shards(struct sc_member *member)
{
    const struct group *group = member->group;
    size_t shard = member->call.bytes / group->members;
    for (size_t m = 0; m < group->members; m++)
        copy((char *)member->call.y + m * shard, group->member[m].call.x, shard);
}

static void copy_root(struct sc_member *member)
{
    copy(member->call.y, member->group->member[0].call.y, member->call.bytes);
}

static void take_pieces(struct sc_member *member)
{
    const struct group *group = member->group;
    size_t piece = member->call.bytes / group->members;
    for (size_t m = 0; m < group->members; m++)
        copy((char *)member->call.y + m * piece,
             (const char *)group->member[m].call.x + member->index * piece, piece);
}

static phase_fn *const phases[SC_COLLECTIVE_COUNT][2] = {
    [SC_COLLECTIVE_ALL_REDUCE] = {reduce_slice, gather_slices},
    [SC_COLLECTIVE_REDUCE_SCATTER] = {reduce_shard, NULL},
    [SC_COLLECTIVE_ALL_GATHER] = {gather_shards, NULL},
    [SC_COLLECTIVE_BROADCAST] = {copy_root, NULL},
    [SC_COLLECTIVE_ALL_TO_ALL] = {take_pieces, NULL},
};

static void arrive(struct sc_member *member)
{
    struct group *group = member->group;
    member->target += group->members;
    if (atomic_fetch_add(&group->arrivals, 1) + 1 < member->target)
        return;
    for (size_t m = 0; m < group->members; m++)
        if (m != member->index && group->member[m].wake)
            sc_wake_up(group->member[m].wake);
}

static bool passed(const struct sc_member *member)
{
    return atomic_load(&member->group->arrivals) >= member->target;
}

static enum sc_status threads_begin(struct sc_member *member,
                                    const struct sc_collective *collective, struct sc_error *err)
{
    (void)err;
    member->call = *collective;
    member->phase = 0;
    arrive(member);
    return SC_OK;
}

static enum sc_status check_equal(const struct sc_member *member, struct sc_error *err)
{
    const struct group *group = member->group;
    for (size_t m = 0; m < group->members; m++) {
        const struct sc_collective *other = &group->member[m].call;
        if (other->kind != member->call.kind || other->bytes != member->call.bytes)
            return sc_fail(err, SC_BUG,
                           "collective: members %zu and %zu of a group do different ones (%zu and "
                           "%zu bytes)",
                           member->index, m, member->call.bytes, other->bytes);
    }
    return SC_OK;
}

static bool ended(const struct sc_member *member)
{
    return member->phase == 2 || !phases[member->call.kind][member->phase];
}

static enum sc_status threads_test(struct sc_member *member, bool *done, bool *moved,
                                   struct sc_error *err)
{
    *done = *moved = false;
    while (passed(member)) {
        *moved = true;
        if (ended(member)) {
            *done = true;
            return SC_OK;
        }
        if (member->phase == 0)
            SC_TRY(check_equal(member, err));
        phases[member->call.kind][member->phase](member);
        member->phase++;
        arrive(member);
    }
    return SC_OK;
}

static bool threads_gathered(const struct sc_member *member)
{
    return passed(member);
}

static const void *threads_group(const struct sc_member *member)
{
    return member->group;
}

static void threads_close(struct sc_transport *transport)
{
    struct threads *threads = (struct threads *)transport;
    sc_arena_free(&threads->arena);
    free(threads);
}

static struct sc_member *threads_member(struct sc_transport *transport, size_t group, int64_t rank,
                                        struct sc_wake *wake)
{
    struct threads *threads = (struct threads *)transport;
    struct sc_member *member = threads->ends[group * (size_t)threads->ranks + (size_t)rank];
    member->wake = wake;
    return member;
}

static const struct sc_transport_functions functions = {
    .member = threads_member,
    .begin = threads_begin,
    .test = threads_test,
    .gathered = threads_gathered,
    .group = threads_group,
    .close = threads_close,
};

/* Makes the group that starts at `rank` (its first member) and the ends of all its members. */
static enum sc_status add_group(struct threads *threads, size_t index, int64_t rank,
                                struct sc_error *err)
{
    const struct sc_mesh *mesh = threads->setup->mesh;
    unsigned mask = threads->setup->axis_masks[index];
    size_t members = (size_t)sc_mesh_group_size(mesh, mask);
    struct group *group = sc_arena_alloc(&threads->arena, 1, sizeof *group);
    int64_t *ranks = sc_arena_alloc(&threads->arena, members, sizeof *ranks);
    if (group)
        group->member = sc_arena_alloc(&threads->arena, members, sizeof *group->member);
    if (!group || !ranks || !group->member)
        return sc_fail_memory(err, members * sizeof *group->member);
    group->members = members;
    atomic_init(&group->arrivals, 0);
    sc_mesh_group_members(mesh, mask, rank, ranks);
    for (size_t m = 0; m < members; m++) {
        group->member[m] = (struct sc_member){.group = group, .index = m};
        threads->ends[index * (size_t)threads->ranks + (size_t)ranks[m]] = &group->member[m];
    }
    return SC_OK;
}

static enum sc_status add_groups(struct threads *threads, struct sc_error *err)
{
    const struct sc_transport_setup *setup = threads->setup;
    for (size_t g = 0; g < setup->groups; g++) {
        if (sc_mesh_group_size(setup->mesh, setup->axis_masks[g]) > MEMBERS_AT_ONCE)
            return sc_fail(err, SC_NO, "transport threads: a group of %lld ranks, at most %d",
                           (long long)sc_mesh_group_size(setup->mesh, setup->axis_masks[g]),
                           MEMBERS_AT_ONCE);
        for (int64_t rank = 0; rank < threads->ranks; rank++)
            if (sc_mesh_group_index(setup->mesh, setup->axis_masks[g], rank) == 0)
                SC_TRY(add_group(threads, g, rank, err));
    }
    return SC_OK;
}

enum sc_status sc_transport_threads(const struct sc_transport_setup *setup,
                                    struct sc_transport **out, struct sc_error *err)
{
    struct threads *threads = calloc(1, sizeof *threads);
    if (!threads)
        return sc_fail_memory(err, sizeof *threads);
    threads->base = (struct sc_transport){&functions, "threads", false};
    threads->setup = setup;
    threads->ranks = setup->mesh->ranks;
    size_t ends = setup->groups * (size_t)threads->ranks;
    threads->ends = sc_arena_alloc(&threads->arena, ends + 1, sizeof(struct sc_member *));
    enum sc_status status =
        threads->ends ? add_groups(threads, err) : sc_fail_memory(err, ends * sizeof(void *));
    if (status != SC_OK) {
        threads_close(&threads->base);
        return status;
    }
    threads->setup = NULL; /* borrowed while opening only */
    *out = &threads->base;
    return SC_OK;
}
