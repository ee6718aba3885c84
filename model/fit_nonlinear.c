/* Formulas with bounds, pulls and damped outliers, as least squares that a solver can do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/fit_solver.h"

#define ROUNDS_MOST 200
#define SETTLED 1e-10
#define UNDECIDED 1e-8
#define FAR_OFF 50.0 /* the residual of a prediction that is no positive number: e^50 times */

/* ---- coordinates ---- */

static double value_of(const struct sc_fit_parameter *parameter, double u)
{
    bool low = isfinite(parameter->lower), high = isfinite(parameter->upper);
    if (low && high) {
        return parameter->lower + (parameter->upper - parameter->lower) / (1.0 + exp(-u));
    }
    if (low || high) {
        return low ? parameter->lower + exp(u) : parameter->upper - exp(u);
    }
    return u;
}

static double coordinate_of(const struct sc_fit_parameter *parameter, double value)
{
    bool low = isfinite(parameter->lower), high = isfinite(parameter->upper);
    if (low && high) {
        return log((value - parameter->lower) / (parameter->upper - value));
    }
    if (low || high) {
        return log(low ? value - parameter->lower : parameter->upper - value);
    }
    return value;
}

/* d value / d u */
static double slope_at(const struct sc_fit_parameter *parameter, double value)
{
    bool low = isfinite(parameter->lower), high = isfinite(parameter->upper);
    double below = value - parameter->lower, above = parameter->upper - value;
    if (low && high) {
        return below * above / (parameter->upper - parameter->lower);
    }
    return low ? below : high ? -above : 1.0;
}

static bool inside(const struct sc_fit_parameter *parameter, double value)
{
    return isfinite(value) && value > parameter->lower && value < parameter->upper;
}

/* ---- residuals ---- */

struct fit {
    const struct sc_fit_problem *problem;
    double *weights; /* square roots of the timings' */
};

static void values_at(const struct sc_fit_problem *problem, const double *u, double *values)
{
    for (size_t j = 0; j < problem->parameter_count; j++) {
        values[j] = value_of(&problem->parameters[j], u[j]);
    }
}

static double residual(const struct sc_fit_problem *problem, const double *values, size_t i)
{
    double predicted = problem->predict(values, i, problem->context);
    double off =
        predicted > 0.0 && isfinite(predicted) ? log(predicted / problem->measured[i]) : FAR_OFF;
    return fmax(-FAR_OFF, fmin(off, FAR_OFF));
}

static void weighted_residuals(const double *u, double *out, void *context)
{
    const struct fit *fit = context;
    const struct sc_fit_problem *problem = fit->problem;
    double values[SC_FIT_PARAMETERS_MAX];
    values_at(problem, u, values);
    for (size_t i = 0; i < problem->count; i++) {
        out[i] = fit->weights[i] * residual(problem, values, i);
    }
    double *pull = out + problem->count;
    for (size_t j = 0; j < problem->parameter_count; j++) {
        const struct sc_fit_parameter *parameter = &problem->parameters[j];
        if (parameter->pull > 0.0) {
            *pull++ = parameter->pull * (u[j] - coordinate_of(parameter, parameter->prior));
        }
    }
}

/* Half the loss' derivative over r: the weight with which squares have the same minimum. */
static double weight_of(const struct sc_fit_problem *problem, double off)
{
    double ratio = fabs(off) / problem->loss_scale;
    switch (problem->loss) {
    case SC_FIT_HUBER:
        return ratio > 1.0 ? 1.0 / ratio : 1.0;
    case SC_FIT_SOFT_L1:
        return 1.0 / sqrt(1.0 + ratio * ratio);
    case SC_FIT_SQUARES:
        break;
    }
    return 1.0;
}

static void reweight(struct fit *fit, const double *u)
{
    double values[SC_FIT_PARAMETERS_MAX];
    values_at(fit->problem, u, values);
    for (size_t i = 0; i < fit->problem->count; i++) {
        fit->weights[i] = sqrt(weight_of(fit->problem, residual(fit->problem, values, i)));
    }
}

/* ---- rounds ---- */

