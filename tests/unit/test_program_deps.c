/* Waits of the worked examples, and of small programs that single out one rule each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plans/program.h"
#include "plans/program_ranges.h"
#include "tests/support/worked_example.h"

static void derive(struct sc_program *program)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_program_derive_waits(program, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
}

/* Waits are exactly those, in issue order, an op's latest first. */
static void expect_waits(const struct sc_list *list, const struct sc_worked_wait *expected,
                         size_t count)
{
    size_t at = 0;
    for (uint32_t i = 0; i < list->ops.count; ++i) {
        const struct sc_op *op = &list->ops.items[i];
        for (uint32_t j = 0; j < op->waits; ++j, ++at) {
            const struct sc_wait *wait = &list->waits.items[op->first_wait + j];
            if (at >= count || expected[at].op != i || expected[at].awaited != wait->op ||
                expected[at].distance != wait->distance) {
                fail_msg("wait %zu: op %u for %u (k-%u)", at, i, wait->op, wait->distance);
            }
        }
    }
    assert_int_equal(at, count);
}

static void test_worked_example(void **state)
{
    (void)state;
    struct sc_program *program = sc_worked_example();
    assert_non_null(program);
    struct sc_class *class = &program->classes.items[0];
    assert_int_equal(class->step.ops.count, 34);
    for (int again = 0; again < 2; ++again) { /* deriving twice gives the same */
        derive(program);
        expect_waits(&class->step, sc_worked_waits, SC_WORKED_WAITS);
    }
    assert_int_equal(sc_program_conflicts(program, class), 601);
    sc_program_destroy(&program);
}

/*
 * One version: adam of step k and the copy of its gradients wait for each other's last. Two: the
 * copy of step k writes what adam of step k+1 reads, and no one waits for adam of the same step but
 * the copy of its parameters.
 */
static void test_delayed_update(void **state)
{
    (void)state;
    static const struct sc_worked_wait one[] = {{0, 4, 1}, {0, 3, 1}, {1, 4, 1}, {2, 3, 1},
                                                {3, 2, 0}, {3, 0, 0}, {4, 2, 0}, {4, 0, 0}};
    static const struct sc_worked_wait two[] = {{0, 3, 1}, {1, 4, 1}, {2, 3, 1},
                                                {3, 2, 0}, {4, 2, 0}, {4, 0, 0}};
    struct sc_program *program = sc_delayed_update_example(false);
    derive(program);
    expect_waits(&program->classes.items[0].step, one, 8);
    sc_program_destroy(&program);
    program = sc_delayed_update_example(true);
    derive(program);
    expect_waits(&program->classes.items[0].step, two, 6);
    sc_program_destroy(&program);
}

/* ---- small programs ---------------------------------------------------------------------- */

struct small {
    struct sc_program *program;
    struct sc_class *class;
    struct sc_label label;
};

static struct small small(void)
{
    struct small s;
    struct sc_mesh mesh;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(2, 1, 2, 1, &mesh);
    assert_int_equal(sc_program_create(&mesh, &s.program, &err), SC_OK);
    sc_add_stream(s.program, "a", SC_ENGINE_DEVICE, 0);
    sc_add_stream(s.program, "b", SC_ENGINE_DEVICE, 0);
    sc_add_stream(s.program, "c", SC_ENGINE_DEVICE, 0);
    s.class = sc_add_class(s.program, "all", 0, NULL);
    s.label = sc_label(s.program, "x");
    return s;
}

static uint32_t value(const struct small *s, int64_t rows, int64_t cols, int versions)
{
    uint32_t buffer = sc_add_buffer(s->program, s->class, s->label, SC_DEVICE, SC_PERSISTENT,
                                    versions, (uint64_t)(rows * cols * 4));
    return sc_add_value(s->program, s->class, s->label, buffer, 0, SC_FP32, rows, cols);
}

