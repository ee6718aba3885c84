/* The kernels without random numbers, against definitions in double and numbers by hand. */
#include "tests/support/kernel_runs.h"

/* ---- normalisation ---- */

enum { ROWS = 70, COLUMNS = 37, PAD = 5, STRIDE = COLUMNS + PAD };

static double norm_stats(const float *x, int kind, double *mean)
{
    double sum = 0.0, squares = 0.0;
    for (int c = 0; c < COLUMNS; c++)
        sum += (double)x[c];
    *mean = kind == SC_KERNEL_RMS_NORM ? 0.0 : sum / COLUMNS;
    for (int c = 0; c < COLUMNS; c++)
        squares += ((double)x[c] - *mean) * ((double)x[c] - *mean);
    return 1.0 / sqrt(squares / COLUMNS + 1e-5);
}

static void norm_forward_body(struct kernel_run *run)
{
    float *x = random_floats(ROWS * STRIDE, 1), *gamma = random_floats(COLUMNS, 2);
    float *beta = random_floats(COLUMNS, 3), *y = random_floats(ROWS * STRIDE, 4);
    float *want = copy_floats(y, ROWS * STRIDE), stat[2 * ROWS];
    for (int kind = SC_KERNEL_LAYER_NORM; kind <= SC_KERNEL_RMS_NORM; kind++) {
        const float *shift = kind == SC_KERNEL_LAYER_NORM ? beta : NULL;
        struct sc_norm_args a = {x, y, gamma, shift, stat, COLUMNS, STRIDE, STRIDE, 1e-5f, kind};
        RUN(run, norm_forward, a, ROWS);
        for (int r = 0; r < ROWS; r++) {
            double mean, rstd = norm_stats(x + r * STRIDE, kind, &mean);
            assert_true(fabs((double)stat[2 * r] - mean) < 1e-6);
            assert_true(fabs((double)stat[2 * r + 1] - rstd) < 1e-5 * rstd);
            for (int c = 0; c < COLUMNS; c++)
                want[r * STRIDE + c] =
                    (float)(((double)x[r * STRIDE + c] - mean) * rstd * (double)gamma[c] +
                            (shift ? (double)beta[c] : 0.0));
        }
        assert_floats_near(y, want, ROWS * STRIDE, 1e-5);
        note_bits(run, y, sizeof *y * ROWS * STRIDE);
    }
    free(x);
    free(gamma);
    free(beta);
    free(y);
    free(want);
}

static void norm_forward_is_the_definition(void **state)
{
    (void)state;
    for_every_build(norm_forward_body);
}

/* x = (1, 3): mean 2, variance 1, so z = (-1, 1) with epsilon 0; gamma (2, 3), beta (10, 20). */
static void norm_by_hand(void **state)
{
    (void)state;
    const float x[] = {1, 3}, gamma[] = {2, 3}, beta[] = {10, 20};
    float y[2], stat[2];
    struct sc_norm_args a = {x, y, gamma, beta, stat, 2, 2, 2, 0.0f, SC_KERNEL_LAYER_NORM};
    sc_kernels_select()->norm_forward(a, 0, 1);
    assert_true(y[0] == 8.0f && y[1] == 23.0f && stat[0] == 2.0f && stat[1] == 1.0f);
    a.kind = SC_KERNEL_RMS_NORM; /* mean of squares 5, rstd 1 / sqrt(5) */
    a.beta = NULL;
    sc_kernels_select()->norm_forward(a, 0, 1);
    assert_true(fabsf(y[0] - 2.0f / sqrtf(5.0f)) < 1e-6f);
    assert_true(fabsf(y[1] - 9.0f / sqrtf(5.0f)) < 1e-6f && stat[0] == 0.0f);
}

/* sum(dy y) as a function of x, for differences. */
static double norm_loss(const float *x, const float *gamma, const float *dy, int kind)
{
    double mean, rstd = norm_stats(x, kind, &mean), sum = 0.0;
    for (int c = 0; c < COLUMNS; c++)
        sum += ((double)x[c] - mean) * rstd * (double)gamma[c] * (double)dy[c];
    return sum;
}

