/* The critical path and what would be gained, on programs small enough to follow by hand. Times in
 * microseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sensitivity.h"
#include "tests/support/near.h"
#include "tests/support/play.h"
#include "tests/support/worked_example.h"

#define NEAR 1e-6

static double on_path(const struct play_case *c, uint32_t class_index, uint32_t op,
                      enum sc_path_what what)
{
    double sum = 0;
    for (size_t i = 0; i < c->play.path.pieces.count; i++) {
        const struct sc_path_piece *piece = &c->play.path.pieces.items[i];
        if (piece->class_index == class_index && piece->op == op && piece->what == what)
            sum += piece->end_us - piece->begin_us;
    }
    return sum;
}

static double of_what(const struct play_case *c, enum sc_path_what what)
{
    double sum = 0;
    for (size_t i = 0; i < c->play.path.pieces.count; i++)
        if (c->play.path.pieces.items[i].what == what)
            sum += c->play.path.pieces.items[i].end_us - c->play.path.pieces.items[i].begin_us;
    return sum;
}

/* ---- the worked example --------------------------------------------------------------------- */

static void begin_worked(struct play_case *c)
{
    memset(c, 0, sizeof(*c));
    c->program = sc_worked_example();
    c->path = true;
    assert_non_null(c->program);
    assert_int_equal(sc_program_derive_waits(c->program, &c->error), SC_OK);
    assert_int_equal(sc_prices_begin(c->program, &c->prices, &c->error), SC_OK);
    assert_int_equal(sc_machine_empty(c->program, &c->machine, &c->error), SC_OK);
    const struct sc_list *list = &c->program->classes.items[0].step;
    for (uint32_t i = 0; i < list->ops.count; i++) {
        struct sc_price price = sc_price_constant(
            sc_worked_example_us((enum sc_op_kind)list->ops.items[i].kind), "constant");
        assert_true(sc_prices_add(&c->prices, &price, &c->prices.classes.items[0].of_op[i]));
    }
    play_run(c, 0);
}

/* What sets the pace is not the end of the list: the input copy of a step waits for operation 32 of
 * the step before (the last reader of x) and takes longer than adam and scalar beside it. From the
 * end of a step: the copy's last 10, then
 *   3 norm 10, 4 gemm 100, 5 gelu 20, 6 norm 10, 7 gemm 100, 9 gemm 100, 10 gelu 20 (ends with
 *   reduction 8 at 370), 11 dropout 15, 12 gemm 100, 13 all-reduce 120, 14 dropout 15,
 *   15 scale 5, 16 dropout 15, 17 and 18 gemm 200, 19 scale 5, 20 dropout 15, 21 gelu 20,
 *   22, 24, 25, 26 gemm 400, 27 norm 20, 28 gelu 20, 29 gemm 100, 30 all-reduce 120, 32 norm 20,
 * and the first 30 of the next copy: 1590. Product 31 (beside 30) and adam (33) are not on it. */
static void path_of_the_worked_example(void **state)
{
    (void)state;
    static const struct {
        uint32_t op;
        double us;
    } expected[] = {{1, 10},  {3, 10},   {4, 100},  {5, 20},   {6, 10},   {7, 100},
                    {9, 100}, {10, 20},  {11, 15},  {12, 100}, {13, 120}, {14, 15},
                    {15, 5},  {16, 15},  {17, 100}, {18, 100}, {19, 5},   {20, 15},
                    {21, 20}, {22, 100}, {24, 100}, {25, 100}, {26, 100}, {27, 20},
                    {28, 20}, {29, 100}, {30, 120}, {32, 20},  {1, 30}};
    struct play_case c;
    begin_worked(&c);
    const struct sc_path *path = &c.play.path;
    assert_int_equal(path->periods, 1);
    assert_near(path->span_us, 1590, NEAR);
    assert_int_equal(path->pieces.count, sizeof(expected) / sizeof(expected[0]));
    double at = 0;
    for (size_t i = 0; i < path->pieces.count; i++) {
        const struct sc_path_piece *piece = &path->pieces.items[i];
        assert_int_equal(piece->op, expected[i].op);
        assert_int_equal(piece->what, SC_PATH_RUN);
        assert_int_equal(piece->step, i + 1 < path->pieces.count ? 1 : 2);
        assert_near(piece->begin_us, at, NEAR);
        at += expected[i].us;
        assert_near(piece->end_us, at, NEAR);
        assert_near(piece->slowed_us, 0, NEAR);
    }
    assert_near(at, 1590, NEAR);
    play_end(&c);
}

static double period_without(struct play_case *c, const char *name)
{
    struct sc_work_kinds kinds;
    uint32_t kind = SC_EVERY_WORK_KIND;
    double period = -1;
    assert_int_equal(sc_work_kinds_of(c->program, &kinds, &c->error), SC_OK);
    for (uint32_t k = 0; k < kinds.kinds.count; k++)
        if (strcmp(kinds.kinds.items[k].name, name) == 0)
            kind = k;
    assert_true(kind != SC_EVERY_WORK_KIND || strcmp(name, "everything") == 0);
    assert_int_equal(sc_period_if_free(c->program, &c->prices, &c->machine, &kinds, kind, false,
                                       &period, &c->error),
                     SC_OK);
    sc_work_kinds_free(&kinds);
    return period;
}

