/* stepcast calibrate: a hardware profile of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "exec/calibrate.h"
#include "reports/table.h"

#define NOISY_SPREAD 0.1

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Measuring", "--name", "NAME", name, "of the profile (this-machine)"),
    CLI_WHOLE("Measuring", "--cores", "N", cores, 1, 1 << 16, "cores to use (all there are)"),
    CLI_WHOLE("Measuring", "--seconds", "N", seconds, 1, 86400,
              "how long measuring may take, about (30)"),
    CLI_FLAG("Measuring", "--tiny", tiny,
             "the smallest grid: shows that it works, its numbers mean nothing"),
    CLI_TEXT("Output", "--out", "FILE", out, "the profile (NAME.json)"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else: file, errors, rows"),
    CLI_HELP,
    CLI_END,
};

static void show_progress(void *context, const char *what, double share)
{
    char line[128];
    snprintf(line, sizeof(line), "calibrate: %3.0f %%  %s", share * 100, what);
    cli_progress_line(context, line);
}

static enum sc_status print_json(const char *file, const struct sc_calibration *calibration,
                                 struct sc_error *err)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "stepcast.result/1");
    cJSON_AddStringToObject(root, "file", file);
    cJSON_AddNumberToObject(root, "median_abs_error", calibration->median_error);
    cJSON_AddNumberToObject(root, "max_abs_error", calibration->worst_error);
    cJSON_AddNumberToObject(root, "spread", calibration->spread);
    cJSON_AddNumberToObject(root, "seconds", calibration->seconds);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < calibration->rows.count; i++) {
        const struct sc_calibration_row *row = &calibration->rows.items[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", row->kind);
        cJSON_AddStringToObject(item, "shape", row->shape);
        cJSON_AddNumberToObject(item, "ranks", (double)row->ranks);
        cJSON_AddNumberToObject(item, "cores", (double)row->cores);
        cJSON_AddNumberToObject(item, "measured_s", row->measured_s);
        cJSON_AddNumberToObject(item, "fitted_s", row->fitted_s);
        cJSON_AddNumberToObject(item, "spread", row->spread);
        cJSON_AddItemToArray(rows, item);
    }
    return cli_print_json(root, err);
}

/* ---- the table by kind ------------------------------------------------------------------- */

static double row_error(const struct sc_calibration_row *row)
{
    double error = row->fitted_s / row->measured_s - 1;
    return error < 0 ? -error : error;
}

/* Where rows are sorted by kind, error: the rows of one kind stand together, in order. */
static int compare_rows(const void *a, const void *b)
{
    const struct sc_calibration_row *left = a, *right = b;
    int order = strcmp(left->kind, right->kind);
    double x = row_error(left), y = row_error(right);
    return order != 0 ? order : (x > y) - (x < y);
}

static void fill_kinds(struct sc_table *table, const struct sc_calibration_row *rows, size_t count)
{
    for (size_t first = 0, end = 0; first < count; first = end) {
        while (end < count && strcmp(rows[end].kind, rows[first].kind) == 0) {
            end++;
        }
        sc_table_cell(table, "%s", rows[first].kind);
        sc_table_cell(table, "%zu", end - first);
        sc_table_cell(table, "%.1f", row_error(&rows[first + (end - first) / 2]) * 100);
        sc_table_cell(table, "%.1f", row_error(&rows[end - 1]) * 100);
    }
}

static enum sc_status print_kinds(const struct sc_calibration *calibration, struct sc_error *err)
{
    static const struct sc_table_column columns[] = {{"kind", SC_LEFT},
                                                     {"measured", SC_RIGHT},
                                                     {"median |error| %", SC_RIGHT},
                                                     {"worst %", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    size_t count = calibration->rows.count;
    struct sc_calibration_row *rows = calloc(count + 1, sizeof(*rows));
    if (rows == NULL) {
        return sc_fail_memory(err, (count + 1) * sizeof(*rows));
    }
    memcpy(rows, calibration->rows.items, count * sizeof(*rows));
    qsort(rows, count, sizeof(*rows), compare_rows);
    struct sc_table table;
    sc_table_init(&table, columns);
    fill_kinds(&table, rows, count);
    enum sc_status status = sc_table_print(&table, 2, stdout, err);
    sc_table_free(&table);
    free(rows);
    return status;
}

static enum sc_status print_text(const char *file, const struct sc_calibration *calibration,
                                 struct sc_error *err)
{
    puts("How well the profile repeats what was measured:");
    SC_TRY(print_kinds(calibration, err));
    printf("\n%zu operations in %.0f s; |error| median %.1f %%, worst %.1f %%; profile in %s\n",
           calibration->rows.count, calibration->seconds, calibration->median_error * 100,
           calibration->worst_error * 100, file);
    if (calibration->spread > NOISY_SPREAD) {
        printf("Warning: times spread by %.0f %%: this machine was not quiet.\n",
               calibration->spread * 100);
    }
    return SC_OK;
}

/* ---- the command ------------------------------------------------------------------------- */

static enum sc_status report(const struct cli_settings *settings, const char *file,
                             const struct sc_calibration *calibration, struct sc_error *err)
{
    SC_TRY(sc_json_write(calibration->profile, file, err));
    return settings->json ? print_json(file, calibration, err) : print_text(file, calibration, err);
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    char file[SC_NAME_SIZE + 8];
    const char *name = settings->name != NULL ? settings->name : "this-machine";
    if (strlen(name) >= SC_NAME_SIZE || strchr(name, '/') != NULL) {
        return sc_fail(err, SC_USAGE, "--name: found \"%s\", expected a name without slashes",
                       name);
    }
    snprintf(file, sizeof(file), "%s.json", name);
    SC_TRY(sc_file_check(settings->out != NULL ? settings->out : file, err));
    struct sc_calibration calibration = {0};
    struct cli_progress progress;
    struct sc_calibrate_options options = {.name = name,
                                           .cores = settings->cores,
                                           .seconds = (double)settings->seconds,
                                           .tiny = settings->tiny,
                                           .progress = show_progress,
                                           .context = &progress};
    cli_progress_begin(&progress);
    enum sc_status status = sc_calibrate(&options, &calibration, err);
    cli_progress_end(&progress);
    if (status == SC_OK) {
        status = report(settings, settings->out != NULL ? settings->out : file, &calibration, err);
        sc_calibration_free(&calibration);
    }
    return status;
}

const struct cli_command cli_calibrate = {
    .name = "calibrate",
    .operands = "",
    .summary = "measure this machine: a hardware profile",
    .description =
        "Measures single operations on this machine and fits a hardware profile to them, with how "
        "well it\nrepeats the measurements. Close other programs first.",
    .examples = "  stepcast calibrate --name my-laptop\n"
                "  stepcast sim host_tiny-gpt_2ranks_tp2 --hw my-laptop.json\n",
    .options = OPTIONS,
    .run = run,
};
