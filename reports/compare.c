/* Forecast against measurement: joining traces, errors by kind. */
#include "reports/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "reports/compare_rounds.h"

#define NOTABLE_SHARE 0.05 /* of the cores, taken by other programs */

void sc_comparison_init(struct sc_comparison *comparison)
{
    memset(comparison, 0, sizeof(*comparison));
}

void sc_comparison_free(struct sc_comparison *comparison)
{
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        sc_array_free(&comparison->kinds[i].abs_errors);
    }
    sc_array_free(&comparison->plans);
    sc_array_free(&comparison->groups);
    sc_array_free(&comparison->wrong_gaps);
    sc_array_free(&comparison->notes);
    sc_arena_free(&comparison->arena);
}

static double error_of(double predicted, double measured)
{
    return measured > 0 ? predicted / measured - 1 : NAN;
}

/* What arrives late on other ranks is not the operation's time. */
static double row_seconds(const struct sc_trace_row *row)
{
    double start = isnan(row->transfer_us) ? row->start_us : row->transfer_us;
    return (row->end_us - start) / SC_US_PER_S;
}

static double row_skew_seconds(const struct sc_trace_row *row)
{
    return isnan(row->transfer_us) ? 0 : (row->transfer_us - row->start_us) / SC_US_PER_S;
}

/* ---- joining ----------------------------------------------------------------------------- */

struct key {
    const char *class;
    const struct sc_trace_row *row;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    int order = strcmp(left->class, right->class);
    if (order != 0) {
        return order;
    }
    return (left->row->operation > right->row->operation) -
           (left->row->operation < right->row->operation);
}

/* Rows over all ranks, sorted by class and operation; the caller frees *out. */
static enum sc_status sorted_keys(const struct sc_trace *trace, struct key **out, size_t *count,
                                  struct sc_error *err)
{
    struct key *keys = calloc(trace->rows.count + 1, sizeof(*keys));
    if (keys == NULL) {
        return sc_fail_memory(err, (trace->rows.count + 1) * sizeof(*keys));
    }
    *count = 0;
    for (size_t i = 0; i < trace->rows.count; i++) {
        const struct sc_trace_row *row = &trace->rows.items[i];
        if (row->rank < 0) {
            keys[(*count)++] = (struct key){trace->classes.items[row->class_index].name, row};
        }
    }
    qsort(keys, *count, sizeof(*keys), compare_keys);
    *out = keys;
    return SC_OK;
}

static void note(struct sc_comparison *comparison, const char *text)
{
    const char **item = text == NULL ? NULL : sc_array_push(&comparison->notes);
    if (item != NULL) {
        *item = text; /* a note that finds no memory is dropped: it is only a remark */
    }
}

/* Mean over ranks: what share of the ranks runs this class. */
static double class_share(const struct sc_trace *trace, const struct sc_trace_row *row)
{
    double ranks = 0;
    for (size_t i = 0; i < trace->classes.count; i++) {
        ranks += (double)trace->classes.items[i].ranks;
    }
    return (double)trace->classes.items[row->class_index].ranks / ranks;
}

static double difference(const struct sc_compared_operation *operation)
{
    return fabs(operation->predicted_s - operation->measured_s);
}

/* Keeps the list of largest differences sorted. */
static enum sc_status offer_worst(struct sc_comparison *comparison,
                                  struct sc_compared_operation offered, struct sc_error *err)
{
    struct sc_compared_operation *worst = comparison->worst;
    size_t at = comparison->worst_count;
    if (at == SC_COMPARED_WORST && difference(&offered) <= difference(&worst[at - 1])) {
        return SC_OK;
    }
    offered.label = sc_arena_strdup(&comparison->arena, offered.label);
    if (offered.label == NULL) {
        return sc_fail_memory(err, 64);
    }
    if (at < SC_COMPARED_WORST) {
        comparison->worst_count++;
    } else {
        at--;
    }
    for (; at > 0 && difference(&offered) > difference(&worst[at - 1]); at--) {
        worst[at] = worst[at - 1];
    }
    worst[at] = offered;
    return SC_OK;
}

