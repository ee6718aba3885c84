/* AdamW and the squared norm over flat ranges. */
#include "tests/support/kernel_runs.h"

enum { COUNT = 40000 };

static const struct sc_kernel_range ranges[] = {
    {3, 100, 1.0f}, {128, 17000, 0.0f}, {20000, 19990, 0.5f}};

/* The range that element i is in, NULL for the holes. */
static const struct sc_kernel_range *range_of(int64_t i)
{
    for (int q = 0; q < 3; q++)
        if (i >= ranges[q].first && i < ranges[q].first + ranges[q].count)
            return &ranges[q];
    return NULL;
}

static void adamw_body(struct kernel_run *run)
{
    float *p = random_floats(COUNT, 1), *g = random_floats(COUNT, 2), *m = random_floats(COUNT, 3);
    float *v = random_floats(COUNT, 4), *was = copy_floats(p, COUNT),
          *m_was = copy_floats(m, COUNT);
    uint16_t *low = calloc(COUNT, sizeof *low);
    assert_non_null(low);
    for (int i = 0; i < COUNT; i++)
        v[i] *= v[i];
    float *v_was = copy_floats(v, COUNT);
    const struct sc_step_state state = {
        .step = 4, .learning_rate = 0.01f, .correction1 = 2.5f, .correction2 = 40.0f, .clip = 0.3f};
    struct sc_adamw_args a = {p, g, m, v, low, ranges, 3, &state, 0.9f, 0.95f, 1e-3f, 0.1f};
    RUN(run, adamw, a, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const struct sc_kernel_range *range = range_of(i);
        if (!range) {
            assert_true(p[i] == was[i] && m[i] == m_was[i] && v[i] == v_was[i] && low[i] == 0);
            continue;
        }
        double gradient = (double)0.3f * (double)g[i];
        double m_new = (double)0.9f * (double)m_was[i] + (1.0 - (double)0.9f) * gradient;
        double v_new =
            (double)0.95f * (double)v_was[i] + (1.0 - (double)0.95f) * gradient * gradient;
        double want = (double)was[i] - 0.01 * 0.1 * (double)range->weight * (double)was[i];
        want -= 0.01 * m_new * 2.5 / (sqrt(40.0 * v_new) + 1e-3);
        assert_true(fabs((double)m[i] - m_new) < 1e-6);
        assert_true(fabs((double)v[i] - v_new) < 1e-6);
        assert_true(fabs((double)p[i] - want) < 1e-6);
        union {
            uint32_t u;
            float f;
        } copy = {(uint32_t)low[i] << 16};
        assert_true(fabsf(copy.f - p[i]) <= fabsf(p[i]) / 256.0f);
    }
    note_bits(run, p, sizeof *p * COUNT);
    note_bits(run, m, sizeof *m * COUNT);
    note_bits(run, v, sizeof *v * COUNT);
    free(p);
    free(g);
    free(m);
    free(v);
    free(was);
    free(m_was);
    free(v_was);
    free(low);
}

static void adamw_is_its_definition(void **state)
{
    (void)state;
    for_every_build(adamw_body);
}

/*
 * First step from zero moments, by hand: m = 0.1 g, v = 0.001 g^2, corrected m / 0.1 = g and
 * v / 0.001 = g^2, so the step is lr g / (|g| + eps), about lr: 1 - 0.1 (decay 0: 0.9). With decay
 * 0.5: p first shrinks to 1 - 0.1 x 0.5 = 0.95, then 0.85.
 */
static void adamw_by_hand(void **state)
{
    (void)state;
    for (int decay = 0; decay < 2; decay++) {
        float p = 1.0f, g = 2.0f, m = 0.0f, v = 0.0f;
        const struct sc_kernel_range all = {0, 1, (float)decay};
        struct sc_step_state at = {
            .learning_rate = 0.1f, .correction1 = 10.0f, .correction2 = 1000.0f, .clip = 1.0f};
        struct sc_adamw_args a = {&p, &g, &m, &v, NULL, &all, 1, &at, 0.9f, 0.999f, 1e-8f, 0.5f};
        sc_kernels_select()->adamw(a, 0, 1);
        assert_true(fabsf(p - (decay ? 0.85f : 0.9f)) < 1e-6f);
        assert_true(fabsf(m - 0.2f) < 1e-6f && fabsf(v - 0.004f) < 1e-6f);
        at.skip = 1;
        float before = p;
        sc_kernels_select()->adamw(a, 0, 1);
        assert_true(p == before && fabsf(m - 0.2f) < 1e-6f);
    }
}

static void squares_body(struct kernel_run *run)
{
    float *x = random_floats(COUNT, 5);
    double partial[3], want = 0.0, got = 0.0; /* blocks of 16384: 3 */
    struct sc_norm_squares_args a = {x, ranges, 3, COUNT, partial};
    RUN(run, norm_squares, a, 3);
    for (int i = 0; i < COUNT; i++)
        if (range_of(i))
            want += (double)range_of(i)->weight * (double)x[i] * (double)x[i];
    for (int b = 0; b < 3; b++)
        got += partial[b];
    assert_true(fabs(got - want) < 1e-9 * want);
    note_bits(run, partial, sizeof partial);
    x[500] = INFINITY; /* overflow is seen: weight 0 times infinity is NaN, elsewhere infinity */
    RUN(run, norm_squares, a, 3);
    assert_true(isnan(partial[0]));
    x[500] = 0.0f;
    x[30000] = -INFINITY;
    RUN(run, norm_squares, a, 3);
    assert_true(isinf(partial[1]));
    free(x);
}

static void squares_are_weighted_and_ordered(void **state)
{
    (void)state;
    for_every_build(squares_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_is_its_definition),
        cmocka_unit_test(adamw_by_hand),
        cmocka_unit_test(squares_are_weighted_and_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
