/*
 * cuBLASLt: D = alpha op(A) op(B) + beta C with an epilogue, as one command of a stream. Computed
 * by the matrix-product library that the host backend uses, one call a product on one thread, so
 * that equal calls give equal bits.
 *
 * A product may only be called as it was asked about: the algorithm remembers its shapes, the
 * workspace it was promised and the alignment of the operands.
 */
#include "tests/standin/internal.h"

#include <cublasLt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/blas.h"
#include "exec/kernels/kernels.h"

enum { WORKSPACE = 4096, ALIGNMENT = 256, POISON = 0xff };

struct cublasLtContext {
    struct standin_object object;
    int device;
};

struct layout {
    struct standin_object object;
    cudaDataType type;
    int32_t order, batch;
    uint64_t rows, cols;
    int64_t stride; /* between rows or columns, as `order` says */
    int64_t batch_stride;
};

struct description {
    struct standin_object object;
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t pointer_mode, transpose[2];
    uint32_t epilogue;
    const void *bias;
    int64_t bias_stride;
};

struct preference {
    struct standin_object object;
    uint32_t alignment[4];
    uint64_t workspace;
};

static const char handle_name[] = "cuBLASLt handle", layout_name[] = "matrix layout",
                  description_name[] = "matmul description", preference_name[] = "preference";

/* What an algorithm was found for; the opaque one of the library has this many bytes. */
struct algorithm {
    uint64_t shape, workspace;
    uint32_t alignment[4];
};
_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "does not fit");

static cublasStatus_t unavailable(void)
{
    return standin.on ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char *cublasLtGetStatusString(cublasStatus_t code)
{
    switch (code) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an invalid value was used as an argument";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality is not supported";
    default:
        return "an internal operation failed";
    }
}

const char *cublasLtGetStatusName(cublasStatus_t code)
{
    return cublasLtGetStatusString(code);
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

/* ---- handles --------------------------------------------------------------------------------- */

static cublasStatus_t end_object(const char *call, const char *what, void *handle)
{
    bool fails = standin_enter(call);
    if (!standin.on || !standin_object_ok(call, what, handle))
        return CUBLAS_STATUS_INVALID_VALUE;
    ((struct standin_object *)handle)->destroyed = true;
    return fails ? unavailable() : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    if (standin_enter("cublasLtCreate"))
        return unavailable();
    *out = standin_object(handle_name, sizeof **out);
    if (*out)
        (*out)->device = standin_me->device;
    return *out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return end_object("cublasLtDestroy", handle_name, handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (standin_enter("cublasLtMatmulDescCreate"))
        return unavailable();
    struct description *d = standin_object(description_name, sizeof *d);
    if (!d)
        return CUBLAS_STATUS_ALLOC_FAILED;
    d->compute = compute;
    d->scale = scale;
    d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    *out = (cublasLtMatmulDesc_t)(void *)d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle)
{
    return end_object("cublasLtMatmulDescDestroy", description_name, handle);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t stride)
{
    if (standin_enter("cublasLtMatrixLayoutCreate"))
        return unavailable();
    struct layout *l = standin_object(layout_name, sizeof *l);
    if (!l)
        return CUBLAS_STATUS_ALLOC_FAILED;
    l->type = type;
    l->order = CUBLASLT_ORDER_COL;
    l->batch = 1;
    l->rows = rows;
    l->cols = cols;
    l->stride = stride;
    *out = (cublasLtMatrixLayout_t)(void *)l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle)
{
    return end_object("cublasLtMatrixLayoutDestroy", layout_name, handle);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    if (standin_enter("cublasLtMatmulPreferenceCreate"))
        return unavailable();
    struct preference *p = standin_object(preference_name, sizeof *p);
    if (!p)
        return CUBLAS_STATUS_ALLOC_FAILED;
    for (int i = 0; i < 4; i++)
        p->alignment[i] = ALIGNMENT;
    *out = (cublasLtMatmulPreference_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle)
{
    return end_object("cublasLtMatmulPreferenceDestroy", preference_name, handle);
}

/* ---- attributes ------------------------------------------------------------------------------ */

struct field {
    int attribute;
    size_t offset, bytes;
};

static cublasStatus_t set(const char *call, const char *what, void *handle,
                          const struct field *fields, size_t count, int attribute, const void *from,
                          size_t bytes)
{
    if (standin_enter(call))
        return unavailable();
    if (!standin_object_ok(call, what, handle))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (fields[i].attribute != attribute)
            continue;
        if (!from || bytes != fields[i].bytes) {
            standin_complain("%s: attribute %d has %zu bytes, not %zu", call, attribute,
                             fields[i].bytes, bytes);
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        memcpy((char *)handle + fields[i].offset, from, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    standin_complain("%s: attribute %d is not provided", call, attribute);
    return CUBLAS_STATUS_INVALID_VALUE;
}

#define FIELD(attribute, type, member)                                                             \
    {                                                                                              \
        attribute, offsetof(struct type, member), sizeof(((struct type *)0)->member)               \
    }
#define COUNT(array) (sizeof(array) / sizeof *(array))

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *from, size_t bytes)
{
    static const struct field fields[] = {
        FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, description, pointer_mode),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSA, description, transpose[0]),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSB, description, transpose[1]),
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, description, epilogue),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, description, bias),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, description, bias_stride),
    };
    return set("cublasLtMatmulDescSetAttribute", description_name, handle, fields, COUNT(fields),
               (int)attribute, from, bytes);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *from, size_t bytes)
{
    static const struct field fields[] = {
        FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
        FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
        FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, layout, cols),
        FIELD(CUBLASLT_MATRIX_LAYOUT_LD, layout, stride),
        FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, batch),
        FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout, batch_stride),
    };
    return set("cublasLtMatrixLayoutSetAttribute", layout_name, handle, fields, COUNT(fields),
               (int)attribute, from, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *from, size_t bytes)
{
    static const struct field fields[] = {
        FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference, workspace),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, preference, alignment[0]),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, preference, alignment[1]),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, preference, alignment[2]),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, preference, alignment[3]),
    };
    return set("cublasLtMatmulPreferenceSetAttribute", preference_name, handle, fields,
               COUNT(fields), (int)attribute, from, bytes);
}

