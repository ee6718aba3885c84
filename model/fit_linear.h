/*
 * Several constants at once: y = sum of b[j] x[j], every b >= 0, relative residuals, outliers
 * damped as in model/fit.h. For times that are sums of what parts of an operation take.
 */
#ifndef STEPCAST_MODEL_FIT_LINEAR_H
#define STEPCAST_MODEL_FIT_LINEAR_H

#include "model/fit.h"

enum { SC_FIT_TERMS_MAX = 12 };

/* `x` is [count][terms], row-major, entries >= 0; all y > 0; terms <= SC_FIT_TERMS_MAX. A term that
 * the timings do not tell from others, or that would be negative, gets 0. */
enum sc_status sc_fit_linear_robust(const double *x, const double *y, size_t count, size_t terms,
                                    double *b, struct sc_fit_residuals *residuals,
                                    struct sc_error *err);

#endif
