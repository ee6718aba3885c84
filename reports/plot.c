/* Data files of the figures, and running gnuplot on them. */
#include "reports/plot.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/data_path.h"
#include "base/file.h"
#include "base/units.h"
#include "reports/kind_family.h"

#define US_PER_MS 1e3
#define LEAST_SHARE 1e-3 /* of the time: what a bar can show */
#define DETAIL_OPERATIONS 40
#define FEW_OPERATIONS 200

extern char **environ;

/* ---- data -------------------------------------------------------------------------------- */

/* A quoted text for gnuplot: no quote or backslash of its own, no markup to mean. */
static void write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        fputc(c == '"' || c == '\\' || c < 0x20 ? '\'' : c, stream);
    }
    fputc('"', stream);
}

static void write_percent(FILE *stream, double share)
{
    if (isfinite(share)) {
        fprintf(stream, " %.4f", share * 100);
    } else {
        fputs(" NaN", stream);
    }
}

enum sc_status sc_plot_steps_data(const struct sc_comparison *comparison, const char *file,
                                  struct sc_error *err)
{
    struct sc_file_writer writer;
    SC_TRY(sc_file_open(file, &writer, err));
    fputs("# plan predicted_ms measured_ms error_percent\n", writer.stream);
    for (size_t i = 0; i < comparison->plans.count; i++) {
        const struct sc_compared_plan *plan = &comparison->plans.items[i];
        write_text(writer.stream, plan->plan);
        fprintf(writer.stream, " %.6f %.6f", plan->predicted_s * SC_MS_PER_S,
                plan->measured_s * SC_MS_PER_S);
        write_percent(writer.stream, plan->error);
        fputc('\n', writer.stream);
    }
    return sc_file_commit(&writer, err);
}

static double longer(const struct sc_compared_kind *kind)
{
    return fmax(kind->predicted_s, kind->measured_s);
}

/* The kind with the most time among those not taken yet; SC_OP_KIND_COUNT when none is left. */
static size_t longest_kind(const struct sc_comparison *comparison, const bool *taken)
{
    size_t best = SC_OP_KIND_COUNT;
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        if (!taken[i] && longer(&comparison->kinds[i]) > 0 &&
            (best == SC_OP_KIND_COUNT ||
             longer(&comparison->kinds[i]) > longer(&comparison->kinds[best]))) {
            best = i;
        }
    }
    return best;
}

enum sc_status sc_plot_kinds_data(const struct sc_comparison *comparison, const char *file,
                                  struct sc_error *err)
{
    struct sc_file_writer writer;
    SC_TRY(sc_file_open(file, &writer, err));
    fputs("# kind predicted_ms measured_ms error_percent median_abs_error_percent\n",
          writer.stream);
    bool taken[SC_OP_KIND_COUNT] = {false};
    double total = 0;
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        total += longer(&comparison->kinds[i]);
    }
    for (size_t i = longest_kind(comparison, taken); i < SC_OP_KIND_COUNT;
         i = longest_kind(comparison, taken)) {
        taken[i] = true;
        const struct sc_compared_kind *kind = &comparison->kinds[i];
        if (longer(kind) < LEAST_SHARE * total) {
            continue;
        }
        write_text(writer.stream, sc_op_kind_name((enum sc_op_kind)i));
        fprintf(writer.stream, " %.6f %.6f", kind->predicted_s * SC_MS_PER_S,
                kind->measured_s * SC_MS_PER_S);
        write_percent(writer.stream, kind->error);
        write_percent(writer.stream, kind->median_abs_error);
        fputc('\n', writer.stream);
    }
    return sc_file_commit(&writer, err);
}

/* Where the lanes of a trace lie: `lane` of (class, stream), -1 where no operation is. */
struct lanes {
    int *lane;
    int count;
};

static enum sc_status find_lanes(const struct sc_trace *trace, struct lanes *out,
                                 struct sc_error *err)
{
    size_t slots = trace->classes.count * trace->streams.count;
    out->lane = calloc(slots + 1, sizeof(*out->lane));
    out->count = 0;
    if (out->lane == NULL) {
        return sc_fail_memory(err, slots * sizeof(*out->lane));
    }
    for (size_t i = 0; i < trace->rows.count; i++) {
        const struct sc_trace_row *row = &trace->rows.items[i];
        if (row->rank < 0) {
            out->lane[row->class_index * trace->streams.count + row->stream] = 1;
        }
    }
    for (size_t i = 0; i < slots; i++) {
        out->lane[i] = out->lane[i] ? out->count++ : -1;
    }
    return SC_OK;
}

