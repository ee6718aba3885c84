/* Traces: what is written is read back, and what is wrong in a file is one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/make_trace.h"
#include "tests/support/worked_example.h"

static char FILE_NAME[] = "test_trace_XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int descriptor = mkstemp(FILE_NAME);
    return descriptor < 0 || close(descriptor) != 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(FILE_NAME);
}

static void make_example(struct sc_trace *trace)
{
    make_trace(trace, SC_MEASURED, "a \"plan\"", "sha256:0f3c", 1590.0625);
    snprintf(trace->hardware, sizeof(trace->hardware), "worked-example");
    snprintf(trace->backend, sizeof(trace->backend), "host");
    snprintf(trace->machine, sizeof(trace->machine), "two cores");
    trace->measured_on = (struct sc_identity){"a \"processor\"", 2, "plain"};
    trace->others_share = 0.125;
    trace->anchor = 1;
    trace->solo = true;
    make_row(trace, 0, SC_NEXT_BATCH, -3170, NAN, -3120)->bound = "host";
    struct sc_trace_row *row = make_row(trace, 8, SC_ALL_REDUCE, 252, 258.9, 383.4);
    row->ready_us = 251.2;
    row->p10_us = 118;
    row->p90_us = 136.5;
    make_row(trace, 8, SC_ALL_REDUCE, 258.9, 258.9, 383.1)->rank = 1;
}

static void assert_same_time(double left, double right)
{
    assert_true(isnan(left) ? isnan(right) : left == right);
}

static void assert_same_row(const struct sc_trace_row *left, const struct sc_trace_row *right)
{
    assert_int_equal(left->class_index, right->class_index);
    assert_int_equal(left->operation, right->operation);
    assert_int_equal(left->rank, right->rank);
    assert_int_equal(left->kind, right->kind);
    assert_int_equal(left->stream, right->stream);
    assert_string_equal(left->label, right->label);
    assert_same_time(left->ready_us, right->ready_us);
    assert_same_time(left->start_us, right->start_us);
    assert_same_time(left->transfer_us, right->transfer_us);
    assert_same_time(left->end_us, right->end_us);
    assert_same_time(left->p10_us, right->p10_us);
    assert_same_time(left->p90_us, right->p90_us);
    assert_int_equal(left->bound == NULL, right->bound == NULL);
    if (left->bound != NULL) {
        assert_string_equal(left->bound, right->bound);
    }
}

static void written_is_read_back(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_trace trace, read;
    make_example(&trace);
    trace.period_low_us = 1500.5;
    trace.period_high_us = 1700.25;
    sc_trace_init(&read);
    assert_int_equal(sc_trace_write(&trace, FILE_NAME, &err), SC_OK);
    assert_int_equal(sc_trace_read(FILE_NAME, &read, &err), SC_OK);
    assert_true(read.period_low_us == 1500.5 && read.period_high_us == 1700.25);
    assert_int_equal(read.kind, SC_MEASURED);
    assert_string_equal(read.plan, "a \"plan\"");
    assert_string_equal(read.program, "sha256:0f3c");
    assert_string_equal(read.hardware, "worked-example");
    assert_string_equal(read.backend, "host");
    assert_string_equal(read.machine, "two cores");
    assert_string_equal(read.measured_on.processor, "a \"processor\"");
    assert_int_equal(read.measured_on.cores, 2);
    assert_string_equal(read.measured_on.library, "plain");
    assert_true(read.others_share == 0.125);
    assert_true(read.solo);
    assert_int_equal(read.anchor, 1);
    assert_int_equal(read.steps_played, 3);
    assert_true(read.period_us == 1590.0625); /* four digits behind the point are exact */
    assert_int_equal(read.classes.items[0].ranks, 2);
    assert_int_equal(read.rows.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_same_row(&trace.rows.items[i], &read.rows.items[i]);
    }
    sc_trace_free(&trace);
    sc_trace_free(&read);
}

