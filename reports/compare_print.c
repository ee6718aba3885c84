/* A comparison as JSON, as text and as CSV. */
#include "reports/compare.h"

#include <math.h>

#include "base/units.h"
#include "reports/table.h"

static bool shown(const struct sc_compared_kind *kind)
{
    return kind->count > 0 || kind->measured_s > 0;
}

/* ---- JSON -------------------------------------------------------------------------------- */

/* A number, null when it is not one. */
static void add_number(cJSON *object, const char *key, double value)
{
    if (isfinite(value)) {
        cJSON_AddNumberToObject(object, key, value);
    } else {
        cJSON_AddNullToObject(object, key);
    }
}

static void add_text(cJSON *object, const char *key, const char *text)
{
    if (text != NULL) {
        cJSON_AddStringToObject(object, key, text);
    } else {
        cJSON_AddNullToObject(object, key);
    }
}

static void add_inside(cJSON *row, const struct sc_compared_plan *plan)
{
    if (isnan(plan->low_s) || isnan(plan->error)) {
        cJSON_AddNullToObject(row, "inside");
    } else {
        cJSON_AddBoolToObject(row, "inside", sc_compared_inside(plan));
    }
}

static cJSON *plans_to_json(const struct sc_comparison *comparison)
{
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < comparison->plans.count; i++) {
        const struct sc_compared_plan *plan = &comparison->plans.items[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "plan", plan->plan);
        add_text(row, "group", plan->group);
        add_text(row, "transport", plan->transport);
        add_number(row, "predicted_s", plan->predicted_s);
        add_number(row, "measured_s", plan->measured_s);
        add_number(row, "error", plan->error);
        add_number(row, "low_s", plan->low_s);
        add_number(row, "high_s", plan->high_s);
        add_inside(row, plan);
        add_number(row, "rounds", (double)plan->rounds);
        add_number(row, "spread", plan->spread);
        cJSON_AddBoolToObject(row, "joined", plan->joined);
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

static cJSON *kinds_to_json(const struct sc_comparison *comparison)
{
    cJSON *kinds = cJSON_CreateObject();
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        const struct sc_compared_kind *kind = &comparison->kinds[i];
        if (!shown(kind)) {
            continue;
        }
        cJSON *row = cJSON_AddObjectToObject(kinds, sc_op_kind_name((enum sc_op_kind)i));
        add_number(row, "count", (double)kind->count);
        add_number(row, "predicted_s", kind->predicted_s);
        add_number(row, "measured_s", kind->measured_s);
        add_number(row, "error", kind->error);
        add_number(row, "median_abs_error", kind->median_abs_error);
        add_number(row, "skew_s", kind->skew_s);
    }
    return kinds;
}

static cJSON *worst_to_json(const struct sc_comparison *comparison)
{
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < comparison->worst_count; i++) {
        const struct sc_compared_operation *worst = &comparison->worst[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "plan", worst->plan);
        add_number(row, "operation", worst->operation);
        cJSON_AddStringToObject(row, "kind", sc_op_kind_name((enum sc_op_kind)worst->kind));
        cJSON_AddStringToObject(row, "label", worst->label);
        add_number(row, "predicted_s", worst->predicted_s);
        add_number(row, "measured_s", worst->measured_s);
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

static void add_regret(cJSON *root, const struct sc_comparison *comparison)
{
    if (!comparison->grouped) {
        add_number(root, "regret", comparison->regret);
        return;
    }
    cJSON *regret = cJSON_AddObjectToObject(root, "regret");
    for (size_t i = 0; i < comparison->groups.count; i++) {
        add_number(regret, comparison->groups.items[i].name, comparison->groups.items[i].regret);
    }
}

static size_t count_gaps(const struct sc_comparison *comparison)
{
    size_t gaps = 0;
    for (size_t i = 0; i < comparison->groups.count; i++) {
        gaps += comparison->groups.items[i].gaps;
    }
    return gaps;
}

static cJSON *wrong_gaps_to_json(const struct sc_comparison *comparison)
{
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < comparison->wrong_gaps.count; i++) {
        const struct sc_wrong_gap *gap = &comparison->wrong_gaps.items[i];
        cJSON *row = cJSON_CreateObject();
        add_text(row, "group", gap->group);
        cJSON_AddStringToObject(row, "faster", gap->faster);
        cJSON_AddStringToObject(row, "slower", gap->slower);
        add_number(row, "measured_gap", gap->measured);
        add_number(row, "predicted_gap", gap->predicted);
        cJSON_AddItemToArray(rows, row);
    }
    return rows;
}