static void write_lane_names(FILE *stream, const struct sc_trace *trace, const struct lanes *lanes,
                             double top)
{
    for (size_t c = 0; c < trace->classes.count; c++) {
        for (size_t s = 0; s < trace->streams.count; s++) {
            int lane = lanes->lane[c * trace->streams.count + s];
            if (lane < 0) {
                continue;
            }
            char text[256];
            bool one = trace->classes.count == 1;
            snprintf(text, sizeof(text), "%s%s%s", one ? "" : trace->classes.items[c].name,
                     one ? "" : " / ", trace->streams.items[s]);
            fprintf(stream, "%.2f ", top - lane);
            write_text(stream, text);
            fputc('\n', stream);
        }
    }
}

/* One operation, cut at the window. */
static void write_box(FILE *stream, struct sc_plot_window window, double start_us, double end_us,
                      double middle, double half, int family, const char *kind)
{
    if (window.to_us > window.from_us) {
        start_us = fmax(start_us, window.from_us);
        end_us = fmin(end_us, window.to_us);
    }
    if (end_us < start_us) {
        return;
    }
    fprintf(stream, "%.6f %.6f %.3f %.3f %d ", start_us / US_PER_MS, end_us / US_PER_MS,
            middle - half, middle + half, family);
    write_text(stream, kind);
    fputc('\n', stream);
}

/* What a stream does during this step may be work for a later one (reading ahead); the row tells of
 * this step's, one or more periods earlier. In a cycle both lie a whole number of periods apart. */
static double into_step_us(const struct sc_trace *trace, const struct sc_trace_row *row)
{
    bool ahead = row->end_us <= 0 && trace->period_us > 0;
    return ahead ? (floor(-row->end_us / trace->period_us) + 1) * trace->period_us : 0;
}

/* Waiting for late ranks is a thin line, so that the box is the transfer. */
static void write_boxes(FILE *stream, struct sc_plot_window window, const struct sc_trace *trace,
                        const struct lanes *lanes, double top)
{
    for (size_t i = 0; i < trace->rows.count; i++) {
        const struct sc_trace_row *row = &trace->rows.items[i];
        if (row->rank >= 0) {
            continue;
        }
        double middle = top - lanes->lane[row->class_index * trace->streams.count + row->stream];
        int family = (int)sc_kind_family_of((enum sc_op_kind)row->kind);
        double shift = into_step_us(trace, row), start = row->start_us + shift;
        if (!isnan(row->transfer_us) && row->transfer_us > row->start_us) {
            write_box(stream, window, start, row->transfer_us + shift, middle, 0.06, family, "");
            start = row->transfer_us + shift;
        }
        write_box(stream, window, start, row->end_us + shift, middle, 0.4, family,
                  sc_op_kind_name((enum sc_op_kind)row->kind));
    }
}

static void write_heading(FILE *stream, const struct sc_trace *trace, double y)
{
    char period[64], text[512];
    sc_print_seconds(trace->period_us / SC_US_PER_S, period, sizeof(period));
    snprintf(text, sizeof(text), "%s: %s, %s a step",
             trace->kind == SC_PREDICTED ? "Predicted" : "Measured", trace->plan, period);
    fprintf(stream, "%.2f ", y);
    write_text(stream, text);
    fputc('\n', stream);
}

/* One of the three blocks for every trace, from the top (y = 0) down. */
static void write_block(FILE *stream, struct sc_plot_window window,
                        const struct sc_trace *const *traces, const struct lanes *lanes,
                        size_t count, int block)
{
    double top = 0;
    for (size_t i = 0; i < count; i++) {
        if (block == 0) {
            write_heading(stream, traces[i], top);
        } else if (block == 1) {
            write_lane_names(stream, traces[i], &lanes[i], top - 1);
        } else {
            write_boxes(stream, window, traces[i], &lanes[i], top - 1);
        }
        top -= lanes[i].count + 1.5;
    }
}