/* Work on `compute` 1441, of it gemm 1200, optimizer (adam 30, scalar 1) 31.
 *   copy        1441 + 120 + 20: both reductions stay as exposed as they are
 *   all_reduce  1441 + 9: the copy is 9 longer than optimizer beside it
 *   optimizer   what is taken off compute is added to the wait for the copy: 1590
 *   host        next_batch is hidden
 *   gemm        from the end of the copy: 10, 20, 10 (all-reduce 8: 40 to 160), 20, 15 at 175,
 *               all-reduce 13 to 295, 15 5 15 5 15 20 to 370, all-reduce 23 to 490, 20 20 to 530,
 *               all-reduce 30 to 650, 20, copy 40: 710 */
static void what_the_worked_example_would_gain(void **state)
{
    (void)state;
    struct play_case c;
    begin_worked(&c);
    assert_near(period_without(&c, "copy"), 1581, NEAR);
    assert_near(period_without(&c, "all_reduce of tensor"), 1450, NEAR);
    assert_near(period_without(&c, "optimizer"), 1590, NEAR);
    assert_near(period_without(&c, "host"), 1590, NEAR);
    assert_near(period_without(&c, "gemm"), 710, NEAR);
    assert_near(period_without(&c, "everything"), 0, NEAR);
    play_end(&c);
}

/* Sorted by gain: gemm 880, all-reduce 140, ... copy 9, optimizer and host nothing. No resource is
 * used, so none is tried. */
static void gains_are_sorted(void **state)
{
    (void)state;
    struct play_case c;
    struct sc_work_kinds kinds;
    struct sc_sensitivity found;
    struct sc_hardware hardware;
    memset(&hardware, 0, sizeof(hardware));
    begin_worked(&c);
    assert_int_equal(sc_work_kinds_of(c.program, &kinds, &c.error), SC_OK);
    assert_int_equal(sc_sensitivity_of(c.program, &hardware, &c.machine, &c.prices, &kinds,
                                       c.play.period_us, &found, &c.error),
                     SC_OK);
    assert_int_equal(found.free.count, kinds.kinds.count);
    assert_int_equal(found.faster.count, 0);
    assert_string_equal(found.free.items[0].name, "gemm");
    assert_near(found.free.items[0].gain_us, 880, NEAR);
    assert_string_equal(found.free.items[1].name, "all_reduce of tensor");
    for (size_t i = 1; i < found.free.count; i++)
        assert_true(found.free.items[i].gain_us <= found.free.items[i - 1].gain_us);
    assert_near(found.free.items[found.free.count - 1].gain_us, 0, NEAR);
    sc_sensitivity_free(&found);
    sc_work_kinds_free(&kinds);
    play_end(&c);
}

/* ---- what else an operation waits for ------------------------------------------------------- */

/* Ten operations of 10, each 25 to issue: all of a period is issue. */
static void issue_is_the_path(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.path = true;
    int s = play_stream(&c, "compute", 0);
    for (uint32_t i = 0; i < 10; i++)
        play_price(&c, 0, play_op(&c, 0, s, -1, 10))->issue_us = 25;
    play_run(&c, 0);
    assert_near(c.play.path.span_us, 250, NEAR);
    assert_near(of_what(&c, SC_PATH_ISSUE), 250, NEAR);
    play_end(&c);
}

/* One step: issue 25, then ten operations of 100 while the issue of the others hides. */
static void the_first_step_begins_with_issue(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.path = true;
    int s = play_stream(&c, "compute", 0);
    for (uint32_t i = 0; i < 10; i++)
        play_price(&c, 0, play_op(&c, 0, s, -1, 100))->issue_us = 25;
    play_run(&c, 1);
    assert_near(c.play.path.span_us, 1025, NEAR);
    assert_near(of_what(&c, SC_PATH_ISSUE), 25, NEAR);
    assert_near(of_what(&c, SC_PATH_RUN), 1000, NEAR);
    play_end(&c);
}

/* Nothing waits for the slow stream but the bound on run-ahead, and still it is the whole path: the
 * anchor of step k+2 is issued when the slow operation of step k has ended. */
static void the_path_goes_through_the_bound_on_run_ahead(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.path = true;
    int slow = play_stream(&c, "slow", 0), anchor = play_stream(&c, "anchor", 0);
    play_op(&c, 0, slow, -1, 150);
    play_op(&c, 0, anchor, -1, 100);
    play_run(&c, 0);
    assert_near(c.play.path.span_us, 150 * c.play.path.periods, NEAR);
    assert_near(on_path(&c, 0, 0, SC_PATH_RUN), 150 * c.play.path.periods, NEAR);
    play_end(&c);
}

