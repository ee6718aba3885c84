/*
 * First contents: zeros, or the parameters, drawn or copied from full tensors. A drawn element
 * depends on the seed, its tensor and its place in the whole tensor alone, so every layout starts
 * from the same model.
 */
#include "exec/op_functions.h"

/* A rectangle of a tensor and where it goes: rows at a distance of `stride` elements. */
struct rectangle {
    uint32_t tensor;
    int64_t row, column, rows, columns, stride;
    float *to;
};

static enum sc_status copy_rectangle(const struct sc_call *call, const struct rectangle *r,
                                     struct sc_error *err)
{
    int64_t cols = call->rank->program->tensors.items[r->tensor].cols;
    const struct sc_row_copy copy = {
        .from = call->rank->setup->initial[r->tensor] + r->row * cols + r->column,
        .to = r->to,
        .bytes = (size_t)r->columns * sizeof(float),
        .from_pitch = (size_t)cols * sizeof(float),
        .to_pitch = (size_t)r->stride * sizeof(float),
        .rows = r->rows,
    };
    return call->machine->copy(call, &copy, err);
}

static enum sc_status draw_rectangle(const struct sc_call *call, const struct rectangle *r,
                                     struct sc_error *err)
{
    const struct sc_tensor *tensor = &call->rank->program->tensors.items[r->tensor];
    const struct sc_init_normal_args args = {
        .y = r->to,
        .columns = r->columns,
        .stride = r->stride,
        .row_base = r->row,
        .column_base = r->column,
        .total_columns = tensor->cols,
        .deviation = tensor->deviation,
        .draw = {.seed = call->op->p.initialize.seed, .site = r->tensor},
    };
    return sc_start_init_normal(call, &args, r->rows, r->columns, err);
}

/* Row by row where rows have gaps: a fill knows no rows. Only vectors start as one. */
static enum sc_status fill_rectangle(const struct sc_call *call, const struct rectangle *r,
                                     float value, struct sc_error *err)
{
    bool dense = r->stride == r->columns;
    int64_t runs = dense ? 1 : r->rows, length = dense ? r->rows * r->columns : r->columns;
    for (int64_t i = 0; i < runs; i++) {
        const struct sc_fill_args args = {.y = r->to + i * r->stride, .value = value};
        SC_TRY(sc_start_fill(call, &args, length, length, err));
    }
    return SC_OK;
}

static enum sc_status fill(const struct sc_call *call, const struct rectangle *r,
                           struct sc_error *err)
{
    enum sc_tensor_init init = call->rank->program->tensors.items[r->tensor].init;
    if (r->rows <= 0 || r->columns <= 0)
        return SC_OK;
    if (call->rank->setup->initial)
        return copy_rectangle(call, r, err);
    if (init == SC_INIT_NORMAL)
        return draw_rectangle(call, r, err);
    return fill_rectangle(call, r, init == SC_INIT_ONE ? 1.0f : 0.0f, err);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The flat elements that the value holds. */
struct held {
    int64_t first, end;
    float *data;
};

/* What the value holds of row r of the block, whose first element is the flat one `flat`. */
static enum sc_status fill_row(const struct sc_call *call, const struct held *held,
                               const struct rectangle *block, int64_t flat, int64_t r,
                               struct sc_error *err)
{
    int64_t start = flat + r * block->stride;
    int64_t begin = most(start, held->first), end = least(start + block->columns, held->end);
    struct rectangle part = *block;
    if (r < 0 || r >= block->rows || begin >= end)
        return SC_OK;
    part.row += r;
    part.column += begin - start;
    part.rows = 1;
    part.columns = part.stride = end - begin;
    part.to = held->data + (begin - held->first);
    return fill(call, &part, err);
}

/* The rows of one block that the value holds: [lo, hi) whole; of the row before and the row behind
 * perhaps a part. */
static enum sc_status fill_block(const struct sc_call *call, const struct held *held,
                                 const struct rectangle *block, int64_t flat, struct sc_error *err)
{
    int64_t stride = block->stride, room = held->end - flat - block->columns;
    int64_t lo = most(0, (held->first - flat + stride - 1) / stride);
    int64_t hi = room < 0 ? 0 : least(block->rows, room / stride + 1);
    struct rectangle whole = *block;
    whole.row += lo;
    whole.rows = hi - lo;
    whole.to = held->data + (flat + lo * stride - held->first);
    SC_TRY(fill(call, &whole, err));
    SC_TRY(fill_row(call, held, block, flat, lo - 1, err));
    return hi == lo - 1 ? SC_OK : fill_row(call, held, block, flat, hi, err);
}

static enum sc_status fill_parameter(const struct sc_call *call, const struct held *held,
                                     const struct sc_parameter *parameter, struct sc_error *err)
{
    const struct sc_program *program = call->rank->program;
    for (uint32_t b = 0; b < parameter->blocks; b++) {
        const struct sc_block *block = &program->blocks.items[parameter->first_block + b];
        int64_t row = sc_call_index(call, &block->row);
        const struct rectangle all = {
            .tensor = block->tensor,
            .row = row,
            .column = sc_call_index(call, &block->column),
            .rows = least(block->rows, program->tensors.items[block->tensor].rows - row),
            .columns = block->cols,
            .stride = parameter->cols,
        };
        SC_TRY(fill_block(call, held, &all, parameter->flat + block->local_row * parameter->cols,
                          err));
    }
    return SC_OK;
}

enum sc_status sc_op_initialize(const struct sc_call *call, struct sc_error *err)
{
    const struct sc_program *program = call->rank->program;
    struct sc_view y = sc_call_view(call, SC_ROLE_Y);
    SC_TRY(call->machine->clear(call, y.data, (size_t)sc_value_extent(y.value), err));
    if (!call->op->p.initialize.parameters)
        return SC_OK;
    int64_t first = sc_call_index(call, &call->op->p.initialize.first);
    const struct held held = {first, first + y.value->rows * y.value->cols, (float *)y.data};
    for (size_t i = 0; i < program->parameters.count; i++)
        SC_TRY(fill_parameter(call, &held, &program->parameters.items[i], err));
    return SC_OK;
}
