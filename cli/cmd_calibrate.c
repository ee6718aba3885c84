/* stepcast calibrate: a hardware profile of this machine. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "exec/calibrate.h"
#include "exec/calibrate_transport.h"
#include "exec/launch.h"
#include "reports/calibration_report.h"
#include "reports/table.h"

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Measuring", "--name", "NAME", name, "of the profile (this-machine)"),
    CLI_WHOLE("Measuring", "--cores", "N", cores, 1, 1 << 16, "cores to use (all there are)"),
    CLI_WHOLE("Measuring", "--seconds", "N", seconds, 1, 86400,
              "how long measuring may take, about (50)"),
    CLI_TEXT("Measuring", "--transport", "NAME", transport,
             "threads, mpi or sockets: what the profile's forecasts go over; measured beside\n"
             "threads, between processes that mpirun starts (threads, with mpi measured\n"
             "as well)"),
    CLI_WHOLE("Measuring", "--ranks", "N", ranks, 2, 1 << 16,
              "processes for that (as many as cores, then twice as many)"),
    CLI_FLAG("Measuring", "--tiny", tiny,
             "the smallest grid: shows that it works, its numbers mean nothing"),
    CLI_TEXT("Measuring", "--storage-dir", "DIR", storage,
             "where a file is written and read, for the disk's bandwidths (the profile's\n"
             "folder)"),
    CLI_TEXT("Output", "--out", "FILE", out,
             "the profile (NAME.json); beside it NAME.rows.json, what was measured\n"
             "(stepcast plot calibration draws it)"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else: file, errors, rows"),
    /* What this program passes to the processes that it starts. */
    CLI_TEXT("Measuring", "--measurements", "FILE", measurements, NULL),
    CLI_HELP,
    CLI_END,
};

static void show_progress(void *context, const char *what, double share)
{
    char line[128];
    snprintf(line, sizeof(line), "calibrate: %3.0f %%  %s", share * 100, what);
    cli_progress_line(context, line);
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
    if (calibration->skipped[0] != '\0') {
        printf("\nNot measured: %s\n", calibration->skipped);
    }
    printf("\n%zu operations in %.0f s; |error| median %.1f %%, worst %.1f %%; profile in %s\n",
           calibration->rows.count, calibration->seconds, calibration->median_error * 100,
           calibration->worst_error * 100, file);
    sc_calibration_print_warnings(calibration, stdout);
    return SC_OK;
}

/* ---- the command ------------------------------------------------------------------------- */

/* Beside the profile: what it was fitted to. */
static enum sc_status write_rows(const char *file, const struct sc_calibration *calibration,
                                 struct sc_error *err)
{
    char rows[PATH_MAX];
    SC_TRY(sc_calibration_rows_file(file, rows, sizeof(rows), err));
    cJSON *root = sc_calibration_to_json(file, calibration);
    enum sc_status status =
        root != NULL ? sc_json_write(root, rows, err) : sc_fail_memory(err, sizeof(rows));
    cJSON_Delete(root);
    return status;
}

/* The folder of a file; "." where its name has none. */
static void folder_of(const char *file, char *out, size_t size)
{
    const char *slash = strrchr(file, '/');
    int length = slash == NULL ? 0 : slash == file ? 1 : (int)(slash - file);
    snprintf(out, size, "%.*s", length > 0 ? length : 1, length > 0 ? file : ".");
}

static enum sc_status report(const struct cli_settings *settings, const char *file,
                             const struct sc_calibration *calibration, struct sc_error *err)
{
    SC_TRY(sc_json_write(calibration->profile, file, err));
    SC_TRY(write_rows(file, calibration, err));
    return settings->json ? cli_print_json(sc_calibration_to_json(file, calibration), err)
                          : print_text(file, calibration, err);
}

/* This program again, as processes under mpirun: with --measurements. */
static enum sc_status start(void *context, enum sc_run_transport transport, int64_t ranks,
                            const char *file, struct sc_error *err)
{
    const struct cli_settings *settings = context;
    char cores[32], seconds[32];
    const char *arguments[16] = {"stepcast",       "calibrate",
                                 "--transport",    sc_run_transport_name(transport),
                                 "--measurements", file};
    size_t count = 6;
    snprintf(cores, sizeof(cores), "%" PRId64, settings->cores);
    snprintf(seconds, sizeof(seconds), "%" PRId64, settings->seconds);
    if (settings->cores > 0) {
        arguments[count++] = "--cores";
        arguments[count++] = cores;
    }
    if (settings->seconds > 0) {
        arguments[count++] = "--seconds";
        arguments[count++] = seconds;
    }
    if (settings->tiny) {
        arguments[count++] = "--tiny";
    }
    return sc_launch_mpirun_wait(ranks, (char *const *)arguments, err);
}

