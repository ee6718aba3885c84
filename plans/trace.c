/* The trace: building, writing one row a line, reading it back. */
#include "plans/trace.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define TRACE_SCHEMA "stepcast.trace/1"
#define TIME_LIMIT_US 1e15 /* thirty years: beyond it a time is a mistake */
#define CORE_LIMIT (1 << 16)
#define RANK_LIMIT (INT64_C(1) << 20) /* readers number lanes by rank */

static const char *const KIND_NAMES[] = {"predicted", "measured", NULL};

/* Columns of a row, in the order of the file. */
enum {
    COLUMN_CLASS,
    COLUMN_OPERATION,
    COLUMN_RANK,
    COLUMN_KIND,
    COLUMN_STREAM,
    COLUMN_LABEL,
    COLUMN_READY,
    COLUMN_START,
    COLUMN_TRANSFER,
    COLUMN_END,
    COLUMN_BOUND,
    COLUMN_P10,
    COLUMN_P90,
    COLUMN_COUNT
};
static const char *const COLUMNS[COLUMN_COUNT] = {
    "class",    "operation",   "rank",   "kind",  "stream", "label", "ready_us",
    "start_us", "transfer_us", "end_us", "bound", "p10_us", "p90_us"};

static const char *const HEADER_KEYS[] = {
    "schema",      "kind",          "program",        "plan",         "hardware",
    "backend",     "machine",       "solo",           "steps_played", "period_us",
    "memory_mode", "streams",       "anchor",         "classes",      "columns",
    "rows",        "period_low_us", "period_high_us", "measured_on",  "others_share",
    NULL};

void sc_trace_init(struct sc_trace *trace)
{
    memset(trace, 0, sizeof(*trace));
    trace->period_low_us = trace->period_high_us = NAN;
    trace->others_share = NAN;
}

void sc_trace_free(struct sc_trace *trace)
{
    sc_array_free(&trace->streams);
    sc_array_free(&trace->classes);
    sc_array_free(&trace->rows);
    sc_arena_free(&trace->arena);
    sc_trace_init(trace);
}

/* ---- from a program ---------------------------------------------------------------------- */

static const char *memory_mode_name(enum sc_memory_mode mode)
{
    static const char *const names[] = {
        [SC_MEMORY_UNPLANNED] = "unplanned",
        [SC_MEMORY_NO_ADDED_WAITS] = "no_added_waits",
        [SC_MEMORY_ISSUE_ORDER] = "issue_order",
    };
    return names[mode];
}

static enum sc_status begin_header(struct sc_trace *trace, const struct sc_program *program,
                                   struct sc_error *err)
{
    SC_TRY(sc_program_hash(program, trace->program, err));
    memcpy(trace->plan, program->name, sizeof(trace->plan));
    enum sc_memory_mode mode = SC_MEMORY_UNPLANNED; /* the strictest of any class */
    for (size_t i = 0; i < program->classes.count; i++) {
        if (program->classes.items[i].memory_mode > mode) {
            mode = program->classes.items[i].memory_mode;
        }
    }
    snprintf(trace->memory_mode, sizeof(trace->memory_mode), "%s", memory_mode_name(mode));
    for (size_t i = 0; i < program->streams.count; i++) {
        const char **name = sc_array_push(&trace->streams);
        if (name == NULL) {
            return sc_fail_memory(err, sizeof(*name));
        }
        *name = sc_arena_strdup(&trace->arena, program->streams.items[i].name);
        if (*name == NULL) {
            return sc_fail_memory(err, strlen(program->streams.items[i].name));
        }
    }
    return SC_OK;
}

static enum sc_status begin_row(struct sc_trace *trace, const struct sc_program *program,
                                uint32_t class_index, uint32_t operation, struct sc_error *err)
{
    const struct sc_op *op = &program->classes.items[class_index].step.ops.items[operation];
    struct sc_trace_row *row = sc_array_push(&trace->rows);
    if (row == NULL) {
        return sc_fail_memory(err, sizeof(*row));
    }
    char label[512];
    sc_label_text(program, op->label, label, sizeof(label));
    row->class_index = class_index;
    row->operation = operation;
    row->rank = -1;
    row->kind = op->kind;
    row->stream = op->stream;
    row->label = sc_arena_strdup(&trace->arena, label);
    row->transfer_us = sc_op_kind_work(op->kind) == SC_WORK_COLLECTIVE ? 0 : NAN;
    row->p10_us = row->p90_us = NAN;
    return row->label != NULL ? SC_OK : sc_fail_memory(err, strlen(label));
}

