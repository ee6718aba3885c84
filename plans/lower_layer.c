/*
 * The parts of a transformer layer, forward and backward, for one piece of the micro-batch, as
 * Megatron-LM splits them over a tensor group: the products that widen (qkv, up) are split by
 * output columns, those that narrow (projection, down) by input rows; an all-reduce follows the
 * latter in forward and the former in backward.
 *
 *   x -> norm1 -> qkv -> (rope) -> attention -> o -> projection -> z1 -> all-reduce
 *     -> y1 = x + dropout(z1 + bias) -> norm2 -> up -> u -> activation -> a -> down -> z2
 *     -> all-reduce -> next x = y1 + dropout(z2 + bias)
 */
#include "plans/lowering.h"

#include <math.h>

void sc_lower_forget_layer(struct sc_lowering *l, int layer)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        l->layers[layer].slot[i].whole = SC_NONE;
}

/* The activations in a slot, made when first asked for. */
static const struct sc_activations *slot(struct sc_lowering *l, int layer, enum sc_slot which,
                                         enum sc_lower_name name, enum sc_pass pass,
                                         enum sc_dtype dtype, int64_t rows_a_token, int64_t cols)
{
    struct sc_activations *at = &l->layers[layer].slot[which];
    if (at->whole == SC_NONE)
        *at = sc_lower_activations(l, sc_lower_label(l, name, layer, pass, -1), dtype, rows_a_token,
                                   cols);
    return at;
}

static uint32_t made(const struct sc_lowering *l, int layer, enum sc_slot which, int piece)
{
    return l->layers[layer].slot[which].piece[piece];
}

static uint32_t tensor(struct sc_lowering *l, int layer, enum sc_slot which,
                       enum sc_lower_name name, enum sc_pass pass, int64_t cols, int piece)
{
    return slot(l, layer, which, name, pass, l->activation, 1, cols)->piece[piece];
}

static void norm_forward(struct sc_lowering *l, struct sc_label label, uint32_t x, uint32_t gamma,
                         uint32_t beta, uint32_t y, uint32_t stat)
{
    struct sc_op *op = sc_lower_op(l, SC_NORM_FORWARD, label);
    op->p.norm.kind = (uint8_t)l->model->norm;
    op->p.norm.epsilon = (float)l->model->norm_epsilon;
    sc_lower_in(l, SC_ROLE_X, x);
    sc_lower_parameter_in(l, SC_ROLE_GAMMA, gamma);
    sc_lower_parameter_in(l, SC_ROLE_BETA, beta);
    sc_lower_out(l, SC_ROLE_Y, y);
    sc_lower_out(l, SC_ROLE_STAT, stat);
}

static void norm_backward(struct sc_lowering *l, struct sc_label label, uint32_t dy, uint32_t x,
                          uint32_t stat, uint32_t gamma, uint32_t beta, uint32_t dx, bool add)
{
    struct sc_op *op = sc_lower_op(l, SC_NORM_BACKWARD, label);
    op->p.norm.kind = (uint8_t)l->model->norm;
    op->p.norm.epsilon = (float)l->model->norm_epsilon;
    sc_lower_in(l, SC_ROLE_DY, dy);
    sc_lower_in(l, SC_ROLE_X, x);
    sc_lower_in(l, SC_ROLE_STAT, stat);
    sc_lower_parameter_in(l, SC_ROLE_GAMMA, gamma);
    if (add)
        sc_lower_inout(l, SC_ROLE_DX, dx);
    else
        sc_lower_out(l, SC_ROLE_DX, dx);
    sc_lower_gradient_out(l, SC_ROLE_DGAMMA, gamma);
    sc_lower_gradient_out(l, SC_ROLE_DBETA, beta);
    sc_lower_gradients_final(l);
}

/* Every place that drops has its own number. */
static uint32_t dropout_site(int layer, int which)
{
    return (uint32_t)layer * 4 + (uint32_t)which;
}

static bool mask_saved(const struct sc_lowering *l, enum sc_pass pass)
{
    bool again = l->plan->recompute.granularity == SC_RECOMPUTE_FULL;
    return l->plan->dropout.mask == SC_MASK_SAVED && !(again && pass == SC_PASS_FORWARD);
}

