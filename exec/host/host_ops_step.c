/*
 * What happens once a step: the optimizer over flat buffers, the step state, copies, data.
 *
 * Learning rate (Megatron-LM's OptimizerParamScheduler; PyTorch's LambdaLR counts alike): with n
 * steps done before this one, n <= warmup: maximum * n / warmup (so the first step of a warm-up has
 * rate 0); n > decay_steps: minimum; else minimum + c (maximum - minimum) with
 * r = (n - warmup) / (decay_steps - warmup) and c = 1 - r (linear), (cos(pi r) + 1) / 2 (cosine).
 * Constant: the maximum once warm.
 *
 * Clipping (torch.nn.utils.clip_grad_norm_): factor min(1, limit / (norm + 1e-6)).
 */
#include "exec/host/host_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT_GRAIN = 64 };

static const double clip_epsilon = 1e-6;

/* ---- tables made before the first step ------------------------------------------------------- */

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

static enum sc_status make_ranges(struct sc_host_rank *rank, const struct sc_op *op,
                                  struct sc_host_ranges *out, struct sc_error *err)
{
    const struct sc_value *gradient =
        sc_op_value(rank->class, &rank->class->step, op, SC_ROLE_GRADIENT);
    int64_t shard = sc_index_at(&op->p.flat.shard, rank->coordinates);
    out->items = calloc((size_t)op->p.flat.ranges + 1, sizeof *out->items);
    if (!out->items)
        return sc_fail_memory(err, (size_t)op->p.flat.ranges * sizeof *out->items);
    for (uint32_t i = 0; i < op->p.flat.ranges; i++) {
        const struct sc_flat_range *range =
            &rank->program->ranges.items[op->p.flat.first_range + i];
        if (cut_range(range, shard, gradient->rows * gradient->cols, op->kind == SC_ADAM,
                      &out->items[out->count]))
            out->count++;
    }
    return SC_OK;
}

enum sc_status sc_host_make_ranges(struct sc_host_rank *rank, struct sc_error *err)
{
    const struct sc_list *list = &rank->class->step;
    for (size_t i = 0; i < list->ops.count; i++) {
        uint8_t kind = list->ops.items[i].kind;
        if (kind == SC_ADAM || kind == SC_NORM_SQUARES)
            SC_TRY(make_ranges(rank, &list->ops.items[i], &rank->ranges[i], err));
    }
    return SC_OK;
}

/* ---- optimizer ------------------------------------------------------------------------------- */

static int64_t squares_blocks(const struct sc_value *gradient)
{
    return (gradient->rows * gradient->cols + SC_SQUARES_BLOCK - 1) / SC_SQUARES_BLOCK;
}

size_t sc_host_norm_squares_scratch(const struct sc_value *gradient)
{
    return (size_t)squares_blocks(gradient) * sizeof(double);
}

enum sc_status sc_host_norm_squares(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view gradient = sc_host_operand(call, SC_ROLE_GRADIENT);
    struct sc_host_view norm = sc_host_operand(call, SC_ROLE_NORM);
    const struct sc_host_ranges *ranges = &call->rank->ranges[call->index];
    double *partial = (double *)call->scratch, total = 0;
    const struct sc_norm_squares_args args = {
        .x = (const float *)gradient.data,
        .ranges = ranges->items,
        .range_count = ranges->count,
        .count = gradient.value->rows * gradient.value->cols,
        .partial = partial,
    };
    int64_t blocks = squares_blocks(gradient.value);
    sc_run_norm_squares(call->team, &args, blocks, 1);
    for (int64_t b = 0; b < blocks; b++)
        total += partial[b];
    *(float *)norm.data = (float)(total + (norm.accumulate ? (double)*(float *)norm.data : 0));
    return SC_OK;
}

enum sc_status sc_host_adam(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view gradient = sc_host_operand(call, SC_ROLE_GRADIENT);
    struct sc_host_view parameter = sc_host_operand(call, SC_ROLE_PARAMETER);
    const struct sc_host_ranges *ranges = &call->rank->ranges[call->index];
    const struct sc_adamw_args args = {
        .parameter = (float *)parameter.data,
        .gradient = (const float *)gradient.data,
        .m = (float *)sc_host_operand(call, SC_ROLE_M).data,
        .v = (float *)sc_host_operand(call, SC_ROLE_V).data,
        .ranges = ranges->items,
        .range_count = ranges->count,
        .state = (const struct sc_step_state *)sc_host_operand(call, SC_ROLE_STATE).data,
        .beta1 = call->op->p.flat.beta1,
        .beta2 = call->op->p.flat.beta2,
        .epsilon = call->op->p.flat.epsilon,
        .weight_decay = call->op->p.flat.weight_decay,
    };
    sc_run_adamw(call->team, &args, gradient.value->rows * gradient.value->cols, ELEMENT_GRAIN);
    return SC_OK;
}

