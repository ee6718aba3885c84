/* Straight lines by weighted least squares, made robust by reweighting. */
#include "model/fit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 50
#define HUBER 1.345          /* 95 % efficiency on normal residuals */
#define MAD_TO_SIGMA 0.67449 /* median |residual| of a unit normal */
#define SETTLED 1e-12

/* ---- order statistics ---- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double sc_fit_quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof(*values), compare);
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < count ? below + 1 : below;
    return values[below] + (values[above] - values[below]) * (place - (double)below);
}

enum sc_status sc_fit_residuals(const double *fitted, const double *measured, size_t count,
                                struct sc_fit_residuals *out, struct sc_error *err)
{
    if (count == 0) {
        return sc_fail(err, SC_BAD_INPUT, "fit: found no timings, expected at least one");
    }
    double *errors = malloc(count * sizeof(*errors));
    if (errors == NULL) {
        return sc_fail_memory(err, count * sizeof(*errors));
    }
    for (size_t i = 0; i < count; i++) {
        errors[i] = fabs(fitted[i] / measured[i] - 1.0);
    }
    out->median = sc_fit_quantile(errors, count, 0.5);
    out->p90 = sc_fit_quantile(errors, count, 0.9);
    out->worst = errors[count - 1];
    out->count = count;
    free(errors);
    return SC_OK;
}

/* ---- straight lines ---- */

static double weight_of(const double *weights, size_t i)
{
    return weights != NULL ? weights[i] : 1.0;
}

enum sc_status sc_fit_line_weighted(const double *x, const double *y, const double *weights,
                                    size_t count, double *a, double *b, struct sc_error *err)
{
    double w = 0.0, mean_x = 0.0, mean_y = 0.0, xx = 0.0, xy = 0.0;
    for (size_t i = 0; i < count; i++) {
        w += weight_of(weights, i);
        mean_x += weight_of(weights, i) * x[i];
        mean_y += weight_of(weights, i) * y[i];
    }
    mean_x /= w;
    mean_y /= w;
    for (size_t i = 0; i < count; i++) {
        double dx = x[i] - mean_x;
        xx += weight_of(weights, i) * dx * dx;
        xy += weight_of(weights, i) * dx * (y[i] - mean_y);
    }
    if (count < 2 || !(xx > 0.0) || !isfinite(xx)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "fit: found %zu timings of one size, expected at least two sizes", count);
    }
    *b = xy / xx;
    *a = mean_y - *b * mean_x;
    return SC_OK;
}

/* y = b x and y = a: what remains when the other constant would be negative. */
static void fit_restricted(const double *x, const double *y, const double *w, size_t count,
                           struct sc_fit_line *line)
{
    double xx = 0.0, xy = 0.0, yy = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        xx += w[i] * x[i] * x[i];
        xy += w[i] * x[i] * y[i];
        yy += w[i] * y[i];
        sum += w[i];
    }
    bool level = line->b < 0.0;
    line->a = level ? yy / sum : 0.0;
    line->b = level ? 0.0 : xy / xx;
}

/* Weights 1 / y^2 make residuals relative; Huber's factor damps those beyond 1.345 sigma. False
 * when the residuals are as good as zero. */
static bool reweight(const double *x, const double *y, size_t count, const struct sc_fit_line *line,
                     double *w, double *scratch)
{
    for (size_t i = 0; i < count; i++) {
        scratch[i] = fabs((line->a + line->b * x[i]) / y[i] - 1.0);
        w[i] = scratch[i];
    }
    double sigma = sc_fit_quantile(scratch, count, 0.5) / MAD_TO_SIGMA;
    bool exact = sigma < SETTLED;
    for (size_t i = 0; i < count; i++) {
        double limit = HUBER * sigma;
        double damp = exact || w[i] <= limit ? 1.0 : limit / w[i];
        w[i] = damp / (y[i] * y[i]);
    }
    return !exact;
}

static enum sc_status fit_rounds(const double *x, const double *y, size_t count, double *w,
                                 double *scratch, struct sc_fit_line *line, struct sc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        w[i] = 1.0 / (y[i] * y[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double a = line->a, b = line->b;
        SC_TRY(sc_fit_line_weighted(x, y, w, count, &line->a, &line->b, err));
        if (line->a < 0.0 || line->b < 0.0) {
            fit_restricted(x, y, w, count, line);
        }
        bool settled = round > 0 && fabs(line->a - a) <= SETTLED * fabs(a) &&
                       fabs(line->b - b) <= SETTLED * fabs(b);
        if (settled || !reweight(x, y, count, line, w, scratch)) {
            break;
        }
    }
    for (size_t i = 0; i < count; i++) {
        scratch[i] = line->a + line->b * x[i];
    }
    return sc_fit_residuals(scratch, y, count, &line->residuals, err);
}

static enum sc_status check_timings(const double *x, const double *y, size_t count,
                                    struct sc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!(y[i] > 0.0) || !isfinite(y[i]) || !isfinite(x[i])) {
            return sc_fail(err, SC_BAD_INPUT, "fit: timing %zu: found %g at %g, expected above 0",
                           i, y[i], x[i]);
        }
    }
    return SC_OK;
}

enum sc_status sc_fit_line_robust(const double *x, const double *y, size_t count,
                                  struct sc_fit_line *out, struct sc_error *err)
{
    struct sc_fit_line line = {0};
    SC_TRY(check_timings(x, y, count, err));
    double *room = malloc((2 * count + 1) * sizeof(*room));
    if (room == NULL) {
        return sc_fail_memory(err, (2 * count + 1) * sizeof(*room));
    }
    enum sc_status status = fit_rounds(x, y, count, room, room + count, &line, err);
    free(room);
    if (status == SC_OK) {
        *out = line;
    }
    return status;
}

enum sc_status sc_fit_peak_share(const double *flops, const double *seconds, size_t count,
                                 double peak_flop_per_s, struct sc_fit_peak *out,
                                 struct sc_error *err)
{
    struct sc_fit_line line;
    SC_TRY(sc_fit_line_robust(flops, seconds, count, &line, err));
    if (!(line.b > 0.0)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "fit: found timings that do not grow with the work, expected larger ones");
    }
    out->share = 1.0 / (line.b * peak_flop_per_s);
    out->fixed_s = line.a;
    out->residuals = line.residuals;
    return SC_OK;
}
