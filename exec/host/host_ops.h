/* The operations that the host does in its own way; the others are in exec/op_functions.h. */
#ifndef STEPCAST_EXEC_HOST_HOST_OPS_H
#define STEPCAST_EXEC_HOST_HOST_OPS_H

#include "exec/host/attention.h"
#include "exec/host/gemm.h"
#include "exec/host/host_rank.h"
#include "exec/host/team_kernels.h"
#include "exec/op_functions.h"

/* host_ops_product.c */
sc_op_fn sc_host_gemm, sc_host_batched_gemm, sc_host_attention, sc_host_attention_backward;
/* host_ops_step.c */
sc_op_fn sc_host_read_out, sc_host_host_wait;

#endif
