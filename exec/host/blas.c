/* Finding and calling the matrix-product libraries. */
#include "exec/host/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- oneDNN: dnnl_sgemm is row-major with the transposes as letters ---- */

typedef int dnnl_sgemm_fn(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *c, int64_t ldc);

/* The head of dnnl_version_t. */
struct dnnl_version {
    int major, minor, patch;
};

static struct {
    dnnl_sgemm_fn *sgemm;
    void (*set_threads)(int);
    int (*get_threads)(void);
} dnnl;

static void onednn_sgemm(const struct sc_sgemm *g)
{
    /* The number of threads is the calling thread's own OpenMP setting: put back afterwards. */
    int threads = dnnl.get_threads ? dnnl.get_threads() : 1;
    if (threads != 1)
        dnnl.set_threads(1);
    dnnl.sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, g->alpha,
               g->a, g->lda, g->b, g->ldb, g->accumulate ? 1.0f : 0.0f, g->c, g->ldc);
    if (threads != 1)
        dnnl.set_threads(threads);
}

/* ISO C has no conversion from an object to a function pointer; POSIX's dlsym needs one. */
static void symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool load_onednn(struct sc_blas *blas)
{
    static const char *const names[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so", NULL};
    const struct dnnl_version *(*version)(void) = NULL;
    void *library = open_first(names);
    if (!library)
        return false;
    symbol(library, "dnnl_sgemm", &dnnl.sgemm);
    symbol(library, "dnnl_version", &version);
    symbol(library, "omp_set_num_threads", &dnnl.set_threads);
    symbol(library, "omp_get_max_threads", &dnnl.get_threads);
    /* Without an OpenMP runtime behind it, it is the TBB or sequential build: not one of ours. */
    if (!dnnl.sgemm || !version || !dnnl.set_threads || !dnnl.get_threads) {
        dlclose(library);
        return false;
    }
    const struct dnnl_version *v = version();
    blas->sgemm = onednn_sgemm;
    snprintf(blas->name, sizeof blas->name, "onednn %d.%d.%d", v->major, v->minor, v->patch);
    return true;
}

/* ---- OpenBLAS through the C interface ---- */

enum { CBLAS_ROW_MAJOR = 101, CBLAS_PLAIN = 111, CBLAS_TRANSPOSED = 112 };

typedef void cblas_sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);

static cblas_sgemm_fn *cblas;

static void openblas_sgemm(const struct sc_sgemm *g)
{
    cblas(CBLAS_ROW_MAJOR, g->transpose_a ? CBLAS_TRANSPOSED : CBLAS_PLAIN,
          g->transpose_b ? CBLAS_TRANSPOSED : CBLAS_PLAIN, (int)g->m, (int)g->n, (int)g->k,
          g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, g->accumulate ? 1.0f : 0.0f, g->c,
          (int)g->ldc);
}

static bool has_avx512(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
#else
    return false;
#endif
}

/* The library's constructor reads the environment, so the choice has to stand there before. */
static void *open_openblas(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", NULL};
    bool choose = has_avx512() && !getenv("OPENBLAS_CORETYPE");
    bool single = !getenv("OPENBLAS_NUM_THREADS");
    if (choose)
        setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 1);
    if (single) /* no thread pool: the split is ours */
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *library = open_first(names);
    if (choose)
        unsetenv("OPENBLAS_CORETYPE");
    if (single)
        unsetenv("OPENBLAS_NUM_THREADS");
    return library;
}

static bool load_openblas(struct sc_blas *blas)
{
    void (*set_threads)(int) = NULL;
    char *(*core)(void) = NULL;
    char *(*config)(void) = NULL;
    void *library = open_openblas();
    if (!library)
        return false;
    symbol(library, "cblas_sgemm", &cblas);
    symbol(library, "openblas_set_num_threads", &set_threads);
    symbol(library, "openblas_get_corename", &core);
    symbol(library, "openblas_get_config", &config);
    if (!cblas || !set_threads || !core || !config) {
        dlclose(library);
        return false;
    }
    set_threads(1);
    char version[32] = "";
    (void)sscanf(config(), "OpenBLAS %31s", version);
    blas->sgemm = openblas_sgemm;
    snprintf(blas->name, sizeof blas->name, "openblas %s %s", version, core());
    return true;
}

