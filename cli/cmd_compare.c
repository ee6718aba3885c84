/* stepcast compare: forecasts against measurements. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "reports/chrome_trace.h"
#include "reports/compare.h"
#include "reports/plot.h"

static const struct cli_option OPTIONS[] = {
    CLI_SHARE("Answer", "--tolerance", "SHARE", tolerance,
              "exit code 1 where a step time's |error| is larger (0.1 is 10 %; else never)"),
    CLI_TEXT(
        "Answer", "--groups", "FILE", groups,
        "which plans compete: {\"plans\": [{\"name\", \"group\"}]}; regret and order are asked\n"
        "within a group (else all plans are one)"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else"),
    CLI_FLAG("Output", "--csv", csv, "the table by kind (one pair) or by plan (several) as CSV"),
    CLI_TEXT("Output", "--figures", "DIR", figures,
             "draw step times, kinds and timelines there: PNG, SVG and their data"),
    CLI_TEXT("Output", "--timeline", "FILE", timeline,
             "all traces for a viewer (chrome://tracing, ui.perfetto.dev)"),
    CLI_HELP,
    CLI_END,
};

/* A forecast and its measurements, one a round. */
struct pair {
    const struct sc_trace *predicted;
    SC_ARRAY(const struct sc_trace *) rounds;
    const struct sc_trace *measured; /* the round to draw: that of median step time */
};

struct traces {
    struct sc_trace *items;
    size_t count;
    struct pair *pairs;
    size_t pair_count;
};

static void free_traces(struct traces *traces)
{
    for (size_t i = 0; i < traces->count; i++) {
        sc_trace_free(&traces->items[i]);
    }
    for (size_t i = 0; i < traces->pair_count; i++) {
        sc_array_free(&traces->pairs[i].rounds);
    }
    free(traces->items);
    free(traces->pairs);
}

static enum sc_status read_traces(const struct cli_settings *settings, struct traces *out,
                                  struct sc_error *err)
{
    size_t count = settings->operands.count;
    out->items = calloc(count, sizeof(*out->items));
    out->pairs = calloc(count, sizeof(*out->pairs));
    if (out->items == NULL || out->pairs == NULL) {
        return sc_fail_memory(err, count * sizeof(*out->items));
    }
    for (; out->count < count; out->count++) {
        sc_trace_init(&out->items[out->count]);
        SC_TRY(sc_trace_read(settings->operands.items[out->count], &out->items[out->count], err));
    }
    return SC_OK;
}

static enum sc_status add_round(struct pair *pair, const struct sc_trace *measured,
                                struct sc_error *err)
{
    const struct sc_trace **round = sc_array_push(&pair->rounds);
    if (round == NULL) {
        return sc_fail_memory(err, sizeof(*round));
    }
    *round = measured;
    return SC_OK;
}

/* The forecast that a measurement belongs to: of the same program, else of the same plan; of
 * several the last one before it among the files, else the first. NULL: none. */
static struct pair *partner(const struct traces *traces, const struct sc_trace *measured)
{
    struct pair *best = NULL;
    bool best_same = false;
    for (size_t i = 0; i < traces->pair_count; i++) {
        struct pair *pair = &traces->pairs[i];
        if (strcmp(pair->predicted->plan, measured->plan) != 0) {
            continue;
        }
        bool same = strcmp(pair->predicted->program, measured->program) == 0;
        bool nearer = pair->predicted < measured && same == best_same;
        if (best == NULL || (same && !best_same) || nearer) {
            best = pair;
            best_same = same;
        }
    }
    return best;
}

static int by_step_time(const void *a, const void *b)
{
    double left = (*(const struct sc_trace *const *)a)->period_us;
    double right = (*(const struct sc_trace *const *)b)->period_us;
    return (left > right) - (left < right);
}

static void choose_rounds(struct traces *traces)
{
    for (size_t i = 0; i < traces->pair_count; i++) {
        struct pair *pair = &traces->pairs[i];
        qsort(pair->rounds.items, pair->rounds.count, sizeof(*pair->rounds.items), by_step_time);
        pair->measured = pair->rounds.items[(pair->rounds.count - 1) / 2];
    }
}

static enum sc_status fail_alone(const struct cli_settings *settings, const struct traces *traces,
                                 const struct sc_trace *trace, struct sc_error *err)
{
    return sc_fail(err, SC_BAD_INPUT,
                   "%s: plan: found \"%s\", expected a plan with a %s trace among the files",
                   settings->operands.items[trace - traces->items], trace->plan,
                   trace->kind == SC_PREDICTED ? "measured" : "predicted");
}

