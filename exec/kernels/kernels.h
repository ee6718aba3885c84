/*
 * The kernels: everything that is no matrix product, compiled from one source (the .cu files of
 * this folder) by the C compiler for the host and by nvcc for CUDA devices.
 *
 * Common rules. Matrices are row-major, one row a token; a stride is the distance between rows in
 * elements. `void *` operands are stored as the build's element type (float), `float *` ones always
 * as float. Optional operands may be NULL. Where a comment says "in place", the two operands may be
 * the same buffer with the same stride; operands do not overlap otherwise. A kernel works on the
 * half-open range [begin, end) of what its comment calls the range; calls over a partition of the
 * range, in any order or at the same time, do the whole work, and (except where said) give the same
 * bits for every partition. Kernels allocate nothing and cannot fail.
 * `moves` is the memory traffic in elements unless said otherwise, for prices and for measurements.
 */
#ifndef STEPCAST_EXEC_KERNELS_KERNELS_H
#define STEPCAST_EXEC_KERNELS_KERNELS_H

#include <stdint.h>

#include "exec/kernels/kernel_list.h"
#include "plans/step_state.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Where random words come from: element i of the whole (unsplit) tensor uses word i % 4 of
 * sc_philox(seed, i / 4, site, step), whatever part of the tensor this rank holds.
 */
struct sc_draw {
    uint64_t seed;                     /* for dropout the state's is added */
    uint32_t site;                     /* which dropout or tensor: one number each */
    float probability;                 /* of dropping, in [0, 1); 0 draws nothing */
    const struct sc_step_state *state; /* its step goes into the counter; NULL: step 0 */
};

/* ---- normalisation ------------------------------------------------------------------------- */

enum sc_norm_kind { SC_KERNEL_LAYER_NORM, SC_KERNEL_RMS_NORM };

/*
 * norm_forward: y = (x - mean) rstd gamma + beta with rstd = 1 / sqrt(var + epsilon), var over the
 * row's columns (divided by columns); RMS: mean = 0 and var the mean of squares. stat [rows, 2]
 * gets mean (0 for RMS) and rstd. In place. Range: rows. Moves 2 rows columns.
 */
struct sc_norm_args {
    const void *x;
    void *y;
    const void *gamma; /* [columns] */
    const void *beta;  /* [columns], optional */
    float *stat;       /* [rows, 2] */
    int64_t columns, x_stride, y_stride;
    float epsilon;
    int32_t kind; /* enum sc_norm_kind */
};

/*
 * norm_backward: with g = dy gamma and z = (x - mean) rstd,
 *   dx (+)= rstd (g - mean(g) - z mean(g z))   (RMS: without mean(g)).
 * dx may be dy. Range: blocks of SC_NORM_BLOCK rows (the last one may be short), see
 * sc_norm_blocks. Block b leaves its sums of dy z and of dy in partial[b, 0..columns) and
 * partial[b, columns..2 columns); two reduce_rows calls over the blocks (stride 2 columns) make
 * dgamma and dbeta of them, in one order whatever the team. Moves 3 rows columns (4 with add).
 */
#define SC_NORM_BLOCK 32

struct sc_norm_backward_args {
    const void *dy, *x;
    const void *gamma;
    const float *stat;
    void *dx;
    float *partial; /* [sc_norm_blocks(rows), 2 columns] */
    int64_t rows, columns, dy_stride, x_stride, dx_stride;
    int32_t add; /* dx is added to */
    int32_t kind;
};

static inline int64_t sc_norm_blocks(int64_t rows)
{
    return (rows + SC_NORM_BLOCK - 1) / SC_NORM_BLOCK;
}

/* ---- activation ---------------------------------------------------------------------------- */

enum sc_activation_kind {
    SC_KERNEL_GELU_TANH,
    SC_KERNEL_GELU_ERF,
    SC_KERNEL_SWIGLU,
    SC_KERNEL_RELU
};

/*
 * activation_forward: y [rows, columns] = f(x). SwiGLU: x is [rows, 2 columns], gate then up, and
 * y = gate sigmoid(gate) up. In place (not SwiGLU). Range: rows. Moves 2 rows columns (SwiGLU 3).
 *
 * activation_backward: dx = dy f'(x); dx may be dy (not SwiGLU, whose dx is [rows, 2 columns] and
 * may be x). Range: rows. Moves 3 rows columns (SwiGLU 5).
 */
