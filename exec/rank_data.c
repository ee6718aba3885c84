/* One rank's tables: addresses of values, ranges of the flat operations. */
#include "exec/rank_data.h"

#include <stdlib.h>
#include <string.h>

static bool is_flat(const struct sc_op *op)
{
    return op->kind == SC_ADAM || op->kind == SC_NORM_SQUARES;
}

/* Cuts [first, first + count) of the bucket to this rank's elements [shard, shard + mine). */
static bool cut_range(const struct sc_flat_range *range, int64_t shard, int64_t mine, bool decay,
                      struct sc_kernel_range *out)
{
    int64_t begin = range->first - shard, end = begin + range->count;
    begin = begin > 0 ? begin : 0;
    end = end < mine ? end : mine;
    if (end <= begin)
        return false;
    float weight = decay ? (float)range->decay : range->weight;
    *out = (struct sc_kernel_range){.first = begin, .count = end - begin, .weight = weight};
    return true;
}

/* Appends those of one operation, counted from this rank's first element. */
static void make_ranges(struct sc_rank_data *rank, size_t index)
{
    const struct sc_op *op = &rank->class->step.ops.items[index];
    const struct sc_value *gradient =
        sc_op_value(rank->class, &rank->class->step, op, SC_ROLE_GRADIENT);
    int64_t shard = sc_index_at(&op->p.flat.shard, rank->coordinates);
    rank->flat[index].first = rank->range_count;
    for (uint32_t i = 0; i < op->p.flat.ranges; i++) {
        const struct sc_flat_range *range =
            &rank->program->ranges.items[op->p.flat.first_range + i];
        if (cut_range(range, shard, gradient->rows * gradient->cols, op->kind == SC_ADAM,
                      &rank->ranges[rank->range_count]))
            rank->range_count++;
    }
    rank->flat[index].count = rank->range_count - rank->flat[index].first;
}

static enum sc_status open_ranges(struct sc_rank_data *rank, struct sc_error *err)
{
    const struct sc_list *list = &rank->class->step;
    size_t most = 1;
    for (size_t i = 0; i < list->ops.count; i++)
        most += is_flat(&list->ops.items[i]) ? list->ops.items[i].p.flat.ranges : 0;
    rank->flat = calloc(list->ops.count + 1, sizeof *rank->flat);
    rank->ranges = calloc(most, sizeof *rank->ranges);
    if (!rank->flat || !rank->ranges)
        return sc_fail_memory(err, most * sizeof *rank->ranges);
    for (size_t i = 0; i < list->ops.count; i++)
        if (is_flat(&list->ops.items[i]))
            make_ranges(rank, i);
    rank->kernel_ranges = rank->ranges;
    return SC_OK;
}

static enum sc_status open_steps(struct sc_rank_data *rank, struct sc_error *err)
{
    size_t steps = (size_t)rank->setup->steps + 1;
    rank->read_outs = calloc(steps, sizeof *rank->read_outs);
    rank->step_ends = calloc(steps, sizeof *rank->step_ends);
    if (!rank->read_outs || !rank->step_ends)
        return sc_fail_memory(err, steps * sizeof *rank->read_outs);
    return SC_OK;
}

enum sc_status sc_rank_data_open(struct sc_rank_data *rank, const struct sc_backend_setup *setup,
                                 int64_t number, struct sc_error *err)
{
    memset(rank, 0, sizeof *rank);
    rank->setup = setup;
    rank->program = setup->program;
    rank->class = &setup->program->classes.items[sc_program_class_of(setup->program, number)];
    rank->rank = number;
    sc_mesh_coordinates(&setup->program->mesh, number, rank->coordinates);
    enum sc_status status = open_ranges(rank, err);
    if (status == SC_OK)
        status = open_steps(rank, err);
    if (status != SC_OK)
        sc_rank_data_close(rank);
    return status;
}

void sc_rank_data_close(struct sc_rank_data *rank)
{
    free(rank->flat);
    free(rank->ranges);
    free(rank->read_outs);
    free(rank->step_ends);
    memset(rank, 0, sizeof *rank);
}

char *sc_rank_address(const struct sc_rank_data *rank, uint32_t value, enum sc_version version,
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
