/* Logs of nccl-tests: lines to tables. What a table measured: nccl_tests_settle.c. */
#include "model/nccl_tests.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/nccl_tests_line.h"
#include "model/nccl_tests_settle.h"

#define HOSTS_MAX 4096

const struct sc_nccl_tests_kind sc_nccl_tests_kinds[SC_NT_COLLECTIVE_COUNT] = {
    [SC_NT_ALL_REDUCE] = {"all_reduce", "allreduce", SC_NT_TWICE_SHARE, false},
    [SC_NT_ALL_GATHER] = {"all_gather", "allgather", SC_NT_SHARE, true},
    [SC_NT_REDUCE_SCATTER] = {"reduce_scatter", "reducescatter", SC_NT_SHARE, true},
    [SC_NT_ALL_TO_ALL] = {"all_to_all", "alltoall", SC_NT_SHARE, true},
    [SC_NT_BROADCAST] = {"broadcast", "broadcast", SC_NT_ONE, false},
    [SC_NT_REDUCE] = {"reduce", "reduce", SC_NT_ONE, false},
    [SC_NT_SEND_RECV] = {"send_recv", "sendrecv", SC_NT_ONE, false},
    [SC_NT_GATHER] = {"gather", "gather", SC_NT_SHARE, true},
    [SC_NT_SCATTER] = {"scatter", "scatter", SC_NT_SHARE, true},
    [SC_NT_HYPERCUBE] = {"hypercube", "hypercube", SC_NT_SHARE, true},
    [SC_NT_PER_RANK] = {"like_all_gather", NULL, SC_NT_SHARE, true},
};

const char *const sc_nccl_tests_sources[] = {"nowhere", "header",     "devices",
                                             "counts",  "bandwidths", NULL};

double sc_nccl_tests_bus_factor(enum sc_nccl_tests_collective collective, int64_t ranks)
{
    double n = (double)ranks;
    enum sc_nccl_tests_factor factor = sc_nccl_tests_kinds[collective].factor;
    if (factor == SC_NT_ONE || ranks < 1) {
        return 1.0;
    }
    return (factor == SC_NT_TWICE_SHARE ? 2.0 : 1.0) * (n - 1.0) / n;
}

int64_t sc_nccl_tests_type_bytes(const char *type)
{
    static const struct {
        const char *type;
        int64_t bytes;
    } types[] = {{"int8", 1},     {"char", 1},     {"uint8", 1},    {"f8e4m3", 1},
                 {"f8e5m2", 1},   {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"half", 2},
                 {"bfloat16", 2}, {"int32", 4},    {"int", 4},      {"uint32", 4},
                 {"float", 4},    {"int64", 8},    {"uint64", 8},   {"double", 8}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].type) == 0) {
            return types[i].bytes;
        }
    }
    return 0;
}

enum sc_status sc_nccl_tests_warn(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                  struct sc_error *err, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const char **place = sc_array_push(&table->warnings);
    char *copy = sc_arena_strdup(&log->arena, text);
    if (place == NULL || copy == NULL) {
        table->warnings.count -= place != NULL;
        return sc_fail_memory(err, sizeof(text));
    }
    *place = copy;
    return SC_OK;
}

void sc_nccl_tests_free(struct sc_nccl_tests_log *log)
{
    for (size_t i = 0; i < log->tables.count; i++) {
        sc_array_free(&log->tables.items[i].rows);
        sc_array_free(&log->tables.items[i].warnings);
    }
    sc_array_free(&log->tables);
    sc_arena_free(&log->arena);
}

/* ---- reading ---- */

struct reader {
    struct sc_nccl_tests_log *log;
    struct sc_nccl_tests_line line;
    struct sc_nccl_tests_columns columns; /* of the last table */
    bool in_place_first;
    bool footer; /* of the last table was seen */
    /* What stood before the rows of the next table. */
    enum sc_nccl_tests_collective named;
    struct sc_nccl_tests_devices devices;
    SC_ARRAY(const char *) hosts; /* of the devices, each once */
    struct sc_nccl_tests_left_out left_out;
    int64_t first_failure; /* line on which NCCL or the test said that it failed; 0: none */
};

static struct sc_nccl_tests_table *last_table(struct reader *reader)
{
    size_t count = reader->log->tables.count;
    return count > 0 ? &reader->log->tables.items[count - 1] : NULL;
}