static enum sc_status add_pair(struct sc_comparison *comparison, const char *plan, double share,
                               const struct sc_trace_row *predicted,
                               const struct sc_trace_row *measured, struct sc_error *err)
{
    struct sc_compared_kind *kind = &comparison->kinds[predicted->kind];
    double forecast = row_seconds(predicted), real = row_seconds(measured);
    kind->count++;
    kind->predicted_s += share * forecast;
    kind->measured_s += share * real;
    kind->skew_s += share * row_skew_seconds(measured);
    double error = error_of(forecast, real);
    if (!isnan(error)) {
        double *item = sc_array_push(&kind->abs_errors);
        if (item == NULL) {
            return sc_fail_memory(err, sizeof(*item));
        }
        *item = fabs(error);
    }
    struct sc_compared_operation operation = {
        plan, predicted->label, predicted->kind, predicted->operation, forecast, real};
    return offer_worst(comparison, operation, err);
}

static enum sc_status merge(struct sc_comparison *comparison, const char *plan,
                            const struct sc_trace *trace, const struct key *predicted,
                            size_t predicted_count, const struct key *measured,
                            size_t measured_count, struct sc_error *err)
{
    size_t p = 0, m = 0, alone = 0;
    while (p < predicted_count && m < measured_count) {
        int order = compare_keys(&predicted[p], &measured[m]);
        if (order == 0) {
            SC_TRY(add_pair(comparison, plan, class_share(trace, predicted[p].row),
                            predicted[p].row, measured[m].row, err));
        } else {
            alone++;
        }
        p += order <= 0;
        m += order >= 0;
    }
    alone += predicted_count - p + measured_count - m;
    if (alone > 0) {
        note(comparison, sc_arena_printf(&comparison->arena,
                                         "%s: %zu operations stand in one of the two traces only",
                                         plan, alone));
    }
    return SC_OK;
}

static enum sc_status join(struct sc_comparison *comparison, const char *plan,
                           const struct sc_trace *predicted, const struct sc_trace *measured,
                           struct sc_error *err)
{
    struct key *left = NULL, *right = NULL;
    size_t left_count = 0, right_count = 0;
    enum sc_status status = sorted_keys(predicted, &left, &left_count, err);
    if (status == SC_OK) {
        status = sorted_keys(measured, &right, &right_count, err);
    }
    if (status == SC_OK) {
        status = merge(comparison, plan, predicted, left, left_count, right, right_count, err);
    }
    free(left);
    free(right);
    return status;
}

/* Two programs: only what each spends on a kind can be set side by side. */
static void add_totals(struct sc_comparison *comparison, const struct sc_trace *trace,
                       bool measured)
{
    for (size_t i = 0; i < trace->rows.count; i++) {
        const struct sc_trace_row *row = &trace->rows.items[i];
        if (row->rank >= 0) {
            continue;
        }
        struct sc_compared_kind *kind = &comparison->kinds[row->kind];
        double share = class_share(trace, row);
        if (measured) {
            kind->measured_s += share * row_seconds(row);
            kind->skew_s += share * row_skew_seconds(row);
        } else {
            kind->predicted_s += share * row_seconds(row);
            kind->count++;
        }
    }
}

static void note_kinds_of_trace(struct sc_comparison *comparison, const char *plan,
                                const struct sc_trace *predicted, const struct sc_trace *measured)
{
    static const char *const both[] = {"forecasts", "measurements"};
    if (predicted->kind == measured->kind) {
        note(comparison, sc_arena_printf(&comparison->arena,
                                         "%s: both traces are %s; the second takes the place of "
                                         "the measurement",
                                         plan, both[predicted->kind]));
    } else if (predicted->kind == SC_MEASURED) {
        note(comparison,
             sc_arena_printf(&comparison->arena,
                             "%s: the first trace is the measurement: errors are turned round",
                             plan));
    }
}

/* A forecast holds on the machine whose profile it is of. */
static void note_machines(struct sc_comparison *comparison, const char *plan,
                          const struct sc_trace *predicted, const struct sc_trace *measured)
{
    char differences[512];
    if (sc_identity_differs(&predicted->measured_on, &measured->measured_on, differences,
                            sizeof(differences))) {
        note(comparison,
             sc_arena_printf(&comparison->arena,
                             "%s: the forecast is of another machine than the measurement: %s",
                             plan, differences));
    }
}

