/* Embedding and cross-entropy. */
#include "exec/op_functions.h"

static struct sc_cross_entropy_args loss_args(const struct sc_call *call,
                                              const struct sc_view *logits)
{
    const union sc_parameters *p = &call->op->p;
    return (struct sc_cross_entropy_args){
        .logits = logits->data,
        .target = (const int32_t *)sc_call_view(call, SC_ROLE_INDEX).data,
        .maximum = (float *)sc_call_view(call, SC_ROLE_MAX).data,
        .sum = (float *)sc_call_view(call, SC_ROLE_SUM).data,
        .target_logit = (float *)sc_call_view(call, SC_ROLE_TARGET_LOGIT).data,
        .loss = (float *)sc_call_view(call, SC_ROLE_LOSS).data,
        .columns = logits->value->cols,
        .stride = logits->value->row_stride,
        .first_column = sc_call_index(call, &p->cross_entropy.column),
        .vocab_size = p->cross_entropy.vocab_size,
        .scale = p->cross_entropy.scale,
    };
}

enum sc_status sc_op_cross_entropy_max(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X);
    const struct sc_cross_entropy_args args = loss_args(call, &x);
    return sc_start_cross_entropy_max(call, &args, x.value->rows, args.columns, err);
}

enum sc_status sc_op_cross_entropy_sum(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view x = sc_call_view(call, SC_ROLE_X);
    struct sc_view exponentials = sc_call_view(call, SC_ROLE_PROBABILITIES);
    if (!x.data) /* in place */
        x = exponentials;
    struct sc_cross_entropy_args args = loss_args(call, &x);
    args.exponentials = exponentials.data;
    args.exponentials_stride = exponentials.value ? exponentials.value->row_stride : 0;
    return sc_start_cross_entropy_sum(call, &args, x.value->rows, args.columns, err);
}

/* The kernel's loss is a token's; the program's carries the weight of the token. */
static enum sc_status weigh_loss(const struct sc_call *call, int64_t rows, float factor,
                                 struct sc_error *err)
{
    char *loss = sc_call_view(call, SC_ROLE_LOSS).data;
    const struct sc_scale_args args = {
        .x = loss,
        .y = loss,
        .columns = rows,
        .x_stride = rows,
        .y_stride = rows,
        .factor = factor,
    };
    return sc_start_scale(call, &args, 1, rows, err);
}

enum sc_status sc_op_cross_entropy_loss(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view exponentials = sc_call_view(call, SC_ROLE_PROBABILITIES);
    struct sc_view dx = sc_call_view(call, SC_ROLE_DX);
    if (!exponentials.data) /* in place */
        exponentials = dx;
    struct sc_cross_entropy_args args = loss_args(call, &exponentials);
    args.gradient = dx.data;
    args.gradient_stride = dx.value->row_stride;
    args.have_exponentials = 1;
    SC_TRY(sc_start_cross_entropy_loss(call, &args, dx.value->rows, args.columns, err));
    return weigh_loss(call, dx.value->rows, args.scale, err);
}

enum sc_status sc_op_embedding(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view weight = sc_call_view(call, SC_ROLE_WEIGHT);
    struct sc_view y = sc_call_view(call, SC_ROLE_Y);
    const struct sc_embedding_args args = {
        .id = (const int32_t *)sc_call_view(call, SC_ROLE_INDEX).data,
        .table = weight.data,
        .y = y.data,
        .columns = y.value->cols,
        .table_stride = weight.value->row_stride,
        .y_stride = y.value->row_stride,
        .first = sc_call_index(call, &call->op->p.embedding.row),
        .count = weight.value->rows,
    };
    return sc_start_embedding_forward(call, &args, y.value->rows, args.columns, err);
}

enum sc_status sc_op_embedding_backward(const struct sc_call *call, struct sc_error *err)
{
    struct sc_view dy = sc_call_view(call, SC_ROLE_DY);
    struct sc_view table = sc_call_view(call, SC_ROLE_DWEIGHT);
    const struct sc_embedding_backward_args args = {
        .id = (const int32_t *)sc_call_view(call, SC_ROLE_INDEX).data,
        .dy = dy.data,
        .table = table.data,
        .rows = dy.value->rows,
        .columns = dy.value->cols,
        .dy_stride = dy.value->row_stride,
        .table_stride = table.value->row_stride,
        .first = sc_call_index(call, &call->op->p.embedding.row),
        .count = table.value->rows,
        .accumulate = table.accumulate,
    };
    return sc_start_embedding_backward(call, &args, args.count, args.columns, err);
}