struct sc_activation_args {
    const void *x;
    const void *dy; /* backward */
    void *y;        /* forward */
    void *dx;       /* backward */
    int64_t columns, x_stride, y_stride, dy_stride, dx_stride;
    int32_t kind; /* enum sc_activation_kind */
};

/* ---- softmax of attention scores, unfused ---------------------------------------------------- */

/*
 * softmax_forward: y = softmax(scale x), scale > 0, over the first n columns of a row, 0 behind
 * them; n = columns, or with `causal` n = i + 1 + columns - queries for query i = row % queries. In
 * place. Range: rows (batch heads queries). Moves 2 rows columns.
 *
 * softmax_backward: dx = scale y (dy - sum(dy y)) in the same n columns, 0 behind; dx may be dy.
 * Range: rows. Moves 3 rows columns.
 */
struct sc_softmax_args {
    const void *x;
    const void *dy;                   /* backward */
    void *y;                          /* forward: result; backward: the forward's result, read */
    void *dx;                         /* backward */
    int64_t columns, queries, stride; /* one stride for all operands */
    float scale;
    int32_t causal;
};

/*
 * attention_dropout: y = keep x, keep = 0 or 1/(1-p). For [batch, heads, queries, columns] scores:
 * the element (b, head, i, j) has the global index
 *   ((batch_base + b) total_heads + head_base + head) queries + i) columns + j,
 * the same as in the fused kernel. Backward is the same call on the gradient. In place; mask, if
 * given, is written [rows, columns]. Range: rows (batch heads queries). Moves 2 rows columns.
 */
struct sc_attention_dropout_args {
    const void *x;
    void *y;
    uint8_t *mask; /* optional */
    int64_t heads, queries, columns, stride;
    int64_t batch_base, head_base, total_heads;
    struct sc_draw draw;
};

/* ---- the element-wise middle of fused attention (called by the host's sc_attention_*) ---------
 */

/*
 * attention_softmax: `scores` [rows, columns] holds q k^T scale of the queries first_query..; row r
 * sees the first n = first_query + r + 1 columns (columns must be >= n of the last row). On return
 * it holds the probabilities, with dropout applied, and 0 behind n; lse[r] = log sum exp. The
 * global index of (r, j) is index + r index_stride + j. In place. Range: rows.
 *
 * attention_gradient: `scores` as above, `dp` [rows, columns] = do v^T, delta[r] = sum(do o) of the
 * row. On return scores holds the dropped probabilities (for dv) and dp holds
 *   ds = p (keep dp - delta), p = exp(score - lse), 0 behind n. Range: rows.
 *
 * attention_delta: delta[r] = sum over columns of scores[r] dp[r] (here o and do). Range: rows.
 */
struct sc_attention_block_args {
    float *scores, *dp;
    float *lse;   /* [rows] */
    float *delta; /* [rows] */
    int64_t columns, stride, dp_stride, first_query;
    uint64_t index, index_stride;
    struct sc_draw draw;
};

/* ---- cross entropy over a vocabulary-parallel head ------------------------------------------- */

/*
 * The local columns are the global ones first_column..first_column+columns; those at vocab_size or
 * beyond are padding: probability 0, gradient 0. Targets are global; < 0 ignores the row.
 *
 * cross_entropy_max: maximum[r] = largest real local logit (-INFINITY if the rank has none).
 *   Moves rows columns.
 * cross_entropy_sum: with the global maximum: sum[r] = sum exp(logit - maximum) and
 *   target_logit[r] = the target's logit if it is local, else 0 (both are then summed over ranks).
 *   With `exponentials` the exp() are written there (may be the logits). Moves rows columns (2).
 * cross_entropy_loss: with global maximum, sum and target_logit: loss[r] = log sum + maximum -
 *   target_logit (0 where ignored) and gradient = scale (exp(logit - maximum) / sum - [c is
 * target]). `have_exponentials`: logits holds what cross_entropy_sum wrote. gradient may be logits;
 * both outputs are optional. Moves 2 rows columns. Range of all three: rows.
 */
struct sc_cross_entropy_args {
    const void *logits;                         /* [rows, columns] */
    const int32_t *target;                      /* [rows] */
    void *exponentials;                         /* optional */
    void *gradient;                             /* optional */
    float *maximum, *sum, *target_logit, *loss; /* [rows] */
    int64_t columns, stride, exponentials_stride, gradient_stride;
    int64_t first_column, vocab_size;
    float scale;
    int32_t have_exponentials;
};