/* The program in "./build/all_reduce_perf -b 8", or "allreduce_test_perf": its collective. */
static enum sc_nccl_tests_collective program_named(const char *text)
{
    const char *perf = strstr(text, "_perf");
    const char *begin = perf;
    char name[SC_NT_WORD];
    size_t length = 0;
    while (begin != NULL && begin > text &&
           (islower((unsigned char)begin[-1]) || begin[-1] == '_')) {
        begin--;
    }
    for (; begin != NULL && begin < perf && strncmp(begin, "_test", 5) != 0; begin++) {
        if (*begin != '_' && length < sizeof(name) - 1) {
            name[length++] = *begin;
        }
    }
    name[length] = '\0';
    for (int i = 0; i < SC_NT_COLLECTIVE_COUNT; i++) {
        const char *spelt = sc_nccl_tests_kinds[i].spelt;
        if (spelt != NULL && strcmp(spelt, name) == 0) {
            return (enum sc_nccl_tests_collective)i;
        }
    }
    return SC_NT_COLLECTIVE_COUNT;
}

static void read_name(struct reader *reader)
{
    const char *text = reader->line.text;
    enum sc_nccl_tests_collective named = program_named(text);
    if (named != SC_NT_COLLECTIVE_COUNT && strstr(text, "concluded") == NULL) {
        reader->named = named;
    }
}

static enum sc_status add_host(struct reader *reader, const char *host, struct sc_error *err)
{
    for (size_t i = reader->hosts.count; i-- > 0;) {
        if (strcmp(reader->hosts.items[i], host) == 0) {
            return SC_OK;
        }
    }
    if (reader->hosts.count == HOSTS_MAX) {
        return SC_OK;
    }
    char *copy = sc_arena_strdup(&reader->log->arena, host);
    const char **place = sc_array_push(&reader->hosts);
    if (copy == NULL || place == NULL) {
        return sc_fail_memory(err, strlen(host));
    }
    *place = copy;
    return SC_OK;
}

/* "Rank 3 Group 0 Pid 10566 on node0 device 3 [...] NAME"; old versions have no group. */
static enum sc_status read_device(struct reader *reader, struct sc_error *err)
{
    const struct sc_nccl_tests_line *line = &reader->line;
    if (strcmp(sc_nccl_tests_word(line, 0), "Rank") != 0) {
        return SC_OK;
    }
    for (int i = 2; i + 2 < line->word_count; i++) {
        if (strcmp(sc_nccl_tests_word(line, i), "on") == 0 &&
            strcmp(sc_nccl_tests_word(line, i + 2), "device") == 0) {
            int64_t rank = strtol(sc_nccl_tests_word(line, 1), NULL, 10);
            struct sc_nccl_tests_devices *devices = &reader->devices;
            devices->listed++;
            devices->highest = rank > devices->highest ? rank : devices->highest;
            return add_host(reader, sc_nccl_tests_word(line, i + 1), err);
        }
    }
    return SC_OK;
}

static void read_block_order(struct reader *reader)
{
    const char *in_place = strstr(reader->line.text, "in-place");
    const char *out_of_place = strstr(reader->line.text, "out-of-place");
    if (in_place != NULL && out_of_place != NULL) {
        reader->in_place_first = in_place < out_of_place;
    }
}

static void read_footer(struct reader *reader, struct sc_nccl_tests_table *table)
{
    const char *values = strstr(reader->line.text, "Out of bounds values");
    const char *average = strstr(reader->line.text, "Avg bus bandwidth");
    const char *colon = strchr(reader->line.text, ':');
    if (colon == NULL || (values == NULL && average == NULL)) {
        return;
    }
    reader->footer = true;
    if (values != NULL) {
        table->wrong_values = strtol(colon + 1, NULL, 10);
    } else {
        table->footer_busbw = strtod(colon + 1, NULL);
    }
}

/* What was collected for the table goes to it with its first row, so that what stands behind its
 * header still counts (an empty device list, NCCL's version). */
static void begin_rows(struct reader *reader, struct sc_nccl_tests_table *table)
{
    table->collective = reader->named;
    reader->devices.hosts = (int64_t)reader->hosts.count;
    table->nodes = reader->devices.hosts;
    reader->left_out.devices = reader->devices;
    memset(&reader->devices, 0, sizeof(reader->devices));
    reader->hosts.count = 0;
    reader->named = SC_NT_COLLECTIVE_COUNT;
}

static enum sc_status read_row(struct reader *reader, struct sc_nccl_tests_table *table,
                               struct sc_error *err)
{
    struct sc_nccl_tests_row row;
    enum sc_nccl_tests_row_kind kind = sc_nccl_tests_row(&reader->line, &reader->columns, &row);
    struct sc_nccl_tests_left_out *left_out = &reader->left_out;
    if (kind == SC_NT_CUT_ROW && !reader->footer && left_out->cut++ == 0) {
        left_out->first_cut = row.line;
    }
    if (kind != SC_NT_ROW) {
        return SC_OK;
    }
    if (table->rows.count == 0 && left_out->empty == 0) {
        begin_rows(reader, table);
    }
    if (row.bytes == 0) {
        left_out->empty++;
        return SC_OK;
    }
    struct sc_nccl_tests_row *place = sc_array_push(&table->rows);
    if (place == NULL) {
        return sc_fail_memory(err, sizeof(row));
    }
    *place = row;
    return SC_OK;
}

