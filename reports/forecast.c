/* A forecast for people. */
#include "reports/forecast.h"

#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "plans/lower.h"
#include "reports/peak.h"
#include "reports/table.h"

#define ALIVE_SHOWN 8

enum sc_status sc_forecast_program(const struct sc_plan *plan, const struct sc_hardware *hardware,
                                   bool verify, struct sc_program **out, struct sc_error *err)
{
    struct sc_hardware machine;
    struct sc_program *program = NULL;
    uint64_t capacity[SC_PLACE_COUNT];
    SC_TRY(sc_sim_machine_for(hardware, sc_plan_ranks(plan), plan->hardware.nodes, &machine, err));
    SC_TRY(sc_lower(plan, &program, err));
    enum sc_status status = sc_sim_capacity(program, &machine, capacity, err);
    if (status == SC_OK) {
        status = sc_program_prepare(program, capacity, verify, err);
    }
    if (status != SC_OK) {
        sc_program_destroy(&program);
        return status;
    }
    *out = program;
    return SC_OK;
}

/* ---- step time --------------------------------------------------------------------------- */

static void print_share(FILE *stream, const char *name, double share)
{
    if (!isnan(share)) {
        fprintf(stream, "  %-12s  %.1f %%\n", name, share * 100);
    }
}

static void print_totals(const struct sc_sim_result *result, FILE *stream)
{
    char text[64];
    fprintf(stream, "%s on %s, %" PRId64 " rank%s\n\n", result->plan, result->hardware,
            result->ranks, result->ranks == 1 ? "" : "s");
    char low[64], high[64];
    fprintf(stream, "  %-12s  %s (80 %% of runs: %s to %s)\n", "step time",
            sc_print_seconds(result->step_time_s, text, sizeof(text)),
            sc_print_seconds(result->step_time_low_s, low, sizeof(low)),
            sc_print_seconds(result->step_time_high_s, high, sizeof(high)));
    fprintf(stream, "  %-12s  %.*f\n", "tokens/s", result->tokens_per_s < 100 ? 1 : 0,
            result->tokens_per_s);
    print_share(stream, "MFU", result->mfu);
    print_share(stream, "HFU", result->hfu);
    fprintf(stream, "  %-12s  %s (no order of operations takes less)\n", "lower bound",
            sc_print_seconds(result->bound_s, text, sizeof(text)));
    fputc('\n', stream);
}

static enum sc_status print_breakdown(const struct sc_sim_result *result, FILE *stream,
                                      struct sc_error *err)
{
    static const struct sc_table_column columns[] = {
        {"where the time goes", SC_LEFT}, {"ms", SC_RIGHT}, {"%", SC_RIGHT}, {NULL, SC_LEFT}};
    struct sc_table table;
    sc_table_init(&table, columns);
    for (size_t i = 0; i < result->breakdown.count; i++) {
        const struct sc_sim_part *part = &result->breakdown.items[i];
        if (part->seconds > 0) {
            sc_table_cell(&table, "%s", part->name);
            sc_table_cell(&table, "%.3f", part->seconds * SC_MS_PER_S);
            sc_table_cell(&table, "%.1f", part->seconds / result->step_time_s * 100);
        }
    }
    enum sc_status status = sc_table_print(&table, 2, stream, err);
    sc_table_free(&table);
    fputc('\n', stream);
    return status;
}

/* ---- memory ------------------------------------------------------------------------------ */