cJSON *sc_comparison_to_json(const struct sc_comparison *comparison)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "stepcast.result/1");
    cJSON_AddStringToObject(root, "command", "compare");
    cJSON_AddItemToObject(root, "rows", plans_to_json(comparison));
    add_number(root, "median_abs_error", comparison->median_abs_error);
    add_number(root, "p90_abs_error", comparison->p90_abs_error);
    add_number(root, "max_abs_error", comparison->max_abs_error);
    add_regret(root, comparison);
    add_number(root, "gaps", (double)count_gaps(comparison));
    cJSON_AddItemToObject(root, "gaps_wrong", wrong_gaps_to_json(comparison));
    add_number(root, "coverage", comparison->coverage);
    cJSON_AddItemToObject(root, "by_kind", kinds_to_json(comparison));
    cJSON_AddItemToObject(root, "worst", worst_to_json(comparison));
    cJSON *notes = cJSON_AddArrayToObject(root, "notes");
    for (size_t i = 0; i < comparison->notes.count; i++) {
        cJSON_AddItemToArray(notes, cJSON_CreateString(comparison->notes.items[i]));
    }
    return root;
}

/* ---- tables ------------------------------------------------------------------------------ */

static void cell_ms(struct sc_table *table, double seconds)
{
    sc_table_cell(table, "%.3f", seconds * SC_MS_PER_S);
}

static void cell_percent(struct sc_table *table, double share, const char *format)
{
    if (isnan(share)) {
        sc_table_cell(table, "-");
        return;
    }
    char text[32];
    snprintf(text, sizeof(text), format[0] == '+' ? "%+.1f" : "%.1f", share * 100);
    sc_table_cell(table, "%s", text);
}

/* Several plans: the kinds that take longest; of one, all in their order. */
enum { KINDS_SHOWN = 10 };

/* Indices of the kinds to show. */
static size_t choose_kinds(const struct sc_comparison *comparison, size_t out[SC_OP_KIND_COUNT])
{
    size_t count = 0;
    bool rank = comparison->plans.count > 1;
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        if (!shown(&comparison->kinds[i])) {
            continue;
        }
        size_t at = count++;
        for (; rank && at > 0; at--) {
            if (comparison->kinds[out[at - 1]].measured_s >= comparison->kinds[i].measured_s) {
                break;
            }
            out[at] = out[at - 1];
        }
        out[at] = i;
    }
    return rank && count > KINDS_SHOWN ? KINDS_SHOWN : count;
}

static void fill_kinds(struct sc_table *table, const struct sc_comparison *comparison)
{
    static const struct sc_table_column columns[] = {
        {"kind", SC_LEFT},         {"count", SC_RIGHT},   {"predicted ms", SC_RIGHT},
        {"measured ms", SC_RIGHT}, {"error %", SC_RIGHT}, {"median |error| %", SC_RIGHT},
        {"skew ms", SC_RIGHT},     {NULL, SC_LEFT}};
    size_t chosen[SC_OP_KIND_COUNT];
    size_t count = choose_kinds(comparison, chosen);
    sc_table_init(table, columns);
    for (size_t i = 0; i < count; i++) {
        const struct sc_compared_kind *kind = &comparison->kinds[chosen[i]];
        sc_table_cell(table, "%s", sc_op_kind_name((enum sc_op_kind)chosen[i]));
        sc_table_cell(table, "%zu", kind->count);
        cell_ms(table, kind->predicted_s);
        cell_ms(table, kind->measured_s);
        cell_percent(table, kind->error, "+");
        cell_percent(table, kind->median_abs_error, "");
        if (kind->skew_s > 0) {
            cell_ms(table, kind->skew_s);
        } else {
            sc_table_cell(table, "%s", "");
        }
    }
}

/* ---- plans ------------------------------------------------------------------------------- */

typedef void plan_cell_fn(struct sc_table *table, const struct sc_compared_plan *plan);
typedef bool plan_has_fn(const struct sc_compared_plan *plan);

static bool always(const struct sc_compared_plan *plan)
{
    (void)plan;
    return true;
}

static bool has_transport(const struct sc_compared_plan *plan)
{
    return plan->transport != NULL;
}

static bool has_rounds(const struct sc_compared_plan *plan)
{
    return plan->rounds > 1;
}

static bool has_interval(const struct sc_compared_plan *plan)
{
    return !isnan(plan->low_s);
}

static void plan_name(struct sc_table *table, const struct sc_compared_plan *plan)
{
    sc_table_cell(table, "%s", plan->plan);
}

static void plan_transport(struct sc_table *table, const struct sc_compared_plan *plan)
{
    sc_table_cell(table, "%s", plan->transport ? plan->transport : "");
}

