/* Least squares without bounds, for sc_fit_nonlinear. Internal to model/fit*. */
#ifndef STEPCAST_MODEL_FIT_SOLVER_H
#define STEPCAST_MODEL_FIT_SOLVER_H

#include "model/fit.h"

struct sc_fit_system {
    size_t rows, columns; /* rows >= columns; columns <= SC_FIT_PARAMETERS_MAX */
    /* The rows' residuals at u, all finite. */
    void (*residuals)(const double *u, double *out, void *context);
    void *context;
};

/* Moves u to a local minimum of the sum of squares; *converged false: stopped after a limited
 * number of steps. */
enum sc_status sc_fit_solve_plain(const struct sc_fit_system *system, double *u, bool *converged,
                                  struct sc_error *err);
#ifdef STEPCAST_HAVE_GSL
enum sc_status sc_fit_solve_gsl(const struct sc_fit_system *system, double *u, bool *converged,
                                struct sc_error *err);
#endif

/* Central differences; `jacobian` is rows x columns, row by row; `scratch` holds 2 x rows. */
void sc_fit_jacobian(const struct sc_fit_system *system, const double *u, double *jacobian,
                     double *scratch);

/* Symmetric matrices of `size` columns, row by row. The factor L of a = L L^T replaces the lower
 * triangle; false where a is not positive definite. */
bool sc_fit_cholesky(double *a, size_t size);
/* Solves L L^T x = b in place. */
void sc_fit_cholesky_solve(const double *factor, size_t size, double *b);

#endif