/* Above such a share the measurement is not of the plan alone. */
static void note_others(struct sc_comparison *comparison, const char *plan,
                        const struct sc_trace *measured)
{
    double share = measured->others_share;
    if (share >= NOTABLE_SHARE && share < 1) {
        note(comparison,
             sc_arena_printf(&comparison->arena,
                             "%s: other programs used %.0f %% of the cores during the measurement: "
                             "it may be too long by up to %.0f %%",
                             plan, share * 100, share / (1 - share) * 100));
    }
}

static enum sc_status add_traces(struct sc_comparison *comparison, const char *name, bool joined,
                                 const struct sc_trace *predicted, const struct sc_trace *measured,
                                 struct sc_error *err)
{
    note_kinds_of_trace(comparison, name, predicted, measured);
    note_machines(comparison, name, predicted, measured);
    note_others(comparison, name, measured);
    if (joined) {
        return join(comparison, name, predicted, measured, err);
    }
    add_totals(comparison, predicted, false);
    add_totals(comparison, measured, true);
    note(comparison, sc_arena_printf(&comparison->arena,
                                     "%s: the programs differ (%.15s..., %.15s...): totals and "
                                     "kinds are compared, not operations",
                                     name, predicted->program, measured->program));
    return SC_OK;
}

enum sc_status sc_comparison_add(struct sc_comparison *comparison, const struct sc_trace *predicted,
                                 const struct sc_trace *measured, struct sc_error *err)
{
    struct sc_compared_plan *plan = sc_array_push(&comparison->plans);
    const char *name = sc_arena_strdup(&comparison->arena, predicted->plan);
    if (plan == NULL || name == NULL) {
        return sc_fail_memory(err, sizeof(*plan));
    }
    memcpy(plan->plan, predicted->plan, sizeof(plan->plan));
    plan->predicted_s = predicted->period_us / SC_US_PER_S;
    plan->measured_s = measured->period_us / SC_US_PER_S;
    plan->low_s = predicted->period_low_us / SC_US_PER_S;
    plan->high_s = predicted->period_high_us / SC_US_PER_S;
    plan->error = error_of(plan->predicted_s, plan->measured_s);
    plan->rounds = 1;
    plan->spread = NAN;
    plan->joined = strcmp(predicted->program, measured->program) == 0;
    return add_traces(comparison, name, plan->joined, predicted, measured, err);
}

enum sc_status sc_comparison_add_rounds(struct sc_comparison *comparison,
                                        const struct sc_trace *predicted,
                                        const struct sc_trace *const *measured, size_t count,
                                        struct sc_error *err)
{
    struct sc_trace merged;
    double spread;
    if (count == 1) {
        return sc_comparison_add(comparison, predicted, measured[0], err);
    }
    SC_TRY(sc_rounds_merge(measured, count, &merged, &spread, err));
    enum sc_status status = sc_comparison_add(comparison, predicted, &merged, err);
    sc_trace_free(&merged);
    if (status == SC_OK) {
        struct sc_compared_plan *plan = &comparison->plans.items[comparison->plans.count - 1];
        plan->rounds = count;
        plan->spread = spread;
    }
    return status;
}

enum sc_status sc_comparison_label(struct sc_comparison *comparison,
                                   const struct sc_plan_groups *groups, struct sc_error *err)
{
    for (size_t i = 0; i < comparison->plans.count; i++) {
        struct sc_compared_plan *plan = &comparison->plans.items[i];
        const struct sc_plan_group_row *row;
        SC_TRY(sc_plan_groups_find(groups, plan->plan, &row, err));
        plan->group = sc_arena_strdup(&comparison->arena, row->group);
        plan->transport =
            row->transport ? sc_arena_strdup(&comparison->arena, row->transport) : NULL;
        if (plan->group == NULL) {
            return sc_fail_memory(err, strlen(row->group));
        }
    }
    comparison->grouped = true;
    return SC_OK;
}
