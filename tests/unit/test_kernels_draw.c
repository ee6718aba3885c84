/* The kernels with random numbers: every split of a tensor draws the same. */
#include "tests/support/kernel_runs.h"

/* 0 or 1/(1-p) of one global element: the definition, one Philox call. */
static float keep_of(const struct sc_draw *draw, uint64_t index)
{
    uint32_t words[4];
    sc_philox(draw->seed, index / 4, draw->site, draw->state ? (uint32_t)draw->state->step : 0,
              words);
    return sc_uniform(words[index % 4]) >= draw->probability ? 1.0f / (1.0f - draw->probability)
                                                             : 0.0f;
}

enum { ROWS = 23, COLUMNS = 331, STRIDE = 335 }; /* 331: rows start at every offset of a counter */

static void dropout_body(struct kernel_run *run)
{
    float *x = random_floats(ROWS * STRIDE, 1), *bias = random_floats(COLUMNS, 2);
    float *residual = random_floats(ROWS * STRIDE, 3), *y = random_floats(ROWS * STRIDE, 4);
    float *want = copy_floats(y, ROWS * STRIDE), *dx = random_floats(ROWS * STRIDE, 5);
    uint8_t mask[ROWS * COLUMNS];
    struct sc_step_state state = {.step = 12};
    for (int variant = 0; variant < 8; variant++) {
        struct sc_draw draw = {0x123456789ABCDEFu, 42, variant & 4 ? 0.0f : 0.3f, &state};
        struct sc_dropout_args a = {x,
                                    variant & 1 ? bias : NULL,
                                    variant & 2 ? residual : NULL,
                                    y,
                                    mask,
                                    COLUMNS,
                                    STRIDE,
                                    STRIDE,
                                    STRIDE,
                                    1000,
                                    draw};
        memset(mask, 9, sizeof mask);
        RUN(run, dropout_forward, a, ROWS);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) {
                int at = r * STRIDE + c;
                float keep = keep_of(&draw, (uint64_t)((1000 + r) * COLUMNS + c));
                want[at] = (variant & 2 ? residual[at] : 0.0f) +
                           keep * (x[at] + (variant & 1 ? bias[c] : 0.0f));
                assert_int_equal(mask[r * COLUMNS + c], keep != 0.0f);
            }
        assert_floats_near(y, want, ROWS * STRIDE, 1e-6);
        note_bits(run, y, sizeof *y * ROWS * STRIDE);

        /* backward: from the mask, drawn again, in place: all the same */
        a.x = x;
        a.y = dx;
        RUN(run, dropout_backward, a, ROWS);
        a.mask = NULL;
        float *again = copy_floats(x, ROWS * STRIDE);
        a.x = a.y = again;
        RUN(run, dropout_backward, a, ROWS);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) {
                int at = r * STRIDE + c;
                float keep = keep_of(&draw, (uint64_t)((1000 + r) * COLUMNS + c));
                assert_true(fabsf(dx[at] - keep * x[at]) < 1e-6f);
                assert_true(dx[at] == again[at]);
            }
        free(again);
    }
    free(x);
    free(bias);
    free(residual);
    free(y);
    free(want);
    free(dx);
}

static void dropout_is_its_definition(void **state)
{
    (void)state;
    for_every_build(dropout_body);
}

/* Two ranks with the upper and the lower rows draw what one rank draws for all; another step, site
 * or seed draws something else. */
static void layouts_draw_the_same_mask(void **state)
{
    (void)state;
    const struct sc_kernels *k = sc_kernels_select();
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    uint8_t whole[ROWS * COLUMNS], split[ROWS * COLUMNS];
    struct sc_step_state at = {.step = 3};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = 1.0f;
    struct sc_dropout_args a = {
        x, NULL, NULL, y, whole, COLUMNS, COLUMNS, COLUMNS, COLUMNS, 0, {8, 9, 0.5f, &at}};
    k->dropout_forward(a, 0, ROWS);
    a.mask = split;
    k->dropout_forward(a, 0, 7);
    a.row_base = 7; /* the other rank's rows are its own 0..ROWS-7 */
    a.mask = split + 7 * COLUMNS;
    k->dropout_forward(a, 0, ROWS - 7);
    assert_memory_equal(whole, split, sizeof whole);

    int64_t kept = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        kept += whole[i];
    /* 7613 coins: 3806.5 with a deviation of 43.6; five of them */
    assert_in_range(kept, 3588, 4025);

    a.row_base = 0;
    a.mask = split;
    at.step = 4;
    k->dropout_forward(a, 0, ROWS);
    assert_memory_not_equal(whole, split, sizeof whole);
    at.step = 3;
    a.draw.site = 10;
    k->dropout_forward(a, 0, ROWS);
    assert_memory_not_equal(whole, split, sizeof whole);
    a.draw.site = 9;
    a.draw.seed = 7;
    k->dropout_forward(a, 0, ROWS);
    assert_memory_not_equal(whole, split, sizeof whole);
}

