/* The public interface (stepcast.h): thin handles over the library's own structures. */
#include "stepcast.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/data.h"
#include "exec/launch.h"
#include "model/hardware.h"
#include "base/units.h"
#include "plans/plan.h"
#include "plans/trace.h"
#include "reports/chrome_trace.h"
#include "reports/compare.h"
#include "reports/explain.h"
#include "reports/run_report.h"
#include "sim/search.h"
#include "sim/simulate.h"

/* The numbers are the same inside and outside. */
static_assert((int)STEPCAST_OK == (int)SC_OK && (int)STEPCAST_NO == (int)SC_NO &&
                  (int)STEPCAST_USAGE == (int)SC_USAGE &&
                  (int)STEPCAST_BAD_INPUT == (int)SC_BAD_INPUT &&
                  (int)STEPCAST_MACHINE == (int)SC_MACHINE &&
                  (int)STEPCAST_NO_MEMORY == (int)SC_NO_MEMORY && (int)STEPCAST_BUG == (int)SC_BUG,
              "public and internal status codes differ");
static_assert(sizeof(((struct stepcast_error *)0)->text) == SC_ERROR_TEXT,
              "public and internal error lines differ in length");

struct stepcast_plan {
    struct sc_plan plan;
    struct sc_hardware hardware;
};

struct stepcast_trace {
    struct sc_trace trace;
};

struct stepcast_forecast {
    struct sc_sim_result result; /* without its trace: that is the handle beside it */
    struct stepcast_trace trace;
};

struct stepcast_explanation {
    struct sc_explanation explanation;
};

struct stepcast_run {
    struct sc_plan plan;
    struct sc_run_result result; /* likewise */
    struct stepcast_trace trace;
    bool has_trace;
};

struct stepcast_search {
    struct sc_search_result result;
};

struct stepcast_comparison {
    struct sc_comparison comparison;
};

/* ---- status ------------------------------------------------------------------------------ */

const char *stepcast_version(void)
{
    return STEPCAST_VERSION;
}

const char *stepcast_status_text(enum stepcast_status status)
{
    return sc_status_sentence((enum sc_status)status);
}

int stepcast_exit_code(enum stepcast_status status)
{
    return sc_status_exit_code((enum sc_status)status);
}

void stepcast_free(char *text)
{
    free(text);
}

static enum stepcast_status hand_out(enum sc_status status, const struct sc_error *err,
                                     struct stepcast_error *error)
{
    if (status != SC_OK) {
        error->status = (enum stepcast_status)status;
        memcpy(error->text, err->text, sizeof(error->text));
    }
    return (enum stepcast_status)status;
}

static enum stepcast_status fail_memory(size_t bytes, struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    return hand_out(sc_fail_memory(&err, bytes), &err, error);
}

/* Prints and deletes the object; NULL is out of memory. */
static enum stepcast_status print_json(cJSON *object, char **out, struct stepcast_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = object != NULL ? open_memstream(&text, &size) : NULL;
    if (stream != NULL) {
        sc_json_print(object, stream);
    }
    cJSON_Delete(object);
    if (stream == NULL || fclose(stream) != 0) {
        free(text);
        return fail_memory(1, error);
    }
    *out = text;
    return STEPCAST_OK;
}

/* ---- plans ------------------------------------------------------------------------------- */

static enum sc_status load(const char *name_or_file, const char *hardware, const char *const *set,
                           int set_count, struct stepcast_plan *out, struct sc_error *err)
{
    SC_TRY(sc_plan_load(name_or_file, set, set_count, &out->plan, err));
    return sc_hardware_load(hardware != NULL ? hardware : out->plan.hardware.profile, NULL, set,
                            set_count, &out->hardware, err);
}

enum stepcast_status stepcast_plan_load(const char *name_or_file, const char *hardware,
                                        const char *const *set, size_t set_count,
                                        struct stepcast_plan **out, struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct stepcast_plan *plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return fail_memory(sizeof(*plan), error);
    }
    enum sc_status status = load(name_or_file, hardware, set, (int)set_count, plan, &err);
    if (status != SC_OK) {
        free(plan);
        return hand_out(status, &err, error);
    }
    *out = plan;
    return STEPCAST_OK;
}