/* ---- plain C ---- */

#define TILE 64

/* Copies a tile of op(X), rows x columns at (row, column), to a dense one. */
static void pack(const float *x, int64_t ld, bool transpose, int64_t row, int64_t column,
                 int64_t rows, int64_t columns, float *tile)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            tile[i * TILE + j] =
                transpose ? x[(column + j) * ld + row + i] : x[(row + i) * ld + column + j];
}

static void plain_tile(const struct sc_sgemm *g, int64_t i0, int64_t j0, int64_t m, int64_t n)
{
    float a[TILE * TILE], b[TILE * TILE], c[TILE * TILE] = {0};
    for (int64_t k0 = 0; k0 < g->k; k0 += TILE) {
        int64_t k = g->k - k0 < TILE ? g->k - k0 : TILE;
        pack(g->a, g->lda, g->transpose_a, i0, k0, m, k, a);
        pack(g->b, g->ldb, g->transpose_b, k0, j0, k, n, b);
        for (int64_t i = 0; i < m; i++)
            for (int64_t l = 0; l < k; l++)
                for (int64_t j = 0; j < n; j++)
                    c[i * TILE + j] += a[i * TILE + l] * b[l * TILE + j];
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float *to = &g->c[(i0 + i) * g->ldc + j0 + j];
            *to = g->alpha * c[i * TILE + j] + (g->accumulate ? *to : 0.0f);
        }
}

static void plain_sgemm(const struct sc_sgemm *g)
{
    for (int64_t i = 0; i < g->m; i += TILE)
        for (int64_t j = 0; j < g->n; j += TILE)
            plain_tile(g, i, j, g->m - i < TILE ? g->m - i : TILE,
                       g->n - j < TILE ? g->n - j : TILE);
}

static bool load_plain(struct sc_blas *blas)
{
    blas->sgemm = plain_sgemm;
    snprintf(blas->name, sizeof blas->name, "plain");
    return true;
}

/* ---- the choice ---- */

enum { LIBRARIES = 3 };

static const struct {
    const char *name;
    bool (*load)(struct sc_blas *blas);
} libraries[LIBRARIES] = {
    {"onednn", load_onednn}, {"openblas", load_openblas}, {"plain", load_plain}};

/* Loaded at most once each and then never changed: a property of the process, like a link. */
static struct sc_blas loaded[LIBRARIES];
static bool present[LIBRARIES];
static pthread_once_t once[LIBRARIES] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};

static void load_0(void)
{
    present[0] = libraries[0].load(&loaded[0]);
}

static void load_1(void)
{
    present[1] = libraries[1].load(&loaded[1]);
}

static void load_2(void)
{
    present[2] = libraries[2].load(&loaded[2]);
}

static const struct sc_blas *get(int i)
{
    static void (*const load[LIBRARIES])(void) = {load_0, load_1, load_2};
    pthread_once(&once[i], load[i]);
    return present[i] ? &loaded[i] : NULL;
}

const struct sc_blas *sc_blas_find(const char *name)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (strcmp(libraries[i].name, name) == 0)
            return get(i);
    return NULL;
}

static const struct sc_blas *chosen;
static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const char *wish = getenv("STEPCAST_GEMM");
    chosen = wish ? sc_blas_find(wish) : NULL;
    for (int i = 0; i < LIBRARIES && !chosen; i++)
        chosen = get(i);
}

const struct sc_blas *sc_blas_get(void)
{
    pthread_once(&chosen_once, choose);
    return chosen;
}
