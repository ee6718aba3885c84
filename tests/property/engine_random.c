/* Random programs: what must hold whatever the engine plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/bound.h"
#include "tests/support/near.h"
#include "tests/support/play_random.h"

enum { PROGRAMS = 300, STREAMS = PLAY_STREAMS, OPS_MAX = 40 };
#define ROUNDING 1e-7

static double alone(const struct sc_price *price)
{
    return price->latency_us + price->work_us;
}

static double serial_sum(const struct play_case *c)
{
    double sum = 0;
    for (uint32_t k = 0; k < c->program->classes.count; k++)
        for (uint32_t i = 0; i < c->program->classes.items[k].step.ops.count; i++)
            sum += alone(play_price((struct play_case *)c, k, i)) +
                   play_price((struct play_case *)c, k, i)->issue_us;
    return sum;
}

/* Longest path through the waits and stream orders of one class's step, without resources. */
static double critical_path(struct play_case *c)
{
    const struct sc_list *list = &c->program->classes.items[0].step;
    double end[STREAMS * OPS_MAX], stream_end[STREAMS] = {0}, longest = 0;
    for (uint32_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        double start = stream_end[op->stream];
        for (uint32_t w = 0; w < op->waits; w++) {
            const struct sc_wait *wait = &list->waits.items[op->first_wait + w];
            if (wait->distance == 0 && end[wait->op] > start)
                start = end[wait->op];
        }
        end[i] = stream_end[op->stream] = start + alone(play_price(c, 0, i));
        longest = end[i] > longest ? end[i] : longest;
    }
    return longest;
}

static double last_end(const struct play_case *c)
{
    double last = 0;
    for (size_t k = 0; k < c->play.classes.count; k++)
        for (size_t i = 0; i < c->play.classes.items[k].ops; i++)
            if (c->play.classes.items[k].times[i].end_us > last)
                last = c->play.classes.items[k].times[i].end_us;
    return last;
}

/* Without resources and issue the first step is the longest path exactly. */
static void the_critical_path_without_resources(void **state)
{
    (void)state;
    const struct play_shape shape = {.stages = 1};
    uint64_t seed = 1;
    for (int i = 0; i < PROGRAMS; i++) {
        struct play_case c;
        play_random(&c, &shape, &seed);
        c.program->steps_ahead = 1;
        play_run(&c, 1);
        assert_near(last_end(&c), critical_path(&c), ROUNDING);
        play_end(&c);
    }
}

/* critical path <= end of the first step <= everything one after another, where resources are
 * shared too: sharing never wastes what somebody wants. */
static void between_critical_path_and_serial_sum(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct play_shape shape = {.stages = 1, .resources = true, .issue = i % 2 == 0};
        struct play_case c;
        play_random(&c, &shape, &seed);
        c.program->steps_ahead = 1;
        play_run(&c, 1);
        assert_true(last_end(&c) >= critical_path(&c) - ROUNDING);
        assert_true(last_end(&c) <= serial_sum(&c) + ROUNDING);
        play_end(&c);
    }
}

/* The bound never exceeds the period of a settled play; no resource gives more than it has. */
static void the_bound_is_below(void **state)
{
    (void)state;
    uint64_t seed = 3;
    int settled = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct play_shape shape = {
            .stages = 1 + i % 3, .resources = true, .held = i % 2 == 0, .issue = i % 5 == 0};
        struct play_case c;
        double bound = 0;
        play_random(&c, &shape, &seed);
        play_run(&c, 0);
        assert_int_equal(sc_bound_period(c.program, &c.prices, &c.machine, &bound, &c.error),
                         SC_OK);
        if (c.play.settled) {
            settled++;
            assert_true(bound <= c.play.period_us * (1 + 1e-9));
            for (size_t r = 0; r < c.play.utilisation.count; r++)
                assert_true(c.play.utilisation.items[r] <= 1 + 1e-9);
        }
        play_end(&c);
    }
    assert_true(settled > PROGRAMS / 2);
}

static void check_order(const struct play_case *c, uint32_t k)
{
    const struct sc_list *list = &c->program->classes.items[k].step;
    const struct sc_op_times *times = c->play.classes.items[k].times;
    double stream_end[STREAMS];
    bool begun[STREAMS] = {false};
    for (uint32_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        assert_true(times[i].ready_us <= times[i].start_us + ROUNDING);
        assert_true(times[i].end_us - times[i].start_us >=
                    alone(play_price((struct play_case *)c, k, i)) - ROUNDING);
        for (uint32_t w = 0; w < op->waits; w++) {
            const struct sc_wait *wait = &list->waits.items[op->first_wait + w];
            if (wait->distance == 0)
                assert_true(times[wait->op].end_us <= times[i].ready_us + ROUNDING);
        }
        if (begun[op->stream])
            assert_true(stream_end[op->stream] <= times[i].ready_us + ROUNDING);
        begun[op->stream] = true;
        stream_end[op->stream] = times[i].end_us;
    }
}

/* Waits and the order of streams hold; members of a collective of several classes end together. */
static void order_holds(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct play_shape shape = {
            .stages = 1 + i % 3, .resources = true, .held = true, .issue = true};
        struct play_case c;
        play_random(&c, &shape, &seed);
        play_run(&c, 0);
        for (uint32_t k = 0; k < (uint32_t)shape.stages; k++)
            check_order(&c, k);
        play_end(&c);
    }
}

/* What the main stream does and waits for adds up to the time between its ends. */
static void the_breakdown_adds_up(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct play_shape shape = {
            .stages = 1, .resources = true, .held = true, .issue = true};
        struct play_case c;
        play_random(&c, &shape, &seed);
        play_run(&c, 0);
        const struct sc_play_class *class = &c.play.classes.items[0];
        double sum = class->busy_us;
        for (size_t op = 0; op < class->ops; op++)
            sum += class->times[op].exposed_us + class->times[op].issue_wait_us;
        assert_near(sum, class->span_us, 1e-4);
        play_end(&c);
    }
}

/* The same program twice: the same bytes. */
static void the_same_twice(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int i = 0; i < PROGRAMS / 10; i++) {
        const struct play_shape shape = {
            .stages = 2, .resources = true, .held = true, .issue = true};
        struct play_case c;
        play_random(&c, &shape, &seed);
        play_run(&c, 0);
        size_t ops = c.play.classes.items[0].ops + c.play.classes.items[1].ops;
        struct sc_op_times *first = malloc(ops * sizeof(*first));
        assert_non_null(first);
        memcpy(first, c.play.times, ops * sizeof(*first));
        double period = c.play.period_us;
        play_run(&c, 0);
        assert_true(period >= c.play.period_us && period <= c.play.period_us);
        for (size_t op = 0; op < ops; op++)
            assert_memory_equal(&first[op].end_us, &c.play.times[op].end_us, sizeof(double));
        free(first);
        play_end(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_critical_path_without_resources),
        cmocka_unit_test(between_critical_path_and_serial_sum),
        cmocka_unit_test(the_bound_is_below),
        cmocka_unit_test(order_holds),
        cmocka_unit_test(the_breakdown_adds_up),
        cmocka_unit_test(the_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