/* One op with one operand; the passes look at accesses only. */
static void touch(const struct small *s, int stream, enum sc_access access, uint32_t of,
                  enum sc_version version)
{
    sc_add_op(s->program, &s->class->step, SC_SCALE, stream, -1, s->label);
    sc_add_operand_version(s->program, &s->class->step, SC_ROLE_X, access, of, version);
}

static void expect(struct small *s, const struct sc_worked_wait *expected, size_t count)
{
    derive(s->program);
    expect_waits(&s->class->step, expected, count);
    sc_program_destroy(&s->program);
}

/* Two readers do not wait for each other; the writer of the next step waits for both; a reader
 * waits for the writer only. */
static void test_readers(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t x = value(&s, 1, 4, 1);
    touch(&s, 0, SC_OUT, x, SC_NOW);
    touch(&s, 1, SC_IN, x, SC_NOW);
    touch(&s, 2, SC_IN, x, SC_NOW);
    static const struct sc_worked_wait waits[] = {{0, 2, 1}, {0, 1, 1}, {1, 0, 0}, {2, 0, 0}};
    expect(&s, waits, 4);
}

/* A wait implied by another is dropped: 2 waits for 1, which waited for 0. Across the step's end, 0
 * waits for 2 of the step before, which implies 1. */
static void test_chain(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t x = value(&s, 1, 4, 1);
    touch(&s, 0, SC_INOUT, x, SC_NOW);
    touch(&s, 1, SC_INOUT, x, SC_NOW);
    touch(&s, 2, SC_INOUT, x, SC_NOW);
    static const struct sc_worked_wait waits[] = {{0, 2, 1}, {1, 0, 0}, {2, 1, 0}};
    expect(&s, waits, 3);
}

/* Columns of a packed matrix are apart although their extents overlap; a row range meets both. */
static void test_columns(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t whole = value(&s, 8, 12, 1);
    uint32_t left = sc_add_view(s.program, s.class, s.label, whole, 0, 8, 0, 4);
    uint32_t right = sc_add_view(s.program, s.class, s.label, whole, 0, 8, 4, 8);
    touch(&s, 0, SC_INOUT, left, SC_NOW);
    touch(&s, 1, SC_INOUT, right, SC_NOW);
    expect(&s, NULL, 0);
    s = small();
    whole = value(&s, 8, 12, 1);
    left = sc_add_view(s.program, s.class, s.label, whole, 0, 8, 0, 4);
    uint32_t row = sc_add_view(s.program, s.class, s.label, whole, 7, 1, 0, 12);
    touch(&s, 0, SC_INOUT, left, SC_NOW);
    touch(&s, 1, SC_INOUT, row, SC_NOW);
    static const struct sc_worked_wait waits[] = {{0, 1, 1}, {1, 0, 0}};
    expect(&s, waits, 2);
}

/* Shards of one axis: the same piece, halves of it apart. Of two axes, or beside the whole: any
 * byte. */
static void test_shards(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t whole = value(&s, 1, 512, 1);
    uint32_t shard = sc_add_shard(s.program, s.class, s.label, whole, SC_DATA);
    uint32_t low = sc_add_view(s.program, s.class, s.label, shard, 0, 1, 0, 128);
    uint32_t high = sc_add_view(s.program, s.class, s.label, shard, 0, 1, 128, 128);
    touch(&s, 0, SC_INOUT, low, SC_NOW);
    touch(&s, 1, SC_INOUT, high, SC_NOW);
    expect(&s, NULL, 0);
    static const struct sc_worked_wait waits[] = {{0, 1, 1}, {1, 0, 0}};
    for (int axis = SC_TENSOR; axis <= SC_DATA; axis += SC_DATA - SC_TENSOR) {
        s = small();
        whole = value(&s, 1, 512, 1);
        shard = sc_add_shard(s.program, s.class, s.label, whole, SC_DATA);
        /* against a shard of the other axis, then against the last four bytes of the run */
        uint32_t other = axis == SC_TENSOR
                             ? sc_add_shard(s.program, s.class, s.label, whole, SC_TENSOR)
                             : sc_add_view(s.program, s.class, s.label, whole, 0, 1, 511, 1);
        touch(&s, 0, SC_INOUT, shard, SC_NOW);
        touch(&s, 1, SC_INOUT, other, SC_NOW);
        expect(&s, waits, 2);
    }
}

