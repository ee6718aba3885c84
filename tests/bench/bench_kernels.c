/*
 * Speed of the numerical layer on this machine, by hand (no test): GFLOP/s of products and
 * attention, GB/s of the memory-bound kernels by their documented traffic, beside a copy's GB/s.
 * Usage: bench_kernels [threads]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/host/attention.h"
#include "exec/host/gemm.h"
#include "exec/host/team.h"
#include "exec/host/team_kernels.h"

#define SECONDS 0.15 /* a measurement takes about this long */

static struct sc_team *team;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(int64_t count)
{
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 63) / 64 * 64);
    if (!x)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((i * 7919) % 2003) / 1001.5f - 1.0f;
    return x;
}

/* Seconds of the fastest of several calls. */
static double fastest(void (*call)(void *), void *arg)
{
    double best = 1e9, start = now();
    for (int i = 0; i < 3 || now() - start < SECONDS; i++) {
        double t = now();
        call(arg);
        t = now() - t;
        if (t < best)
            best = t;
    }
    return best;
}

static void call_gemm(void *arg)
{
    sc_gemm_run(team, arg);
}

static void bench_gemm(int64_t m, int64_t n, int64_t k)
{
    float *a = numbers(m * k), *b = numbers(k * n), *c = numbers(m * n), *bias = numbers(n);
    printf("gemm %5ld x %5ld x %5ld", (long)m, (long)n, (long)k);
    for (int t = 0; t < 4; t++) {
        struct sc_gemm g = {.transpose_a = t >> 1,
                            .transpose_b = t & 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .lda = t >> 1 ? m : k,
                            .ldb = t & 1 ? k : n,
                            .ldc = n,
                            .alpha = 1.0f,
                            .a = a,
                            .b = b,
                            .c = c,
                            .bias = t == 1 ? bias : NULL};
        double s = fastest(call_gemm, &g);
        printf("  %c%c %6.1f", t >> 1 ? 'T' : 'N', t & 1 ? 'T' : 'N',
               2e-9 * (double)(m * n * k) / s);
    }
    printf(" GFLOP/s\n");
    free(a);
    free(b);
    free(c);
    free(bias);
}

static void call_forward(void *arg)
{
    sc_attention_forward(team, arg);
}

static void call_backward(void *arg)
{
    sc_attention_backward(team, arg);
}

static void bench_attention(int64_t batch, int64_t s, int64_t heads, int64_t kv, int64_t d, float p)
{
    const int64_t width = (heads + 2 * kv) * d, rows = batch * s;
    struct sc_attention a = {.batch = batch,
                             .sequence = s,
                             .heads = heads,
                             .kv_heads = kv,
                             .head_size = d,
                             .qkv_stride = width,
                             .o_stride = heads * d,
                             .scale = 0.125f,
                             .total_heads = heads,
                             .draw = {.seed = 1, .probability = p}};
    float *qkv = numbers(rows * width), *dqkv = numbers(rows * width);
    float *o = numbers(rows * heads * d), *d_o = numbers(rows * heads * d);
    float *lse = numbers(rows * heads);
    size_t bytes = sc_attention_workspace(s) * (size_t)sc_team_size(team);
    float *workspace = aligned_alloc(64, bytes);
    a.qkv = qkv;
    a.dqkv = dqkv;
    a.o = o;
    a.d_o = d_o;
    a.lse = lse;
    a.workspace = workspace;
    double flops = (double)(batch * heads * s * s * d);
    double f = fastest(call_forward, &a), b = fastest(call_backward, &a);
    printf(
        "attention %ld x %ld, %ld/%ld heads of %ld, dropout %.1f: forward %6.2f ms %6.1f, backward "
        "%6.2f ms %6.1f GFLOP/s (causal half)\n",
        (long)batch, (long)s, (long)heads, (long)kv, (long)d, (double)p, f * 1e3, 2e-9 * flops / f,
        b * 1e3, 5e-9 * flops / b);
    free(qkv);
    free(dqkv);
    free(o);
    free(d_o);
    free(lse);
    free(workspace);
}

