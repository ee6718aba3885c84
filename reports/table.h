/*
 * Tables of text: columns aligned for people, or CSV (RFC 4180) for programs. Cells are filled row
 * by row. Filling never fails one by one: when memory runs out it is remembered and the sc_table_*
 * that print report it.
 */
#ifndef STEPCAST_REPORTS_TABLE_H
#define STEPCAST_REPORTS_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"

enum sc_align { SC_LEFT, SC_RIGHT };

struct sc_table_column {
    const char *title;
    enum sc_align align;
};

struct sc_table {
    SC_ARRAY(struct sc_table_column) columns;
    SC_ARRAY(const char *) cells; /* row by row; in the arena */
    bool failed;
    struct sc_arena arena;
};

/* Columns until one without title. Titles must outlive the table. */
void sc_table_init(struct sc_table *table, const struct sc_table_column *columns);
void sc_table_free(struct sc_table *table);
/* The next cell, from left to right; after the last column a new row begins. */
void sc_table_cell(struct sc_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Title line, a rule, rows; two blanks between columns, `indent` before the first; no blank ends a
 * line. Widths count characters of UTF-8, not bytes. */
enum sc_status sc_table_print(const struct sc_table *table, int indent, FILE *stream,
                              struct sc_error *err);
enum sc_status sc_table_print_csv(const struct sc_table *table, FILE *stream, struct sc_error *err);

#endif