/* A difference of 1e-3 of an fp32 number is itself rounded to 6e-8 / 1e-3: slopes to 1e-3. */
static void check_norm_slopes(float *x, const float *gamma, const float *dy, int kind,
                              const float *dx)
{
    for (int c = 0; c < COLUMNS; c++) {
        float at = x[c];
        x[c] = at + 1e-3f;
        double high = (double)x[c], above = norm_loss(x, gamma, dy, kind);
        x[c] = at - 1e-3f;
        double low = (double)x[c], below = norm_loss(x, gamma, dy, kind);
        x[c] = at;
        assert_true(fabs((above - below) / (high - low) - (double)dx[c]) < 1e-3);
    }
}

static void norm_backward_body(struct kernel_run *run)
{
    float *x = random_floats(ROWS * STRIDE, 1), *gamma = random_floats(COLUMNS, 2);
    float *dy = random_floats(ROWS * STRIDE, 3), *dx = random_floats(ROWS * STRIDE, 4);
    float *before = copy_floats(dx, ROWS * STRIDE), *y = random_floats(ROWS * STRIDE, 5);
    float stat[2 * ROWS], partial[3 * 2 * COLUMNS], dgamma[COLUMNS], dbeta[COLUMNS];
    assert_int_equal(sc_norm_blocks(ROWS), 3); /* 32 + 32 + 6 rows */
    for (int kind = SC_KERNEL_LAYER_NORM; kind <= SC_KERNEL_RMS_NORM; kind++) {
        struct sc_norm_args f = {x, y, gamma, NULL, stat, COLUMNS, STRIDE, STRIDE, 1e-5f, kind};
        run->k->norm_forward(f, 0, ROWS);
        struct sc_norm_backward_args a = {dy,      x,      gamma,  stat,   dx, partial, ROWS,
                                          COLUMNS, STRIDE, STRIDE, STRIDE, 0,  kind};
        RUN(run, norm_backward, a, 3);
        for (int r = 0; r < ROWS; r += 23)
            check_norm_slopes(x + r * STRIDE, gamma, dy + r * STRIDE, kind, dx + r * STRIDE);
        note_bits(run, dx, sizeof *dx * ROWS * STRIDE);
        note_bits(run, partial, sizeof partial);

        /* add: dx before plus what was written above; dgamma on top of 1 */
        float *written = copy_floats(dx, ROWS * STRIDE);
        memcpy(dx, before, sizeof *dx * ROWS * STRIDE);
        a.add = 1;
        RUN(run, norm_backward, a, 3);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                written[r * STRIDE + c] += before[r * STRIDE + c];
        for (int r = 0; r < ROWS; r++)
            assert_floats_near((dx + r * STRIDE), (written + r * STRIDE), COLUMNS, 1e-5);
        free(written);

        for (int c = 0; c < COLUMNS; c++)
            dgamma[c] = 1.0f;
        struct sc_reduce_rows_args g = {partial, dgamma, 3, 1, COLUMNS, 2 * COLUMNS, COLUMNS, 1};
        struct sc_reduce_rows_args b = {partial + COLUMNS, dbeta,       3,       1,
                                        COLUMNS,           2 * COLUMNS, COLUMNS, 0};
        RUN(run, reduce_rows, g, COLUMNS);
        RUN(run, reduce_rows, b, COLUMNS);
        for (int c = 0; c < COLUMNS; c++) {
            double want_gamma = 1.0, want_beta = 0.0;
            for (int r = 0; r < ROWS; r++) {
                double mean, rstd = norm_stats(x + r * STRIDE, kind, &mean);
                want_beta += (double)dy[r * STRIDE + c];
                want_gamma +=
                    (double)dy[r * STRIDE + c] * ((double)x[r * STRIDE + c] - mean) * rstd;
            }
            assert_true(fabs((double)dgamma[c] - want_gamma) < 1e-4);
            assert_true(fabs((double)dbeta[c] - want_beta) < 1e-4);
        }
    }
    free(x);
    free(gamma);
    free(dy);
    free(dx);
    free(before);
    free(y);
}

