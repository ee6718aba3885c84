/* Every shipped plan is lowered, packed within its machine's memory, verified and forecast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "model/shipped.h"
#include "plans/lower.h"
#include "plans/plan.h"

struct seen {
    int plans, bf16, host;
};

static bool has_bf16(const struct sc_program *program)
{
    const struct sc_class *class = &program->classes.items[0];
    for (size_t i = 0; i < class->values.count; i++)
        if (class->values.items[i].dtype == SC_BF16)
            return true;
    return false;
}

static enum sc_status check(void *context, const char *name, const char *file, struct sc_error *err)
{
    static const uint64_t unlimited[SC_PLACE_COUNT];
    struct seen *seen = context;
    struct sc_plan plan;
    struct sc_program *program = NULL;
    SC_TRY(sc_plan_load(file, NULL, 0, &plan, err));
    SC_TRY(sc_lower(&plan, &program, err));
    enum sc_status status = sc_program_prepare(program, unlimited, true, err);
    if (status == SC_OK) {
        const struct sc_class *class = &program->classes.items[0];
        const struct sc_place_memory *device = &class->memory[SC_DEVICE];
        assert_string_equal(plan.name, name);
        assert_true(device->step_bytes >= device->bound_bytes);
        assert_true((double)device->step_bytes <= 1.1 * (double)device->bound_bytes);
        assert_true(class->step.waits.count > 0);
        assert_int_equal(has_bf16(program), plan.precision.parameters == SC_BF16);
        seen->plans++;
        seen->bf16 += has_bf16(program);
        seen->host += strncmp(name, "host_", 5) == 0;
        if (strncmp(name, "host_", 5) == 0)
            assert_false(has_bf16(program));
    }
    sc_program_destroy(&program);
    return status;
}

static void test_every_shipped_plan_is_verified(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct seen seen = {0, 0, 0};
    if (sc_shipped_list(SC_SHIPPED_PLANS, check, &seen, &err) != SC_OK)
        fail_msg("%s", err.text);
    print_message("%d plans, %d in bf16, %d for the host\n", seen.plans, seen.bf16, seen.host);
    assert_true(seen.bf16 >= 15); /* 13B: 12, 22B: 2, 175B: 1 */
    assert_true(seen.host >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_shipped_plan_is_verified)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