static enum sc_status print_places(const struct sc_sim_result *result, FILE *stream,
                                   struct sc_error *err)
{
    static const struct sc_table_column columns[] = {
        {"memory of a rank", SC_LEFT}, {"planned", SC_RIGHT}, {"used", SC_RIGHT},
        {"there", SC_RIGHT},           {"% used", SC_RIGHT},  {NULL, SC_LEFT}};
    struct sc_table table;
    char text[64];
    sc_table_init(&table, columns);
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        const struct sc_sim_place *memory = &result->memory[place];
        if (memory->used_bytes == 0) {
            continue;
        }
        sc_table_cell(&table, "%s", sc_place_names[place]);
        sc_table_cell(&table, "%s",
                      sc_print_bytes((double)memory->arena_bytes, text, sizeof(text)));
        sc_table_cell(&table, "%s", sc_print_bytes((double)memory->used_bytes, text, sizeof(text)));
        if (memory->capacity_bytes == 0) {
            sc_table_cell(&table, "-");
            sc_table_cell(&table, "-");
            continue;
        }
        sc_table_cell(&table, "%s",
                      sc_print_bytes((double)memory->capacity_bytes, text, sizeof(text)));
        sc_table_cell(&table, "%.1f",
                      (double)memory->used_bytes / (double)memory->capacity_bytes * 100);
    }
    enum sc_status status = sc_table_print(&table, 2, stream, err);
    sc_table_free(&table);
    fputc('\n', stream);
    return status;
}

static void fill_alive(struct sc_table *table, const struct sc_peak *peak)
{
    uint64_t rest = 0;
    size_t rest_buffers = 0;
    char text[64];
    for (size_t i = 0; i < peak->buffers.count; i++) {
        const struct sc_peak_buffers *group = &peak->buffers.items[i];
        if (i >= ALIVE_SHOWN) {
            rest += group->bytes;
            rest_buffers += group->buffers;
            continue;
        }
        sc_table_cell(table, "%s", group->name);
        sc_table_cell(table, "%zu", group->buffers);
        sc_table_cell(table, "%s", sc_print_bytes((double)group->bytes, text, sizeof(text)));
    }
    if (rest > 0) {
        sc_table_cell(table, "others");
        sc_table_cell(table, "%zu", rest_buffers);
        sc_table_cell(table, "%s", sc_print_bytes((double)rest, text, sizeof(text)));
    }
}

static enum sc_status print_alive(const struct sc_program *program, const struct sc_peak *peak,
                                  FILE *stream, struct sc_error *err)
{
    static const struct sc_table_column columns[] = {{"alive at the device's peak", SC_LEFT},
                                                     {"buffers", SC_RIGHT},
                                                     {"size", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    char label[256];
    struct sc_table table;
    sc_table_init(&table, columns);
    fill_alive(&table, peak);
    enum sc_status status = sc_table_print(&table, 2, stream, err);
    sc_table_free(&table);
    if (peak->op < peak->class->step.ops.count) {
        fprintf(stream, "  The peak is at operation %u: %s.\n", peak->op,
                sc_label_text(program, peak->class->step.ops.items[peak->op].label, label,
                              sizeof(label)));
    }
    fputc('\n', stream);
    return status;
}

static enum sc_status print_peak(const struct sc_program *program, FILE *stream,
                                 struct sc_error *err)
{
    struct sc_peak peak = {0};
    SC_TRY(sc_peak_of(program, SC_DEVICE, &peak, err));
    enum sc_status status = print_alive(program, &peak, stream, err);
    sc_peak_free(&peak);
    return status;
}

static void print_remarks(const struct sc_sim_result *result, FILE *stream)
{
    if (result->added_waits > 0) {
        fprintf(stream, "Waits added so that memory suffices: %u.\n", result->added_waits);
    }
    if (!result->exact) {
        fprintf(stream, "This plan changes the mathematics of the step.\n");
    }
    for (size_t i = 0; i < result->warnings.count; i++) {
        fprintf(stream, "Warning: %s\n", result->warnings.items[i]);
    }
}

enum sc_status sc_forecast_print(const struct sc_sim_result *result,
                                 const struct sc_program *program, FILE *stream,
                                 struct sc_error *err)
{
    print_totals(result, stream);
    SC_TRY(print_breakdown(result, stream, err));
    SC_TRY(print_places(result, stream, err));
    if (program != NULL && program->classes.count > 0) {
        SC_TRY(print_peak(program, stream, err));
    }
    print_remarks(result, stream);
    return SC_OK;
}
