/* One wrong program for each rule of the verifier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plans/memory.h"
#include "tests/support/worked_example.h"

static const uint64_t unlimited[SC_PLACE_COUNT];

/* Refused, with a line that begins with the rule. */
static void refused(const struct sc_program *program, const char *rule)
{
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_program_verify(program, &err), SC_BUG);
    if (strncmp(err.text, rule, strlen(rule)) != 0 || err.text[strlen(rule)] != ':') {
        fail_msg("\"%s\" is not the rule %s", err.text, rule);
    }
}

static void accepted(const struct sc_program *program)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_program_verify(program, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
}

static struct sc_program *example(void)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    assert_int_equal(sc_program_prepare(program, unlimited, true, &err), SC_OK);
    return program;
}

static struct sc_value *operand_value(struct sc_program *program, uint32_t op, enum sc_role role)
{
    struct sc_class *class = &program->classes.items[0];
    uint32_t value = sc_op_operand(&class->step, &class->step.ops.items[op], role)->value;
    return &class->values.items[value];
}

static struct sc_buffer *operand_buffer(struct sc_program *program, uint32_t op, enum sc_role role)
{
    return &program->classes.items[0].buffers.items[operand_value(program, op, role)->buffer];
}

/* ---- order ------------------------------------------------------------------------------- */

/* Each of the 12 waits is needed. */
static void test_every_wait_is_needed(void **state)
{
    (void)state;
    struct sc_program *program = example();
    struct sc_list *list = &program->classes.items[0].step;
    int removed = 0;
    for (uint32_t i = 0; i < list->ops.count; ++i) {
        struct sc_op *op = &list->ops.items[i], whole = *op;
        for (uint32_t j = 0; j < whole.waits; ++j, ++removed) {
            /* the last wait takes the place of the removed one */
            struct sc_wait *waits = &list->waits.items[whole.first_wait], kept = waits[j];
            waits[j] = waits[whole.waits - 1];
            op->waits = (uint8_t)(whole.waits - 1);
            refused(program, "unordered-access");
            waits[j] = kept;
            *op = whole;
        }
    }
    assert_int_equal(removed, SC_WORKED_WAITS);
    accepted(program);
    sc_program_destroy(&program);
}

/* 10 runs beside the all-reduce 8: it may not read what that one works on, nor a row of it. (z.1 at
 * byte 96, over z.0, would be no fault: 12 writes it after 11 has waited for 8.) */
static void test_overlapping_values(void **state)
{
    (void)state;
    struct sc_program *program = example();
    struct sc_class *class = &program->classes.items[0];
    struct sc_op *op = &class->step.ops.items[10];
    uint32_t z0 = sc_op_operand(&class->step, &class->step.ops.items[8], SC_ROLE_Y)->value;
    class->step.operands.items[op->first_operand].value = z0;
    refused(program, "unordered-access");
    uint32_t row = sc_add_view(program, class, sc_label(program, "row"), z0, 3, 1, 7, 1);
    class->step.operands.items[op->first_operand].value = row;
    refused(program, "unordered-access");
    operand_value(program, 12, SC_ROLE_C)->offset = 96;
    class->step.operands.items[op->first_operand].value =
        sc_op_operand(&class->step, &class->step.ops.items[9], SC_ROLE_C)->value;
    accepted(program);
    sc_program_destroy(&program);
}

static void test_waits(void **state)
{
    (void)state;
    struct sc_program *program = example();
    struct sc_list *list = &program->classes.items[0].step;
    struct sc_wait *wait = &list->waits.items[list->ops.items[11].first_wait];
    wait->op = 13;
    refused(program, "wait-forward");
    wait->op = 99;
    refused(program, "wait-range");
    wait->op = 8;
    wait->distance = 3;
    refused(program, "wait-range");
    wait->distance = 0;
    accepted(program);
    list->ops.items[11].stream = 9;
    refused(program, "structure");
    sc_program_destroy(&program);
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* adam reads the flat gradients whole: as a step buffer its holes are never written. */
static void test_read_before_write(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    operand_buffer(program, 33, SC_ROLE_GRADIENT)->lifetime = SC_STEP;
    assert_int_equal(sc_program_prepare(program, unlimited, false, &err), SC_OK);
    refused(program, "read-before-write");
    sc_program_destroy(&program);
}

/* Columns 0-3 and 4-7 of rows 0-3 are written; rows 0-3 may be read, row 4 may not. */
static void test_row_gaps(void **state)
{
    (void)state;
    static const struct {
        int rows, cols;
        bool fine;
    } reads[] = {{4, 8, true}, {2, 8, true}, {5, 8, false}, {4, 9, false}, {4, 12, false}};
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); ++i) {
        struct sc_mesh mesh;
        struct sc_program *program;
        struct sc_error err = SC_ERROR_INIT;
        sc_mesh_make(1, 1, 1, 1, &mesh);
        assert_int_equal(sc_program_create(&mesh, &program, &err), SC_OK);
        sc_add_stream(program, "compute", SC_ENGINE_DEVICE, 0);
        struct sc_class *class = sc_add_class(program, "all", 0, NULL);
        struct sc_label label = sc_label(program, "x");
        uint32_t buffer = sc_add_buffer(program, class, label, SC_DEVICE, SC_STEP, 1, 8 * 12 * 4);
        uint32_t whole = sc_add_value(program, class, label, buffer, 0, SC_FP32, 8, 12);
        for (int half = 0; half < 3; ++half) {
            uint32_t view = half < 2 ? sc_add_view(program, class, label, whole, 0, 4, 4 * half, 4)
                                     : sc_add_view(program, class, label, whole, 0, reads[i].rows,
                                                   0, reads[i].cols);
            sc_add_op(program, &class->step, SC_SCALE, 0, -1, label);
            sc_add_operand(program, &class->step, SC_ROLE_X, half < 2 ? SC_OUT : SC_IN, view);
        }
        assert_int_equal(sc_program_prepare(program, unlimited, false, &err), SC_OK);
        if (reads[i].fine) {
            accepted(program);
        } else {
            refused(program, "read-before-write");
        }
        sc_program_destroy(&program);
    }
}