static void norm_backward_is_the_slope(void **state)
{
    (void)state;
    for_every_build(norm_backward_body);
}

/* ---- activation ---- */

static double activation(int kind, double x, double up)
{
    switch (kind) {
    case SC_KERNEL_GELU_TANH:
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case SC_KERNEL_GELU_ERF:
        return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    case SC_KERNEL_SWIGLU:
        return x / (1.0 + exp(-x)) * up;
    default:
        return x > 0.0 ? x : 0.0;
    }
}

static void activation_body(struct kernel_run *run)
{
    enum { N = 67, IN = 2 * N + 3 };
    float *x = random_floats(4 * IN, 1), *dy = random_floats(4 * N, 2);
    float y[4 * N], dx[4 * IN];
    for (int i = 0; i < 4 * IN; i++)
        x[i] *= 9.0f;
    x[0] = 90.0f; /* saturated: exp overflows on one side */
    x[1] = -90.0f;
    x[2] = 0.125f;
    for (int kind = SC_KERNEL_GELU_TANH; kind <= SC_KERNEL_RELU; kind++) {
        struct sc_activation_args a = {x, dy, y, dx, N, IN, N, N, IN, kind};
        RUN(run, activation_forward, a, 4);
        RUN(run, activation_backward, a, 4);
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < N; c++) {
                double v = (double)x[r * IN + c], up = (double)x[r * IN + N + c], e = 1e-5;
                double d = (double)dy[r * N + c];
                double slope = (activation(kind, v + e, up) - activation(kind, v - e, up)) / 2e-5;
                double want = activation(kind, v, up);
                assert_true(fabs((double)y[r * N + c] - want) < 1e-5 * fmax(1.0, fabs(want)));
                want = d * slope;
                assert_true(fabs((double)dx[r * IN + c] - want) < 2e-5 * fmax(1.0, fabs(want)));
                want = d * activation(kind, v, 1.0);
                if (kind == SC_KERNEL_SWIGLU)
                    assert_true(fabs((double)dx[r * IN + N + c] - want) <
                                1e-5 * fmax(1.0, fabs(want)));
            }
        note_bits(run, y, sizeof y);
        if (kind == SC_KERNEL_SWIGLU)
            continue;
        /* in place over the gradient */
        float *in_place = copy_floats(dy, 4 * N);
        a.dy = a.dx = in_place;
        a.dx_stride = N;
        RUN(run, activation_backward, a, 4);
        for (int r = 0; r < 4; r++)
            assert_memory_equal(in_place + r * N, dx + r * IN, sizeof(float) * N);
        free(in_place);
    }
    free(x);
    free(dy);
}

static void activations_and_their_slopes(void **state)
{
    (void)state;
    for_every_build(activation_body);
}

/* ---- softmax ---- */

enum { QUERIES = 6, KEYS = 90 };

static void softmax_body(struct kernel_run *run)
{
    enum { R = 2 * QUERIES, S = KEYS + 1 };
    float *x = random_floats(R * S, 1), *dy = random_floats(R * S, 2), y[R * S], dx[R * S];
    memcpy(y, x, sizeof y);
    memcpy(dx, dy, sizeof dx);
    for (int causal = 0; causal < 2; causal++) {
        struct sc_softmax_args a = {x, dy, y, dx, KEYS, QUERIES, S, 3.0f, causal};
        RUN(run, softmax_forward, a, R);
        RUN(run, softmax_backward, a, R);
        for (int r = 0; r < R; r++) {
            int n = causal ? r % QUERIES + 1 + KEYS - QUERIES : KEYS;
            double sum = 0.0, dot = 0.0;
            for (int c = 0; c < n; c++)
                sum += exp(3.0 * (double)x[r * S + c]);
            for (int c = 0; c < n; c++)
                dot += exp(3.0 * (double)x[r * S + c]) / sum * (double)dy[r * S + c];
            for (int c = 0; c < KEYS; c++) {
                double p = c < n ? exp(3.0 * (double)x[r * S + c]) / sum : 0.0;
                double d = 3.0 * p * ((double)dy[r * S + c] - dot);
                assert_true(fabs((double)y[r * S + c] - p) < 1e-6);
                assert_true(fabs((double)dx[r * S + c] - d) < 2e-6);
            }
            assert_true(y[r * S + KEYS] == x[r * S + KEYS]); /* padding untouched */
        }
        note_bits(run, y, sizeof y);
    }
    free(x);
    free(dy);
}

