/* Comparing a run with the same training on one rank. */
#include "reports/run_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plans/lower.h"

void sc_run_reference_plan(const struct sc_plan *plan, struct sc_plan *out)
{
    struct sc_plan neutral;
    sc_plan_neutral(&neutral);
    *out = *plan;
    out->mesh = neutral.mesh;
    out->zero = neutral.zero;
    out->domino = neutral.domino;
    out->recompute = neutral.recompute;
}

static double loss_error(const struct sc_run_result *result, const struct sc_run_result *reference)
{
    double worst = 0;
    int64_t steps = result->warmup + result->steps;
    for (int64_t i = 0; i < steps; i++) {
        double error = fabs(result->losses[i] - reference->losses[i]) / fabs(reference->losses[i]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    return worst;
}

static double tensor_error(const float *found, const float *expected, int64_t elements)
{
    double difference = 0, magnitude = 0;
    for (int64_t i = 0; i < elements; i++) {
        double error = fabs((double)found[i] - (double)expected[i]);
        difference = error > difference || isnan(error) ? error : difference;
        magnitude = fmax(magnitude, fabs((double)expected[i]));
    }
    return magnitude > 0 ? difference / magnitude : difference;
}

/* Tensors of one model stand in one order, whatever the plan. */
static void compare_gradients(const struct sc_program *program, const struct sc_tensors *found,
                              const struct sc_tensors *expected, struct sc_run_check *out)
{
    for (size_t i = 0; i < expected->count && i < found->count; i++) {
        const struct sc_tensor *tensor = &program->tensors.items[i];
        double error = tensor_error(found->data[i], expected->data[i], tensor->rows * tensor->cols);
        if (error > out->gradient_error || isnan(error) || out->worst_name[0] == '\0') {
            out->gradient_error = error;
            snprintf(out->worst_name, sizeof(out->worst_name), "%s", tensor->name);
        }
    }
}

static void set_limits(const struct sc_plan *plan, struct sc_run_check *out)
{
    bool fp32 = plan->precision.parameters == SC_FP32 && plan->precision.activations == SC_FP32;
    out->loss_limit = fp32 ? SC_CHECK_LOSS_LIMIT_FP32 : SC_CHECK_LOSS_LIMIT_BF16;
    out->gradient_limit = fp32 ? SC_CHECK_GRADIENT_LIMIT_FP32 : SC_CHECK_GRADIENT_LIMIT_BF16;
}

static enum sc_status compare(const struct sc_plan *plan, const struct sc_plan *reference_plan,
                              const struct sc_run_result *result,
                              const struct sc_run_result *reference, struct sc_run_check *out,
                              struct sc_error *err)
{
    struct sc_program *program = NULL;
    SC_TRY(sc_lower(reference_plan, &program, err));
    set_limits(plan, out);
    if (result->has_losses && reference->has_losses) {
        out->loss_error = loss_error(result, reference);
    }
    if (result->has_snapshot && reference->has_snapshot) {
        compare_gradients(program, &result->gradients, &reference->gradients, out);
    }
    out->passed = out->loss_error <= out->loss_limit && out->gradient_error <= out->gradient_limit;
    sc_program_destroy(&program);
    return SC_OK;
}

enum sc_status sc_run_check(const struct sc_plan *plan, const struct sc_run_options *options,
                            const struct sc_run_result *result, struct sc_run_check *out,
                            struct sc_error *err)
{
    struct sc_plan reference_plan;
    struct sc_run_options reference_options = *options;
    struct sc_run_result reference = {0};
    sc_run_reference_plan(plan, &reference_plan);
    reference_options.transport = SC_TRANSPORT_THREADS;
    reference_options.chaos = reference_options.poison = reference_options.trace = false;
    reference_options.save_file = NULL;
    memset(out, 0, sizeof(*out));
    SC_TRY(sc_run_plan(&reference_plan, &reference_options, &reference, err));
    enum sc_status status = compare(plan, &reference_plan, result, &reference, out, err);
    sc_run_result_free(&reference);
    return status;
}
