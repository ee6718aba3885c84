/* The planner: the worked example's packing, both modes, capacities, peaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plans/memory.h"
#include "tests/support/worked_example.h"

static const uint64_t unlimited[SC_PLACE_COUNT];

static void prepare(struct sc_program *program, const uint64_t capacity[SC_PLACE_COUNT])
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_program_prepare(program, capacity, true, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
}

/* Offsets as worked by hand: z lies under da, whose first writer (17) comes after z's last readers
 * (11, 14); dn under y (last reader 19, first writer 22). */
static void test_worked_example(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t offset;
    } expected[] = {{"u", 0},     {"a", 512},   {"da", 1024},  {"z", 1024},
                    {"x", 1536},  {"n", 1792},  {"y", 2048},   {"dn", 2048},
                    {"dy", 2304}, {"dz", 2560}, {"stat", 2816}};
    struct sc_program *program = sc_worked_example();
    prepare(program, unlimited);
    const struct sc_class *class = &program->classes.items[0];
    const struct sc_place_memory *memory = &class->memory[SC_DEVICE];
    uint64_t sum = 0, found = 0;
    for (size_t i = 0; i < class->buffers.count; ++i) {
        const struct sc_buffer *buffer = &class->buffers.items[i];
        const char *name = program->names.items[buffer->label.name];
        for (size_t j = 0; j < sizeof(expected) / sizeof(expected[0]); ++j) {
            if (strcmp(name, expected[j].name) == 0) {
                assert_int_equal(buffer->offset, expected[j].offset);
                sum += sc_round_up(buffer->bytes, SC_ALIGN);
                ++found;
            }
        }
    }
    assert_int_equal(found, 11);
    assert_int_equal(sum, 3584); /* 7 x 256 + 3 x 512 + 256 */
    assert_int_equal(class->memory_mode, SC_MEMORY_NO_ADDED_WAITS);
    assert_int_equal(memory->step_bytes, 3072);
    assert_int_equal(memory->bound_bytes, 3072);
    /* param, grad, m, v of 2,048 and step_state of 256 */
    assert_int_equal(memory->persistent_bytes, 4 * 2048 + 256);
    assert_int_equal(memory->arena_bytes, 3072 + 4 * 2048 + 256);
    assert_int_equal(class->memory[SC_PINNED].arena_bytes, 2 * 256); /* two versions of xin */
    assert_int_equal(class->memory[SC_HOST].arena_bytes, 0);
    sc_program_destroy(&program);
}

/* At 17 (da written) all but z and dn are alive: x n y dy dz stat of 256, u a da of 512: 3,072. */
static void test_peak(void **state)
{
    (void)state;
    struct sc_alive alive[16];
    size_t count;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    prepare(program, unlimited);
    const struct sc_class *class = &program->classes.items[0];
    assert_int_equal(class->memory[SC_DEVICE].peak_op, 17);
    assert_int_equal(class->memory[SC_DEVICE].peak_bytes, 3072 + 4 * 2048 + 256);
    assert_int_equal(sc_memory_peak(program, class, SC_DEVICE, alive, 16, &count, &err), SC_OK);
    assert_int_equal(count, 9 + 5);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
        sum += alive[i].bytes;
        assert_true(i == 0 || alive[i].bytes <= alive[i - 1].bytes);
    }
    assert_int_equal(sum, class->memory[SC_DEVICE].peak_bytes);
    /* No more than there is room for is written, all are counted. */
    alive[3].bytes = 1;
    assert_int_equal(sc_memory_peak(program, class, SC_DEVICE, alive, 3, &count, &err), SC_OK);
    assert_int_equal(count, 14);
    assert_int_equal(alive[3].bytes, 1);
    sc_program_destroy(&program);
}

/* Exactly the arena fits; one byte less does not, in either mode, and the line says so. */
static void test_capacity(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    uint64_t capacity[SC_PLACE_COUNT] = {[SC_DEVICE] = 11520};
    prepare(program, capacity);
    assert_int_equal(program->classes.items[0].memory_mode, SC_MEMORY_NO_ADDED_WAITS);
    capacity[SC_DEVICE] = 11519;
    assert_int_equal(sc_program_prepare(program, capacity, true, &err), SC_NO);
    assert_string_equal(err.text, "device memory: class \"all\" needs 11.25 KiB (11520 bytes), "
                                  "there are 11.25 KiB (11519 bytes)");
    sc_program_destroy(&program);
}

/* ---- two streams that nothing orders ----------------------------------------------------- */

static uint32_t step_value(struct sc_program *program, struct sc_class *class, const char *name)
{
    struct sc_label label = sc_label(program, name);
    uint32_t buffer = sc_add_buffer(program, class, label, SC_DEVICE, SC_STEP, 1, 1000);
    return sc_add_value(program, class, label, buffer, 0, SC_FP32, 1, 250);
}

/* Ops 0, 1 on one stream write and read a; 2, 3 on another b: in issue order one after the other.
 */