static enum sc_status begin_class(struct sc_trace *trace, const struct sc_program *program,
                                  uint32_t index, struct sc_error *err)
{
    const struct sc_class *from = &program->classes.items[index];
    struct sc_trace_class *to = sc_array_push(&trace->classes);
    if (to == NULL || !sc_array_reserve(&trace->rows, from->step.ops.count)) {
        return sc_fail_memory(err, from->step.ops.count * sizeof(struct sc_trace_row));
    }
    to->ranks = from->ranks;
    to->name = sc_arena_strdup(&trace->arena, from->name);
    if (to->name == NULL) {
        return sc_fail_memory(err, strlen(from->name));
    }
    for (size_t i = 0; i < from->step.ops.count; i++) {
        SC_TRY(begin_row(trace, program, index, (uint32_t)i, err));
    }
    return SC_OK;
}

enum sc_status sc_trace_begin(struct sc_trace *trace, enum sc_trace_kind kind,
                              const struct sc_program *program, struct sc_error *err)
{
    struct sc_trace built;
    sc_trace_init(&built);
    built.kind = kind;
    enum sc_status status = begin_header(&built, program, err);
    for (size_t i = 0; status == SC_OK && i < program->classes.count; i++) {
        status = begin_class(&built, program, (uint32_t)i, err);
    }
    if (status != SC_OK) {
        sc_trace_free(&built);
        return status;
    }
    if (program->classes.count > 0 && program->classes.items[0].step.ops.count > 0) {
        const struct sc_list *step = &program->classes.items[0].step;
        built.anchor = step->ops.items[step->ops.count - 1].stream;
    }
    sc_trace_free(trace);
    *trace = built;
    return SC_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

static void write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(stream, "\\%c", *c);
        } else if (*c < 0x20) {
            fprintf(stream, "\\u%04x", *c);
        } else {
            fputc(*c, stream);
        }
    }
    fputc('"', stream);
}

/* NULL and "" both say that there is nothing to name. */
static void write_optional_text(FILE *stream, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        fputs("null", stream);
    } else {
        write_text(stream, text);
    }
}

/* Tenths of a nanosecond, at least one digit behind the point: 250.0, 10.0625. */
static void write_time(FILE *stream, double us)
{
    if (!isfinite(us)) {
        fputs("null", stream);
        return;
    }
    char text[352]; /* the longest finite double in %f */
    int length = snprintf(text, sizeof(text), "%.4f", us);
    while (length > 2 && text[length - 1] == '0' && text[length - 2] != '.') {
        text[--length] = '\0';
    }
    fputs(strcmp(text, "-0.0") == 0 ? "0.0" : text, stream);
}

static void write_key_text(FILE *stream, const char *key, const char *text, bool optional)
{
    fprintf(stream, "  \"%s\": ", key);
    (optional ? write_optional_text : write_text)(stream, text);
    fputs(",\n", stream);
}

static void write_measured_on(FILE *stream, const struct sc_identity *identity)
{
    if (sc_identity_empty(identity)) {
        return;
    }
    fputs("  \"measured_on\": {\"processor\": ", stream);
    write_text(stream, identity->processor);
    if (identity->cores > 0) {
        fprintf(stream, ", \"cores\": %" PRId64, identity->cores);
    }
    fputs(", \"library\": ", stream);
    write_text(stream, identity->library);
    fputs("},\n", stream);
}

