/* Fused attention against the definition in double, and its backward against differences. */
/* ctest: labels=threads */
#include "tests/support/numeric.h"

#include "exec/host/attention.h"

struct shape {
    int64_t batch, sequence, heads, kv_heads, head_size;
    float dropout;
};

struct problem {
    struct sc_attention a;
    int64_t qkv_count, o_count, lse_count;
    float *qkv, *o, *lse, *d_o, *dqkv, *workspace;
    struct sc_step_state state;
};

enum { THREADS = 4 }; /* the largest team here */

static void make(struct problem *p, struct shape s)
{
    const int64_t rows = s.batch * s.sequence;
    *p = (struct problem){.state = {.step = 9}};
    struct sc_attention *a = &p->a;
    a->batch = s.batch;
    a->sequence = s.sequence;
    a->heads = s.heads;
    a->kv_heads = s.kv_heads;
    a->head_size = s.head_size;
    a->qkv_stride = (s.heads + 2 * s.kv_heads) * s.head_size + 3;
    a->o_stride = s.heads * s.head_size + 5;
    a->scale = 1.5f / sqrtf((float)s.head_size);
    a->batch_base = 3;
    a->head_base = 2;
    a->total_heads = s.heads + 4;
    a->draw = (struct sc_draw){77, 5, s.dropout, &p->state};
    p->qkv_count = rows * a->qkv_stride;
    p->o_count = rows * a->o_stride;
    p->lse_count = s.batch * s.heads * s.sequence;
    a->qkv = p->qkv = random_floats(p->qkv_count, 1);
    a->o = p->o = random_floats(p->o_count, 2);
    a->lse = p->lse = random_floats(p->lse_count, 3);
    a->d_o = p->d_o = random_floats(p->o_count, 4);
    a->dqkv = p->dqkv = random_floats(p->qkv_count, 5);
    size_t bytes = THREADS * sc_attention_workspace(s.sequence);
    a->workspace = p->workspace = aligned_alloc(64, bytes);
    assert_non_null(p->workspace);
    memset(p->workspace, 0xFF, bytes); /* NaN: nothing may be read before it is written */
}

static void release(struct problem *p)
{
    free(p->qkv);
    free(p->o);
    free(p->lse);
    free(p->d_o);
    free(p->dqkv);
    free(p->workspace);
}

/* 0 or 1/(1-p) of score (b, head, i, j), one Philox call each: the definition. */
static double keep_at(const struct sc_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (a->draw.probability <= 0.0f)
        return 1.0;
    int64_t plane = (a->batch_base + b) * a->total_heads + a->head_base + h;
    uint64_t index = (uint64_t)((plane * a->sequence + i) * a->sequence + j);
    uint32_t words[4];
    sc_philox(a->draw.seed, index / 4, a->draw.site, (uint32_t)a->draw.state->step, words);
    return sc_uniform(words[index % 4]) >= a->draw.probability
               ? 1.0 / (1.0 - (double)a->draw.probability)
               : 0.0;
}

static double qkv_at(const struct sc_attention *a, const float *x, int64_t b, int64_t row,
                     int64_t head, int64_t d)
{
    return (double)x[(b * a->sequence + row) * a->qkv_stride + head * a->head_size + d];
}

/* Probabilities (before dropout) of query i in p[0..i]; returns the log-sum-exp. */
static double probabilities(const struct sc_attention *a, int64_t b, int64_t h, int64_t i,
                            double *p)
{
    const int64_t kv = h / (a->heads / a->kv_heads);
    double sum = 0.0;
    for (int64_t j = 0; j <= i; j++) {
        double s = 0.0;
        for (int64_t d = 0; d < a->head_size; d++)
            s += qkv_at(a, a->qkv, b, i, h, d) * qkv_at(a, a->qkv, b, j, a->heads + kv, d);
        p[j] = exp((double)a->scale * s);
        sum += p[j];
    }
    for (int64_t j = 0; j <= i; j++)
        p[j] /= sum;
    return log(sum);
}

