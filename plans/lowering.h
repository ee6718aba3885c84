/*
 * What the lowering's files share: the state of one lowering, and who calls whom.
 *
 *   lower.c            entry; streams, groups, the order of a step
 *   lower_parameters.c tensors, blocks, the flat layout and its buckets
 *   lower_order.c      the order of parts: plain, Domino; backward is its mirror image; recompute
 *   lower_layer.c      what the parts of a layer are, forward and backward
 *   lower_attention.c  core attention, fused and unfused
 *   lower_linear.c     linear products and their reductions
 *   lower_head.c       embedding, head and loss
 *   lower_zero.c       gradient buckets: when they are reduced, who keeps what; parameter gathers
 *   lower_optimizer.c  norm, clipping, Adam
 */
#ifndef STEPCAST_PLANS_LOWERING_H
#define STEPCAST_PLANS_LOWERING_H

#include "plans/plan.h"
#include "plans/program.h"

#define SC_NONE UINT32_MAX

enum { SC_MAX_PIECES = 64 };

/* The names that labels use, interned once. */
#define SC_LOWER_NAMES(X)                                                                          \
    X(N_INPUT, "input")                                                                            \
    X(N_STATE, "state")                                                                            \
    X(N_EMBEDDING, "embedding")                                                                    \
    X(N_POSITION, "embedding.position")                                                            \
    X(N_EMBEDDING_DROPOUT, "embedding.dropout")                                                    \
    X(N_ATTENTION_NORM, "attention.norm")                                                          \
    X(N_QKV, "attention.qkv")                                                                      \
    X(N_ROPE, "attention.rope")                                                                    \
    X(N_ATTENTION, "attention.core")                                                               \
    X(N_SCORES, "attention.scores")                                                                \
    X(N_SOFTMAX, "attention.softmax")                                                              \
    X(N_ATTENTION_DROPOUT, "attention.dropout")                                                    \
    X(N_CONTEXT, "attention.context")                                                              \
    X(N_PROJECTION, "attention.projection")                                                        \
    X(N_ATTENTION_RESIDUAL, "attention.residual")                                                  \
    X(N_MLP_NORM, "mlp.norm")                                                                      \
    X(N_UP, "mlp.up")                                                                              \
    X(N_MLP_ACTIVATION, "mlp.activation")                                                          \
    X(N_DOWN, "mlp.down")                                                                          \
    X(N_MLP_RESIDUAL, "mlp.residual")                                                              \
    X(N_FINAL_NORM, "final_norm")                                                                  \
    X(N_HEAD, "head")                                                                              \
    X(N_LOSS_MAX, "loss.max")                                                                      \
    X(N_LOSS_SUM, "loss.sum")                                                                      \
    X(N_LOSS_TARGET, "loss.target")                                                                \
    X(N_LOSS, "loss")                                                                              \
    X(N_RESIDUAL_GRADIENT, "residual_gradient")                                                    \
    X(N_GRADIENTS, "gradients")                                                                    \
    X(N_PARAMETERS, "parameters")                                                                  \
    X(N_MASTER, "master_parameters")                                                               \
    X(N_MOMENT1, "optimizer.m")                                                                    \
    X(N_MOMENT2, "optimizer.v")                                                                    \
    X(N_NORM, "gradient_norm")                                                                     \
    X(N_CLIP, "gradient_clip")                                                                     \
    X(N_OPTIMIZER, "optimizer")

enum sc_lower_name {
#define SC_LOWER_NAME_ENUM(name, text) name,
    SC_LOWER_NAMES(SC_LOWER_NAME_ENUM)
#undef SC_LOWER_NAME_ENUM
        SC_LOWER_NAME_COUNT
};

/* A tensor of activations: all rows of the micro-batch, and its pieces' views, which are values in
 * a row: piece i is first_piece + i. */
struct sc_activations {
    uint32_t whole, first_piece;
};

/* Activations of a layer. In: input of a sub-layer; see lower_layer.c for who writes what. */
enum sc_slot {
    SLOT_NORM1,
    SLOT_STAT1,
    SLOT_QKV,
    SLOT_LSE,
    SLOT_SCORES, /* unfused: probabilities after the softmax */
    SLOT_SCORES_DROPPED,
    SLOT_SCORES_MASK,
    SLOT_O,
    SLOT_Z1,
    SLOT_MASK1,
    SLOT_Y1,
    SLOT_NORM2,
    SLOT_STAT2,
    SLOT_U,
    SLOT_A,
    SLOT_Z2,
    SLOT_MASK2,
    SLOT_X_AGAIN, /* recompute writes the layer's output here */
    SLOT_DZ2,
    SLOT_DA,
    SLOT_DU,
    SLOT_DN2,
    SLOT_DZ1,
    SLOT_DO,
    SLOT_DSCORES,
    SLOT_DQKV,
    SLOT_DN1,
    SLOT_COUNT
};

