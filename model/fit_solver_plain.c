/* Levenberg-Marquardt on the normal equations (Marquardt 1963), damping by Nielsen's rule (1999).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/fit_solver.h"

#define STEPS_MOST 500
#define DIFFERENCE 6e-6 /* cube root of the precision of doubles: best for central differences */
#define SETTLED 1e-13
#define DAMPING_FIRST 1e-3
#define DAMPING_MOST 1e20

/* ---- small symmetric systems ---- */

bool sc_fit_cholesky(double *a, size_t size)
{
    for (size_t j = 0; j < size; j++) {
        double most = a[j * size + j];
        for (size_t i = j; i < size; i++) {
            double sum = a[i * size + j];
            for (size_t k = 0; k < j; k++) {
                sum -= a[i * size + k] * a[j * size + k];
            }
            if (i == j && !(sum > DBL_EPSILON * fabs(most))) {
                return false;
            }
            a[i * size + j] = i == j ? sqrt(sum) : sum / a[j * size + j];
        }
    }
    return true;
}

void sc_fit_cholesky_solve(const double *factor, size_t size, double *b)
{
    for (size_t i = 0; i < size; i++) {
        for (size_t k = 0; k < i; k++) {
            b[i] -= factor[i * size + k] * b[k];
        }
        b[i] /= factor[i * size + i];
    }
    for (size_t i = size; i-- > 0;) {
        for (size_t k = i + 1; k < size; k++) {
            b[i] -= factor[k * size + i] * b[k];
        }
        b[i] /= factor[i * size + i];
    }
}

void sc_fit_jacobian(const struct sc_fit_system *system, const double *u, double *jacobian,
                     double *scratch)
{
    double moved[SC_FIT_PARAMETERS_MAX];
    double *above = scratch, *below = scratch + system->rows;
    memcpy(moved, u, system->columns * sizeof(*u));
    for (size_t j = 0; j < system->columns; j++) {
        double step = DIFFERENCE * fmax(1.0, fabs(u[j]));
        moved[j] = u[j] + step;
        system->residuals(moved, above, system->context);
        moved[j] = u[j] - step;
        system->residuals(moved, below, system->context);
        moved[j] = u[j];
        for (size_t i = 0; i < system->rows; i++) {
            jacobian[i * system->columns + j] = (above[i] - below[i]) / (2.0 * step);
        }
    }
}

/* ---- steps ---- */

struct state {
    const struct sc_fit_system *system;
    double *residuals, *trial, *jacobian, *scratch;
    double normal[SC_FIT_PARAMETERS_MAX * SC_FIT_PARAMETERS_MAX]; /* J^T J */
    double gradient[SC_FIT_PARAMETERS_MAX];                       /* J^T r */
    double step[SC_FIT_PARAMETERS_MAX];
    double damping, growth;
    double cost;
};

static double sum_of_squares(const double *values, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i] * values[i];
    }
    return sum;
}

static void linearise(struct state *state, const double *u)
{
    size_t columns = state->system->columns;
    sc_fit_jacobian(state->system, u, state->jacobian, state->scratch);
    memset(state->normal, 0, sizeof(state->normal));
    memset(state->gradient, 0, sizeof(state->gradient));
    for (size_t i = 0; i < state->system->rows; i++) {
        const double *row = state->jacobian + i * columns;
        for (size_t j = 0; j < columns; j++) {
            state->gradient[j] += row[j] * state->residuals[i];
            for (size_t k = 0; k < columns; k++) {
                state->normal[j * columns + k] += row[j] * row[k];
            }
        }
    }
}

/* The damped step; the damping of a direction is in proportion to what the rows say of it, so that
 * units do not matter. False where nothing depends on any direction. */
static bool find_step(struct state *state)
{
    size_t columns = state->system->columns;
    double damped[SC_FIT_PARAMETERS_MAX * SC_FIT_PARAMETERS_MAX], largest = 0.0;
    memcpy(damped, state->normal, columns * columns * sizeof(*damped));
    for (size_t j = 0; j < columns; j++) {
        largest = fmax(largest, state->normal[j * columns + j]);
        state->step[j] = -state->gradient[j];
    }
    for (size_t j = 0; j < columns; j++) {
        double scale = fmax(state->normal[j * columns + j], 1e-12 * largest);
        damped[j * columns + j] += state->damping * scale;
    }
    if (!sc_fit_cholesky(damped, columns)) {
        return false;
    }
    sc_fit_cholesky_solve(damped, columns, state->step);
    return true;
}

/* What the linear model says that the step gains. */
static double expected_gain(const struct state *state)
{
    size_t columns = state->system->columns;
    double gain = 0.0;
    for (size_t j = 0; j < columns; j++) {
        double along = 0.0;
        for (size_t k = 0; k < columns; k++) {
            along += state->normal[j * columns + k] * state->step[k];
        }
        gain -= state->step[j] * (2.0 * state->gradient[j] + along);
    }
    return gain;
}

static bool small_step(const struct state *state, const double *u)
{
    for (size_t j = 0; j < state->system->columns; j++) {
        if (fabs(state->step[j]) > SETTLED * (fabs(u[j]) + SETTLED)) {
            return false;
        }
    }
    return true;
}

/* Takes the step where it gains; adapts the damping either way. */
static bool take_step(struct state *state, double *u)
{
    double moved[SC_FIT_PARAMETERS_MAX];
    size_t columns = state->system->columns;
    for (size_t j = 0; j < columns; j++) {
        moved[j] = u[j] + state->step[j];
    }
    state->system->residuals(moved, state->trial, state->system->context);
    double cost = sum_of_squares(state->trial, state->system->rows);
    if (!(cost < state->cost)) {
        state->damping *= state->growth;
        state->growth *= 2.0;
        return false;
    }
    double ratio = (state->cost - cost) / fmax(expected_gain(state), DBL_MIN);
    state->damping *= fmax(1.0 / 3.0, 1.0 - pow(2.0 * fmin(ratio, 1.0) - 1.0, 3.0));
    state->growth = 2.0;
    double *old = state->residuals;
    state->residuals = state->trial;
    state->trial = old;
    state->cost = cost;
    memcpy(u, moved, columns * sizeof(*u));
    return true;
}

static bool descend(struct state *state, double *u)
{
    state->system->residuals(u, state->residuals, state->system->context);
    state->cost = sum_of_squares(state->residuals, state->system->rows);
    state->damping = DAMPING_FIRST;
    state->growth = 2.0;
    bool moved = true;
    for (int step = 0; step < STEPS_MOST; step++) {
        if (moved) {
            linearise(state, u);
        }
        if (state->cost == 0.0 || !find_step(state) || small_step(state, u) ||
            state->damping > DAMPING_MOST) {
            return true;
        }
        moved = take_step(state, u);
    }
    return false;
}

enum sc_status sc_fit_solve_plain(const struct sc_fit_system *system, double *u, bool *converged,
                                  struct sc_error *err)
{
    size_t rows = system->rows, doubles = rows * (4 + system->columns);
    double *room = calloc(doubles, sizeof(*room));
    if (room == NULL) {
        return sc_fail_memory(err, doubles * sizeof(*room));
    }
    struct state state = {.system = system,
                          .residuals = room,
                          .trial = room + rows,
                          .scratch = room + 2 * rows,
                          .jacobian = room + 4 * rows};
    *converged = descend(&state, u);
    free(room);
    return SC_OK;
}