static enum sc_status solve(const struct sc_fit_problem *problem,
                            const struct sc_fit_system *system, double *u, bool *converged,
                            struct sc_error *err)
{
#ifdef STEPCAST_HAVE_GSL
    if (problem->solver != SC_FIT_PLAIN_SOLVER) {
        return sc_fit_solve_gsl(system, u, converged, err);
    }
#endif
    (void)problem;
    return sc_fit_solve_plain(system, u, converged, err);
}

static bool settled(const double *before, const double *after, size_t count)
{
    for (size_t j = 0; j < count; j++) {
        if (fabs(after[j] - before[j]) > SETTLED * (1.0 + fabs(after[j]))) {
            return false;
        }
    }
    return true;
}

static enum sc_status fit_rounds(struct fit *fit, const struct sc_fit_system *system, double *u,
                                 struct sc_fit_solution *out, struct sc_error *err)
{
    double before[SC_FIT_PARAMETERS_MAX];
    bool same = false, solved = false;
    while (!same && out->rounds < ROUNDS_MOST) {
        memcpy(before, u, system->columns * sizeof(*u));
        reweight(fit, u);
        SC_TRY(solve(fit->problem, system, u, &solved, err));
        out->rounds++;
        same = fit->problem->loss == SC_FIT_SQUARES || settled(before, u, system->columns);
    }
    out->converged = same && solved;
    return SC_OK;
}

/* ---- what is said of the solution ---- */

static void no_covariance(const struct sc_fit_problem *problem, struct sc_fit_solution *out)
{
    memset(out->covariance, 0, sizeof(out->covariance));
    for (size_t j = 0; j < problem->parameter_count; j++) {
        out->covariance[j][j] = INFINITY;
    }
}

static double variance_of(const struct sc_fit_problem *problem, const double *weighted)
{
    double sum = 0.0;
    for (size_t i = 0; i < problem->count; i++) {
        sum += weighted[i] * weighted[i];
    }
    return sum / (double)(problem->count - problem->parameter_count);
}

static void normal_matrix(const struct sc_fit_system *system, const double *jacobian,
                          double *normal)
{
    size_t columns = system->columns;
    memset(normal, 0, columns * columns * sizeof(*normal));
    for (size_t i = 0; i < system->rows; i++) {
        const double *row = jacobian + i * columns;
        for (size_t j = 0; j < columns * columns; j++) {
            normal[j] += row[j / columns] * row[j % columns];
        }
    }
}

/* The factor of J^T J; false where a direction hardly shows in any row: differences leave about
 * 1e-10 of what is not there. */
static bool factor_normal(double *normal, size_t columns)
{
    double diagonal[SC_FIT_PARAMETERS_MAX];
    for (size_t j = 0; j < columns; j++) {
        diagonal[j] = normal[j * columns + j];
    }
    if (!sc_fit_cholesky(normal, columns)) {
        return false;
    }
    for (size_t j = 0; j < columns; j++) {
        double left = normal[j * columns + j];
        if (left * left < UNDECIDED * diagonal[j]) {
            return false;
        }
    }
    return true;
}

static void find_covariance(const struct sc_fit_system *system,
                            const struct sc_fit_problem *problem, const double *u, double *room,
                            struct sc_fit_solution *out)
{
    size_t columns = system->columns;
    double normal[SC_FIT_PARAMETERS_MAX * SC_FIT_PARAMETERS_MAX];
    double *jacobian = room, *scratch = room + system->rows * columns;
    sc_fit_jacobian(system, u, jacobian, scratch);
    normal_matrix(system, jacobian, normal);
    no_covariance(problem, out);
    if (problem->count <= problem->parameter_count || !factor_normal(normal, columns)) {
        return;
    }
    system->residuals(u, scratch, system->context);
    double variance = variance_of(problem, scratch);
    for (size_t k = 0; k < columns; k++) {
        double column[SC_FIT_PARAMETERS_MAX] = {0};
        column[k] = variance * slope_at(&problem->parameters[k], out->values[k]);
        sc_fit_cholesky_solve(normal, columns, column);
        for (size_t j = 0; j < columns; j++) {
            double slope = slope_at(&problem->parameters[j], out->values[j]);
            out->covariance[j][k] = column[j] * slope;
        }
    }
}

