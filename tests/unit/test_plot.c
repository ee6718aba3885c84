/* Data of the figures, and traces for a viewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "reports/chrome_trace.h"
#include "reports/kind_family.h"
#include "reports/plot.h"
#include "tests/support/make_trace.h"

static char FILE_NAME[] = "test_plot_XXXXXX";
static const struct sc_plot_window ALL = {0, 0};

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

static char *written(void)
{
    struct sc_error err = SC_ERROR_INIT;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(sc_file_read(FILE_NAME, &text, &size, &err), SC_OK);
    return text;
}

static void timelines(const struct sc_trace *trace, struct sc_plot_window window,
                      const char *expected)
{
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_plot_timelines_data(&trace, 1, window, FILE_NAME, &err), SC_OK);
    char *text = written();
    assert_string_equal(text, expected);
    free(text);
}

/* Period 1000 us. A product from 100 to 300; a collective that came at 300 and moved from 350 to
 * 400: a thin line, then a box; a row of a single rank, left out. Lanes are one below the other
 * from y = -1 on; a box is 0.8 high. Families 0: product, 5: collective. */
static void a_lane_a_stream(void **state)
{
    (void)state;
    struct sc_trace trace;
    make_trace(&trace, SC_MEASURED, "p\"q", "sha256:a", 1000);
    make_row(&trace, 0, SC_GEMM, 100, NAN, 300);
    make_row(&trace, 1, SC_ALL_REDUCE, 300, 350, 400);
    make_row(&trace, 1, SC_ALL_REDUCE, 0, 0, 1)->rank = 0;
    timelines(&trace, ALL,
              "0.00 \"Measured: p'q, 1.00 ms a step\"\n\n\n"
              "-1.00 \"compute\"\n-2.00 \"comm\"\n\n\n"
              "0.100000 0.300000 -1.400 -0.600 0 \"gemm\"\n"
              "0.300000 0.350000 -2.060 -1.940 5 \"\"\n"
              "0.350000 0.400000 -2.400 -1.600 5 \"all_reduce\"\n");
    sc_trace_free(&trace);
}

/* What ran ahead, from -2950 to -2900, is repeated every 1000: within this step at 50 to 100. What
 * ends exactly at zero belongs to the step before: one period on. */
static void work_ahead_is_shown_in_its_stream_s_time(void **state)
{
    (void)state;
    struct sc_trace trace;
    make_trace(&trace, SC_PREDICTED, "p", "sha256:a", 1000);
    make_row(&trace, 0, SC_GEMM, -2950, NAN, -2900);
    make_row(&trace, 1, SC_GEMM, -100, NAN, 0);
    make_row(&trace, 2, SC_GEMM, -30, NAN, 10);
    timelines(&trace, ALL,
              "0.00 \"Predicted: p, 1.00 ms a step\"\n\n\n-1.00 \"compute\"\n\n\n"
              "0.050000 0.100000 -1.400 -0.600 0 \"gemm\"\n"
              "0.900000 1.000000 -1.400 -0.600 0 \"gemm\"\n"
              "-0.030000 0.010000 -1.400 -0.600 0 \"gemm\"\n");
    sc_trace_free(&trace);
}

static void a_window_cuts(void **state)
{
    (void)state;
    struct sc_trace trace;
    struct sc_plot_window window = {100, 200};
    make_trace(&trace, SC_PREDICTED, "p", "sha256:a", 1000);
    make_row(&trace, 0, SC_GEMM, 50, NAN, 150);
    make_row(&trace, 1, SC_GEMM, 150, NAN, 250);
    make_row(&trace, 2, SC_GEMM, 250, NAN, 350); /* outside */
    timelines(&trace, window,
              "0.00 \"Predicted: p, 1.00 ms a step\"\n\n\n-1.00 \"compute\"\n\n\n"
              "0.100000 0.150000 -1.400 -0.600 0 \"gemm\"\n"
              "0.150000 0.200000 -1.400 -0.600 0 \"gemm\"\n");
    sc_trace_free(&trace);
}

/* 400 operations of 10 us: an eighth in, operation 50 (500 us), and 40 on (900 us). */
static void a_long_step_has_a_detail(void **state)
{
    (void)state;
    struct sc_trace trace;
    make_trace(&trace, SC_PREDICTED, "p", "sha256:a", 4000);
    for (uint32_t i = 0; i < 400; i++) {
        make_row(&trace, i, SC_GEMM, 10.0 * i, NAN, 10.0 * i + 10);
    }
    struct sc_plot_window window = sc_plot_detail(&trace);
    assert_true(window.from_us == 500 && window.to_us == 900);
    trace.rows.count = 100;
    window = sc_plot_detail(&trace);
    assert_true(window.to_us <= window.from_us); /* everything */
    sc_trace_free(&trace);
}

static void a_figure_is_png_or_svg(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_plot_draw("steps", FILE_NAME, "figure.pdf", &err), SC_USAGE);
    assert_string_equal(err.text, "figure.pdf: a figure's name ends in .png or .svg");
}

static const cJSON *event(const cJSON *events, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, events)
    {
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(item, "name")), name) == 0) {
            return item;
        }
    }
    fail_msg("no event %s", name);
    return NULL;
}

static double number(const cJSON *item, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(item, key));
}

/* The earliest start, -20, becomes 0: the product at 100 stands at 120. The collective waits 50 for
 * other ranks, then moves for 50. */
static void a_viewer_s_trace(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_trace trace;
    make_trace(&trace, SC_MEASURED, "p", "sha256:a", 1000);
    make_row(&trace, 0, SC_NEXT_BATCH, -20, NAN, 100);
    make_row(&trace, 1, SC_GEMM, 100, NAN, 300)->label = "a \"b\"";
    make_row(&trace, 2, SC_ALL_REDUCE, 300, 350, 400);
    const struct sc_trace *traces[] = {&trace};
    assert_int_equal(sc_chrome_trace_write(traces, 1, FILE_NAME, &err), SC_OK);
    char *text = written();
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    const cJSON *events = cJSON_GetObjectItem(root, "traceEvents");
    const cJSON *gemm = event(events, "gemm: a \"b\"");
    assert_true(number(gemm, "ts") == 120 && number(gemm, "dur") == 200);
    const cJSON *wait = event(events, "waits for other ranks");
    assert_true(number(wait, "ts") == 320 && number(wait, "dur") == 50);
    const cJSON *reduce = event(events, "all_reduce: label");
    assert_true(number(reduce, "ts") == 370 && number(reduce, "dur") == 50);
    assert_true(number(reduce, "tid") != number(gemm, "tid"));
    cJSON_Delete(root);
    free(text);
    sc_trace_free(&trace);
}

/* A legend needs a name for every kind. */
static void every_kind_has_a_family(void **state)
{
    (void)state;
    for (int kind = 0; kind < SC_OP_KIND_COUNT; kind++) {
        enum sc_kind_family family = sc_kind_family_of((enum sc_op_kind)kind);
        assert_true(family < SC_KINDS_COUNT);
        assert_non_null(sc_kind_family_name(family));
        bool collective = sc_op_kind_work((enum sc_op_kind)kind) == SC_WORK_COLLECTIVE;
        assert_int_equal(family == SC_KINDS_COLLECTIVE, collective);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_a_stream),
        cmocka_unit_test(work_ahead_is_shown_in_its_stream_s_time),
        cmocka_unit_test(a_window_cuts),
        cmocka_unit_test(a_long_step_has_a_detail),
        cmocka_unit_test(a_figure_is_png_or_svg),
        cmocka_unit_test(a_viewer_s_trace),
        cmocka_unit_test(every_kind_has_a_family),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