/* Two versions: what step k writes is read in step k+1 as `other`; the next write of those bytes is
 * two steps on. */
static void test_versions(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t x = value(&s, 1, 4, 2);
    touch(&s, 0, SC_OUT, x, SC_NOW);
    touch(&s, 1, SC_IN, x, SC_OTHER);
    /* 0 of step k waits for the reader of step k-1, which read what step k-2 wrote */
    static const struct sc_worked_wait waits[] = {{0, 1, 1}, {1, 0, 1}};
    expect(&s, waits, 2);
    s = small();
    x = value(&s, 1, 4, 2);
    touch(&s, 0, SC_OUT, x, SC_NOW);
    touch(&s, 1, SC_IN, x, SC_NOW);
    static const struct sc_worked_wait plain[] = {{0, 1, 2}, {1, 0, 0}};
    expect(&s, plain, 2);
}

/* Tokens order without bytes. */
static void test_tokens(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t token = sc_add_token(s.program, s.class, s.label);
    uint32_t another = sc_add_token(s.program, s.class, s.label);
    touch(&s, 0, SC_OUT, token, SC_NOW);
    touch(&s, 1, SC_IN, token, SC_NOW);
    touch(&s, 2, SC_IN, another, SC_NOW);
    static const struct sc_worked_wait waits[] = {{0, 1, 1}, {1, 0, 0}};
    expect(&s, waits, 2);
}

/* The init list is run once: nothing reaches back. */
static void test_init(void **state)
{
    (void)state;
    struct small s = small();
    uint32_t x = value(&s, 1, 4, 1);
    for (int stream = 0; stream < 2; ++stream) {
        sc_add_op(s.program, &s.class->init, SC_INITIALIZE, stream, -1, s.label);
        sc_add_operand(s.program, &s.class->init, SC_ROLE_Y, SC_OUT, x);
    }
    derive(s.program);
    static const struct sc_worked_wait waits[] = {{1, 0, 0}};
    expect_waits(&s.class->init, waits, 1);
    expect_waits(&s.class->step, NULL, 0);
    sc_program_destroy(&s.program);
}

/* Every pair of views of a 4 x 4 matrix, against bytes marked one by one. */
static void test_rectangles(void **state)
{
    (void)state;
    enum { ROWS = 4, COLS = 4, MOST = 100 };
    struct small s = small();
    uint32_t whole = value(&s, ROWS, COLS, 1), first = whole + 1, count = 0;
    uint64_t bytes[MOST];
    for (int r = 0; r < ROWS; ++r) {
        for (int rows = 1; r + rows <= ROWS; ++rows) {
            for (int c = 0; c < COLS; ++c) {
                for (int cols = 1; c + cols <= COLS; ++cols) {
                    sc_add_view(s.program, s.class, s.label, whole, r, rows, c, cols);
                    bytes[count] = 0;
                    for (int e = 0; e < rows * cols; ++e) {
                        bytes[count] |= (uint64_t)1 << ((r + e / cols) * COLS + c + e % cols);
                    }
                    ++count;
                }
            }
        }
    }
    assert_int_equal(count, MOST); /* (4 x 5 / 2)^2 */
    for (uint32_t i = 0; i < count; ++i) {
        for (uint32_t j = 0; j < count; ++j) {
            struct sc_byte_range a = sc_byte_range(s.program, s.class, first + i, SC_BY_BUFFER);
            struct sc_byte_range b = sc_byte_range(s.program, s.class, first + j, SC_BY_BUFFER);
            assert_int_equal(sc_ranges_overlap(&a, &b), (bytes[i] & bytes[j]) != 0);
        }
    }
    sc_program_destroy(&s.program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_example), cmocka_unit_test(test_delayed_update),
        cmocka_unit_test(test_readers),        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_columns),        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_versions),       cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_init),           cmocka_unit_test(test_rectangles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
