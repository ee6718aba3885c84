/* ctest: labels=mpi ranks=4 timeout=600 */
/* The same equality with ranks as processes: random plans of four ranks under mpirun, over MPI
 * and over sockets in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "exec/check.h"
#include "exec/launch.h"
#include "tests/support/random_plan.h"

enum { PLANS = 12, RANKS = 4 };

static void test_losses_and_gradients(void **state)
{
    (void)state;
    int done = 0;
    for (uint64_t seed = 1000; done < PLANS; seed++) {
        struct sc_plan plan;
        struct sc_error err = SC_ERROR_INIT;
        struct sc_run_options options;
        struct sc_check_result result;
        sc_random_plan(seed, RANKS, &plan);
        if (sc_plan_ranks(&plan) != RANKS)
            continue;
        sc_run_options_neutral(&options);
        options.transport = done % 2 == 0 ? SC_TRANSPORT_MPI : SC_TRANSPORT_SOCKETS;
        options.warmup = 0;
        options.steps = 5;
        options.chaos = done % 3 == 2; /* every third: over both */
        options.chaos_seed = seed;
        if (sc_check(&plan, &options, &result, &err) != SC_OK)
            fail_msg("plan %llu: %s", (unsigned long long)seed, err.text);
        if (result.root && !result.equal)
            fail_msg("plan %llu: loss differs by %g, gradient of %s by %g",
                     (unsigned long long)seed, result.loss, result.gradient_tensor,
                     result.gradient);
        done++;
    }
    sc_launch_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses_and_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