/* y = residual + dropout(z + bias) */
static void residual_forward(struct sc_lowering *l, struct sc_label label, enum sc_slot mask,
                             uint32_t site, uint32_t z, uint32_t bias, uint32_t residual,
                             uint32_t y)
{
    float probability = (float)l->plan->dropout.hidden;
    int piece = label.piece < 0 ? 0 : label.piece;
    if (probability == 0 && bias == SC_NONE) {
        sc_lower_op(l, SC_ADD, label);
        sc_lower_in(l, SC_ROLE_A, residual);
        sc_lower_in(l, SC_ROLE_B, z);
        sc_lower_out(l, SC_ROLE_C, y);
        return;
    }
    struct sc_label plain = label;
    plain.piece = -1;
    uint32_t saved = SC_NONE;
    if (probability > 0 && mask_saved(l, (enum sc_pass)label.pass)) {
        struct sc_activations *at = &l->layers[label.layer].slot[mask];
        if (at->whole == SC_NONE)
            *at = sc_lower_activations(l, plain, SC_UINT8, 1, l->hidden);
        saved = at->piece[piece];
    }
    struct sc_op *op = sc_lower_op(l, SC_DROPOUT, label);
    op->p.dropout.probability = probability;
    op->p.dropout.site = site;
    op->p.dropout.row = sc_lower_first_row(l, piece);
    sc_lower_in(l, SC_ROLE_X, z);
    sc_lower_parameter_in(l, SC_ROLE_BIAS, bias);
    sc_lower_in(l, SC_ROLE_RESIDUAL, residual);
    sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_Y, y);
    if (saved != SC_NONE)
        sc_lower_out(l, SC_ROLE_MASK, saved);
}

/* The gradient of z: through the mask, or the residual's own where nothing is dropped (the bias
 * gradient then comes with the weight gradient). */
static void residual_backward(struct sc_lowering *l, struct sc_label label, enum sc_slot mask,
                              enum sc_slot dz, uint32_t site, uint32_t bias)
{
    float probability = (float)l->plan->dropout.hidden;
    int piece = label.piece < 0 ? 0 : label.piece;
    struct sc_activations *at = &l->layers[label.layer].slot[dz];
    if (probability == 0) {
        *at = l->residual_gradient;
        return;
    }
    if (at->whole == SC_NONE) {
        struct sc_label plain = label;
        plain.piece = -1;
        *at = sc_lower_activations(l, plain, l->activation, 1, l->hidden);
    }
    struct sc_op *op = sc_lower_op(l, SC_DROPOUT_BACKWARD, label);
    op->p.dropout.probability = probability;
    op->p.dropout.site = site;
    op->p.dropout.row = sc_lower_first_row(l, piece);
    sc_lower_in(l, SC_ROLE_DY, l->residual_gradient.piece[piece]);
    if (l->plan->dropout.mask == SC_MASK_SAVED)
        sc_lower_in(l, SC_ROLE_MASK, made(l, label.layer, mask, piece));
    else
        sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_DX, at->piece[piece]);
    sc_lower_gradient_out(l, SC_ROLE_BIAS_GRADIENT, bias);
    sc_lower_gradients_final(l);
}

/* A row-parallel product backward. Its bias gradient comes with the weight gradient where no
 * dropout stands between. */
static void row_parallel_backward(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                                  uint32_t in, uint32_t weight, uint32_t bias, uint32_t din)
{
    sc_lower_linear_data(l, label, dout, weight, din);
    sc_lower_linear_weight(l, label, dout, in, weight,
                           l->plan->dropout.hidden == 0 ? bias : SC_NONE, false);
}

