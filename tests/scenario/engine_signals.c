/* Signals between streams: an operation that stood waiting starts a little after what it waited for
 * has ended; one that finds it ended starts at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/critical_path.h"
#include "tests/support/near.h"
#include "tests/support/play.h"

#define NEAR 1e-9

static double of_what(const struct play_case *c, enum sc_path_what what)
{
    double sum = 0;
    for (size_t i = 0; i < c->play.path.pieces.count; i++) {
        const struct sc_path_piece *piece = &c->play.path.pieces.items[i];
        sum += piece->what == what ? piece->end_us - piece->begin_us : 0;
    }
    return sum;
}

/* first (100), an all-reduce (50) that notices its end 7 later, then an operation (20) that notices
 * the all-reduce's end 3 later: 100 + 7 + 50 + 3 + 20 = 180. On the path 170 are work and 10 are
 * signals; both signals keep the compute stream waiting. */
static void what_stood_waiting_starts_later(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    c.path = true;
    int compute = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 0);
    int tensor = play_group(&c, "tensor", SC_TENSOR);
    uint32_t first = play_op(&c, 0, compute, -1, 100);
    uint32_t reduce = play_op(&c, 0, comm, tensor, 50);
    play_wait(&c, 0, first, 0);
    play_price(&c, 0, reduce)->wait_us = 7;
    uint32_t last = play_op(&c, 0, compute, -1, 20);
    play_wait(&c, 0, reduce, 0);
    play_price(&c, 0, last)->wait_us = 3;
    play_run(&c, 0);
    assert_near(c.play.period_us, 180, NEAR);
    assert_near(play_times(&c, 0, reduce)->start_us, 107, NEAR);
    assert_near(play_times(&c, 0, last)->start_us, 160, NEAR);
    assert_near(play_times(&c, 0, reduce)->exposed_us, 50, NEAR);
    assert_near(of_what(&c, SC_PATH_RUN), 170 * c.play.path.periods, NEAR);
    assert_near(of_what(&c, SC_PATH_SIGNAL), 10 * c.play.path.periods, NEAR);
    play_end(&c);
}

/* The all-reduce ends at 157, while the second operation runs until 300: the third one does not
 * wait and starts at 300. */
static void what_finds_it_ended_starts_at_once(void **state)
{
    (void)state;
    struct play_case c;
    play_begin(&c, 1);
    int compute = play_stream(&c, "compute", 0), comm = play_stream(&c, "comm", 0);
    int tensor = play_group(&c, "tensor", SC_TENSOR);
    uint32_t first = play_op(&c, 0, compute, -1, 100);
    uint32_t reduce = play_op(&c, 0, comm, tensor, 50);
    play_wait(&c, 0, first, 0);
    play_price(&c, 0, reduce)->wait_us = 7;
    play_op(&c, 0, compute, -1, 200);
    uint32_t last = play_op(&c, 0, compute, -1, 20);
    play_wait(&c, 0, reduce, 0);
    play_price(&c, 0, last)->wait_us = 3;
    play_run(&c, 0);
    assert_near(c.play.period_us, 320, NEAR);
    assert_near(play_times(&c, 0, last)->start_us, 300, NEAR);
    play_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stood_waiting_starts_later),
        cmocka_unit_test(what_finds_it_ended_starts_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