void stepcast_plan_destroy(struct stepcast_plan **plan)
{
    if (plan != NULL && *plan != NULL) {
        sc_hardware_free(&(*plan)->hardware);
        free(*plan);
        *plan = NULL;
    }
}

const char *stepcast_plan_name(const struct stepcast_plan *plan)
{
    return plan->plan.name;
}

int64_t stepcast_plan_ranks(const struct stepcast_plan *plan)
{
    return sc_plan_ranks(&plan->plan);
}

enum stepcast_status stepcast_plan_json(const struct stepcast_plan *plan, char **out,
                                        struct stepcast_error *error)
{
    return print_json(sc_plan_to_json(&plan->plan), out, error);
}

/* ---- traces ------------------------------------------------------------------------------ */

enum stepcast_status stepcast_trace_read(const char *file, struct stepcast_trace **out,
                                         struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct stepcast_trace *trace = calloc(1, sizeof(*trace));
    if (trace == NULL) {
        return fail_memory(sizeof(*trace), error);
    }
    sc_trace_init(&trace->trace);
    enum sc_status status = sc_trace_read(file, &trace->trace, &err);
    if (status != SC_OK) {
        free(trace);
        return hand_out(status, &err, error);
    }
    *out = trace;
    return STEPCAST_OK;
}

void stepcast_trace_destroy(struct stepcast_trace **trace)
{
    if (trace != NULL && *trace != NULL) {
        sc_trace_free(&(*trace)->trace);
        free(*trace);
        *trace = NULL;
    }
}

enum stepcast_status stepcast_trace_write(const struct stepcast_trace *trace, const char *file,
                                          struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    return hand_out(sc_trace_write(&trace->trace, file, &err), &err, error);
}

enum stepcast_status stepcast_trace_write_timeline(const struct stepcast_trace *const *traces,
                                                   size_t count, const char *file,
                                                   struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    const struct sc_trace **inner = calloc(count + 1, sizeof(const struct sc_trace *));
    if (inner == NULL) {
        return fail_memory((count + 1) * sizeof(*inner), error);
    }
    for (size_t i = 0; i < count; i++) {
        inner[i] = &traces[i]->trace;
    }
    enum sc_status status = sc_chrome_trace_write(inner, count, file, &err);
    free(inner);
    return hand_out(status, &err, error);
}

double stepcast_trace_step_time(const struct stepcast_trace *trace)
{
    return trace->trace.period_us / SC_US_PER_S;
}

size_t stepcast_trace_operations(const struct stepcast_trace *trace)
{
    return trace->trace.rows.count;
}

/* ---- simulation -------------------------------------------------------------------------- */

enum stepcast_status stepcast_simulate(const struct stepcast_plan *plan,
                                       struct stepcast_forecast **out, struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_sim_options options = {.verify = true, .trace = true};
    struct stepcast_forecast *forecast = calloc(1, sizeof(*forecast));
    if (forecast == NULL) {
        return fail_memory(sizeof(*forecast), error);
    }
    enum sc_status status =
        sc_simulate(&plan->plan, &plan->hardware, &options, &forecast->result, &err);
    if (status != SC_OK) {
        free(forecast);
        return hand_out(status, &err, error);
    }
    forecast->trace.trace = forecast->result.trace;
    sc_trace_init(&forecast->result.trace);
    forecast->result.has_trace = false;
    *out = forecast;
    return STEPCAST_OK;
}

void stepcast_forecast_destroy(struct stepcast_forecast **forecast)
{
    if (forecast != NULL && *forecast != NULL) {
        sc_sim_result_free(&(*forecast)->result);
        sc_trace_free(&(*forecast)->trace.trace);
        free(*forecast);
        *forecast = NULL;
    }
}