static void plan_predicted(struct sc_table *table, const struct sc_compared_plan *plan)
{
    cell_ms(table, plan->predicted_s);
}

static void plan_measured(struct sc_table *table, const struct sc_compared_plan *plan)
{
    cell_ms(table, plan->measured_s);
}

static void plan_error(struct sc_table *table, const struct sc_compared_plan *plan)
{
    cell_percent(table, plan->error, "+");
}

static void plan_interval(struct sc_table *table, const struct sc_compared_plan *plan)
{
    if (has_interval(plan)) {
        sc_table_cell(table, "%.3f to %.3f", plan->low_s * SC_MS_PER_S, plan->high_s * SC_MS_PER_S);
    } else {
        sc_table_cell(table, "-");
    }
}

static void plan_inside(struct sc_table *table, const struct sc_compared_plan *plan)
{
    bool known = has_interval(plan) && !isnan(plan->error);
    sc_table_cell(table, "%s", !known ? "-" : sc_compared_inside(plan) ? "yes" : "no");
}

static void plan_spread(struct sc_table *table, const struct sc_compared_plan *plan)
{
    cell_percent(table, plan->spread, "");
}

/* A column is shown where any plan has it. */
static const struct plan_column {
    struct sc_table_column column;
    plan_has_fn *has;
    plan_cell_fn *cell;
} plan_columns[] = {
    {{"plan", SC_LEFT}, always, plan_name},
    {{"transport", SC_LEFT}, has_transport, plan_transport},
    {{"predicted ms", SC_RIGHT}, always, plan_predicted},
    {{"measured ms", SC_RIGHT}, always, plan_measured},
    {{"error %", SC_RIGHT}, always, plan_error},
    {{"80 % interval ms", SC_RIGHT}, has_interval, plan_interval},
    {{"inside", SC_LEFT}, has_interval, plan_inside},
    {{"rounds differ %", SC_RIGHT}, has_rounds, plan_spread},
};

enum { PLAN_COLUMNS = sizeof(plan_columns) / sizeof(plan_columns[0]) };

static bool any_plan(const struct sc_comparison *comparison, plan_has_fn *has)
{
    for (size_t i = 0; i < comparison->plans.count; i++) {
        if (has(&comparison->plans.items[i])) {
            return true;
        }
    }
    return false;
}

static void fill_plans(struct sc_table *table, const struct sc_comparison *comparison)
{
    struct sc_table_column titles[PLAN_COLUMNS + 1] = {{NULL, SC_LEFT}};
    plan_cell_fn *cells[PLAN_COLUMNS];
    size_t count = 0;
    for (size_t i = 0; i < PLAN_COLUMNS; i++) {
        if (any_plan(comparison, plan_columns[i].has)) {
            titles[count] = plan_columns[i].column;
            cells[count++] = plan_columns[i].cell;
        }
    }
    titles[count] = (struct sc_table_column){NULL, SC_LEFT};
    sc_table_init(table, titles);
    for (size_t i = 0; i < comparison->plans.count; i++) {
        for (size_t k = 0; k < count; k++) {
            cells[k](table, &comparison->plans.items[i]);
        }
    }
}