static struct sc_op *attention_op(struct sc_lowering *l, enum sc_op_kind kind,
                                  struct sc_label label)
{
    int piece = label.piece;
    struct sc_op *op = sc_lower_op(l, kind, label);
    op->p.attention.batch = sc_lower_batch(l, piece);
    op->p.attention.sequence = l->sequence;
    op->p.attention.heads = (int32_t)l->heads;
    op->p.attention.kv_heads = (int32_t)l->kv_heads;
    op->p.attention.head_size = (int32_t)l->head_size;
    op->p.attention.total_heads = (int32_t)l->model->attention_heads;
    op->p.attention.batch_index = sc_lower_first_sequence(l, piece);
    op->p.attention.head_index =
        (struct sc_index){.base = 0, .stride = l->heads, .axis = SC_TENSOR};
    op->p.attention.site = dropout_site(label.layer, 0);
    op->p.attention.scale = 1;
    return op;
}

static float softmax_scale(const struct sc_lowering *l)
{
    return (float)(1.0 / sqrt((double)l->head_size));
}

static void rope(struct sc_lowering *l, struct sc_label label, uint32_t value, bool inverse)
{
    if (l->model->position != SC_POSITION_ROTARY)
        return;
    struct sc_op *op = sc_lower_op(l, SC_ROPE, label);
    op->p.rope.sequence = l->sequence;
    op->p.rope.heads = (int32_t)l->heads;
    op->p.rope.kv_heads = (int32_t)l->kv_heads;
    op->p.rope.head_size = (int32_t)l->head_size;
    op->p.rope.theta = (float)l->model->rope_theta;
    op->p.rope.inverse = inverse;
    sc_lower_inout(l, SC_ROLE_Y, value);
}

enum packed { PACKED_Q, PACKED_K, PACKED_V };

/* The query, key or value columns of packed rows. */
static uint32_t packed_view(struct sc_lowering *l, struct sc_label label, uint32_t qkv,
                            enum packed which)
{
    int64_t first[] = {0, l->q, l->q + l->kv}, cols[] = {l->q, l->kv, l->kv};
    int64_t rows = l->class->values.items[qkv].rows;
    return sc_add_view(l->program, l->class, label, qkv, 0, rows, first[which], cols[which]);
}

static void batched_gemm(struct sc_lowering *l, struct sc_label label, uint32_t a, bool transpose_a,
                         uint32_t b, bool transpose_b, uint32_t c)
{
    struct sc_op *op = attention_op(l, SC_BATCHED_GEMM, label);
    op->p.attention.transpose_a = transpose_a;
    op->p.attention.transpose_b = transpose_b;
    sc_lower_in(l, SC_ROLE_A, a);
    sc_lower_in(l, SC_ROLE_B, b);
    sc_lower_out(l, SC_ROLE_C, c);
}

static void scores_dropout_parameters(struct sc_lowering *l, struct sc_op *op, int layer, int piece)
{
    op->p.dropout.probability = (float)l->plan->dropout.attention;
    op->p.dropout.site = dropout_site(layer, 0);
    op->p.dropout.row = sc_lower_first_sequence(l, piece);
    op->p.dropout.heads = (int32_t)l->heads;
    op->p.dropout.sequence = l->sequence;
    op->p.dropout.total_heads = (int32_t)l->model->attention_heads;
    op->p.dropout.head_index = (struct sc_index){.base = 0, .stride = l->heads, .axis = SC_TENSOR};
}

static void unfused_forward(struct sc_lowering *l, struct sc_label label, uint32_t qkv, uint32_t o)
{
    int layer = label.layer, piece = label.piece < 0 ? 0 : label.piece;
    enum sc_pass pass = (enum sc_pass)label.pass;
    uint32_t scores =
        slot(l, layer, SLOT_SCORES, N_SCORES, pass, l->activation, l->heads, l->sequence)
            ->piece[piece];
    label.name = l->name[N_SCORES];
    batched_gemm(l, label, packed_view(l, label, qkv, PACKED_Q), false,
                 packed_view(l, label, qkv, PACKED_K), true, scores);
    label.name = l->name[N_SOFTMAX];
    attention_op(l, SC_SOFTMAX, label)->p.attention.scale = softmax_scale(l);
    sc_lower_inout(l, SC_ROLE_Y, scores);
    uint32_t used = scores;
    if (l->plan->dropout.attention > 0) {
        label.name = l->name[N_ATTENTION_DROPOUT];
        used = slot(l, layer, SLOT_SCORES_DROPPED, N_ATTENTION_DROPOUT, pass, l->activation,
                    l->heads, l->sequence)
                   ->piece[piece];
        uint32_t mask = SC_NONE;
        if (mask_saved(l, pass))
            mask = slot(l, layer, SLOT_SCORES_MASK, N_ATTENTION_DROPOUT, pass, SC_UINT8, l->heads,
                        l->sequence)
                       ->piece[piece];
        struct sc_op *op = sc_lower_op(l, SC_DROPOUT, label);
        scores_dropout_parameters(l, op, layer, piece);
        sc_lower_in(l, SC_ROLE_X, scores);
        sc_lower_in(l, SC_ROLE_STATE, l->state);
        sc_lower_out(l, SC_ROLE_Y, used);
        if (mask != SC_NONE)
            sc_lower_out(l, SC_ROLE_MASK, mask);
    }
    label.name = l->name[N_CONTEXT];
    batched_gemm(l, label, used, false, packed_view(l, label, qkv, PACKED_V), false, o);
}