struct sc_layer_values {
    struct sc_activations slot[SLOT_COUNT];
};

struct sc_layer_parameters {
    uint32_t norm1, norm1_bias, qkv, qkv_bias, projection, projection_bias;
    uint32_t norm2, norm2_bias, up, up_bias, down, down_bias;
};

/* What lower_parameters.c knows of a parameter beside sc_program.parameters. */
struct sc_parameter_state {
    uint32_t bucket;
    uint32_t contributions; /* writes of its gradient in a micro-batch */
    uint32_t written;       /* so far in the step */
};

struct sc_bucket {
    uint32_t first, parameters;   /* in sc_program.parameters, contiguous */
    int64_t flat, elements;       /* in the flat buffers, padded */
    uint32_t waiting;             /* parameters whose gradient is not final yet */
    bool reduced;                 /* its reduction is in the list */
    uint32_t first_range, ranges; /* in sc_program.ranges, in elements of the bucket */
    uint32_t gradient, parameter, master, m, v; /* values; SC_NONE without */
    uint32_t gradient_shard, parameter_shard;
};

/* A part of a layer, for one piece: what lower_order puts in order. */
enum sc_part_kind {
    PART_NORM1, /* of the layer; layer = layers: the final norm */
    PART_IN1,   /* qkv, rope, attention */
    PART_OUT1,  /* projection, all-reduce */
    PART_END1,  /* bias, dropout, residual */
    PART_NORM2,
    PART_IN2,  /* up, activation */
    PART_OUT2, /* down, all-reduce */
    PART_END2
};

struct sc_part {
    uint8_t kind;
    int16_t layer, piece;
};

/* Where a layer's parts stand in the order. */
struct sc_layer_span {
    uint32_t first, end;
};

struct sc_lowering {
    const struct sc_plan *plan;
    const struct sc_model *model;
    struct sc_program *program;
    struct sc_class *class;
    struct sc_list *list;
    struct sc_arena arena; /* released when the lowering ends */
    uint32_t name[SC_LOWER_NAME_COUNT];

    /* Sizes on a rank. */
    int64_t tensor, data, micro_batches, pieces;
    int64_t rows, sequence, hidden, heads, kv_heads, head_size, q, kv, qkv, ffn, up;
    int64_t vocab; /* columns of the head */
    int64_t vocab_ranks;
    enum sc_dtype activation, gradient;

    int data_stream, copy_in, copy_out, compute, tensor_comm, data_comm;
    int tensor_group, data_group;

    /* Parameters. */
    struct sc_layer_parameters *layer_parameters; /* [layers] */
    uint32_t embedding, position, final_norm, final_norm_bias, head;
    struct sc_parameter_state *states; /* one a parameter */
    SC_ARRAY(struct sc_bucket) buckets;
    size_t next_bucket; /* first that is not reduced yet */
    int64_t flat_elements;
    uint32_t gradient_flat, parameter_flat, master_flat, m_flat, v_flat;

    /* The micro-batch in hand. */
    int micro_batch;
    struct sc_layer_values *layers; /* [layers] */
    struct sc_activations *x;       /* [layers + 1]: input of every layer, output of the last */
    struct sc_activations final_stat, final_out, final_gradient, residual_gradient;
    struct sc_activations embedding_mask;
    uint32_t tokens, targets;

    uint32_t state, loss, norm;
    uint32_t backward_done, tensor_order, optimizer_done, parameters_ready; /* tokens */

    struct sc_part *order; /* forward order of a micro-batch */
    size_t parts;
    struct sc_layer_span *spans; /* [layers] */
};

static inline struct sc_label sc_lower_label(const struct sc_lowering *l, enum sc_lower_name name,
                                             int layer, enum sc_pass pass, int piece)
{
    return (struct sc_label){.name = l->name[name],
                             .layer = (int16_t)layer,
                             .micro_batch = (int16_t)(l->micro_batches > 1 ? l->micro_batch : -1),
                             .piece = (int16_t)(l->pieces > 1 ? piece : -1),
                             .pass = (uint16_t)pass};
}

/* lower.c: helpers for the other files */
/* A label with everything but the name not applying. */
struct sc_label sc_lower_plain_label(const struct sc_lowering *l, enum sc_lower_name name);
/* Appends an op to the step list on the compute stream. */
struct sc_op *sc_lower_op(struct sc_lowering *l, enum sc_op_kind kind, struct sc_label label);
void sc_lower_in(struct sc_lowering *l, enum sc_role role, uint32_t value);
void sc_lower_out(struct sc_lowering *l, enum sc_role role, uint32_t value);
void sc_lower_inout(struct sc_lowering *l, enum sc_role role, uint32_t value);
/* New step buffer [rows_of_micro_batch * rows_a_token, cols] with its piece views. */
struct sc_activations sc_lower_activations(struct sc_lowering *l, struct sc_label label,
                                           enum sc_dtype dtype, int64_t rows_a_token, int64_t cols);
