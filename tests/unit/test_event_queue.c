/* The event queue: order, ties by number, moving and cancelling, against a plain search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sim/event_queue.h"

enum { TIMERS = 37, ROUNDS = 20000 };

static void equal_times_by_number(void **state)
{
    (void)state;
    struct sc_event_queue queue;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_event_queue_init(&queue, 4, &err), SC_OK);
    uint32_t timer = 0;
    double time = 0;
    assert_false(sc_event_queue_first(&queue, &timer, &time));
    const uint32_t order[4] = {2, 0, 3, 1};
    for (int i = 0; i < 4; i++)
        sc_event_queue_set(&queue, order[i], 5.0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(sc_event_queue_first(&queue, &timer, &time));
        assert_int_equal(timer, i);
        sc_event_queue_cancel(&queue, timer);
        sc_event_queue_cancel(&queue, timer); /* twice is nothing */
    }
    assert_false(sc_event_queue_first(&queue, &timer, &time));
    sc_event_queue_free(&queue);
}

/* Random sets, moves and cancels; the first is always the least of a plain table. */
static void like_a_plain_table(void **state)
{
    (void)state;
    struct sc_event_queue queue;
    struct sc_error err = SC_ERROR_INIT;
    double table[TIMERS];
    uint64_t seed = 11;
    assert_int_equal(sc_event_queue_init(&queue, TIMERS, &err), SC_OK);
    for (int i = 0; i < TIMERS; i++)
        table[i] = -1; /* not set */
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t at = (uint32_t)(sc_random_next(&seed) % TIMERS);
        if (sc_random_next(&seed) % 3 == 0) {
            table[at] = -1;
            sc_event_queue_cancel(&queue, at);
        } else {
            table[at] = (double)(sc_random_next(&seed) % 50); /* many ties */
            sc_event_queue_set(&queue, at, table[at]);
        }
        int least = -1;
        for (int i = 0; i < TIMERS; i++)
            if (table[i] >= 0 && (least < 0 || table[i] < table[least]))
                least = i;
        uint32_t timer = 0;
        double time = 0;
        assert_int_equal(sc_event_queue_first(&queue, &timer, &time), least >= 0);
        if (least >= 0)
            assert_int_equal(timer, least);
    }
    sc_event_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_times_by_number),
        cmocka_unit_test(like_a_plain_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
