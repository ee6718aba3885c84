/* ctest: timeout=300 */
/*
 * Every call of a run fails once in turn: the run ends with one line that names the call (or goes
 * on, where it was giving something back, and names the next one that fails), no wait is for ever,
 * nothing of the device and nothing of the heap is left. The same with a device that is gone from
 * that call on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/training.h"
#include "tests/support/folder.h"

/* Under a sanitizer, which is some twenty times slower, fewer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SAMPLE = 60 };
#else
enum { SAMPLE = 1000 };
#endif
enum { STEPS = 2, LAYERS = 1 };

static bool gives_back(const char *call)
{
    return strstr(call, "Free") || strstr(call, "Destroy") || strstr(call, "Abort") ||
           strstr(call, "Finalize") || strstr(call, "Group"); /* of calls that give back */
}

static void check(const struct sc_program *program, const struct sc_standin_setup *setup,
                  const struct sc_training *expected, long heap)
{
    struct sc_training training;
    sc_training_on_standin(program, STEPS, setup, &training);
    const char *text = training.error.text;
    bool named =
        sc_status_exit_code(training.status) == 4 && text[0] && !strchr(text, '\n') &&
        (strstr(text, training.failed) || (setup->fail_all && gives_back(training.failed)));
    bool passed = gives_back(training.failed) && training.status == SC_OK &&
                  memcmp(training.numbers, expected->numbers, expected->count * sizeof(float)) == 0;
    bool good = (named || passed) && !training.complaint[0] && !training.left[0] &&
                training.totals.deadlocks == 0;
    if (!good)
        sc_training_print(&training, expected);
    sc_training_free(&training);
    if (good && sc_standin_heap() == heap)
        return;
    fail_msg("call %llu, %s%s: status %d, \"%s\"; %ld allocations of the heap are left",
             (unsigned long long)setup->fail_call, training.failed,
             setup->fail_all ? " and all after it" : "", (int)training.status, text,
             sc_standin_heap() - heap);
}

static void check_plan(enum sc_training_plan plan, bool all)
{
    struct sc_program *program = sc_training_program(plan, LAYERS);
    struct sc_training expected;
    struct sc_standin_setup setup = {.order = SC_STANDIN_ISSUE, .fail_all = all};
    assert_non_null(program);
    sc_training_on_standin(program, STEPS, &setup, &expected);
    assert_int_equal(expected.status, SC_OK);
    long heap = sc_standin_heap();
    uint64_t calls = expected.totals.calls;
    uint64_t apart = getenv("STEPCAST_STANDIN_CALLS") ? 1 : 1 + calls / SAMPLE;
    for (setup.fail_call = 1; setup.fail_call <= calls; setup.fail_call += apart)
        check(program, &setup, &expected, heap);
    print_message("%s: %llu calls, one of %llu tried\n", sc_training_name(plan),
                  (unsigned long long)calls, (unsigned long long)apart);
    sc_training_free(&expected);
    sc_program_destroy(&program);
}

static void test_one_call(void **state)
{
    (void)state;
    check_plan(SC_TRAINING_GPT_TENSOR, false);
    check_plan(SC_TRAINING_GPT_ALL, false);
}

static void test_all_calls_from_one_on(void **state)
{
    (void)state;
    check_plan(SC_TRAINING_GPT_TENSOR, true);
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_call),
        cmocka_unit_test(test_all_calls_from_one_on),
    };
    int failed = cmocka_run_group_tests(tests, folder_make, NULL);
    return folder_remove() + failed;
}
