/* ctest: timeout=600 */
/*
 * A program without one of its waits is wrong, and that is noticed twice, by two means that know
 * nothing of each other: the verifier sees every one, and of runs in drawn orders at most
 * CHAOS_SEEDS show it for at least nine waits of ten.
 *
 * Waits are minimal: no other path replaces one (tests/property/random_programs.c).
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

#include "exec/launch.h"
#include "plans/lower.h"
#include "tests/support/random_plan.h"
#include "tests/support/run_example.h"

/* Under a sanitizer, which is some twenty times slower, fewer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { PLANS = 6 };
#else
enum { PLANS = 24 };
#endif
enum { STEPS = 4, CHAOS_SEEDS = 20 };

static struct sc_program *prepared(const struct sc_plan *plan)
{
    static const uint64_t unlimited[SC_PLACE_COUNT];
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    if (sc_lower(plan, &program, &err) != SC_OK ||
        sc_program_prepare(program, unlimited, true, &err) != SC_OK)
        fail_msg("%s", err.text);
    return program;
}

/* ---- one wait taken out ---------------------------------------------------------------------- */

struct taken {
    uint32_t op, wait; /* number of the operation, and of the wait among its own */
    struct sc_wait was;
};

static uint32_t count_waits(const struct sc_program *program)
{
    const struct sc_list *list = &program->classes.items[0].step;
    uint32_t count = 0;
    for (size_t i = 0; i < list->ops.count; i++)
        count += list->ops.items[i].waits;
    return count;
}

/* The wait of this number, all operations' waits in a row. */
static struct taken find_wait(const struct sc_program *program, uint32_t number)
{
    const struct sc_list *list = &program->classes.items[0].step;
    struct taken taken = {.wait = number};
    while (taken.wait >= list->ops.items[taken.op].waits)
        taken.wait -= list->ops.items[taken.op++].waits;
    const struct sc_op *op = &list->ops.items[taken.op];
    taken.was = list->waits.items[op->first_wait + taken.wait];
    return taken;
}

/* Puts the wait last among those of its operation and shortens them by it; the other way round. */
static void swap_with_last(struct sc_list *list, const struct taken *taken, uint32_t last)
{
    struct sc_wait *waits = &list->waits.items[list->ops.items[taken->op].first_wait];
    struct sc_wait kept = waits[taken->wait];
    waits[taken->wait] = waits[last];
    waits[last] = kept;
}

static void take_out(struct sc_program *program, const struct taken *taken)
{
    struct sc_list *list = &program->classes.items[0].step;
    swap_with_last(list, taken, --list->ops.items[taken->op].waits);
}

static void put_back(struct sc_program *program, const struct taken *taken)
{
    struct sc_list *list = &program->classes.items[0].step;
    swap_with_last(list, taken, list->ops.items[taken->op].waits++);
}

/* ---- the verifier ---------------------------------------------------------------------------- */

static void test_the_verifier_sees_every_one(void **state)
{
    (void)state;
    uint32_t all = 0;
    for (uint64_t seed = 0; seed < PLANS; seed++) {
        struct sc_plan plan;
        sc_random_plan(500 + seed, 8, &plan);
        plan.model.layers = plan.model.layers > 2 ? 2 : plan.model.layers;
        struct sc_program *program = prepared(&plan);
        uint32_t waits = count_waits(program);
        for (uint32_t number = 0; number < waits; number++) {
            struct sc_error err = SC_ERROR_INIT;
            struct taken taken = find_wait(program, number);
            take_out(program, &taken);
            if (sc_program_verify(program, &err) != SC_BUG)
                fail_msg("plan %llu: operation %u without its wait for %u (%u steps before) passes",
                         (unsigned long long)seed, taken.op, taken.was.op, taken.was.distance);
            assert_int_equal(strncmp(err.text, "unordered-access:", 17), 0);
            put_back(program, &taken);
        }
        struct sc_error err = SC_ERROR_INIT;
        assert_int_equal(sc_program_verify(program, &err), SC_OK);
        all += waits;
        sc_program_destroy(&program);
    }
    print_message("%d plans, %u waits: every one is seen\n", PLANS, all);
    assert_true(all > 20 * PLANS);
}