static void test_places(void **state)
{
    (void)state;
    struct sc_program *program = example();
    operand_value(program, 3, SC_ROLE_X)->rows = 16; /* x has 8 */
    refused(program, "outside-buffer");
    sc_program_destroy(&program);
    program = example();
    operand_buffer(program, 33, SC_ROLE_STATE)->offset += 256; /* the last of the arena */
    refused(program, "outside-arena");
    sc_program_destroy(&program);
    program = example(); /* u and a are alive together */
    operand_buffer(program, 5, SC_ROLE_X)->offset = operand_buffer(program, 5, SC_ROLE_Y)->offset;
    refused(program, "shared-bytes");
    sc_program_destroy(&program);
    program = example(); /* m over v: persistent */
    operand_buffer(program, 33, SC_ROLE_M)->offset = operand_buffer(program, 33, SC_ROLE_V)->offset;
    refused(program, "shared-bytes");
    sc_program_destroy(&program);
}

/* x put under dz (16 to 26): apart in the step, but nothing orders the copy of the next step after
 * 26. (It waits for 32 now because 32 reads x; here the reads of x end at 14.) */
static void test_reuse_without_wait(void **state)
{
    (void)state;
    struct sc_program *program = example();
    struct sc_class *class = &program->classes.items[0];
    struct sc_error err = SC_ERROR_INIT;
    for (uint32_t op = 27; op <= 32; op += 5) { /* norm backward reads n instead */
        struct sc_op *item = &class->step.ops.items[op];
        for (uint32_t i = 0; i < item->operands; ++i) {
            struct sc_operand *operand = &class->step.operands.items[item->first_operand + i];
            if (operand->role == SC_ROLE_X) {
                operand->value =
                    sc_op_operand(&class->step, &class->step.ops.items[3], SC_ROLE_Y)->value;
            }
        }
    }
    assert_int_equal(sc_program_prepare(program, unlimited, true, &err), SC_OK);
    operand_buffer(program, 1, SC_ROLE_Y)->offset = operand_buffer(program, 16, SC_ROLE_DX)->offset;
    refused(program, "unordered-access");
    sc_program_destroy(&program);
}

/* ---- groups ------------------------------------------------------------------------------ */

struct stages {
    struct sc_program *program;
    int pipeline, data, both;
    uint32_t value[4], large[4];
};

/* A class for every coordinate of the pipeline and data axes. Streams: one a group. */
static struct stages stages(int64_t pipeline, int64_t data)
{
    struct stages s;
    struct sc_mesh mesh;
    struct sc_error err = SC_ERROR_INIT;
    unsigned p = SC_AXIS_MASK(SC_PIPELINE), d = SC_AXIS_MASK(SC_DATA);
    sc_mesh_make(1, 1, data, pipeline, &mesh);
    assert_int_equal(sc_program_create(&mesh, &s.program, &err), SC_OK);
    sc_add_stream(s.program, "pipeline", SC_ENGINE_DEVICE, 0);
    sc_add_stream(s.program, "data", SC_ENGINE_DEVICE, 0);
    sc_add_stream(s.program, "both", SC_ENGINE_DEVICE, 0);
    s.pipeline = sc_add_group(s.program, "pipeline", p);
    s.data = sc_add_group(s.program, "data", d);
    s.both = sc_add_group(s.program, "both", p | d);
    for (int64_t i = 0; i < pipeline * data; ++i) {
        const int64_t at[SC_AXIS_COUNT] = {[SC_DATA] = i % data, [SC_PIPELINE] = i / data};
        struct sc_class *class = sc_add_class(s.program, "stage", p | d, at);
        struct sc_label label = sc_label(s.program, "x");
        uint32_t buffer = sc_add_buffer(s.program, class, label, SC_DEVICE, SC_PERSISTENT, 1, 1024);
        s.value[i] = sc_add_value(s.program, class, label, buffer, 0, SC_FP32, 1, 64);
        s.large[i] = sc_add_value(s.program, class, label, buffer, 512, SC_FP32, 1, 128);
    }
    return s;
}

