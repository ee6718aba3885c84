/* Rows of a calibration: written, read back, and as data of the figure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "reports/calibration_plot.h"
#include "reports/calibration_report.h"

static char FILE_NAME[] = "test_calibration_XXXXXX";

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

static void add(struct sc_calibration *calibration, const char *kind, int64_t ranks, int64_t cores,
                double flops, double bytes, double measured_s, double fitted_s)
{
    struct sc_calibration_row *row = sc_array_push(&calibration->rows);
    if (row == NULL) {
        fail();
        return;
    }
    *row = (struct sc_calibration_row){.shape = "a shape",
                                       .ranks = ranks,
                                       .cores = cores,
                                       .flops = flops,
                                       .bytes = bytes,
                                       .measured_s = measured_s,
                                       .fitted_s = fitted_s};
    snprintf(row->kind, sizeof(row->kind), "%s", kind);
}

/* The product: 2e9 FLOP in 10 ms on two cores are 100 GFLOP/s of a core, fitted in 8 ms 125 and an
 * error of -20 %. The norm: 3e6 bytes in 1 ms are 3 GB/s, fitted exactly. All-reduces of two sizes,
 * largest first: 60 us fitted as 100 (+67 %) and 20 as 21.4 (+7 %). Adam is 10 times too long. */
static void make_rows(struct sc_calibration *out)
{
    memset(out, 0, sizeof(*out));
    add(out, "gemm", 1, 2, 2e9, 1e6, 10e-3, 8e-3);
    add(out, "norm_forward", 2, 1, 0, 3e6, 1e-3, 1e-3);
    add(out, "all_reduce", 2, 1, 0, 65536, 60e-6, 100e-6);
    add(out, "all_reduce", 2, 1, 0, 1024, 20e-6, 21.4e-6);
    add(out, "all_reduce", 4, 1, 0, 1024, 40e-6, 40e-6);
    add(out, "all_reduce", 2, 1, 0, 2048, 80e-6, 80e-6);
    snprintf(out->rows.items[5].shape, sizeof(out->rows.items[5].shape), "2048 bytes, mpi");
    add(out, "adam", 2, 1, 0, 1e6, 1e-3, 10e-3);
    add(out, "gemm", 2, 1, 1, 1, 0, 0); /* not measured: not shown */
}

static void write_rows(const struct sc_calibration *calibration)
{
    struct sc_error err = SC_ERROR_INIT;
    cJSON *root = sc_calibration_to_json("p.json", calibration);
    assert_int_equal(sc_json_write(root, FILE_NAME, &err), SC_OK);
    cJSON_Delete(root);
}

static void rows_are_read_back(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_calibration made;
    struct sc_calibration_rows read;
    make_rows(&made);
    write_rows(&made);
    if (sc_calibration_rows_read(FILE_NAME, &read, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(read.rows.count, made.rows.count);
    for (size_t i = 0; i < read.rows.count; i++) {
        const struct sc_calibration_row *a = &read.rows.items[i], *b = &made.rows.items[i];
        assert_string_equal(a->kind, b->kind);
        assert_string_equal(a->shape, b->shape);
        assert_true(a->ranks == b->ranks && a->cores == b->cores && a->flops == b->flops);
        assert_true(a->bytes == b->bytes && a->elements == b->elements);
        assert_true(a->measured_s == b->measured_s && a->fitted_s == b->fitted_s);
    }
    sc_calibration_rows_free(&read);
    sc_calibration_free(&made);
}

static const char *after(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    if (at == NULL) {
        fail_msg("no \"%s\" in:\n%s", line, text);
    }
    return at + strlen(line);
}

static void data_of_the_figure(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_calibration made;
    struct sc_calibration_rows rows;
    char *text = NULL;
    size_t size = 0;
    make_rows(&made);
    write_rows(&made);
    assert_int_equal(sc_calibration_rows_read(FILE_NAME, &rows, &err), SC_OK);
    assert_int_equal(sc_plot_calibration_data(&rows, FILE_NAME, &err), SC_OK);
    assert_int_equal(sc_file_read(FILE_NAME, &text, &size, &err), SC_OK);
    const char *at = after(text, "(of a core)\n2e+09 100 125\n\n\n");
    at = after(at, "fitted_gb_per_s\n3e+06 3 3\n\n\n");
    /* Sums: products, + attention, + memory-bound, + optimizer, + collectives. The last bin has
     * what is beyond as well. */
    at = after(at, "\n-20 -15 1 1 1 1 1\n");
    at = after(at, "\n0 5 0 0 1 1 3\n5 10 0 0 0 0 1\n");
    at = after(at, "\n50 55 0 0 0 1 2\n");
    assert_string_equal(at, "\n\n\"all_reduce, 2 ranks\"\n1024 20 21.4\n65536 60 100\n"
                            "\n\n\"all_reduce, 4 ranks\"\n1024 40 40\n"
                            "\n\n\"all_reduce, 2 ranks, mpi\"\n2048 80 80\n");
    free(text);
    sc_calibration_rows_free(&rows);
    sc_calibration_free(&made);
}

static void the_rows_lie_beside_the_profile(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char name[32], small[8];
    assert_int_equal(sc_calibration_rows_file("a.b/my.json", name, sizeof(name), &err), SC_OK);
    assert_string_equal(name, "a.b/my.rows.json");
    assert_int_equal(sc_calibration_rows_file("profile", name, sizeof(name), &err), SC_OK);
    assert_string_equal(name, "profile.rows.json");
    assert_int_equal(sc_calibration_rows_file("my.json", small, sizeof(small), &err), SC_USAGE);
}

static void what_makes_numbers_doubtful_is_said(void **state)
{
    (void)state;
    struct sc_calibration made;
    memset(&made, 0, sizeof(made));
    made.spread = 0.25;
    made.contention = (struct sc_contention){.known = true, .others_share = 0.2};
    snprintf(made.storage.trouble, sizeof(made.storage.trouble), "x: full");
    cJSON *root = sc_calibration_to_json("p.json", &made);
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(root, "warnings");
    assert_int_equal(cJSON_GetArraySize(said), 3);
    assert_string_equal(cJSON_GetArrayItem(said, 1)->valuestring,
                        "times spread by 25 %: this machine was not quiet");
    assert_string_equal(cJSON_GetArrayItem(said, 2)->valuestring,
                        "x: full: the profile's disk is an assumption");
    const cJSON *steal = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(root, "contention"), "steal_share");
    assert_true(cJSON_IsNumber(steal) && steal->valuedouble == 0);
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_back),
        cmocka_unit_test(data_of_the_figure),
        cmocka_unit_test(the_rows_lie_beside_the_profile),
        cmocka_unit_test(what_makes_numbers_doubtful_is_said),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
