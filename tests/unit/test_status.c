/* Status names, exit codes and the one-line error record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/status.h"
#include "base/units.h"

static void exit_codes_are_those_of_the_manual(void **state)
{
    (void)state;
    assert_int_equal(sc_status_exit_code(SC_OK), 0);
    assert_int_equal(sc_status_exit_code(SC_NO), 1);
    assert_int_equal(sc_status_exit_code(SC_USAGE), 2);
    assert_int_equal(sc_status_exit_code(SC_BAD_INPUT), 3);
    assert_int_equal(sc_status_exit_code(SC_MACHINE), 4);
    assert_int_equal(sc_status_exit_code(SC_NO_MEMORY), 4);
    assert_string_equal(sc_status_name(SC_BAD_INPUT), "SC_BAD_INPUT");
    assert_string_equal(sc_status_sentence(SC_USAGE), "wrong usage");
}

static void unknown_status_is_a_bug(void **state)
{
    (void)state;
    assert_string_equal(sc_status_name((enum sc_status)99), "SC_BUG");
}

static void input_line_has_the_parts_that_exist(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_fail_input(&err, "p.json", "mesh.order", "null", "an array"), SC_BAD_INPUT);
    assert_string_equal(err.text, "p.json: mesh.order: found null, expected an array");
    assert_int_equal(err.status, SC_BAD_INPUT);
    sc_fail_input(&err, NULL, "a", NULL, "b");
    assert_string_equal(err.text, "a: expected b");
    sc_fail_input(&err, "f", NULL, "x", NULL);
    assert_string_equal(err.text, "f: found x");
}

static void record_is_one_line(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    sc_fail(&err, SC_MACHINE, "a%cb%cc", '\n', '\x1b');
    assert_string_equal(err.text, "a b c");
}

static void old_text_may_be_an_argument(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    sc_fail(&err, SC_MACHINE, "inner");
    sc_fail(&err, SC_NO, "outer: %s", err.text);
    assert_string_equal(err.text, "outer: inner");
}

/* 1023 bytes fit. "x" and 600 two-byte letters are 1201 bytes: the cut after byte 1023 stands
 * after 511 whole letters (1 + 1022), the cut of 600 letters alone inside the 512th (1022 + 1). */
static void cut_keeps_whole_characters(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char letters[1201];
    for (int i = 0; i < 600; i++) {
        memcpy(letters + 2 * i, "\u00e9", 2);
    }
    letters[1200] = '\0';
    sc_fail(&err, SC_MACHINE, "x%s", letters);
    assert_int_equal(strlen(err.text), 1023);
    sc_fail(&err, SC_MACHINE, "%s", letters);
    assert_int_equal(strlen(err.text), 1022);
}

static enum sc_status fail_through_try(struct sc_error *err)
{
    SC_TRY(sc_fail(err, SC_USAGE, "stop"));
    return SC_OK;
}

static void try_hands_on(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(fail_through_try(&err), SC_USAGE);
}

static void units_print(void **state)
{
    (void)state;
    char text[32];
    /* 29,021,276,160 / 2^30 = 27.028; 12,848,143,360 = 12.85e9 */
    assert_string_equal(sc_print_bytes(29021276160.0, text, sizeof(text)), "27.03 GiB");
    assert_string_equal(sc_print_bytes(512, text, sizeof(text)), "512 B");
    assert_string_equal(sc_print_bytes(1024, text, sizeof(text)), "1.00 KiB");
    assert_string_equal(sc_print_seconds(0.00159, text, sizeof(text)), "1.59 ms");
    assert_string_equal(sc_print_seconds(2.5e-7, text, sizeof(text)), "0.25 us");
    assert_string_equal(sc_print_seconds(-1.5, text, sizeof(text)), "-1.50 s");
    assert_string_equal(sc_print_seconds(0, text, sizeof(text)), "0 s");
    assert_string_equal(sc_print_count(12848143360.0, text, sizeof(text)), "12.85B");
    assert_string_equal(sc_print_count(7, text, sizeof(text)), "7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_are_those_of_the_manual),
        cmocka_unit_test(unknown_status_is_a_bug),
        cmocka_unit_test(input_line_has_the_parts_that_exist),
        cmocka_unit_test(record_is_one_line),
        cmocka_unit_test(old_text_may_be_an_argument),
        cmocka_unit_test(cut_keeps_whole_characters),
        cmocka_unit_test(try_hands_on),
        cmocka_unit_test(units_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