static void reduce(const struct stages *s, int class, int group, uint32_t value)
{
    struct sc_list *list = &s->program->classes.items[class].step;
    sc_add_op(s->program, list, SC_ALL_REDUCE, group, group, sc_label(s->program, "reduce"));
    sc_add_operand(s->program, list, SC_ROLE_Y, SC_INOUT, value);
}

static void exchange(const struct stages *s, int class, uint32_t from, uint32_t to)
{
    struct sc_list *list = &s->program->classes.items[class].step;
    sc_add_op(s->program, list, SC_EXCHANGE, s->pipeline, s->pipeline,
              sc_label(s->program, "exchange"));
    sc_add_operand(s->program, list, SC_ROLE_X, SC_IN, from);
    sc_add_operand(s->program, list, SC_ROLE_Y, SC_OUT, to);
}

static void judge(struct stages *s, const char *rule)
{
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_program_prepare(s->program, unlimited, false, &err), SC_OK);
    if (rule == NULL) {
        accepted(s->program);
    } else {
        refused(s->program, rule);
    }
    sc_program_destroy(&s->program);
}

/* Two reductions of different size in one order here, in the other there. */
static void test_collective_order(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; ++wrong) {
        struct stages s = stages(2, 1);
        for (int class = 0; class < 2; ++class) {
            bool turned = wrong && class == 1;
            reduce(&s, class, s.pipeline, turned ? s.large[class] : s.value[class]);
            reduce(&s, class, s.pipeline, turned ? s.value[class] : s.large[class]);
        }
        judge(&s, wrong ? "collective-order" : NULL);
    }
    struct stages s = stages(2, 1); /* one class does without */
    reduce(&s, 0, s.pipeline, s.value[0]);
    judge(&s, "collective-order");
    s = stages(1, 2); /* no rank of the one meets a rank of the other in "pipeline" */
    reduce(&s, 0, s.pipeline, s.value[0]);
    judge(&s, NULL);
}

static void test_group_order(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; ++wrong) {
        struct stages s = stages(2, 1);
        for (int class = 0; class < 2; ++class) {
            bool turned = wrong && class == 1;
            reduce(&s, class, turned ? s.both : s.pipeline, s.value[class]);
            reduce(&s, class, turned ? s.pipeline : s.both, s.value[class]);
        }
        judge(&s, wrong ? "group-order" : NULL);
    }
}

static void test_exchange(void **state)
{
    (void)state;
    struct stages s = stages(2, 1); /* what the one sends the other receives */
    exchange(&s, 0, s.value[0], s.large[0]);
    exchange(&s, 1, s.large[1], s.value[1]);
    judge(&s, NULL);
    s = stages(2, 1);
    exchange(&s, 0, s.value[0], s.large[0]);
    exchange(&s, 1, s.value[1], s.value[1]);
    judge(&s, "exchange-unmatched");
    s = stages(2, 1);
    exchange(&s, 0, s.value[0], s.value[0]);
    judge(&s, "exchange-unmatched");
    s = stages(1, 1);
    exchange(&s, 0, s.value[0], s.large[0]);
    judge(&s, "exchange-unmatched");
}

static void test_group_on_two_streams(void **state)
{
    (void)state;
    struct stages s = stages(2, 1);
    for (int class = 0; class < 2; ++class) {
        reduce(&s, class, s.pipeline, s.value[class]);
        reduce(&s, class, s.pipeline, s.value[class]);
    }
    s.program->classes.items[1].step.ops.items[1].stream = 1;
    judge(&s, "group-on-two-streams");
}

/*
 * Four classes in a square; neighbours share a group, no two share both. Each waits for the next:
 * (0,0) along the pipeline for (1,0), which waits along data for (1,1), and so round.
 */
static void test_deadlock(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; ++wrong) {
        struct stages s = stages(2, 2);
        for (int class = 0; class < 4; ++class) { /* class = data + 2 pipeline */
            bool turned = wrong && (class == 1 || class == 2);
            reduce(&s, class, turned ? s.data : s.pipeline, s.value[class]);
            reduce(&s, class, turned ? s.pipeline : s.data, s.value[class]);
        }
        judge(&s, wrong ? "deadlock" : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_wait_is_needed),
        cmocka_unit_test(test_overlapping_values),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_read_before_write),
        cmocka_unit_test(test_row_gaps),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_reuse_without_wait),
        cmocka_unit_test(test_collective_order),
        cmocka_unit_test(test_group_order),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_group_on_two_streams),
        cmocka_unit_test(test_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
