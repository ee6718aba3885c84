/*
 * What every operation is made of, on any machine: operands to the arguments of kernels, products
 * and collectives. Kinds that need more than kernels, copies and clearing (products, fused
 * attention, collectives, data, read_out) are each backend's own; what they work on is described
 * here.
 */
#ifndef STEPCAST_EXEC_OP_FUNCTIONS_H
#define STEPCAST_EXEC_OP_FUNCTIONS_H

#include "exec/op_call.h"
#include "exec/gemm_shape.h"

typedef enum sc_status sc_op_fn(const struct sc_call *call, struct sc_error *err);

/* The function of a kind that is kernels, copies and clearing alone; NULL for the others. */
sc_op_fn *sc_op_function(enum sc_op_kind kind);

/* op_layer.c */
sc_op_fn sc_op_norm, sc_op_norm_backward, sc_op_activation, sc_op_activation_backward,
    sc_op_softmax, sc_op_softmax_backward, sc_op_add, sc_op_scale, sc_op_cast, sc_op_reduce_rows,
    sc_op_rope, sc_op_dropout, sc_op_dropout_backward;
/* op_loss.c */
sc_op_fn sc_op_cross_entropy_max, sc_op_cross_entropy_sum, sc_op_cross_entropy_loss,
    sc_op_embedding, sc_op_embedding_backward;
/* op_step.c */
sc_op_fn sc_op_norm_squares, sc_op_adam, sc_op_scalar, sc_op_copy;
/* op_data.c: next_batch, done at once by the thread that calls. */
sc_op_fn sc_op_next_batch;
/* op_initialize.c: zeros, or the parameters, drawn or copied from full tensors. */
sc_op_fn sc_op_initialize;

/* Bytes of scratch that the function of an operation needs. */
size_t sc_op_scratch(const struct sc_class *class, const struct sc_list *list,
                     const struct sc_op *op);
size_t sc_op_norm_backward_scratch(const struct sc_value *x);
size_t sc_op_norm_squares_scratch(const struct sc_value *gradient);

/* The product of a gemm. Where its bias gradient cannot go with it (one of the two starts, the
 * other adds) bias_gradient is NULL and *apart holds the sums to make, else apart->data is NULL. */
void sc_op_gemm(const struct sc_call *call, struct sc_gemm *gemm, struct sc_view *apart);
void sc_op_batched_gemm(const struct sc_call *call, struct sc_gemm *gemm,
                        struct sc_gemm_batch *batch);

/* What a collective works on: x and y with in-place shards resolved (the shard that a rank gives or
 * keeps lies in the whole at its position in the group), and the bytes of the whole tensor. */
struct sc_op_collective {
    enum sc_op_kind kind;
    enum sc_reduction reduction;
    const void *x;
    void *y;
    size_t bytes, shard; /* of the whole; of one member's part */
};
struct sc_op_collective sc_op_collective(const struct sc_call *call);

#endif
