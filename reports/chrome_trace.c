/* Traces in the Trace Event Format, written by streaming. */
#include "reports/chrome_trace.h"

#include <inttypes.h>
#include <math.h>

#include "base/file.h"
#include "reports/kind_family.h"

struct writer {
    FILE *stream;
    double origin_us;
    bool first;
};

static void write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            fputc('\\', stream);
        }
        fputc(*c < 0x20 ? ' ' : *c, stream);
    }
    fputc('"', stream);
}

static void begin_event(struct writer *writer)
{
    fputs(writer->first ? "\n" : ",\n", writer->stream);
    writer->first = false;
}

/* Names a process or thread and gives it its place from the top. */
static void write_name(struct writer *writer, const char *what, size_t process, size_t thread,
                       const char *name, const char *after)
{
    begin_event(writer);
    fprintf(writer->stream,
            "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%zu,\"tid\":%zu,"
            "\"args\":{\"sort_index\":%zu}}",
            what, process, thread, what[0] == 'p' ? process : thread);
    begin_event(writer);
    fprintf(writer->stream,
            "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%zu,\"tid\":%zu,"
            "\"args\":{\"name\":",
            what, process, thread);
    char text[512];
    snprintf(text, sizeof(text), "%s%s%s", name, after[0] != '\0' ? " / " : "", after);
    write_text(writer->stream, text);
    fputs("}}", writer->stream);
}

/* A lane is a class and a stream; rows of single ranks come behind, a rank's lanes together. */
static size_t lane_of(const struct sc_trace *trace, const struct sc_trace_row *row)
{
    size_t lanes = trace->classes.count * trace->streams.count;
    return (size_t)(row->rank + 1) * lanes + row->class_index * trace->streams.count + row->stream;
}

static void write_event(struct writer *writer, size_t process, const struct sc_trace *trace,
                        const struct sc_trace_row *row, const char *name, double start, double end)
{
    begin_event(writer);
    fprintf(writer->stream,
            "{\"ph\":\"X\",\"pid\":%zu,\"tid\":%zu,\"ts\":%.4f,\"dur\":%.4f,"
            "\"name\":",
            process, lane_of(trace, row), start - writer->origin_us, end - start);
    write_text(writer->stream, name);
    fprintf(writer->stream,
            ",\"cat\":\"%s\",\"args\":{\"operation\":%" PRIu32 ",\"kind\":\"%s\","
            "\"label\":",
            sc_kind_family_name(sc_kind_family_of((enum sc_op_kind)row->kind)), row->operation,
            sc_op_kind_name((enum sc_op_kind)row->kind));
    write_text(writer->stream, row->label);
    fprintf(writer->stream, ",\"waited_us\":%.4f", row->start_us - row->ready_us);
    if (row->bound != NULL) {
        fputs(",\"bound\":", writer->stream);
        write_text(writer->stream, row->bound);
    }
    fputs("}}", writer->stream);
}

static void write_row(struct writer *writer, size_t process, const struct sc_trace *trace,
                      const struct sc_trace_row *row)
{
    double start = row->start_us;
    if (!isnan(row->transfer_us) && row->transfer_us > start) {
        write_event(writer, process, trace, row, "waits for other ranks", start, row->transfer_us);
        start = row->transfer_us;
    }
    char name[512];
    snprintf(name, sizeof(name), "%s: %s", sc_op_kind_name((enum sc_op_kind)row->kind), row->label);
    write_event(writer, process, trace, row, name, start, row->end_us);
}

/* A lane is named where its first row stands. */
static enum sc_status write_lanes(struct writer *writer, size_t process,
                                  const struct sc_trace *trace, struct sc_error *err)
{
    SC_ARRAY(unsigned char) named = {0};
    for (size_t i = 0; i < trace->rows.count; i++) {
        const struct sc_trace_row *row = &trace->rows.items[i];
        size_t lane = lane_of(trace, row);
        while (named.count <= lane) {
            if (sc_array_push(&named) == NULL) {
                sc_array_free(&named);
                return sc_fail_memory(err, lane);
            }
        }
        if (named.items[lane]) {
            continue;
        }
        named.items[lane] = 1;
        char prefix[128];
        snprintf(prefix, sizeof(prefix), row->rank < 0 ? "%s" : "%s, rank %" PRId64,
                 trace->classes.items[row->class_index].name, row->rank);
        write_name(writer, "thread", process, lane, prefix, trace->streams.items[row->stream]);
    }
    sc_array_free(&named);
    return SC_OK;
}

static enum sc_status write_trace(struct writer *writer, size_t process,
                                  const struct sc_trace *trace, struct sc_error *err)
{
    write_name(writer, "process", process, 0,
               trace->kind == SC_PREDICTED ? "predicted" : "measured", trace->plan);
    SC_TRY(write_lanes(writer, process, trace, err));
    for (size_t i = 0; i < trace->rows.count; i++) {
        write_row(writer, process, trace, &trace->rows.items[i]);
    }
    return SC_OK;
}

/* Viewers show negative times badly: the earliest start becomes zero. */
static double earliest(const struct sc_trace *const *traces, size_t count)
{
    double origin = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < traces[i]->rows.count; k++) {
            origin = fmin(origin, traces[i]->rows.items[k].start_us);
        }
    }
    return origin;
}

enum sc_status sc_chrome_trace_write(const struct sc_trace *const *traces, size_t count,
                                     const char *file, struct sc_error *err)
{
    struct sc_file_writer output;
    SC_TRY(sc_file_open(file, &output, err));
    struct writer writer = {output.stream, earliest(traces, count), true};
    fprintf(output.stream,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"origin_us\":%.4f},"
            "\"traceEvents\":[",
            writer.origin_us);
    enum sc_status status = SC_OK;
    for (size_t i = 0; i < count && status == SC_OK; i++) {
        status = write_trace(&writer, i + 1, traces[i], err);
    }
    if (status != SC_OK) {
        sc_file_abandon(&output);
        return status;
    }
    fputs("\n]}\n", output.stream);
    return sc_file_commit(&output, err);
}