double stepcast_forecast_step_time(const struct stepcast_forecast *forecast)
{
    return forecast->result.step_time_s;
}

void stepcast_forecast_interval(const struct stepcast_forecast *forecast, double *low, double *high)
{
    *low = forecast->result.step_time_low_s;
    *high = forecast->result.step_time_high_s;
}

double stepcast_forecast_tokens_per_s(const struct stepcast_forecast *forecast)
{
    return forecast->result.tokens_per_s;
}

double stepcast_forecast_mfu(const struct stepcast_forecast *forecast)
{
    return forecast->result.mfu;
}

double stepcast_forecast_hfu(const struct stepcast_forecast *forecast)
{
    return forecast->result.hfu;
}

double stepcast_forecast_device_peak(const struct stepcast_forecast *forecast)
{
    return (double)forecast->result.memory[SC_DEVICE].arena_bytes;
}

double stepcast_forecast_device_used(const struct stepcast_forecast *forecast)
{
    return (double)forecast->result.memory[SC_DEVICE].used_bytes;
}

enum stepcast_status stepcast_forecast_json(const struct stepcast_forecast *forecast, char **out,
                                            struct stepcast_error *error)
{
    return print_json(sc_sim_result_to_json(&forecast->result), out, error);
}

const struct stepcast_trace *stepcast_forecast_trace(const struct stepcast_forecast *forecast)
{
    return &forecast->trace;
}

/* ---- explanation ------------------------------------------------------------------------- */

enum stepcast_status stepcast_explain(const struct stepcast_plan *plan,
                                      struct stepcast_explanation **out,
                                      struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct stepcast_explanation *explanation = calloc(1, sizeof(*explanation));
    if (explanation == NULL) {
        return fail_memory(sizeof(*explanation), error);
    }
    enum sc_status status =
        sc_explain(&plan->plan, &plan->hardware, &explanation->explanation, &err);
    if (status != SC_OK) {
        free(explanation);
        return hand_out(status, &err, error);
    }
    *out = explanation;
    return STEPCAST_OK;
}

void stepcast_explanation_destroy(struct stepcast_explanation **explanation)
{
    if (explanation != NULL && *explanation != NULL) {
        sc_explanation_free(&(*explanation)->explanation);
        free(*explanation);
        *explanation = NULL;
    }
}

double stepcast_explanation_step_time(const struct stepcast_explanation *explanation)
{
    return explanation->explanation.step_time_s;
}

const char *stepcast_explanation_sentence(const struct stepcast_explanation *explanation)
{
    return explanation->explanation.sentence;
}

size_t stepcast_explanation_parts(const struct stepcast_explanation *explanation)
{
    return explanation->explanation.parts.count;
}

const char *stepcast_explanation_part_name(const struct stepcast_explanation *explanation,
                                           size_t index)
{
    return index < explanation->explanation.parts.count
               ? explanation->explanation.parts.items[index].name
               : NULL;
}

double stepcast_explanation_part_seconds(const struct stepcast_explanation *explanation,
                                         size_t index)
{
    return index < explanation->explanation.parts.count
               ? explanation->explanation.parts.items[index].seconds
               : NAN;
}

double stepcast_explanation_step_time_if_free(const struct stepcast_explanation *explanation,
                                              const char *name)
{
    for (size_t i = 0; i < explanation->explanation.free.count; i++) {
        if (strcmp(explanation->explanation.free.items[i].name, name) == 0) {
            return explanation->explanation.free.items[i].step_time_s;
        }
    }
    return NAN;
}

enum stepcast_status stepcast_explanation_json(const struct stepcast_explanation *explanation,
                                               char **out, struct stepcast_error *error)
{
    return print_json(sc_explanation_to_json(&explanation->explanation), out, error);
}

/* ---- running ----------------------------------------------------------------------------- */

void stepcast_run_options_neutral(struct stepcast_run_options *options)
{
    struct sc_run_options neutral;
    sc_run_options_neutral(&neutral);
    memset(options, 0, sizeof(*options));
    options->steps = neutral.steps;
    options->warmup = neutral.warmup;
    options->cores = neutral.cores;
}

