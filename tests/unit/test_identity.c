/* Machines that differ: only what both sides know is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "exec/identity.h"

static const struct sc_identity EPYC = {"AMD EPYC", 2, "openblas 0.3.21 SkylakeX"};

static void the_same_machine_is_the_same(void **state)
{
    (void)state;
    char text[256];
    assert_false(sc_identity_differs(&EPYC, &EPYC, text, sizeof(text)));
    assert_string_equal(text, "");
}

static void what_is_not_known_is_not_compared(void **state)
{
    (void)state;
    char text[256];
    const struct sc_identity nothing = {"", 0, ""}, cores = {"", 4, ""};
    assert_true(sc_identity_empty(&nothing) && !sc_identity_empty(&cores));
    assert_false(sc_identity_differs(&nothing, &EPYC, text, sizeof(text)));
    assert_false(sc_identity_differs(&EPYC, &nothing, text, sizeof(text)));
    assert_true(sc_identity_differs(&EPYC, &cores, text, sizeof(text)));
    assert_string_equal(text, "2 cores against 4");
}

static void each_difference_is_named(void **state)
{
    (void)state;
    char text[256], small[24];
    const struct sc_identity other = {"Xeon", 1, "plain"};
    assert_true(sc_identity_differs(&other, &EPYC, text, sizeof(text)));
    assert_string_equal(text, "processor Xeon against AMD EPYC; 1 core against 2; library plain "
                              "against openblas 0.3.21 SkylakeX");
    assert_true(sc_identity_differs(&other, &EPYC, small, sizeof(small)));
    assert_string_equal(small, "processor Xeon against "); /* cut, and ended */
}

/* This machine has a name for its cores, no more of them than asked for, and a profile keeps it. */
static void this_machine_has_an_identity(void **state)
{
    (void)state;
    const struct sc_backend *host = NULL;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_identity one, all;
    assert_int_equal(sc_backend_find("host", &host, &err), SC_OK);
    sc_identity_here(host, 1, &one);
    sc_identity_here(host, 0, &all);
    assert_int_equal(one.cores, 1);
    assert_true(all.cores >= 1);
    assert_non_null(strstr(all.library, "kernels"));
    cJSON *profile = cJSON_CreateObject();
    assert_true(sc_identity_write(&one, profile));
    const cJSON *on = cJSON_GetObjectItemCaseSensitive(profile, "measured_on");
    assert_true(cJSON_GetObjectItemCaseSensitive(on, "cores")->valuedouble == 1.0);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(on, "library")->valuestring, one.library);
    cJSON_Delete(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_machine_is_the_same),
        cmocka_unit_test(what_is_not_known_is_not_compared),
        cmocka_unit_test(each_difference_is_named),
        cmocka_unit_test(this_machine_has_an_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
