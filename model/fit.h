/*
 * From timings to constants: least squares on relative residuals with outliers damped (iteratively
 * reweighted, Huber 1964), and the statistics that stand beside every calibrated number.
 */
#ifndef STEPCAST_MODEL_FIT_H
#define STEPCAST_MODEL_FIT_H

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

#endif
