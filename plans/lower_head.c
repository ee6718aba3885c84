/*
 * What stands before and behind the layers: embedding, head and loss, over the whole micro-batch
 * (pieces are views of its rows). The vocabulary is split over the tensor group where the plan says
 * so; the loss is then put together by three reductions of one number a token.
 */
#include "plans/lowering.h"

static struct sc_index vocab_index(const struct sc_lowering *l)
{
    if (l->vocab_ranks == 1)
        return (struct sc_index){.base = 0, .stride = 0, .axis = -1};
    return (struct sc_index){.base = 0, .stride = l->vocab, .axis = SC_TENSOR};
}

static void vocab_all_reduce(struct sc_lowering *l, uint32_t value, enum sc_reduction reduction,
                             struct sc_label label, bool ordered)
{
    if (l->vocab_ranks > 1)
        sc_lower_tensor_all_reduce(l, value, reduction, label, ordered);
}

static void begin_micro_batch(struct sc_lowering *l)
{
    for (int64_t i = 0; i <= l->model->layers; i++)
        l->x[i].whole = SC_NONE;
    l->final_out = sc_lower_activations(l, sc_lower_label(l, N_FINAL_NORM, -1, SC_PASS_FORWARD, -1),
                                        l->activation, 1, l->hidden);
    l->final_stat = sc_lower_activations(l, sc_lower_label(l, N_FINAL_NORM, -1, SC_PASS_NONE, -1),
                                         SC_FP32, 1, 2);
    l->final_gradient = sc_lower_activations(
        l, sc_lower_label(l, N_FINAL_NORM, -1, SC_PASS_BACKWARD, -1), l->activation, 1, l->hidden);
    l->residual_gradient =
        sc_lower_activations(l, sc_lower_label(l, N_RESIDUAL_GRADIENT, -1, SC_PASS_BACKWARD, -1),
                             l->activation, 1, l->hidden);
}

static struct sc_activations hidden(struct sc_lowering *l, enum sc_lower_name name)
{
    return sc_lower_activations(l, sc_lower_label(l, name, -1, SC_PASS_FORWARD, -1), l->activation,
                                1, l->hidden);
}

/* The rows of the position table that a sequence uses. */
static uint32_t position_view(struct sc_lowering *l, uint32_t table)
{
    return sc_add_view(l->program, l->class, sc_lower_label(l, N_POSITION, -1, SC_PASS_NONE, -1),
                       table, l->model->position_offset, l->sequence, 0, l->hidden);
}

static void embedding_dropout_parameters(struct sc_lowering *l, struct sc_op *op)
{
    op->p.dropout.probability = (float)l->plan->dropout.hidden;
    op->p.dropout.site = (uint32_t)l->model->layers * 4 + 3;
    op->p.dropout.row = sc_lower_first_row(l, -1);
}

static void embedding_dropout(struct sc_lowering *l)
{
    struct sc_label label = sc_lower_label(l, N_EMBEDDING_DROPOUT, -1, SC_PASS_FORWARD, -1);
    struct sc_activations from = l->x[0];
    l->x[0] = hidden(l, N_EMBEDDING_DROPOUT);
    if (l->plan->dropout.mask == SC_MASK_SAVED)
        l->embedding_mask = sc_lower_activations(l, label, SC_UINT8, 1, l->hidden);
    embedding_dropout_parameters(l, sc_lower_op(l, SC_DROPOUT, label));
    sc_lower_in(l, SC_ROLE_X, from.whole);
    sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_Y, l->x[0].whole);
    if (l->plan->dropout.mask == SC_MASK_SAVED)
        sc_lower_out(l, SC_ROLE_MASK, l->embedding_mask.whole);
}