/* ---- a product ------------------------------------------------------------------------------- */

/* In the words of the library: D is m x n, op(A) m x k, op(B) k x n. */
struct problem {
    struct description d;
    struct layout a, b, c, out;
    uint64_t m, n, k;
};

static bool sane(const struct layout *l)
{
    uint64_t least = l->order == CUBLASLT_ORDER_COL ? l->rows : l->cols;
    return l->type == CUDA_R_32F &&
           (l->order == CUBLASLT_ORDER_COL || l->order == CUBLASLT_ORDER_ROW) && l->rows > 0 &&
           l->cols > 0 && l->rows < INT32_MAX && l->cols < INT32_MAX && l->batch > 0 &&
           l->stride >= (int64_t)least;
}

static bool same_shape(const struct layout *x, const struct layout *y)
{
    return x->rows == y->rows && x->cols == y->cols && x->order == y->order && x->batch == y->batch;
}

static bool epilogue_ok(uint32_t epilogue)
{
    switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
        return true;
    default:
        return false;
    }
}

static cublasStatus_t describe(const char *call, cublasLtHandle_t handle, const void *d,
                               const void *a, const void *b, const void *c, const void *out,
                               struct problem *p)
{
    if (!standin_object_ok(call, handle_name, handle) ||
        !standin_object_ok(call, description_name, d) || !standin_object_ok(call, layout_name, a) ||
        !standin_object_ok(call, layout_name, b) || !standin_object_ok(call, layout_name, c) ||
        !standin_object_ok(call, layout_name, out))
        return CUBLAS_STATUS_INVALID_VALUE;
    *p = (struct problem){.d = *(const struct description *)d,
                          .a = *(const struct layout *)a,
                          .b = *(const struct layout *)b,
                          .c = *(const struct layout *)c,
                          .out = *(const struct layout *)out};
    bool ta = p->d.transpose[0] == CUBLAS_OP_T, tb = p->d.transpose[1] == CUBLAS_OP_T;
    p->m = ta ? p->a.cols : p->a.rows;
    p->k = ta ? p->a.rows : p->a.cols;
    p->n = tb ? p->b.rows : p->b.cols;
    uint64_t k = tb ? p->b.cols : p->b.rows;
    bool fits = sane(&p->a) && sane(&p->b) && sane(&p->c) && sane(&p->out) && k == p->k &&
                p->out.rows == p->m && p->out.cols == p->n && same_shape(&p->c, &p->out) &&
                p->a.batch == p->out.batch && p->b.batch == p->out.batch;
    if (!fits) {
        standin_complain("%s: op(A) is %llu x %llu, op(B) %llu x %llu, D %llu x %llu, batches %d, "
                         "%d, %d",
                         call, (unsigned long long)p->m, (unsigned long long)p->k,
                         (unsigned long long)k, (unsigned long long)p->n,
                         (unsigned long long)p->out.rows, (unsigned long long)p->out.cols,
                         p->a.batch, p->b.batch, p->out.batch);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if ((p->d.compute != CUBLAS_COMPUTE_32F && p->d.compute != CUBLAS_COMPUTE_32F_PEDANTIC) ||
        p->d.scale != CUDA_R_32F || p->d.pointer_mode != CUBLASLT_POINTER_MODE_HOST ||
        !epilogue_ok(p->d.epilogue)) {
        standin_complain("%s: compute type %d, scale type %d or epilogue %u is not provided", call,
                         p->d.compute, p->d.scale, p->d.epilogue);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x100000001b3);
}

/* Everything but addresses. */
static uint64_t shape_of(const struct problem *p)
{
    const struct layout *const layouts[] = {&p->a, &p->b, &p->c, &p->out};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 4; i++) {
        const struct layout *l = layouts[i];
        const uint64_t words[] = {(uint64_t)l->order,  (uint64_t)l->batch,       l->rows, l->cols,
                                  (uint64_t)l->stride, (uint64_t)l->batch_stride};
        for (size_t w = 0; w < COUNT(words); w++)
            hash = mix(hash, words[w]);
    }
    hash = mix(hash, (uint64_t)p->d.transpose[0]);
    hash = mix(hash, (uint64_t)p->d.transpose[1]);
    return mix(hash, p->d.epilogue);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t wish, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    static const char call[] = "cublasLtMatmulAlgoGetHeuristic";
    struct problem p;
    if (standin_enter(call))
        return unavailable();
    cublasStatus_t status = describe(call, handle, d, a, b, c, out, &p);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (!standin_object_ok(call, preference_name, wish) || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct preference *preference = (const void *)wish;
    struct algorithm algorithm = {.shape = shape_of(&p)};
    algorithm.workspace = preference->workspace < WORKSPACE ? preference->workspace : WORKSPACE;
    memcpy(algorithm.alignment, preference->alignment, sizeof algorithm.alignment);
    memset(&results[0], 0, sizeof results[0]);
    memcpy(&results[0].algo, &algorithm, sizeof algorithm);
    results[0].workspaceSize = algorithm.workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

struct product {
    struct standin_command base;
    struct problem problem;
    float alpha, beta;
    const float *a, *b, *c;
    float *out;
    char *workspace;
    size_t workspace_bytes;
};

/* ---- doing it -------------------------------------------------------------------------------- */

static float *element(const struct layout *l, float *matrix, uint64_t row, uint64_t col)
{
    int64_t i = (int64_t)row, j = (int64_t)col;
    return matrix + (l->order == CUBLASLT_ORDER_COL ? j * l->stride + i : i * l->stride + j);
}

/* D starts as beta C. */
static bool start(const struct problem *p, const struct product *g, const float *c, float *out)
{
    if (g->beta == 0)
        return false;
    if (g->beta == 1 && c == out && p->c.stride == p->out.stride)
        return true;
    for (uint64_t i = 0; i < p->m; i++)
        for (uint64_t j = 0; j < p->n; j++)
            *element(&p->out, out, i, j) = g->beta * *element(&p->c, (float *)(uintptr_t)c, i, j);
    return true;
}

/* The library below is row-major. A matrix stored by columns is its transpose stored by rows, so
 * where D is stored by columns the product done is D^T = op(B)^T op(A)^T. */
static void multiply(const struct problem *p, const struct product *g, const float *a,
                     const float *b, const float *c, float *out)
{
    bool ta = p->d.transpose[0] == CUBLAS_OP_T, tb = p->d.transpose[1] == CUBLAS_OP_T;
    bool a_rows = p->a.order == CUBLASLT_ORDER_ROW, b_rows = p->b.order == CUBLASLT_ORDER_ROW;
    struct sc_sgemm s = {.accumulate = start(p, g, c, out),
                         .k = (int64_t)p->k,
                         .ldc = p->out.stride,
                         .alpha = g->alpha,
                         .c = out};
    if (p->out.order == CUBLASLT_ORDER_COL) {
        s.m = (int64_t)p->n;
        s.n = (int64_t)p->m;
        s.a = b;
        s.lda = p->b.stride;
        s.transpose_a = b_rows ? !tb : tb;
        s.b = a;
        s.ldb = p->a.stride;
        s.transpose_b = a_rows ? !ta : ta;
    } else {
        s.m = (int64_t)p->m;
        s.n = (int64_t)p->n;
        s.a = a;
        s.lda = p->a.stride;
        s.transpose_a = a_rows ? ta : !ta;
        s.b = b;
        s.ldb = p->b.stride;
        s.transpose_b = b_rows ? tb : !tb;
    }
    sc_blas_get()->sgemm(&s);
}

static float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static void finish(const struct problem *p, float *out, const float *bias)
{
    bool gelus = p->d.epilogue & CUBLASLT_EPILOGUE_GELU;
    for (uint64_t i = 0; i < p->m; i++)
        for (uint64_t j = 0; j < p->n; j++) {
            float *x = element(&p->out, out, i, j);
            *x += bias ? bias[i] : 0;
            *x = gelus ? gelu(*x) : *x;
        }
}

/* Sums over k, a row of op(A) or a column of op(B) each, in the order of k; as the host's kernel
 * does where the sum runs along stored rows. */
static void sum_over_k(const struct problem *p, const float *matrix, bool of_a, float *sums)
{
    const struct layout *l = of_a ? &p->a : &p->b;
    bool transposed = p->d.transpose[of_a ? 0 : 1] == CUBLAS_OP_T;
    bool k_is_row = of_a ? transposed : !transposed; /* as in the untransposed matrix */
    uint64_t size = of_a ? p->m : p->n;
    if (k_is_row == (l->order == CUBLASLT_ORDER_ROW)) {
        const struct sc_reduce_rows_args args = {.in = matrix,
                                                 .out = sums,
                                                 .count = (int64_t)p->k,
                                                 .out_rows = 1,
                                                 .columns = (int64_t)size,
                                                 .in_stride = l->stride,
                                                 .out_stride = (int64_t)size};
        sc_kernels_select()->reduce_rows(args, 0, (int64_t)size);
        return;
    }
    for (uint64_t i = 0; i < size; i++) {
        sums[i] = 0;
        for (uint64_t j = 0; j < p->k; j++)
            sums[i] += *element(l, (float *)(uintptr_t)matrix, k_is_row ? j : i, k_is_row ? i : j);
    }
}

static void run_product(struct CUstream_st *stream, struct standin_command *command)
{
    const struct product *g = (const struct product *)command;
    const struct problem *p = &g->problem;
    if (g->workspace_bytes > 0)
        memset(g->workspace, POISON, g->workspace_bytes);
    for (int32_t i = 0; i < p->out.batch; i++) {
        const float *a = g->a + i * p->a.batch_stride, *b = g->b + i * p->b.batch_stride;
        float *out = g->out + i * p->out.batch_stride, *bias = (float *)(uintptr_t)p->d.bias;
        multiply(p, g, a, b, g->c ? g->c + i * p->c.batch_stride : NULL, out);
        if (p->d.epilogue == CUBLASLT_EPILOGUE_BGRADA || p->d.epilogue == CUBLASLT_EPILOGUE_BGRADB)
            sum_over_k(p, p->d.epilogue == CUBLASLT_EPILOGUE_BGRADA ? a : b,
                       p->d.epilogue == CUBLASLT_EPILOGUE_BGRADA, bias + i * p->d.bias_stride);
        else if (p->d.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
            finish(p, out,
                   p->d.epilogue & CUBLASLT_EPILOGUE_BIAS ? bias + i * p->d.bias_stride : NULL);
    }
    standin_pop(stream);
}

static const struct standin_kind product_kind = {"multiplies", false, NULL, run_product, NULL};

/* ---- the call -------------------------------------------------------------------------------- */

static size_t bytes_of(const struct layout *l)
{
    uint64_t lines = l->order == CUBLASLT_ORDER_COL ? l->cols : l->rows;
    uint64_t length = l->order == CUBLASLT_ORDER_COL ? l->rows : l->cols;
    uint64_t one = (lines - 1) * (uint64_t)l->stride + length;
    return ((uint64_t)(l->batch - 1) * (uint64_t)l->batch_stride + one) * sizeof(float);
}

static bool operand_ok(const char *call, const char *what, const struct layout *l,
                       const void *start_, uint32_t alignment, int device)
{
    if (!standin_range_ok(call, what, device, start_, bytes_of(l)))
        return false;
    if ((uintptr_t)start_ % alignment == 0)
        return true;
    standin_complain("%s: %s is not aligned to %u bytes, as the algorithm was found for", call,
                     what, alignment);
    return false;
}

static bool bias_ok(const char *call, const struct problem *p, int device)
{
    uint32_t e = p->d.epilogue;
    if (e == CUBLASLT_EPILOGUE_DEFAULT || e == CUBLASLT_EPILOGUE_GELU)
        return true;
    uint64_t length = e == CUBLASLT_EPILOGUE_BGRADB ? p->n : p->m;
    uint64_t all = (uint64_t)(p->out.batch - 1) * (uint64_t)p->d.bias_stride + length;
    return standin_range_ok(call, "the bias", device, p->d.bias, all * sizeof(float));
}

/* Two streams that share a workspace write it at the same time. */
static bool workspace_ok(const char *call, const struct product *g, struct CUstream_st *stream)
{
    if (g->workspace_bytes == 0)
        return true;
    if (!standin_range_ok(call, "the workspace", stream->device, g->workspace, g->workspace_bytes))
        return false;
    struct standin_memory *m = standin_memory_at(g->workspace);
    for (struct standin_user *u = m->users; u; u = u->next)
        if (u->stream != stream && u->from < g->workspace + g->workspace_bytes &&
            g->workspace < u->from + u->bytes) {
            standin_complain("%s: the workspace is that of another stream", call);
            return false;
        }
    return standin_add_user(m, stream, g->workspace, g->workspace_bytes);
}

static cublasStatus_t check_operands(const char *call, const struct product *g,
                                     struct CUstream_st *stream, const struct algorithm *algorithm)
{
    const struct problem *p = &g->problem;
    const uint32_t *alignment = algorithm->alignment;
    if (algorithm->shape != shape_of(p) || g->workspace_bytes < algorithm->workspace) {
        standin_complain("%s: the algorithm was found for %s", call,
                         algorithm->shape != shape_of(p) ? "another product" : "more workspace");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    bool good =
        operand_ok(call, "A", &p->a, g->a, alignment[0], stream->device) &&
        operand_ok(call, "B", &p->b, g->b, alignment[1], stream->device) &&
        (g->beta == 0 || operand_ok(call, "C", &p->c, g->c, alignment[2], stream->device)) &&
        operand_ok(call, "D", &p->out, g->out, alignment[3], stream->device) &&
        bias_ok(call, p, stream->device) && workspace_ok(call, g, stream);
    return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *out,
                              cublasLtMatrixLayout_t out_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    static const char call[] = "cublasLtMatmul";
    struct product g = {.a = a, .b = b, .c = c, .out = out};
    struct algorithm algorithm;
    if (standin_enter(call))
        return unavailable();
    if (!standin_stream_ok(call, stream) || !alpha || !beta || !algo)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status =
        describe(call, handle, d, a_layout, b_layout, c_layout, out_layout, &g.problem);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (handle->device != stream->device || standin_me->device != stream->device) {
        standin_complain("%s: a handle of device %d, a stream of device %d, a thread on device %d",
                         call, handle->device, stream->device, standin_me->device);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(&algorithm, algo, sizeof algorithm);
    g.alpha = *(const float *)alpha;
    g.beta = *(const float *)beta;
    g.workspace = workspace;
    g.workspace_bytes = workspace_bytes;
    status = check_operands(call, &g, stream, &algorithm);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    struct product *command = standin_command(&product_kind, sizeof *command);
    if (!command)
        return CUBLAS_STATUS_ALLOC_FAILED;
    g.base = command->base;
    *command = g;
    standin_enqueue(stream, &command->base);
    return CUBLAS_STATUS_SUCCESS;
}
