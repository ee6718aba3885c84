/*
 * Every shipped plan for the host runs with all that an operation does not name out of reach (in
 * builds with the address sanitizer: poisoned) and with what it is to write full of NaN; then the
 * losses are those of the plain run. So every operation names what it touches, and writes all of
 * what it names as written.
 */
/* ctest: timeout=900 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "exec/launch.h"
#include "model/shipped.h"
#include "tests/support/near.h"

enum { STEPS = 2 };

static void run(const struct sc_plan *plan, bool poison, double losses[STEPS])
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result result;
    sc_run_options_neutral(&options);
    options.warmup = 0;
    options.steps = STEPS;
    options.poison = poison;
    if (sc_run_plan(plan, &options, &result, &err) != SC_OK)
        fail_msg("%s", err.text);
    assert_true(result.has_losses);
    memcpy(losses, result.losses, STEPS * sizeof *losses);
    sc_run_result_free(&result);
}

/* Losses near 6 in fp32; teams of another size sum in another order. */
static enum sc_status check(void *context, const char *name, const char *file, struct sc_error *err)
{
    int *plans = context;
    struct sc_plan plan;
    double plain[STEPS], poisoned[STEPS];
    if (strncmp(name, "host_", 5) != 0)
        return SC_OK;
    assert_int_equal(sc_plan_load(file, NULL, 0, &plan, err), SC_OK);
    print_message("%s\n", name);
    run(&plan, false, plain);
    run(&plan, true, poisoned);
    for (int s = 0; s < STEPS; s++)
        assert_near(poisoned[s], plain[s], 1e-5);
    ++*plans;
    return SC_OK;
}

static void test_shipped_plans(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    int plans = 0;
    assert_int_equal(sc_shipped_list(SC_SHIPPED_PLANS, check, &plans, &err), SC_OK);
    assert_true(plans >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shipped_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