/* Prints the speed of a kernel on the team; `elements` are those that it moves. */
#define BENCH(name, elements, kernel, args, count)                                                 \
    do {                                                                                           \
        double best_ = 1e9, start_ = now();                                                        \
        for (int i_ = 0; i_ < 3 || now() - start_ < SECONDS; i_++) {                               \
            double t_ = now();                                                                     \
            sc_team_kernel(team, SC_KERNEL_##kernel, args, count);                                 \
            t_ = now() - t_;                                                                       \
            best_ = t_ < best_ ? t_ : best_;                                                       \
        }                                                                                          \
        printf("%-28s %8.3f ms %7.1f GB/s\n", name, best_ * 1e3, 4e-9 * (elements) / best_);       \
    } while (0)

static void bench_rows(int64_t rows, int64_t h, int64_t f, int64_t v)
{
    float *x = numbers(rows * f), *y = numbers(rows * f), *z = numbers(rows * f);
    float *gamma = numbers(f), *stat = numbers(2 * rows);
    float *partial = numbers(sc_norm_blocks(rows) * 2 * h);
    float *logits = numbers(rows * v), *one = numbers(rows), *two = numbers(rows);
    int32_t *target = calloc((size_t)rows, sizeof *target);
    const double n = (double)(rows * h), nf = (double)(rows * f), nv = (double)(rows * v);
    struct sc_step_state state = {.step = 1};
    for (int64_t r = 0; r < rows; r++)
        target[r] = (int32_t)(r * 7919 % v);

    struct sc_scale_args copy = {x, y, f, f, f, 1.0f};
    BENCH("copy", 2 * nf, scale, &copy, rows);
    struct sc_add_args add = {x, y, z, h, h, h, h, rows};
    BENCH("add", 3 * n, add, &add, rows);
    struct sc_norm_args norm = {x, y, gamma, gamma, stat, h, h, h, 1e-5f, SC_KERNEL_LAYER_NORM};
    BENCH("layer norm", 2 * n, norm_forward, &norm, rows);
    struct sc_norm_backward_args nb = {y, x, gamma, stat, z, partial, rows, h, h, h, h, 1, 0};
    BENCH("layer norm backward", 4 * n, norm_backward, &nb, sc_norm_blocks(rows));
    struct sc_activation_args act = {x, y, z, z, f, f, f, f, f, SC_KERNEL_GELU_TANH};
    BENCH("gelu tanh", 2 * nf, activation_forward, &act, rows);
    BENCH("gelu tanh backward", 3 * nf, activation_backward, &act, rows);
    act.kind = SC_KERNEL_GELU_ERF;
    BENCH("gelu erf", 2 * nf, activation_forward, &act, rows);
    BENCH("gelu erf backward", 3 * nf, activation_backward, &act, rows);
    struct sc_activation_args glu = {x, y, z, z, f / 2, f, f, f, f, SC_KERNEL_SWIGLU};
    BENCH("swiglu", 1.5 * nf, activation_forward, &glu, rows);
    BENCH("swiglu backward", 2.5 * nf, activation_backward, &glu, rows);
    struct sc_dropout_args drop = {x, gamma, y, z, NULL, h, h, h, h, 0, {1, 2, 0.0f, &state}};
    BENCH("bias + residual", 3 * n, dropout_forward, &drop, rows);
    drop.draw.probability = 0.1f;
    BENCH("bias + dropout + residual", 3 * n, dropout_forward, &drop, rows);
    BENCH("dropout backward (redrawn)", 2 * n, dropout_backward, &drop, rows);
    struct sc_reduce_rows_args sum = {x, gamma, rows, 1, f, f, f, 0};
    BENCH("column sum", nf, reduce_rows, &sum, f);
    struct sc_rope_args rope = {x, f, f / 64, 64, 64, 512, 0, 1e4f, 0};
    BENCH("rope", 2 * nf, rope, &rope, rows);
    struct sc_cross_entropy_args ce = {.logits = logits,
                                       .target = target,
                                       .maximum = one,
                                       .sum = two,
                                       .target_logit = gamma,
                                       .loss = gamma,
                                       .columns = v,
                                       .stride = v,
                                       .gradient_stride = v,
                                       .vocab_size = v,
                                       .scale = 1.0f};
    BENCH("cross entropy max", nv, cross_entropy_max, &ce, rows);
    BENCH("cross entropy sum", nv, cross_entropy_sum, &ce, rows);
    ce.gradient = logits;
    BENCH("cross entropy gradient", 2 * nv, cross_entropy_loss, &ce, rows);
    struct sc_init_normal_args init = {logits, v, v, 0, 0, v, 0.02f, {1, 2, 0.0f, NULL}};
    BENCH("init normal", nv, init_normal, &init, rows);
    free(x);
    free(y);
    free(z);
    free(gamma);
    free(stat);
    free(partial);
    free(logits);
    free(one);
    free(two);
    free(target);
}

static void bench_flat(int64_t count)
{
    float *p = numbers(count), *g = numbers(count), *m = numbers(count), *v = numbers(count);
    double *partial = calloc((size_t)(count / SC_SQUARES_BLOCK + 1), sizeof *partial);
    struct sc_kernel_range range = {0, count, 1.0f};
    struct sc_step_state state = {
        .step = 1, .learning_rate = 1e-9f, .correction1 = 1.0f, .correction2 = 1.0f, .clip = 1.0f};
    for (int64_t i = 0; i < count; i++)
        v[i] *= v[i];
    struct sc_adamw_args adam = {p, g, m, v, NULL, &range, 1, &state, 0.9f, 0.999f, 1e-8f, 0.1f};
    BENCH("adamw", 7.0 * (double)count, adamw, &adam, count);
    struct sc_norm_squares_args squares = {g, &range, 1, count, partial};
    BENCH("norm squares", (double)count, norm_squares, &squares,
          (count + SC_SQUARES_BLOCK - 1) / SC_SQUARES_BLOCK);
    free(p);
    free(g);
    free(m);
    free(v);
    free(partial);
}

static void nothing(void *arg, int part, int parts)
{
    (void)arg;
    (void)part;
    (void)parts;
}

static void call_nothing(void *arg)
{
    for (int i = 0; i < 1000; i++)
        sc_team_run(team, nothing, arg);
}

int main(int argc, char **argv)
{
    struct sc_error err = SC_ERROR_INIT;
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (sc_team_create(threads, NULL, &team, &err) != SC_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%d threads, kernels %s, products %s\n", threads, sc_kernels_select()->name,
           sc_gemm_library());
    printf("team run %.2f us\n", fastest(call_nothing, NULL) * 1e3);
    bench_gemm(1024, 768, 768);
    bench_gemm(1024, 2304, 768);
    bench_gemm(1024, 3072, 768);
    bench_gemm(1024, 768, 3072);
    bench_gemm(3072, 768, 1024);
    bench_gemm(768, 3072, 1024);
    bench_attention(2, 512, 12, 12, 64, 0.0f);
    bench_attention(2, 512, 12, 12, 64, 0.1f);
    bench_attention(1, 2048, 8, 2, 128, 0.0f);
    bench_rows(1024, 768, 3072, 50257);
    bench_flat(32 << 20);
    sc_team_destroy(&team);
    return 0;
}