static void reference_forward(const struct sc_attention *a, float *o, float *lse)
{
    double p[512];
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->sequence; i++) {
                const int64_t v = a->heads + a->kv_heads + h / (a->heads / a->kv_heads);
                lse[(b * a->heads + h) * a->sequence + i] = (float)probabilities(a, b, h, i, p);
                for (int64_t d = 0; d < a->head_size; d++) {
                    double sum = 0.0;
                    for (int64_t j = 0; j <= i; j++)
                        sum += p[j] * keep_at(a, b, h, i, j) * qkv_at(a, a->qkv, b, j, v, d);
                    o[(b * a->sequence + i) * a->o_stride + h * a->head_size + d] = (float)sum;
                }
            }
}

/* The backward by the chain rule, in double, into `d` [qkv_count]. */
static void reference_backward(const struct sc_attention *a, double *g)
{
    double p[512], dp[512];
    const int64_t size = a->head_size, group = a->heads / a->kv_heads;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->sequence; i++) {
                const int64_t k = a->heads + h / group, v = k + a->kv_heads;
                const float *d_o = a->d_o + (b * a->sequence + i) * a->o_stride + h * size;
                double delta = 0.0;
                (void)probabilities(a, b, h, i, p);
                for (int64_t j = 0; j <= i; j++) {
                    double keep = keep_at(a, b, h, i, j);
                    dp[j] = 0.0;
                    for (int64_t d = 0; d < size; d++) {
                        dp[j] += keep * (double)d_o[d] * qkv_at(a, a->qkv, b, j, v, d);
                        g[(b * a->sequence + j) * a->qkv_stride + v * size + d] +=
                            p[j] * keep * (double)d_o[d];
                    }
                    delta += p[j] * dp[j];
                }
                for (int64_t j = 0; j <= i; j++) {
                    double ds = (double)a->scale * p[j] * (dp[j] - delta);
                    for (int64_t d = 0; d < size; d++) {
                        g[(b * a->sequence + i) * a->qkv_stride + h * size + d] +=
                            ds * qkv_at(a, a->qkv, b, j, k, d);
                        g[(b * a->sequence + j) * a->qkv_stride + k * size + d] +=
                            ds * qkv_at(a, a->qkv, b, i, h, d);
                    }
                }
            }
}

static const struct shape shapes[] = {
    {1, 1, 1, 1, 4, 0.0f},    {2, 7, 2, 2, 8, 0.0f},    {1, 64, 2, 1, 16, 0.0f},
    {1, 65, 4, 2, 12, 0.0f},  {2, 150, 2, 2, 16, 0.0f}, {2, 150, 6, 2, 8, 0.25f},
    {1, 300, 2, 1, 32, 0.1f},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Padding between rows keeps what it had: it is compared as well. */
static void forward_is_the_definition(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        struct problem p;
        make(&p, shapes[s]);
        float *o = copy_floats(p.o, p.o_count), *lse = copy_floats(p.lse, p.lse_count);
        reference_forward(&p.a, o, lse);
        sc_attention_forward(NULL, &p.a);
        assert_floats_near(p.o, o, p.o_count, 1e-5);
        assert_floats_near(p.lse, lse, p.lse_count, 1e-5);
        free(o);
        free(lse);
        release(&p);
    }
}

static void backward_is_the_chain_rule(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        struct problem p;
        make(&p, shapes[s]);
        const int64_t used = (p.a.heads + 2 * p.a.kv_heads) * p.a.head_size;
        double *want = calloc((size_t)p.qkv_count, sizeof *want);
        assert_non_null(want);
        for (int64_t i = 0; i < p.qkv_count; i++)
            if (i % p.a.qkv_stride >= used)
                want[i] = (double)p.dqkv[i];
        reference_backward(&p.a, want);
        sc_attention_forward(NULL, &p.a);
        sc_attention_backward(NULL, &p.a);
        assert_floats_near(p.dqkv, want, p.qkv_count, 3e-5);
        free(want);
        release(&p);
    }
}

