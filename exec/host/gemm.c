/* Matrix products on a team. */
#include "exec/host/gemm.h"

#include "exec/host/blas.h"
#include "exec/kernels/kernels.h"
#include "model/cost_cores.h"

/* Parts begin at multiples of this in both directions: whole register tiles of the libraries. */
#define GRAIN SC_PRODUCT_GRAIN

/* The part of C that one member computes, as a product of its own. */
struct tile {
    struct sc_part rows, columns;
};

static void scale_rows(const struct sc_gemm *g, struct tile t)
{
    if (g->accumulate)
        return;
    for (int64_t i = t.rows.begin; i < t.rows.end; i++)
        for (int64_t j = t.columns.begin; j < t.columns.end; j++)
            g->c[i * g->ldc + j] = 0.0f;
}

static void multiply(const struct sc_gemm *g, struct tile t)
{
    struct sc_sgemm call = {
        .transpose_a = g->transpose_a,
        .transpose_b = g->transpose_b,
        .accumulate = g->accumulate,
        .m = t.rows.end - t.rows.begin,
        .n = t.columns.end - t.columns.begin,
        .k = g->k,
        .lda = g->lda,
        .ldb = g->ldb,
        .ldc = g->ldc,
        .alpha = g->alpha,
        .a = g->a + (g->transpose_a ? t.rows.begin : t.rows.begin * g->lda),
        .b = g->b + (g->transpose_b ? t.columns.begin * g->ldb : t.columns.begin),
        .c = g->c + t.rows.begin * g->ldc + t.columns.begin,
    };
    if (call.m <= 0 || call.n <= 0)
        return;
    if (call.k <= 0)
        scale_rows(g, t);
    else
        sc_blas_get()->sgemm(&call);
}

static void add_bias(const struct sc_gemm *g, struct tile t)
{
    float *c = g->c + t.columns.begin;
    const struct sc_add_args add = {
        .a = c,
        .b = g->bias + t.columns.begin,
        .y = c,
        .columns = t.columns.end - t.columns.begin,
        .a_stride = g->ldc,
        .y_stride = g->ldc,
        .b_rows = 1,
    };
    sc_kernels_select()->add(add, t.rows.begin, t.rows.end);
}

/* Sums op(A)'s rows [begin, end): columns of the stored matrix if it is transposed. */
static void sum_gradient(const struct sc_gemm *g, struct sc_part rows)
{
    if (g->transpose_a) {
        const struct sc_reduce_rows_args sum = {
            .in = g->a,
            .out = g->bias_gradient,
            .count = g->k,
            .out_rows = 1,
            .columns = g->m,
            .in_stride = g->lda,
            .out_stride = g->m,
            .accumulate = g->accumulate,
        };
        sc_kernels_select()->reduce_rows(sum, rows.begin, rows.end);
        return;
    }
    for (int64_t i = rows.begin; i < rows.end; i++) {
        float sum = g->accumulate ? g->bias_gradient[i] : 0.0f;
        for (int64_t l = 0; l < g->k; l++)
            sum += g->a[i * g->lda + l];
        g->bias_gradient[i] = sum;
    }
}

static void run_part(void *arg, int part, int parts)
{
    const struct sc_gemm *g = arg;
    int rows = 1, columns = 1;
    sc_product_grid(g->m, g->n, parts, &rows, &columns);
    struct tile t = {
        .rows = sc_part_of(g->m, GRAIN, part / columns, rows),
        .columns = sc_part_of(g->n, GRAIN, part % columns, columns),
    };
    multiply(g, t);
    if (g->bias)
        add_bias(g, t);
    if (g->bias_gradient)
        sum_gradient(g, sc_part_of(g->m, GRAIN, part, parts));
}

void sc_gemm_run(struct sc_team *team, const struct sc_gemm *g)
{
    struct sc_gemm copy = *g;
    sc_team_run(team, run_part, &copy);
}

struct batch_call {
    struct sc_gemm g;
    struct sc_gemm_batch batch;
    int64_t serial[3]; /* products summed into one C along a dimension, else 1 */
};

/* One C: a single product, or the sum of those whose C is the same. */
static void run_unit(const struct batch_call *call, const int64_t first[3])
{
    const struct sc_gemm_batch *b = &call->batch;
    struct tile t = {.rows = {0, call->g.m}, .columns = {0, call->g.n}};
    struct sc_gemm g = call->g;
    int64_t i[3];
    for (i[0] = first[0]; i[0] < first[0] + call->serial[0]; i[0]++)
        for (i[1] = first[1]; i[1] < first[1] + call->serial[1]; i[1]++)
            for (i[2] = first[2]; i[2] < first[2] + call->serial[2]; i[2]++) {
                g.a = call->g.a + i[0] * b->a[0] + i[1] * b->a[1] + i[2] * b->a[2];
                g.b = call->g.b + i[0] * b->b[0] + i[1] * b->b[1] + i[2] * b->b[2];
                g.c = call->g.c + i[0] * b->c[0] + i[1] * b->c[1] + i[2] * b->c[2];
                multiply(&g, t);
                g.accumulate = true;
            }
}

static void run_batch_part(void *arg, int part, int parts)
{
    const struct batch_call *call = arg;
    int64_t units[3], total = 1;
    for (int d = 0; d < 3; d++) {
        units[d] = call->batch.count[d] / call->serial[d];
        total *= units[d];
    }
    struct sc_part mine = sc_part_of(total, 1, part, parts);
    for (int64_t u = mine.begin; u < mine.end; u++) {
        int64_t first[3] = {u / (units[1] * units[2]), u / units[2] % units[1], u % units[2]};
        for (int d = 0; d < 3; d++)
            first[d] *= call->serial[d];
        run_unit(call, first);
    }
}

void sc_gemm_run_batch(struct sc_team *team, const struct sc_gemm *g,
                       const struct sc_gemm_batch *batch)
{
    struct batch_call call = {.g = *g, .batch = *batch};
    for (int d = 0; d < 3; d++) {
        if (batch->count[d] <= 0)
            return;
        call.serial[d] = batch->c[d] == 0 ? batch->count[d] : 1;
    }
    sc_team_run(team, run_batch_part, &call);
}

const char *sc_gemm_library(void)
{
    return sc_blas_get()->name;
}