void sc_lower_embedding(struct sc_lowering *l)
{
    begin_micro_batch(l);
    struct sc_label label = sc_lower_label(l, N_EMBEDDING, -1, SC_PASS_FORWARD, -1);
    l->x[0] = hidden(l, N_EMBEDDING);
    sc_lower_op(l, SC_EMBEDDING, label)->p.embedding.row = vocab_index(l);
    sc_lower_in(l, SC_ROLE_INDEX, l->tokens);
    sc_lower_in(l, SC_ROLE_WEIGHT, sc_lower_parameter(l, l->embedding));
    sc_lower_out(l, SC_ROLE_Y, l->x[0].whole);
    vocab_all_reduce(l, l->x[0].whole, SC_SUM, label, false);
    if (l->position != SC_NONE) {
        struct sc_activations sum = hidden(l, N_POSITION);
        uint32_t rows = position_view(l, sc_lower_parameter(l, l->position));
        sc_lower_op(l, SC_ADD, sc_lower_label(l, N_POSITION, -1, SC_PASS_FORWARD, -1));
        sc_lower_in(l, SC_ROLE_A, l->x[0].whole);
        sc_lower_in(l, SC_ROLE_B, rows);
        sc_lower_out(l, SC_ROLE_C, sum.whole);
        l->x[0] = sum;
    }
    if (l->plan->dropout.hidden > 0)
        embedding_dropout(l);
}

void sc_lower_embedding_backward(struct sc_lowering *l)
{
    uint32_t dx = l->residual_gradient.whole;
    if (l->plan->dropout.hidden > 0) {
        struct sc_label label = sc_lower_label(l, N_EMBEDDING_DROPOUT, -1, SC_PASS_BACKWARD, -1);
        embedding_dropout_parameters(l, sc_lower_op(l, SC_DROPOUT_BACKWARD, label));
        if (l->plan->dropout.mask == SC_MASK_SAVED)
            sc_lower_in(l, SC_ROLE_MASK, l->embedding_mask.whole);
        else
            sc_lower_in(l, SC_ROLE_STATE, l->state);
        sc_lower_inout(l, SC_ROLE_DX, dx);
    }
    if (l->position != SC_NONE) {
        uint32_t table = l->program->parameters.items[l->position].gradient;
        uint32_t rows = position_view(l, table);
        sc_lower_op(l, SC_REDUCE_ROWS, sc_lower_label(l, N_POSITION, -1, SC_PASS_BACKWARD, -1))
            ->p.scale.factor = 1;
        sc_lower_in(l, SC_ROLE_X, dx);
        sc_lower_gradient_view(l, SC_ROLE_Y, l->position, rows);
        sc_lower_gradients_final(l);
    }
    struct sc_label label = sc_lower_label(l, N_EMBEDDING, -1, SC_PASS_BACKWARD, -1);
    sc_lower_op(l, SC_EMBEDDING_BACKWARD, label)->p.embedding.row = vocab_index(l);
    sc_lower_in(l, SC_ROLE_INDEX, l->tokens);
    sc_lower_in(l, SC_ROLE_DY, dx);
    sc_lower_gradient(l, SC_ROLE_DWEIGHT, l->embedding);
    if (l->micro_batch + 1 == l->micro_batches)
        sc_lower_out(l, SC_ROLE_TOKEN, l->backward_done);
    sc_lower_gradients_final(l);
}

static uint32_t a_number_a_token(struct sc_lowering *l, enum sc_lower_name name)
{
    return sc_lower_activations(l, sc_lower_label(l, name, -1, SC_PASS_NONE, -1), SC_FP32, 1, 1)
        .whole;
}

static void cross_entropy_parameters(struct sc_lowering *l, struct sc_op *op)
{
    op->p.cross_entropy.vocab_size = l->model->vocab_size;
    op->p.cross_entropy.column = vocab_index(l);
    op->p.cross_entropy.scale =
        (float)(1.0 / ((double)l->plan->batch.global_batch * (double)l->sequence));
}

/* Loss and, over the logits, its gradient. In fp32 exp(logits) and then the gradient take the
 * logits' place; else the exponentials are kept in fp32 beside them. */
