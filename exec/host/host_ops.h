/* The host's operations: one function a kind, by group; the table is in host_ops.c. */
#ifndef STEPCAST_EXEC_HOST_HOST_OPS_H
#define STEPCAST_EXEC_HOST_HOST_OPS_H

#include "exec/host/attention.h"
#include "exec/host/gemm.h"
#include "exec/host/host_rank.h"
#include "exec/host/team_kernels.h"
#include "model/architecture.h"
#include "plans/step_state.h"

typedef enum sc_status sc_host_op_fn(const struct sc_host_call *call, struct sc_error *err);

/* host_ops_product.c */
sc_host_op_fn sc_host_gemm, sc_host_batched_gemm, sc_host_attention, sc_host_attention_backward;
/* host_ops_layer.c */
sc_host_op_fn sc_host_norm, sc_host_norm_backward, sc_host_activation, sc_host_activation_backward,
    sc_host_softmax, sc_host_softmax_backward, sc_host_add, sc_host_scale, sc_host_cast,
    sc_host_reduce_rows, sc_host_rope, sc_host_dropout, sc_host_dropout_backward;
/* host_ops_loss.c */
sc_host_op_fn sc_host_cross_entropy_max, sc_host_cross_entropy_sum, sc_host_cross_entropy_loss,
    sc_host_embedding, sc_host_embedding_backward;
/* host_ops_step.c */
sc_host_op_fn sc_host_norm_squares, sc_host_adam, sc_host_scalar, sc_host_copy, sc_host_next_batch,
    sc_host_read_out, sc_host_host_wait;

size_t sc_host_norm_backward_scratch(const struct sc_value *x);
size_t sc_host_norm_squares_scratch(const struct sc_value *gradient);

/* Where a call's random words come from. */
struct sc_draw sc_host_draw(const struct sc_host_call *call, uint32_t site, float probability);
/* out[columns] (+)= sum over the rows of x. */
void sc_host_column_sums(const struct sc_host_call *call, const struct sc_host_view *x,
                         const struct sc_host_view *out);
int64_t sc_host_index(const struct sc_host_call *call, const struct sc_index *index);

#endif
