/* Matrix products of every library that this machine has, against a plain sum in double. */
/* ctest: labels=threads */
#include "tests/support/numeric.h"

#include <pthread.h>

#include "exec/host/blas.h"
#include "exec/host/gemm.h"

/* A product with its operands; strides are wider than the rows where `pad` is not 0. */
struct problem {
    struct sc_gemm g;
    float *a, *b, *c, *want;
    int64_t a_count, b_count, c_count;
};

static struct problem make(int64_t m, int64_t n, int64_t k, int transposes, int64_t pad)
{
    struct problem p = {.g = {.transpose_a = transposes >> 1,
                              .transpose_b = transposes & 1,
                              .m = m,
                              .n = n,
                              .k = k,
                              .alpha = 1.0f}};
    p.g.lda = (p.g.transpose_a ? m : k) + pad;
    p.g.ldb = (p.g.transpose_b ? k : n) + 2 * pad;
    p.g.ldc = n + 3 * pad;
    p.a_count = p.g.lda * (p.g.transpose_a ? k : m);
    p.b_count = p.g.ldb * (p.g.transpose_b ? n : k);
    p.c_count = p.g.ldc * m;
    p.g.a = p.a = random_floats(p.a_count, 1);
    p.g.b = p.b = random_floats(p.b_count, 2);
    p.g.c = p.c = random_floats(p.c_count, 3);
    p.want = copy_floats(p.c, p.c_count);
    return p;
}

static void release(struct problem *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->want);
}

static double a_at(const struct sc_gemm *g, const float *a, int64_t i, int64_t l)
{
    return (double)(g->transpose_a ? a[l * g->lda + i] : a[i * g->lda + l]);
}

static double b_at(const struct sc_gemm *g, const float *b, int64_t l, int64_t j)
{
    return (double)(g->transpose_b ? b[j * g->ldb + l] : b[l * g->ldb + j]);
}

/* want (which starts as C before) = what g asks for; elements between rows stay. */
static void reference(const struct sc_gemm *g, const float *a, const float *b, float *want)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0.0;
            for (int64_t l = 0; l < g->k; l++)
                sum += a_at(g, a, i, l) * b_at(g, b, l, j);
            float *w = &want[i * g->ldc + j];
            double c = (double)g->alpha * sum + (g->accumulate ? (double)*w : 0.0) +
                       (g->bias ? (double)g->bias[j] : 0.0);
            *w = (float)c;
        }
}

/* Sums of k products of numbers below 1 in fp32: rounding below k 2^-24; k <= 300 here. */
#define TOLERANCE 4e-5

static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 2},    {17, 33, 9},   {64, 64, 64},
                                    {100, 7, 65}, {7, 130, 31}, {129, 97, 300}};

static void every_library_agrees(void **state)
{
    (void)state;
    static const char *const names[] = {"onednn", "openblas", "plain"};
    for (size_t library = 0; library < 3; library++) {
        const struct sc_blas *blas = sc_blas_find(names[library]);
        if (!blas)
            continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int variant = 0; variant < 16; variant++) {
                struct problem p =
                    make(shapes[s][0], shapes[s][1], shapes[s][2], variant & 3, variant & 4);
                p.g.accumulate = variant & 8;
                p.g.alpha = variant & 8 ? -0.5f : 1.0f;
                reference(&p.g, p.a, p.b, p.want);
                struct sc_sgemm call = {
                    p.g.transpose_a, p.g.transpose_b, p.g.accumulate, p.g.m, p.g.n, p.g.k, p.g.lda,
                    p.g.ldb,         p.g.ldc,         p.g.alpha,      p.a,   p.b,   p.c};
                blas->sgemm(&call);
                assert_floats_near(p.c, p.want, p.c_count, TOLERANCE);
                release(&p);
            }
    }
    assert_null(sc_blas_find("no such library"));
    assert_non_null(sc_blas_find("plain"));
}

/* Teams of 1 to 5, with and without padding, accumulation, bias; sizes below and above the grain.
 */
static void teams_split_without_a_trace(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    for (int threads = 1; threads <= 5; threads++) {
        struct sc_team *team = NULL;
        assert_int_equal(sc_team_create(threads, NULL, &team, &err), SC_OK);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int variant = 0; variant < 16; variant++) {
                struct problem p = make(shapes[s][0], shapes[s][1], shapes[s][2], variant & 3, 5);
                float *bias = random_floats(p.g.n, 4);
                p.g.accumulate = variant & 4;
                p.g.bias = variant & 8 ? bias : NULL;
                reference(&p.g, p.a, p.b, p.want);
                sc_gemm_run(team, &p.g);
                assert_floats_near(p.c, p.want, p.c_count, TOLERANCE);
                free(bias);
                release(&p);
            }
        sc_team_destroy(&team);
    }
}