/* Every forecast is a pair; every measurement goes to one. */
static enum sc_status join_rounds(const struct cli_settings *settings, struct traces *traces,
                                  struct sc_error *err)
{
    for (size_t i = 0; i < traces->count; i++) {
        if (traces->items[i].kind == SC_PREDICTED) {
            traces->pairs[traces->pair_count++].predicted = &traces->items[i];
        }
    }
    for (size_t i = 0; i < traces->count; i++) {
        if (traces->items[i].kind != SC_MEASURED) {
            continue;
        }
        struct pair *pair = partner(traces, &traces->items[i]);
        if (pair == NULL) {
            return fail_alone(settings, traces, &traces->items[i], err);
        }
        SC_TRY(add_round(pair, &traces->items[i], err));
    }
    for (size_t i = 0; i < traces->pair_count; i++) {
        if (traces->pairs[i].rounds.count == 0) {
            return fail_alone(settings, traces, traces->pairs[i].predicted, err);
        }
    }
    return SC_OK;
}

/* Two traces are a pair as they stand; of more, each forecast needs its measurements. */
static enum sc_status find_pairs(const struct cli_settings *settings, struct traces *traces,
                                 struct sc_error *err)
{
    if (traces->count == 2) {
        traces->pairs[traces->pair_count++].predicted = &traces->items[0];
        SC_TRY(add_round(&traces->pairs[0], &traces->items[1], err));
    } else {
        SC_TRY(join_rounds(settings, traces, err));
    }
    choose_rounds(traces);
    return SC_OK;
}

/* ---- figures ----------------------------------------------------------------------------- */

/* DIR/NAME.EXTENSION; the name may hold a plan's name, whose slashes would be folders. */
static enum sc_status figure_path(const char *directory, const char *name, const char *extension,
                                  char out[PATH_MAX], struct sc_error *err)
{
    int length = snprintf(out, PATH_MAX, "%s/%s.%s", directory, name, extension);
    if (length < 0 || length >= PATH_MAX) {
        return sc_fail(err, SC_USAGE, "--figures: the path of %s.%s is too long", name, extension);
    }
    for (char *c = out + strlen(directory) + 1; *c != '\0'; c++) {
        *c = *c == '/' ? '_' : *c;
    }
    return SC_OK;
}

static enum sc_status draw(const char *directory, const char *script, const char *name,
                           const char *data, struct sc_error *err)
{
    static const char *const formats[] = {"png", "svg"};
    char out[PATH_MAX];
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        SC_TRY(figure_path(directory, name, formats[i], out, err));
        SC_TRY(sc_plot_draw(script, data, out, err));
    }
    return SC_OK;
}

static enum sc_status draw_timeline(const char *directory, const char *name,
                                    const struct pair *pair, struct sc_plot_window window,
                                    struct sc_error *err)
{
    const struct sc_trace *traces[] = {pair->predicted, pair->measured};
    char data[PATH_MAX];
    SC_TRY(figure_path(directory, name, "dat", data, err));
    SC_TRY(sc_plot_timelines_data(traces, 2, window, data, err));
    return draw(directory, "timelines", name, data, err);
}

/* The whole step, and a stretch of it where a step has too many operations to tell apart. */
static enum sc_status draw_timelines(const char *directory, const struct traces *traces,
                                     struct sc_error *err)
{
    char name[SC_NAME_SIZE + 32];
    for (size_t i = 0; i < traces->pair_count; i++) {
        const struct pair *pair = &traces->pairs[i];
        const char *plan = traces->pair_count > 1 ? pair->predicted->plan : "";
        const char *separator = traces->pair_count > 1 ? "_" : "";
        struct sc_plot_window all = {0, 0}, detail = sc_plot_detail(pair->predicted);
        snprintf(name, sizeof(name), "timelines%s%s", separator, plan);
        SC_TRY(draw_timeline(directory, name, pair, all, err));
        if (detail.to_us > detail.from_us) {
            snprintf(name, sizeof(name), "timelines_detail%s%s", separator, plan);
            SC_TRY(draw_timeline(directory, name, pair, detail, err));
        }
    }
    return SC_OK;
}

static enum sc_status draw_figures(const char *directory, const struct sc_comparison *comparison,
                                   const struct traces *traces, struct sc_error *err)
{
    char data[PATH_MAX];
    for (size_t i = 0; i < traces->count; i++) {
        if (traces->items[i].rows.count == 0) {
            return sc_fail(err, SC_BAD_INPUT, "%s: rows: found none, expected operations to draw",
                           traces->items[i].plan);
        }
    }
    SC_TRY(sc_make_directory(directory, err));
    SC_TRY(figure_path(directory, "steps", "dat", data, err));
    SC_TRY(sc_plot_steps_data(comparison, data, err));
    SC_TRY(draw(directory, "steps", "steps", data, err));
    SC_TRY(figure_path(directory, "kinds", "dat", data, err));
    SC_TRY(sc_plot_kinds_data(comparison, data, err));
    SC_TRY(draw(directory, "kinds", "kinds", data, err));
    return draw_timelines(directory, traces, err);
}

