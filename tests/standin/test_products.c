/*
 * Matrix products of the stand-in against a triple loop that is written from the library's
 * documentation: every order, transpose, epilogue, a batch; and what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/standin/standin.h"

enum { M = 3, N = 5, K = 4, BATCH = 2, ROOM = 64, FLOATS = BATCH * ROOM };

static void good(int code)
{
    if (code != 0)
        fail_msg("code %d: %s", code, sc_standin_complaint());
}

/* A matrix of rows x cols whose lines lie 7 apart, of a batch that lies ROOM apart. */
struct matrix {
    int rows, cols, order;
    float host[FLOATS], *device;
    cublasLtMatrixLayout_t layout;
};

static int at(const struct matrix *m, int batch, int row, int col)
{
    return batch * ROOM + (m->order == CUBLASLT_ORDER_COL ? col * 7 + row : row * 7 + col);
}

/* What stands at (row, col) of the matrix or of its transpose. */
static double get(const struct matrix *m, int batch, bool transposed, int row, int col)
{
    return (double)m->host[transposed ? at(m, batch, col, row) : at(m, batch, row, col)];
}

struct session {
    cublasLtHandle_t handle;
    cudaStream_t stream;
    uint64_t random;
};

static void make(struct session *s, struct matrix *m, int rows, int cols, int order)
{
    int32_t batch = BATCH;
    int64_t stride = ROOM;
    *m = (struct matrix){.rows = rows, .cols = cols, .order = order};
    for (int i = 0; i < FLOATS; i++)
        m->host[i] = sc_uniform((uint32_t)sc_random_next(&s->random)) - 0.5f;
    good(cudaMalloc((void **)&m->device, sizeof m->host));
    good(cudaMemcpyAsync(m->device, m->host, sizeof m->host, cudaMemcpyHostToDevice, s->stream));
    good(cublasLtMatrixLayoutCreate(&m->layout, CUDA_R_32F, (uint64_t)rows, (uint64_t)cols, 7));
    good(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                          sizeof order));
    good(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                          sizeof batch));
    good(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &stride, sizeof stride));
}

struct kind {
    int transpose[2], order[3];
    cublasLtEpilogue_t epilogue;
    float alpha, beta;
};

static cublasLtMatmulDesc_t describe(const struct kind *kind, const float *bias)
{
    static const cublasLtMatmulDescAttributes_t sides[] = {CUBLASLT_MATMUL_DESC_TRANSA,
                                                           CUBLASLT_MATMUL_DESC_TRANSB};
    cublasLtMatmulDesc_t d;
    int64_t stride = ROOM;
    uint32_t epilogue = kind->epilogue;
    good(cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    for (int i = 0; i < 2; i++) {
        int32_t op = kind->transpose[i] ? CUBLAS_OP_T : CUBLAS_OP_N;
        good(cublasLtMatmulDescSetAttribute(d, sides[i], &op, sizeof op));
    }
    good(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                        sizeof epilogue));
    good(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    good(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &stride,
                                        sizeof stride));
    return d;
}

/* Asks for an algorithm with this alignment of all operands. */
static cublasLtMatmulHeuristicResult_t ask(const struct session *s, cublasLtMatmulDesc_t d,
                                           const struct matrix m[3], uint32_t alignment)
{
    static const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    uint64_t workspace = 1024;
    int found = 0;
    good(cublasLtMatmulPreferenceCreate(&preference));
    good(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &workspace, sizeof workspace));
    for (int i = 0; i < 4; i++)
        good(cublasLtMatmulPreferenceSetAttribute(preference, sides[i], &alignment,
                                                  sizeof alignment));
    good(cublasLtMatmulAlgoGetHeuristic(s->handle, d, m[0].layout, m[1].layout, m[2].layout,
                                        m[2].layout, preference, 1, &result, &found));
    assert_int_equal(found, 1);
    assert_int_equal(result.workspaceSize, 1024);
    good(cublasLtMatmulPreferenceDestroy(preference));
    return result;
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void check(const struct kind *kind, const struct matrix m[3], const float *bias,
                  const float *out, const float *sums)
{
    bool ta = kind->transpose[0], tb = kind->transpose[1];
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int l = 0; l < K; l++)
                    sum += get(&m[0], b, ta, i, l) * get(&m[1], b, tb, l, j);
                double d =
                    (double)kind->alpha * sum + (double)kind->beta * get(&m[2], b, false, i, j);
                if (kind->epilogue & CUBLASLT_EPILOGUE_BIAS)
                    d += (double)bias[b * ROOM + i]; /* one a row of D */
                if (kind->epilogue & CUBLASLT_EPILOGUE_GELU)
                    d = gelu(d);
                assert_float_equal(out[at(&m[2], b, i, j)], d, 1e-5);
            }
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < (kind->epilogue == CUBLASLT_EPILOGUE_BGRADA ? M : N); i++) {
            double sum = 0;
            for (int l = 0; l < K; l++)
                sum += kind->epilogue == CUBLASLT_EPILOGUE_BGRADA ? get(&m[0], b, ta, i, l)
                                                                  : get(&m[1], b, tb, l, i);
            if (kind->epilogue & (CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB))
                assert_float_equal(sums[b * ROOM + i], sum, 1e-5);
        }
}

