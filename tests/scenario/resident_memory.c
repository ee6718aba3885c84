/*
 * What a run takes of the machine's memory is what the planner says: the peak of the process lies
 * between 0.9 of its ranks' arenas and 1.05 of them + what a program next to nothing takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/launch.h"
#include "plans/plan.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHADOWED 1
#endif
#endif
#ifndef SHADOWED
#define SHADOWED 0
#endif

struct use {
    double arenas, resident; /* bytes: of all ranks; peak of the process */
};

static void measure(const struct sc_plan *plan, int to)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result result;
    struct use use = {0, 0};
    sc_run_options_neutral(&options);
    options.warmup = 0;
    options.steps = 2;
    if (sc_run_plan(plan, &options, &result, &err) == SC_OK) {
        for (int place = 0; place < SC_PLACE_COUNT; place++)
            use.arenas += (double)result.memory.arena_bytes[place];
        use.arenas *= (double)sc_plan_ranks(plan);
        use.resident = (double)result.memory.resident_bytes;
        sc_run_result_free(&result);
    } else {
        fprintf(stderr, "%s\n", err.text);
    }
    if (write(to, &use, sizeof use) != sizeof use)
        _exit(1);
}

/* In a process of its own, whose peak is that of this run alone. */
static struct use use_of(const struct sc_plan *plan)
{
    struct use use;
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        measure(plan, ends[1]);
        _exit(0);
    }
    assert_int_equal(read(ends[0], &use, sizeof use), sizeof use);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    assert_true(use.resident > 0);
    return use;
}

/* One layer of width 32: 0.2 MB of parameters and their states, the code and what its libraries
 * take. */
static void almost_empty(const struct sc_plan *like, struct sc_plan *plan)
{
    *plan = *like;
    plan->model.layers = 1;
    plan->model.hidden_size = 32;
    plan->model.attention_heads = plan->model.key_value_heads = 4;
    plan->model.head_size = 8;
    plan->model.ffn_hidden_size = 64;
    plan->batch.sequence_length = 8;
}

static void check(const char *name, int64_t layers, int64_t hidden, int64_t sequence)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan, empty;
    if (sc_plan_load(name, NULL, 0, &plan, &err) != SC_OK)
        fail_msg("%s", err.text);
    almost_empty(&plan, &empty);
    plan.model.layers = layers;
    plan.model.hidden_size = hidden;
    plan.model.attention_heads = plan.model.key_value_heads = hidden / 64;
    plan.model.head_size = 64;
    plan.model.ffn_hidden_size = 4 * hidden;
    plan.batch.sequence_length = sequence;
    struct use nothing = use_of(&empty), full = use_of(&plan);
    print_message("%s: arenas %.1f MB, resident %.1f MB; next to nothing: %.1f MB, %.1f MB\n", name,
                  full.arenas / 1e6, full.resident / 1e6, nothing.arenas / 1e6,
                  nothing.resident / 1e6);
    assert_true(full.arenas > 200e6); /* else what the process takes anyway would decide */
    assert_true(nothing.arenas < 5e6);
    assert_true(full.resident >= 0.9 * full.arenas);
    assert_true(full.resident <= 1.05 * full.arenas + nothing.resident);
}

/* 12 h^2 = 12.6 M parameters a layer of width 1024; 16 bytes each (value, gradient, two moments):
 * 201 MB a layer. */
static void states_fill_memory(void **state)
{
    (void)state;
    if (SHADOWED)
        skip();
    check("host_tiny-gpt_2ranks_tp2_domino2", 2, 1024, 16);
    check("host_tiny-gpt_1rank", 1, 1024, 16);
}

/* 34 h bytes of activations and more a token and layer in fp32: here they outweigh the states. */
static void activations_fill_memory(void **state)
{
    (void)state;
    if (SHADOWED)
        skip();
    check("host_tiny-gpt_2ranks_dp2_zero1", 6, 256, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_fill_memory),
        cmocka_unit_test(activations_fill_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
