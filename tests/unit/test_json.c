/* JSON: places in the text, paths in complaints, checked getters, setting, writing. */
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
#include "base/json.h"

static void assert_parse_fails(const char *text, const char *line)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    assert_int_equal(sc_json_parse(text, "p.json", &doc, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, line);
}

static void wrong_text_is_placed(void **state)
{
    (void)state;
    assert_parse_fails("{\n  \"a\": 1,\n  \"b\": tru\n}",
                       "p.json: line 3, column 8: not valid JSON at \"tru\"");
    assert_parse_fails("{} x", "p.json: line 1, column 4: not valid JSON at \"x\"");
    assert_parse_fails("{\"a\": [1,\n",
                       "p.json: line 2, column 1: found the end, expected more JSON");
    assert_parse_fails("", "p.json: line 1, column 1: found the end, expected more JSON");
}

/* Each wrong in one way (RFC 3629): a byte that leads nothing, a character cut short, an overlong
 * slash, a surrogate, a number past U+10FFFF. What is right has the least and the greatest of each
 * length. */
static void text_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80",
                                        "\xF4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[32];
        snprintf(text, sizeof(text), "{\n \"a\": \"%s\"}", wrong[i]);
        assert_parse_fails(
            text, "p.json: line 2, column 8: found bytes that are not UTF-8, expected JSON text");
    }
    assert_null(sc_json_not_utf8("\x7F \xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEF\xBF\xBF "
                                 "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));
}

static void repeated_keys_are_refused(void **state)
{
    (void)state;
    assert_parse_fails("{\"m\": [{\"b\": 0, \"a\": 1, \"a\": 2}]}",
                       "p.json: m[0].a: found the key twice, expected it once");
}

static void deep_nesting_is_refused_without_a_crash(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    char *text = malloc(200001);
    assert_non_null(text);
    memset(text, '[', 200000);
    text[200000] = '\0';
    assert_int_equal(sc_json_parse(text, "", &doc, &err), SC_BAD_INPUT);
    free(text);
}

static const char SAMPLE[] =
    "{\"schema\": \"stepcast.plan/1\", \"mesh\": {\"tensor_parallel\": 8, \"order\": [\"tensor\", "
    "7]},"
    " \"rate\": 0.25, \"big\": 1e300, \"part\": 1.5, \"flag\": true, \"none\": null,"
    " \"long\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}";

static struct sc_json_doc sample;
static struct sc_json root;

static int open_sample(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    if (sc_json_parse(SAMPLE, "p.json", &sample, &err) != SC_OK) {
        return 1;
    }
    root = sc_json_root(&sample);
    return 0;
}

static int close_sample(void **state)
{
    (void)state;
    sc_json_doc_free(&sample);
    return 0;
}

static void values_are_read(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_arena arena = SC_ARENA_INIT;
    struct sc_json mesh, order, item;
    int64_t whole = 0;
    double number = 0;
    bool flag = false;
    const char *text = NULL;
    int count = 0;
    assert_int_equal(sc_json_schema(&root, "stepcast.plan/1", &err), SC_OK);
    assert_int_equal(sc_json_object(&root, "mesh", &mesh, &err), SC_OK);
    assert_int_equal(sc_json_int(&mesh, "tensor_parallel", 1, 8, &whole, &err), SC_OK);
    assert_int_equal(whole, 8);
    assert_int_equal(sc_json_array(&mesh, "order", &order, &count, &err), SC_OK);
    assert_int_equal(count, 2);
    assert_int_equal(sc_json_at(&order, 1, &item, &err), SC_OK);
    assert_int_equal(sc_json_int(&item, NULL, 0, 10, &whole, &err), SC_OK);
    assert_int_equal(whole, 7);
    assert_int_equal(sc_json_number(&root, "rate", 0, 1, &number, &err), SC_OK);
    assert_true(number == 0.25);
    assert_int_equal(sc_json_bool(&root, "flag", &flag, &err), SC_OK);
    assert_true(flag);
    assert_int_equal(sc_json_string(&root, "schema", &arena, &text, &err), SC_OK);
    assert_string_equal(text, "stepcast.plan/1");
    sc_arena_free(&arena);
}

static void absent_optional_keys_leave_the_default(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_arena arena = SC_ARENA_INIT;
    static const char *const names[] = {"x", NULL};
    int64_t whole = 5;
    double number = 0.5;
    bool flag = true;
    const char *text = "default";
    int index = 3;
    assert_int_equal(sc_json_opt_int(&root, "no", 0, 1, &whole, &err), SC_OK);
    assert_int_equal(sc_json_opt_number(&root, "no", 0, 1, &number, &err), SC_OK);
    assert_int_equal(sc_json_opt_bool(&root, "no", &flag, &err), SC_OK);
    assert_int_equal(sc_json_opt_string(&root, "no", &arena, &text, &err), SC_OK);
    assert_int_equal(sc_json_opt_enum(&root, "no", names, &index, &err), SC_OK);
    assert_int_equal(whole, 5);
    assert_true(number == 0.5 && flag && index == 3);
    assert_string_equal(text, "default");
}

#define ASSERT_FAILS(call, line)                                                                   \
    do {                                                                                           \
        struct sc_error err = SC_ERROR_INIT;                                                       \
        assert_int_equal(call, SC_BAD_INPUT);                                                      \
        assert_string_equal(err.text, line);                                                       \
    } while (0)

static void complaints_name_path_found_and_expected(void **state)
{
    (void)state;
    struct sc_error unused = SC_ERROR_INIT;
    struct sc_json mesh, order, item;
    int64_t whole = 0;
    double number = 0;
    bool flag = false;
    int count = 0;
    assert_int_equal(sc_json_object(&root, "mesh", &mesh, &unused), SC_OK);
    assert_int_equal(sc_json_array(&mesh, "order", &order, &count, &unused), SC_OK);
    assert_int_equal(sc_json_at(&order, 0, &item, &unused), SC_OK);
    ASSERT_FAILS(sc_json_int(&mesh, "tensor_parallel", 1, 4, &whole, &err),
                 "p.json: mesh.tensor_parallel: found the number 8, expected a whole number from 1 "
                 "to 4");
    ASSERT_FAILS(
        sc_json_int(&item, NULL, 1, INT64_MAX, &whole, &err),
        "p.json: mesh.order[0]: found the string \"tensor\", expected a whole number of at "
        "least 1");
    ASSERT_FAILS(sc_json_int(&root, "part", 0, INT64_MAX, &whole, &err),
                 "p.json: part: found the number 1.5, expected a whole number of at least 0");
    ASSERT_FAILS(sc_json_int(&root, "big", INT64_MIN, INT64_MAX, &whole, &err),
                 "p.json: big: found the number 1e+300, expected a whole number");
    ASSERT_FAILS(sc_json_int(&mesh, "pipeline", 1, 4, &whole, &err),
                 "p.json: mesh.pipeline: found nothing, expected a whole number from 1 to 4");
    ASSERT_FAILS(sc_json_opt_int(&root, "none", 1, 4, &whole, &err),
                 "p.json: none: found null, expected a whole number from 1 to 4");
    ASSERT_FAILS(sc_json_number(&root, "part", 0, 1, &number, &err),
                 "p.json: part: found the number 1.5, expected a number from 0 to 1");
    ASSERT_FAILS(sc_json_number(&root, "part", 2, INFINITY, &number, &err),
                 "p.json: part: found the number 1.5, expected a number of at least 2");
    ASSERT_FAILS(sc_json_bool(&root, "mesh", &flag, &err),
                 "p.json: mesh: found an object with 2 keys, expected true or false");
    ASSERT_FAILS(sc_json_object(&mesh, "order", &item, &err),
                 "p.json: mesh.order: found an array with 2 items, expected an object");
    ASSERT_FAILS(sc_json_array(&root, "flag", &item, &count, &err),
                 "p.json: flag: found true, expected an array");
    ASSERT_FAILS(sc_json_at(&order, 2, &item, &err),
                 "p.json: mesh.order[2]: found nothing, expected an item at this place");
    ASSERT_FAILS(sc_json_number(&root, "long", 0, 1, &number, &err),
                 "p.json: long: found the string "
                 "\"012345678901234567890123456789012345678901234567890123456789...\", expected a "
                 "number from 0 to 1");
    ASSERT_FAILS(
        sc_json_schema(&root, "stepcast.hw/1", &err),
        "p.json: schema: found the string \"stepcast.plan/1\", expected \"stepcast.hw/1\"");
}

static void numbers_past_the_range_of_a_double_are_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    double number = 0;
    assert_int_equal(sc_json_parse("{\"x\": 1e999}", "", &doc, &err), SC_OK);
    struct sc_json at = sc_json_root(&doc);
    assert_int_equal(sc_json_number(&at, "x", 0, INFINITY, &number, &err), SC_BAD_INPUT);
    sc_json_doc_free(&doc);
}