/* ---- embedding ---------------------------------------------------------------------------------
 */

/*
 * embedding_forward: y[r] = table[id[r] - first], 0 where the id is outside [first, first + count).
 * Range: rows (tokens). Moves 2 rows columns.
 *
 * embedding_backward: table[id[r] - first] += dy[r] in the order of rows; without `accumulate` the
 * table rows start at 0. Range: table rows, 0..count. Moves up to (count + 2 rows) columns.
 */
struct sc_embedding_args {
    const int32_t *id;
    const void *table; /* [count, columns] */
    void *y;           /* [rows, columns] */
    int64_t columns, table_stride, y_stride, first, count;
};

struct sc_embedding_backward_args {
    const int32_t *id;
    const void *dy; /* [rows, columns] */
    void *table;    /* [count, columns] gradient */
    int64_t rows, columns, dy_stride, table_stride, first, count;
    int32_t accumulate;
};

/* ---- element-wise ------------------------------------------------------------------------------
 */

/*
 * add: y[r] = a[r] + b[r % b_rows]. In place with a or (b_rows = rows) b. Range: rows.
 * Moves 3 rows columns (2 and a little for few b_rows).
 */
struct sc_add_args {
    const void *a, *b;
    void *y;
    int64_t columns, a_stride, b_stride, y_stride, b_rows;
};

/* scale: y = factor x (factor 1: a copy). In place. Range: rows. Moves 2 rows columns. */
struct sc_scale_args {
    const void *x;
    void *y;
    int64_t columns, x_stride, y_stride;
    float factor;
};

enum sc_storage { SC_STORAGE_FP32, SC_STORAGE_BF16 };

/* cast: y = x in another storage type, rounded to nearest even. Range: elements. */
struct sc_cast_args {
    const void *x;
    void *y;
    int32_t from, to; /* enum sc_storage */
};

/* fill: y = value. Range: elements. Moves 1 an element. */
struct sc_fill_args {
    void *y;
    float value;
};

/*
 * reduce_rows: out[r, c] (+)= sum over j < count of in[r + j out_rows, c], j ascending. A bias
 * gradient has out_rows = 1, a position gradient out_rows = sequence. Range: elements of out, row
 * by row (0..out_rows columns). Moves count out_rows columns.
 */
struct sc_reduce_rows_args {
    const void *in; /* [count out_rows, columns] */
    void *out;      /* [out_rows, columns] */
    int64_t count, out_rows, columns, in_stride, out_stride;
    int32_t accumulate;
};

/* ---- rotary position
 * ----------------------------------------------------------------------------- */

/*
 * rope: in place on the first `heads` heads (query and key heads of a packed row) of every row, the
 * rotate-half convention of Hugging Face's Llama: for i < rotary/2 and angle = position
 * theta^(-2i/rotary), (x[i], x[i + rotary/2]) turns by angle (by -angle with `inverse`, which is
 * the backward). position = first_position + row % sequence. rotary <= head_size; the other
 * elements of a head stay. Range: rows. Moves 2 rows heads rotary.
 */
struct sc_rope_args {
    void *x;
    int64_t stride, heads, head_size, rotary, sequence, first_position;
    float theta;
    int32_t inverse;
};

/* ---- dropout
 * --------------------------------------------------------------------------------------- */

/*
 * dropout_forward: y = residual + keep (x + bias), keep = 0 or 1/(1-p); global element index
 * (row_base + row) columns + column. mask, if given, gets 1 where kept. In place with x or
 * residual. Range: rows. Moves 2 rows columns, 3 with residual.
 *
 * dropout_backward: dx = keep dy, keep from `mask` if given, else drawn again. In place. The bias
 * gradient is reduce_rows over dx. Range: rows. Moves 2 rows columns.
 */
struct sc_dropout_args {
    const void *x;        /* backward: dy */
    const void *bias;     /* [columns], optional, forward only */
    const void *residual; /* optional, forward only */
    void *y;              /* backward: dx */
    uint8_t *mask;        /* [rows, columns] without padding, optional */
    int64_t columns, x_stride, residual_stride, y_stride, row_base;
    struct sc_draw draw;
};

/* ---- optimizer
 * ------------------------------------------------------------------------------------- */

