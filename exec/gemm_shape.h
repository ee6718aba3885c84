/* A matrix product as every backend takes it: fp32, row-major. */
#ifndef STEPCAST_EXEC_GEMM_SHAPE_H
#define STEPCAST_EXEC_GEMM_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * C[m,n] = alpha op(A) op(B) + (accumulate ? C : 0) [+ bias].
 * op(A) is [m,k]: A is stored [m,k] with lda >= k, or [k,m] with lda >= m if transpose_a; B alike,
 * op(B) is [k,n]. ldc >= n. The three uses of a linear layer with weights W stored [out,in] and T
 * rows x, y:
 *   forward          y = x W^T + b      m T, n out, k in, transpose_b, bias b
 *   backward-data    dx = dy W          m T, n in, k out
 *   backward-weight  dW (+)= dy^T x     m out, n in, k T, transpose_a, bias_gradient
 */
struct sc_gemm {
    bool transpose_a, transpose_b, accumulate;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    float alpha;
    const float *a, *b;
    float *c;
    const float *bias;    /* [n], added to every row; optional */
    float *bias_gradient; /* [m] (+)= sum over k of op(A)[m,k], `accumulate` as for C; optional */
};

/*
 * Products over a grid of up to three batch dimensions: product (i0, i1, i2) works at offset
 * i0 a[0] + i1 a[1] + i2 a[2] (elements) from g->a, and so on for b and c. Dimensions not needed
 * have count 1. Where a count > 1 has c offset 0, those products are summed into one C, in order
 * (key and value gradients of grouped heads). bias and bias_gradient must be NULL.
 */
struct sc_gemm_batch {
    int64_t count[3];
    int64_t a[3], b[3], c[3];
};

#endif