static void write_header(FILE *stream, const struct sc_trace *trace)
{
    fputs("{\n", stream);
    write_key_text(stream, "schema", TRACE_SCHEMA, false);
    write_key_text(stream, "kind", KIND_NAMES[trace->kind], false);
    write_key_text(stream, "program", trace->program, false);
    write_key_text(stream, "plan", trace->plan, false);
    write_key_text(stream, "hardware", trace->hardware, false);
    write_key_text(stream, "backend", trace->backend, true);
    write_key_text(stream, "machine", trace->machine, true);
    write_measured_on(stream, &trace->measured_on);
    if (isfinite(trace->others_share)) {
        fprintf(stream, "  \"others_share\": %.4f,\n", trace->others_share);
    }
    fprintf(stream, "  \"solo\": %s,\n  \"steps_played\": %" PRId64 ",\n  \"period_us\": ",
            trace->solo ? "true" : "false", trace->steps_played);
    write_time(stream, trace->period_us);
    fputs(",\n", stream);
    if (isfinite(trace->period_low_us) && isfinite(trace->period_high_us)) {
        fputs("  \"period_low_us\": ", stream);
        write_time(stream, trace->period_low_us);
        fputs(",\n  \"period_high_us\": ", stream);
        write_time(stream, trace->period_high_us);
        fputs(",\n", stream);
    }
    write_key_text(stream, "memory_mode", trace->memory_mode, false);
}

static void write_lists(FILE *stream, const struct sc_trace *trace)
{
    fputs("  \"streams\": [", stream);
    for (size_t i = 0; i < trace->streams.count; i++) {
        fputs(i > 0 ? ", " : "", stream);
        write_text(stream, trace->streams.items[i]);
    }
    fputs("],\n  \"anchor\": ", stream);
    write_optional_text(
        stream, trace->anchor < trace->streams.count ? trace->streams.items[trace->anchor] : NULL);
    fputs(",\n  \"classes\": [", stream);
    for (size_t i = 0; i < trace->classes.count; i++) {
        fputs(i > 0 ? ", {\"name\": " : "{\"name\": ", stream);
        write_text(stream, trace->classes.items[i].name);
        fprintf(stream, ", \"ranks\": %" PRId64 "}", trace->classes.items[i].ranks);
    }
    fputs("],\n  \"columns\": [", stream);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        fprintf(stream, "%s\"%s\"", i > 0 ? ", " : "", COLUMNS[i]);
    }
    fputs("],\n", stream);
}

static void write_row(FILE *stream, const struct sc_trace *trace, const struct sc_trace_row *row)
{
    fputs("    [", stream);
    write_text(stream, trace->classes.items[row->class_index].name);
    fprintf(stream, ", %" PRIu32 ", ", row->operation);
    if (row->rank < 0) {
        fputs("null, ", stream);
    } else {
        fprintf(stream, "%" PRId64 ", ", row->rank);
    }
    write_text(stream, sc_op_kind_name((enum sc_op_kind)row->kind));
    fputs(", ", stream);
    write_text(stream, trace->streams.items[row->stream]);
    fputs(", ", stream);
    write_text(stream, row->label);
    const double times[] = {row->ready_us, row->start_us, row->transfer_us, row->end_us};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        fputs(", ", stream);
        write_time(stream, times[i]);
    }
    fputs(", ", stream);
    write_optional_text(stream, row->bound);
    fputs(", ", stream);
    write_time(stream, row->p10_us);
    fputs(", ", stream);
    write_time(stream, row->p90_us);
    fputc(']', stream);
}

enum sc_status sc_trace_write(const struct sc_trace *trace, const char *file, struct sc_error *err)
{
    struct sc_file_writer writer;
    SC_TRY(sc_file_open(file, &writer, err));
    write_header(writer.stream, trace);
    write_lists(writer.stream, trace);
    fputs("  \"rows\": [", writer.stream);
    for (size_t i = 0; i < trace->rows.count; i++) {
        fputs(i > 0 ? ",\n" : "\n", writer.stream);
        write_row(writer.stream, trace, &trace->rows.items[i]);
    }
    fputs("\n  ]\n}\n", writer.stream);
    return sc_file_commit(&writer, err);
}

/* ---- reading ----------------------------------------------------------------------------- */

static bool is_null(const struct sc_json *at, const char *key)
{
    return cJSON_IsNull(key ? cJSON_GetObjectItemCaseSensitive(at->item, key) : at->item);
}