static uint32_t cross_entropy(struct sc_lowering *l, uint32_t logits)
{
    const enum sc_pass forward = SC_PASS_FORWARD;
    bool in_place = l->activation == SC_FP32;
    uint32_t max = a_number_a_token(l, N_LOSS_MAX), sum = a_number_a_token(l, N_LOSS_SUM);
    uint32_t target = a_number_a_token(l, N_LOSS_TARGET), loss = a_number_a_token(l, N_LOSS);
    uint32_t exponentials = logits;
    if (!in_place)
        exponentials = sc_lower_activations(l, sc_lower_label(l, N_LOSS_SUM, -1, forward, -1),
                                            SC_FP32, 1, l->vocab)
                           .whole;
    struct sc_label label = sc_lower_label(l, N_LOSS_MAX, -1, forward, -1);
    cross_entropy_parameters(l, sc_lower_op(l, SC_CROSS_ENTROPY_MAX, label));
    sc_lower_in(l, SC_ROLE_X, logits);
    sc_lower_out(l, SC_ROLE_MAX, max);
    vocab_all_reduce(l, max, SC_MAX, label, false);

    label = sc_lower_label(l, N_LOSS_SUM, -1, forward, -1);
    cross_entropy_parameters(l, sc_lower_op(l, SC_CROSS_ENTROPY_SUM, label));
    if (!in_place)
        sc_lower_in(l, SC_ROLE_X, logits);
    sc_lower_in(l, SC_ROLE_MAX, max);
    sc_lower_in(l, SC_ROLE_INDEX, l->targets);
    sc_lower_out(l, SC_ROLE_SUM, sum);
    sc_lower_out(l, SC_ROLE_TARGET_LOGIT, target);
    if (in_place)
        sc_lower_inout(l, SC_ROLE_PROBABILITIES, exponentials);
    else
        sc_lower_out(l, SC_ROLE_PROBABILITIES, exponentials);
    vocab_all_reduce(l, sum, SC_SUM, label, false);
    label.name = l->name[N_LOSS_TARGET];
    vocab_all_reduce(l, target, SC_SUM, label, false);

    label.name = l->name[N_LOSS];
    cross_entropy_parameters(l, sc_lower_op(l, SC_CROSS_ENTROPY_LOSS, label));
    sc_lower_in(l, SC_ROLE_SUM, sum);
    sc_lower_in(l, SC_ROLE_MAX, max);
    sc_lower_in(l, SC_ROLE_TARGET_LOGIT, target);
    sc_lower_in(l, SC_ROLE_INDEX, l->targets);
    if (!in_place)
        sc_lower_in(l, SC_ROLE_PROBABILITIES, exponentials);
    sc_lower_out(l, SC_ROLE_LOSS, loss);
    if (in_place)
        sc_lower_inout(l, SC_ROLE_DX, logits);
    else
        sc_lower_out(l, SC_ROLE_DX, logits);
    return loss;
}

/* The step's loss: the sum over this rank's tokens and micro-batches; every token is already
 * weighed by the global batch. */
static void sum_loss(struct sc_lowering *l, uint32_t loss)
{
    struct sc_label label = sc_label(l->program, "loss");
    if (l->loss == SC_NONE) {
        uint32_t buffer = sc_add_buffer(l->program, l->class, label, SC_DEVICE, SC_STEP, 1,
                                        sc_dtype_bytes(SC_FP32));
        l->loss = sc_add_value(l->program, l->class, label, buffer, 0, SC_FP32, 1, 1);
    }
    sc_lower_op(l, SC_REDUCE_ROWS, sc_lower_label(l, N_LOSS, -1, SC_PASS_NONE, -1))
        ->p.scale.factor = 1;
    sc_lower_in(l, SC_ROLE_X, loss);
    if (l->micro_batch == 0)
        sc_lower_out(l, SC_ROLE_Y, l->loss);
    else
        sc_lower_inout(l, SC_ROLE_Y, l->loss);
}

void sc_lower_head(struct sc_lowering *l)
{
    struct sc_label label = sc_lower_label(l, N_HEAD, -1, SC_PASS_FORWARD, -1);
    uint32_t logits = sc_lower_activations(l, label, l->activation, 1, l->vocab).whole;
    sc_lower_linear(l, label, l->final_out.whole, l->head, SC_NONE, logits);
    sum_loss(l, cross_entropy(l, logits));
    sc_lower_column_parallel_backward(l, label, logits, l->final_out.whole, l->head, SC_NONE,
                                      l->final_gradient.whole, l->vocab_ranks);
}