static void unfused_backward(struct sc_lowering *l, struct sc_label label, uint32_t qkv,
                             uint32_t gradient_o, uint32_t dqkv)
{
    int layer = label.layer, piece = label.piece < 0 ? 0 : label.piece;
    bool drops = l->plan->dropout.attention > 0;
    uint32_t scores = made(l, layer, SLOT_SCORES, piece);
    uint32_t used = drops ? made(l, layer, SLOT_SCORES_DROPPED, piece) : scores;
    uint32_t dscores = slot(l, layer, SLOT_DSCORES, N_SCORES, SC_PASS_BACKWARD, l->activation,
                            l->heads, l->sequence)
                           ->piece[piece];
    label.name = l->name[N_CONTEXT];
    batched_gemm(l, label, gradient_o, false, packed_view(l, label, qkv, PACKED_V), true, dscores);
    batched_gemm(l, label, used, true, gradient_o, false, packed_view(l, label, dqkv, PACKED_V));
    if (drops) {
        label.name = l->name[N_ATTENTION_DROPOUT];
        struct sc_op *op = sc_lower_op(l, SC_DROPOUT_BACKWARD, label);
        scores_dropout_parameters(l, op, layer, piece);
        if (l->plan->dropout.mask == SC_MASK_SAVED)
            sc_lower_in(l, SC_ROLE_MASK, made(l, layer, SLOT_SCORES_MASK, piece));
        else
            sc_lower_in(l, SC_ROLE_STATE, l->state);
        sc_lower_inout(l, SC_ROLE_DX, dscores);
    }
    label.name = l->name[N_SOFTMAX];
    attention_op(l, SC_SOFTMAX_BACKWARD, label)->p.attention.scale = softmax_scale(l);
    sc_lower_in(l, SC_ROLE_Y, scores);
    sc_lower_inout(l, SC_ROLE_DX, dscores);
    label.name = l->name[N_SCORES];
    batched_gemm(l, label, dscores, false, packed_view(l, label, qkv, PACKED_K), false,
                 packed_view(l, label, dqkv, PACKED_Q));
    batched_gemm(l, label, dscores, true, packed_view(l, label, qkv, PACKED_Q), false,
                 packed_view(l, label, dqkv, PACKED_K));
}

static void fused_forward(struct sc_lowering *l, struct sc_label label, uint32_t qkv, uint32_t o)
{
    int piece = label.piece < 0 ? 0 : label.piece;
    uint32_t lse =
        slot(l, label.layer, SLOT_LSE, N_ATTENTION, (enum sc_pass)label.pass, SC_FP32, l->heads, 1)
            ->piece[piece];
    struct sc_op *op = attention_op(l, SC_ATTENTION, label);
    op->p.attention.scale = softmax_scale(l);
    op->p.attention.probability = (float)l->plan->dropout.attention;
    sc_lower_in(l, SC_ROLE_QKV, qkv);
    if (l->plan->dropout.attention > 0)
        sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_O, o);
    sc_lower_out(l, SC_ROLE_LSE, lse);
}