/* Elements [first, first + count) of a flat buffer, and what holds for them. */
struct sc_kernel_range {
    int64_t first, count;
    float weight; /* adamw: factor on the decay, 0 = none; norm_squares: factor on the squares */
};

/*
 * adamw: for every element of the ranges (which do not overlap), with g = clip gradient:
 *   p -= lr decay weight p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 *   p -= lr (m correction1) / (sqrt(v correction2) + epsilon)
 * (Loshchilov and Hutter, as torch.optim.AdamW computes it), nothing if state->skip. All operands
 * are float; low_precision, if given, gets the new parameters as bf16. Range: elements of the flat
 * buffer. Moves 7 elements of 4 bytes (and 2 bytes with the copy).
 */
struct sc_adamw_args {
    float *parameter;
    const float *gradient;
    float *m, *v;
    uint16_t *low_precision;              /* bf16, optional */
    const struct sc_kernel_range *ranges; /* [range_count] */
    int64_t range_count;
    const struct sc_step_state *state;
    double beta1, beta2; /* double: 1 - beta2 in float is 5e-5 off at 0.999 */
    float epsilon, weight_decay;
};

/*
 * norm_squares: partial[b] = sum over the elements of block b (SC_SQUARES_BLOCK elements from
 * b SC_SQUARES_BLOCK on, cut at `count`) of weight x^2, weight that of the range the element is in
 * (0 outside all). The caller adds the partials in order: the same sum for every team. Range:
 * blocks.
 */
#define SC_SQUARES_BLOCK 16384

struct sc_norm_squares_args {
    const float *x;
    const struct sc_kernel_range *ranges; /* ascending */
    int64_t range_count, count;
    double *partial; /* [ceil(count / SC_SQUARES_BLOCK)] */
};

/*
 * init_normal: y[i] = deviation n, n standard normal by Box-Muller from words 0,1 (even elements of
 * a pair: cosine; odd: sine) of the element's global index in the whole tensor, index = (row_base +
 * row) total_columns + column_base + column. The same value in every layout and split, on one kind
 * of processor; others differ in the last bit. Range: rows.
 */
struct sc_init_normal_args {
    void *y;
    int64_t columns, stride, row_base, column_base, total_columns;
    float deviation;
    struct sc_draw draw; /* probability unused */
};

/* ---- the step state
 * --------------------------------------------------------------------------------------- */

enum sc_rate_kind { SC_KERNEL_RATE_CONSTANT, SC_KERNEL_RATE_LINEAR, SC_KERNEL_RATE_COSINE };

/*
 * state_advance: the state of the step that begins: its number, learning rate, bias corrections
 * 1 / (1 - beta^step); clip 1, skip 0. state.cu has the formula of the learning rate. Range: states
 * (there is one).
 *
 * state_clip: gradient_norm = sqrt(squares), clip = min(1, limit / (gradient_norm + 1e-6)). Range:
 * states.
 *
 * squares_sum: norm (+)= sum over b < blocks of partial[b]. Range: 0..1, never split.
 */
struct sc_state_advance_args {
    struct sc_step_state *state;
    double learning_rate, minimum_learning_rate, beta1, beta2;
    int64_t warmup_steps, decay_steps;
    uint64_t seed;
    int32_t schedule; /* enum sc_rate_kind */
};

struct sc_state_clip_args {
    struct sc_step_state *state;
    const float *squares; /* sum of squares of all gradients */
    float limit;
};

struct sc_squares_sum_args {
    const double *partial; /* [blocks], of norm_squares */
    float *norm;
    int64_t blocks;
    int32_t accumulate;
};

/* ---- the table
 * --------------------------------------------------------------------------------------- */

/* The host's kernels, compiled for one kind of processor. */
struct sc_kernels {
    const char *name; /* "baseline", "x86-64-v3", "x86-64-v4" */
#define SC_KERNEL_MEMBER(kernel, type, range)                                                      \
    void (*kernel)(const struct type a, int64_t begin, int64_t end);
    SC_KERNEL_LIST(SC_KERNEL_MEMBER)
#undef SC_KERNEL_MEMBER
};

/*
 * The best table that this processor can run. Cannot fail; the result is static. sc_kernels_at
 * lists all that it can run, best first, NULL behind the last (tests run every one of them).
 */
const struct sc_kernels *sc_kernels_select(void);
const struct sc_kernels *sc_kernels_at(int index);

#ifdef __cplusplus
}
#endif

#endif
