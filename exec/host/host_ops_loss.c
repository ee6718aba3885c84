/* Embedding and cross-entropy. */
#include "exec/host/host_ops.h"

static struct sc_cross_entropy_args loss_args(const struct sc_host_call *call,
                                              const struct sc_host_view *logits)
{
    const union sc_parameters *p = &call->op->p;
    return (struct sc_cross_entropy_args){
        .logits = logits->data,
        .target = (const int32_t *)sc_host_operand(call, SC_ROLE_INDEX).data,
        .maximum = (float *)sc_host_operand(call, SC_ROLE_MAX).data,
        .sum = (float *)sc_host_operand(call, SC_ROLE_SUM).data,
        .target_logit = (float *)sc_host_operand(call, SC_ROLE_TARGET_LOGIT).data,
        .loss = (float *)sc_host_operand(call, SC_ROLE_LOSS).data,
        .columns = logits->value->cols,
        .stride = logits->value->row_stride,
        .first_column = sc_host_index(call, &p->cross_entropy.column),
        .vocab_size = p->cross_entropy.vocab_size,
        .scale = p->cross_entropy.scale,
    };
}

enum sc_status sc_host_cross_entropy_max(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view x = sc_host_operand(call, SC_ROLE_X);
    const struct sc_cross_entropy_args args = loss_args(call, &x);
    sc_run_cross_entropy_max(call->team, &args, x.value->rows, 1);
    return SC_OK;
}

enum sc_status sc_host_cross_entropy_sum(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view x = sc_host_operand(call, SC_ROLE_X);
    struct sc_host_view exponentials = sc_host_operand(call, SC_ROLE_PROBABILITIES);
    if (!x.data) /* in place */
        x = exponentials;
    struct sc_cross_entropy_args args = loss_args(call, &x);
    args.exponentials = exponentials.data;
    args.exponentials_stride = exponentials.value ? exponentials.value->row_stride : 0;
    sc_run_cross_entropy_sum(call->team, &args, x.value->rows, 1);
    return SC_OK;
}

/* The kernel's loss is a token's; the program's carries the weight of the token. */
static void weigh_loss(const struct sc_host_call *call, int64_t rows, float factor)
{
    char *loss = sc_host_operand(call, SC_ROLE_LOSS).data;
    const struct sc_scale_args args = {
        .x = loss,
        .y = loss,
        .columns = rows,
        .x_stride = rows,
        .y_stride = rows,
        .factor = factor,
    };
    sc_run_scale(NULL, &args, 1, 1);
}

enum sc_status sc_host_cross_entropy_loss(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view exponentials = sc_host_operand(call, SC_ROLE_PROBABILITIES);
    struct sc_host_view dx = sc_host_operand(call, SC_ROLE_DX);
    if (!exponentials.data) /* in place */
        exponentials = dx;
    struct sc_cross_entropy_args args = loss_args(call, &exponentials);
    args.gradient = dx.data;
    args.gradient_stride = dx.value->row_stride;
    args.have_exponentials = 1;
    sc_run_cross_entropy_loss(call->team, &args, dx.value->rows, 1);
    weigh_loss(call, dx.value->rows, args.scale);
    return SC_OK;
}

enum sc_status sc_host_embedding(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view weight = sc_host_operand(call, SC_ROLE_WEIGHT);
    struct sc_host_view y = sc_host_operand(call, SC_ROLE_Y);
    const struct sc_embedding_args args = {
        .id = (const int32_t *)sc_host_operand(call, SC_ROLE_INDEX).data,
        .table = weight.data,
        .y = y.data,
        .columns = y.value->cols,
        .table_stride = weight.value->row_stride,
        .y_stride = y.value->row_stride,
        .first = sc_host_index(call, &call->op->p.embedding.row),
        .count = weight.value->rows,
    };
    sc_run_embedding_forward(call->team, &args, y.value->rows, 1);
    return SC_OK;
}

enum sc_status sc_host_embedding_backward(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view dy = sc_host_operand(call, SC_ROLE_DY);
    struct sc_host_view table = sc_host_operand(call, SC_ROLE_DWEIGHT);
    const struct sc_embedding_backward_args args = {
        .id = (const int32_t *)sc_host_operand(call, SC_ROLE_INDEX).data,
        .dy = dy.data,
        .table = table.data,
        .rows = dy.value->rows,
        .columns = dy.value->cols,
        .dy_stride = dy.value->row_stride,
        .table_stride = table.value->row_stride,
        .first = sc_host_index(call, &call->op->p.embedding.row),
        .count = table.value->rows,
        .accumulate = table.accumulate,
    };
    sc_run_embedding_backward(call->team, &args, args.count, 1);
    return SC_OK;
}