static void softmax_and_its_slope(void **state)
{
    (void)state;
    for_every_build(softmax_body);
}

/* Large scores do not overflow: exp(1000) is infinite, its softmax is not. */
static void softmax_of_large_scores(void **state)
{
    (void)state;
    float x[] = {1000.0f, 999.0f, -1000.0f};
    struct sc_softmax_args a = {
        .x = x, .y = x, .columns = 3, .queries = 1, .stride = 3, .scale = 1.0f};
    sc_kernels_select()->softmax_forward(a, 0, 1);
    assert_true(fabsf(x[0] - 0.7310586f) < 1e-6f); /* 1 / (1 + 1/e) */
    assert_true(fabsf(x[1] - 0.2689414f) < 1e-6f && x[2] == 0.0f);
}

/* ---- cross entropy ---- */

enum { TOKENS = 11, VOCABULARY = 150, SHARE = 64, RANKS = 3 }; /* 3 x 64 = 192: 42 of padding */

/* The whole row on one rank in double: probabilities p, loss. */
static double row_loss(const float *logits, int target, double *p)
{
    double sum = 0.0;
    for (int c = 0; c < VOCABULARY; c++)
        sum += exp((double)logits[c]);
    for (int c = 0; c < RANKS * SHARE; c++)
        p[c] = c < VOCABULARY ? exp((double)logits[c]) / sum : 0.0;
    return target < 0 ? 0.0 : log(sum) - (double)logits[target];
}

/* Three ranks with 64 columns each, and the reductions between the parts done by hand. */
static void cross_entropy_body(struct kernel_run *run)
{
    enum { WIDTH = RANKS * SHARE };
    for (int keep = 0; keep < 2; keep++) {
        float *logits = random_floats(TOKENS * WIDTH, 1);
        float *whole = NULL, loss[TOKENS];
        float maximum[RANKS][TOKENS], sum[RANKS][TOKENS], at[RANKS][TOKENS];
        int32_t target[TOKENS];
        for (int r = 0; r < TOKENS; r++)
            target[r] = r == 4 ? -100 : r * 15 % VOCABULARY; /* 0, 15, ..., 149 is another rank's */
        target[5] = 149;
        for (int i = 0; i < TOKENS * WIDTH; i++)
            logits[i] = i % WIDTH < VOCABULARY ? 8.0f * logits[i] : 1e30f; /* padding: garbage */
        whole = copy_floats(logits, TOKENS * WIDTH);
        struct sc_cross_entropy_args a[RANKS];
        for (int q = 0; q < RANKS; q++) {
            float *mine = logits + q * SHARE;
            a[q] = (struct sc_cross_entropy_args){.logits = mine,
                                                  .target = target,
                                                  .exponentials = keep ? mine : NULL,
                                                  .gradient = mine,
                                                  .maximum = maximum[q],
                                                  .sum = sum[q],
                                                  .target_logit = at[q],
                                                  .loss = loss,
                                                  .columns = SHARE,
                                                  .stride = WIDTH,
                                                  .exponentials_stride = WIDTH,
                                                  .gradient_stride = WIDTH,
                                                  .first_column = q * SHARE,
                                                  .vocab_size = VOCABULARY,
                                                  .scale = 0.5f,
                                                  .have_exponentials = keep};
            RUN(run, cross_entropy_max, a[q], TOKENS);
        }
        for (int r = 0; r < TOKENS; r++) {
            float most = fmaxf(maximum[0][r], fmaxf(maximum[1][r], maximum[2][r]));
            maximum[0][r] = maximum[1][r] = maximum[2][r] = most;
        }
        for (int q = 0; q < RANKS; q++)
            RUN(run, cross_entropy_sum, a[q], TOKENS);
        for (int r = 0; r < TOKENS; r++) {
            sum[0][r] = sum[1][r] = sum[2][r] = sum[0][r] + sum[1][r] + sum[2][r];
            at[0][r] = at[1][r] = at[2][r] = at[0][r] + at[1][r] + at[2][r];
        }
        for (int q = 0; q < RANKS; q++)
            RUN(run, cross_entropy_loss, a[q], TOKENS);
        for (int r = 0; r < TOKENS; r++) {
            double p[WIDTH], want = row_loss(whole + r * WIDTH, target[r], p);
            assert_true(fabs((double)loss[r] - want) < 1e-5);
            for (int c = 0; c < WIDTH; c++) {
                double g = target[r] < 0 ? 0.0 : 0.5 * (p[c] - (c == target[r]));
                assert_true(fabs((double)logits[r * WIDTH + c] - g) < 1e-6);
            }
        }
        note_bits(run, logits, sizeof *logits * TOKENS * WIDTH);
        free(logits);
        free(whole);
    }
}

