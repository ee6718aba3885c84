/* ctest: timeout=300 */
/*
 * One wait of a stream is left out of a run; of at most SEEDS runs in drawn orders one shows it: by
 * other numbers, by poison, or by an error. Said and bounded for a sample of all waits;
 * STEPCAST_STANDIN_WAITS=all tries every one of them, and the other way of drawing orders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/standin/training.h"
#include "tests/support/folder.h"

/* Under a sanitizer, which is some twenty times slower, fewer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SAMPLE = 12 };
#else
enum { SAMPLE = 60 };
#endif
enum { STEPS = 4, LAYERS = 1, SEEDS = 20 };

/* In a process of its own: an operation that reads what nothing wrote may end it. */
static bool shows(const struct sc_program *program, struct sc_standin_setup setup,
                  const struct sc_training *expected)
{
    int status = 0, streams = 1 + expected->totals.streams[setup.skip_device];
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool shown = false;
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        for (setup.seed = 0; setup.seed < SEEDS && !shown; setup.seed++) {
            setup.lag_stream = (int)(setup.seed % (uint64_t)streams);
            struct sc_training training;
            sc_training_on_standin(program, STEPS, &setup, &training);
            shown = !sc_training_equal(&training, expected);
            sc_training_free(&training);
        }
        _exit(shown ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

struct figure {
    int tried, noticed;
};

static struct figure leave_out(const struct sc_program *program,
                               const struct sc_standin_setup *base, uint64_t apart,
                               const struct sc_training *expected)
{
    struct figure figure = {0, 0};
    bool tell = getenv("STEPCAST_STANDIN_TELL") != NULL;
    for (uint64_t wait = 1; wait <= expected->totals.waits[0]; wait += apart) {
        struct sc_standin_setup setup = *base;
        setup.skip_wait = wait;
        bool shown = shows(program, setup, expected);
        figure.tried++;
        figure.noticed += shown;
        if (!shown && tell)
            print_message("wait %llu is not missed\n", (unsigned long long)wait);
    }
    return figure;
}

static struct figure check_plan(enum sc_training_plan plan, enum sc_standin_order order)
{
    struct sc_program *program = sc_training_program(plan, LAYERS);
    struct sc_training expected;
    assert_non_null(program);
    struct sc_standin_setup setup = {.order = SC_STANDIN_ISSUE};
    sc_training_on_standin(program, STEPS, &setup, &expected);
    assert_int_equal(expected.status, SC_OK);
    uint64_t apart = getenv("STEPCAST_STANDIN_WAITS") ? 1 : 1 + expected.totals.waits[0] / SAMPLE;
    setup.order = order;
    setup.lag = true;
    setup.operations = expected.totals.operations;
    struct figure figure = leave_out(program, &setup, apart, &expected);
    print_message("%s: %d of %d waits left out are noticed\n", sc_training_name(plan),
                  figure.noticed, figure.tried);
    sc_training_free(&expected);
    sc_program_destroy(&program);
    return figure;
}

static void check_all(enum sc_standin_order order, double least)
{
    struct figure total = {0, 0};
    for (int plan = 0; plan < SC_TRAINING_PLANS; plan++) {
        struct figure one = check_plan((enum sc_training_plan)plan, order);
        total.tried += one.tried;
        total.noticed += one.noticed;
    }
    print_message("%d of %d, %.1f %%\n", total.noticed, total.tried,
                  100.0 * total.noticed / total.tried);
    assert_true(total.noticed >= least * total.tried);
}

static void test_priorities(void **state)
{
    (void)state;
    check_all(SC_STANDIN_PRIORITIES, 0.95);
}

static void test_uniform(void **state)
{
    (void)state;
    if (!getenv("STEPCAST_STANDIN_WAITS"))
        skip();
    check_all(SC_STANDIN_UNIFORM, 0);
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_uniform),
    };
    int failed = cmocka_run_group_tests(tests, folder_make, NULL);
    return folder_remove() + failed;
}
