/*
 * First contents: zeros, or the parameters, drawn or copied from full tensors. A drawn element
 * depends on the seed, its tensor and its place in the whole tensor alone, so every layout starts
 * from the same model.
 */
#include <string.h>

#include "exec/host/host_ops.h"

/* A run of one row of a block: `columns` elements at `to`, element (row, column) of the tensor. */
static void fill_run(const struct sc_host_call *call, uint32_t tensor, int64_t row, int64_t column,
                     int64_t columns, float *to)
{
    const struct sc_tensor *t = &call->rank->program->tensors.items[tensor];
    const float *const *initial = call->rank->setup->initial;
    if (initial) {
        memcpy(to, initial[tensor] + row * t->cols + column, (size_t)columns * sizeof *to);
        return;
    }
    const struct sc_init_normal_args normal = {
        .y = to,
        .columns = columns,
        .stride = columns,
        .row_base = row,
        .column_base = column,
        .total_columns = t->cols,
        .deviation = t->deviation,
        .draw = {.seed = call->op->p.initialize.seed, .site = tensor},
    };
    const struct sc_fill_args fill = {.y = to, .value = t->init == SC_INIT_ONE ? 1.0f : 0.0f};
    if (t->init == SC_INIT_NORMAL)
        sc_run_init_normal(NULL, &normal, 1, 1);
    else
        sc_run_fill(NULL, &fill, columns, 64);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct fill {
    const struct sc_host_call *call;
    const struct sc_parameter *parameter;
    const struct sc_block *block;
    int64_t first, count; /* flat elements that the value holds */
    float *data;
};

/* The rows of one block that the value holds; a row at its edge may be held in part. */
static void fill_block(void *arg, int part, int parts)
{
    const struct fill *fill = arg;
    const struct sc_block *block = fill->block;
    const struct sc_tensor *tensor = &fill->call->rank->program->tensors.items[block->tensor];
    int64_t row = sc_host_index(fill->call, &block->row);
    int64_t column = sc_host_index(fill->call, &block->column);
    struct sc_part rows = sc_part_of(least(block->rows, tensor->rows - row), 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        int64_t flat = fill->parameter->flat + (block->local_row + r) * fill->parameter->cols;
        int64_t begin = most(flat, fill->first);
        int64_t end = least(flat + block->cols, fill->first + fill->count);
        if (begin < end)
            fill_run(fill->call, block->tensor, row + r, column + (begin - flat), end - begin,
                     fill->data + (begin - fill->first));
    }
}

static void fill_parameters(const struct sc_host_call *call, const struct sc_host_view *y)
{
    const struct sc_program *program = call->rank->program;
    struct fill fill = {
        .call = call,
        .first = sc_host_index(call, &call->op->p.initialize.first),
        .count = y->value->rows * y->value->cols,
        .data = (float *)y->data,
    };
    for (size_t i = 0; i < program->parameters.count; i++) {
        fill.parameter = &program->parameters.items[i];
        for (uint32_t b = 0; b < fill.parameter->blocks; b++) {
            fill.block = &program->blocks.items[fill.parameter->first_block + b];
            sc_team_run(call->team, fill_block, &fill);
        }
    }
}

enum sc_status sc_host_initialize(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view y = sc_host_operand(call, SC_ROLE_Y);
    memset(y.data, 0, (size_t)sc_value_extent(y.value));
    if (call->op->p.initialize.parameters)
        fill_parameters(call, &y);
    return SC_OK;
}