/* Two stages meet in a collective of 50 after 30 and 100: the path goes through the later one. */
static void the_path_goes_to_the_last_to_arrive(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 2);
    c.path = true;
    int s = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 0);
    int group = play_group(&c, "pipeline", SC_PIPELINE);
    for (uint32_t k = 0; k < 2; k++) {
        play_op(&c, k, s, -1, k == 0 ? 30 : 100);
        play_op(&c, k, comm, group, 50);
        play_wait(&c, k, 0, 0);
        play_op(&c, k, s, -1, 5);
        play_wait(&c, k, 1, 0);
    }
    play_run(&c, 0);
    assert_near(c.play.path.span_us, 155, NEAR);
    assert_near(on_path(&c, 1, 0, SC_PATH_RUN), 100, NEAR);
    assert_near(on_path(&c, 0, 0, SC_PATH_RUN), 0, NEAR);
    assert_near(on_path(&c, 0, 1, SC_PATH_RUN) + on_path(&c, 1, 1, SC_PATH_RUN), 50, NEAR);
    assert_near(on_path(&c, 1, 2, SC_PATH_RUN), 5, NEAR);
    play_end(&c);
}

/* Two streams that both need 100 of 132 units, 100 and 30 long: one after the other, so that either
 * waits for the other to give them back: 130, and no time that belongs to nobody. */
static void the_path_goes_to_who_held_the_units(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.path = true;
    int a = play_stream(&c, "a", 0), b = play_stream(&c, "b", 0);
    play_instance(&c, 0, SC_USE_COMPUTE, "compute", 132);
    play_price(&c, 0, play_op(&c, 0, a, -1, 100))->held_units = 100;
    play_price(&c, 0, play_op(&c, 0, b, -1, 30))->held_units = 100;
    play_run(&c, 0);
    assert_near(c.play.period_us, 130, NEAR);
    assert_near(on_path(&c, 0, 0, SC_PATH_RUN), 100 * c.play.path.periods, NEAR);
    assert_near(on_path(&c, 0, 1, SC_PATH_RUN), 30 * c.play.path.periods, NEAR);
    play_end(&c);
}

/* A product of 100 and a reduction of 100 beside it want the memory at 1 and 0.5: shares 0.5 and
 * 0.5 of it. The reduction runs as alone; the product has done 50 by then and needs 50 more: 150,
 * of which 50 because of sharing. */
static void sharing_is_told_apart(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.path = true;
    c.program->steps_ahead = 1;
    int s = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 0);
    play_instance(&c, 0, SC_USE_MEMORY, "memory", 0);
    uint32_t reduce = play_op(&c, 0, comm, -1, 0);
    uint32_t product = play_op(&c, 0, s, -1, 0);
    for (uint32_t op = 0; op < 2; op++) {
        struct sc_price *price = play_price(&c, 0, op);
        price->work_us = 100;
        price->use[0] = (struct sc_price_use){SC_USE_MEMORY, op == product ? 1 : 0.5};
        price->uses = 1;
    }
    play_run(&c, 0);
    assert_near(c.play.path.span_us, 150, NEAR);
    assert_near(on_path(&c, 0, product, SC_PATH_RUN), 150, NEAR);
    assert_near(on_path(&c, 0, reduce, SC_PATH_RUN), 0, NEAR);
    assert_near(c.play.path.pieces.items[0].slowed_us, 50, NEAR);
    play_end(&c);
}

/* Two versions of a buffer, Adam 350: periods of 390 and 360 in turns; the path covers both. */
static void a_cycle_of_two_periods(void **state)
{
    (void)state;
    struct play_case c;
    memset(&c, 0, sizeof(c));
    c.path = true;
    c.program = sc_delayed_update_example(true);
    assert_int_equal(sc_program_derive_waits(c.program, &c.error), SC_OK);
    assert_int_equal(sc_prices_begin(c.program, &c.prices, &c.error), SC_OK);
    assert_int_equal(sc_machine_empty(c.program, &c.machine, &c.error), SC_OK);
    for (uint32_t i = 0; i < c.program->classes.items[0].step.ops.count; i++) {
        struct sc_price price = sc_price_constant(1000 * sc_delayed_update_ms(i, 350), "constant");
        assert_true(sc_prices_add(&c.prices, &price, &c.prices.classes.items[0].of_op[i]));
    }
    play_run(&c, 0);
    assert_int_equal(c.play.path.periods, 2);
    assert_near(c.play.path.span_us, 750e3, NEAR);
    assert_near(of_what(&c, SC_PATH_RUN), 750e3, NEAR);
    play_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_of_the_worked_example),
        cmocka_unit_test(what_the_worked_example_would_gain),
        cmocka_unit_test(gains_are_sorted),
        cmocka_unit_test(issue_is_the_path),
        cmocka_unit_test(the_first_step_begins_with_issue),
        cmocka_unit_test(the_path_goes_through_the_bound_on_run_ahead),
        cmocka_unit_test(the_path_goes_to_the_last_to_arrive),
        cmocka_unit_test(the_path_goes_to_who_held_the_units),
        cmocka_unit_test(sharing_is_told_apart),
        cmocka_unit_test(a_cycle_of_two_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