/* Copies a string of the header into a field of fixed size; null (where allowed) gives "". */
static enum sc_status read_field(const struct sc_json *root, const char *key, bool optional,
                                 struct sc_arena *arena, char *out, size_t size,
                                 struct sc_error *err)
{
    const char *text = "";
    if (!optional || (sc_json_has(root, key) && !is_null(root, key))) {
        SC_TRY(sc_json_string(root, key, arena, &text, err));
    }
    if (strlen(text) >= size) {
        struct sc_json at = {.parent = root, .key = key, .file = root->file};
        at.item = cJSON_GetObjectItemCaseSensitive(root->item, key);
        return sc_json_fail(&at, err, "at most %zu bytes", size - 1);
    }
    memcpy(out, text, strlen(text) + 1);
    return SC_OK;
}

static enum sc_status read_measured_on(const struct sc_json *root, struct sc_arena *arena,
                                       struct sc_identity *out, struct sc_error *err)
{
    static const char *const keys[] = {"processor", "cores", "library", NULL};
    struct sc_json at;
    if (!sc_json_has(root, "measured_on")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(root, "measured_on", &at, err));
    SC_TRY(sc_json_check_keys(&at, keys, err));
    SC_TRY(read_field(&at, "processor", true, arena, out->processor, sizeof(out->processor), err));
    SC_TRY(sc_json_opt_int(&at, "cores", 1, CORE_LIMIT, &out->cores, err));
    return read_field(&at, "library", true, arena, out->library, sizeof(out->library), err);
}

static enum sc_status read_header(const struct sc_json *root, struct sc_trace *out,
                                  struct sc_error *err)
{
    struct sc_arena *arena = &out->arena;
    int kind = 0;
    SC_TRY(sc_json_schema(root, TRACE_SCHEMA, err));
    SC_TRY(sc_json_check_keys(root, HEADER_KEYS, err));
    SC_TRY(sc_json_enum(root, "kind", KIND_NAMES, &kind, err));
    out->kind = (enum sc_trace_kind)kind;
    SC_TRY(read_field(root, "program", false, arena, out->program, sizeof(out->program), err));
    SC_TRY(read_field(root, "plan", false, arena, out->plan, sizeof(out->plan), err));
    SC_TRY(read_field(root, "hardware", true, arena, out->hardware, sizeof(out->hardware), err));
    SC_TRY(read_field(root, "backend", true, arena, out->backend, sizeof(out->backend), err));
    SC_TRY(read_field(root, "machine", true, arena, out->machine, sizeof(out->machine), err));
    SC_TRY(read_measured_on(root, arena, &out->measured_on, err));
    SC_TRY(sc_json_opt_number(root, "others_share", 0, 1, &out->others_share, err));
    SC_TRY(sc_json_opt_bool(root, "solo", &out->solo, err));
    SC_TRY(sc_json_int(root, "steps_played", 0, INT64_C(1) << 40, &out->steps_played, err));
    SC_TRY(sc_json_number(root, "period_us", 0, TIME_LIMIT_US, &out->period_us, err));
    SC_TRY(sc_json_opt_number(root, "period_low_us", 0, TIME_LIMIT_US, &out->period_low_us, err));
    SC_TRY(sc_json_opt_number(root, "period_high_us", 0, TIME_LIMIT_US, &out->period_high_us, err));
    return read_field(root, "memory_mode", false, arena, out->memory_mode, sizeof(out->memory_mode),
                      err);
}

static enum sc_status read_streams(const struct sc_json *root, struct sc_trace *out,
                                   struct sc_error *err)
{
    struct sc_json array, item;
    int count = 0;
    SC_TRY(sc_json_array(root, "streams", &array, &count, err));
    for (int i = 0; i < count; i++) {
        const char **name = sc_array_push(&out->streams);
        if (name == NULL) {
            return sc_fail_memory(err, sizeof(*name));
        }
        SC_TRY(sc_json_at(&array, i, &item, err));
        SC_TRY(sc_json_string(&item, NULL, &out->arena, name, err));
    }
    return SC_OK;
}

static enum sc_status read_classes(const struct sc_json *root, struct sc_trace *out,
                                   struct sc_error *err)
{
    static const char *const keys[] = {"name", "ranks", NULL};
    struct sc_json array, item;
    int count = 0;
    SC_TRY(sc_json_array(root, "classes", &array, &count, err));
    for (int i = 0; i < count; i++) {
        struct sc_trace_class *class = sc_array_push(&out->classes);
        if (class == NULL) {
            return sc_fail_memory(err, sizeof(*class));
        }
        SC_TRY(sc_json_at(&array, i, &item, err));
        SC_TRY(sc_json_check_keys(&item, keys, err));
        SC_TRY(sc_json_string(&item, "name", &out->arena, &class->name, err));
        SC_TRY(sc_json_int(&item, "ranks", 1, RANK_LIMIT, &class->ranks, err));
    }
    return SC_OK;
}

