/*
 * Collectives by NCCL: one communicator a group of the program and a rank, made before the devices.
 *
 * All communicators of one group of the program are made in one NCCL group call, so that one thread
 * can make those of several ranks. A collective and the abort of its communicator exclude each
 * other; NCCL lets a communicator connect in its first collective, so an abort may wait for a rank
 * that waits in there for one that has failed.
 */
#include <stdlib.h>

#include "exec/cuda/cuda_device.h"
#include "exec/process.h"

/* The first rank of the group that a rank belongs to: where the group's identity is kept. */
static int64_t leader(const struct sc_mesh *mesh, unsigned axis_mask, int64_t rank)
{
    int64_t coordinates[SC_AXIS_COUNT];
    sc_mesh_coordinates(mesh, rank, coordinates);
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++)
        if (axis_mask & SC_AXIS_MASK(axis))
            coordinates[axis] = 0;
    return sc_mesh_rank(mesh, coordinates);
}

/* ids[group * ranks + leader]: made by process 0, told to the others. */
static enum sc_status make_ids(const struct sc_program *program, ncclUniqueId *ids,
                               struct sc_error *err)
{
    const struct sc_mesh *mesh = &program->mesh;
    for (size_t g = 0; g < program->groups.count; g++)
        for (int64_t r = 0; r < mesh->ranks; r++)
            if (leader(mesh, program->groups.items[g].axis_mask, r) == r)
                SC_TRY(sc_nccl_ok(ncclGetUniqueId(&ids[g * (size_t)mesh->ranks + (size_t)r]), err,
                                  "ncclGetUniqueId"));
    return SC_OK;
}

static enum sc_status share_ids(struct sc_world *world, ncclUniqueId *ids, size_t count,
                                struct sc_error *err)
{
    struct sc_process *process = world->setup.process;
    enum sc_status status = SC_OK;
    if (!process || process->index == 0)
        status = make_ids(world->setup.program, ids, err);
    if (!process || !process->functions)
        return status;
    SC_TRY(sc_process_agree(process, status, err));
    return process->functions->broadcast(process, ids, count * sizeof *ids, err);
}

static enum sc_status init_rank(struct sc_world *world, size_t group, int64_t local,
                                const ncclUniqueId *ids, struct sc_error *err)
{
    const struct sc_program *program = world->setup.program;
    const struct sc_group *g = &program->groups.items[group];
    int64_t rank = world->setup.first_rank + local;
    const ncclUniqueId *id = &ids[group * (size_t)program->mesh.ranks +
                                  (size_t)leader(&program->mesh, g->axis_mask, rank)];
    int index = (int)sc_mesh_group_index(&program->mesh, g->axis_mask, rank);
    int device = world->first_device + (int)local, size = (int)g->size;
    cudaError_t selected = cudaSetDevice(device);
    if (selected != cudaSuccess)
        size = 0; /* which NCCL refuses */
    ncclResult_t begun =
        ncclCommInitRank(&world->communicators[local].items[group], size, *id, index);
    SC_TRY(sc_cuda_ok(selected, err, "cudaSetDevice %d", device));
    return sc_nccl_ok(begun, err, "ncclCommInitRank of rank %lld in group %s", (long long)rank,
                      g->name);
}

/* A call that NCCL refuses makes the end of its group fail, without waiting for members that are
 * not there, and leave no communicator; so every member is asked for, whatever happens to one. */
static enum sc_status init_group(struct sc_world *world, size_t group, const ncclUniqueId *ids,
                                 struct sc_error *err)
{
    struct sc_error later = SC_ERROR_INIT;
    enum sc_status status = SC_OK;
    SC_TRY(sc_nccl_ok(ncclGroupStart(), err, "ncclGroupStart"));
    for (int64_t local = 0; local < world->setup.local_ranks; local++) {
        enum sc_status one = init_rank(world, group, local, ids, status == SC_OK ? err : &later);
        status = status == SC_OK ? one : status;
    }
    ncclResult_t ended = ncclGroupEnd();
    for (int64_t local = 0; ended != ncclSuccess && local < world->setup.local_ranks; local++)
        world->communicators[local].items[group] = NULL;
    if (status != SC_OK)
        return status;
    return sc_nccl_ok(ended, err, "ncclGroupEnd of the communicators of group %s",
                      world->setup.program->groups.items[group].name);
}

static enum sc_status open_tables(struct sc_world *world, struct sc_error *err)
{
    size_t groups = world->setup.program->groups.count, ranks = (size_t)world->setup.local_ranks;
    world->communicators = calloc(ranks, sizeof *world->communicators);
    if (!world->communicators)
        return sc_fail_memory(err, ranks * sizeof *world->communicators);
    for (size_t r = 0; r < ranks; r++)
        pthread_mutex_init(&world->communicators[r].mutex, NULL);
    for (size_t r = 0; r < ranks; r++) {
        world->communicators[r].items = calloc(groups + 1, sizeof(ncclComm_t));
        if (!world->communicators[r].items)
            return sc_fail_memory(err, groups * sizeof(ncclComm_t));
    }
    return SC_OK;
}

