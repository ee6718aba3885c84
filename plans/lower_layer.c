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

void sc_lower_forget_layer(struct sc_lowering *l, int layer)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        l->layers[layer].slot[i].whole = SC_NONE;
}

const struct sc_activations *sc_lower_slot(struct sc_lowering *l, int layer, enum sc_slot which,
                                           enum sc_lower_name name, enum sc_pass pass,
                                           enum sc_dtype dtype, int64_t rows_a_token, int64_t cols)
{
    struct sc_activations *at = &l->layers[layer].slot[which];
    if (at->whole == SC_NONE)
        *at = sc_lower_activations(l, sc_lower_label(l, name, layer, pass, -1), dtype, rows_a_token,
                                   cols);
    return at;
}

uint32_t sc_lower_made(const struct sc_lowering *l, int layer, enum sc_slot which, int piece)
{
    return l->layers[layer].slot[which].first_piece + (uint32_t)piece;
}

static uint32_t tensor(struct sc_lowering *l, int layer, enum sc_slot which,
                       enum sc_lower_name name, enum sc_pass pass, int64_t cols, int piece)
{
    return sc_lower_slot(l, layer, which, name, pass, l->activation, 1, cols)->first_piece +
           (uint32_t)piece;
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

uint32_t sc_lower_dropout_site(int layer, int which)
{
    return (uint32_t)layer * 4 + (uint32_t)which;
}

bool sc_lower_mask_saved(const struct sc_lowering *l, enum sc_pass pass)
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
    if (probability > 0 && sc_lower_mask_saved(l, (enum sc_pass)label.pass)) {
        struct sc_activations *at = &l->layers[label.layer].slot[mask];
        if (at->whole == SC_NONE)
            *at = sc_lower_activations(l, plain, SC_UINT8, 1, l->hidden);
        saved = at->first_piece + (uint32_t)piece;
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
    sc_lower_in(l, SC_ROLE_DY, l->residual_gradient.first_piece + (uint32_t)piece);
    if (l->plan->dropout.mask == SC_MASK_SAVED)
        sc_lower_in(l, SC_ROLE_MASK, sc_lower_made(l, label.layer, mask, piece));
    else
        sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_DX, at->first_piece + (uint32_t)piece);
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

static void attention_in_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t qkv = tensor(l, layer, SLOT_QKV, N_QKV, pass, l->qkv, piece);
    uint32_t o = tensor(l, layer, SLOT_O, N_ATTENTION, pass, l->q, piece);
    sc_lower_linear(l, sc_lower_label(l, N_QKV, layer, pass, piece),
                    sc_lower_made(l, layer, SLOT_NORM1, piece), p->qkv, p->qkv_bias, qkv);
    rope(l, sc_lower_label(l, N_ROPE, layer, pass, piece), qkv, false);
    sc_lower_attention(l, sc_lower_label(l, N_ATTENTION, layer, pass, piece), qkv, o);
}

static void attention_in_backward(struct sc_lowering *l, int layer, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    const enum sc_pass pass = SC_PASS_BACKWARD;
    uint32_t qkv = sc_lower_made(l, layer, SLOT_QKV, piece),
             o = sc_lower_made(l, layer, SLOT_O, piece);
    uint32_t gradient_o = sc_lower_made(l, layer, SLOT_DO, piece);
    uint32_t dqkv = tensor(l, layer, SLOT_DQKV, N_QKV, pass, l->qkv, piece);
    sc_lower_attention_backward(l, sc_lower_label(l, N_ATTENTION, layer, pass, piece), qkv, o,
                                gradient_o, dqkv);
    rope(l, sc_lower_label(l, N_ROPE, layer, pass, piece), dqkv, true);
    sc_lower_column_parallel_backward(
        l, sc_lower_label(l, N_QKV, layer, pass, piece), dqkv,
        sc_lower_made(l, layer, SLOT_NORM1, piece), p->qkv, p->qkv_bias,
        tensor(l, layer, SLOT_DN1, N_ATTENTION_NORM, pass, l->hidden, piece), l->tensor);
}

