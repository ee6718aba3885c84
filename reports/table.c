/* Tables of text: aligned columns, CSV. */
#include "reports/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sc_table_init(struct sc_table *table, const struct sc_table_column *columns)
{
    memset(table, 0, sizeof(*table));
    for (; columns->title != NULL; columns++) {
        struct sc_table_column *column = sc_array_push(&table->columns);
        if (column == NULL) {
            table->failed = true;
            return;
        }
        *column = *columns;
    }
}

void sc_table_free(struct sc_table *table)
{
    sc_array_free(&table->columns);
    sc_array_free(&table->cells);
    sc_arena_free(&table->arena);
}

void sc_table_cell(struct sc_table *table, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    const char **cell = length < 0 ? NULL : sc_array_push(&table->cells);
    const char *copy = cell == NULL ? NULL : sc_arena_strdup(&table->arena, text);
    if (length >= 0) {
        free(text);
    }
    if (copy == NULL) {
        table->failed = true;
    }
    if (cell != NULL) {
        *cell = copy != NULL ? copy : "";
    }
}

/* Characters of a UTF-8 text: bytes that do not continue one. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

static enum sc_status check(const struct sc_table *table, struct sc_error *err)
{
    if (table->failed) {
        return sc_fail(err, SC_NO_MEMORY, "out of memory while filling a table");
    }
    if (table->columns.count == 0 || table->cells.count % table->columns.count != 0) {
        return sc_fail(err, SC_BUG, "a table of %zu columns has %zu cells", table->columns.count,
                       table->cells.count);
    }
    return SC_OK;
}

static void find_widths(const struct sc_table *table, size_t *widths)
{
    size_t columns = table->columns.count;
    for (size_t i = 0; i < columns; i++) {
        widths[i] = width_of(table->columns.items[i].title);
    }
    for (size_t i = 0; i < table->cells.count; i++) {
        size_t width = width_of(table->cells.items[i]);
        if (width > widths[i % columns]) {
            widths[i % columns] = width;
        }
    }
}

static void pad(FILE *stream, size_t blanks)
{
    fprintf(stream, "%*s", (int)blanks, "");
}

/* Blanks are owed and paid only before text, so that no line ends in one. */
static void print_line(const struct sc_table *table, const char *const *cells, const size_t *widths,
                       int indent, FILE *stream)
{
    size_t owed = (size_t)indent;
    for (size_t i = 0; i < table->columns.count; i++) {
        size_t gap = widths[i] - width_of(cells[i]);
        bool right = table->columns.items[i].align == SC_RIGHT;
        if (cells[i][0] != '\0') {
            pad(stream, owed + (right ? gap : 0));
            fputs(cells[i], stream);
            owed = right ? 0 : gap;
        } else {
            owed += widths[i];
        }
        owed += 2;
    }
    fputc('\n', stream);
}

static void print_title(const struct sc_table *table, const size_t *widths, const char **scratch,
                        int indent, FILE *stream)
{
    for (size_t i = 0; i < table->columns.count; i++) {
        scratch[i] = table->columns.items[i].title;
    }
    print_line(table, scratch, widths, indent, stream);
    pad(stream, (size_t)indent);
    for (size_t i = 0; i < table->columns.count; i++) {
        fputs(i > 0 ? "  " : "", stream);
        for (size_t k = 0; k < widths[i]; k++) {
            fputc('-', stream);
        }
    }
    fputc('\n', stream);
}

static enum sc_status written(FILE *stream, struct sc_error *err)
{
    return ferror(stream) ? sc_fail(err, SC_MACHINE, "a table could not be written") : SC_OK;
}

enum sc_status sc_table_print(const struct sc_table *table, int indent, FILE *stream,
                              struct sc_error *err)
{
    SC_TRY(check(table, err));
    size_t columns = table->columns.count;
    size_t *widths = calloc(columns, sizeof(*widths));
    const char **scratch = calloc(columns, sizeof(*scratch));
    if (widths == NULL || scratch == NULL) {
        free(widths);
        free(scratch);
        return sc_fail_memory(err, columns * sizeof(*widths));
    }
    find_widths(table, widths);
    print_title(table, widths, scratch, indent, stream);
    for (size_t i = 0; i < table->cells.count; i += columns) {
        print_line(table, &table->cells.items[i], widths, indent, stream);
    }
    free(widths);
    free(scratch);
    return written(stream, err);
}

static void print_csv_cell(const char *text, FILE *stream)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, stream);
    }
    fputc('"', stream);
}

enum sc_status sc_table_print_csv(const struct sc_table *table, FILE *stream, struct sc_error *err)
{
    SC_TRY(check(table, err));
    size_t columns = table->columns.count;
    for (size_t i = 0; i < columns; i++) {
        print_csv_cell(table->columns.items[i].title, stream);
        fputs(i + 1 < columns ? "," : "\r\n", stream);
    }
    for (size_t i = 0; i < table->cells.count; i++) {
        print_csv_cell(table->cells.items[i], stream);
        fputs((i + 1) % columns > 0 ? "," : "\r\n", stream);
    }
    return written(stream, err);
}