/* ---- the step state -------------------------------------------------------------------------- */

static double learning_rate(const union sc_parameters *p, int64_t done)
{
    double maximum = p->scalar.advance.learning_rate;
    double minimum = p->scalar.advance.minimum_learning_rate;
    int64_t warmup = p->scalar.advance.warmup_steps, decay = p->scalar.advance.decay_steps;
    if (warmup > 0 && done <= warmup)
        return maximum * (double)done / (double)warmup;
    if (p->scalar.advance.schedule == SC_SCHEDULE_CONSTANT)
        return maximum;
    if (done > decay || decay <= warmup)
        return minimum;
    double ratio = (double)(done - warmup) / (double)(decay - warmup);
    double share = p->scalar.advance.schedule == SC_SCHEDULE_LINEAR
                       ? 1 - ratio
                       : 0.5 * (cos(3.14159265358979323846 * ratio) + 1);
    return minimum + share * (maximum - minimum);
}

static float correction(double beta, int64_t step)
{
    return (float)(1 / (1 - pow(beta, (double)step)));
}

static void advance(const union sc_parameters *p, struct sc_step_state *state)
{
    double rate = learning_rate(p, state->step);
    state->step++;
    state->seed = p->scalar.advance.seed;
    state->learning_rate = (float)rate;
    state->correction1 = correction(p->scalar.advance.beta1, state->step);
    state->correction2 = correction(p->scalar.advance.beta2, state->step);
    state->clip = 1;
    state->gradient_norm = 0;
    state->skip = 0;
}

static void clip(const union sc_parameters *p, float squares, struct sc_step_state *state)
{
    double norm = sqrt((double)squares), factor = p->scalar.clip / (norm + clip_epsilon);
    state->gradient_norm = (float)norm;
    state->clip = (float)(factor < 1 ? factor : 1);
}

enum sc_status sc_host_scalar(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_step_state *state = (struct sc_step_state *)sc_host_operand(call, SC_ROLE_STATE).data;
    if (call->op->p.scalar.work == SC_SCALAR_ADVANCE)
        advance(&call->op->p, state);
    else
        clip(&call->op->p, *(const float *)sc_host_operand(call, SC_ROLE_NORM).data, state);
    return SC_OK;
}

/* ---- copies and data ------------------------------------------------------------------------- */

static void copy_rows(const struct sc_host_view *from, const struct sc_host_view *to)
{
    size_t element = sc_dtype_bytes(to->value->dtype);
    size_t row = (size_t)to->value->cols * element;
    if (from->value->row_stride == to->value->cols && to->value->row_stride == to->value->cols) {
        memcpy(to->data, from->data, row * (size_t)to->value->rows);
        return;
    }
    for (int64_t r = 0; r < to->value->rows; r++)
        memcpy(to->data + (size_t)(r * to->value->row_stride) * element,
               from->data + (size_t)(r * from->value->row_stride) * element, row);
}

enum sc_status sc_host_copy(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view x = sc_host_operand(call, SC_ROLE_X), y = sc_host_operand(call, SC_ROLE_Y);
    copy_rows(&x, &y);
    return SC_OK;
}

/* The sum of what is read out is kept for the step as well, since the value itself may be
 * overwritten before anybody looks. */
enum sc_status sc_host_read_out(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view x = sc_host_operand(call, SC_ROLE_X), y = sc_host_operand(call, SC_ROLE_Y);
    copy_rows(&x, &y);
    double sum = 0;
    for (int64_t r = 0; r < y.value->rows; r++)
        for (int64_t c = 0; c < y.value->cols; c++)
            sum += (double)((const float *)y.data)[r * y.value->row_stride + c];
    call->rank->read_outs[call->step] = sum;
    return SC_OK;
}

enum sc_status sc_host_next_batch(const struct sc_host_call *call, struct sc_error *err)
{
    const struct sc_batch_source *data = &call->rank->setup->options->data;
    const union sc_parameters *p = &call->op->p;
    return data->next(data->context, call->step, sc_host_index(call, &p->next_batch.sequence),
                      p->next_batch.batch, p->next_batch.length,
                      (int32_t *)sc_host_operand(call, SC_ROLE_INDEX).data,
                      (int32_t *)sc_host_operand(call, SC_ROLE_TARGET).data, err);
}

enum sc_status sc_host_host_wait(const struct sc_host_call *call, struct sc_error *err)
{
    (void)call;
    (void)err;
    return SC_OK;
}