/* bias_gradient[i] (+)= sum over k of op(A)[i, k], with the same bits for every team. */
static void bias_gradient_is_a_row_sum(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    for (int transposes = 0; transposes < 4; transposes++) {
        float first[129], got[129], want[129];
        for (int threads = 1; threads <= 4; threads++) {
            struct sc_team *team = NULL;
            struct problem p = make(129, 97, 300, transposes, 3);
            p.g.accumulate = transposes & 1;
            p.g.bias_gradient = got;
            for (int i = 0; i < 129; i++) {
                got[i] = 0.25f;
                double sum = p.g.accumulate ? 0.25 : 0.0;
                for (int64_t l = 0; l < 300; l++)
                    sum += a_at(&p.g, p.a, i, l);
                want[i] = (float)sum;
            }
            assert_int_equal(sc_team_create(threads, NULL, &team, &err), SC_OK);
            sc_gemm_run(team, &p.g);
            assert_floats_near(got, want, 129, TOLERANCE);
            if (threads == 1)
                memcpy(first, got, sizeof first);
            assert_memory_equal(first, got, sizeof first);
            sc_team_destroy(&team);
            release(&p);
        }
    }
}

/* [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]; plus bias (1, -1): [20 21; 44 49]. */
static void two_by_two_by_hand(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, bias[] = {1, -1}, want[] = {20, 21, 44, 49};
    float c[4] = {NAN, NAN, NAN, NAN}; /* not read without accumulate */
    struct sc_gemm g = {.m = 2,
                        .n = 2,
                        .k = 2,
                        .lda = 2,
                        .ldb = 2,
                        .ldc = 2,
                        .alpha = 1.0f,
                        .a = a,
                        .b = b,
                        .c = c,
                        .bias = bias};
    sc_gemm_run(NULL, &g);
    assert_memory_equal(c, want, sizeof want);
}

static void empty_sizes_do_nothing_or_clear(void **state)
{
    (void)state;
    const float a[4] = {1, 1, 1, 1};
    float c[4] = {7, 7, 7, 7};
    struct sc_gemm g = {.m = 0,
                        .n = 2,
                        .k = 2,
                        .lda = 2,
                        .ldb = 2,
                        .ldc = 2,
                        .alpha = 1.0f,
                        .a = a,
                        .b = a,
                        .c = c};
    sc_gemm_run(NULL, &g);
    assert_true(c[0] == 7.0f && c[3] == 7.0f);
    g.m = 2;
    g.k = 0; /* an empty sum is 0 */
    sc_gemm_run(NULL, &g);
    assert_true(c[0] == 0.0f && c[3] == 0.0f);
}

enum { BATCH = 2, HEADS = 3, M = 5, N = 4, K = 6 };

/* Rows of [batch, m, heads x k]: heads side by side, as packed activations are. */
static void batches_follow_their_strides(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    float *a = random_floats(BATCH * M * HEADS * K, 5),
          *b = random_floats(BATCH * N * HEADS * K, 6);
    float c[BATCH * HEADS * M * N], want[BATCH * HEADS * M * N];
    struct sc_gemm g = {.transpose_b = true,
                        .m = M,
                        .n = N,
                        .k = K,
                        .lda = HEADS * K,
                        .ldb = HEADS * K,
                        .ldc = N,
                        .alpha = 2.0f,
                        .a = a,
                        .b = b,
                        .c = c};
    struct sc_gemm_batch batch = {.count = {1, BATCH, HEADS},
                                  .a = {0, M * HEADS * K, K},
                                  .b = {0, N * HEADS * K, K},
                                  .c = {0, HEADS * M * N, M * N}};
    for (int i = 0; i < BATCH; i++)
        for (int h = 0; h < HEADS; h++)
            reference(&g, a + (i * M * HEADS + h) * K, b + (i * N * HEADS + h) * K,
                      want + (i * HEADS + h) * M * N);
    for (int threads = 1; threads <= 4; threads++) {
        struct sc_team *team = NULL;
        assert_int_equal(sc_team_create(threads, NULL, &team, &err), SC_OK);
        memset(c, 0, sizeof c);
        sc_gemm_run_batch(team, &g, &batch);
        assert_floats_near(c, want, BATCH * HEADS * M * N, TOLERANCE);
        sc_team_destroy(&team);
    }
    free(a);
    free(b);
}

