/*
 * Matrix products by cuBLASLt: what each product of a rank needs is found before the first step
 * (layouts, an algorithm, its workspace); a step only names addresses.
 *
 * cuBLASLt's matrices are column-major, ours are row-major: the same bytes read the other way are
 * the transposed matrix, so C^T = op(B)^T op(A)^T is what is asked for. fp32 throughout, without
 * TF32.
 */
#ifndef STEPCAST_EXEC_CUDA_CUDA_GEMM_H
#define STEPCAST_EXEC_CUDA_CUDA_GEMM_H

#include <cublasLt.h>

#include "exec/op_call.h"

/* One kind of product: equal for all operations with equal shapes and alignments. */
struct sc_cuda_product;

struct sc_cuda_products {
    cublasLtHandle_t handle;
    struct sc_cuda_product *items;
    size_t count, capacity;
    uint32_t *of_op; /* [operations of the step list] */
};

struct sc_device;

/* Plans all products of the step list; raises the workspace_bytes of streams to what they need. */
enum sc_status sc_cuda_open_products(struct sc_device *device, struct sc_error *err);
void sc_cuda_close_products(struct sc_device *device);

/* The operations (on call->where, a struct sc_cuda_stream). */
enum sc_status sc_cuda_gemm(const struct sc_call *call, struct sc_error *err);
enum sc_status sc_cuda_batched_gemm(const struct sc_call *call, struct sc_error *err);

#endif
