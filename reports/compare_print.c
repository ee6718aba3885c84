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

static cJSON *plans_to_json(const struct sc_comparison *comparison)
{
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < comparison->plans.count; i++) {
        const struct sc_compared_plan *plan = &comparison->plans.items[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "plan", plan->plan);
        add_number(row, "predicted_s", plan->predicted_s);
        add_number(row, "measured_s", plan->measured_s);
        add_number(row, "error", plan->error);
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

cJSON *sc_comparison_to_json(const struct sc_comparison *comparison)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, "rows", plans_to_json(comparison));
    add_number(root, "median_abs_error", comparison->median_abs_error);
    add_number(root, "max_abs_error", comparison->max_abs_error);
    add_number(root, "regret", comparison->regret);
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

static void fill_kinds(struct sc_table *table, const struct sc_comparison *comparison)
{
    static const struct sc_table_column columns[] = {
        {"kind", SC_LEFT},         {"count", SC_RIGHT},   {"predicted ms", SC_RIGHT},
        {"measured ms", SC_RIGHT}, {"error %", SC_RIGHT}, {"median |error| %", SC_RIGHT},
        {"skew ms", SC_RIGHT},     {NULL, SC_LEFT}};
    sc_table_init(table, columns);
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        const struct sc_compared_kind *kind = &comparison->kinds[i];
        if (!shown(kind)) {
            continue;
        }
        sc_table_cell(table, "%s", sc_op_kind_name((enum sc_op_kind)i));
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

static void fill_plans(struct sc_table *table, const struct sc_comparison *comparison)
{
    static const struct sc_table_column columns[] = {{"plan", SC_LEFT},
                                                     {"predicted ms", SC_RIGHT},
                                                     {"measured ms", SC_RIGHT},
                                                     {"error %", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    sc_table_init(table, columns);
    for (size_t i = 0; i < comparison->plans.count; i++) {
        const struct sc_compared_plan *plan = &comparison->plans.items[i];
        sc_table_cell(table, "%s", plan->plan);
        cell_ms(table, plan->predicted_s);
        cell_ms(table, plan->measured_s);
        cell_percent(table, plan->error, "+");
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

static void print_summary(const struct sc_comparison *comparison, FILE *stream)
{
    if (isnan(comparison->median_abs_error)) {
        fprintf(stream, "Nothing measured, no error.\n");
    } else if (comparison->plans.count == 1) {
        fprintf(stream, "Error of the step time: %+.1f %% (predicted / measured - 1)\n",
                comparison->plans.items[0].error * 100);
    } else {
        fprintf(stream,
                "Error of the step time over %zu plans: median %.1f %%, largest %.1f %%; regret "
                "%.3f\n",
                comparison->plans.count, comparison->median_abs_error * 100,
                comparison->max_abs_error * 100, comparison->regret);
    }
    for (size_t i = 0; i < comparison->notes.count; i++) {
        fprintf(stream, "Note: %s\n", comparison->notes.items[i]);
    }
}

enum sc_status sc_comparison_print(const struct sc_comparison *comparison, FILE *stream,
                                   struct sc_error *err)
{
    SC_TRY(print_table(comparison, "Step time", fill_plans, stream, err));
    SC_TRY(print_table(comparison, "By kind of operation (mean over ranks, a step)", fill_kinds,
                       stream, err));
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