static void mlp_in_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t u = tensor(l, layer, SLOT_U, N_UP, pass, l->up, piece);
    uint32_t a = tensor(l, layer, SLOT_A, N_MLP_ACTIVATION, pass, l->ffn, piece);
    sc_lower_linear(l, sc_lower_label(l, N_UP, layer, pass, piece),
                    sc_lower_made(l, layer, SLOT_NORM2, piece), p->up, p->up_bias, u);
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
    uint32_t da = sc_lower_made(l, layer, SLOT_DA, piece), du = da;
    bool gated = sc_activation_gated(l->model->activation);
    if (gated)
        du = tensor(l, layer, SLOT_DU, N_UP, pass, l->up, piece);
    struct sc_op *op = sc_lower_op(l, SC_ACTIVATION_BACKWARD,
                                   sc_lower_label(l, N_MLP_ACTIVATION, layer, pass, piece));
    op->p.activation.kind = (uint8_t)l->model->activation;
    sc_lower_in(l, SC_ROLE_X, sc_lower_made(l, layer, SLOT_U, piece));
    if (gated) {
        sc_lower_in(l, SC_ROLE_DY, da);
        sc_lower_out(l, SC_ROLE_DX, du);
    } else {
        sc_lower_inout(l, SC_ROLE_DX, du);
    }
    sc_lower_column_parallel_backward(
        l, sc_lower_label(l, N_UP, layer, pass, piece), du,
        sc_lower_made(l, layer, SLOT_NORM2, piece), p->up, p->up_bias,
        tensor(l, layer, SLOT_DN2, N_MLP_NORM, pass, l->hidden, piece), l->tensor);
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
    return l->x[layer].first_piece + (uint32_t)piece;
}

static void norm1_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    if (layer == l->model->layers) {
        norm_forward(l, sc_lower_label(l, N_FINAL_NORM, -1, pass, piece),
                     layer_input(l, layer, piece), l->final_norm, l->final_norm_bias,
                     l->final_out.first_piece + (uint32_t)piece,
                     l->final_stat.first_piece + (uint32_t)piece);
        return;
    }
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t y = tensor(l, layer, SLOT_NORM1, N_ATTENTION_NORM, pass, l->hidden, piece);
    uint32_t stat =
        sc_lower_slot(l, layer, SLOT_STAT1, N_ATTENTION_NORM, pass, SC_FP32, 1, 2)->first_piece +
        (uint32_t)piece;
    norm_forward(l, sc_lower_label(l, N_ATTENTION_NORM, layer, pass, piece),
                 layer_input(l, layer, piece), p->norm1, p->norm1_bias, y, stat);
}

static void norm2_forward(struct sc_lowering *l, int layer, enum sc_pass pass, int piece)
{
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    uint32_t y = tensor(l, layer, SLOT_NORM2, N_MLP_NORM, pass, l->hidden, piece);
    uint32_t stat =
        sc_lower_slot(l, layer, SLOT_STAT2, N_MLP_NORM, pass, SC_FP32, 1, 2)->first_piece +
        (uint32_t)piece;
    norm_forward(l, sc_lower_label(l, N_MLP_NORM, layer, pass, piece),
                 sc_lower_made(l, layer, SLOT_Y1, piece), p->norm2, p->norm2_bias, y, stat);
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
                    sc_lower_made(l, layer, SLOT_O, piece), p->projection, out);
        break;
    case PART_END1:
        out = tensor(l, layer, SLOT_Y1, N_ATTENTION_RESIDUAL, pass, l->hidden, piece);
        residual_forward(l, sc_lower_label(l, N_ATTENTION_RESIDUAL, layer, pass, piece), SLOT_MASK1,
                         sc_lower_dropout_site(layer, 1), sc_lower_made(l, layer, SLOT_Z1, piece),
                         p->projection_bias, layer_input(l, layer, piece), out);
        break;
    case PART_NORM2:
        norm2_forward(l, layer, pass, piece);
        break;
    case PART_IN2:
        mlp_in_forward(l, layer, pass, piece);
        break;
    case PART_OUT2:
        out = tensor(l, layer, SLOT_Z2, N_DOWN, pass, l->hidden, piece);
        out_forward(l, sc_lower_label(l, N_DOWN, layer, pass, piece),
                    sc_lower_made(l, layer, SLOT_A, piece), p->down, out);
        break;
    case PART_END2:
        out = pass == SC_PASS_RECOMPUTE
                  ? tensor(l, layer, SLOT_X_AGAIN, N_MLP_RESIDUAL, pass, l->hidden, piece)
                  : layer_input(l, layer + 1, piece);
        residual_forward(l, sc_lower_label(l, N_MLP_RESIDUAL, layer, pass, piece), SLOT_MASK2,
                         sc_lower_dropout_site(layer, 2), sc_lower_made(l, layer, SLOT_Z2, piece),
                         p->down_bias, sc_lower_made(l, layer, SLOT_Y1, piece), out);
        break;
    }
}