/* A dimension with c offset 0 is summed into one C, on top of it only if g accumulates. */
static void products_with_one_result_are_summed(void **state)
{
    (void)state;
    float *a = random_floats(BATCH * HEADS * M * K, 7),
          *b = random_floats(BATCH * HEADS * K * N, 8);
    struct sc_error err = SC_ERROR_INIT;
    struct sc_team *team = NULL;
    assert_int_equal(sc_team_create(2, NULL, &team, &err), SC_OK);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        float c[BATCH * M * N], want[BATCH * M * N];
        for (int i = 0; i < BATCH * M * N; i++)
            c[i] = want[i] = 0.5f;
        struct sc_gemm g = {.accumulate = accumulate,
                            .m = M,
                            .n = N,
                            .k = K,
                            .lda = K,
                            .ldb = N,
                            .ldc = N,
                            .alpha = 1.0f,
                            .a = a,
                            .b = b,
                            .c = c};
        struct sc_gemm_batch batch = {.count = {BATCH, HEADS, 1},
                                      .a = {HEADS * M * K, M * K, 0},
                                      .b = {HEADS * K * N, K * N, 0},
                                      .c = {M * N, 0, 0}};
        for (int i = 0; i < BATCH; i++)
            for (int h = 0; h < HEADS; h++) {
                struct sc_gemm one = g;
                one.accumulate = accumulate || h > 0;
                reference(&one, a + (i * HEADS + h) * M * K, b + (i * HEADS + h) * K * N,
                          want + i * M * N);
            }
        sc_gemm_run_batch(team, &g, &batch);
        assert_floats_near(c, want, BATCH * M * N, TOLERANCE);
    }
    sc_team_destroy(&team);
    free(a);
    free(b);
}

/* A rank: a thread with a team of its own, multiplying while the others do. */
static void *rank_main(void *arg)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_team *team = NULL;
    int *wrong = arg;
    *wrong = sc_team_create(2, NULL, &team, &err) != SC_OK;
    for (int i = 0; i < 8 && !*wrong; i++) {
        float a[64 * 96], b[96 * 50], c[64 * 50];
        for (int j = 0; j < 64 * 96; j++)
            a[j] = (float)((j * 7 + i) % 5); /* small whole numbers: exact sums */
        for (int j = 0; j < 96 * 50; j++)
            b[j] = (float)((j * 3 + i) % 7);
        struct sc_gemm g = {.m = 64,
                            .n = 50,
                            .k = 96,
                            .lda = 96,
                            .ldb = 50,
                            .ldc = 50,
                            .alpha = 1.0f,
                            .a = a,
                            .b = b,
                            .c = c};
        sc_gemm_run(team, &g);
        for (int j = 0; j < 64 * 50; j++) {
            float want = 0.0f;
            for (int l = 0; l < 96; l++)
                want += a[j / 50 * 96 + l] * b[l * 50 + j % 50];
            *wrong += c[j] != want;
        }
    }
    sc_team_destroy(&team);
    return NULL;
}

static void ranks_multiply_at_the_same_time(void **state)
{
    (void)state;
    enum { RANKS = 4 };
    pthread_t rank[RANKS];
    int wrong[RANKS];
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&rank[r], NULL, rank_main, &wrong[r]), 0);
    for (int r = 0; r < RANKS; r++) {
        pthread_join(rank[r], NULL);
        assert_int_equal(wrong[r], 0);
    }
}

static void library_has_a_name(void **state)
{
    (void)state;
    assert_true(strlen(sc_gemm_library()) >= strlen("plain"));
    assert_ptr_equal(sc_gemm_library(), sc_blas_get()->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_library_agrees),
        cmocka_unit_test(teams_split_without_a_trace),
        cmocka_unit_test(bias_gradient_is_a_row_sum),
        cmocka_unit_test(two_by_two_by_hand),
        cmocka_unit_test(empty_sizes_do_nothing_or_clear),
        cmocka_unit_test(batches_follow_their_strides),
        cmocka_unit_test(products_with_one_result_are_summed),
        cmocka_unit_test(ranks_multiply_at_the_same_time),
        cmocka_unit_test(library_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