static void fused_backward(struct sc_lowering *l, struct sc_label label, uint32_t qkv, uint32_t o,
                           uint32_t gradient_o, uint32_t dqkv)
{
    int piece = label.piece < 0 ? 0 : label.piece;
    struct sc_op *op = attention_op(l, SC_ATTENTION_BACKWARD, label);
    op->p.attention.scale = softmax_scale(l);
    op->p.attention.probability = (float)l->plan->dropout.attention;
    sc_lower_in(l, SC_ROLE_DO, gradient_o);
    sc_lower_in(l, SC_ROLE_QKV, qkv);
    sc_lower_in(l, SC_ROLE_O, o);
    sc_lower_in(l, SC_ROLE_LSE, made(l, label.layer, SLOT_LSE, piece));
    if (l->plan->dropout.attention > 0)
        sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_DQKV, dqkv);
}

static void attention_in_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t qkv = tensor(l, layer, SLOT_QKV, N_QKV, pass, l->qkv, piece);
    uint32_t o = tensor(l, layer, SLOT_O, N_ATTENTION, pass, l->q, piece);
    sc_lower_linear(l, sc_lower_label(l, N_QKV, layer, pass, piece),
                    made(l, layer, SLOT_NORM1, piece), p->qkv, p->qkv_bias, qkv);
    rope(l, sc_lower_label(l, N_ROPE, layer, pass, piece), qkv, false);
    struct sc_label label = sc_lower_label(l, N_ATTENTION, layer, pass, piece);
    if (l->plan->attention.kernel == SC_ATTENTION_FUSED)
        fused_forward(l, label, qkv, o);
    else
        unfused_forward(l, label, qkv, o);
}

static void attention_in_backward(struct sc_lowering *l, int layer, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    const enum sc_pass pass = SC_PASS_BACKWARD;
    uint32_t qkv = made(l, layer, SLOT_QKV, piece), o = made(l, layer, SLOT_O, piece);
    uint32_t gradient_o = made(l, layer, SLOT_DO, piece);
    uint32_t dqkv = tensor(l, layer, SLOT_DQKV, N_QKV, pass, l->qkv, piece);
    struct sc_label label = sc_lower_label(l, N_ATTENTION, layer, pass, piece);
    if (l->plan->attention.kernel == SC_ATTENTION_FUSED)
        fused_backward(l, label, qkv, o, gradient_o, dqkv);
    else
        unfused_backward(l, label, qkv, gradient_o, dqkv);
    rope(l, sc_lower_label(l, N_ROPE, layer, pass, piece), dqkv, true);
    sc_lower_column_parallel_backward(
        l, sc_lower_label(l, N_QKV, layer, pass, piece), dqkv, made(l, layer, SLOT_NORM1, piece),
        p->qkv, p->qkv_bias, tensor(l, layer, SLOT_DN1, N_ATTENTION_NORM, pass, l->hidden, piece),
        l->tensor);
}

static void mlp_in_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t u = tensor(l, layer, SLOT_U, N_UP, pass, l->up, piece);
    uint32_t a = tensor(l, layer, SLOT_A, N_MLP_ACTIVATION, pass, l->ffn, piece);
    sc_lower_linear(l, sc_lower_label(l, N_UP, layer, pass, piece),
                    made(l, layer, SLOT_NORM2, piece), p->up, p->up_bias, u);
    struct sc_op *op = sc_lower_op(l, SC_ACTIVATION_FORWARD,
                                   sc_lower_label(l, N_MLP_ACTIVATION, layer, pass, piece));
    op->p.activation.kind = (uint8_t)l->model->activation;
    sc_lower_in(l, SC_ROLE_X, u);
    sc_lower_out(l, SC_ROLE_Y, a);
}

