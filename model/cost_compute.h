/*
 * Work on the device's units and memory. Every time is fixed + max(arithmetic, bytes): the roofline
 * (Williams, Waterman, Patterson, CACM 2009), with the shares of peak and bandwidth and the fixed
 * launch cost that the profile has from calibration.
 */
#ifndef STEPCAST_MODEL_COST_COMPUTE_H
#define STEPCAST_MODEL_COST_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/cost.h"
#include "model/dtype.h"
#include "model/hardware.h"

/* batch products out[m, n] (+)= a[m, k] b[k, n]. */
struct sc_gemm_work {
    int64_t batch, m, n, k;
    enum sc_dtype input, output; /* the inputs' type sets the rate */
    bool accumulate;             /* the output is read as well */
    bool transpose_a;            /* a is stored [k, m] */
    bool transpose_b;            /* b is stored [n, k] */
    bool page_stride;            /* a transposed a's rows are whole pages of 4 KiB apart */
    double epilogue_bytes;       /* further bytes that a fused epilogue reads or writes */
};

/* FLOP: 2 batch m n k. Bytes: batch ((m k + k n) input + m n output (twice if accumulate)). */
double sc_gemm_flops(const struct sc_gemm_work *work);
double sc_gemm_bytes(const struct sc_gemm_work *work);
/* Fails when the profile states no peak or no share of it for the input type. */
enum sc_status sc_cost_gemm(const struct sc_hardware *hardware, const struct sc_gemm_work *work,
                            struct sc_cost *out, struct sc_error *err);

/* One fused attention over `batch` sequences and the heads of this rank. */
struct sc_attention_work {
    int64_t batch, query_heads, key_value_heads, head_size;
    int64_t query_length, key_length;
    bool causal;   /* half of the score matrix is skipped; needs query_length <= key_length */
    bool backward; /* five products against two (scores are computed again) */
    enum sc_dtype dtype;
};

/* FLOP: forward 4 batch heads pairs head_size, backward 10; pairs = query x key length, of a causal
 * one q k - q (q - 1) / 2 less the diagonal's half: q k - q^2 / 2 (the usual half for q = k).
 * Bytes: each of q, k, v, out once (backward: also their gradients) and the fp32 log-sum-exp. */
double sc_attention_flops(const struct sc_attention_work *work);
double sc_attention_bytes(const struct sc_attention_work *work);
enum sc_status sc_cost_attention(const struct sc_hardware *hardware,
                                 const struct sc_attention_work *work, struct sc_cost *out,
                                 struct sc_error *err);

/* Norms, activations, dropout, casts, softmax, ...: bytes read and written, elements touched.
 * `kind` is the operation kind's name, for corrections that the profile may have. */
void sc_cost_memory_bound(const struct sc_hardware *hardware, const char *kind, double bytes,
                          double elements, struct sc_cost *out);

/* Adam over `parameters` of this rank. On the device: `bytes` read and written. On the host: the
 * profile's host_adam.bytes_per_parameter, at its share of host bandwidth; `bytes` is not used. */
enum sc_status sc_cost_adam(const struct sc_hardware *hardware, enum sc_hw_place place,
                            double parameters, double bytes, struct sc_cost *out,
                            struct sc_error *err);

#endif