static void fill_groups(struct sc_table *table, const struct sc_comparison *comparison)
{
    static const struct sc_table_column columns[] = {{"group", SC_LEFT},
                                                     {"plans", SC_RIGHT},
                                                     {"forecast fastest", SC_LEFT},
                                                     {"regret", SC_RIGHT},
                                                     {"measured fastest", SC_LEFT},
                                                     {"gaps", SC_RIGHT},
                                                     {"wrong", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    sc_table_init(table, columns);
    for (size_t i = 0; i < comparison->groups.count; i++) {
        const struct sc_compared_group *group = &comparison->groups.items[i];
        sc_table_cell(table, "%s", group->name);
        sc_table_cell(table, "%zu", group->plans);
        sc_table_cell(table, "%s", group->forecast ? group->forecast : "-");
        sc_table_cell(table, "%.3f", group->regret);
        sc_table_cell(table, "%s", group->fastest ? group->fastest : "-");
        sc_table_cell(table, "%zu", group->gaps);
        sc_table_cell(table, "%zu", group->wrong);
    }
}

static void fill_wrong_gaps(struct sc_table *table, const struct sc_comparison *comparison)
{
    static const struct sc_table_column columns[] = {{"faster", SC_LEFT},
                                                     {"slower", SC_LEFT},
                                                     {"slower by %", SC_RIGHT},
                                                     {"forecast %", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    sc_table_init(table, columns);
    for (size_t i = 0; i < comparison->wrong_gaps.count; i++) {
        const struct sc_wrong_gap *gap = &comparison->wrong_gaps.items[i];
        sc_table_cell(table, "%s", gap->faster);
        sc_table_cell(table, "%s", gap->slower);
        cell_percent(table, gap->measured, "+");
        cell_percent(table, gap->predicted, "+");
    }
}

static void fill_worst(struct sc_table *table, const struct sc_comparison *comparison)
{
    static const struct sc_table_column columns[] = {
        {"operation", SC_RIGHT},    {"kind", SC_LEFT},         {"label", SC_LEFT},
        {"predicted ms", SC_RIGHT}, {"measured ms", SC_RIGHT}, {NULL, SC_LEFT}};
    sc_table_init(table, columns);
    for (size_t i = 0; i < comparison->worst_count; i++) {
        const struct sc_compared_operation *worst = &comparison->worst[i];
        sc_table_cell(table, "%u", worst->operation);
        sc_table_cell(table, "%s", sc_op_kind_name((enum sc_op_kind)worst->kind));
        sc_table_cell(table, "%s", worst->label);
        cell_ms(table, worst->predicted_s);
        cell_ms(table, worst->measured_s);
    }
}

typedef void (*fill_fn)(struct sc_table *table, const struct sc_comparison *comparison);

static enum sc_status print_table(const struct sc_comparison *comparison, const char *title,
                                  fill_fn fill, FILE *stream, struct sc_error *err)
{
    struct sc_table table;
    fill(&table, comparison);
    fprintf(stream, "%s\n", title);
    enum sc_status status = sc_table_print(&table, 2, stream, err);
    fputc('\n', stream);
    sc_table_free(&table);
    return status;
}

static void print_errors(const struct sc_comparison *comparison, FILE *stream)
{
    if (isnan(comparison->median_abs_error)) {
        fprintf(stream, "Nothing measured, no error.\n");
    } else if (comparison->plans.count == 1) {
        fprintf(stream, "Error of the step time: %+.1f %% (predicted / measured - 1)\n",
                comparison->plans.items[0].error * 100);
    } else {
        fprintf(stream,
                "Error of the step time over %zu plans: median %.1f %%, 90th percentile %.1f %%, "
                "largest %.1f %%; %s %.3f\n",
                comparison->plans.count, comparison->median_abs_error * 100,
                comparison->p90_abs_error * 100, comparison->max_abs_error * 100,
                comparison->grouped ? "largest regret" : "regret", comparison->regret);
    }
}

static void print_summary(const struct sc_comparison *comparison, FILE *stream)
{
    if (comparison->grouped) {
        fprintf(stream,
                "Of %zu pairs that differ by more than %.0f %%, %zu were forecast in another "
                "order.\n",
                count_gaps(comparison), SC_GAP * 100, comparison->wrong_gaps.count);
    }
    if (!isnan(comparison->coverage) && comparison->plans.count > 1) {
        fprintf(stream, "Inside the forecast's 80 %% interval: %.0f %% of the plans\n",
                comparison->coverage * 100);
    }
    print_errors(comparison, stream);
    for (size_t i = 0; i < comparison->notes.count; i++) {
        fprintf(stream, "Note: %s\n", comparison->notes.items[i]);
    }
}

enum sc_status sc_comparison_print(const struct sc_comparison *comparison, FILE *stream,
                                   struct sc_error *err)
{
    SC_TRY(print_table(comparison, "Step time", fill_plans, stream, err));
    if (comparison->grouped) {
        SC_TRY(print_table(comparison, "Groups of plans that compete", fill_groups, stream, err));
    }
    if (comparison->grouped && comparison->wrong_gaps.count > 0) {
        SC_TRY(print_table(comparison, "Pairs forecast in another order", fill_wrong_gaps, stream,
                           err));
    }
    SC_TRY(print_table(comparison,
                       comparison->plans.count > 1
                           ? "Longest kinds of operation (mean over ranks, a step of each plan)"
                           : "By kind of operation (mean over ranks, a step)",
                       fill_kinds, stream, err));
    if (comparison->worst_count > 0) {
        SC_TRY(print_table(comparison, "Largest differences", fill_worst, stream, err));
    }
    print_summary(comparison, stream);
    return SC_OK;
}

enum sc_status sc_comparison_print_csv(const struct sc_comparison *comparison, FILE *stream,
                                       struct sc_error *err)
{
    struct sc_table table;
    (comparison->plans.count > 1 ? fill_plans : fill_kinds)(&table, comparison);
    enum sc_status status = sc_table_print_csv(&table, stream, err);
    sc_table_free(&table);
    return status;
}