static void mlp_in_backward(struct sc_lowering *l, int layer, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    const enum sc_pass pass = SC_PASS_BACKWARD;
    uint32_t da = made(l, layer, SLOT_DA, piece), du = da;
    bool gated = sc_activation_gated(l->model->activation);
    if (gated)
        du = tensor(l, layer, SLOT_DU, N_UP, pass, l->up, piece);
    struct sc_op *op = sc_lower_op(l, SC_ACTIVATION_BACKWARD,
                                   sc_lower_label(l, N_MLP_ACTIVATION, layer, pass, piece));
    op->p.activation.kind = (uint8_t)l->model->activation;
    sc_lower_in(l, SC_ROLE_X, made(l, layer, SLOT_U, piece));
    if (gated) {
        sc_lower_in(l, SC_ROLE_DY, da);
        sc_lower_out(l, SC_ROLE_DX, du);
    } else {
        sc_lower_inout(l, SC_ROLE_DX, du);
    }
    sc_lower_column_parallel_backward(
        l, sc_lower_label(l, N_UP, layer, pass, piece), du, made(l, layer, SLOT_NORM2, piece),
        p->up, p->up_bias, tensor(l, layer, SLOT_DN2, N_MLP_NORM, pass, l->hidden, piece),
        l->tensor);
}

/* The product that narrows, and the sum of its partial results over the tensor group. */
static void out_forward(struct sc_lowering *l, struct sc_label label, uint32_t in, uint32_t weight,
                        uint32_t z)
{
    sc_lower_linear(l, label, in, weight, SC_NONE, z);
    sc_lower_tensor_all_reduce(l, z, SC_SUM, label, false);
}

/* A layer's input; layer `layers` is the output of the last. */
static uint32_t layer_input(struct sc_lowering *l, int layer, int piece)
{
    if (l->x[layer].whole == SC_NONE)
        l->x[layer] = sc_lower_activations(
            l, sc_lower_label(l, N_MLP_RESIDUAL, layer - 1, SC_PASS_FORWARD, -1), l->activation, 1,
            l->hidden);
    return l->x[layer].piece[piece];
}

static void norm1_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    if (layer == l->model->layers) {
        norm_forward(l, sc_lower_label(l, N_FINAL_NORM, -1, pass, piece),
                     layer_input(l, layer, piece), l->final_norm, l->final_norm_bias,
                     l->final_out.piece[piece], l->final_stat.piece[piece]);
        return;
    }
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t y = tensor(l, layer, SLOT_NORM1, N_ATTENTION_NORM, pass, l->hidden, piece);
    uint32_t stat = slot(l, layer, SLOT_STAT1, N_ATTENTION_NORM, pass, SC_FP32, 1, 2)->piece[piece];
    norm_forward(l, sc_lower_label(l, N_ATTENTION_NORM, layer, pass, piece),
                 layer_input(l, layer, piece), p->norm1, p->norm1_bias, y, stat);
}

static void norm2_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t y = tensor(l, layer, SLOT_NORM2, N_MLP_NORM, pass, l->hidden, piece);
    uint32_t stat = slot(l, layer, SLOT_STAT2, N_MLP_NORM, pass, SC_FP32, 1, 2)->piece[piece];
    norm_forward(l, sc_lower_label(l, N_MLP_NORM, layer, pass, piece),
                 made(l, layer, SLOT_Y1, piece), p->norm2, p->norm2_bias, y, stat);
}

void sc_lower_part_forward(struct sc_lowering *l, struct sc_part part, enum sc_pass pass)
{
    int layer = part.layer, piece = part.piece;
    const struct sc_layer_parameters *p =
        layer < l->model->layers ? &l->layer_parameters[layer] : NULL;
    uint32_t out;
    switch ((enum sc_part_kind)part.kind) {
    case PART_NORM1:
        norm1_forward(l, layer, pass, piece);
        break;
    case PART_IN1:
        attention_in_forward(l, layer, pass, piece);
        break;
    case PART_OUT1:
        out = tensor(l, layer, SLOT_Z1, N_PROJECTION, pass, l->hidden, piece);
        out_forward(l, sc_lower_label(l, N_PROJECTION, layer, pass, piece),
                    made(l, layer, SLOT_O, piece), p->projection, out);
        break;
    case PART_END1:
        out = tensor(l, layer, SLOT_Y1, N_ATTENTION_RESIDUAL, pass, l->hidden, piece);
        residual_forward(l, sc_lower_label(l, N_ATTENTION_RESIDUAL, layer, pass, piece), SLOT_MASK1,
                         dropout_site(layer, 1), made(l, layer, SLOT_Z1, piece), p->projection_bias,
                         layer_input(l, layer, piece), out);
        break;
    case PART_NORM2:
        norm2_forward(l, layer, pass, piece);
        break;
    case PART_IN2:
        mlp_in_forward(l, layer, pass, piece);
        break;
    case PART_OUT2:
        out = tensor(l, layer, SLOT_Z2, N_DOWN, pass, l->hidden, piece);
        out_forward(l, sc_lower_label(l, N_DOWN, layer, pass, piece), made(l, layer, SLOT_A, piece),
                    p->down, out);
        break;
    case PART_END2:
        out = pass == SC_PASS_RECOMPUTE
                  ? tensor(l, layer, SLOT_X_AGAIN, N_MLP_RESIDUAL, pass, l->hidden, piece)
                  : layer_input(l, layer + 1, piece);
        residual_forward(l, sc_lower_label(l, N_MLP_RESIDUAL, layer, pass, piece), SLOT_MASK2,
                         dropout_site(layer, 2), made(l, layer, SLOT_Z2, piece), p->down_bias,
                         made(l, layer, SLOT_Y1, piece), out);
        break;
    }
}