enum sc_status sc_cuda_open_communicators(struct sc_world *world, struct sc_error *err)
{
    const struct sc_program *program = world->setup.program;
    size_t count = program->groups.count * (size_t)program->mesh.ranks;
    ncclUniqueId *ids = calloc(count + 1, sizeof *ids);
    enum sc_status status =
        ids ? open_tables(world, err) : sc_fail_memory(err, count * sizeof *ids);
    if (status == SC_OK)
        status = share_ids(world, ids, count, err);
    for (size_t g = 0; status == SC_OK && g < program->groups.count; g++)
        status = init_group(world, g, ids, err);
    free(ids);
    return status;
}

/* Ends those of one rank with NCCL's function. */
static void end_rank(struct sc_world *world, int64_t local, ncclResult_t (*end)(ncclComm_t))
{
    struct sc_cuda_communicators *mine = &world->communicators[local];
    pthread_mutex_lock(&mine->mutex);
    for (size_t g = 0; mine->items && g < world->setup.program->groups.count; g++) {
        if (mine->items[g])
            end(mine->items[g]);
        mine->items[g] = NULL;
    }
    pthread_mutex_unlock(&mine->mutex);
}

void sc_cuda_abort_communicators(struct sc_world *world)
{
    for (int64_t r = 0; world->communicators && r < world->setup.local_ranks; r++)
        end_rank(world, r, ncclCommAbort);
}

/* One thread destroys those of several ranks: NCCL wants that as a group. */
void sc_cuda_close_communicators(struct sc_world *world)
{
    if (!world->communicators)
        return;
    bool group = ncclGroupStart() == ncclSuccess;
    for (int64_t r = 0; r < world->setup.local_ranks; r++)
        end_rank(world, r, group ? ncclCommDestroy : ncclCommAbort);
    if (group)
        ncclGroupEnd();
    for (int64_t r = 0; r < world->setup.local_ranks; r++) {
        free(world->communicators[r].items);
        pthread_mutex_destroy(&world->communicators[r].mutex);
    }
    free(world->communicators);
    world->communicators = NULL;
}

/* ---- the operations -------------------------------------------------------------------------- */

static const char *const names[SC_OP_KIND_COUNT] = {
    [SC_ALL_REDUCE] = "ncclAllReduce",
    [SC_REDUCE_SCATTER] = "ncclReduceScatter",
    [SC_ALL_GATHER] = "ncclAllGather",
    [SC_BROADCAST] = "ncclBroadcast",
};

static ncclResult_t start(const struct sc_op_collective *what, ncclComm_t communicator,
                          cudaStream_t stream)
{
    ncclRedOp_t reduction = what->reduction == SC_MAX ? ncclMax : ncclSum;
    size_t whole = what->bytes / sizeof(float), shard = what->shard / sizeof(float);
    switch (what->kind) {
    case SC_ALL_REDUCE:
        return ncclAllReduce(what->y, what->y, whole, ncclFloat, reduction, communicator, stream);
    case SC_REDUCE_SCATTER:
        return ncclReduceScatter(what->x, what->y, shard, ncclFloat, reduction, communicator,
                                 stream);
    case SC_ALL_GATHER:
        return ncclAllGather(what->x, what->y, what->shard, ncclUint8, communicator, stream);
    default:
        return ncclBroadcast(what->y, what->y, what->bytes, ncclUint8, 0, communicator, stream);
    }
}

enum sc_status sc_cuda_collective(const struct sc_call *call, struct sc_error *err)
{
    const struct sc_cuda_stream *at = call->where;
    struct sc_world *world = at->device->world;
    const struct sc_op_collective what = sc_op_collective(call);
    struct sc_cuda_communicators *mine =
        &world->communicators[call->rank->rank - world->setup.first_rank];
    pthread_mutex_lock(&mine->mutex);
    ncclComm_t communicator = mine->items[call->op->group];
    ncclResult_t code = communicator ? start(&what, communicator, at->stream) : ncclSuccess;
    pthread_mutex_unlock(&mine->mutex);
    if (!communicator) /* aborted */
        return sc_failure_is_set(world->setup.failure)
                   ? sc_failure_get(world->setup.failure, err)
                   : sc_fail(err, SC_MACHINE, "cuda: the communicator is gone");
    return sc_nccl_ok(code, err, "%s of %zu bytes", names[what.kind], what.bytes);
}
