/* ctest: labels=mpi ranks=2 */
/* Processes that wait sleep, although MPI's own calls spin: neither takes half of a core while
 * one is a second late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/launch.h"
#include "tests/support/waiting.h"

static void check_that_processes_sleep(enum sc_run_transport transport)
{
    (void)sc_waiting_share(transport); /* MPI is started, which is not what is measured */
    double share = sc_waiting_share(transport);
    print_message("processor time: %.3f of the wait\n", share);
    assert_true(share >= 0);
    assert_true(share < 0.5);
}

static void test_processes_sleep(void **state)
{
    (void)state;
    check_that_processes_sleep(SC_TRANSPORT_MPI);
    check_that_processes_sleep(SC_TRANSPORT_SOCKETS);
    sc_launch_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_processes_sleep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