static void norm1_backward(struct sc_lowering *l, int layer, int piece)
{
    uint32_t x = layer_input(l, layer, piece),
             dx = l->residual_gradient.first_piece + (uint32_t)piece;
    if (layer == l->model->layers) {
        norm_backward(l, sc_lower_label(l, N_FINAL_NORM, -1, SC_PASS_BACKWARD, piece),
                      l->final_gradient.first_piece + (uint32_t)piece, x,
                      l->final_stat.first_piece + (uint32_t)piece, l->final_norm,
                      l->final_norm_bias, dx, false);
        return;
    }
    const struct sc_layer_parameters *p = &l->layer_parameters[layer];
    norm_backward(l, sc_lower_label(l, N_ATTENTION_NORM, layer, SC_PASS_BACKWARD, piece),
                  sc_lower_made(l, layer, SLOT_DN1, piece), x,
                  sc_lower_made(l, layer, SLOT_STAT1, piece), p->norm1, p->norm1_bias, dx, true);
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
                              sc_lower_made(l, layer, SLOT_DZ1, piece),
                              sc_lower_made(l, layer, SLOT_O, piece), p->projection,
                              p->projection_bias,
                              tensor(l, layer, SLOT_DO, N_ATTENTION, pass, l->q, piece));
        break;
    case PART_END1:
        residual_backward(l, sc_lower_label(l, N_ATTENTION_RESIDUAL, layer, pass, piece),
                          SLOT_MASK1, SLOT_DZ1, sc_lower_dropout_site(layer, 1),
                          p->projection_bias);
        break;
    case PART_NORM2:
        norm_backward(l, sc_lower_label(l, N_MLP_NORM, layer, pass, piece),
                      sc_lower_made(l, layer, SLOT_DN2, piece),
                      sc_lower_made(l, layer, SLOT_Y1, piece),
                      sc_lower_made(l, layer, SLOT_STAT2, piece), p->norm2, p->norm2_bias,
                      l->residual_gradient.first_piece + (uint32_t)piece, true);
        break;
    case PART_IN2:
        mlp_in_backward(l, layer, piece);
        break;
    case PART_OUT2:
        row_parallel_backward(l, sc_lower_label(l, N_DOWN, layer, pass, piece),
                              sc_lower_made(l, layer, SLOT_DZ2, piece),
                              sc_lower_made(l, layer, SLOT_A, piece), p->down, p->down_bias,
                              tensor(l, layer, SLOT_DA, N_MLP_ACTIVATION, pass, l->ffn, piece));
        break;
    case PART_END2:
        residual_backward(l, sc_lower_label(l, N_MLP_RESIDUAL, layer, pass, piece), SLOT_MASK2,
                          SLOT_DZ2, sc_lower_dropout_site(layer, 2), p->down_bias);
        break;
    }
}
