/* ctest: labels=threads */
/* Ranks that wait sleep: on one that is a second late, less than half of one core is spent (a
 * rank that spins takes all of one, so does each of its streams). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/waiting.h"

static void test_threads_sleep(void **state)
{
    (void)state;
    double share = sc_waiting_share(SC_TRANSPORT_THREADS);
    print_message("processor time: %.3f of the wait\n", share);
    assert_true(share >= 0);
    assert_true(share < 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_sleep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
