/* Fits of several non-negative constants: exact data, terms that are not there, outliers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "model/fit_linear.h"

enum { ROWS = 24, TERMS = 3 };

/* Rows of sizes that grow at different paces. */
static void fill(double x[ROWS][TERMS])
{
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = 1.0;
        x[i][1] = 100.0 * (1 + i % 6) * (1 + i / 6);
        x[i][2] = 10.0 * (1 + i % 6) + 3.0 * (i % 4);
    }
}

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

static void exact_timings_give_their_constants(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_residuals residuals;
    double x[ROWS][TERMS], y[ROWS], b[TERMS];
    fill(x);
    for (int i = 0; i < ROWS; i++) {
        y[i] = 5.0 + 0.25 * x[i][1] + 2.0 * x[i][2];
    }
    assert_int_equal(sc_fit_linear_robust(x[0], y, ROWS, TERMS, b, &residuals, &err), SC_OK);
    near_to(b[0], 5.0, 1e-6);
    near_to(b[1], 0.25, 1e-8);
    near_to(b[2], 2.0, 1e-7);
    near_to(residuals.worst, 0.0, 1e-9);
    assert_int_equal(residuals.count, ROWS);
}

/* y = 0.25 x1 - 0.1 x2: no x2 term helps, so it is 0 and the others are the best without it. */
static void a_negative_constant_is_nothing(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_residuals residuals;
    double x[ROWS][TERMS], y[ROWS], b[TERMS];
    fill(x);
    for (int i = 0; i < ROWS; i++) {
        y[i] = 0.25 * x[i][1] - 0.1 * x[i][2];
    }
    assert_int_equal(sc_fit_linear_robust(x[0], y, ROWS, TERMS, b, &residuals, &err), SC_OK);
    assert_true(b[2] >= 0.0 && b[2] <= 0.0);
    assert_true(b[0] >= 0.0);
    assert_true(b[1] > 0.22 && b[1] < 0.26);
}

/* Three of 24 timings were disturbed: five times as long. The constants move by little. */
static void outliers_are_damped(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_residuals residuals;
    double x[ROWS][TERMS], y[ROWS], b[TERMS];
    fill(x);
    for (int i = 0; i < ROWS; i++) {
        y[i] = (5.0 + 0.25 * x[i][1] + 2.0 * x[i][2]) * (1.0 + 0.01 * (i % 3 - 1));
        y[i] *= i % 8 == 3 ? 5.0 : 1.0;
    }
    assert_int_equal(sc_fit_linear_robust(x[0], y, ROWS, TERMS, b, &residuals, &err), SC_OK);
    near_to(b[1], 0.25, 0.02);
    assert_true(residuals.median < 0.03 && residuals.worst > 0.5);
}

/* The third column is twice the second: one of them takes it all. */
static void what_cannot_be_told_apart(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_residuals residuals;
    double x[ROWS][TERMS], y[ROWS], b[TERMS];
    fill(x);
    for (int i = 0; i < ROWS; i++) {
        x[i][2] = 2.0 * x[i][1];
        y[i] = 7.0 + 0.5 * x[i][1];
    }
    assert_int_equal(sc_fit_linear_robust(x[0], y, ROWS, TERMS, b, &residuals, &err), SC_OK);
    near_to(b[1] + 2.0 * b[2], 0.5, 1e-6);
    near_to(residuals.worst, 0.0, 1e-6);
}

static void bad_timings_are_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_residuals residuals;
    double x[ROWS][TERMS], y[ROWS] = {0}, b[TERMS];
    fill(x);
    assert_int_equal(sc_fit_linear_robust(x[0], y, ROWS, TERMS, b, &residuals, &err), SC_BAD_INPUT);
    assert_int_equal(sc_fit_linear_robust(x[0], y, 2, TERMS, b, &residuals, &err), SC_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_timings_give_their_constants),
        cmocka_unit_test(a_negative_constant_is_nothing),
        cmocka_unit_test(outliers_are_damped),
        cmocka_unit_test(what_cannot_be_told_apart),
        cmocka_unit_test(bad_timings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
