/* Comparison: joining, collectives without their skew, medians, regret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/compare.h"
#include "tests/support/make_trace.h"

#define NEAR 1e-12

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance)) {
        fail_msg("found %.17g, expected %.17g", value, expected);
    }
}

static void add(struct sc_comparison *comparison, struct sc_trace *predicted,
                struct sc_trace *measured)
{
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_comparison_add(comparison, predicted, measured, &err), SC_OK);
    sc_trace_free(predicted);
    sc_trace_free(measured);
}

static void finish(struct sc_comparison *comparison)
{
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_comparison_finish(comparison, &err), SC_OK);
}

/* The worked example's operation 8: predicted 250 to 370; measured 252, transfer from 258.9 to
 * 383.4. 120 / 124.5 - 1 = -3.6 %, skew 6.9 us. Beside it two gemms: 100 against 80 (+25 %) and 90
 * against 100 (-10 %): together 190 / 180 - 1 = +5.6 %, median |error| (25 + 10) / 2 = 17.5 %. */
static void make_pair(struct sc_trace *predicted, struct sc_trace *measured, const char *program)
{
    make_trace(predicted, SC_PREDICTED, "p", "sha256:a", 1000);
    make_row(predicted, 7, SC_GEMM, 150, NAN, 250);
    make_row(predicted, 8, SC_ALL_REDUCE, 250, 250, 370);
    make_row(predicted, 9, SC_GEMM, 370, NAN, 460);
    make_trace(measured, SC_MEASURED, "p", program, 1250);
    make_row(measured, 9, SC_GEMM, 400, NAN, 500);
    make_row(measured, 7, SC_GEMM, 170, NAN, 250);
    make_row(measured, 8, SC_ALL_REDUCE, 252, 258.9, 383.4);
    make_row(measured, 8, SC_ALL_REDUCE, 0, 0, 1)->rank = 1; /* of one rank: does not count */
}

static void operations_of_one_program_are_joined(void **state)
{
    (void)state;
    struct sc_trace predicted, measured;
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    make_pair(&predicted, &measured, "sha256:a");
    add(&comparison, &predicted, &measured);
    finish(&comparison);

    assert_true(comparison.plans.items[0].joined);
    assert_int_equal(comparison.notes.count, 0);
    assert_near(comparison.plans.items[0].error, 1000.0 / 1250 - 1, NEAR);
    const struct sc_compared_kind *gemm = &comparison.kinds[SC_GEMM];
    assert_int_equal(gemm->count, 2);
    assert_near(gemm->error, 190.0 / 180 - 1, NEAR);
    assert_near(gemm->median_abs_error, 0.175, NEAR);
    const struct sc_compared_kind *reduce = &comparison.kinds[SC_ALL_REDUCE];
    assert_int_equal(reduce->count, 1);
    assert_near(reduce->error, 120 / 124.5 - 1, 1e-9);
    assert_near(reduce->skew_s, 6.9e-6, 1e-15);
    /* Differences: 20, 10, 4.5 us. */
    assert_int_equal(comparison.worst_count, 3);
    assert_int_equal(comparison.worst[0].operation, 7);
    assert_int_equal(comparison.worst[1].operation, 9);
    assert_int_equal(comparison.worst[2].operation, 8);
    sc_comparison_free(&comparison);
}

static void two_programs_compare_by_kind_only(void **state)
{
    (void)state;
    struct sc_trace predicted, measured;
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    make_pair(&predicted, &measured, "sha256:b");
    add(&comparison, &predicted, &measured);
    finish(&comparison);

    assert_false(comparison.plans.items[0].joined);
    assert_int_equal(comparison.worst_count, 0);
    assert_int_equal(comparison.notes.count, 1);
    assert_non_null(strstr(comparison.notes.items[0], "the programs differ"));
    assert_near(comparison.kinds[SC_GEMM].error, 190.0 / 180 - 1, NEAR);
    assert_true(isnan(comparison.kinds[SC_GEMM].median_abs_error));
    sc_comparison_free(&comparison);
}

