/* The engine on programs of a few operations that want the same resource. Times in microseconds,
 * worked out beside each case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/near.h"
#include "tests/support/play.h"

#define NEAR 1e-6

/* The next step begins when this one has ended, so that it does not compete with it. */
static void begin(struct play_case *c, int stages)
{
    play_begin(c, stages);
    c->program->steps_ahead = 1;
}

/* An operation that works `us` alone and takes `share` of the memory meanwhile. */
static uint32_t memory_op(struct play_case *c, int stream, double us, double share)
{
    uint32_t op = play_op(c, 0, stream, -1, 0);
    struct sc_price *price = play_price(c, 0, op);
    price->work_us = us;
    price->use[0] = (struct sc_price_use){SC_USE_MEMORY, share};
    price->uses = 1;
    price->bound = "compute";
    return op;
}

/* 70 and 50 of 100, 100 us each alone. a gets 50 (speed 5/7), b all it wants: b ends at 100; a has
 * done 500/7 = 71.43 and needs 28.57 more alone: 128.57. */
static void seventy_and_fifty_of_a_hundred(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 1);
    play_instance(&c, -1, SC_USE_MEMORY, "memory", 0);
    int one = play_stream(&c, "one", 0), two = play_stream(&c, "two", 0);
    uint32_t a = memory_op(&c, one, 100, 0.7);
    uint32_t b = memory_op(&c, two, 100, 0.5);
    play_run(&c, 1);
    assert_near(play_times(&c, 0, a)->end_us, 900.0 / 7, NEAR);
    assert_near(play_times(&c, 0, b)->end_us, 100, NEAR);
    assert_string_equal(play_times(&c, 0, a)->bound, "memory");  /* 100 of 128.57 us */
    assert_string_equal(play_times(&c, 0, b)->bound, "compute"); /* as its price says */
    play_end(&c);
}

/* Three that take the whole memory, 60 us each alone, beginning at 0, 20 and 50 (latencies).
 *   0-20   a alone                 a has 40 left
 *  20-50   a, b at 1/2             a 25, b 45 left
 *  50-     a, b, c at 1/3          a ends after 75: at 125; b 20, c 35 left
 * 125-     b, c at 1/2             b ends after 40: at 165; c 15 left
 * 165-     c alone                 ends at 180 = 3 x 60. */
static void three_arrive_one_after_another(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 1);
    play_instance(&c, -1, SC_USE_MEMORY, "memory", 0);
    uint32_t op[3];
    const double latency[3] = {0, 20, 50};
    for (int i = 0; i < 3; i++) {
        const char *const names[3] = {"one", "two", "three"};
        op[i] = memory_op(&c, play_stream(&c, names[i], 0), 60, 1);
        play_price(&c, 0, op[i])->latency_us = latency[i];
    }
    play_run(&c, 1);
    assert_near(play_times(&c, 0, op[0])->end_us, 125, NEAR);
    assert_near(play_times(&c, 0, op[1])->end_us, 165, NEAR);
    assert_near(play_times(&c, 0, op[2])->end_us, 180, NEAR);
    assert_near(c.play.utilisation.items[0], 1, NEAR); /* 3 x 60 of 180 */
    play_end(&c);
}

/* Two classes on one node's memory: 4 ranks of one, 2 of the other, each rank wants 0.2 of it and
 * works 100 us. Together 4 x 0.2 + 2 x 0.2 = 1.2 of 1. The classes' parts are 0.8 and 0.4; equal
 * shares would be 0.5: the second is granted 0.4 (speed 1), the first takes 0.6 of 0.8: speed 0.75.
 * The second ends at 100 and begins its next step at once, so the first goes on at 0.75: 133.3. */
static void classes_share_a_node(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 2);
    int s = play_stream(&c, "copy", 0);
    play_instance(&c, -1, SC_USE_HOST_MEMORY, "host", 0);
    c.machine.classes.items[0].multiplicity[SC_USE_HOST_MEMORY] = 4;
    c.machine.classes.items[1].multiplicity[SC_USE_HOST_MEMORY] = 2;
    for (uint32_t k = 0; k < 2; k++) {
        struct sc_price *price = play_price(&c, k, play_op(&c, k, s, -1, 0));
        price->work_us = 100;
        price->use[0] = (struct sc_price_use){SC_USE_HOST_MEMORY, 0.2};
        price->uses = 1;
    }
    play_run(&c, 1);
    assert_near(play_times(&c, 0, 0)->end_us, 400.0 / 3, NEAR);
    assert_near(play_times(&c, 1, 0)->end_us, 100, NEAR);
    play_end(&c);
}

