/* Fits: exact lines, outliers, restricted constants, statistics; normal equations as a second
 * opinion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/fit.h"

#define COUNT 40

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

/* x 1, 2, 4 and y 3, 5, 8 by hand: means 7/3, 16/3; sum dx^2 = 14/3, sum dx dy = 23/3:
 * b = 23/14, a = 16/3 - 23/14 x 7/3 = 3/2. */
static void plain_line_by_hand(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    const double x[] = {1, 2, 4}, y[] = {3, 5, 8};
    double a = 0, b = 0;
    assert_int_equal(sc_fit_line_weighted(x, y, NULL, 3, &a, &b, &err), SC_OK);
    near_to(b, 23.0 / 14.0, 1e-14);
    near_to(a, 1.5, 1e-14);
}

/* A weight of 2 is the same as the point twice. */
static void weights_count_points(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    const double x[] = {1, 2, 4}, y[] = {3, 5, 8}, w[] = {1, 2, 1};
    const double x2[] = {1, 2, 2, 4}, y2[] = {3, 5, 5, 8};
    double a = 0, b = 0, a2 = 0, b2 = 0;
    assert_int_equal(sc_fit_line_weighted(x, y, w, 3, &a, &b, &err), SC_OK);
    assert_int_equal(sc_fit_line_weighted(x2, y2, NULL, 4, &a2, &b2, &err), SC_OK);
    near_to(a, a2, 1e-14);
    near_to(b, b2, 1e-14);
}

/* Sizes over six decades, 25 us + x / 476 GB/s, noise of at most 1 %. */
static void make_timings(double *x, double *y, uint64_t seed, double noise)
{
    for (int i = 0; i < COUNT; i++) {
        double unit = (double)(sc_random_next(&seed) >> 11) * 0x1p-53;
        x[i] = exp2(10.0 + 0.5 * i);
        y[i] = (25e-6 + x[i] / 476e9) * (1.0 + noise * (2.0 * unit - 1.0));
    }
}

static void relative_residuals_see_small_sizes(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_line line;
    double x[COUNT], y[COUNT];
    make_timings(x, y, 1, 0.0);
    assert_int_equal(sc_fit_line_robust(x, y, COUNT, &line, &err), SC_OK);
    near_to(line.a, 25e-6, 1e-9);
    near_to(line.b, 1.0 / 476e9, 1e-9);
    assert_true(line.residuals.worst < 1e-9);
    make_timings(x, y, 7, 0.01);
    assert_int_equal(sc_fit_line_robust(x, y, COUNT, &line, &err), SC_OK);
    near_to(line.a, 25e-6, 0.01);
    near_to(line.b, 1.0 / 476e9, 0.01);
    assert_int_equal(line.residuals.count, COUNT);
}

/* Five timings of forty ten times too long: the line moves by less than a per cent, and the
 * residuals say so (median small, worst 0.9 = 1 - 1/10). */
static void outliers_are_damped(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_line line;
    double x[COUNT], y[COUNT];
    make_timings(x, y, 3, 0.005);
    for (int i = 2; i < COUNT; i += 8) {
        y[i] *= 10.0;
    }
    assert_int_equal(sc_fit_line_robust(x, y, COUNT, &line, &err), SC_OK);
    near_to(line.a, 25e-6, 0.01);
    near_to(line.b, 1.0 / 476e9, 0.01);
    near_to(line.residuals.worst, 0.9, 0.01);
    assert_true(line.residuals.median < 0.01);
}

/* y = 2 x - 1 would need a negative fixed cost: it becomes 0. Falling times: the slope does. */
static void constants_are_never_negative(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_line line;
    const double x[] = {1, 2, 3, 4}, y[] = {1, 3, 5, 7}, falling[] = {4, 3.5, 3, 2.5};
    assert_int_equal(sc_fit_line_robust(x, y, 4, &line, &err), SC_OK);
    assert_true(line.a == 0.0 && line.b > 0.0);
    assert_int_equal(sc_fit_line_robust(x, falling, 4, &line, &err), SC_OK);
    assert_true(line.b == 0.0 && line.a > 2.5 && line.a < 4.0);
    struct sc_fit_peak peak;
    assert_int_equal(sc_fit_peak_share(x, falling, 4, 1.0, &peak, &err), SC_BAD_INPUT);
}