static void cross_entropy_over_ranks(void **state)
{
    (void)state;
    for_every_build(cross_entropy_body);
}

/* A rank with nothing but padding: no maximum, no sum, no target, gradient 0. */
static void cross_entropy_of_padding(void **state)
{
    (void)state;
    const int32_t target[] = {3};
    float logits[] = {7, 8}, maximum, sum, at;
    struct sc_cross_entropy_args a = {.logits = logits,
                                      .target = target,
                                      .gradient = logits,
                                      .maximum = &maximum,
                                      .sum = &sum,
                                      .target_logit = &at,
                                      .columns = 2,
                                      .stride = 2,
                                      .gradient_stride = 2,
                                      .first_column = 10,
                                      .vocab_size = 10,
                                      .scale = 1.0f};
    const struct sc_kernels *k = sc_kernels_select();
    k->cross_entropy_max(a, 0, 1);
    assert_true(isinf(maximum) && maximum < 0.0f);
    maximum = 1.0f; /* another rank's */
    k->cross_entropy_sum(a, 0, 1);
    assert_true(sum == 0.0f && at == 0.0f);
    sum = 2.0f;
    k->cross_entropy_loss(a, 0, 1);
    assert_true(logits[0] == 0.0f && logits[1] == 0.0f);
}

/* ---- embedding ---- */

static void embedding_body(struct kernel_run *run)
{
    enum { N = 21, FIRST = 10, COUNT = 7, T = 13 };
    const int32_t id[T] = {10, 16, 3, 12, 12, 17, 40, 10, 12, 9, 0, 16, -1};
    float *table = random_floats(COUNT * N, 1), *dy = random_floats(T * N, 2);
    float *gradient = random_floats(COUNT * N, 3), y[T * N];
    struct sc_embedding_args f = {id, table, y, N, N, N, FIRST, COUNT};
    RUN(run, embedding_forward, f, T);
    for (int r = 0; r < T; r++)
        for (int c = 0; c < N; c++) {
            int inside = id[r] >= FIRST && id[r] < FIRST + COUNT;
            assert_true(y[r * N + c] == (inside ? table[(id[r] - FIRST) * N + c] : 0.0f));
        }
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        float *want = copy_floats(gradient, COUNT * N);
        for (int v = 0; v < COUNT; v++)
            for (int c = 0; c < N; c++) {
                float sum = accumulate ? want[v * N + c] : 0.0f;
                for (int r = 0; r < T; r++)
                    if (id[r] == FIRST + v)
                        sum += dy[r * N + c];
                want[v * N + c] = sum;
            }
        struct sc_embedding_backward_args b = {id, dy, gradient, T,     N,
                                               N,  N,  FIRST,    COUNT, accumulate};
        RUN(run, embedding_backward, b, COUNT);
        assert_memory_equal(gradient, want, sizeof *want * COUNT * N); /* same order: same bits */
        free(want);
    }
    free(table);
    free(dy);
    free(gradient);
}

static void embedding_there_and_back(void **state)
{
    (void)state;
    for_every_build(embedding_body);
}

