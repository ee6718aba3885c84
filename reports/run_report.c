/* What a run measured, as JSON and for people. */
#include "reports/run_report.h"

#include <inttypes.h>
#include <math.h>

#include "base/units.h"

#define WARNING_SIZE 1024
#define SLOW_STEP 1.15 /* of the median */
#define SLOW_SHARE 0.2 /* of the steps ... */
#define SLOW_LEAST 5   /* ... of at least so many */

static double tokens_per_s(const struct sc_plan *plan, const struct sc_run_result *result)
{
    double tokens = (double)plan->batch.global_batch * (double)plan->batch.sequence_length;
    return tokens / result->step_time_s;
}

/* ---- warnings ---------------------------------------------------------------------------- */

/* Steps of one plan are equal work: where they differ, something else used the machine. */
static bool warn_spread(const struct sc_run_context *context, const struct sc_run_result *result,
                        char *out, size_t size)
{
    int64_t slow = 0;
    (void)context;
    for (int64_t i = 0; i < result->steps; i++) {
        slow += result->step_s[i] > SLOW_STEP * result->step_time_s;
    }
    snprintf(out, size,
             "%" PRId64 " of %" PRId64
             " steps took over %.2f times the median: this machine was not quiet",
             slow, result->steps, SLOW_STEP);
    return result->steps >= SLOW_LEAST && (double)slow > SLOW_SHARE * (double)result->steps;
}

static bool warn_others(const struct sc_run_context *context, const struct sc_run_result *result,
                        char *out, size_t size)
{
    (void)context;
    return sc_contention_warning(&result->contention, out, size);
}

/* A forecast is of the machine on which its profile was measured. */
static bool warn_machine(const struct sc_run_context *context, const struct sc_run_result *result,
                         char *out, size_t size)
{
    char differences[WARNING_SIZE / 2];
    if (context->hardware == NULL ||
        !sc_identity_differs(&context->hardware->measured_on, &result->measured_on, differences,
                             sizeof(differences))) {
        return false;
    }
    snprintf(out, size,
             "profile %s was not measured on this machine (%s): forecasts with it are of that one",
             context->hardware->name, differences);
    return true;
}

typedef bool (*warning)(const struct sc_run_context *context, const struct sc_run_result *result,
                        char *out, size_t size);
static const warning warnings[] = {warn_spread, warn_others, warn_machine};
enum { WARNING_COUNT = sizeof(warnings) / sizeof(warnings[0]) };

/* ---- JSON -------------------------------------------------------------------------------- */

static void add_numbers(cJSON *root, const char *key, const double *values, int64_t count)
{
    cJSON *array = cJSON_AddArrayToObject(root, key);
    for (int64_t i = 0; i < count; i++) {
        cJSON_AddItemToArray(array, isfinite(values[i]) ? cJSON_CreateNumber(values[i])
                                                        : cJSON_CreateNull());
    }
}

static void add_memory(cJSON *root, const struct sc_run_result *result)
{
    cJSON *memory = cJSON_AddObjectToObject(root, "memory");
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        cJSON *object = cJSON_AddObjectToObject(memory, sc_place_names[place]);
        cJSON_AddNumberToObject(object, "peak_bytes", (double)result->memory.arena_bytes[place]);
    }
    cJSON_AddNumberToObject(memory, "resident_bytes", (double)result->memory.resident_bytes);
}

static void add_error(cJSON *object, const char *key, double error)
{
    if (isfinite(error)) {
        cJSON_AddNumberToObject(object, key, error);
    } else {
        cJSON_AddNullToObject(object, key);
    }
}

static void add_check(cJSON *root, const struct sc_check_result *check)
{
    cJSON *object = cJSON_AddObjectToObject(root, "check");
    cJSON_AddBoolToObject(object, "equal", check->equal);
    cJSON_AddNumberToObject(object, "steps", (double)check->steps);
    add_error(object, "gradient_error", check->gradient);
    cJSON_AddStringToObject(object, "gradient_tensor", check->gradient_tensor);
    add_error(object, "loss_error", check->loss);
    add_error(object, "parameter_error", check->parameter);
}

void sc_contention_add_json(cJSON *root, const struct sc_contention *contention)
{
    cJSON *object = cJSON_AddObjectToObject(root, "contention");
    add_error(object, "others_share", contention->known ? contention->others_share : (double)NAN);
    add_error(object, "steal_share", contention->known ? contention->steal_share : (double)NAN);
    add_error(object, "spread", contention->spread);
}

