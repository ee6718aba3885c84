/* sc_fit_nonlinear: problems that can be worked by hand, with each solver of this build; bounds,
 * pulls, losses, covariance; the solvers against one another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/fit.h"

#define CLOSE 1e-6
#define POSITIVE(at)                                                                               \
    {                                                                                              \
        .start = (at), .lower = 0.0, .upper = INFINITY                                             \
    }
#define FREE(at)                                                                                   \
    {                                                                                              \
        .start = (at), .lower = -INFINITY, .upper = INFINITY                                       \
    }

static void near_to(double found, double expected)
{
    if (!(fabs(found - expected) <= CLOSE * fmax(fabs(expected), 1e-300))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

static void solve(const struct sc_fit_problem *problem, struct sc_fit_solution *out)
{
    struct sc_error err = SC_ERROR_INIT;
    memset(out, 0, sizeof(*out));
    if (sc_fit_nonlinear(problem, out, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
}

/* Every problem below is solved with the solver that the test was started with. */
static enum sc_fit_solver solver_of(void **state)
{
    return *(const enum sc_fit_solver *)*state;
}

/* ---- y = a x^b ---- */

static double power_law(const double *values, size_t i, const void *context)
{
    const double *x = context;
    return values[0] * pow(x[i], values[1]);
}

/* log x 0, 1, 2 and log y 0, 1, 3: means 1 and 4/3, sum dx^2 = 2, sum dx dy = 4/3 + 5/3 = 3, so
 * b = 3/2, log a = 4/3 - 3/2 = -1/6. Fitted - measured: -1/6, 1/3, -1/6; s^2 = (1/36 + 4/36 + 1/36)
 * / (3 - 2) = 1/6. Of b: s^2 / 2 = 1/12; of log a: s^2 (1/3 + 1/2) = 5/36; both: -s^2 / 2 = -1/12;
 * a's own are a^2 and a times those. */
static void straight_line_in_logarithms(void **state)
{
    const double x[] = {1.0, exp(1.0), exp(2.0)}, y[] = {1.0, exp(1.0), exp(3.0)};
    const struct sc_fit_parameter parameters[] = {POSITIVE(20.0), FREE(-3.0)};
    struct sc_fit_solution out;
    solve(&(struct sc_fit_problem){.parameters = parameters,
                                   .parameter_count = 2,
                                   .measured = y,
                                   .count = 3,
                                   .predict = power_law,
                                   .context = x,
                                   .solver = solver_of(state)},
          &out);
    double a = exp(-1.0 / 6.0);
    near_to(out.values[0], a);
    near_to(out.values[1], 1.5);
    near_to(out.covariance[0][0], a * a * 5.0 / 36.0);
    near_to(out.covariance[1][1], 1.0 / 12.0);
    near_to(out.covariance[0][1], -a / 12.0);
    near_to(out.covariance[1][0], -a / 12.0);
    near_to(out.residuals.worst, exp(1.0 / 3.0) - 1.0);
    assert_true(out.converged);
}

/* ---- y = c ---- */

static double constant(const double *values, size_t i, const void *context)
{
    (void)i;
    (void)context;
    return values[0];
}

static double fit_constant(const double *y, size_t count, const struct sc_fit_parameter *parameter,
                           enum sc_fit_loss loss, enum sc_fit_solver solver)
{
    struct sc_fit_solution out;
    solve(&(struct sc_fit_problem){.parameters = parameter,
                                   .parameter_count = 1,
                                   .measured = y,
                                   .count = count,
                                   .predict = constant,
                                   .loss = loss,
                                   .loss_scale = 1.0,
                                   .solver = solver},
          &out);
    assert_true(out.converged);
    return out.values[0];
}

/* Logarithms 0, 0, 0, 10 and a scale of 1: 3 u = 1 (beyond the scale a residual pulls with 1). */
static void huber_by_hand(void **state)
{
    const double y[] = {1.0, 1.0, 1.0, exp(10.0)};
    const struct sc_fit_parameter start = POSITIVE(100.0);
    near_to(fit_constant(y, 4, &start, SC_FIT_HUBER, solver_of(state)), exp(1.0 / 3.0));
    near_to(fit_constant(y, 4, &start, SC_FIT_SQUARES, solver_of(state)), exp(2.5));
}

/* A residual r pulls with r / sqrt(1 + r^2) = sin(atan r). Logarithms 0, 0, m: 2 sin = 2 x 0.3 at
 * u = 0.3 / sqrt(0.91) against 0.6 at m - u = 0.75. */
static void soft_l1_by_hand(void **state)
{
    double u = 0.3 / sqrt(0.91);
    const double y[] = {1.0, 1.0, exp(0.75 + u)};
    const struct sc_fit_parameter start = POSITIVE(3.0);
    near_to(fit_constant(y, 3, &start, SC_FIT_SOFT_L1, solver_of(state)), exp(u));
}