/* 3 us + flops / (0.7 x 100 GFLOP/s). */
static void peak_share_of_timings(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_peak peak;
    double flops[8], seconds[8];
    for (int i = 0; i < 8; i++) {
        flops[i] = 1e5 * exp2(2.0 * i);
        seconds[i] = 3e-6 + flops[i] / 70e9;
    }
    assert_int_equal(sc_fit_peak_share(flops, seconds, 8, 100e9, &peak, &err), SC_OK);
    near_to(peak.share, 0.7, 1e-9);
    near_to(peak.fixed_s, 3e-6, 1e-9);
}

/* Errors 0.1, 0.2, 0.3, 0.4, 0.5: median 0.3, 90 % at 0.5 - 0.4 x 0.1 = 0.46. */
static void residual_statistics(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_residuals r;
    const double fitted[] = {1.3, 0.9, 0.5, 1.2, 0.6}, measured[] = {1, 1, 1, 1, 1};
    assert_int_equal(sc_fit_residuals(fitted, measured, 5, &r, &err), SC_OK);
    near_to(r.median, 0.3, 1e-12);
    near_to(r.p90, 0.46, 1e-12);
    near_to(r.worst, 0.5, 1e-12);
    double one[] = {7.0};
    assert_true(sc_fit_quantile(one, 1, 0.9) == 7.0);
    assert_int_equal(sc_fit_residuals(fitted, measured, 0, &r, &err), SC_BAD_INPUT);
}

static void what_cannot_be_fitted_is_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_line line;
    const double x[] = {5, 5, 5}, y[] = {1, 2, 3}, bad[] = {1, 0, 3}, up[] = {1, 2, 3};
    assert_int_equal(sc_fit_line_robust(x, y, 3, &line, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "two sizes"));
    assert_int_equal(sc_fit_line_robust(up, bad, 3, &line, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "timing 1"));
    assert_int_equal(sc_fit_line_robust(up, y, 1, &line, &err), SC_BAD_INPUT);
    assert_int_equal(sc_fit_line_robust(up, y, 0, &line, &err), SC_BAD_INPUT);
}

/* The uncentred normal equations in long double: b = (W Sxy - Sx Sy) / (W Sxx - Sx Sx). */
static void normal_equations(const double *x, const double *y, const double *w, double *a,
                             double *b)
{
    long double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < COUNT; i++) {
        sw += (long double)w[i];
        sx += (long double)w[i] * x[i];
        sy += (long double)w[i] * y[i];
        sxx += (long double)w[i] * x[i] * x[i];
        sxy += (long double)w[i] * x[i] * y[i];
    }
    *b = (double)((sw * sxy - sx * sy) / (sw * sxx - sx * sx));
    *a = (double)((sy * sxx - sx * sxy) / (sw * sxx - sx * sx));
}

static void normal_equations_give_the_same_line(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    double x[COUNT], y[COUNT], w[COUNT], a = 0, b = 0, a2 = 0, b2 = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_timings(x, y, seed, 0.3);
        for (int i = 0; i < COUNT; i++) {
            w[i] = 1.0 / (y[i] * y[i]);
        }
        normal_equations(x, y, w, &a2, &b2);
        assert_int_equal(sc_fit_line_weighted(x, y, w, COUNT, &a, &b, &err), SC_OK);
        near_to(a, a2, 1e-10);
        near_to(b, b2, 1e-10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_line_by_hand),
        cmocka_unit_test(weights_count_points),
        cmocka_unit_test(relative_residuals_see_small_sizes),
        cmocka_unit_test(outliers_are_damped),
        cmocka_unit_test(constants_are_never_negative),
        cmocka_unit_test(peak_share_of_timings),
        cmocka_unit_test(residual_statistics),
        cmocka_unit_test(what_cannot_be_fitted_is_refused),
        cmocka_unit_test(normal_equations_give_the_same_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