static void set_run_options(const struct stepcast_run_options *options, struct sc_data *data,
                            struct sc_run_options *out)
{
    sc_run_options_neutral(out);
    out->steps = options->steps;
    out->warmup = options->warmup;
    out->cores = options->cores;
    out->backend = options->backend;
    out->initial_file = options->initial_file;
    out->save_file = options->save_file;
    out->chaos = options->chaos;
    out->chaos_seed = options->chaos_seed;
    out->trace = options->trace;
    if (data != NULL) {
        out->data = (struct sc_batch_source){sc_data_next, data};
    }
}

static enum sc_status run_plan(const struct sc_plan *plan,
                               const struct stepcast_run_options *options,
                               struct sc_run_result *result, struct sc_error *err)
{
    struct sc_run_options inner;
    struct sc_data *data = NULL;
    if (options->data_file != NULL) {
        SC_TRY(sc_data_open(options->data_file, plan->model.vocab_size, plan->seed, &data, err));
    }
    set_run_options(options, data, &inner);
    enum sc_status status = sc_run_plan(plan, &inner, result, err);
    sc_data_close(&data);
    return status;
}

enum stepcast_status stepcast_run(const struct stepcast_plan *plan,
                                  const struct stepcast_run_options *options,
                                  struct stepcast_run **out, struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct stepcast_run_options neutral;
    stepcast_run_options_neutral(&neutral);
    struct stepcast_run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return fail_memory(sizeof(*run), error);
    }
    run->plan = plan->plan;
    enum sc_status status =
        run_plan(&run->plan, options != NULL ? options : &neutral, &run->result, &err);
    if (status != SC_OK) {
        free(run);
        return hand_out(status, &err, error);
    }
    run->has_trace = run->result.has_trace;
    if (run->has_trace) {
        run->trace.trace = run->result.trace;
        sc_trace_init(&run->result.trace);
        run->result.has_trace = false;
    }
    *out = run;
    return STEPCAST_OK;
}

void stepcast_run_destroy(struct stepcast_run **run)
{
    if (run != NULL && *run != NULL) {
        sc_run_result_free(&(*run)->result);
        sc_trace_free(&(*run)->trace.trace);
        free(*run);
        *run = NULL;
    }
}

double stepcast_run_step_time(const struct stepcast_run *run)
{
    return run->result.step_time_s;
}

const double *stepcast_run_losses(const struct stepcast_run *run, size_t *count)
{
    *count = run->result.has_losses ? (size_t)(run->result.warmup + run->result.steps) : 0;
    return run->result.losses;
}

enum stepcast_status stepcast_run_json(const struct stepcast_run *run, char **out,
                                       struct stepcast_error *error)
{
    const struct sc_run_context context = {.plan = &run->plan};
    return print_json(sc_run_result_to_json(&context, &run->result), out, error);
}

const struct stepcast_trace *stepcast_run_trace(const struct stepcast_run *run)
{
    return run->has_trace ? &run->trace : NULL;
}

/* ---- search ------------------------------------------------------------------------------ */

static enum sc_status search(const struct stepcast_search_options *options,
                             struct sc_search_result *out, struct sc_error *err)
{
    struct sc_model model;
    struct sc_hardware hardware;
    struct sc_plan base;
    SC_TRY(sc_model_load(options->model, NULL, &model, err));
    SC_TRY(sc_hardware_load(options->hardware, NULL, NULL, 0, &hardware, err));
    int64_t length = options->sequence_length > 0 ? options->sequence_length : model.max_positions;
    sc_search_base(&model, &hardware, options->global_batch, length, &base);
    snprintf(base.hardware.profile, sizeof(base.hardware.profile), "%s", options->hardware);
    struct sc_search_options inner = {.base = &base,
                                      .hardware = &hardware,
                                      .devices = options->devices,
                                      .top = (int64_t)options->top,
                                      .progress = options->progress,
                                      .context = options->context};
    enum sc_status status = sc_search(&inner, out, err);
    sc_hardware_free(&hardware);
    return status;
}