static void attention_dropout_body(struct kernel_run *run)
{
    enum { BATCH = 2, HEADS = 3, QUERIES = 5, KEYS = 70, S = 71, R = BATCH * HEADS * QUERIES };
    float *x = random_floats(R * S, 1), y[R * S];
    uint8_t mask[R * KEYS];
    struct sc_attention_dropout_args a = {
        x, y, mask, HEADS, QUERIES, KEYS, S, 4, 6, 16, {5, 6, 0.25f, NULL}};
    RUN(run, attention_dropout, a, R);
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < QUERIES; i++)
                for (int j = 0; j < KEYS; j++) {
                    int r = (b * HEADS + h) * QUERIES + i;
                    int index = (((4 + b) * 16 + 6 + h) * QUERIES + i) * KEYS + j;
                    float keep = keep_of(&a.draw, (uint64_t)index);
                    assert_true(y[r * S + j] == keep * x[r * S + j]);
                    assert_int_equal(mask[r * KEYS + j], keep != 0.0f);
                }
    a.draw.probability = 0.0f;
    a.mask = NULL;
    RUN(run, attention_dropout, a, R);
    for (int r = 0; r < R; r++)
        assert_memory_equal(y + r * S, x + r * S, sizeof *x * KEYS);
    free(x);
}

static void attention_dropout_is_its_definition(void **state)
{
    (void)state;
    for_every_build(attention_dropout_body);
}

/* The whole tensor, its rows in two parts, its columns in two parts: the same values. */
static void init_body(struct kernel_run *run)
{
    enum { R = 40, N = 513 };
    static float whole[R * N], part[R * N];
    struct sc_init_normal_args a = {whole, N, N, 0, 0, N, 0.02f, {11, 12, 0.0f, NULL}};
    RUN(run, init_normal, a, R);
    note_bits(run, whole, sizeof whole);
    a.y = part;
    a.columns = 200; /* a column-parallel rank */
    RUN(run, init_normal, a, R);
    a.y = part + 200;
    a.columns = N - 200;
    a.column_base = 200;
    RUN(run, init_normal, a, R);
    assert_memory_equal(whole, part, sizeof whole);
    memset(part, 0, sizeof part);
    a = (struct sc_init_normal_args){part, N, N, 0, 0, N, 0.02f, {11, 12, 0.0f, NULL}};
    RUN(run, init_normal, a, 13);
    a.y = part + 13 * N;
    a.row_base = 13;
    RUN(run, init_normal, a, R - 13);
    assert_memory_equal(whole, part, sizeof whole);

    /* 20520 values of deviation 0.02: mean within 5 x 0.02 / sqrt(n) = 7e-4, variance of n ones has
     * deviation sqrt(2/n) = 0.01, fourth moment 3 within 5 sqrt(96/n) = 0.34 */
    double sum = 0.0, squares = 0.0, fourth = 0.0;
    for (int i = 0; i < R * N; i++) {
        double v = (double)whole[i] / 0.02;
        sum += v;
        squares += v * v;
        fourth += v * v * v * v;
    }
    const double n = R * N;
    assert_true(fabs(sum / n) < 0.035);
    assert_true(fabs(squares / n - 1.0) < 0.05);
    assert_true(fabs(fourth / n - 3.0) < 0.34);
}

static void init_is_normal_in_every_layout(void **state)
{
    (void)state;
    for_every_build(init_body);
}

/* Box-Muller of the first two words, in double. */
static void init_by_definition(void **state)
{
    (void)state;
    for (int i = 0; sc_kernels_at(i); i++) {
        float y[2];
        uint32_t w[4];
        struct sc_init_normal_args a = {y, 2, 2, 5, 0, 2, 3.0f, {11, 12, 0.0f, NULL}};
        sc_kernels_at(i)->init_normal(a, 0, 1); /* elements 10 and 11: counter 2, words 2 and 3 */
        sc_philox(11, 2, 12, 0, w);
        double u = ((double)(w[2] >> 8) + 0.5) / 16777216.0;
        double radius = 3.0 * sqrt(-2.0 * log(u)),
               angle = 2.0 * acos(-1.0) * (double)sc_uniform(w[3]);
        assert_true(fabs((double)y[0] - radius * cos(angle)) < 1e-5);
        assert_true(fabs((double)y[1] - radius * sin(angle)) < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_is_its_definition),
        cmocka_unit_test(layouts_draw_the_same_mask),
        cmocka_unit_test(attention_dropout_is_its_definition),
        cmocka_unit_test(init_is_normal_in_every_layout),
        cmocka_unit_test(init_by_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
