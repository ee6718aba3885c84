/* Matrix products by cuBLASLt. */
#include "exec/cuda/cuda_gemm.h"

#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda_device.h"

/* What cuBLASLt's users are advised to give: 32 MiB from Hopper on, less before. */
enum { HOPPER = 9 };
static const size_t workspace_hopper = (size_t)32 << 20, workspace_before = (size_t)8 << 20;

enum { ALIGNMENT = 256, OUTER = 2 };

/* What a plan depends on; compared as bytes, so it is zeroed first. */
struct key {
    int64_t m, n, k, lda, ldb, ldc;
    int64_t batch, batch_a, batch_b, batch_c;
    uint32_t align_a, align_b, align_c;
    uint32_t transpose_a, transpose_b, bias;
};

struct sc_cuda_product {
    struct key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c; /* ours; a is cuBLASLt's B */
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
};

/* A product as it is called: one batch dimension that cuBLASLt takes, the others in loops. */
struct grid {
    struct sc_gemm gemm;
    int64_t batch, a, b, c;
    int64_t outer, outer_a[OUTER], outer_b[OUTER], outer_c[OUTER], outer_count[OUTER];
};

/* ---- batch dimensions ------------------------------------------------------------------------ */

/* Drops dimension d. */
static void drop(struct sc_gemm_batch *batch, int d)
{
    for (; d < 2; d++) {
        batch->count[d] = batch->count[d + 1];
        batch->a[d] = batch->a[d + 1];
        batch->b[d] = batch->b[d + 1];
        batch->c[d] = batch->c[d + 1];
    }
    batch->count[2] = 1;
}

/* Whether steps in dimension d go on where those of d + 1 end, in every operand. */
static bool continues(const struct sc_gemm_batch *batch, int d)
{
    int64_t count = batch->count[d + 1];
    return batch->a[d] == count * batch->a[d + 1] && batch->b[d] == count * batch->b[d + 1] &&
           batch->c[d] == count * batch->c[d + 1];
}

static void fold(struct sc_gemm_batch *batch)
{
    for (int d = 2; d >= 0; d--)
        if (batch->count[d] == 1)
            drop(batch, d);
    for (int d = 1; d >= 0; d--)
        if (batch->count[d + 1] > 1 && continues(batch, d)) {
            batch->count[d + 1] *= batch->count[d];
            drop(batch, d);
        }
}

/* The longest dimension whose products have a C of their own. */
static int choose(const struct sc_gemm_batch *batch)
{
    int best = -1;
    for (int d = 0; d < 3; d++)
        if (batch->count[d] > 1 && batch->c[d] != 0 &&
            (best < 0 || batch->count[d] > batch->count[best]))
            best = d;
    return best;
}

static struct grid grid_of(const struct sc_gemm *gemm, struct sc_gemm_batch batch)
{
    struct grid grid = {.gemm = *gemm, .batch = 1, .outer = 0};
    fold(&batch);
    int inner = choose(&batch);
    if (inner >= 0) {
        grid.batch = batch.count[inner];
        grid.a = batch.a[inner];
        grid.b = batch.b[inner];
        grid.c = batch.c[inner];
        drop(&batch, inner);
    }
    for (int d = 0; d < 3 && batch.count[d] > 1; d++, grid.outer++) {
        grid.outer_count[grid.outer] = batch.count[d];
        grid.outer_a[grid.outer] = batch.a[d];
        grid.outer_b[grid.outer] = batch.b[d];
        grid.outer_c[grid.outer] = batch.c[d];
    }
    for (int64_t d = grid.outer; d < OUTER; d++)
        grid.outer_count[d] = 1;
    return grid;
}

static struct grid grid_of_call(const struct sc_call *call)
{
    struct sc_gemm gemm;
    struct sc_gemm_batch batch = {.count = {1, 1, 1}};
    struct sc_view apart;
    if (call->op->kind == SC_GEMM)
        sc_op_gemm(call, &gemm, &apart);
    else
        sc_op_batched_gemm(call, &gemm, &batch);
    return grid_of(&gemm, batch);
}