/* ---- element-wise ---- */

static void elementwise_body(struct kernel_run *run)
{
    enum { R = 6, N = 19, S = 23 };
    float *a = random_floats(R * S, 1), *b = random_floats(3 * N, 2), y[R * N], in_place[R * N];
    struct sc_add_args add = {a, b, y, N, S, N, N, 3};
    RUN(run, add, add, R);
    struct sc_scale_args scale = {y, in_place, N, N, N, -2.0f};
    RUN(run, scale, scale, R);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < N; c++) {
            assert_true(y[r * N + c] == a[r * S + c] + b[r % 3 * N + c]);
            assert_true(in_place[r * N + c] == -2.0f * y[r * N + c]);
        }
    add = (struct sc_add_args){y, in_place, in_place, N, N, N, N, R}; /* y - 2y = -y */
    RUN(run, add, add, R);
    for (int i = 0; i < R * N; i++)
        assert_true(in_place[i] == -y[i]);
    struct sc_fill_args fill = {y, 4.5f};
    RUN(run, fill, fill, R * N - 1);
    assert_true(y[0] == 4.5f && y[R * N - 2] == 4.5f && y[R * N - 1] != 4.5f);
    free(a);
    free(b);
}

static void add_scale_and_fill(void **state)
{
    (void)state;
    for_every_build(elementwise_body);
}

/* bf16 keeps 8 bits of the fraction's head: halves to even, infinities and NaN kept. */
static void cast_body(struct kernel_run *run)
{
    const float from[] = {1.0f,
                          1.00390625f /* 1 + 2^-8: a tie, to even */,
                          1.01171875f /* tie, up */,
                          -3.14159f,
                          3.4e38f,
                          INFINITY,
                          NAN,
                          0.0f,
                          -0.0f,
                          1.00390637f};
    const uint16_t want[] = {0x3F80, 0x3F80, 0x3F82, 0xC049, 0x7F80,
                             0x7F80, 0x7FC0, 0,      0x8000, 0x3F81};
    enum { N = 10 };
    uint16_t half[N], copy[N];
    float back[N];
    struct sc_cast_args down = {from, half, SC_STORAGE_FP32, SC_STORAGE_BF16};
    struct sc_cast_args same = {half, copy, SC_STORAGE_BF16, SC_STORAGE_BF16};
    struct sc_cast_args up = {copy, back, SC_STORAGE_BF16, SC_STORAGE_FP32};
    RUN(run, cast, down, N);
    RUN(run, cast, same, N);
    RUN(run, cast, up, N);
    assert_memory_equal(half, want, sizeof want);
    assert_memory_equal(copy, want, sizeof want);
    assert_true(back[0] == 1.0f && back[2] == 1.015625f && isinf(back[5]) && isnan(back[6]));
    struct sc_cast_args plain = {from, back, SC_STORAGE_FP32, SC_STORAGE_FP32};
    RUN(run, cast, plain, N);
    assert_memory_equal(back, from, sizeof back);
}

static void cast_rounds_to_even(void **state)
{
    (void)state;
    for_every_build(cast_body);
}

/* out[r] = sum over j of in[r + j R]: R = 1 a bias gradient, R = 4 a position gradient. */
static void reduce_rows_body(struct kernel_run *run)
{
    enum { N = 300, S = 301, T = 12 };
    float *in = random_floats(T * S, 1);
    for (int R = 1; R <= 4; R += 3)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            float *out = random_floats(R * S, 2), *want = copy_floats(out, R * S);
            for (int r = 0; r < R; r++)
                for (int c = 0; c < N; c++) {
                    float sum = accumulate ? want[r * S + c] : 0.0f;
                    for (int j = 0; j < T / R; j++)
                        sum += in[(r + j * R) * S + c];
                    want[r * S + c] = sum;
                }
            struct sc_reduce_rows_args a = {in, out, T / R, R, N, S, S, accumulate};
            RUN(run, reduce_rows, a, R * N);
            assert_memory_equal(out, want, sizeof *out * (size_t)(R * S));
            free(out);
            free(want);
        }
    free(in);
}

