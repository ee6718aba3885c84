/*
 * The matrix-product library underneath gemm.c: found when first asked for, by name, so that a
 * build needs none and start-up without GEMMs loads none. In order of preference (measured on a Zen
 * 5 core, fp32, GFLOP/s of a peak near 270: oneDNN 230-250, OpenBLAS on SkylakeX kernels 240-250
 * and on Haswell kernels 125, BLIS 205-240; oneDNN is the fastest on the short products of
 * attention and needs no hint about the processor): onednn    libdnnl, called with one OpenMP
 * thread openblas  libopenblas, one thread. OpenBLAS reads OPENBLAS_CORETYPE when it is loaded;
 * where that is not set and the processor has AVX-512, SkylakeX is chosen, since releases that do
 *             not know a processor fall back to Haswell.
 *   plain     a C loop, always there
 * The environment variable STEPCAST_GEMM names one of them instead; a name that this machine does
 * not have is passed over (the trace says which library ran).
 */
#ifndef STEPCAST_EXEC_HOST_BLAS_H
#define STEPCAST_EXEC_HOST_BLAS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * C[m,n] = alpha op(A) op(B) + (accumulate ? C : 0), row-major, fp32, on the calling thread alone;
 * op transposes: op(A) is [m,k] with A stored [k,m] if transpose_a. Usable from any number of
 * threads at once. m, n, k > 0 and below 2^31.
 */
struct sc_sgemm {
    bool transpose_a, transpose_b, accumulate;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    float alpha;
    const float *a, *b;
    float *c;
};

struct sc_blas {
    void (*sgemm)(const struct sc_sgemm *g);
    char name[64]; /* "onednn 2.6.3", "openblas 0.3.21 SkylakeX", "plain" */
};

/* The library in use. Cannot fail; the result is static. Thread-safe. */
const struct sc_blas *sc_blas_get(void);

/* A named one ("onednn", "openblas", "plain"), NULL if this machine does not have it. */
const struct sc_blas *sc_blas_find(const char *name);

#endif