/* (u - 1)^2 + 0.25 u^2 is least at u = 1 / 1.25; the pull alone decides where the timing is that of
 * another constant. */
static void a_pull_by_hand(void **state)
{
    const double y[] = {exp(1.0)};
    struct sc_fit_parameter parameter = POSITIVE(1.0);
    parameter.prior = 1.0;
    parameter.pull = 0.5;
    near_to(fit_constant(y, 1, &parameter, SC_FIT_SQUARES, solver_of(state)), exp(0.8));

    struct sc_fit_parameter two[] = {POSITIVE(1.0), POSITIVE(5.0)};
    two[1].prior = 7.0;
    two[1].pull = 1e-3;
    struct sc_fit_solution out;
    solve(&(struct sc_fit_problem){.parameters = two,
                                   .parameter_count = 2,
                                   .measured = y,
                                   .count = 1,
                                   .predict = constant,
                                   .solver = solver_of(state)},
          &out);
    near_to(out.values[0], exp(1.0));
    near_to(out.values[1], 7.0);
    assert_true(isinf(out.covariance[0][0])); /* one timing says nothing of its own spread */
}

/* ---- bounds ---- */

/* A share in (0, 1): inside, 1 / (1 + exp(-u)); a timing that asks for 1.2 brings it to the bound
 * and not over it. A free one below 10: 10 - exp(u). */
static void bounds_hold(void **state)
{
    struct sc_fit_parameter share = {.start = 0.5, .lower = 0.0, .upper = 1.0};
    const double inside[] = {0.66, 0.66}, outside[] = {1.2, 1.2};
    near_to(fit_constant(inside, 2, &share, SC_FIT_SQUARES, solver_of(state)), 0.66);
    struct sc_fit_solution out;
    solve(&(struct sc_fit_problem){.parameters = &share,
                                   .parameter_count = 1,
                                   .measured = outside,
                                   .count = 2,
                                   .predict = constant,
                                   .solver = solver_of(state)},
          &out);
    assert_true(out.values[0] > 0.999 && out.values[0] <= 1.0);
    struct sc_fit_parameter below = {.start = 1.0, .lower = -INFINITY, .upper = 10.0};
    const double nine[] = {9.0, 9.0};
    near_to(fit_constant(nine, 2, &below, SC_FIT_SQUARES, solver_of(state)), 9.0);
}

/* ---- latency and bandwidth ---- */

static double latency_bandwidth(const double *values, size_t i, const void *context)
{
    const double *bytes = context;
    return values[0] + bytes[i] / values[1];
}

#define SIZES 21

/* 25 us and 476 GB/s, from a start that is a hundred times off in both; with a tenth of the timings
 * three times too long, still within 1 % under a soft loss. */
static void constants_of_very_different_size(void **state)
{
    double bytes[SIZES], seconds[SIZES];
    const struct sc_fit_parameter parameters[] = {POSITIVE(2.5e-3), POSITIVE(5e9)};
    struct sc_fit_problem problem = {.parameters = parameters,
                                     .parameter_count = 2,
                                     .measured = seconds,
                                     .count = SIZES,
                                     .predict = latency_bandwidth,
                                     .context = bytes,
                                     .solver = solver_of(state)};
    struct sc_fit_solution out;
    for (int i = 0; i < SIZES; i++) {
        bytes[i] = exp2(10.0 + i);
        seconds[i] = 25e-6 + bytes[i] / 476e9;
    }
    solve(&problem, &out);
    near_to(out.values[0], 25e-6);
    near_to(out.values[1], 476e9);
    assert_true(out.covariance[0][0] < 1e-20 && out.converged);
    seconds[5] *= 3.0;
    seconds[15] *= 3.0;
    problem.loss = SC_FIT_SOFT_L1;
    problem.loss_scale = 0.01;
    solve(&problem, &out);
    assert_true(fabs(out.values[0] / 25e-6 - 1.0) < 0.01);
    assert_true(fabs(out.values[1] / 476e9 - 1.0) < 0.01);
}

/* ---- what the timings do not decide ---- */

static double product(const double *values, size_t i, const void *context)
{
    const double *x = context;
    return values[0] * values[1] * x[i];
}

/* Only the product 6 is seen. */
static void what_is_not_decided_is_said(void **state)
{
    const double x[] = {1, 2, 3, 4}, y[] = {6, 12, 18, 24};
    const struct sc_fit_parameter parameters[] = {POSITIVE(1.0), POSITIVE(1.0)};
    struct sc_fit_solution out;
    solve(&(struct sc_fit_problem){.parameters = parameters,
                                   .parameter_count = 2,
                                   .measured = y,
                                   .count = 4,
                                   .predict = product,
                                   .context = x,
                                   .solver = solver_of(state)},
          &out);
    near_to(out.values[0] * out.values[1], 6.0);
    assert_true(isinf(out.covariance[0][0]) && isinf(out.covariance[1][1]));
    assert_true(out.covariance[0][1] == 0.0);
}