static void missing_operations_are_said(void **state)
{
    (void)state;
    struct sc_trace predicted, measured;
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    make_pair(&predicted, &measured, "sha256:a");
    predicted.rows.count = 2;              /* 7, 8; measured has 9 as well */
    predicted.rows.items[1].operation = 5; /* 5 instead of 8: three stand alone: 5, 8, 9 */
    add(&comparison, &predicted, &measured);
    assert_int_equal(comparison.notes.count, 1);
    assert_string_equal(comparison.notes.items[0],
                        "p: 3 operations stand in one of the two traces only");
    sc_comparison_free(&comparison);
}

/* Two classes of 1 and 3 ranks: a sum is the mean over ranks, 1/4 x 100 + 3/4 x 20 = 40 us. */
static void classes_count_by_their_ranks(void **state)
{
    (void)state;
    struct sc_trace traces[2];
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    for (int i = 0; i < 2; i++) {
        make_trace(&traces[i], i == 0 ? SC_PREDICTED : SC_MEASURED, "p", "sha256:a", 200);
        traces[i].classes.items[0].ranks = 1;
        struct sc_trace_class *class = sc_array_push(&traces[i].classes);
        assert_non_null(class);
        *class = (struct sc_trace_class){"second", 3};
        make_row(&traces[i], 0, SC_GEMM, 0, NAN, 100);
        make_row(&traces[i], 0, SC_GEMM, 0, NAN, 20)->class_index = 1;
    }
    add(&comparison, &traces[0], &traces[1]);
    assert_int_equal(comparison.kinds[SC_GEMM].count, 2);
    assert_near(comparison.kinds[SC_GEMM].predicted_s, 40e-6, 1e-15);
    sc_comparison_free(&comparison);
}

/* Forecast 100, 90, 200 and measured 100, 120, 160: errors 0, -25 %, +25 %. Median of 0, 25, 25 is
 * 25 %. Forecast fastest is the second (measured 120), measured fastest 100: regret 1.2. */
static void several_plans_have_a_median_and_a_regret(void **state)
{
    (void)state;
    static const double times[][2] = {{100, 100}, {90, 120}, {200, 160}};
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    for (size_t i = 0; i < 3; i++) {
        struct sc_trace predicted, measured;
        make_trace(&predicted, SC_PREDICTED, "p", "sha256:a", times[i][0]);
        make_trace(&measured, SC_MEASURED, "p", "sha256:a", times[i][1]);
        add(&comparison, &predicted, &measured);
    }
    finish(&comparison);
    assert_near(comparison.median_abs_error, 0.25, NEAR);
    assert_near(comparison.p90_abs_error, 0.25, NEAR);
    assert_near(comparison.max_abs_error, 0.25, NEAR);
    assert_near(comparison.regret, 1.2, NEAR);
    assert_true(isnan(comparison.coverage));
    sc_comparison_free(&comparison);
}

static void add_times(struct sc_comparison *comparison, const char *plan, double predicted_us,
                      double measured_us)
{
    struct sc_trace predicted, measured;
    make_trace(&predicted, SC_PREDICTED, plan, "sha256:a", predicted_us);
    make_trace(&measured, SC_MEASURED, plan, "sha256:a", measured_us);
    predicted.period_low_us = 0.9 * predicted_us;
    predicted.period_high_us = 1.1 * predicted_us;
    add(comparison, &predicted, &measured);
}

/* Group x: forecast 100, 90, 95 and measured 100, 104, 110. Forecast fastest is b: regret 1.04.
 * Pairs that differ by more than 5 %: a and c (10 %), b and c (5.8 %), not a and b (4 %). Of a and
 * c the forecast, 95 / 100 - 1 = -5 %, is wrong; of b and c, 95 / 90 - 1 > 0, it is right. Group y
 * is forecast as it is measured: regret 1, no pair wrong; 50 and 10 are far apart, and from x no
 * pair is formed. |errors|: 0, 14 / 104 = 13.46 %, 15 / 110 = 13.64 %, 0, 0. The 90th percentile of
 * five lies 0.6 of the way from the fourth (14 / 104) to the fifth (15 / 110). Within 0.9 to 1.1
 * times the forecast: 100 in 90 to 110; 104 not in 81 to 99; 110 not in 85.5 to 104.5; y both: 3
 * of 5. */