static enum sc_status write_timeline(const char *file, const struct traces *traces,
                                     struct sc_error *err)
{
    size_t count = 2 * traces->pair_count;
    const struct sc_trace **list = calloc(count, sizeof(const struct sc_trace *));
    if (list == NULL) {
        return sc_fail_memory(err, count * sizeof(*list));
    }
    for (size_t i = 0; i < traces->pair_count; i++) {
        list[2 * i] = traces->pairs[i].predicted;
        list[2 * i + 1] = traces->pairs[i].measured;
    }
    enum sc_status status = sc_chrome_trace_write(list, count, file, err);
    free(list);
    return status;
}

/* ---- the command ------------------------------------------------------------------------- */

static enum sc_status print(const struct cli_settings *settings,
                            const struct sc_comparison *comparison, struct sc_error *err)
{
    if (settings->json) {
        return cli_print_json(sc_comparison_to_json(comparison), err);
    }
    return settings->csv ? sc_comparison_print_csv(comparison, stdout, err)
                         : sc_comparison_print(comparison, stdout, err);
}

static enum sc_status judge(const struct cli_settings *settings,
                            const struct sc_comparison *comparison, struct sc_error *err)
{
    if (settings->tolerance < 0 || comparison->max_abs_error <= settings->tolerance) {
        return SC_OK;
    }
    if (isnan(comparison->max_abs_error)) {
        return sc_fail(err, SC_NO, "nothing was measured, so no error is inside the tolerance");
    }
    return sc_fail(err, SC_NO, "the largest error of a step time is %.1f %%, the tolerance %.1f %%",
                   comparison->max_abs_error * 100, settings->tolerance * 100);
}

static enum sc_status label(const char *file, struct sc_comparison *comparison,
                            struct sc_error *err)
{
    struct sc_plan_groups groups;
    SC_TRY(sc_plan_groups_read(file, &groups, err));
    enum sc_status status = sc_comparison_label(comparison, &groups, err);
    sc_plan_groups_free(&groups);
    return status;
}

static enum sc_status compare(const struct cli_settings *settings, struct traces *traces,
                              struct sc_comparison *comparison, struct sc_error *err)
{
    SC_TRY(read_traces(settings, traces, err));
    SC_TRY(find_pairs(settings, traces, err));
    for (size_t i = 0; i < traces->pair_count; i++) {
        const struct pair *pair = &traces->pairs[i];
        SC_TRY(sc_comparison_add_rounds(comparison, pair->predicted, pair->rounds.items,
                                        pair->rounds.count, err));
    }
    if (settings->groups != NULL) {
        SC_TRY(label(settings->groups, comparison, err));
    }
    SC_TRY(sc_comparison_finish(comparison, err));
    if (settings->timeline != NULL) {
        SC_TRY(write_timeline(settings->timeline, traces, err));
    }
    if (settings->figures != NULL) {
        SC_TRY(draw_figures(settings->figures, comparison, traces, err));
    }
    SC_TRY(print(settings, comparison, err));
    return judge(settings, comparison, err);
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    if (settings->json && settings->csv) {
        return sc_fail(err, SC_USAGE, "--csv: found --json as well, expected one of the two");
    }
    struct traces traces = {0};
    struct sc_comparison comparison;
    sc_comparison_init(&comparison);
    enum sc_status status = compare(settings, &traces, &comparison, err);
    sc_comparison_free(&comparison);
    free_traces(&traces);
    return status;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .operands = "TRACE TRACE...",
    .summary = "forecast against measurement: tables, figures, errors by kind",
    .description =
        "Compares traces in pairs: forecast first, measurement second (or any two traces). Of more "
        "than\ntwo files each forecast is compared with the measurements of its plan, their median "
        "where there\nare several. Variants of a plan are told apart by name (--set name=NAME of "
        "sim and run). Where\nboth come from one program, operation by operation; else step time "
        "and kinds only, and it is\nsaid. error = predicted / measured - 1.",
    .examples = "  stepcast sim PLAN --trace forecast.json\n"
                "  stepcast run PLAN --trace measured.json\n"
                "  stepcast compare forecast.json measured.json --figures figures\n",
    .operands_least = 2,
    .operands_most = SIZE_MAX,
    .options = OPTIONS,
    .run = run,
};