enum stepcast_status stepcast_search(const struct stepcast_search_options *options,
                                     struct stepcast_search **out, struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct stepcast_search *found = calloc(1, sizeof(*found));
    if (found == NULL) {
        return fail_memory(sizeof(*found), error);
    }
    enum sc_status status = search(options, &found->result, &err);
    if (status != SC_OK) {
        free(found);
        return hand_out(status, &err, error);
    }
    *out = found;
    return STEPCAST_OK;
}

void stepcast_search_destroy(struct stepcast_search **search_handle)
{
    if (search_handle != NULL && *search_handle != NULL) {
        sc_search_result_free(&(*search_handle)->result);
        free(*search_handle);
        *search_handle = NULL;
    }
}

size_t stepcast_search_count(const struct stepcast_search *found)
{
    return found->result.plans.count;
}

double stepcast_search_step_time(const struct stepcast_search *found, size_t index)
{
    return index < found->result.plans.count ? found->result.plans.items[index].step_time_s : NAN;
}

enum stepcast_status stepcast_search_plan_json(const struct stepcast_search *found, size_t index,
                                               char **out, struct stepcast_error *error)
{
    size_t count = found->result.plans.count;
    if (index >= count) {
        struct sc_error err = SC_ERROR_INIT;
        return hand_out(
            sc_fail(&err, SC_USAGE, "search: found plan %zu, expected less than %zu", index, count),
            &err, error);
    }
    return print_json(sc_plan_to_json(&found->result.plans.items[index].plan), out, error);
}

/* ---- comparison -------------------------------------------------------------------------- */

enum stepcast_status stepcast_compare(const struct stepcast_trace *const *predicted,
                                      const struct stepcast_trace *const *measured, size_t count,
                                      struct stepcast_comparison **out,
                                      struct stepcast_error *error)
{
    struct sc_error err = SC_ERROR_INIT;
    struct stepcast_comparison *comparison = calloc(1, sizeof(*comparison));
    if (comparison == NULL) {
        return fail_memory(sizeof(*comparison), error);
    }
    sc_comparison_init(&comparison->comparison);
    for (size_t i = 0; i < count; i++) {
        enum sc_status status = sc_comparison_add(&comparison->comparison, &predicted[i]->trace,
                                                  &measured[i]->trace, &err);
        if (status != SC_OK) {
            stepcast_comparison_destroy(&comparison);
            return hand_out(status, &err, error);
        }
    }
    enum sc_status status = sc_comparison_finish(&comparison->comparison, &err);
    if (status != SC_OK) {
        stepcast_comparison_destroy(&comparison);
        return hand_out(status, &err, error);
    }
    *out = comparison;
    return STEPCAST_OK;
}

void stepcast_comparison_destroy(struct stepcast_comparison **comparison)
{
    if (comparison != NULL && *comparison != NULL) {
        sc_comparison_free(&(*comparison)->comparison);
        free(*comparison);
        *comparison = NULL;
    }
}

double stepcast_comparison_error(const struct stepcast_comparison *comparison, size_t index)
{
    return index < comparison->comparison.plans.count
               ? comparison->comparison.plans.items[index].error
               : NAN;
}

double stepcast_comparison_median_abs_error(const struct stepcast_comparison *comparison)
{
    return comparison->comparison.median_abs_error;
}

double stepcast_comparison_max_abs_error(const struct stepcast_comparison *comparison)
{
    return comparison->comparison.max_abs_error;
}

double stepcast_comparison_regret(const struct stepcast_comparison *comparison)
{
    return comparison->comparison.regret;
}

enum stepcast_status stepcast_comparison_json(const struct stepcast_comparison *comparison,
                                              char **out, struct stepcast_error *error)
{
    return print_json(sc_comparison_to_json(&comparison->comparison), out, error);
}
