/* The step state's kernels: learning rate, bias corrections, clip factor, sum of squares. */
#include "tests/support/kernel_runs.h"

static float rate_after(const struct sc_kernels *k, int64_t done, int32_t schedule)
{
    struct sc_step_state at = {.step = done, .clip = 0.5f, .gradient_norm = 3.0f, .skip = 1};
    const struct sc_state_advance_args a = {
        .state = &at,
        .learning_rate = 0.4,
        .minimum_learning_rate = 0.1,
        .beta1 = 0.5,
        .beta2 = 0.75,
        .warmup_steps = 4,
        .decay_steps = 12,
        .seed = 17,
        .schedule = schedule,
    };
    k->state_advance(a, 0, 1);
    assert_true(at.step == done + 1 && at.seed == 17 && at.skip == 0);
    assert_true(at.clip == 1.0f && at.gradient_norm == 0.0f);
    double step = (double)done + 1;
    assert_true(fabs(at.correction1 - 1 / (1 - pow(0.5, step))) < 1e-6);
    assert_true(fabs(at.correction2 - 1 / (1 - pow(0.75, step))) < 1e-6);
    return at.learning_rate;
}

/*
 * Maximum 0.4, minimum 0.1, warm-up 4, decay 12. n steps done: n = 0: 0.4 x 0 / 4 = 0; n = 3:
 * 0.4 x 3/4 = 0.3; n = 4: 0.4. n = 8: r = (8 - 4) / (12 - 4) = 0.5: linear 0.1 + 0.5 x 0.3 = 0.25,
 * cosine (cos(pi/2) + 1) / 2 = 0.5: 0.25. n = 6: r = 0.25: linear 0.325, cosine
 * (0.70711 + 1) / 2 = 0.853553: 0.1 + 0.256066 = 0.356066. n = 13: 0.1, constant 0.4.
 */
static void advance_body(struct kernel_run *run)
{
    static const struct {
        int64_t done;
        int32_t schedule;
        float rate;
    } cases[] = {
        {0, SC_KERNEL_RATE_LINEAR, 0.0f},        {3, SC_KERNEL_RATE_COSINE, 0.3f},
        {4, SC_KERNEL_RATE_CONSTANT, 0.4f},      {8, SC_KERNEL_RATE_LINEAR, 0.25f},
        {8, SC_KERNEL_RATE_COSINE, 0.25f},       {6, SC_KERNEL_RATE_LINEAR, 0.325f},
        {6, SC_KERNEL_RATE_COSINE, 0.35606602f}, {13, SC_KERNEL_RATE_COSINE, 0.1f},
        {13, SC_KERNEL_RATE_CONSTANT, 0.4f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabsf(rate_after(run->k, cases[i].done, cases[i].schedule) - cases[i].rate) <
                    1e-6f);
}

static void advance_follows_the_schedule(void **state)
{
    (void)state;
    for_every_build(advance_body);
}

/* Squares 25: norm 5. Limit 1: 1 / (5 + 1e-6) = 0.2 to 1e-6; limit 10: 10 / 5 = 2, so 1. */
static void clip_body(struct kernel_run *run)
{
    float squares = 25.0f;
    struct sc_step_state at = {.clip = 1.0f};
    run->k->state_clip((struct sc_state_clip_args){&at, &squares, 1.0f}, 0, 1);
    assert_true(at.gradient_norm == 5.0f && fabsf(at.clip - 0.2f) < 1e-6f && at.clip < 0.2f);
    run->k->state_clip((struct sc_state_clip_args){&at, &squares, 10.0f}, 0, 1);
    assert_true(at.clip == 1.0f);
}

static void clip_is_torchs(void **state)
{
    (void)state;
    for_every_build(clip_body);
}

/* 1 + 2 + ... + 50 = 1275; added to 5: 1280. */
static void sum_body(struct kernel_run *run)
{
    double partial[50];
    float norm = 5.0f;
    for (int b = 0; b < 50; b++)
        partial[b] = b + 1;
    run->k->squares_sum((struct sc_squares_sum_args){partial, &norm, 50, 1}, 0, 1);
    assert_true(norm == 1280.0f);
    run->k->squares_sum((struct sc_squares_sum_args){partial, &norm, 50, 0}, 0, 1);
    assert_true(norm == 1275.0f);
}

static void partial_squares_are_added(void **state)
{
    (void)state;
    for_every_build(sum_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advance_follows_the_schedule),
        cmocka_unit_test(clip_is_torchs),
        cmocka_unit_test(partial_squares_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