/* ---- solvers against one another ---- */

static double power_and_floor(const double *values, size_t i, const void *context)
{
    const double *x = context;
    return values[0] + values[1] * pow(x[i], values[2]);
}

static void solvers_agree(void **state)
{
    (void)state;
    if (!sc_fit_has_gsl()) {
        skip();
    }
    double x[SIZES], y[SIZES];
    const struct sc_fit_parameter parameters[] = {POSITIVE(1.0), POSITIVE(1.0), FREE(1.0)};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed;
        for (int i = 0; i < SIZES; i++) {
            double unit = (double)(sc_random_next(&random) >> 11) * 0x1p-53;
            x[i] = exp2(0.5 * i);
            y[i] = (3.0 + 0.2 * pow(x[i], 0.9)) * exp(0.2 * (unit - 0.5));
        }
        struct sc_fit_problem problem = {.parameters = parameters,
                                         .parameter_count = 3,
                                         .measured = y,
                                         .count = SIZES,
                                         .predict = power_and_floor,
                                         .context = x,
                                         .loss = SC_FIT_HUBER,
                                         .loss_scale = 0.05,
                                         .solver = SC_FIT_PLAIN_SOLVER};
        struct sc_fit_solution plain, gsl;
        solve(&problem, &plain);
        problem.solver = SC_FIT_GSL_SOLVER;
        solve(&problem, &gsl);
        for (int j = 0; j < 3; j++) {
            near_to(plain.values[j], gsl.values[j]);
            assert_true(fabs(plain.covariance[j][j] / gsl.covariance[j][j] - 1.0) < 1e-4);
        }
    }
}

/* ---- wrong problems ---- */

static void refused(const struct sc_fit_problem *problem, const char *part)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_solution out = {.rounds = -1};
    assert_int_equal(sc_fit_nonlinear(problem, &out, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, part));
    assert_int_equal(out.rounds, -1); /* untouched */
}

static void wrong_problems_are_refused(void **state)
{
    (void)state;
    const double y[] = {1.0, 2.0}, bad[] = {1.0, 0.0};
    struct sc_fit_parameter parameters[] = {POSITIVE(1.0), POSITIVE(1.0), POSITIVE(1.0)};
    struct sc_fit_problem problem = {.parameters = parameters,
                                     .parameter_count = 1,
                                     .measured = y,
                                     .count = 2,
                                     .predict = constant};
    struct sc_fit_problem wrong = problem;
    wrong.parameter_count = 3;
    refused(&wrong, "found 2 timings, expected at least 3");
    wrong.parameter_count = 0;
    refused(&wrong, "found 0 parameters");
    wrong.parameter_count = SC_FIT_PARAMETERS_MAX + 1;
    refused(&wrong, "found 17 parameters");
    wrong = problem;
    wrong.measured = bad;
    refused(&wrong, "timing 1: found 0, expected above 0");
    wrong = problem;
    wrong.loss = SC_FIT_HUBER;
    refused(&wrong, "loss_scale: found 0");
    parameters[0].start = 0.0; /* on the bound */
    refused(&problem, "parameter 0: found the start 0");
}

static void gsl_that_is_not_there(void **state)
{
    (void)state;
    const double y[] = {1.0};
    const struct sc_fit_parameter parameter = POSITIVE(1.0);
    struct sc_error err = SC_ERROR_INIT;
    struct sc_fit_solution out;
    enum sc_status status = sc_fit_nonlinear(&(struct sc_fit_problem){.parameters = &parameter,
                                                                      .parameter_count = 1,
                                                                      .measured = y,
                                                                      .count = 1,
                                                                      .predict = constant,
                                                                      .solver = SC_FIT_GSL_SOLVER},
                                             &out, &err);
    assert_int_equal(status, sc_fit_has_gsl() ? SC_OK : SC_NO);
}

int main(void)
{
    static enum sc_fit_solver plain = SC_FIT_PLAIN_SOLVER, best = SC_FIT_BEST_SOLVER;
#define WITH_BOTH(test)                                                                            \
    {#test ", plain", test, NULL, NULL, &plain},                                                   \
    {                                                                                              \
#test ", best", test, NULL, NULL, &best                                                    \
    }
    const struct CMUnitTest tests[] = {
        WITH_BOTH(straight_line_in_logarithms),
        WITH_BOTH(huber_by_hand),
        WITH_BOTH(soft_l1_by_hand),
        WITH_BOTH(a_pull_by_hand),
        WITH_BOTH(bounds_hold),
        WITH_BOTH(constants_of_very_different_size),
        WITH_BOTH(what_is_not_decided_is_said),
        cmocka_unit_test(solvers_agree),
        cmocka_unit_test(wrong_problems_are_refused),
        cmocka_unit_test(gsl_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