/* The format has one order of columns; a file with another one is from elsewhere. */
static enum sc_status check_columns(const struct sc_json *root, struct sc_error *err)
{
    struct sc_json array, item;
    int count = 0;
    SC_TRY(sc_json_array(root, "columns", &array, &count, err));
    if (count != COLUMN_COUNT) {
        return sc_json_fail(&array, err, "%d columns", COLUMN_COUNT);
    }
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&array, i, &item, err));
        if (!cJSON_IsString(item.item) || strcmp(item.item->valuestring, COLUMNS[i]) != 0) {
            return sc_json_fail(&item, err, "\"%s\"", COLUMNS[i]);
        }
    }
    return SC_OK;
}

/* The index of a string cell among `count` names. Rows repeat the name of the row before mostly:
 * `hint` is tried first. */
static enum sc_status cell_name(const struct sc_json *cell, const char *what,
                                const char *(*name)(const struct sc_trace *, size_t), size_t count,
                                const struct sc_trace *trace, size_t hint, uint32_t *out,
                                struct sc_error *err)
{
    const char *text = cJSON_IsString(cell->item) ? cell->item->valuestring : NULL;
    for (size_t i = 0; text != NULL && i < count; i++) {
        size_t index = (i + hint) % count;
        if (strcmp(name(trace, index), text) == 0) {
            *out = (uint32_t)index;
            return SC_OK;
        }
    }
    return sc_json_fail(cell, err, "the name of a %s of the header", what);
}

static const char *class_name(const struct sc_trace *trace, size_t index)
{
    return trace->classes.items[index].name;
}

static const char *stream_name(const struct sc_trace *trace, size_t index)
{
    return trace->streams.items[index];
}

static enum sc_status cell_time(const struct sc_json *cell, bool optional, double *out,
                                struct sc_error *err)
{
    if (optional && is_null(cell, NULL)) {
        *out = NAN;
        return SC_OK;
    }
    return sc_json_number(cell, NULL, -TIME_LIMIT_US, TIME_LIMIT_US, out, err);
}

static enum sc_status cell_rank(const struct sc_json *cell, int64_t *out, struct sc_error *err)
{
    *out = -1;
    return is_null(cell, NULL) ? SC_OK : sc_json_int(cell, NULL, 0, RANK_LIMIT, out, err);
}

static enum sc_status cell_kind(const struct sc_json *cell, uint8_t *out, struct sc_error *err)
{
    int kind = cJSON_IsString(cell->item) ? sc_op_kind_from_name(cell->item->valuestring) : -1;
    if (kind < 0) {
        return sc_json_fail(cell, err, "the name of an operation kind");
    }
    *out = (uint8_t)kind;
    return SC_OK;
}

static enum sc_status cell_text(const struct sc_json *cell, bool optional, struct sc_trace *trace,
                                const char **out, struct sc_error *err)
{
    *out = NULL;
    return optional && is_null(cell, NULL) ? SC_OK
                                           : sc_json_string(cell, NULL, &trace->arena, out, err);
}

static enum sc_status read_names(const struct sc_json cells[COLUMN_COUNT], struct sc_trace *out,
                                 struct sc_trace_row *row, struct sc_error *err)
{
    const struct sc_trace_row *before = out->rows.count > 1 ? row - 1 : row;
    int64_t operation = 0;
    SC_TRY(cell_name(&cells[COLUMN_CLASS], "class", class_name, out->classes.count, out,
                     before->class_index, &row->class_index, err));
    SC_TRY(sc_json_int(&cells[COLUMN_OPERATION], NULL, 0, UINT32_MAX, &operation, err));
    row->operation = (uint32_t)operation;
    SC_TRY(cell_rank(&cells[COLUMN_RANK], &row->rank, err));
    SC_TRY(cell_kind(&cells[COLUMN_KIND], &row->kind, err));
    SC_TRY(cell_name(&cells[COLUMN_STREAM], "stream", stream_name, out->streams.count, out,
                     before->stream, &row->stream, err));
    return cell_text(&cells[COLUMN_LABEL], false, out, &row->label, err);
}

