/* Tables: alignment by characters, no blanks at line ends, CSV quoting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "reports/table.h"

static const struct sc_table_column COLUMNS[] = {
    {"name", SC_LEFT}, {"ms", SC_RIGHT}, {"note", SC_LEFT}, {NULL, SC_LEFT}};

typedef enum sc_status (*print_fn)(const struct sc_table *table, FILE *stream,
                                   struct sc_error *err);

static enum sc_status print_aligned(const struct sc_table *table, FILE *stream,
                                    struct sc_error *err)
{
    return sc_table_print(table, 2, stream, err);
}

static void expect(const struct sc_table *table, print_fn print, const char *expected)
{
    struct sc_error err = SC_ERROR_INIT;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(print(table, stream, &err), SC_OK);
    fclose(stream);
    assert_string_equal(text, expected);
    free(text);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    (void)state;
    struct sc_table table;
    sc_table_init(&table, COLUMNS);
    sc_table_cell(&table, "gemm");
    sc_table_cell(&table, "%.1f", 12.25);
    sc_table_cell(&table, "%s", "");
    sc_table_cell(&table, "b");
    sc_table_cell(&table, "%d", 7);
    sc_table_cell(&table, "late");
    /* Widths 4, 4, 4; two blanks between columns, two before the first. The empty last cell leaves
     * no blanks behind "12.2" (half rounds to even). */
    expect(&table, print_aligned,
           "  name    ms  note\n"
           "  ----  ----  ----\n"
           "  gemm  12.2\n"
           "  b        7  late\n");
    sc_table_free(&table);
}

static void width_counts_characters(void **state)
{
    (void)state;
    struct sc_table table;
    sc_table_init(&table, COLUMNS);
    sc_table_cell(&table, "µs"); /* three bytes, two characters */
    sc_table_cell(&table, "1");
    sc_table_cell(&table, "x");
    expect(&table, print_aligned,
           "  name  ms  note\n"
           "  ----  --  ----\n"
           "  µs     1  x\n");
    sc_table_free(&table);
}

static void csv_quotes_what_needs_it(void **state)
{
    (void)state;
    struct sc_table table;
    sc_table_init(&table, COLUMNS);
    sc_table_cell(&table, "a,b");
    sc_table_cell(&table, "1");
    sc_table_cell(&table, "say \"no\"");
    expect(&table, sc_table_print_csv, "name,ms,note\r\n\"a,b\",1,\"say \"\"no\"\"\"\r\n");
    sc_table_free(&table);
}

static void a_cell_too_few_is_a_bug(void **state)
{
    (void)state;
    struct sc_table table;
    struct sc_error err = SC_ERROR_INIT;
    sc_table_init(&table, COLUMNS);
    sc_table_cell(&table, "alone");
    assert_int_equal(sc_table_print(&table, 0, stdout, &err), SC_BUG);
    assert_string_equal(err.text, "a table of 3 columns has 1 cells");
    sc_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(width_counts_characters),
        cmocka_unit_test(csv_quotes_what_needs_it),
        cmocka_unit_test(a_cell_too_few_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