/* ---- planning -------------------------------------------------------------------------------- */

/* The power of two that divides an address and all distances, ALIGNMENT at most. */
static uint32_t alignment(const float *address, int64_t batch, const int64_t *outer)
{
    uint64_t all = (uint64_t)(uintptr_t)address | ALIGNMENT;
    all |= (uint64_t)batch * sizeof(float);
    for (int d = 0; d < OUTER; d++)
        all |= (uint64_t)outer[d] * sizeof(float);
    return (uint32_t)(all & -all);
}

static void make_key(const struct grid *grid, struct key *key)
{
    const struct sc_gemm *g = &grid->gemm;
    memset(key, 0, sizeof *key);
    key->m = g->m;
    key->n = g->n;
    key->k = g->k;
    key->lda = g->lda;
    key->ldb = g->ldb;
    key->ldc = g->ldc;
    key->batch = grid->batch;
    key->batch_a = grid->a;
    key->batch_b = grid->b;
    key->batch_c = grid->c;
    key->align_a = alignment(g->a, grid->a, grid->outer_a);
    key->align_b = alignment(g->b, grid->b, grid->outer_b);
    key->align_c = alignment(g->c, grid->c, grid->outer_c);
    key->transpose_a = g->transpose_a;
    key->transpose_b = g->transpose_b;
    key->bias = g->bias != NULL;
}

static enum sc_status set_desc(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t size, struct sc_error *err)
{
    return sc_cublas_ok(cublasLtMatmulDescSetAttribute(desc, attribute, value, size), err,
                        "cublasLtMatmulDescSetAttribute %d", (int)attribute);
}

static enum sc_status describe(const struct key *key, const float *bias, cublasLtMatmulDesc_t *desc,
                               struct sc_error *err)
{
    const cublasOperation_t operations[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    SC_TRY(sc_cublas_ok(cublasLtMatmulDescCreate(desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), err,
                        "cublasLtMatmulDescCreate"));
    SC_TRY(set_desc(*desc, CUBLASLT_MATMUL_DESC_TRANSA, &operations[key->transpose_b],
                    sizeof *operations, err));
    SC_TRY(set_desc(*desc, CUBLASLT_MATMUL_DESC_TRANSB, &operations[key->transpose_a],
                    sizeof *operations, err));
    if (!key->bias)
        return SC_OK;
    SC_TRY(set_desc(*desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, err));
    return set_desc(*desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias, err);
}

/* A row-major [rows, columns] is a column-major [columns, rows]. */
static enum sc_status lay_out(int64_t rows, int64_t columns, int64_t stride, const struct key *key,
                              int64_t distance, cublasLtMatrixLayout_t *layout,
                              struct sc_error *err)
{
    int32_t batch = (int32_t)key->batch;
    SC_TRY(sc_cublas_ok(
        cublasLtMatrixLayoutCreate(layout, CUDA_R_32F, (uint64_t)columns, (uint64_t)rows, stride),
        err, "cublasLtMatrixLayoutCreate"));
    if (batch == 1)
        return SC_OK;
    SC_TRY(sc_cublas_ok(cublasLtMatrixLayoutSetAttribute(
                            *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                        err, "cublasLtMatrixLayoutSetAttribute batch count"));
    return sc_cublas_ok(
        cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                         &distance, sizeof distance),
        err, "cublasLtMatrixLayoutSetAttribute batch offset");
}

static enum sc_status lay_out_all(const struct key *key, struct sc_cuda_product *product,
                                  struct sc_error *err)
{
    bool ta = key->transpose_a, tb = key->transpose_b;
    SC_TRY(lay_out(ta ? key->k : key->m, ta ? key->m : key->k, key->lda, key, key->batch_a,
                   &product->a, err));
    SC_TRY(lay_out(tb ? key->n : key->k, tb ? key->k : key->n, key->ldb, key, key->batch_b,
                   &product->b, err));
    return lay_out(key->m, key->n, key->ldc, key, key->batch_c, &product->c, err);
}

static enum sc_status set_preferences(cublasLtMatmulPreference_t preference, const struct key *key,
                                      uint64_t workspace, struct sc_error *err)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t value;
    } alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key->align_b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key->align_a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key->align_c},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key->align_c},
    };
    SC_TRY(sc_cublas_ok(
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace),
        err, "cublasLtMatmulPreferenceSetAttribute workspace"));
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        SC_TRY(sc_cublas_ok(
            cublasLtMatmulPreferenceSetAttribute(preference, alignments[i].attribute,
                                                 &alignments[i].value, sizeof(uint32_t)),
            err, "cublasLtMatmulPreferenceSetAttribute alignment"));
    return SC_OK;
}

