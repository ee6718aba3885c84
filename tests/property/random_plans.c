/* Random valid plans: every one lowers, is planned with little waste and passes the verifier; its
 * parameters do not depend on the layout; its reductions carry the bytes that they must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plans/lower.h"
#include "plans/memory.h"
#include "plans/program.h"
#include "tests/support/random_plan.h"

enum { PLANS = 400 };

static struct sc_program *prepared(const struct sc_plan *plan, const uint64_t *capacity)
{
    const uint64_t unlimited[SC_PLACE_COUNT] = {0};
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    if (sc_lower(plan, &program, &err) != SC_OK)
        fail_msg("%s", err.text);
    if (sc_program_prepare(program, capacity ? capacity : unlimited, true, &err) != SC_OK)
        fail_msg("%s", err.text);
    return program;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_waste_is_small(void **state)
{
    (void)state;
    static double waste[PLANS];
    for (int i = 0; i < PLANS; i++) {
        struct sc_plan plan;
        sc_random_plan((uint64_t)i, 8, &plan);
        struct sc_program *program = prepared(&plan, NULL);
        const struct sc_place_memory *memory = &program->classes.items[0].memory[SC_DEVICE];
        assert_true(memory->step_bytes >= memory->bound_bytes);
        waste[i] = (double)memory->step_bytes / (double)memory->bound_bytes - 1;
        sc_program_destroy(&program);
    }
    qsort(waste, PLANS, sizeof(*waste), by_value);
    print_message("waste over the bound: median %.2f %%, worst %.2f %%\n", 100 * waste[PLANS / 2],
                  100 * waste[PLANS - 1]);
    assert_true(waste[PLANS / 2] <= 0.02);
    assert_true(waste[PLANS - 1] <= 0.10);
}

/* With a little less than the first mode needs, the planner packs by issue order or says that the
 * plan does not fit; what it packs is still correct. */
static void test_less_memory(void **state)
{
    (void)state;
    int packed = 0;
    for (int i = 0; i < PLANS / 4; i++) {
        struct sc_plan plan;
        struct sc_error err = SC_ERROR_INIT;
        sc_random_plan((uint64_t)i, 8, &plan);
        struct sc_program *program = prepared(&plan, NULL);
        uint64_t capacity[SC_PLACE_COUNT] = {0};
        char roomy[SC_HASH_SIZE], hash[SC_HASH_SIZE];
        capacity[SC_DEVICE] = program->classes.items[0].memory[SC_DEVICE].arena_bytes - 1;
        assert_int_equal(sc_program_hash(program, roomy, &err), SC_OK);
        sc_program_destroy(&program);
        assert_int_equal(sc_lower(&plan, &program, &err), SC_OK);
        enum sc_status status = sc_program_prepare(program, capacity, true, &err);
        if (status == SC_OK) {
            packed++;
            assert_int_equal(program->classes.items[0].memory_mode, SC_MEMORY_ISSUE_ORDER);
            assert_true(program->classes.items[0].memory[SC_DEVICE].arena_bytes <=
                        capacity[SC_DEVICE]);
            assert_true(program->classes.items[0].added_waits > 0);
            assert_int_equal(sc_program_hash(program, hash, &err), SC_OK);
            assert_string_equal(hash, roomy); /* traces of both machines join */
        } else {
            assert_int_equal(status, SC_NO);
        }
        sc_program_destroy(&program);
    }
    print_message("packed by issue order: %d of %d\n", packed, PLANS / 4);
}

/* Products do the same work in every layout, up to the padding of the vocabulary; tensors are the
 * same; every rank's blocks together cover each tensor exactly `copies` times. */
static void test_layouts_agree(void **state)
{
    (void)state;
    for (int i = 0; i < PLANS / 4; i++) {
        struct sc_plan plan, one;
        sc_random_plan((uint64_t)i, 8, &plan);
        sc_plan_reference(&plan, &one);
        struct sc_program *program = prepared(&plan, NULL), *reference = prepared(&one, NULL);
        assert_int_equal(program->tensors.count, reference->tensors.count);
        assert_int_equal(sc_program_parameters(program), sc_program_parameters(reference));
        int64_t covered = 0, tensor = plan.mesh.size[SC_TENSOR];
        for (int64_t rank = 0; rank < tensor; rank++) {
            const int64_t at[SC_AXIS_COUNT] = {[SC_TENSOR] = rank};
            for (size_t p = 0; p < program->parameters.count; p++) {
                const struct sc_parameter *parameter = &program->parameters.items[p];
                if (parameter->replicated && rank > 0)
                    continue;
                for (uint32_t b = 0; b < parameter->blocks; b++) {
                    const struct sc_block *block =
                        &program->blocks.items[parameter->first_block + b];
                    int64_t rows = program->tensors.items[block->tensor].rows;
                    int64_t first = sc_index_at(&block->row, at), end = first + block->rows;
                    end = end > rows ? rows : end;
                    covered += end > first ? (end - first) * block->cols : 0;
                }
            }
        }
        assert_int_equal(covered, sc_program_parameters(program));
        sc_program_destroy(&program);
        sc_program_destroy(&reference);
    }
}

/* Gradient reductions carry the flat gradient buffer exactly once a step, parameter gathers the
 * flat parameter buffer. */
static void test_reductions_carry_every_gradient_once(void **state)
{
    (void)state;
    for (int i = 0; i < PLANS; i++) {
        struct sc_plan plan;
        sc_random_plan((uint64_t)i, 8, &plan);
        if (plan.mesh.size[SC_DATA] == 1)
            continue;
        struct sc_program *program = prepared(&plan, NULL);
        const struct sc_class *class = &program->classes.items[0];
        uint64_t reduced = 0, gathered = 0, flat = 0;
        for (size_t j = 0; j < class->buffers.count; j++)
            if (strcmp(program->names.items[class->buffers.items[j].label.name], "gradients") == 0)
                flat = class->buffers.items[j].bytes;
        for (size_t j = 0; j < class->step.ops.count; j++) {
            const struct sc_op *op = &class->step.ops.items[j];
            const char *name = program->names.items[op->label.name];
            uint64_t bytes = 0;
            if (op->group >= 0)
                bytes = sc_op_collective_bytes(program, class, &class->step, op);
            reduced += strcmp(name, "gradients") == 0 ? bytes : 0;
            gathered += op->kind == SC_ALL_GATHER ? bytes : 0;
        }
        assert_int_equal(reduced, flat);
        assert_int_equal(gathered, plan.zero.stage == 1 ? flat : 0);
        sc_program_destroy(&program);
    }
}

static void test_same_plan_same_hash(void **state)
{
    (void)state;
    for (int i = 0; i < PLANS / 8; i++) {
        struct sc_plan plan;
        struct sc_error err = SC_ERROR_INIT;
        char a[SC_HASH_SIZE], b[SC_HASH_SIZE];
        sc_random_plan((uint64_t)i, 8, &plan);
        struct sc_program *first = prepared(&plan, NULL), *second = prepared(&plan, NULL);
        assert_int_equal(sc_program_hash(first, a, &err), SC_OK);
        assert_int_equal(sc_program_hash(second, b, &err), SC_OK);
        assert_string_equal(a, b);
        sc_program_destroy(&first);
        sc_program_destroy(&second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waste_is_small),
        cmocka_unit_test(test_less_memory),
        cmocka_unit_test(test_layouts_agree),
        cmocka_unit_test(test_reductions_carry_every_gradient_once),
        cmocka_unit_test(test_same_plan_same_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
