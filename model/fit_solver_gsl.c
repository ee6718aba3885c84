/* The same with the GNU Scientific Library (GPL 3; compiled only where STEPCAST_GSL is on). */
#ifdef STEPCAST_HAVE_GSL

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <pthread.h>
#include <stdlib.h>

#include "model/fit_solver.h"

#define STEPS_MOST 500
#define SETTLED 1e-13

/* GSL's own handler of errors aborts. There is one for the process: it is taken out once. */
static void keep_alive(void)
{
    gsl_set_error_handler_off();
}

struct job {
    const struct sc_fit_system *system;
    double *scratch; /* of the Jacobian */
};

static void read_vector(const gsl_vector *from, double *to)
{
    for (size_t j = 0; j < from->size; j++) {
        to[j] = gsl_vector_get(from, j);
    }
}

/* The solver's own vectors and matrices are contiguous. */
static int residuals(const gsl_vector *u, void *context, gsl_vector *out)
{
    const struct job *job = context;
    double values[SC_FIT_PARAMETERS_MAX];
    read_vector(u, values);
    if (out->stride != 1) {
        return GSL_EINVAL;
    }
    job->system->residuals(values, out->data, job->system->context);
    return GSL_SUCCESS;
}

static int jacobian(const gsl_vector *u, void *context, gsl_matrix *out)
{
    const struct job *job = context;
    double values[SC_FIT_PARAMETERS_MAX];
    read_vector(u, values);
    if (out->tda != out->size2) {
        return GSL_EINVAL;
    }
    sc_fit_jacobian(job->system, values, out->data, job->scratch);
    return GSL_SUCCESS;
}

static int drive(struct job *job, gsl_multifit_nlinear_workspace *work, double *u)
{
    int info = 0;
    gsl_multifit_nlinear_fdf fdf = {.f = residuals,
                                    .df = jacobian,
                                    .n = job->system->rows,
                                    .p = job->system->columns,
                                    .params = job};
    gsl_vector_view start = gsl_vector_view_array(u, job->system->columns);
    int status = gsl_multifit_nlinear_init(&start.vector, &fdf, work);
    if (status == GSL_SUCCESS) {
        status =
            gsl_multifit_nlinear_driver(STEPS_MOST, SETTLED, SETTLED, 0.0, NULL, NULL, &info, work);
        read_vector(gsl_multifit_nlinear_position(work), u);
    }
    return status;
}

enum sc_status sc_fit_solve_gsl(const struct sc_fit_system *system, double *u, bool *converged,
                                struct sc_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, keep_alive);
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *work = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &parameters, system->rows, system->columns);
    struct job job = {system, malloc(2 * system->rows * sizeof(double))};
    enum sc_status status = SC_OK;
    if (work == NULL || job.scratch == NULL) {
        status = sc_fail_memory(err, system->rows * system->columns * sizeof(double));
    } else {
        /* Where no step gains any more, the driver says so by GSL_ENOPROG, and by GSL_EMAXITER
         * where already the first does not: the minimum to the last digits. */
        int end = drive(&job, work, u);
        bool stuck = end == GSL_ENOPROG || end == GSL_EMAXITER;
        *converged = end == GSL_SUCCESS || (stuck && gsl_multifit_nlinear_niter(work) < STEPS_MOST);
    }
    free(job.scratch);
    if (work != NULL) {
        gsl_multifit_nlinear_free(work);
    }
    return status;
}

#else
typedef int sc_fit_solver_gsl_is_left_out;
#endif
