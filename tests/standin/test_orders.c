/* ctest: timeout=300 */
/*
 * exec/cuda on the stand-in, in random legal orders of everything that streams and host threads
 * leave open: losses and parameters are the host backend's, bit for bit. Sums of collectives are
 * taken in the order of ranks on both, and kernels and products are the same code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "tests/standin/training.h"
#include "tests/support/folder.h"

/* Under a sanitizer, which is some twenty times slower, fewer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 14, UNIFORM_SEEDS = 2 };
#else
enum { SEEDS = 50, UNIFORM_SEEDS = 10 };
#endif
enum { STEPS = 4, LAYERS = 2 };

static void check(const struct sc_program *program, const struct sc_standin_setup *setup,
                  const struct sc_training *expected)
{
    struct sc_training training;
    sc_training_on_standin(program, STEPS, setup, &training);
    if (!sc_training_equal(&training, expected)) {
        sc_training_print(&training, expected);
        fail_msg("order %d, seed %llu", (int)setup->order, (unsigned long long)setup->seed);
    }
    sc_training_free(&training);
}

static void check_plan(enum sc_training_plan plan)
{
    struct sc_program *program = sc_training_program(plan, LAYERS);
    struct sc_training host, first;
    assert_non_null(program);
    sc_training_on_host(program, STEPS, &host);
    assert_int_equal(host.status, SC_OK);
    struct sc_standin_setup setup = {.order = SC_STANDIN_ISSUE};
    sc_training_on_standin(program, STEPS, &setup, &first);
    print_message("%s: %llu calls, %llu operations, %llu waits of device 0\n",
                  sc_training_name(plan), (unsigned long long)first.totals.calls,
                  (unsigned long long)first.totals.operations,
                  (unsigned long long)first.totals.waits[0]);
    check(program, &setup, &host);
    setup.order = SC_STANDIN_PRIORITIES;
    setup.operations = first.totals.operations;
    for (setup.seed = 0; setup.seed < SEEDS; setup.seed++) {
        setup.lag = setup.seed % 2 == 1; /* what goes on last, all of a device in turn */
        setup.lag_device = (int)(setup.seed / 2 % 2);
        setup.lag_stream = (int)(setup.seed / 4) % (1 + first.totals.streams[0]);
        check(program, &setup, &host);
    }
    setup.lag = false;
    setup.order = SC_STANDIN_UNIFORM;
    for (setup.seed = 0; setup.seed < UNIFORM_SEEDS; setup.seed++)
        check(program, &setup, &host);
    sc_training_free(&first);
    sc_training_free(&host);
    sc_program_destroy(&program);
}

static void test_gpt_tensor(void **state)
{
    (void)state;
    check_plan(SC_TRAINING_GPT_TENSOR);
}

static void test_llama_data(void **state)
{
    (void)state;
    check_plan(SC_TRAINING_LLAMA_DATA);
}

static void test_gpt_domino(void **state)
{
    (void)state;
    check_plan(SC_TRAINING_GPT_DOMINO);
}

static void test_gpt_all(void **state)
{
    (void)state;
    check_plan(SC_TRAINING_GPT_ALL);
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt_tensor),
        cmocka_unit_test(test_llama_data),
        cmocka_unit_test(test_gpt_domino),
        cmocka_unit_test(test_gpt_all),
    };
    int failed = cmocka_run_group_tests(tests, folder_make, NULL);
    return folder_remove() + failed;
}