static void reduce_rows_in_order(void **state)
{
    (void)state;
    for_every_build(reduce_rows_body);
}

/* ---- rotary positions ---- */

static void rope_body(struct kernel_run *run)
{
    enum { R = 9, HEADS = 3, SIZE = 20, ROTARY = 16, S = HEADS * SIZE + 7, SEQUENCE = 4 };
    float *x = random_floats(R * S, 1), *y = copy_floats(x, R * S);
    struct sc_rope_args a = {y, S, HEADS, SIZE, ROTARY, SEQUENCE, 1000, 10000.0f, 0};
    RUN(run, rope, a, R);
    for (int r = 0; r < R; r++)
        for (int e = 0; e < S; e++) {
            int h = e / SIZE, i = e % SIZE, half = ROTARY / 2;
            double want = (double)x[r * S + e];
            if (h < HEADS && i < ROTARY) {
                int pair = i % half;
                double position = 1000 + r % SEQUENCE;
                double frequency = (double)(float)pow(10000.0, -2.0 * pair / ROTARY);
                /* the angle is an fp32 product in the frameworks too */
                double angle = (double)((float)position * (float)frequency);
                const float *at = x + r * S + h * SIZE + pair;
                want = i < half ? (double)at[0] * cos(angle) - (double)at[half] * sin(angle)
                                : (double)at[half] * cos(angle) + (double)at[0] * sin(angle);
            }
            assert_true(fabs((double)y[r * S + e] - want) < 2e-6);
        }
    note_bits(run, y, sizeof *y * R * S);
    a.inverse = 1;
    RUN(run, rope, a, R);
    assert_floats_near(y, x, R * S, 1e-6);
    free(x);
    free(y);
}

static void rope_turns_and_turns_back(void **state)
{
    (void)state;
    for_every_build(rope_body);
}

/* Position 0 stays; at position 1 the first pair (frequency 1) turns by 1 radian: (1, 0) to
 * (cos 1, sin 1). */
static void rope_by_hand(void **state)
{
    (void)state;
    float x[] = {1, 2, 0, 4, 1, 2, 0, 4};
    struct sc_rope_args a = {x, 4, 1, 4, 4, 2, 0, 10000.0f, 0};
    sc_kernels_select()->rope(a, 0, 2);
    assert_true(x[0] == 1.0f && x[1] == 2.0f && x[2] == 0.0f && x[3] == 4.0f);
    assert_true(fabsf(x[4] - 0.5403023f) < 1e-6f && fabsf(x[6] - 0.8414710f) < 1e-6f);
    /* pair 1 has frequency 10000^(-2/4) = 0.01: 2 cos 0.01 - 4 sin 0.01 = 1.959901 */
    assert_true(fabsf(x[5] - 1.9599007f) < 1e-6f);
}

/* ---- the table ---- */

static void baseline_is_always_there(void **state)
{
    (void)state;
    int count = 0;
    while (sc_kernels_at(count))
        count++;
    assert_true(count >= 1);
    assert_string_equal(sc_kernels_at(count - 1)->name, "baseline");
    assert_ptr_equal(sc_kernels_select(), sc_kernels_at(0));
    assert_null(sc_kernels_at(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_forward_is_the_definition),
        cmocka_unit_test(norm_by_hand),
        cmocka_unit_test(norm_backward_is_the_slope),
        cmocka_unit_test(activations_and_their_slopes),
        cmocka_unit_test(softmax_and_its_slope),
        cmocka_unit_test(softmax_of_large_scores),
        cmocka_unit_test(cross_entropy_over_ranks),
        cmocka_unit_test(cross_entropy_of_padding),
        cmocka_unit_test(embedding_there_and_back),
        cmocka_unit_test(add_scale_and_fill),
        cmocka_unit_test(cast_rounds_to_even),
        cmocka_unit_test(reduce_rows_in_order),
        cmocka_unit_test(rope_turns_and_turns_back),
        cmocka_unit_test(rope_by_hand),
        cmocka_unit_test(baseline_is_always_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
