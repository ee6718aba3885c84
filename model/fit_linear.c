/* Non-negative least squares with few terms: normal equations, terms dropped while any is negative,
 * reweighted until it settles. */
#include "model/fit_linear.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 40
#define HUBER 1.345
#define MAD_TO_SIGMA 0.67449
#define SETTLED 1e-10
/* A pivot this much smaller than its column's square belongs to a term that others explain. */
#define DEPENDENT 1e-10

struct problem {
    const double *x, *y;
    size_t count, terms;
    double *weights;
    double scale[SC_FIT_TERMS_MAX]; /* of each column, so that pivots compare */
};

/* The normal equations of the terms in use, columns scaled. */
static void normal_equations(const struct problem *p, const bool *used,
                             double a[SC_FIT_TERMS_MAX][SC_FIT_TERMS_MAX + 1])
{
    for (size_t i = 0; i < p->terms; i++) {
        memset(a[i], 0, sizeof(a[i]));
        if (!used[i]) {
            a[i][i] = 1.0;
            continue;
        }
        for (size_t r = 0; r < p->count; r++) {
            double xi = p->weights[r] * p->x[r * p->terms + i] / p->scale[i];
            for (size_t j = 0; j < p->terms; j++) {
                a[i][j] += used[j] ? xi * p->x[r * p->terms + j] / p->scale[j] : 0.0;
            }
            a[i][p->terms] += xi * p->y[r];
        }
    }
}

/* Gauss without pivoting: the matrix is symmetric and positive. The number of the first term that
 * depends on those before it, or `terms`. */
static size_t eliminate(size_t terms, double a[SC_FIT_TERMS_MAX][SC_FIT_TERMS_MAX + 1])
{
    double diagonal[SC_FIT_TERMS_MAX];
    for (size_t i = 0; i < terms; i++) {
        diagonal[i] = a[i][i];
    }
    for (size_t i = 0; i < terms; i++) {
        if (!(a[i][i] > DEPENDENT * diagonal[i])) {
            return i;
        }
        for (size_t r = i + 1; r < terms; r++) {
            double factor = a[r][i] / a[i][i];
            for (size_t c = i; c <= terms; c++) {
                a[r][c] -= factor * a[i][c];
            }
        }
    }
    return terms;
}

static void substitute(const struct problem *p, double a[SC_FIT_TERMS_MAX][SC_FIT_TERMS_MAX + 1],
                       double *b)
{
    for (size_t i = p->terms; i-- > 0;) {
        double sum = a[i][p->terms];
        for (size_t j = i + 1; j < p->terms; j++) {
            sum -= a[i][j] * b[j];
        }
        b[i] = sum / a[i][i];
    }
    for (size_t i = 0; i < p->terms; i++) {
        b[i] = p->scale[i] > 0.0 ? b[i] / p->scale[i] : 0.0;
    }
}

/* The term that is most negative, by what it would add at its column's scale; `terms`: none. */
static size_t most_negative(const struct problem *p, const double *b)
{
    size_t worst = p->terms;
    for (size_t i = 0; i < p->terms; i++) {
        double size = b[i] * p->scale[i];
        if (size < 0.0 && (worst == p->terms || size < b[worst] * p->scale[worst])) {
            worst = i;
        }
    }
    return worst;
}

static void solve(const struct problem *p, double *b)
{
    double a[SC_FIT_TERMS_MAX][SC_FIT_TERMS_MAX + 1];
    bool used[SC_FIT_TERMS_MAX];
    for (size_t i = 0; i < p->terms; i++) {
        used[i] = p->scale[i] > 0.0;
    }
    for (size_t round = 0; round <= p->terms; round++) {
        normal_equations(p, used, a);
        size_t drop = eliminate(p->terms, a);
        if (drop == p->terms) {
            substitute(p, a, b);
            drop = most_negative(p, b);
        }
        if (drop == p->terms) {
            return;
        }
        used[drop] = false;
        b[drop] = 0.0;
    }
}

static double value(const struct problem *p, size_t row, const double *b)
{
    double sum = 0.0;
    for (size_t j = 0; j < p->terms; j++) {
        sum += p->x[row * p->terms + j] * b[j];
    }
    return sum;
}

/* Weights 1 / y^2 make residuals relative; Huber's factor damps what is far out. False when the
 * residuals are as good as zero. */
static bool reweight(struct problem *p, const double *b, double *scratch)
{
    for (size_t r = 0; r < p->count; r++) {
        scratch[r] = fabs(value(p, r, b) / p->y[r] - 1.0);
        p->weights[r] = scratch[r];
    }
    double sigma = sc_fit_quantile(scratch, p->count, 0.5) / MAD_TO_SIGMA;
    for (size_t r = 0; r < p->count; r++) {
        double limit = HUBER * sigma;
        double damp = p->weights[r] <= limit || sigma < SETTLED ? 1.0 : limit / p->weights[r];
        p->weights[r] = damp / (p->y[r] * p->y[r]);
    }
    return sigma >= SETTLED;
}

static void fit_rounds(struct problem *p, double *b, double *scratch)
{
    for (size_t r = 0; r < p->count; r++) {
        p->weights[r] = 1.0 / (p->y[r] * p->y[r]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double before[SC_FIT_TERMS_MAX];
        bool settled = round > 0;
        memcpy(before, b, p->terms * sizeof(*b));
        solve(p, b);
        for (size_t j = 0; j < p->terms; j++) {
            settled = settled && fabs(b[j] - before[j]) <= SETTLED * fabs(b[j]);
        }
        if (settled || !reweight(p, b, scratch)) {
            return;
        }
    }
}

static enum sc_status check(const double *x, const double *y, size_t count, size_t terms,
                            struct sc_error *err)
{
    if (terms < 1 || terms > SC_FIT_TERMS_MAX || count < terms) {
        return sc_fail(err, SC_BAD_INPUT, "fit: found %zu timings for %zu constants", count, terms);
    }
    for (size_t i = 0; i < count; i++) {
        bool good = y[i] > 0.0 && isfinite(y[i]);
        for (size_t j = 0; j < terms; j++) {
            good = good && x[i * terms + j] >= 0.0 && isfinite(x[i * terms + j]);
        }
        if (!good) {
            return sc_fail(err, SC_BAD_INPUT, "fit: timing %zu: found %g, expected above 0", i,
                           y[i]);
        }
    }
    return SC_OK;
}

enum sc_status sc_fit_linear_robust(const double *x, const double *y, size_t count, size_t terms,
                                    double *b, struct sc_fit_residuals *residuals,
                                    struct sc_error *err)
{
    SC_TRY(check(x, y, count, terms, err));
    double *room = malloc(2 * count * sizeof(*room));
    if (room == NULL) {
        return sc_fail_memory(err, 2 * count * sizeof(*room));
    }
    struct problem p = {.x = x, .y = y, .count = count, .terms = terms, .weights = room};
    for (size_t i = 0; i < count * terms; i++) {
        p.scale[i % terms] = fmax(p.scale[i % terms], x[i] / y[i / terms]);
    }
    for (size_t j = 0; j < terms; j++) {
        b[j] = 0.0;
    }
    fit_rounds(&p, b, room + count);
    for (size_t i = 0; i < count; i++) {
        room[i] = value(&p, i, b);
    }
    enum sc_status status = sc_fit_residuals(room, y, count, residuals, err);
    free(room);
    return status;
}
