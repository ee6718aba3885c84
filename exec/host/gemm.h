/*
 * Matrix products on a team: C is split into one part a member, each a single-threaded library
 * call, because several ranks live in one process and a library's own threads know nothing of that.
 * fp32, row-major. All calls: no allocation of ours, cannot fail; sizes of 0 are allowed.
 */
#ifndef STEPCAST_EXEC_HOST_GEMM_H
#define STEPCAST_EXEC_HOST_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/host/team.h"

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
    float *bias_gradient; /* [m] (+)= sum over k of op(A)[m,k], `accumulate` as for C; optional;
                             the same bits for every team */
};

/* Runs it on a team (NULL: on the caller alone). A team of a given size gives the same bits always.
 */
void sc_gemm_run(struct sc_team *team, const struct sc_gemm *g);

/*
 * Products over a grid of up to three batch dimensions: product (i0, i1, i2) works at offset
 * i0 a[0] + i1 a[1] + i2 a[2] (elements) from g->a, and so on for b and c. Dimensions not needed
 * have count 1. Where a count > 1 has c offset 0, those products are summed into one C, in order
 * (key and value gradients of grouped heads). bias and bias_gradient must be NULL. Products are
 * dealt to members whole.
 */
struct sc_gemm_batch {
    int64_t count[3];
    int64_t a[3], b[3], c[3];
};
void sc_gemm_run_batch(struct sc_team *team, const struct sc_gemm *g,
                       const struct sc_gemm_batch *batch);

/* The library in use with its version, for traces: "onednn 2.6.3". Static. */
const char *sc_gemm_library(void);

#endif
