/* The public interface (stepcast.h): thin handles over the library's own structures. */
#include "stepcast.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/hardware.h"
#include "base/units.h"
#include "plans/plan.h"
#include "plans/trace.h"
#include "reports/chrome_trace.h"
#include "reports/compare.h"

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
    cJSON_free(text);
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
    char *text = object != NULL ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    if (text == NULL) {
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
    sc_comparison_finish(&comparison->comparison);
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
