/*
 * Core attention of a layer, for one piece: fused (one kernel, which keeps a log-sum-exp a row), or
 * as products, softmax and dropout over score matrices that are kept for backward.
 */
#include <math.h>

#include "plans/lowering.h"

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
    op->p.attention.site = sc_lower_dropout_site(label.layer, 0);
    op->p.attention.scale = 1;
    return op;
}

static float softmax_scale(const struct sc_lowering *l)
{
    return (float)(1.0 / sqrt((double)l->head_size));
}

enum packed { PACKED_Q, PACKED_K, PACKED_V };

/* The query, key or value columns of packed rows. */
static uint32_t packed_view(struct sc_lowering *l, struct sc_label label, uint32_t qkv,
                            enum packed which)
{
    int64_t first[] = {0, l->q, l->q + l->kv}, cols[] = {l->q, l->kv, l->kv};
    int64_t rows = sc_lower_batch(l, label.piece) * l->sequence;
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
    op->p.dropout.site = sc_lower_dropout_site(layer, 0);
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
        sc_lower_slot(l, layer, SLOT_SCORES, N_SCORES, pass, l->activation, l->heads, l->sequence)
            ->first_piece +
        (uint32_t)piece;
    label.name = l->name[N_SCORES];
    batched_gemm(l, label, packed_view(l, label, qkv, PACKED_Q), false,
                 packed_view(l, label, qkv, PACKED_K), true, scores);
    label.name = l->name[N_SOFTMAX];
    attention_op(l, SC_SOFTMAX, label)->p.attention.scale = softmax_scale(l);
    sc_lower_inout(l, SC_ROLE_Y, scores);
    uint32_t used = scores;
    if (l->plan->dropout.attention > 0) {
        label.name = l->name[N_ATTENTION_DROPOUT];
        used = sc_lower_slot(l, layer, SLOT_SCORES_DROPPED, N_ATTENTION_DROPOUT, pass,
                             l->activation, l->heads, l->sequence)
                   ->first_piece +
               (uint32_t)piece;
        uint32_t mask = SC_NONE;
        if (sc_lower_mask_saved(l, pass))
            mask = sc_lower_slot(l, layer, SLOT_SCORES_MASK, N_ATTENTION_DROPOUT, pass, SC_UINT8,
                                 l->heads, l->sequence)
                       ->first_piece +
                   (uint32_t)piece;
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
    uint32_t scores = sc_lower_made(l, layer, SLOT_SCORES, piece);
    uint32_t used = drops ? sc_lower_made(l, layer, SLOT_SCORES_DROPPED, piece) : scores;
    uint32_t dscores = sc_lower_slot(l, layer, SLOT_DSCORES, N_SCORES, SC_PASS_BACKWARD,
                                     l->activation, l->heads, l->sequence)
                           ->first_piece +
                       (uint32_t)piece;
    label.name = l->name[N_CONTEXT];
    batched_gemm(l, label, gradient_o, false, packed_view(l, label, qkv, PACKED_V), true, dscores);
    batched_gemm(l, label, used, true, gradient_o, false, packed_view(l, label, dqkv, PACKED_V));
    if (drops) {
        label.name = l->name[N_ATTENTION_DROPOUT];
        struct sc_op *op = sc_lower_op(l, SC_DROPOUT_BACKWARD, label);
        scores_dropout_parameters(l, op, layer, piece);
        if (l->plan->dropout.mask == SC_MASK_SAVED)
            sc_lower_in(l, SC_ROLE_MASK, sc_lower_made(l, layer, SLOT_SCORES_MASK, piece));
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
    uint32_t lse = sc_lower_slot(l, label.layer, SLOT_LSE, N_ATTENTION, (enum sc_pass)label.pass,
                                 SC_FP32, l->heads, 1)
                       ->first_piece +
                   (uint32_t)piece;
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
    sc_lower_in(l, SC_ROLE_LSE, sc_lower_made(l, label.layer, SLOT_LSE, piece));
    if (l->plan->dropout.attention > 0)
        sc_lower_in(l, SC_ROLE_STATE, l->state);
    sc_lower_out(l, SC_ROLE_DQKV, dqkv);
}

void sc_lower_attention(struct sc_lowering *l, struct sc_label label, uint32_t qkv, uint32_t o)
{
    if (l->plan->attention.kernel == SC_ATTENTION_FUSED)
        fused_forward(l, label, qkv, o);
    else
        unfused_forward(l, label, qkv, o);
}

void sc_lower_attention_backward(struct sc_lowering *l, struct sc_label label, uint32_t qkv,
                                 uint32_t o, uint32_t gradient_o, uint32_t dqkv)
{
    if (l->plan->attention.kernel == SC_ATTENTION_FUSED)
        fused_backward(l, label, qkv, o, gradient_o, dqkv);
    else
        unfused_backward(l, label, qkv, gradient_o, dqkv);
}