static enum sc_status choose_algorithm(cublasLtHandle_t handle, struct sc_cuda_product *product,
                                       size_t workspace, struct sc_error *err)
{
    const struct key *key = &product->key;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    memset(&found, 0, sizeof found);
    SC_TRY(sc_cublas_ok(cublasLtMatmulPreferenceCreate(&preference), err,
                        "cublasLtMatmulPreferenceCreate"));
    enum sc_status status = set_preferences(preference, key, workspace, err);
    if (status == SC_OK)
        status = sc_cublas_ok(cublasLtMatmulAlgoGetHeuristic(handle, product->desc, product->b,
                                                             product->a, product->c, product->c,
                                                             preference, 1, &found, &count),
                              err, "cublasLtMatmulAlgoGetHeuristic for m %lld n %lld k %lld",
                              (long long)key->m, (long long)key->n, (long long)key->k);
    cublasLtMatmulPreferenceDestroy(preference);
    SC_TRY(status);
    if (count < 1)
        return sc_fail(err, SC_MACHINE, "cuda: cuBLASLt has no algorithm for m %lld n %lld k %lld",
                       (long long)key->m, (long long)key->n, (long long)key->k);
    product->algo = found.algo;
    product->workspace = found.workspaceSize;
    return SC_OK;
}

static enum sc_status add_product(struct sc_cuda_products *products, const struct key *key,
                                  const float *bias, size_t workspace, struct sc_error *err)
{
    struct sc_cuda_product *product = sc_array_push(products);
    if (!product)
        return sc_fail_memory(err, sizeof *product);
    product->key = *key;
    SC_TRY(describe(key, bias, &product->desc, err));
    SC_TRY(lay_out_all(key, product, err));
    return choose_algorithm(products->handle, product, workspace, err);
}

static enum sc_status find_product(struct sc_cuda_products *products, const struct grid *grid,
                                   size_t workspace, uint32_t *out, struct sc_error *err)
{
    struct key key;
    make_key(grid, &key);
    for (size_t i = 0; i < products->count; i++)
        if (memcmp(&products->items[i].key, &key, sizeof key) == 0) {
            *out = (uint32_t)i;
            return SC_OK;
        }
    *out = (uint32_t)products->count;
    return add_product(products, &key, grid->gemm.bias, workspace, err);
}

static enum sc_status plan_op(struct sc_device *device, uint32_t op, size_t workspace,
                              struct sc_error *err)
{
    struct sc_cuda_products *products = &device->products;
    const struct sc_call call = sc_cuda_call(device, SC_LIST_STEP, op, 0);
    const struct grid grid = grid_of_call(&call);
    SC_TRY(find_product(products, &grid, workspace, &products->of_op[op], err));
    struct sc_cuda_stream *stream = &device->streams[call.op->stream];
    size_t need = products->items[products->of_op[op]].workspace;
    stream->workspace_bytes = need > stream->workspace_bytes ? need : stream->workspace_bytes;
    return SC_OK;
}

static bool is_product(const struct sc_op *op)
{
    return op->kind == SC_GEMM || op->kind == SC_BATCHED_GEMM;
}