/* All-reduce over the tensor group on its stream; nothing where the group is one rank. */
void sc_lower_tensor_all_reduce(struct sc_lowering *l, uint32_t value, enum sc_reduction reduction,
                                struct sc_label label, bool ordered);
/* The number of the first row (or sequence) of a piece in the global batch. */
struct sc_index sc_lower_first_row(const struct sc_lowering *l, int piece);
struct sc_index sc_lower_first_sequence(const struct sc_lowering *l, int piece);
/* Number of pieces, 1 where `piece` is -1 (the whole micro-batch). */
int64_t sc_lower_batch(const struct sc_lowering *l, int piece);

/* lower_parameters.c */
enum sc_status sc_lower_parameters(struct sc_lowering *l, struct sc_error *err);
uint32_t sc_lower_parameter(const struct sc_lowering *l, uint32_t parameter);
/* Adds the gradient operand of a parameter: written by the first contribution of a step,
 * accumulated by later ones. */
void sc_lower_gradient(struct sc_lowering *l, enum sc_role role, uint32_t parameter);
/* The same for a view of the gradient. Either may make a bucket final: when the op has all its
 * operands, sc_lower_gradients_final is called. */
void sc_lower_gradient_view(struct sc_lowering *l, enum sc_role role, uint32_t parameter,
                            uint32_t view);

/* lower_linear.c */
/* Operands that a model may lack: nothing is added for SC_NONE. */
void sc_lower_parameter_in(struct sc_lowering *l, enum sc_role role, uint32_t parameter);
void sc_lower_gradient_out(struct sc_lowering *l, enum sc_role role, uint32_t parameter);
/* out[rows, outputs] = in[rows, inputs] W^T + bias */
void sc_lower_linear(struct sc_lowering *l, struct sc_label label, uint32_t in, uint32_t weight,
                     uint32_t bias, uint32_t out);
/* din[rows, inputs] = dout[rows, outputs] W */
void sc_lower_linear_data(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                          uint32_t weight, uint32_t din);
/* dW[outputs, inputs] (+)= dout^T in, dbias (+)= column sums of dout. `ordered`: not before the
 * all-reduce issued last has ended. */
void sc_lower_linear_weight(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                            uint32_t in, uint32_t weight, uint32_t bias, bool ordered);
/* A product whose outputs are split over `ranks` of the tensor group, backward: the input's
 * gradient is a partial sum, reduced behind the weight gradient or, where the plan says so, before
 * it. */
void sc_lower_column_parallel_backward(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                                       uint32_t in, uint32_t weight, uint32_t bias, uint32_t din,
                                       int64_t ranks);

/* lower_order.c */
enum sc_status sc_lower_order(struct sc_lowering *l, struct sc_error *err);
void sc_lower_forward(struct sc_lowering *l);
void sc_lower_backward(struct sc_lowering *l);

/* lower_layer.c */
void sc_lower_part_forward(struct sc_lowering *l, struct sc_part part, enum sc_pass pass);
void sc_lower_part_backward(struct sc_lowering *l, struct sc_part part);
void sc_lower_forget_layer(struct sc_lowering *l, int layer);
/* The activations in a slot of a layer, made when first asked for; a piece of those made before. */
const struct sc_activations *sc_lower_slot(struct sc_lowering *l, int layer, enum sc_slot which,
                                           enum sc_lower_name name, enum sc_pass pass,
                                           enum sc_dtype dtype, int64_t rows_a_token, int64_t cols);
uint32_t sc_lower_made(const struct sc_lowering *l, int layer, enum sc_slot which, int piece);
/* Every place that drops has its own number: 0 the attention, 1 and 2 the residuals of a layer. */
uint32_t sc_lower_dropout_site(int layer, int which);
/* Whether a forward op of this pass keeps its mask for backward. */
bool sc_lower_mask_saved(const struct sc_lowering *l, enum sc_pass pass);

/* lower_attention.c */
void sc_lower_attention(struct sc_lowering *l, struct sc_label label, uint32_t qkv, uint32_t o);
void sc_lower_attention_backward(struct sc_lowering *l, struct sc_label label, uint32_t qkv,
                                 uint32_t o, uint32_t gradient_o, uint32_t dqkv);

/* lower_head.c */
void sc_lower_embedding(struct sc_lowering *l);
void sc_lower_head(struct sc_lowering *l); /* forward, loss and backward */
void sc_lower_embedding_backward(struct sc_lowering *l);

/* lower_zero.c: hooks */
/* Called behind an op that wrote gradients: reduces each bucket that became final. */
void sc_lower_gradients_final(struct sc_lowering *l);
/* Called behind the last backward op of the step. */
void sc_lower_reduce_rest(struct sc_lowering *l);
void sc_lower_gather_parameters(struct sc_lowering *l);

/* lower_optimizer.c */
void sc_lower_advance(struct sc_lowering *l);
void sc_lower_optimizer(struct sc_lowering *l);

#endif