static void names_are_suggested(void **state)
{
    (void)state;
    static const char *const orders[] = {"inter_layer", "intra_layer", NULL};
    static const char *const keys[] = {"schema", "mesh", "rat",  "big", "part",
                                       "flag",   "none", "long", NULL};
    static const char *const few[] = {"x", "y", NULL};
    int index = 0;
    ASSERT_FAILS(
        sc_json_enum(&root, "schema", orders, &index, &err),
        "p.json: schema: found the string \"stepcast.plan/1\", expected \"inter_layer\" or "
        "\"intra_layer\"");
    ASSERT_FAILS(sc_json_check_keys(&root, keys, &err),
                 "p.json: rate: found an unknown key, expected a known key: did you mean \"rat\"?");
    ASSERT_FAILS(sc_json_check_keys(&root, few, &err),
                 "p.json: schema: found an unknown key, expected \"x\" or \"y\"");
    assert_string_equal(sc_nearest("inter_laier", orders), "inter_layer");
    assert_string_equal(sc_nearest("intrA_layer", orders), "intra_layer");
    assert_null(sc_nearest("none", orders));
    assert_null(sc_nearest("ab", few)); /* two edits of two letters are another word */
}

static void a_cursor_writes_its_path_within_bounds(void **state)
{
    (void)state;
    struct sc_json a = {NULL, &root, "alpha", 0, ""}, b = {NULL, &a, NULL, 12, ""},
                   c = {NULL, &b, "c", 0, ""};
    char path[32], small[8];
    sc_json_path(&c, path, sizeof(path));
    assert_string_equal(path, "alpha[12].c");
    sc_json_path(&c, small, sizeof(small));
    assert_string_equal(small, "alpha[1");
}

