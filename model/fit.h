/*
 * From timings to constants: least squares on relative residuals with outliers damped (iteratively
 * reweighted, Huber 1964), and the statistics that stand beside every calibrated number. Straight
 * lines have a closed form; any other formula is fitted by sc_fit_nonlinear, with GSL where the
 * build has it (GPL: STEPCAST_GSL=OFF leaves it out), else with a Levenberg-Marquardt of our own.
 */
#ifndef STEPCAST_MODEL_FIT_H
#define STEPCAST_MODEL_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct sc_fit_residuals {
    double median, p90, worst; /* of |fitted / measured - 1| */
    size_t count;
};

/* measured ~ a + b x. */
struct sc_fit_line {
    double a, b;
    struct sc_fit_residuals residuals;
};

/* Plain weighted least squares of y = a + b x; weights NULL: all one. Needs two different x. */
enum sc_status sc_fit_line_weighted(const double *x, const double *y, const double *weights,
                                    size_t count, double *a, double *b, struct sc_error *err);
/* y = a + b x with a >= 0, b >= 0, relative residuals and Huber weights (iteratively reweighted,
 * scale from the median absolute residual). All y > 0. */
enum sc_status sc_fit_line_robust(const double *x, const double *y, size_t count,
                                  struct sc_fit_line *out, struct sc_error *err);

/* seconds ~ fixed_s + flops / (peak share): GEMM timings to the profile's two numbers. */
struct sc_fit_peak {
    double share, fixed_s;
    struct sc_fit_residuals residuals;
};
enum sc_status sc_fit_peak_share(const double *flops, const double *seconds, size_t count,
                                 double peak_flop_per_s, struct sc_fit_peak *out,
                                 struct sc_error *err);

/* Statistics of |fitted / measured - 1|. */
enum sc_status sc_fit_residuals(const double *fitted, const double *measured, size_t count,
                                struct sc_fit_residuals *out, struct sc_error *err);
/* The q-quantile (0 to 1, linear between order statistics) of `count` >= 1 values; sorts them. */
double sc_fit_quantile(double *values, size_t count, double q);

/* ---- any formula ---- */

#define SC_FIT_PARAMETERS_MAX 16

/*
 * One constant. It stays inside (lower, upper), which may be -INFINITY and INFINITY, because the
 * fit moves a coordinate u that has no bounds:
 *     value = u;  lower + exp(u);  upper - exp(u);  lower + (upper - lower) / (1 + exp(-u))
 * for none, one or both bounds finite. lower = 0, upper = INFINITY: a positive number by its
 * logarithm. A constant that belongs on its bound comes close to it.
 */
struct sc_fit_parameter {
    double start; /* inside the bounds */
    double lower, upper;
    /* A weak pull: being off by one in u costs as much as a residual of `pull` (of a positive
     * number: with 0.05, a factor e as much as one timing that is 5 % off). 0: none. */
    double prior, pull;
};

enum sc_fit_loss { SC_FIT_SQUARES, SC_FIT_HUBER, SC_FIT_SOFT_L1 };
enum sc_fit_solver { SC_FIT_BEST_SOLVER, SC_FIT_PLAIN_SOLVER, SC_FIT_GSL_SOLVER };

/* measured[i] ~ predict(values, i, context), by residuals log(predicted / measured). */
struct sc_fit_problem {
    const struct sc_fit_parameter *parameters;
    size_t parameter_count; /* 1 to SC_FIT_PARAMETERS_MAX */
    const double *measured; /* all above 0 */
    size_t count;
    /* Above 0; anything else counts as far off and is left again. */
    double (*predict)(const double *values, size_t index, const void *context);
    const void *context;
    /* Of r: r^2; Huber: r^2 up to loss_scale, 2 loss_scale |r| - loss_scale^2 beyond; soft L1:
     * 2 loss_scale^2 (sqrt(1 + (r / loss_scale)^2) - 1). */
    enum sc_fit_loss loss;
    double loss_scale; /* above 0 unless squares */
    enum sc_fit_solver solver;
};

struct sc_fit_solution {
    double values[SC_FIT_PARAMETERS_MAX];
    /* Of the values: s^2 (J^T W J + pulls)^-1 with s^2 = sum w r^2 / (count - parameters), carried
     * from u by the derivative at the solution. INFINITY on the diagonal, 0 beside it, where the
     * timings (and pulls) do not decide, or are no more than the parameters. */
    double covariance[SC_FIT_PARAMETERS_MAX][SC_FIT_PARAMETERS_MAX];
    struct sc_fit_residuals residuals;
    int rounds;     /* of reweighting */
    bool converged; /* false: the best that was reached in a limited number of rounds */
};

/* Minimises the sum of losses and pulls, from `start`: a local minimum. SC_BAD_INPUT: a start
 * outside its bounds, fewer timings and pulls than parameters, a timing that is not above 0;
 * SC_NO: SC_FIT_GSL_SOLVER in a build without it. */
enum sc_status sc_fit_nonlinear(const struct sc_fit_problem *problem, struct sc_fit_solution *out,
                                struct sc_error *err);
bool sc_fit_has_gsl(void);

#endif