enum sc_status sc_plot_timelines_data(const struct sc_trace *const *traces, size_t count,
                                      struct sc_plot_window window, const char *file,
                                      struct sc_error *err)
{
    struct lanes *lanes = calloc(count + 1, sizeof(*lanes));
    if (lanes == NULL) {
        return sc_fail_memory(err, (count + 1) * sizeof(*lanes));
    }
    enum sc_status status = SC_OK;
    struct sc_file_writer writer;
    for (size_t i = 0; i < count && status == SC_OK; i++) {
        status = find_lanes(traces[i], &lanes[i], err);
    }
    if (status == SC_OK && (status = sc_file_open(file, &writer, err)) == SC_OK) {
        for (int block = 0; block < 3; block++) {
            fputs(block > 0 ? "\n\n" : "", writer.stream);
            write_block(writer.stream, window, traces, lanes, count, block);
        }
        status = sc_file_commit(&writer, err);
    }
    for (size_t i = 0; i < count; i++) {
        free(lanes[i].lane);
    }
    free(lanes);
    return status;
}

/* The n-th operation of class 0 on the anchor stream; NULL when there are fewer. */
static const struct sc_trace_row *anchor_row(const struct sc_trace *trace, size_t n)
{
    for (size_t i = 0; i < trace->rows.count; i++) {
        const struct sc_trace_row *row = &trace->rows.items[i];
        if (row->rank < 0 && row->class_index == 0 && row->stream == trace->anchor && n-- == 0) {
            return row;
        }
    }
    return NULL;
}

struct sc_plot_window sc_plot_detail(const struct sc_trace *trace)
{
    struct sc_plot_window all = {0, 0};
    size_t first = trace->rows.count / 8;
    const struct sc_trace_row *from = anchor_row(trace, first);
    const struct sc_trace_row *to = anchor_row(trace, first + DETAIL_OPERATIONS);
    if (trace->rows.count < FEW_OPERATIONS || from == NULL || to == NULL) {
        return all;
    }
    return (struct sc_plot_window){from->start_us, to->start_us};
}

/* ---- gnuplot ----------------------------------------------------------------------------- */

static const char *format_of(const char *out)
{
    const char *dot = strrchr(out, '.');
    if (dot != NULL && (strcmp(dot, ".png") == 0 || strcmp(dot, ".svg") == 0)) {
        return dot + 1;
    }
    return NULL;
}

/* The complaint is the last line that is not blank: warnings come before it. */
static void last_line(int descriptor, char *out, size_t size)
{
    char text[4096];
    size_t used = 0;
    ssize_t got;
    while ((got = read(descriptor, text + used, sizeof(text) - 1 - used)) > 0) {
        used += (size_t)got;
        if (used ==
            sizeof(text) - 1) { /* keeps the end, and keeps reading: gnuplot must not block */
            used /= 2;
            memmove(text, text + sizeof(text) - 1 - used, used);
        }
    }
    text[used] = '\0';
    const char *best = "";
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (strspn(line, " \t^") != strlen(line)) {
            best = line;
        }
    }
    snprintf(out, size, "%s", best);
}

static enum sc_status run_gnuplot(char *const *arguments, char *said, size_t size,
                                  struct sc_error *err)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return sc_fail(err, SC_MACHINE, "gnuplot: no pipe: %s", strerror(errno));
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    pid_t child = 0;
    int failed = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed != 0) {
        close(ends[0]);
        return sc_fail(err, SC_MACHINE,
                       "gnuplot could not be started (%s): figures need gnuplot in the PATH; the "
                       "data are in %s",
                       strerror(failed), arguments[3]);
    }
    last_line(ends[0], said, size);
    close(ends[0]);
    int state = 0;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        return sc_fail(err, SC_MACHINE, "gnuplot failed on %s: %s", arguments[3], said);
    }
    return SC_OK;
}

enum sc_status sc_plot_draw(const char *script, const char *data, const char *out,
                            struct sc_error *err)
{
    const char *format = format_of(out);
    if (format == NULL) {
        return sc_fail(err, SC_USAGE, "%s: a figure's name ends in .png or .svg", out);
    }
    char name[64], path[PATH_MAX], temporary[PATH_MAX], said[512];
    snprintf(name, sizeof(name), "%s.gp", script);
    SC_TRY(sc_data_path("reports/plots", name, path, sizeof(path), err));
    if (snprintf(temporary, sizeof(temporary), "%s.tmp", out) >= (int)sizeof(temporary)) {
        return sc_fail(err, SC_USAGE, "%s: the name is too long", out);
    }
    char *const arguments[] = {"gnuplot", "-c",           path, (char *)data,
                               temporary, (char *)format, NULL};
    enum sc_status status = run_gnuplot(arguments, said, sizeof(said), err);
    if (status == SC_OK && rename(temporary, out) != 0) {
        status = sc_fail(err, SC_MACHINE, "%s: %s", out, strerror(errno));
    }
    if (status != SC_OK) {
        unlink(temporary);
    }
    return status;
}
