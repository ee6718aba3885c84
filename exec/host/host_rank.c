/* One rank's data: arenas, addresses of values, tables of the flat operations. */
#include "exec/host/host_rank.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 * 1024 * 1024 };

/* Zeroed, and in large pages where the kernel has them: a GEMM touches much memory. */
static enum sc_status open_arena(struct sc_host_arena *arena, uint64_t bytes, const char *place,
                                 struct sc_error *err)
{
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    size_t size = (size_t)sc_round_up(bytes > 0 ? bytes : 1, alignment);
    void *base = NULL;
    if (posix_memalign(&base, alignment, size) != 0)
        return sc_fail(err, SC_NO_MEMORY, "out of memory: the %s arena needs %llu bytes", place,
                       (unsigned long long)bytes);
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE)
        madvise(base, size, MADV_HUGEPAGE);
#endif
    memset(base, 0, size);
    arena->base = base;
    arena->bytes = (size_t)bytes;
    return SC_OK;
}

static enum sc_status open_arenas(struct sc_host_rank *rank, struct sc_error *err)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        uint64_t bytes = rank->class->memory[place].arena_bytes;
        if (bytes > 0)
            SC_TRY(open_arena(&rank->arenas[place], bytes, sc_place_names[place], err));
    }
    return SC_OK;
}

static enum sc_status open_tables(struct sc_host_rank *rank, struct sc_error *err)
{
    size_t ops = rank->class->step.ops.count, steps = (size_t)rank->setup->steps;
    rank->ranges = calloc(ops + 1, sizeof *rank->ranges);
    rank->read_outs = calloc(steps + 1, sizeof *rank->read_outs);
    rank->step_ends = calloc(steps + 1, sizeof *rank->step_ends);
    if (!rank->ranges || !rank->read_outs || !rank->step_ends)
        return sc_fail_memory(err, (ops + 1) * sizeof *rank->ranges);
    return sc_host_make_ranges(rank, err);
}

enum sc_status sc_host_rank_open(struct sc_host_rank *rank, const struct sc_backend_setup *setup,
                                 int64_t number, struct sc_error *err)
{
    memset(rank, 0, sizeof *rank);
    rank->setup = setup;
    rank->program = setup->program;
    rank->class = &setup->program->classes.items[sc_program_class_of(setup->program, number)];
    rank->rank = number;
    sc_mesh_coordinates(&setup->program->mesh, number, rank->coordinates);
    enum sc_status status = open_arenas(rank, err);
    if (status == SC_OK)
        status = open_tables(rank, err);
    if (status != SC_OK)
        sc_host_rank_close(rank);
    return status;
}

void sc_host_rank_close(struct sc_host_rank *rank)
{
    for (size_t i = 0; rank->ranges && i < rank->class->step.ops.count; i++)
        free(rank->ranges[i].items);
    free(rank->ranges);
    free(rank->read_outs);
    free(rank->step_ends);
    for (int place = 0; place < SC_PLACE_COUNT; place++)
        free(rank->arenas[place].base);
    memset(rank, 0, sizeof *rank);
}

char *sc_host_address(const struct sc_host_rank *rank, uint32_t value, enum sc_version version,
                      int64_t step)
{
    const struct sc_value *v = &rank->class->values.items[value];
    const struct sc_buffer *buffer = &rank->class->buffers.items[v->buffer];
    if (buffer->token)
        return NULL;
    uint64_t at = buffer->offset + v->offset;
    if (v->shard_axis >= 0)
        at += v->shard_stride * (uint64_t)rank->coordinates[v->shard_axis];
    if (buffer->versions > 1 && (step & 1) == (version == SC_NOW))
        at += sc_round_up(buffer->bytes, SC_ALIGN);
    return rank->arenas[buffer->place].base + at;
}

struct sc_host_view sc_host_operand(const struct sc_host_call *call, enum sc_role role)
{
    const struct sc_operand *operand = sc_op_operand(call->list, call->op, role);
    struct sc_host_view view = {0};
    if (!operand)
        return view;
    view.value = &call->rank->class->values.items[operand->value];
    view.data =
        sc_host_address(call->rank, operand->value, (enum sc_version)operand->version, call->step);
    view.accumulate = operand->access == SC_INOUT;
    return view;
}