enum sc_status sc_cuda_open_products(struct sc_device *device, struct sc_error *err)
{
    const struct sc_list *list = &device->data.class->step;
    int major = 0;
    SC_TRY(sc_cuda_ok(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->number), err,
        "cudaDeviceGetAttribute"));
    size_t workspace = major >= HOPPER ? workspace_hopper : workspace_before;
    SC_TRY(sc_cublas_ok(cublasLtCreate(&device->products.handle), err, "cublasLtCreate"));
    device->products.of_op = calloc(list->ops.count + 1, sizeof *device->products.of_op);
    if (!device->products.of_op)
        return sc_fail_memory(err, list->ops.count * sizeof *device->products.of_op);
    for (uint32_t i = 0; i < list->ops.count; i++)
        if (is_product(&list->ops.items[i]))
            SC_TRY(plan_op(device, i, workspace, err));
    return SC_OK;
}

void sc_cuda_close_products(struct sc_device *device)
{
    struct sc_cuda_products *products = &device->products;
    for (size_t i = 0; i < products->count; i++) {
        struct sc_cuda_product *product = &products->items[i];
        cublasLtMatrixLayout_t layouts[] = {product->a, product->b, product->c};
        for (int l = 0; l < 3; l++)
            if (layouts[l])
                cublasLtMatrixLayoutDestroy(layouts[l]);
        if (product->desc)
            cublasLtMatmulDescDestroy(product->desc);
    }
    sc_array_free(products);
    free(products->of_op);
    if (products->handle)
        cublasLtDestroy(products->handle);
    memset(products, 0, sizeof *products);
}

/* ---- calling --------------------------------------------------------------------------------- */

static enum sc_status multiply(const struct sc_call *call, const struct sc_gemm *g,
                               struct sc_error *err)
{
    const struct sc_cuda_stream *at = call->where;
    const struct sc_cuda_products *products = &at->device->products;
    const struct sc_cuda_product *product = &products->items[products->of_op[call->index]];
    const float beta = g->accumulate ? 1.0f : 0.0f;
    if (g->bias)
        SC_TRY(set_desc(product->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &g->bias, sizeof g->bias,
                        err));
    return sc_cublas_ok(cublasLtMatmul(products->handle, product->desc, &g->alpha, g->b, product->b,
                                       g->a, product->a, &beta, g->c, product->c, g->c, product->c,
                                       &product->algo, at->workspace, product->workspace,
                                       at->stream),
                        err, "cublasLtMatmul");
}

/* Products that share a C follow one another on the stream and add. */
static enum sc_status multiply_all(const struct sc_call *call, const struct grid *grid,
                                   struct sc_error *err)
{
    for (int64_t i = 0; i < grid->outer_count[0]; i++)
        for (int64_t j = 0; j < grid->outer_count[1]; j++) {
            struct sc_gemm g = grid->gemm;
            g.a += i * grid->outer_a[0] + j * grid->outer_a[1];
            g.b += i * grid->outer_b[0] + j * grid->outer_b[1];
            g.c += i * grid->outer_c[0] + j * grid->outer_c[1];
            g.accumulate |= (i > 0 && grid->outer_c[0] == 0) || (j > 0 && grid->outer_c[1] == 0);
            SC_TRY(multiply(call, &g, err));
        }
    return SC_OK;
}

/* The column sums of A are a kernel of their own here: cuBLASLt's epilogue cannot add to them. */
enum sc_status sc_cuda_gemm(const struct sc_call *call, struct sc_error *err)
{
    const struct grid grid = grid_of_call(call);
    struct sc_view a = sc_call_view(call, SC_ROLE_A);
    struct sc_view sums = sc_call_view(call, SC_ROLE_BIAS_GRADIENT);
    SC_TRY(multiply_all(call, &grid, err));
    return sums.data ? sc_call_column_sums(call, &a, &sums, err) : SC_OK;
}

enum sc_status sc_cuda_batched_gemm(const struct sc_call *call, struct sc_error *err)
{
    const struct grid grid = grid_of_call(call);
    return multiply_all(call, &grid, err);
}
