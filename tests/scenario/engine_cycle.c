/* Streams, waits, issue and the cycle of steps, on programs of a few operations with constant
 * prices. Times in microseconds, worked out beside each case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/near.h"
#include "tests/support/play.h"

#define NEAR 1e-6

/* input 40 -> product 100 -> reduce 30 -> update 10, and input of the next step runs ahead: it
 * waits for the product of the step before only. First step 40 + 100 + 30 + 10 = 180. In steady
 * state the product waits for the update (same stream): period 100 + 30 + 10 = 140; the input ends
 * 40 after the product began to be done, long before. Makespan 180 > period 140. */
static void a_period_is_shorter_than_the_makespan(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int in = play_stream(&c, "in", 0), compute = play_stream(&c, "compute", 0);
    int comm = play_stream(&c, "comm", 1), group = play_group(&c, "tensor", SC_TENSOR);
    uint32_t input = play_op(&c, 0, in, -1, 40);
    play_wait(&c, 0, 1, 1); /* the product of the step before has read its input */
    uint32_t gemm = play_op(&c, 0, compute, -1, 100);
    play_wait(&c, 0, input, 0);
    uint32_t reduce = play_op(&c, 0, comm, group, 30);
    play_wait(&c, 0, gemm, 0);
    uint32_t update = play_op(&c, 0, compute, -1, 10);
    play_wait(&c, 0, reduce, 0);
    play_run(&c, 0);
    assert_near(c.play.first_step_us, 180, NEAR);
    assert_near(c.play.period_us, 140, NEAR);
    assert_int_equal(c.play.cycle, 1);
    assert_int_equal(c.play.steps, 3);
    assert_true(c.play.settled);
    /* The input ran ahead: it began when the product of the step before ended, 40 before its
     * step; the anchor stood still for the reduction alone. */
    assert_near(play_times(&c, 0, input)->start_us, -40, NEAR);
    assert_near(play_times(&c, 0, input)->exposed_us, 0, NEAR);
    assert_near(play_times(&c, 0, reduce)->exposed_us, 30, NEAR);
    assert_near(play_times(&c, 0, update)->end_us, 140, NEAR);
    assert_near(c.play.classes.items[0].busy_us, 110, NEAR);
    play_end(&c);
}

/* Ten operations of 10 us, each 25 us to issue: issue is the limit, 250 a step. The first starts at
 * 25, the last ends at 250 + 10; the host goes on without a pause, so the period is 250. Every
 * operation waits 15 for its issue. */
static void issue_sets_the_pace(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int s = play_stream(&c, "compute", 0);
    for (uint32_t i = 0; i < 10; i++)
        play_price(&c, 0, play_op(&c, 0, s, -1, 10))->issue_us = 25;
    play_run(&c, 0);
    assert_near(c.play.first_step_us, 260, NEAR);
    assert_near(c.play.period_us, 250, NEAR);
    for (uint32_t i = 0; i < 10; i++) {
        assert_near(play_times(&c, 0, i)->issue_wait_us, 15, NEAR);
        assert_near(play_times(&c, 0, i)->exposed_us, 0, NEAR);
    }
    play_end(&c);
}

/* Ten operations of 10 us, 1 us to issue: hidden behind the work after the first; run ahead by two
 * steps at most: step 2 is issued from the end of step 0 (101) on, its first at 102, long before
 * the end of step 1 at 201. */
static void issue_hides_behind_work(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int s = play_stream(&c, "compute", 0);
    for (uint32_t i = 0; i < 10; i++)
        play_price(&c, 0, play_op(&c, 0, s, -1, 10))->issue_us = 1;
    play_run(&c, 3);
    assert_near(c.play.periods_us[0], 101, NEAR);
    assert_near(c.play.periods_us[1], 100, NEAR);
    assert_near(c.play.periods_us[2], 100, NEAR);
    assert_near(play_times(&c, 0, 0)->ready_us, 0, NEAR);
    play_end(&c);
}

/* With steps_ahead 1 step k+1 is issued when step k has ended: its first operation at 1 us after,
 * so every step takes 101. */
static void one_step_ahead_waits_for_the_end(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.program->steps_ahead = 1;
    int s = play_stream(&c, "compute", 0);
    for (uint32_t i = 0; i < 10; i++)
        play_price(&c, 0, play_op(&c, 0, s, -1, 10))->issue_us = 1;
    play_run(&c, 0);
    assert_near(c.play.period_us, 101, NEAR);
    play_end(&c);
}

/* The anchor alone would need 100 a step; another stream needs 150 and nothing waits for it but the
 * bound on run-ahead. Steps end on the anchor at 100, 200, then 300 (issued at 150, when all of
 * step 0 had ended), 400 (issued at 300), 550 (issued at 450): from there on 150. Two equal periods
 * of 100 at the beginning must not be taken for the answer. */
static void a_stream_that_falls_behind_sets_the_pace(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int slow = play_stream(&c, "slow", 0), anchor = play_stream(&c, "anchor", 0);
    play_op(&c, 0, slow, -1, 150);
    play_op(&c, 0, anchor, -1, 100);
    play_run(&c, 0);
    assert_near(c.play.period_us, 150, NEAR);
    assert_true(c.play.settled);
    play_end(&c);
}