/* ---- runs in drawn orders -------------------------------------------------------------------- */

/* All parameters after the last step; freed by the caller. NULL where the run fails. */
static float *run(const struct sc_program *program, struct sc_run_options options, size_t *count)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_result result;
    options.snapshot_step = options.steps - 1;
    if (sc_run(program, &options, &result, &err) != SC_OK)
        return NULL;
    *count = 0;
    for (size_t t = 0; t < program->tensors.count; t++)
        *count += (size_t)(program->tensors.items[t].rows * program->tensors.items[t].cols);
    float *all = malloc(*count * sizeof *all), *to = all;
    assert_non_null(all);
    for (size_t t = 0; t < program->tensors.count; t++) {
        size_t size = (size_t)(program->tensors.items[t].rows * program->tensors.items[t].cols);
        memcpy(to, result.parameters.data[t], size * sizeof *to);
        to += size;
    }
    sc_run_result_free(&result);
    return all;
}

static bool differs(const struct sc_program *program, struct sc_run_options options,
                    const float *expected, size_t size)
{
    size_t count = 0;
    float *got = run(program, options, &count);
    bool other = got == NULL || count != size || memcmp(got, expected, size * sizeof *got) != 0;
    free(got);
    return other;
}

/* In a process of its own: an operation that reads what nothing wrote may end it. */
static bool shows(const struct sc_program *program, struct sc_run_options options,
                  const float *expected, size_t size)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool shown = false;
        int quiet = open("/dev/null", O_WRONLY);
        dup2(quiet, STDERR_FILENO);
        for (uint64_t seed = 0; seed < CHAOS_SEEDS && !shown; seed++) {
            options.chaos_seed = seed;
            shown = differs(program, options, expected, size);
        }
        _exit(shown ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* The issuer may run ahead as far as the test has steps: the bound of two steps implies waits of
 * distance 2, which then could not be missed. */
static void check_runs(struct sc_program *program, struct sc_run_options options)
{
    uint32_t waits = count_waits(program), missed = 0;
    size_t size = 0;
    options.chaos = true;
    float *expected = run(program, options, &size);
    assert_non_null(expected);
    program->steps_ahead = STEPS;
    for (uint64_t seed = 0; seed < CHAOS_SEEDS; seed++) { /* whole, it never shows */
        options.chaos_seed = seed;
        assert_false(differs(program, options, expected, size));
    }
    for (uint32_t i = 0; i < waits; i++) {
        struct taken taken = find_wait(program, i);
        take_out(program, &taken);
        if (!shows(program, options, expected, size)) {
            print_message("not noticed: operation %u without its wait for %u (%u steps before)\n",
                          taken.op, taken.was.op, taken.was.distance);
            missed++;
        }
        put_back(program, &taken);
    }
    print_message("%s: %u of %u waits noticed\n", program->name, waits - missed, waits);
    assert_true(10 * missed <= waits);
    free(expected);
    sc_program_destroy(&program);
}

static void test_chaos_on_the_worked_example(void **state)
{
    (void)state;
    struct sc_run_options options;
    struct sc_program *program = sc_run_example();
    assert_non_null(program);
    sc_run_example_options(&options, STEPS);
    check_runs(program, options);
}

/* One layer on tensor 2 x data 2, two pieces, two micro-batches, ZeRO-1 in several buckets. */
static void test_chaos_on_a_lowered_plan(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    static const char *const set[] = {"zero.bucket_elements=2000", "batch.sequence_length=8",
                                      "batch.micro_batch=2"};
    assert_int_equal(
        sc_plan_load("host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1", set, 3, &plan, &err), SC_OK);
    plan.model.layers = 1;
    plan.model.hidden_size = 32;
    plan.model.attention_heads = plan.model.key_value_heads = 4;
    plan.model.head_size = 8;
    plan.model.ffn_hidden_size = 64;
    plan.model.vocab_size = 64;
    sc_run_options_neutral(&options);
    options.warmup = 0;
    options.steps = STEPS;
    check_runs(prepared(&plan), options);
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1); /* no thread of a library when the process is copied */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_verifier_sees_every_one),
        cmocka_unit_test(test_chaos_on_the_worked_example),
        cmocka_unit_test(test_chaos_on_a_lowered_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