static void norm1_backward(struct sc_lowering *l, int layer, int piece)
{
    uint32_t x = layer_input(l, layer, piece), dx = l->residual_gradient.piece[piece];
    if (layer == l->model->layers) {
        norm_backward(l, sc_lower_label(l, N_FINAL_NORM, -1, SC_PASS_BACKWARD, piece),
                      l->final_gradient.piece[piece], x, l->final_stat.piece[piece], l->final_norm,
                      l->final_norm_bias, dx, false);
        return;
    }
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    norm_backward(l, sc_lower_label(l, N_ATTENTION_NORM, layer, SC_PASS_BACKWARD, piece),
                  made(l, layer, SLOT_DN1, piece), x, made(l, layer, SLOT_STAT1, piece), p->norm1,
                  p->norm1_bias, dx, true);
}

void sc_lower_part_backward(struct sc_lowering *l, struct sc_part part)
{
    const enum sc_pass pass = SC_PASS_BACKWARD;
    int layer = part.layer, piece = part.piece;
    const struct sc_layer_parameters *p =
        layer < l->model->layers ? &l->layer_parameters[layer] : NULL;
    switch ((enum sc_part_kind)part.kind) {
    case PART_NORM1:
        norm1_backward(l, layer, piece);
        break;
    case PART_IN1:
        attention_in_backward(l, layer, piece);
        break;
    case PART_OUT1:
        row_parallel_backward(l, sc_lower_label(l, N_PROJECTION, layer, pass, piece),
                              made(l, layer, SLOT_DZ1, piece), made(l, layer, SLOT_O, piece),
                              p->projection, p->projection_bias,
                              tensor(l, layer, SLOT_DO, N_ATTENTION, pass, l->q, piece));
        break;
    case PART_END1:
        residual_backward(l, sc_lower_label(l, N_ATTENTION_RESIDUAL, layer, pass, piece),
                          SLOT_MASK1, SLOT_DZ1, dropout_site(layer, 1), p->projection_bias);
        break;
    case PART_NORM2:
        norm_backward(l, sc_lower_label(l, N_MLP_NORM, layer, pass, piece),
                      made(l, layer, SLOT_DN2, piece), made(l, layer, SLOT_Y1, piece),
                      made(l, layer, SLOT_STAT2, piece), p->norm2, p->norm2_bias,
                      l->residual_gradient.piece[piece], true);
        break;
    case PART_IN2:
        mlp_in_backward(l, layer, piece);
        break;
    case PART_OUT2:
        row_parallel_backward(l, sc_lower_label(l, N_DOWN, layer, pass, piece),
                              made(l, layer, SLOT_DZ2, piece), made(l, layer, SLOT_A, piece),
                              p->down, p->down_bias,
                              tensor(l, layer, SLOT_DA, N_MLP_ACTIVATION, pass, l->ffn, piece));
        break;
    case PART_END2:
        residual_backward(l, sc_lower_label(l, N_MLP_RESIDUAL, layer, pass, piece), SLOT_MASK2,
                          SLOT_DZ2, dropout_site(layer, 2), p->down_bias);
        break;
    }
}