static void open_session(struct session *s)
{
    const struct sc_standin_setup setup = {.seed = 5};
    sc_standin_begin(&setup);
    s->random = 9;
    good(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    good(cublasLtCreate(&s->handle));
}

static void run(const struct kind *kind)
{
    struct session s;
    struct matrix m[3];
    float bias[FLOATS], *on_device, *workspace, out[FLOATS], sums[FLOATS];
    open_session(&s);
    bool ta = kind->transpose[0], tb = kind->transpose[1];
    make(&s, &m[0], ta ? K : M, ta ? M : K, kind->order[0]);
    make(&s, &m[1], tb ? N : K, tb ? K : N, kind->order[1]);
    make(&s, &m[2], M, N, kind->order[2]);
    for (int i = 0; i < FLOATS; i++)
        bias[i] = sc_uniform((uint32_t)sc_random_next(&s.random)) - 0.5f;
    good(cudaMalloc((void **)&on_device, sizeof bias));
    good(cudaMalloc((void **)&workspace, 1024));
    good(cudaMemcpyAsync(on_device, bias, sizeof bias, cudaMemcpyHostToDevice, s.stream));
    cublasLtMatmulDesc_t d = describe(kind, on_device);
    cublasLtMatmulHeuristicResult_t found = ask(&s, d, m, 16);
    good(cublasLtMatmul(s.handle, d, &kind->alpha, m[0].device, m[0].layout, m[1].device,
                        m[1].layout, &kind->beta, m[2].device, m[2].layout, m[2].device,
                        m[2].layout, &found.algo, workspace, 1024, s.stream));
    good(cudaMemcpyAsync(out, m[2].device, sizeof out, cudaMemcpyDeviceToHost, s.stream));
    good(cudaMemcpyAsync(sums, on_device, sizeof sums, cudaMemcpyDeviceToHost, s.stream));
    check(kind, m, bias, out, sums);
    assert_true(isnan(workspace[0]));
    for (int i = 0; i < 3; i++)
        good(cublasLtMatrixLayoutDestroy(m[i].layout));
    good(cublasLtMatmulDescDestroy(d));
    good(cublasLtDestroy(s.handle));
    assert_string_equal(sc_standin_left(), "5 allocations, 1 stream");
    assert_string_equal(sc_standin_complaint(), "");
    sc_standin_end();
}

static void test_orders_and_transposes(void **state)
{
    (void)state;
    for (int bits = 0; bits < 32; bits++) {
        struct kind kind = {{bits & 1, bits >> 1 & 1},
                            {CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL},
                            CUBLASLT_EPILOGUE_DEFAULT,
                            1,
                            0};
        for (int i = 0; i < 3; i++)
            if (bits >> (2 + i) & 1)
                kind.order[i] = CUBLASLT_ORDER_ROW;
        run(&kind);
        kind.alpha = -1.5f;
        kind.beta = 1;
        run(&kind);
        kind.beta = 0.5f;
        run(&kind);
    }
}

static void test_epilogues(void **state)
{
    (void)state;
    const cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU,
                                            CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_BGRADA,
                                            CUBLASLT_EPILOGUE_BGRADB};
    for (int e = 0; e < 5; e++)
        for (int bits = 0; bits < 4; bits++) {
            const struct kind kind = {{bits & 1, bits >> 1},
                                      {CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL},
                                      epilogues[e],
                                      1,
                                      1};
            run(&kind);
        }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const struct kind plain = {
    {0, 0}, {CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL, CUBLASLT_ORDER_COL}, 1, 1, 0};

static cublasStatus_t call(const struct session *s, cublasLtMatmulDesc_t d,
                           const struct matrix m[3], const cublasLtMatmulAlgo_t *algo,
                           size_t offset, void *workspace, size_t bytes, cudaStream_t stream)
{
    const float one = 1, zero = 0;
    return cublasLtMatmul(s->handle, d, &one, m[0].device + offset, m[0].layout, m[1].device,
                          m[1].layout, &zero, m[2].device, m[2].layout, m[2].device, m[2].layout,
                          algo, workspace, bytes, stream);
}

static void refused(int which, const char *line)
{
    struct session s;
    struct matrix m[3];
    void *workspace;
    cudaStream_t other;
    open_session(&s);
    make(&s, &m[0], M, K, plain.order[0]);
    make(&s, &m[1], which == 0 ? K + 1 : K, N, plain.order[1]);
    make(&s, &m[2], M, N, plain.order[2]);
    good(cudaMalloc(&workspace, 1024));
    good(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cublasLtMatmulDesc_t d = describe(&plain, NULL);
    cublasLtMatmulHeuristicResult_t found = {.state = CUBLAS_STATUS_SUCCESS};
    if (which > 0)
        found = ask(&s, d, m, 16);
    int32_t op = CUBLAS_OP_N;
    size_t offset = which == 2 ? 1 : 0, bytes = which == 3 ? 512 : 1024;
    if (which == 4)
        good(call(&s, d, m, &found.algo, 0, workspace, 1024, other));
    if (which == 1)
        good(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                            &(uint32_t){CUBLASLT_EPILOGUE_GELU}, sizeof op));
    assert_int_equal(call(&s, d, m, &found.algo, offset, workspace, bytes, s.stream),
                     CUBLAS_STATUS_INVALID_VALUE);
    assert_string_equal(sc_standin_complaint(), line);
    sc_standin_end();
}

static void test_refusals(void **state)
{
    (void)state;
    refused(0, "cublasLtMatmul: op(A) is 3 x 4, op(B) 5 x 5, D 3 x 5, batches 2, 2, 2");
    refused(1, "cublasLtMatmul: the algorithm was found for another product");
    refused(2, "cublasLtMatmul: A is not aligned to 16 bytes, as the algorithm was found for");
    refused(3, "cublasLtMatmul: the algorithm was found for more workspace");
    refused(4, "cublasLtMatmul: the workspace is that of another stream");
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_and_transposes),
        cmocka_unit_test(test_epilogues),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