/* The line of the design's example, with a rank of null. */
static void one_row_is_one_line(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_trace trace;
    char *text = NULL;
    size_t size = 0;
    make_example(&trace);
    assert_int_equal(sc_trace_write(&trace, FILE_NAME, &err), SC_OK);
    assert_int_equal(sc_file_read(FILE_NAME, &text, &size, &err), SC_OK);
    assert_non_null(strstr(text, "\n    [\"all\", 8, null, \"all_reduce\", \"comm\", \"label\", "
                                 "251.2, 252.0, 258.9, 383.4, null, 118.0, 136.5],\n"));
    assert_non_null(strstr(text, "\n    [\"all\", 0, null, \"next_batch\", \"compute\", \"label\", "
                                 "-3170.0, -3170.0, null, -3120.0, \"host\", null, null],\n"));
    free(text);
    sc_trace_free(&trace);
}

/* Writes the example with one text replaced, then expects a refusal that holds `complaint`. */
static void expect_refusal(const char *old, const char *new, const char *complaint)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_trace trace, read;
    char *text = NULL;
    size_t size = 0;
    make_example(&trace);
    sc_trace_init(&read);
    assert_int_equal(sc_trace_write(&trace, FILE_NAME, &err), SC_OK);
    assert_int_equal(sc_file_read(FILE_NAME, &text, &size, &err), SC_OK);
    char *at = strstr(text, old);
    assert_non_null(at);
    FILE *stream = fopen(FILE_NAME, "w");
    assert_non_null(stream);
    fprintf(stream, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(sc_trace_read(FILE_NAME, &read, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, complaint));
    assert_int_equal(read.rows.count, 0); /* the output is untouched */
    free(text);
    sc_trace_free(&trace);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *complaint;
    } rows[] = {
        {"trace/1", "trace/2", "schema: found the string \"stepcast.trace/2\""},
        {"\"measured\"", "\"guessed\"", "kind: found the string \"guessed\""},
        {"\"solo\"", "\"sole\"", "sole: found an unknown key, expected a known key: did you mean"},
        {"\"rank\", \"kind\"", "\"kind\", \"rank\"", "columns[2]: found the string \"kind\""},
        {"\"all\", 8", "\"some\", 8", "rows[1][0]: found the string \"some\", expected the name"},
        {"null, \"all_reduce\"", "null, \"all_reduced\"", "rows[1][3]"},
        {"null, \"all_reduce\"", "2000000, \"all_reduce\"", "rows[1][2]"},
        {"383.4", "200", "rows[1][9]: found the number 200, expected no less than start_us (252)"},
        {"-3120.0", "null", "rows[0][9]: found null, expected a number"},
        {"\"host\", null, null]", "\"host\", null]", "rows[0]: found an array with 12 items"},
        {"\"anchor\": \"comm\"", "\"anchor\": \"come\"", "anchor: found the string \"come\""},
        {"383.1, null, null, null]\n  ]\n}\n", "383", "found the end"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_refusal(rows[i].old, rows[i].new, rows[i].complaint);
    }
}

/* The worked example: 34 operations of one class of two ranks, anchored to the stream of the last
 * one (adam, on compute); all-reduces at 8, 13, 23, 30. */
static void a_program_gives_one_row_an_operation(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_trace trace;
    char hash[SC_HASH_SIZE];
    struct sc_program *program = sc_worked_example();
    assert_non_null(program);
    sc_trace_init(&trace);
    assert_int_equal(sc_trace_begin(&trace, SC_PREDICTED, program, &err), SC_OK);
    assert_int_equal(sc_program_hash(program, hash, &err), SC_OK);
    sc_program_destroy(&program); /* the trace stands on its own */

    assert_string_equal(trace.program, hash);
    assert_int_equal(trace.rows.count, 34);
    assert_int_equal(trace.classes.items[0].ranks, 2);
    assert_string_equal(trace.streams.items[trace.anchor], "compute");
    for (uint32_t i = 0; i < 34; i++) {
        const struct sc_trace_row *row = &trace.rows.items[i];
        bool collective = i == 8 || i == 13 || i == 23 || i == 30;
        assert_int_equal(row->operation, i);
        assert_int_equal(row->rank, -1);
        assert_int_equal(row->kind == SC_ALL_REDUCE, collective);
        assert_int_equal(isnan(row->transfer_us), !collective);
        assert_true(isnan(row->p10_us) && isnan(row->p90_us) && row->bound == NULL);
    }
    assert_string_equal(trace.rows.items[8].label, "down / forward / piece 0");
    assert_int_equal(trace.rows.items[33].kind, SC_ADAM);
    sc_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_is_read_back),
        cmocka_unit_test(one_row_is_one_line),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(a_program_gives_one_row_an_operation),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