static void add_warnings(cJSON *root, const struct sc_run_context *context,
                         const struct sc_run_result *result)
{
    cJSON *array = cJSON_AddArrayToObject(root, "warnings");
    char text[WARNING_SIZE];
    for (size_t i = 0; i < WARNING_COUNT; i++) {
        if (warnings[i](context, result, text, sizeof(text))) {
            cJSON_AddItemToArray(array, cJSON_CreateString(text));
        }
    }
}

cJSON *sc_run_result_to_json(const struct sc_run_context *context,
                             const struct sc_run_result *result)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "stepcast.result/1");
    cJSON_AddStringToObject(root, "command", "run");
    cJSON_AddStringToObject(root, "plan", context->plan->name);
    cJSON_AddStringToObject(root, "machine", result->machine);
    cJSON_AddNumberToObject(root, "ranks", (double)sc_plan_ranks(context->plan));
    cJSON_AddNumberToObject(root, "step_time_s", result->step_time_s);
    cJSON_AddNumberToObject(root, "tokens_per_s", tokens_per_s(context->plan, result));
    cJSON_AddNumberToObject(root, "warmup", (double)result->warmup);
    add_numbers(root, "steps", result->step_s, result->steps);
    add_numbers(root, "losses", result->losses,
                result->has_losses ? result->warmup + result->steps : 0);
    add_memory(root, result);
    sc_contention_add_json(root, &result->contention);
    add_warnings(root, context, result);
    if (context->check != NULL) {
        add_check(root, context->check);
    }
    return root;
}

/* ---- text -------------------------------------------------------------------------------- */

static void print_times(const struct sc_plan *plan, const struct sc_run_result *result,
                        FILE *stream)
{
    char median[64], least[64], most[64];
    double low = INFINITY, high = 0;
    for (int64_t i = 0; i < result->steps; i++) {
        low = fmin(low, result->step_s[i]);
        high = fmax(high, result->step_s[i]);
    }
    fprintf(stream, "  %-10s  %s, median of %" PRId64 " steps (%s to %s)\n", "step time",
            sc_print_seconds(result->step_time_s, median, sizeof(median)), result->steps,
            sc_print_seconds(low, least, sizeof(least)),
            sc_print_seconds(high, most, sizeof(most)));
    fprintf(stream, "  %-10s  %.0f\n", "tokens/s", tokens_per_s(plan, result));
}

static void print_memory(const struct sc_run_result *result, FILE *stream)
{
    char text[64];
    fprintf(stream, "  %-10s  ", "memory");
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        if (result->memory.arena_bytes[place] > 0) {
            fprintf(stream, "%s %s, ", sc_place_names[place],
                    sc_print_bytes((double)result->memory.arena_bytes[place], text, sizeof(text)));
        }
    }
    fprintf(stream, "resident %s a process\n",
            sc_print_bytes((double)result->memory.resident_bytes, text, sizeof(text)));
}

static void print_check(const struct sc_check_result *check, FILE *stream)
{
    fprintf(stream,
            "  %-10s  %s the same training on one rank: gradients %.1e (limit %.0e), loss %.1e "
            "(limit %.0e)\n",
            "check", check->equal ? "equals" : "DIFFERS from", check->gradient, SC_CHECK_GRADIENT,
            check->loss, SC_CHECK_LOSS);
    if (!check->equal) {
        fprintf(stream, "  %-10s  the gradient that differs most is %s\n", "",
                check->gradient_tensor);
    }
}

static void print_warnings(const struct sc_run_context *context, const struct sc_run_result *result,
                           FILE *stream)
{
    char text[WARNING_SIZE];
    for (size_t i = 0; i < WARNING_COUNT; i++) {
        if (warnings[i](context, result, text, sizeof(text))) {
            fprintf(stream, "Warning: %s.\n", text);
        }
    }
}

void sc_run_result_print(const struct sc_run_context *context, const struct sc_run_result *result,
                         FILE *stream)
{
    const struct sc_plan *plan = context->plan;
    int64_t ranks = sc_plan_ranks(plan);
    fprintf(stream, "%s, %" PRId64 " rank%s\n%s\n\n", plan->name, ranks, ranks == 1 ? "" : "s",
            result->machine);
    print_times(plan, result, stream);
    if (result->has_losses) {
        int64_t last = result->warmup + result->steps - 1;
        fprintf(stream, "  %-10s  %.6g in the first step, %.6g in step %" PRId64 "\n", "loss",
                result->losses[0], result->losses[last], last + 1);
    }
    print_memory(result, stream);
    if (context->check != NULL) {
        print_check(context->check, stream);
    }
    print_warnings(context, result, stream);
}
