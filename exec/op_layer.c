/* Norms, activations, softmax, dropout and the element-wise rest: operands to kernel arguments. */
#include "exec/op_functions.h"

static int32_t norm_kind(uint8_t kind)
{
    return kind == SC_LAYER_NORM ? SC_KERNEL_LAYER_NORM : SC_KERNEL_RMS_NORM;
}

static int32_t activation_kind(uint8_t kind)
{
    static const int32_t kinds[SC_ACTIVATION_COUNT] = {
        [SC_GELU_TANH] = SC_KERNEL_GELU_TANH,
        [SC_GELU_ERF] = SC_KERNEL_GELU_ERF,
        [SC_RELU] = SC_KERNEL_RELU,
        [SC_SWIGLU] = SC_KERNEL_SWIGLU,
    };
    return kinds[kind];
}

static int64_t stride(const struct sc_view *view)
{
    return view->value ? view->value->row_stride : 0;
}

enum sc_status sc_op_norm(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    const struct sc_norm_args args = {
        .x = x.data,
        .y = y.data,
        .gamma = sc_call_view(call, SC_ROLE_GAMMA).data,
        .beta = sc_call_view(call, SC_ROLE_BETA).data,
        .stat = (float *)sc_call_view(call, SC_ROLE_STAT).data,
        .columns = x.value->cols,
        .x_stride = stride(&x),
        .y_stride = stride(&y),
        .epsilon = call->op->p.norm.epsilon,
        .kind = norm_kind(call->op->p.norm.kind),
    };
    return sc_start_norm_forward(call, &args, x.value->rows, args.columns, err);
}

size_t sc_op_norm_backward_scratch(const struct sc_value *x)
{
    return (size_t)sc_norm_blocks(x->rows) * 2 * (size_t)x->cols * sizeof(float);
}

/* A parameter's gradient: the blocks' partial sums, in order. */
static enum sc_status sum_partials(const struct sc_call *call, const float *partial, int64_t blocks,
                                   int64_t columns, enum sc_role role, struct sc_error *err)
{
    struct sc_view out = sc_call_view(call, role);
    if (!out.data)
        return SC_OK;
    const struct sc_reduce_rows_args args = {
        .in = partial,
        .out = out.data,
        .count = blocks,
        .out_rows = 1,
        .columns = columns,
        .in_stride = 2 * columns,
        .out_stride = columns,
        .accumulate = out.accumulate,
    };
    return sc_start_reduce_rows(call, &args, columns, columns, err);
}

enum sc_status sc_op_norm_backward(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X);
    struct sc_view dy = sc_call_view(call, SC_ROLE_DY);
    struct sc_view dx = sc_call_view(call, SC_ROLE_DX);
    float *partial = (float *)call->scratch;
    const struct sc_norm_backward_args args = {
        .dy = dy.data,
        .x = x.data,
        .gamma = sc_call_view(call, SC_ROLE_GAMMA).data,
        .stat = (const float *)sc_call_view(call, SC_ROLE_STAT).data,
        .dx = dx.data,
        .partial = partial,
        .rows = x.value->rows,
        .columns = x.value->cols,
        .dy_stride = stride(&dy),
        .x_stride = stride(&x),
        .dx_stride = stride(&dx),
        .add = dx.accumulate,
        .kind = norm_kind(call->op->p.norm.kind),
    };
    int64_t blocks = sc_norm_blocks(args.rows);
    SC_TRY(sc_start_norm_backward(call, &args, blocks, args.columns, err));
    SC_TRY(sum_partials(call, partial, blocks, args.columns, SC_ROLE_DGAMMA, err));
    return sum_partials(call, partial + args.columns, blocks, args.columns, SC_ROLE_DBETA, err);
}

enum sc_status sc_op_activation(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    const struct sc_activation_args args = {
        .x = x.data,
        .y = y.data,
        .columns = y.value->cols,
        .x_stride = stride(&x),
        .y_stride = stride(&y),
        .kind = activation_kind(call->op->p.activation.kind),
    };
    return sc_start_activation_forward(call, &args, y.value->rows, args.columns, err);
}

