/* Search on a tiny model: counts, order, the same result with one worker and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/search.h"
#include "sim/simulate.h"
#include "tests/support/near.h"

struct fixture {
    struct sc_model model;
    struct sc_hardware hardware;
    struct sc_plan base;
    struct sc_error err;
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    if (sc_model_load("tiny-gpt", NULL, &f->model, &f->err) != SC_OK ||
        sc_hardware_load("two-cores", NULL, NULL, 0, &f->hardware, &f->err) != SC_OK)
        fail_msg("%s", f->err.text);
    sc_search_base(&f->model, &f->hardware, 4, 32, &f->base);
}

static void search(struct fixture *f, int threads, int64_t top, struct sc_search_result *result)
{
    const struct sc_search_options options = {
        .base = &f->base, .hardware = &f->hardware, .devices = 2, .threads = threads, .top = top};
    if (sc_search(&options, result, &f->err) != SC_OK)
        fail_msg("%s", f->err.text);
}

/* Two devices, 4 sequences.
 *   tensor 1, data 2: micro-batch 1 or 2, stage 0 or 1, recompute or not, fused or not:
 *                     2 x 2 x 4 = 16
 *   tensor 2, data 1: micro-batch 1, 2 or 4, five ways of Domino, 4: 3 x 5 x 4 = 60
 * Of the latter invalid: pieces 2 and 4 of 1 sequence (4 ways), 4 of 2 (2 ways): 6 x 4 = 24. */
static void counts(void **state)
{
    (void)state;
    struct fixture f;
    struct sc_search_result r;
    setup(&f);
    search(&f, 1, 0, &r);
    assert_int_equal(r.considered, 76);
    assert_int_equal(r.pruned, 24);
    assert_int_equal(r.simulated, 52);
    assert_int_equal(r.plans.count, 52);
    assert_non_null(strstr(r.refusal, "domino.pieces"));
    for (size_t i = 0; i + 1 < r.plans.count; i++)
        assert_true(r.plans.items[i].step_time_s <= r.plans.items[i + 1].step_time_s);
    sc_search_result_free(&r);
}

static void workers_do_not_matter(void **state)
{
    (void)state;
    struct fixture f;
    struct sc_search_result one, two;
    setup(&f);
    search(&f, 1, 0, &one);
    search(&f, 2, 5, &two);
    assert_int_equal(two.plans.count, 5);
    assert_int_equal(two.simulated, one.simulated);
    assert_string_equal(two.refusal, one.refusal);
    for (size_t i = 0; i < two.plans.count; i++) {
        assert_string_equal(one.plans.items[i].plan.name, two.plans.items[i].plan.name);
        assert_near(one.plans.items[i].step_time_s, two.plans.items[i].step_time_s, 0);
        assert_int_equal(one.plans.items[i].peak_bytes, two.plans.items[i].peak_bytes);
    }
    sc_search_result_free(&one);
    sc_search_result_free(&two);
}

/* What search says of a plan is what sim says of it. */
static void as_sim_says(void **state)
{
    (void)state;
    struct fixture f;
    struct sc_search_result r;
    struct sc_sim_result forecast;
    setup(&f);
    search(&f, 2, 3, &r);
    for (size_t i = 0; i < r.plans.count; i++) {
        const struct sc_found *found = &r.plans.items[i];
        assert_int_equal(sc_plan_check(&found->plan, NULL, &f.err), SC_OK);
        assert_int_equal(sc_simulate(&found->plan, &f.hardware, NULL, &forecast, &f.err), SC_OK);
        assert_near(forecast.step_time_s, found->step_time_s, 0);
        assert_int_equal(forecast.memory[SC_DEVICE].arena_bytes, found->peak_bytes);
        sc_sim_result_free(&forecast);
    }
    sc_search_result_free(&r);
}

/* Nothing fits: no failure, an empty list and the reason. */
static void nothing_fits(void **state)
{
    (void)state;
    struct fixture f;
    struct sc_search_result r;
    setup(&f);
    f.hardware.places[SC_HW_DEVICE].capacity_bytes = 2e6 + 4 * f.hardware.reserved.context;
    f.hardware.reserved.context *= 2;
    search(&f, 1, 0, &r);
    assert_int_equal(r.plans.count, 0);
    assert_int_equal(r.pruned, r.considered);
    assert_true(r.refusal[0] != '\0');
    sc_search_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(workers_do_not_matter),
        cmocka_unit_test(as_sim_says),
        cmocka_unit_test(nothing_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