static enum sc_status read_times(const struct sc_json cells[COLUMN_COUNT], struct sc_trace *out,
                                 struct sc_trace_row *row, struct sc_error *err)
{
    SC_TRY(cell_time(&cells[COLUMN_READY], false, &row->ready_us, err));
    SC_TRY(cell_time(&cells[COLUMN_START], false, &row->start_us, err));
    SC_TRY(cell_time(&cells[COLUMN_TRANSFER], true, &row->transfer_us, err));
    SC_TRY(cell_time(&cells[COLUMN_END], false, &row->end_us, err));
    SC_TRY(cell_text(&cells[COLUMN_BOUND], true, out, &row->bound, err));
    SC_TRY(cell_time(&cells[COLUMN_P10], true, &row->p10_us, err));
    SC_TRY(cell_time(&cells[COLUMN_P90], true, &row->p90_us, err));
    if (row->end_us < row->start_us) {
        return sc_json_fail(&cells[COLUMN_END], err, "no less than start_us (%g)", row->start_us);
    }
    return SC_OK;
}

static enum sc_status read_row(const struct sc_json *at, struct sc_trace *out, struct sc_error *err)
{
    struct sc_json cells[COLUMN_COUNT];
    if (!cJSON_IsArray(at->item) || cJSON_GetArraySize(at->item) != COLUMN_COUNT) {
        return sc_json_fail(at, err, "an array of %d cells", COLUMN_COUNT);
    }
    const cJSON *item = at->item->child;
    for (int i = 0; i < COLUMN_COUNT; i++, item = item->next) {
        cells[i] = (struct sc_json){.item = item, .parent = at, .index = i, .file = at->file};
    }
    struct sc_trace_row *row = sc_array_push(&out->rows);
    if (row == NULL) {
        return sc_fail_memory(err, sizeof(*row));
    }
    SC_TRY(read_names(cells, out, row, err));
    return read_times(cells, out, row, err);
}

static enum sc_status read_rows(const struct sc_json *root, struct sc_trace *out,
                                struct sc_error *err)
{
    struct sc_json array;
    int count = 0;
    SC_TRY(sc_json_array(root, "rows", &array, &count, err));
    /* Not sc_json_at: it walks the list from its head. */
    struct sc_json row = {.parent = &array, .file = root->file};
    for (row.item = array.item->child; row.item != NULL; row.item = row.item->next, row.index++) {
        SC_TRY(read_row(&row, out, err));
    }
    return SC_OK;
}

static enum sc_status read_anchor(const struct sc_json *root, struct sc_trace *out,
                                  struct sc_error *err)
{
    struct sc_json at = {.parent = root, .key = "anchor", .file = root->file};
    at.item = cJSON_GetObjectItemCaseSensitive(root->item, "anchor");
    if (out->streams.count == 0 && (at.item == NULL || is_null(&at, NULL))) {
        return SC_OK;
    }
    if (at.item == NULL) {
        return sc_json_fail(root, err, "a key \"anchor\"");
    }
    return cell_name(&at, "stream", stream_name, out->streams.count, out, 0, &out->anchor, err);
}

static enum sc_status read_document(const struct sc_json *root, struct sc_trace *out,
                                    struct sc_error *err)
{
    SC_TRY(read_header(root, out, err));
    SC_TRY(read_streams(root, out, err));
    SC_TRY(read_anchor(root, out, err));
    SC_TRY(read_classes(root, out, err));
    SC_TRY(check_columns(root, err));
    return read_rows(root, out, err);
}

enum sc_status sc_trace_read(const char *file, struct sc_trace *out, struct sc_error *err)
{
    struct sc_json_doc doc;
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    struct sc_trace read;
    sc_trace_init(&read);
    enum sc_status status = read_document(&root, &read, err);
    sc_json_doc_free(&doc);
    if (status != SC_OK) {
        sc_trace_free(&read);
        return status;
    }
    sc_trace_free(out);
    *out = read;
    return SC_OK;
}