/* One of those processes. */
static enum sc_status take_measurements(const struct cli_settings *settings,
                                        const struct sc_calibrate_options *options,
                                        struct sc_error *err)
{
    struct sc_transport_task task;
    struct sc_grid grid;
    if (options->process == NULL) {
        return sc_fail(err, SC_USAGE, "--measurements: found no mpirun around this process");
    }
    sc_calibrate_transport_task(options, options->transport, &task);
    SC_TRY(sc_calibrate_transport(&task, options->process, &grid, err));
    enum sc_status status = options->process->index == 0
                                ? sc_calibrate_transport_write(&grid, settings->measurements, err)
                                : SC_OK;
    sc_grid_free(&grid);
    return sc_process_agree(options->process, status, err);
}

static enum sc_status choose_transport(const struct cli_settings *settings,
                                       struct sc_calibrate_options *out, struct sc_error *err)
{
    bool processes = sc_launched_by_mpi();
    out->transport = processes ? SC_TRANSPORT_MPI : SC_TRANSPORT_THREADS;
    if (settings->transport != NULL) {
        SC_TRY(sc_run_transport_find(settings->transport, "--transport", &out->transport, err));
    } else if (!processes) {
        out->optional[SC_TRANSPORT_MPI] = true;
    }
    if (processes && out->transport == SC_TRANSPORT_THREADS) {
        return sc_fail(err, SC_USAGE, "--transport threads: the ranks are processes of MPI here");
    }
    return SC_OK;
}

static enum sc_status calibrate(const struct cli_settings *settings, const char *file,
                                struct sc_calibrate_options *options, struct sc_error *err)
{
    struct sc_calibration calibration = {0};
    struct cli_progress progress;
    options->context = &progress;
    cli_progress_begin(&progress);
    enum sc_status status = sc_calibrate(options, &calibration, err);
    cli_progress_end(&progress);
    if (status != SC_OK) {
        return status;
    }
    if (calibration.root) {
        status = report(settings, file, &calibration, err);
    }
    sc_calibration_free(&calibration);
    return status;
}

static enum sc_status check_and_calibrate(const struct cli_settings *settings,
                                          struct sc_process *process, struct sc_error *err)
{
    char file[SC_NAME_SIZE + 8];
    const char *name = settings->name != NULL ? settings->name : "this-machine";
    if (strlen(name) >= SC_NAME_SIZE || strchr(name, '/') != NULL) {
        return sc_fail(err, SC_USAGE, "--name: found \"%s\", expected a name without slashes",
                       name);
    }
    snprintf(file, sizeof(file), "%s.json", name);
    const char *out = settings->out != NULL ? settings->out : file;
    char folder[PATH_MAX];
    folder_of(out, folder, sizeof(folder));
    struct sc_calibrate_options options = {
        .name = name,
        .cores = settings->cores,
        .ranks = settings->ranks,
        .seconds = (double)settings->seconds,
        .storage_folder = settings->storage != NULL ? settings->storage : folder,
        .tiny = settings->tiny,
        .process = process->count > 1 ? process : NULL,
        .progress = show_progress,
        .start = start,
        .start_context = (void *)(uintptr_t)settings};
    SC_TRY(choose_transport(settings, &options, err));
    if (settings->measurements != NULL) {
        return take_measurements(settings, &options, err);
    }
    SC_TRY(sc_process_agree(process, process->index == 0 ? sc_file_check(out, err) : SC_OK, err));
    return calibrate(settings, out, &options, err);
}

/* Under mpirun all processes know of a failure, and one says it. */
static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    struct sc_process process;
    sc_process_alone(&process);
    if (sc_launched_by_mpi()) {
        SC_TRY(sc_process_mpi(&process, err));
    }
    enum sc_status status = check_and_calibrate(settings, &process, err);
    if (status != SC_OK && sc_launched_by_mpi()) {
        if (process.index == 0) {
            fprintf(stderr, "%s\n", err->text);
        }
        err->text[0] = '\0';
    }
    sc_launch_end();
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
