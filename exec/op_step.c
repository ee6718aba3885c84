/* What happens once a step: the optimizer over flat buffers, the step state; copies. */
#include "exec/op_functions.h"
#include "plans/plan.h"

static int64_t squares_blocks(const struct sc_value *gradient)
{
    return (gradient->rows * gradient->cols + SC_SQUARES_BLOCK - 1) / SC_SQUARES_BLOCK;
}

size_t sc_op_norm_squares_scratch(const struct sc_value *gradient)
{
    return (size_t)squares_blocks(gradient) * sizeof(double);
}

enum sc_status sc_op_norm_squares(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view gradient = sc_call_view(call, SC_ROLE_GRADIENT);
    struct sc_view norm = sc_call_view(call, SC_ROLE_NORM);
    const struct sc_rank_ranges *ranges = &call->rank->flat[call->index];
    const struct sc_norm_squares_args args = {
        .x = (const float *)gradient.data,
        .ranges = call->rank->kernel_ranges + ranges->first,
        .range_count = ranges->count,
        .count = gradient.value->rows * gradient.value->cols,
        .partial = (double *)call->scratch,
    };
    const struct sc_squares_sum_args sum = {
        .partial = args.partial,
        .norm = (float *)norm.data,
        .blocks = squares_blocks(gradient.value),
        .accumulate = norm.accumulate,
    };
    SC_TRY(sc_start_norm_squares(call, &args, sum.blocks, SC_SQUARES_BLOCK, err));
    return sc_start_squares_sum(call, &sum, 1, sum.blocks, err);
}

enum sc_status sc_op_adam(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view gradient = sc_call_view(call, SC_ROLE_GRADIENT);
    struct sc_view parameter = sc_call_view(call, SC_ROLE_PARAMETER);
    const struct sc_rank_ranges *ranges = &call->rank->flat[call->index];
    int64_t elements = gradient.value->rows * gradient.value->cols;
    const struct sc_adamw_args args = {
        .parameter = (float *)parameter.data,
        .gradient = (const float *)gradient.data,
        .m = (float *)sc_call_view(call, SC_ROLE_M).data,
        .v = (float *)sc_call_view(call, SC_ROLE_V).data,
        .ranges = call->rank->kernel_ranges + ranges->first,
        .range_count = ranges->count,
        .state = (const struct sc_step_state *)sc_call_view(call, SC_ROLE_STATE).data,
        .beta1 = call->op->p.flat.beta1,
        .beta2 = call->op->p.flat.beta2,
        .epsilon = call->op->p.flat.epsilon,
        .weight_decay = call->op->p.flat.weight_decay,
    };
    return sc_start_adamw(call, &args, elements, elements, err);
}

static int32_t rate_kind(uint8_t schedule)
{
    static const int32_t kinds[] = {
        [SC_SCHEDULE_CONSTANT] = SC_KERNEL_RATE_CONSTANT,
        [SC_SCHEDULE_LINEAR] = SC_KERNEL_RATE_LINEAR,
        [SC_SCHEDULE_COSINE] = SC_KERNEL_RATE_COSINE,
    };
    return kinds[schedule];
}

static enum sc_status advance(const struct sc_call *call, struct sc_step_state *state,
                              struct sc_error *err)
{
    const union sc_parameters *p = &call->op->p;
    const struct sc_state_advance_args args = {
        .state = state,
        .learning_rate = p->scalar.advance.learning_rate,
        .minimum_learning_rate = p->scalar.advance.minimum_learning_rate,
        .beta1 = p->scalar.advance.beta1,
        .beta2 = p->scalar.advance.beta2,
        .warmup_steps = p->scalar.advance.warmup_steps,
        .decay_steps = p->scalar.advance.decay_steps,
        .seed = p->scalar.advance.seed,
        .schedule = rate_kind(p->scalar.advance.schedule),
    };
    return sc_start_state_advance(call, &args, 1, 1, err);
}

enum sc_status sc_op_scalar(const struct sc_call *call, struct sc_error *err)
{
    struct sc_step_state *state = (struct sc_step_state *)sc_call_view(call, SC_ROLE_STATE).data;
    if (call->op->p.scalar.work == SC_SCALAR_ADVANCE)
        return advance(call, state, err);
    const struct sc_state_clip_args args = {
        .state = state,
        .squares = (const float *)sc_call_view(call, SC_ROLE_NORM).data,
        .limit = call->op->p.scalar.clip,
    };
    return sc_start_state_clip(call, &args, 1, 1, err);
}

enum sc_status sc_op_copy(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    return sc_call_copy(call, &x, &y, err);
}