static void regret_and_order_are_asked_within_a_group(void **state)
{
    (void)state;
    static const struct sc_plan_group_row rows[] = {
        {"a", "x", NULL}, {"b", "x", "mpi"}, {"c", "x", NULL}, {"d", "y", NULL}, {"e", "y", NULL}};
    struct sc_plan_groups groups = {.file = "list"};
    for (size_t i = 0; i < 5; i++) {
        struct sc_plan_group_row *row = sc_array_push(&groups.rows);
        assert_non_null(row);
        *row = rows[i];
    }
    struct sc_error err = SC_ERROR_INIT;
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    add_times(&comparison, "a", 100, 100);
    add_times(&comparison, "b", 90, 104);
    add_times(&comparison, "d", 10, 10);
    add_times(&comparison, "c", 95, 110);
    add_times(&comparison, "e", 50, 50);
    assert_int_equal(sc_comparison_label(&comparison, &groups, &err), SC_OK);
    finish(&comparison);

    assert_int_equal(comparison.groups.count, 2);
    const struct sc_compared_group *x = &comparison.groups.items[0];
    assert_string_equal(x->name, "x");
    assert_int_equal(x->plans, 3);
    assert_string_equal(x->forecast, "b");
    assert_string_equal(x->fastest, "a");
    assert_near(x->regret, 1.04, NEAR);
    assert_int_equal(x->gaps, 2);
    assert_int_equal(x->wrong, 1);
    assert_near(comparison.groups.items[1].regret, 1, NEAR);
    assert_int_equal(comparison.groups.items[1].wrong, 0);
    assert_near(comparison.regret, 1.04, NEAR);

    assert_int_equal(comparison.wrong_gaps.count, 1);
    const struct sc_wrong_gap *gap = &comparison.wrong_gaps.items[0];
    assert_string_equal(gap->faster, "a");
    assert_string_equal(gap->slower, "c");
    assert_near(gap->measured, 0.1, NEAR);
    assert_near(gap->predicted, -0.05, NEAR);

    assert_string_equal(comparison.plans.items[1].transport, "mpi");
    double fourth = 14.0 / 104, fifth = 15.0 / 110;
    assert_near(comparison.p90_abs_error, fourth + 0.6 * (fifth - fourth), NEAR);
    assert_near(comparison.coverage, 3.0 / 5, NEAR);
    sc_comparison_free(&comparison);

    sc_comparison_init(&comparison);
    add_times(&comparison, "z", 1, 1);
    assert_int_equal(sc_comparison_label(&comparison, &groups, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "list: plans: found no plan of the name \"z\", expected all that "
                                  "are compared");
    sc_comparison_free(&comparison);
    sc_plan_groups_free(&groups);
}

/* Three rounds: steps 1000, 1300, 1100: median 1100, spread 300 / 1100. The product takes 80, 120,
 * 90: 90; the all-reduce, from its last member on, 100, 110, 130: 110; its skew 5, 1, 3: 3. */
static void rounds_count_with_their_median(void **state)
{
    (void)state;
    static const double step[] = {1000, 1300, 1100}, product[] = {80, 120, 90};
    static const double transfer[] = {100, 110, 130}, skew[] = {5, 1, 3};
    struct sc_trace predicted, rounds[3];
    const struct sc_trace *list[3];
    make_trace(&predicted, SC_PREDICTED, "p", "sha256:a", 1210);
    make_row(&predicted, 0, SC_GEMM, 0, NAN, 90);
    make_row(&predicted, 1, SC_ALL_REDUCE, 90, 90, 222.0);
    for (size_t i = 0; i < 3; i++) {
        double reduce = 10.0 * (double)i + product[i], from = reduce + skew[i];
        make_trace(&rounds[i], SC_MEASURED, "p", "sha256:a", step[i]);
        make_row(&rounds[i], 0, SC_GEMM, 10.0 * (double)i, NAN, reduce);
        make_row(&rounds[i], 1, SC_ALL_REDUCE, reduce, from, from + transfer[i]);
        list[i] = &rounds[i];
    }
    struct sc_error err = SC_ERROR_INIT;
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    assert_int_equal(sc_comparison_add_rounds(&comparison, &predicted, list, 3, &err), SC_OK);
    finish(&comparison);
    const struct sc_compared_plan *plan = &comparison.plans.items[0];
    assert_int_equal(plan->rounds, 3);
    assert_near(plan->error, 0.1, NEAR);
    assert_near(plan->spread, 300.0 / 1100, NEAR);
    assert_near(comparison.kinds[SC_GEMM].error, 0, NEAR);
    assert_near(comparison.kinds[SC_ALL_REDUCE].measured_s, 110e-6, 1e-15);
    assert_near(comparison.kinds[SC_ALL_REDUCE].skew_s, 3e-6, 1e-15);
    sc_comparison_free(&comparison);

    /* A round of another program is no round. */
    sc_comparison_init(&comparison);
    rounds[2].program[7] = 'b';
    assert_int_equal(sc_comparison_add_rounds(&comparison, &predicted, list, 3, &err),
                     SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "p: program: found different programs"));
    sc_comparison_free(&comparison);
    sc_trace_free(&predicted);
    for (size_t i = 0; i < 3; i++) {
        sc_trace_free(&rounds[i]);
    }
}