/* Two stages that meet in a collective of 50 us. Stage 0 works 30 before it, stage 1 100. It starts
 * at 100 for both and ends at 150; stage 0 was ready at 30, its transfer starts at 100. */
static void the_last_class_to_arrive(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 2);
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
    assert_near(play_times(&c, 0, 1)->start_us, 30, NEAR);
    assert_near(play_times(&c, 0, 1)->transfer_us, 100, NEAR);
    assert_near(play_times(&c, 0, 1)->end_us, 150, NEAR);
    assert_near(play_times(&c, 1, 1)->start_us, 100, NEAR);
    assert_near(play_times(&c, 1, 1)->end_us, 150, NEAR);
    assert_near(c.play.period_us, 155, NEAR);
    assert_near(play_times(&c, 0, 1)->exposed_us, 120, NEAR);
    assert_near(play_times(&c, 1, 1)->exposed_us, 50, NEAR);
    play_end(&c);
}

/* The members of a collective differ: one needs 50 us of its link alone, the other 80. It runs at
 * the slowest member's speed: 80. Then another stream of the first class wants the same link (all
 * of it, for 200 us). The collective takes 50/80 of that link at full speed, and all of the other
 * class's. Equal levels x: 0.625 x + x = 1, x = 8/13, so it ends at 80 x 13/8 = 130 for both. */
static void the_slowest_member(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 2);
    c.program->steps_ahead = 1;
    int comm = play_stream(&c, "comm", 0), other = play_stream(&c, "other", 0);
    int group = play_group(&c, "pipeline", SC_PIPELINE);
    for (uint32_t k = 0; k < 2; k++) {
        play_instance(&c, (int)k, SC_USE_LINK, "link", 0);
        struct sc_price *price = play_price(&c, k, play_op(&c, k, comm, group, 0));
        price->work_us = k == 0 ? 50 : 80;
        price->use[0] = (struct sc_price_use){SC_USE_LINK, 1};
        price->uses = 1;
    }
    play_run(&c, 1);
    assert_near(play_times(&c, 0, 0)->end_us, 80, NEAR);
    struct sc_price *price = play_price(&c, 0, play_op(&c, 0, other, -1, 0));
    price->work_us = 200;
    price->use[0] = (struct sc_price_use){SC_USE_LINK, 1};
    price->uses = 1;
    play_run(&c, 1);
    assert_near(play_times(&c, 0, 0)->end_us, 130, NEAR);
    assert_near(play_times(&c, 1, 0)->end_us, 130, NEAR);
    /* The other: 80 by then, 120 more alone. */
    assert_near(play_times(&c, 0, 1)->end_us, 250, NEAR);
    play_end(&c);
}

/* Two operations that wait for each other: named, not played for ever. */
static void a_circle_is_named(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int one = play_stream(&c, "one", 0), two = play_stream(&c, "two", 0);
    play_op(&c, 0, one, -1, 1);
    play_wait(&c, 0, 1, 0);
    play_op(&c, 0, two, -1, 1);
    play_wait(&c, 0, 0, 0);
    assert_int_equal(sc_play(c.program, &c.prices, &c.machine, NULL, &c.play, &c.error), SC_BUG);
    assert_non_null(strstr(c.error.text, "stands still"));
    assert_non_null(strstr(c.error.text, "op0"));
    play_end(&c);
}

/* The sum of three gaps: the anchor waits for a reduction that itself stood behind another one on
 * its stream. The anchor ends its first part at 10; reduce a 10-40, b 40-60 behind it; the second
 * part waits for b: 30 of the gap are a's, 20 are b's. */
static void a_gap_goes_back_to_its_causes(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int s = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 0);
    int group = play_group(&c, "tensor", SC_TENSOR);
    uint32_t first = play_op(&c, 0, s, -1, 10);
    uint32_t a = play_op(&c, 0, comm, group, 30);
    play_wait(&c, 0, first, 0);
    uint32_t b = play_op(&c, 0, comm, group, 20);
    play_wait(&c, 0, first, 0);
    play_op(&c, 0, s, -1, 10);
    play_wait(&c, 0, b, 0);
    play_run(&c, 0);
    assert_near(c.play.period_us, 70, NEAR);
    assert_near(play_times(&c, 0, a)->exposed_us, 30, NEAR);
    assert_near(play_times(&c, 0, b)->exposed_us, 20, NEAR);
    play_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_period_is_shorter_than_the_makespan),
        cmocka_unit_test(issue_sets_the_pace),
        cmocka_unit_test(issue_hides_behind_work),
        cmocka_unit_test(one_step_ahead_waits_for_the_end),
        cmocka_unit_test(a_stream_that_falls_behind_sets_the_pace),
        cmocka_unit_test(the_last_class_to_arrive),
        cmocka_unit_test(the_slowest_member),
        cmocka_unit_test(a_circle_is_named),
        cmocka_unit_test(a_gap_goes_back_to_its_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