static enum sc_status end_table(struct reader *reader, struct sc_error *err)
{
    struct sc_nccl_tests_table *table = last_table(reader);
    enum sc_status status = SC_OK;
    if (table != NULL && table->rows.count > 0) {
        status = sc_nccl_tests_settle(reader->log, table, &reader->left_out,
                                      reader->columns.cpu_time, err);
    }
    if (table != NULL && table->rows.count == 0) {
        reader->log->tables.count--;
    }
    memset(&reader->left_out, 0, sizeof(reader->left_out));
    return status;
}

static enum sc_status begin_table(struct reader *reader,
                                  const struct sc_nccl_tests_columns *columns, struct sc_error *err)
{
    SC_TRY(end_table(reader, err));
    struct sc_nccl_tests_table *table = sc_array_push(&reader->log->tables);
    if (table == NULL) {
        return sc_fail_memory(err, sizeof(*table));
    }
    table->line = reader->line.number;
    table->wrong_values = -1;
    table->footer_busbw = -1.0;
    reader->columns = *columns;
    reader->footer = false;
    return SC_OK;
}

static void note_failure(struct reader *reader)
{
    static const char *const signs[] = {"NCCL WARN", "Test NCCL failure", "Test failure"};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (reader->first_failure == 0 && strstr(reader->line.text, signs[i]) != NULL) {
            reader->first_failure = reader->line.number;
        }
    }
}

static enum sc_status read_line(struct reader *reader, struct sc_error *err)
{
    struct sc_nccl_tests_columns columns;
    if (sc_nccl_tests_header(&reader->line, reader->in_place_first, &columns)) {
        reader->in_place_first = false;
        return begin_table(reader, &columns, err);
    }
    read_name(reader);
    read_block_order(reader);
    note_failure(reader);
    SC_TRY(read_device(reader, err));
    struct sc_nccl_tests_table *table = last_table(reader);
    if (table == NULL) {
        return SC_OK;
    }
    read_footer(reader, table);
    return read_row(reader, table, err);
}

static enum sc_status read_lines(struct reader *reader, const char *text, size_t size,
                                 struct sc_error *err)
{
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline != NULL ? (size_t)(newline - text) - at : size - at;
        sc_nccl_tests_split(text + at, length, reader->line.number + 1, &reader->line);
        SC_TRY(read_line(reader, err));
        at += length + 1;
    }
    return end_table(reader, err);
}

/* One table that can be used is enough. */
static enum sc_status check_tables(const struct reader *reader, const char *name,
                                   struct sc_error *err)
{
    const struct sc_nccl_tests_log *log = reader->log;
    if (log->tables.count == 0 && reader->first_failure > 0) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: line %lld: found a run that failed before its first row, expected rows "
                       "of an nccl-tests table",
                       name, (long long)reader->first_failure);
    }
    if (log->tables.count == 0) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: line %lld: found no data rows up to the end, expected a table of "
                       "nccl-tests (its line \"size count ... time algbw busbw\" and rows)",
                       name, (long long)reader->line.number);
    }
    for (size_t i = 0; i < log->tables.count; i++) {
        if (log->tables.items[i].refused == NULL) {
            return SC_OK;
        }
    }
    const struct sc_nccl_tests_table *first = &log->tables.items[0];
    return sc_fail(err, SC_BAD_INPUT, "%s: line %lld: %s", name, (long long)first->refused_line,
                   first->refused);
}

enum sc_status sc_nccl_tests_parse(const char *text, size_t size, const char *name,
                                   struct sc_nccl_tests_log *out, struct sc_error *err)
{
    struct sc_nccl_tests_log log = {0};
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return sc_fail_memory(err, sizeof(*reader));
    }
    reader->log = &log;
    reader->named = SC_NT_COLLECTIVE_COUNT;
    enum sc_status status = read_lines(reader, text, size, err);
    if (status == SC_OK) {
        status = check_tables(reader, name, err);
    }
    sc_array_free(&reader->hosts);
    free(reader);
    if (status != SC_OK) {
        sc_nccl_tests_free(&log);
        return status;
    }
    *out = log;
    return SC_OK;
}

enum sc_status sc_nccl_tests_read(const char *file, struct sc_nccl_tests_log *out,
                                  struct sc_error *err)
{
    char *text = NULL;
    size_t size = 0;
    SC_TRY(sc_file_read(file, &text, &size, err));
    enum sc_status status = sc_nccl_tests_parse(text, size, file, out, err);
    free(text);
    return status;
}