/* A collective of 60 us holds 33 of 132 units: the product beside it (100 us alone) runs at 0.75.
 * After 60 it has done 45; 55 more: 115. */
static void a_collective_holds_units(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 1);
    play_instance(&c, -1, SC_USE_COMPUTE, "compute", 132);
    int compute = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 1);
    int group = play_group(&c, "tensor", SC_TENSOR);
    uint32_t reduce = play_op(&c, 0, comm, group, 60);
    play_price(&c, 0, reduce)->held_units = 33;
    uint32_t gemm = play_op(&c, 0, compute, -1, 0);
    struct sc_price *price = play_price(&c, 0, gemm);
    price->work_us = 100;
    price->use[0] = (struct sc_price_use){SC_USE_COMPUTE, 1};
    price->uses = 1;
    play_run(&c, 1);
    assert_near(play_times(&c, 0, reduce)->end_us, 60, NEAR);
    assert_near(play_times(&c, 0, gemm)->end_us, 115, NEAR);
    play_end(&c);
}

/* Three ask for 80 of 132 units for 10 us each at time 0: one at a time, by the priority of their
 * streams, of equal ones the first in the list: high, low0, low1. The first ends at 10, 20, 30. */
static void units_by_priority(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 1);
    play_instance(&c, -1, SC_USE_COMPUTE, "compute", 132);
    const int priority[3] = {0, 0, 1};
    const char *const names[3] = {"low0", "low1", "high"};
    uint32_t op[3];
    for (int i = 0; i < 3; i++) {
        op[i] = play_op(&c, 0, play_stream(&c, names[i], priority[i]), -1, 10);
        play_price(&c, 0, op[i])->held_units = 80;
    }
    play_run(&c, 1);
    assert_near(play_times(&c, 0, op[2])->end_us, 10, NEAR);
    assert_near(play_times(&c, 0, op[0])->end_us, 20, NEAR);
    assert_near(play_times(&c, 0, op[1])->end_us, 30, NEAR);
    assert_near(play_times(&c, 0, op[1])->ready_us, 0, NEAR);
    assert_near(play_times(&c, 0, op[1])->start_us, 20, NEAR);
    assert_string_equal(play_times(&c, 0, op[1])->bound, "held"); /* 20 of 30 us */
    play_end(&c);
}

/* The large claim is first in the queue: the small one behind it does not pass, though there would
 * be room (100 held till 10, 20 asked behind 132). */
static void a_large_claim_is_not_passed(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 1);
    play_instance(&c, -1, SC_USE_COMPUTE, "compute", 132);
    const double units[3] = {100, 132, 20}, end[3] = {10, 20, 30};
    const int priority[3] = {2, 1, 0};
    const char *const names[3] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++) {
        uint32_t op = play_op(&c, 0, play_stream(&c, names[i], priority[i]), -1, 10);
        play_price(&c, 0, op)->held_units = units[i];
    }
    play_run(&c, 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_near(play_times(&c, 0, i)->end_us, end[i], NEAR);
    play_end(&c);
}

/* A collective that runs 1.5 times longer beside computation: 60 us alone, a product of 30 us at
 * the same time. After 30 it has done 20; 40 more: 70. */
static void slower_beside_computation(void **state)
{
    (void)state;
    struct play_case c;
    begin(&c, 1);
    int compute = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 1);
    int group = play_group(&c, "tensor", SC_TENSOR);
    uint32_t gemm = play_op(&c, 0, compute, -1, 30);
    play_price(&c, 0, gemm)->computes = true;
    uint32_t reduce = play_op(&c, 0, comm, group, 0);
    play_price(&c, 0, reduce)->work_us = 60;
    play_price(&c, 0, reduce)->slowdown_beside_compute = 1.5;
    play_run(&c, 1);
    assert_near(play_times(&c, 0, gemm)->end_us, 30, NEAR);
    assert_near(play_times(&c, 0, reduce)->end_us, 70, NEAR);
    play_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seventy_and_fifty_of_a_hundred),
        cmocka_unit_test(three_arrive_one_after_another),
        cmocka_unit_test(classes_share_a_node),
        cmocka_unit_test(a_collective_holds_units),
        cmocka_unit_test(units_by_priority),
        cmocka_unit_test(a_large_claim_is_not_passed),
        cmocka_unit_test(slower_beside_computation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
