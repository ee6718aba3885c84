/* stepcast plot: figures of what other commands left in files. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "reports/calibration_plot.h"
#include "reports/plot.h"

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Output", "--out", "DIR", out, "where the figures and their data go (.)"),
    CLI_HELP,
    CLI_END,
};

static enum sc_status figure_path(const char *directory, const char *name, const char *extension,
                                  char out[PATH_MAX], struct sc_error *err)
{
    int length = snprintf(out, PATH_MAX, "%s/%s.%s", directory, name, extension);
    return length >= 0 && length < PATH_MAX
               ? SC_OK
               : sc_fail(err, SC_USAGE, "--out: the path of %s.%s is too long", name, extension);
}

static enum sc_status draw(const char *directory, const char *name, const char *data,
                           struct sc_error *err)
{
    static const char *const formats[] = {"png", "svg"};
    char out[PATH_MAX];
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        SC_TRY(figure_path(directory, name, formats[i], out, err));
        SC_TRY(sc_plot_draw(name, data, out, err));
    }
    return SC_OK;
}

static enum sc_status plot_calibration(const char *file, const char *directory,
                                       struct sc_error *err)
{
    struct sc_calibration_rows rows;
    char data[PATH_MAX];
    enum sc_status status = sc_calibration_rows_read(file, &rows, err);
    if (status == SC_OK) {
        status = sc_make_directory(directory, err);
    }
    if (status == SC_OK) {
        status = figure_path(directory, "calibration", "dat", data, err);
    }
    if (status == SC_OK) {
        status = sc_plot_calibration_data(&rows, data, err);
    }
    sc_calibration_rows_free(&rows);
    return status == SC_OK ? draw(directory, "calibration", data, err) : status;
}

struct figure {
    const char *name;
    enum sc_status (*plot)(const char *file, const char *directory, struct sc_error *err);
};
static const struct figure FIGURES[] = {{"calibration", plot_calibration}};

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    const char *name = settings->operands.items[0];
    const char *directory = settings->out != NULL ? settings->out : ".";
    for (size_t i = 0; i < sizeof(FIGURES) / sizeof(FIGURES[0]); i++) {
        if (strcmp(FIGURES[i].name, name) == 0) {
            return FIGURES[i].plot(settings->operands.items[1], directory, err);
        }
    }
    return sc_fail(err, SC_USAGE, "stepcast plot: found \"%s\", expected calibration", name);
}

const struct cli_command cli_plot = {
    .name = "plot",
    .operands = "calibration FILE",
    .summary = "a figure of what calibrate measured and fitted",
    .description =
        "Draws what `calibrate` measured beside what its profile says: rates of products and of "
        "memory-bound\noperations, times of collectives, and how far off the profile is. FILE is "
        "the profile (NAME.json, with\nNAME.rows.json beside it), that file of rows, or what "
        "`calibrate --json` printed. PNG, SVG and their data;\nneeds gnuplot.",
    .examples = "  stepcast calibrate --name my-laptop\n"
                "  stepcast plot calibration my-laptop.json --out figures\n",
    .operands_least = 2,
    .operands_most = 2,
    .options = OPTIONS,
    .run = run,
};