enum sc_status sc_op_activation_backward(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X);
    struct sc_view dx = sc_call_view(call, SC_ROLE_DX);
    struct sc_view dy = sc_call_view(call, SC_ROLE_DY);
    if (!dy.data)
        dy = dx;
    const struct sc_activation_args args = {
        .x = x.data,
        .dy = dy.data,
        .dx = dx.data,
        .columns = dy.value->cols,
        .x_stride = stride(&x),
        .dy_stride = stride(&dy),
        .dx_stride = stride(&dx),
        .kind = activation_kind(call->op->p.activation.kind),
    };
    return sc_start_activation_backward(call, &args, dy.value->rows, args.columns, err);
}

enum sc_status sc_op_softmax(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    const struct sc_softmax_args args = {
        .x = x.data ? x.data : y.data,
        .y = y.data,
        .columns = y.value->cols,
        .queries = call->op->p.attention.sequence,
        .stride = stride(&y),
        .scale = call->op->p.attention.scale,
        .causal = 1,
    };
    return sc_start_softmax_forward(call, &args, y.value->rows, args.columns, err);
}

enum sc_status sc_op_softmax_backward(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view y = sc_call_view(call, SC_ROLE_Y);
    struct sc_view dx = sc_call_view(call, SC_ROLE_DX);
    const struct sc_softmax_args args = {
        .dy = dx.data,
        .y = y.data,
        .dx = dx.data,
        .columns = y.value->cols,
        .queries = call->op->p.attention.sequence,
        .stride = stride(&y),
        .scale = call->op->p.attention.scale,
        .causal = 1,
    };
    return sc_start_softmax_backward(call, &args, y.value->rows, args.columns, err);
}

enum sc_status sc_op_add(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view a = sc_call_view(call, SC_ROLE_A), b = sc_call_view(call, SC_ROLE_B);
    struct sc_view c = sc_call_view(call, SC_ROLE_C);
    if (!a.data) /* in place */
        a = c;
    const struct sc_add_args args = {
        .a = a.data,
        .b = b.data,
        .y = c.data,
        .columns = c.value->cols,
        .a_stride = stride(&a),
        .b_stride = stride(&b),
        .y_stride = stride(&c),
        .b_rows = b.value->rows,
    };
    return sc_start_add(call, &args, c.value->rows, args.columns, err);
}

static enum sc_status scale(const struct sc_call *call, const struct sc_view *x,
                            const struct sc_view *y, float factor, struct sc_error *err)
{
    const struct sc_scale_args args = {
        .x = x->data,
        .y = y->data,
        .columns = y->value->cols,
        .x_stride = stride(x),
        .y_stride = stride(y),
        .factor = factor,
    };
    return sc_start_scale(call, &args, y->value->rows, args.columns, err);
}

enum sc_status sc_op_scale(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    return scale(call, x.data ? &x : &y, &y, call->op->p.scale.factor, err);
}

/* fp32 to fp32, the only storage so far, is a copy. */
enum sc_status sc_op_cast(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    return scale(call, &x, &y, 1, err);
}

enum sc_status sc_op_reduce_rows(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    float factor = call->op->p.scale.factor;
    if (factor != 1 && y.accumulate)
        return sc_fail(err, SC_BUG, "reduce_rows with a factor cannot accumulate");
    const struct sc_reduce_rows_args args = {
        .in = x.data,
        .out = y.data,
        .count = x.value->rows / y.value->rows,
        .out_rows = y.value->rows,
        .columns = y.value->cols,
        .in_stride = stride(&x),
        .out_stride = stride(&y),
        .accumulate = y.accumulate,
    };
    SC_TRY(sc_start_reduce_rows(call, &args, args.out_rows * args.columns, args.columns, err));
    return factor == 1 ? SC_OK : scale(call, &y, &y, factor, err);
}