static enum sc_status find_residuals(const struct sc_fit_problem *problem, double *room,
                                     struct sc_fit_solution *out, struct sc_error *err)
{
    for (size_t i = 0; i < problem->count; i++) {
        room[i] = problem->predict(out->values, i, problem->context);
    }
    return sc_fit_residuals(room, problem->measured, problem->count, &out->residuals, err);
}

/* ---- the whole ---- */

static enum sc_status check_parameter(const struct sc_fit_parameter *parameter, size_t index,
                                      struct sc_error *err)
{
    bool prior = parameter->pull > 0.0;
    if (!inside(parameter, parameter->start) || (prior && !inside(parameter, parameter->prior))) {
        return sc_fail(err, SC_BAD_INPUT,
                       "fit: parameter %zu: found the start %g and prior %g, expected them between "
                       "%g and %g",
                       index, parameter->start, parameter->prior, parameter->lower,
                       parameter->upper);
    }
    return SC_OK;
}

static size_t count_pulls(const struct sc_fit_problem *problem)
{
    size_t pulls = 0;
    for (size_t j = 0; j < problem->parameter_count; j++) {
        pulls += problem->parameters[j].pull > 0.0;
    }
    return pulls;
}

static enum sc_status check(const struct sc_fit_problem *problem, struct sc_error *err)
{
    size_t parameters = problem->parameter_count;
    if (parameters < 1 || parameters > SC_FIT_PARAMETERS_MAX) {
        return sc_fail(err, SC_BAD_INPUT, "fit: found %zu parameters, expected 1 to %d", parameters,
                       SC_FIT_PARAMETERS_MAX);
    }
    for (size_t j = 0; j < parameters; j++) {
        SC_TRY(check_parameter(&problem->parameters[j], j, err));
    }
    size_t pulls = count_pulls(problem);
    if (problem->count < 1 || problem->count + pulls < parameters) {
        return sc_fail(err, SC_BAD_INPUT, "fit: found %zu timings, expected at least %zu",
                       problem->count, parameters > pulls ? parameters - pulls : 1);
    }
    for (size_t i = 0; i < problem->count; i++) {
        if (!(problem->measured[i] > 0.0) || !isfinite(problem->measured[i])) {
            return sc_fail(err, SC_BAD_INPUT, "fit: timing %zu: found %g, expected above 0", i,
                           problem->measured[i]);
        }
    }
    if (problem->loss != SC_FIT_SQUARES && !(problem->loss_scale > 0.0)) {
        return sc_fail(err, SC_BAD_INPUT, "fit: loss_scale: found %g, expected above 0",
                       problem->loss_scale);
    }
    if (problem->solver == SC_FIT_GSL_SOLVER && !sc_fit_has_gsl()) {
        return sc_fail(err, SC_NO, "fit: found a build without GSL, expected STEPCAST_GSL");
    }
    return SC_OK;
}

bool sc_fit_has_gsl(void)
{
#ifdef STEPCAST_HAVE_GSL
    return true;
#else
    return false;
#endif
}

enum sc_status sc_fit_nonlinear(const struct sc_fit_problem *problem, struct sc_fit_solution *out,
                                struct sc_error *err)
{
    struct sc_fit_solution solution = {0};
    double u[SC_FIT_PARAMETERS_MAX];
    SC_TRY(check(problem, err));
    size_t columns = problem->parameter_count, rows = problem->count + count_pulls(problem);
    size_t doubles = problem->count + rows * (columns + 2);
    double *room = malloc(doubles * sizeof(*room));
    if (room == NULL) {
        return sc_fail_memory(err, doubles * sizeof(*room));
    }
    struct fit fit = {problem, room};
    struct sc_fit_system system = {rows, columns, weighted_residuals, &fit};
    for (size_t j = 0; j < columns; j++) {
        u[j] = coordinate_of(&problem->parameters[j], problem->parameters[j].start);
    }
    enum sc_status status = fit_rounds(&fit, &system, u, &solution, err);
    if (status == SC_OK) {
        values_at(problem, u, solution.values);
        reweight(&fit, u);
        find_covariance(&system, problem, u, room + problem->count, &solution);
        status = find_residuals(problem, room + problem->count, &solution, err);
    }
    free(room);
    if (status == SC_OK) {
        *out = solution;
    }
    return status;
}