static struct sc_program *two_streams(void)
{
    struct sc_mesh mesh;
    struct sc_program *program;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(1, 1, 1, 1, &mesh);
    assert_int_equal(sc_program_create(&mesh, &program, &err), SC_OK);
    sc_add_stream(program, "one", SC_ENGINE_DEVICE, 0);
    sc_add_stream(program, "two", SC_ENGINE_DEVICE, 0);
    struct sc_class *class = sc_add_class(program, "all", 0, NULL);
    for (int stream = 0; stream < 2; ++stream) {
        uint32_t value = step_value(program, class, stream ? "b" : "a");
        for (int i = 0; i < 2; ++i) {
            sc_add_op(program, &class->step, SC_SCALE, stream, -1, sc_label(program, "op"));
            sc_add_operand(program, &class->step, SC_ROLE_X, i ? SC_IN : SC_OUT, value);
        }
    }
    return program;
}

static void test_no_added_waits(void **state)
{
    (void)state;
    struct sc_program *program = two_streams();
    prepare(program, unlimited);
    const struct sc_class *class = &program->classes.items[0];
    assert_int_equal(class->step.waits.count, 0);
    assert_int_equal(class->memory[SC_DEVICE].step_bytes, 2 * 1024); /* 1,000 rounded to 256 */
    assert_int_equal(class->memory[SC_DEVICE].bound_bytes, 2 * 1024);
    sc_program_destroy(&program);
}

/* With room for one: 2 waits for 1 (read of a before b is written over it), and 0 of the next step
 * for 3. */
static void test_issue_order(void **state)
{
    (void)state;
    struct sc_program *program = two_streams();
    prepare(program, (const uint64_t[SC_PLACE_COUNT]){[SC_DEVICE] = 1024});
    const struct sc_class *class = &program->classes.items[0];
    assert_int_equal(class->memory_mode, SC_MEMORY_ISSUE_ORDER);
    assert_int_equal(class->memory[SC_DEVICE].step_bytes, 1024);
    assert_int_equal(class->memory[SC_DEVICE].bound_bytes, 1024);
    assert_int_equal(class->added_waits, 2);
    assert_int_equal(class->step.waits.count, 2);
    const struct sc_op *first = &class->step.ops.items[0], *third = &class->step.ops.items[2];
    assert_int_equal(first->waits, 1);
    assert_int_equal(class->step.waits.items[first->first_wait].op, 3);
    assert_int_equal(class->step.waits.items[first->first_wait].distance, 1);
    assert_int_equal(third->waits, 1);
    assert_int_equal(class->step.waits.items[third->first_wait].op, 1);
    assert_int_equal(class->step.waits.items[third->first_wait].distance, 0);
    /* Planned anew without a limit, the added waits are gone. */
    prepare(program, unlimited);
    assert_int_equal(program->classes.items[0].step.waits.count, 0);
    assert_int_equal(program->classes.items[0].added_waits, 0);
    sc_program_destroy(&program);
}

/* Ordered within the step but not back into the next: b after a by a wait, yet a of the next step
 * may overtake b. Sharing would need a wait, so there is none. */
static void test_both_ways_round(void **state)
{
    (void)state;
    struct sc_program *program = two_streams();
    struct sc_class *class = &program->classes.items[0];
    uint32_t token = sc_add_token(program, class, sc_label(program, "token"));
    struct sc_list *list = &class->step;
    /* 1 writes the token on stream one, 2 reads it: appended as ops 4 and 5 would not do, so the
     * operands are put in place by hand. */
    struct sc_op *ops = list->ops.items;
    for (uint32_t i = 1; i <= 2; ++i) {
        uint32_t value = list->operands.items[ops[i].first_operand].value;
        uint8_t access = list->operands.items[ops[i].first_operand].access;
        ops[i].first_operand = (uint32_t)list->operands.count;
        ops[i].operands = 2;
        struct sc_operand *pair = sc_array_push(&list->operands);
        *pair = (struct sc_operand){value, SC_ROLE_X, access, SC_NOW};
        pair = sc_array_push(&list->operands);
        *pair = (struct sc_operand){token, SC_ROLE_TOKEN, i == 1 ? SC_OUT : SC_IN, SC_NOW};
    }
    prepare(program, unlimited);
    /* waits: 2 for 1; 1 of the next step for 2. So 0 of the next step may run beside 2 and 3. */
    assert_int_equal(class->step.waits.count, 2);
    assert_int_equal(class->memory[SC_DEVICE].step_bytes, 2 * 1024);
    sc_program_destroy(&program);
}

/* A step buffer that only the init list uses needs no bytes of its own in the step. */
static void test_init_shares_with_step(void **state)
{
    (void)state;
    struct sc_program *program = two_streams();
    struct sc_class *class = &program->classes.items[0];
    uint32_t staging = step_value(program, class, "staging");
    uint32_t another = step_value(program, class, "another");
    const uint32_t values[] = {staging, another};
    for (int i = 0; i < 2; ++i) {
        sc_add_op(program, &class->init, SC_INITIALIZE, 0, -1, sc_label(program, "init"));
        sc_add_operand(program, &class->init, SC_ROLE_Y, SC_OUT, values[i]);
    }
    prepare(program, unlimited);
    assert_int_equal(class->memory[SC_DEVICE].step_bytes, 2 * 1024);
    assert_int_not_equal(class->buffers.items[2].offset, class->buffers.items[3].offset);
    sc_program_destroy(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_example),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_no_added_waits),
        cmocka_unit_test(test_issue_order),
        cmocka_unit_test(test_both_ways_round),
        cmocka_unit_test(test_init_shares_with_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