/* loss = sum(o d_o) of the double forward. */
static double loss_of(struct problem *p)
{
    double sum = 0.0;
    float *o = copy_floats(p->o, p->o_count), *lse = copy_floats(p->lse, p->lse_count);
    reference_forward(&p->a, o, lse);
    for (int64_t i = 0; i < p->o_count; i++)
        sum += (double)o[i] * (double)p->d_o[i];
    free(o);
    free(lse);
    return sum;
}

/* Central differences of 2e-3: the outputs are rounded to fp32 (6e-8), so a slope is good to 1e-3.
 */
static void backward_agrees_with_differences(void **state)
{
    (void)state;
    struct problem p;
    make(&p, (struct shape){1, 6, 2, 1, 3, 0.2f});
    sc_attention_forward(NULL, &p.a);
    sc_attention_backward(NULL, &p.a);
    for (int64_t i = 0; i < p.qkv_count; i++) {
        if (i % p.a.qkv_stride >= 12) /* (2 + 2 x 1) heads of 3 */
            continue;
        float at = p.qkv[i];
        p.qkv[i] = at + 2e-3f;
        double above = loss_of(&p);
        p.qkv[i] = at - 2e-3f;
        double below = loss_of(&p);
        p.qkv[i] = at;
        double slope = (above - below) / 4e-3;
        assert_true(fabs(slope - (double)p.dqkv[i]) < 2e-3);
    }
    release(&p);
}

static void every_team_gives_the_same_bits(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct problem p;
    make(&p, (struct shape){2, 150, 6, 2, 8, 0.25f});
    sc_attention_forward(NULL, &p.a);
    sc_attention_backward(NULL, &p.a);
    float *o = copy_floats(p.o, p.o_count), *d = copy_floats(p.dqkv, p.qkv_count);
    for (int threads = 2; threads <= THREADS; threads++) {
        struct sc_team *team = NULL;
        assert_int_equal(sc_team_create(threads, NULL, &team, &err), SC_OK);
        sc_attention_forward(team, &p.a);
        sc_attention_backward(team, &p.a);
        assert_memory_equal(o, p.o, (size_t)p.o_count * sizeof *o);
        assert_memory_equal(d, p.dqkv, (size_t)p.qkv_count * sizeof *d);
        sc_team_destroy(&team);
    }
    free(o);
    free(d);
    release(&p);
}

/* One key: the probability is 1, so o = v, lse = scale q k, and q and k get no gradient. */
static void one_token_by_hand(void **state)
{
    (void)state;
    float qkv[] = {1, 2, 3, 4, 5, 6}, o[2], lse[1], d_o[] = {7, 8}, d[6];
    float *workspace = aligned_alloc(64, sc_attention_workspace(1));
    struct sc_attention a = {.batch = 1,
                             .sequence = 1,
                             .heads = 1,
                             .kv_heads = 1,
                             .head_size = 2,
                             .qkv_stride = 6,
                             .o_stride = 2,
                             .scale = 0.5f,
                             .qkv = qkv,
                             .o = o,
                             .lse = lse,
                             .d_o = d_o,
                             .dqkv = d,
                             .workspace = workspace};
    assert_non_null(workspace);
    sc_attention_forward(NULL, &a);
    sc_attention_backward(NULL, &a);
    const float want[] = {0, 0, 0, 0, 7, 8};
    assert_true(o[0] == 5.0f && o[1] == 6.0f);
    assert_true(fabsf(lse[0] - 5.5f) < 1e-6f); /* (1 x 3 + 2 x 4) / 2 */
    assert_floats_near(d, want, 6, 1e-6);
    free(workspace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_definition),
        cmocka_unit_test(backward_is_the_chain_rule),
        cmocka_unit_test(backward_agrees_with_differences),
        cmocka_unit_test(every_team_gives_the_same_bits),
        cmocka_unit_test(one_token_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
