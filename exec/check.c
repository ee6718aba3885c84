/* A plan's run beside that of its one-rank reference. */
#include "exec/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/process.h"
#include "plans/lower.h"

/* ---- differences ----------------------------------------------------------------------------- */

static double norm(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static double distance(const float *x, const float *y, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)x[i] - (double)y[i];
        sum += d * d;
    }
    return sqrt(sum);
}

static int64_t elements(const struct sc_program *program, size_t tensor)
{
    return program->tensors.items[tensor].rows * program->tensors.items[tensor].cols;
}

static double norm_of_all(const struct sc_program *program, const struct sc_tensors *tensors)
{
    double sum = 0;
    for (size_t t = 0; t < tensors->count; t++) {
        double one = norm(tensors->data[t], elements(program, t));
        sum += one * one;
    }
    return sqrt(sum);
}

/* Largest |x - y| / max(|y|, floor) of a tensor, of those not both below the floor; NaN counts as
 * infinitely far. */
static double compare(const struct sc_program *program, const struct sc_tensors *x,
                      const struct sc_tensors *y, double floor, char *name, size_t size)
{
    double worst = -1;
    for (size_t t = 0; t < y->count; t++) {
        double base = norm(y->data[t], elements(program, t));
        double far = distance(x->data[t], y->data[t], elements(program, t));
        bool rounding = base < floor && norm(x->data[t], elements(program, t)) < floor;
        double relative = far == 0 || rounding ? 0 : far / fmax(base, floor);
        if (isnan(relative))
            relative = INFINITY;
        if (relative <= worst)
            continue;
        worst = relative;
        snprintf(name, size, "%s", program->tensors.items[t].name);
    }
    return worst < 0 ? 0 : worst;
}

static double compare_losses(const struct sc_run_result *x, const struct sc_run_result *y)
{
    double worst = 0;
    for (int64_t s = 0; x->has_losses && y->has_losses && s < y->steps; s++) {
        double far = fabs(x->losses[s] - y->losses[s]);
        worst = far > worst || isnan(far) ? far : worst;
    }
    return isnan(worst) ? INFINITY : worst;
}

/* ---- the two runs ---------------------------------------------------------------------------- */

struct pair {
    struct sc_program *program; /* of the reference: names and shapes of tensors */
    struct sc_run_result reference, reference_end, run, run_end;
};

static void free_pair(struct pair *pair)
{
    sc_program_destroy(&pair->program);
    sc_run_result_free(&pair->reference);
    sc_run_result_free(&pair->reference_end);
    sc_run_result_free(&pair->run);
    sc_run_result_free(&pair->run_end);
}

/* Gradients of the first step, losses of all, parameters of the last. */
static enum sc_status run_twice(const struct sc_plan *plan, struct sc_run_options options,
                                struct sc_run_result *first, struct sc_run_result *last,
                                struct sc_error *err)
{
    options.warmup = 0;
    options.trace = false;
    options.save_file = NULL;
    options.snapshot_step = 0;
    SC_TRY(sc_run_plan(plan, &options, first, err));
    options.snapshot_step = options.steps - 1;
    return sc_run_plan(plan, &options, last, err);
}

static enum sc_status run_reference(const struct sc_plan *plan,
                                    const struct sc_run_options *options, struct pair *pair,
                                    struct sc_error *err)
{
    struct sc_plan reference;
    struct sc_run_options mine = *options;
    sc_plan_reference(plan, &reference);
    SC_TRY(sc_plan_check(&reference, "reference of the plan", err));
    SC_TRY(sc_lower(&reference, &pair->program, err));
    mine.transport = SC_TRANSPORT_THREADS;
    mine.chaos = mine.poison = false;
    mine.observer = (struct sc_observer){0};
    mine.fault = (struct sc_fault){0};
    return run_twice(&reference, mine, &pair->reference, &pair->reference_end, err);
}

static void conclude(const struct pair *pair, struct sc_check_result *result)
{
    double floor = SC_CHECK_GRADIENT_FLOOR * norm_of_all(pair->program, &pair->reference.gradients);
    result->root = true;
    result->steps = pair->reference.steps;
    result->gradient = compare(pair->program, &pair->run.gradients, &pair->reference.gradients,
                               floor, result->gradient_tensor, sizeof result->gradient_tensor);
    result->parameter =
        compare(pair->program, &pair->run_end.parameters, &pair->reference_end.parameters, 1e-30,
                result->parameter_tensor, sizeof result->parameter_tensor);
    result->loss = compare_losses(&pair->run, &pair->reference);
    result->equal = result->gradient <= SC_CHECK_GRADIENT && result->loss <= SC_CHECK_LOSS;
}

enum sc_status sc_check(const struct sc_plan *plan, const struct sc_run_options *options,
                        struct sc_check_result *result, struct sc_error *err)
{
    struct pair pair = {0};
    struct sc_check_result made = {0};
    struct sc_process process;
    sc_process_alone(&process);
    enum sc_status status = SC_OK;
    if (options->transport != SC_TRANSPORT_THREADS)
        status = sc_process_mpi(&process, err);
    if (status == SC_OK && process.index == 0)
        status = run_reference(plan, options, &pair, err);
    status = sc_process_agree(&process, status, err);
    if (status == SC_OK)
        status = run_twice(plan, *options, &pair.run, &pair.run_end, err);
    if (status == SC_OK && pair.run.root)
        conclude(&pair, &made);
    free_pair(&pair);
    if (status == SC_OK)
        *result = made;
    return status;
}
