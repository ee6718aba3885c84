/* ctest: timeout=300 serial=1 */
/* What others take of the cores is seen, what this program takes is not taken for theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec/calibrate.h"
#include "exec/contention.h"

enum { SPINNERS_MAX = 64 };

static int cores(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    int count = CPU_COUNT(&set);
    return count < SPINNERS_MAX ? count : SPINNERS_MAX;
}

/* Processes that do nothing but run; they end when they are killed, or when the alarm rings. */
static void start_spinners(pid_t *out, int count)
{
    for (int i = 0; i < count; i++) {
        out[i] = fork();
        assert_true(out[i] >= 0);
        if (out[i] == 0) {
            alarm(280);
            for (volatile unsigned turn = 0;; turn++) {
            }
        }
    }
}

static void stop_spinners(const pid_t *spinners, int count)
{
    for (int i = 0; i < count; i++) {
        kill(spinners[i], SIGKILL);
        waitpid(spinners[i], NULL, 0);
    }
}

static void sleep_a_second(void)
{
    const struct timespec second = {1, 0};
    nanosleep(&second, NULL);
}

/* While this process sleeps every core is busy, with spinners or with something else: all of it is
 * others' time, and a hundredth of a second a core is lost to rounding. */
static void others_are_seen(void **state)
{
    (void)state;
    struct sc_contention_start start;
    struct sc_contention seen;
    pid_t spinners[SPINNERS_MAX];
    char text[256];
    int count = cores();
    start_spinners(spinners, count);
    sc_contention_begin(0, &start);
    sleep_a_second();
    sc_contention_end(&start, &seen);
    stop_spinners(spinners, count);
    if (!seen.known) {
        skip(); /* a system without /proc/stat */
    }
    assert_true(seen.others_share > 0.5 && seen.others_share <= 1.0);
    assert_true(seen.own_s < 0.5);
    assert_true(sc_contention_warning(&seen, text, sizeof(text)));
    assert_non_null(strstr(text, "% of the cores while measuring"));
}

/* The same time counts once: own and others together are no more than there is. */
static void own_time_is_not_others(void **state)
{
    (void)state;
    struct sc_contention_start start;
    struct sc_contention seen;
    sc_contention_begin(0, &start);
    double own = 0;
    while (own < 0.7) {
        sc_contention_end(&start, &seen);
        own = seen.own_s;
    }
    if (!seen.known) {
        skip();
    }
    double whole = seen.seconds * seen.cores;
    assert_true(seen.others_share + seen.own_s / whole <= 1.05);
    /* Another process of this program had a tenth of it all: others have that much less. */
    double before = seen.others_share;
    sc_contention_add_own(&seen, 0.1 * whole);
    double expected = fmax(before - 0.1, seen.steal_share);
    assert_true(fabs(seen.others_share - expected) < 1e-9);
    assert_true(fabs(seen.own_s - (own + 0.1 * whole)) < 1e-9);
}

/* 23 % gone: 0.77 of the cores do the work in 1 / 0.77 = 1.299 of the time. */
static void the_excess_follows_from_the_share(void **state)
{
    (void)state;
    char text[256];
    struct sc_contention c = {.known = true, .others_share = 0.23, .steal_share = 0.01};
    assert_true(fabs(sc_contention_excess(&c) - 0.23 / 0.77) < 1e-12);
    assert_true(sc_contention_warning(&c, text, sizeof(text)));
    assert_string_equal(text, "other programs used 23 % of the cores while measuring: times may be "
                              "too long by up to 30 %");
    c.steal_share = 0.2;
    assert_true(sc_contention_warning(&c, text, sizeof(text)));
    assert_non_null(strstr(text, "virtual machines"));
    c.others_share = 0.01;
    assert_false(sc_contention_warning(&c, text, sizeof(text)));
    c = (struct sc_contention){.others_share = 0.5};
    assert_true(sc_contention_excess(&c) == 0);
    assert_false(sc_contention_warning(&c, text, sizeof(text)));
}

/* Half a second is needed to tell. */
static void a_moment_is_too_short(void **state)
{
    (void)state;
    struct sc_contention_start start;
    struct sc_contention seen;
    sc_contention_begin(1, &start);
    start.when += 1e6; /* as if no time had passed */
    sc_contention_end(&start, &seen);
    assert_false(seen.known);
    assert_true(seen.cores == 1.0 || !start.known);
}

/* Half as many as cores: each has at least half of a core, together a quarter of the cores. */
static void calibration_sees_them(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_calibration calibration;
    const struct sc_calibrate_options options = {.name = "crowded", .tiny = true};
    pid_t spinners[SPINNERS_MAX];
    int count = (cores() + 1) / 2;
    start_spinners(spinners, count);
    enum sc_status status = sc_calibrate(&options, &calibration, &err);
    stop_spinners(spinners, count);
    if (status != SC_OK) {
        fail_msg("%s", err.text);
    }
    struct sc_contention seen = calibration.contention;
    sc_calibration_free(&calibration);
    if (!seen.known && seen.seconds < 0.5) {
        skip(); /* a machine that measures all of it in less */
    }
    assert_true(seen.others_share > SC_CONTENTION_NOTABLE);
    assert_true(seen.own_s > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_seen),
        cmocka_unit_test(own_time_is_not_others),
        cmocka_unit_test(the_excess_follows_from_the_share),
        cmocka_unit_test(a_moment_is_too_short),
        cmocka_unit_test(calibration_sees_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