enum sc_status sc_op_rope(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view y = sc_call_view(call, SC_ROLE_Y);
    const struct sc_rope_args args = {
        .x = y.data,
        .stride = stride(&y),
        .heads = call->op->p.rope.heads + call->op->p.rope.kv_heads,
        .head_size = call->op->p.rope.head_size,
        .rotary = call->op->p.rope.head_size,
        .sequence = call->op->p.rope.sequence,
        .theta = call->op->p.rope.theta,
        .inverse = call->op->p.rope.inverse,
    };
    return sc_start_rope(call, &args, y.value->rows, args.rotary / 2, err);
}

static enum sc_status drop_scores(const struct sc_call *call, const struct sc_view *x,
                                  const struct sc_view *y, char *mask, struct sc_error *err)
{
    const union sc_parameters *p = &call->op->p;
    const struct sc_attention_dropout_args args = {
        .x = x->data,
        .y = y->data,
        .mask = (uint8_t *)mask,
        .heads = p->dropout.heads,
        .queries = p->dropout.sequence,
        .columns = y->value->cols,
        .stride = stride(y),
        .batch_base = sc_call_index(call, &p->dropout.row),
        .head_base = sc_call_index(call, &p->dropout.head_index),
        .total_heads = p->dropout.total_heads,
        .draw = sc_call_draw(call, p->dropout.site, p->dropout.probability),
    };
    return sc_start_attention_dropout(call, &args, y->value->rows, args.columns, err);
}

enum sc_status sc_op_dropout(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    struct sc_view residual = sc_call_view(call, SC_ROLE_RESIDUAL);
    char *mask = sc_call_view(call, SC_ROLE_MASK).data;
    if (!x.data)
        x = y;
    if (call->op->p.dropout.heads > 0)
        return drop_scores(call, &x, &y, mask, err);
    const struct sc_dropout_args args = {
        .x = x.data,
        .bias = sc_call_view(call, SC_ROLE_BIAS).data,
        .residual = residual.data,
        .y = y.data,
        .mask = (uint8_t *)mask,
        .columns = y.value->cols,
        .x_stride = stride(&x),
        .residual_stride = stride(&residual),
        .y_stride = stride(&y),
        .row_base = sc_call_index(call, &call->op->p.dropout.row),
        .draw = sc_call_draw(call, call->op->p.dropout.site, call->op->p.dropout.probability),
    };
    return sc_start_dropout_forward(call, &args, y.value->rows, args.columns, err);
}

/* A saved mask serves rows of any kind; the draw's own factor 1 / (1 - p) goes with it. */
static enum sc_status undrop_rows(const struct sc_call *call, const struct sc_view *dy,
                                  const struct sc_view *dx, char *mask, struct sc_error *err)
{
    struct sc_draw draw =
        sc_call_draw(call, call->op->p.dropout.site, call->op->p.dropout.probability);
    draw.probability = call->op->p.dropout.probability;
    const struct sc_dropout_args args = {
        .x = dy->data,
        .y = dx->data,
        .mask = (uint8_t *)mask,
        .columns = dx->value->cols,
        .x_stride = stride(dy),
        .y_stride = stride(dx),
        .row_base = sc_call_index(call, &call->op->p.dropout.row),
        .draw = draw,
    };
    return sc_start_dropout_backward(call, &args, dx->value->rows, args.columns, err);
}

enum sc_status sc_op_dropout_backward(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view dx = sc_call_view(call, SC_ROLE_DX);
    struct sc_view dy = sc_call_view(call, SC_ROLE_DY);
    struct sc_view sums = sc_call_view(call, SC_ROLE_BIAS_GRADIENT);
    char *mask = sc_call_view(call, SC_ROLE_MASK).data;
    if (!dy.data)
        dy = dx;
    if (call->op->p.dropout.heads > 0 && !mask)
        SC_TRY(drop_scores(call, &dy, &dx, NULL, err));
    else
        SC_TRY(undrop_rows(call, &dy, &dx, mask, err));
    return sums.data ? sc_call_column_sums(call, &dx, &sums, err) : SC_OK;
}