/* What is not known is null in JSON, never NaN. */
static size_t notes_with(const struct sc_comparison *comparison, const char *text)
{
    size_t found = 0;
    for (size_t i = 0; i < comparison->notes.count; i++) {
        found += strstr(comparison->notes.items[i], text) != NULL;
    }
    return found;
}

/* A forecast of another machine is noted once, one of the same or of a profile that nobody measured
 * is not. A fifth of the cores taken by others: too long by up to 0.2 / 0.8 = 25 %. */
static void machines_that_differ_are_noted(void **state)
{
    (void)state;
    const struct sc_identity here = {"AMD EPYC", 2, "plain"}, none = {"", 0, ""};
    const struct sc_identity profiles[] = {here, none, {"Xeon", 2, "plain"}};
    for (size_t i = 0; i < 3; i++) {
        struct sc_trace predicted, measured;
        struct sc_comparison comparison;
        sc_comparison_init(&comparison);
        make_pair(&predicted, &measured, "sha256:a");
        predicted.measured_on = profiles[i];
        measured.measured_on = here;
        measured.others_share = i == 1 ? 0.2 : 0.01;
        add(&comparison, &predicted, &measured);
        assert_int_equal(notes_with(&comparison, "p: the forecast is of another machine than the "
                                                 "measurement: processor Xeon against AMD EPYC"),
                         i == 2);
        assert_int_equal(notes_with(&comparison, "p: other programs used 20 % of the cores during "
                                                 "the measurement: it may be too long by up to "
                                                 "25 %"),
                         i == 1);
        assert_int_equal(comparison.notes.count, i > 0);
        sc_comparison_free(&comparison);
    }
}

static void json_has_the_promised_names(void **state)
{
    (void)state;
    struct sc_trace predicted, measured;
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    make_pair(&predicted, &measured, "sha256:b");
    measured.period_us = 0; /* nothing measured */
    add(&comparison, &predicted, &measured);
    finish(&comparison);
    cJSON *root = sc_comparison_to_json(&comparison);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "rows"), 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "plan")), "p");
    assert_near(cJSON_GetNumberValue(cJSON_GetObjectItem(row, "predicted_s")), 0.001, NEAR);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(row, "error")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(row, "low_s")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(row, "inside")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "coverage")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "median_abs_error")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "max_abs_error")));
    const cJSON *gemm = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "by_kind"), "gemm");
    assert_near(cJSON_GetNumberValue(cJSON_GetObjectItem(gemm, "count")), 2, NEAR);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(gemm, "median_abs_error")));
    cJSON_Delete(root);
    sc_comparison_free(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_of_one_program_are_joined),
        cmocka_unit_test(two_programs_compare_by_kind_only),
        cmocka_unit_test(missing_operations_are_said),
        cmocka_unit_test(classes_count_by_their_ranks),
        cmocka_unit_test(several_plans_have_a_median_and_a_regret),
        cmocka_unit_test(regret_and_order_are_asked_within_a_group),
        cmocka_unit_test(rounds_count_with_their_median),
        cmocka_unit_test(machines_that_differ_are_noted),
        cmocka_unit_test(json_has_the_promised_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