static void setting_replaces_and_adds(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    assert_int_equal(sc_json_parse(SAMPLE, "p.json", &doc, &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "mesh.tensor_parallel", "4", &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "mesh.order.0", "data", &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "mesh.order[1]", "[1, 2]", &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "zero.stage", "2", &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "rate", "-1e-4", &err), SC_OK);
    char *text = cJSON_PrintUnformatted(doc.root);
    assert_non_null(strstr(text, "\"mesh\":{\"tensor_parallel\":4,\"order\":[\"data\",[1,2]]}"));
    assert_non_null(strstr(text, "\"zero\":{\"stage\":2}"));
    assert_non_null(strstr(text, "\"rate\":-0.0001"));
    cJSON_free(text);
    sc_json_doc_free(&doc);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    assert_int_equal(sc_json_parse(SAMPLE, "p.json", &doc, &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "", "4", &err), SC_USAGE);
    assert_int_equal(sc_json_set(&doc, "mesh..x", "4", &err), SC_USAGE);
    assert_int_equal(sc_json_set(&doc, "rate.x", "4", &err), SC_BAD_INPUT);
    assert_int_equal(sc_json_set(&doc, "mesh.order.x", "4", &err), SC_BAD_INPUT);
    assert_string_equal(err.text,
                        "p.json: --set mesh.order.x: found \"x\", expected a place from 0 to 2");
    assert_int_equal(sc_json_set(&doc, "mesh.order.3", "4", &err), SC_BAD_INPUT);
    sc_json_doc_free(&doc);
}

static void a_path_may_end_with_a_dot_only_wrongly(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    assert_int_equal(sc_json_parse("{}", "p.json", &doc, &err), SC_OK);
    assert_int_equal(sc_json_set(&doc, "rate.", "4", &err), SC_USAGE);
    sc_json_doc_free(&doc);
}

static void writing_reads_back(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc, again;
    char file[] = P_tmpdir "/stepcast-json-XXXXXX";
    char *text = NULL;
    size_t size = 0;
    close(mkstemp(file));
    assert_int_equal(
        sc_json_parse("{\"a\": [1, 2.5, \"x\\n\\\"\"], \"b\": {\"c\": {}, \"d\": [[1], []]},"
                      " \"e\": 0.1, \"f\": 85520809984, \"g\": null}",
                      "", &doc, &err),
        SC_OK);
    assert_int_equal(sc_json_write(doc.root, file, &err), SC_OK);
    assert_int_equal(sc_file_read(file, &text, &size, &err), SC_OK);
    assert_string_equal(text, "{\n"
                              "  \"a\": [1, 2.5, \"x\\n\\\"\"],\n"
                              "  \"b\": {\n"
                              "    \"c\": {},\n"
                              "    \"d\": [\n"
                              "      [1],\n"
                              "      []\n"
                              "    ]\n"
                              "  },\n"
                              "  \"e\": 0.1,\n"
                              "  \"f\": 85520809984,\n"
                              "  \"g\": null\n"
                              "}\n");
    free(text);
    assert_int_equal(sc_json_read(file, &again, &err), SC_OK);
    assert_true(cJSON_Compare(doc.root, again.root, 1));
    sc_json_doc_free(&again);
    sc_json_doc_free(&doc);
    unlink(file);
}

static void a_zero_byte_in_a_file_is_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    char file[] = P_tmpdir "/stepcast-json-XXXXXX";
    int descriptor = mkstemp(file);
    assert_int_equal(write(descriptor, "{}\0{}", 5), 5);
    close(descriptor);
    assert_int_equal(sc_json_read(file, &doc, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "found a zero byte, expected JSON text"));
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_text_is_placed),
        cmocka_unit_test(text_that_is_not_utf8_is_refused),
        cmocka_unit_test(repeated_keys_are_refused),
        cmocka_unit_test(deep_nesting_is_refused_without_a_crash),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(absent_optional_keys_leave_the_default),
        cmocka_unit_test(complaints_name_path_found_and_expected),
        cmocka_unit_test(numbers_past_the_range_of_a_double_are_refused),
        cmocka_unit_test(names_are_suggested),
        cmocka_unit_test(a_cursor_writes_its_path_within_bounds),
        cmocka_unit_test(setting_replaces_and_adds),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(a_path_may_end_with_a_dot_only_wrongly),
        cmocka_unit_test(writing_reads_back),
        cmocka_unit_test(a_zero_byte_in_a_file_is_refused),
    };
    return cmocka_run_group_tests(tests, open_sample, close_sample);
}
