/*
 * Two processes, over MPI and over sockets: the same bits as two threads, failures that are heard
 * of by all, and large, odd and empty collectives.
 */
/* ctest: labels=mpi timeout=120 ranks=2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/check.h"
#include "exec/host/transport.h"
#include "exec/launch.h"
#include "exec/process.h"
#include "tests/support/run_example.h"

static const enum sc_run_transport transports[] = {SC_TRANSPORT_MPI, SC_TRANSPORT_SOCKETS};

enum { TRANSPORTS = sizeof transports / sizeof *transports };

static void load(const char *name, struct sc_plan *plan)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_plan_load(name, NULL, 0, plan, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static bool same(const struct sc_tensors *a, const struct sc_tensors *b)
{
    static const size_t elements[EXAMPLE_TENSORS] = {256, 32, 256, 8, 8, 8};
    for (size_t t = 0; t < EXAMPLE_TENSORS; t++)
        if (memcmp(a->data[t], b->data[t], elements[t] * sizeof(float)) != 0)
            return false;
    return true;
}

/* Gradients and parameters after four steps. Process 0 runs the threads beside it. */
static void check_same_bits(enum sc_run_transport transport, bool chaos)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result processes, threads;
    struct sc_program *program = sc_run_example();
    assert_non_null(program);
    sc_run_example_options(&options, 4);
    options.snapshot_step = 3;
    options.cores = 2;
    options.chaos = chaos;
    options.chaos_seed = 11;
    options.transport = transport;
    if (sc_run(program, &options, &processes, &err) != SC_OK)
        fail_msg("%s", err.text);
    options.transport = SC_TRANSPORT_THREADS;
    options.chaos = false;
    assert_int_equal(sc_run(program, &options, &threads, &err), SC_OK);
    if (processes.root) {
        assert_true(same(&processes.gradients, &threads.gradients));
        assert_true(same(&processes.parameters, &threads.parameters));
    }
    sc_run_result_free(&processes);
    sc_run_result_free(&threads);
    sc_program_destroy(&program);
}

static void test_same_bits_as_threads(void **state)
{
    (void)state;
    for (int t = 0; t < TRANSPORTS; t++) {
        check_same_bits(transports[t], false);
        check_same_bits(transports[t], true);
    }
}

static void test_plan_against_reference(void **state)
{
    (void)state;
    static const char *const plans[] = {"host_tiny-gpt_2ranks_tp2_domino2",
                                        "host_tiny-llama_2ranks_dp2_zero1"};
    for (size_t i = 0; i < TRANSPORTS * sizeof plans / sizeof *plans; i++) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_plan plan;
        struct sc_run_options options;
        struct sc_check_result result = {0};
        load(plans[i / TRANSPORTS], &plan);
        sc_run_options_neutral(&options);
        options.steps = 2;
        options.transport = transports[i % TRANSPORTS];
        if (sc_check(&plan, &options, &result, &err) != SC_OK)
            fail_msg("%s", err.text);
        if (result.root)
            assert_true(result.equal);
    }
}

/* Whichever process fails, both get its error, within seconds, and can run again. */
static void test_failures_are_heard(void **state)
{
    (void)state;
    struct sc_program *program = sc_run_example();
    struct sc_run_options options;
    struct sc_run_result result;
    assert_non_null(program);
    for (int i = 0; i < 2 * TRANSPORTS; i++) {
        int64_t rank = i % 2;
        struct sc_error err = SC_ERROR_INIT;
        char expected[32];
        sc_run_example_options(&options, 5);
        options.transport = transports[i / 2];
        options.fault = (struct sc_fault){.on = true, .rank = rank, .step = 2, .op = 8};
        time_t before = time(NULL);
        assert_int_equal(sc_run(program, &options, &result, &err), SC_MACHINE);
        assert_true(time(NULL) - before < 10);
        snprintf(expected, sizeof expected, "rank %d: operation 8", (int)rank);
        assert_non_null(strstr(err.text, expected));
        options.fault.on = false;
        assert_int_equal(sc_run(program, &options, &result, &err), SC_OK);
        sc_run_result_free(&result);
    }
    sc_program_destroy(&program);
}

/* More processes than ranks is a mistake that both see. */
static void test_wrong_number_of_processes(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_run_result result;
    load("host_tiny-gpt_4ranks_tp4", &plan);
    sc_run_options_neutral(&options);
    options.transport = SC_TRANSPORT_MPI;
    assert_int_equal(sc_run_plan(&plan, &options, &result, &err), SC_USAGE);
    assert_non_null(strstr(err.text, "found 2 processes, expected 4"));
}

/* ---- collectives ----------------------------------------------------------------------------- */

static void finish(const struct sc_transport *transport, struct sc_member *member,
                   const struct sc_collective *collective)
{
    struct sc_error err = SC_ERROR_INIT;
    bool done = false, moved;
    assert_int_equal(transport->functions->begin(member, collective, &err), SC_OK);
    while (!done) {
        assert_int_equal(transport->functions->test(member, &done, &moved, &err), SC_OK);
        if (!moved)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

static float element(int64_t rank, size_t i)
{
    return (float)((double)((uint32_t)(rank + 1) * 2654435761u + (uint32_t)i * 40503u) / 4e9);
}

/* Sizes around a chunk of 256 KiB a slice, several chunks, and a few elements: the sum in rank
 * order x0 + x1, in place and scattered, gathered, exchanged. */
static void check_collectives(const struct sc_transport *transport, struct sc_member *member,
                              int64_t rank, size_t count)
{
    float *x = calloc(2 * count + 1, sizeof *x), *y = calloc(2 * count + 1, sizeof *y);
    size_t bytes = 2 * count * sizeof *x;
    assert_non_null(x);
    assert_non_null(y);
    for (size_t i = 0; i < 2 * count; i++)
        x[i] = y[i] = element(rank, i);
    struct sc_collective c = {.kind = SC_COLLECTIVE_ALL_REDUCE, .y = y, .bytes = bytes};
    finish(transport, member, &c);
    for (size_t i = 0; i < 2 * count; i++)
        assert_true(y[i] == element(0, i) + element(1, i));
    c = (struct sc_collective){
        .kind = SC_COLLECTIVE_REDUCE_SCATTER, .x = x, .y = y, .bytes = bytes};
    finish(transport, member, &c);
    for (size_t i = 0; i < count; i++)
        assert_true(y[i] ==
                    element(0, (size_t)rank * count + i) + element(1, (size_t)rank * count + i));
    c = (struct sc_collective){.kind = SC_COLLECTIVE_ALL_TO_ALL, .x = x, .y = y, .bytes = bytes};
    finish(transport, member, &c);
    for (size_t i = 0; i < 2 * count; i++)
        assert_true(y[i] == element(i < count ? 0 : 1, (size_t)rank * count + i % count));
    c = (struct sc_collective){
        .kind = SC_COLLECTIVE_ALL_GATHER, .x = x + (size_t)rank * count, .y = x, .bytes = bytes};
    finish(transport, member, &c);
    for (size_t i = 0; i < 2 * count; i++)
        assert_true(x[i] == element(i < count ? 0 : 1, i));
    c = (struct sc_collective){.kind = SC_COLLECTIVE_BROADCAST, .y = y, .bytes = bytes};
    y[0] = (float)(rank + 5);
    finish(transport, member, &c);
    assert_true(count == 0 || y[0] == 5);
    free(x);
    free(y);
}

static void check_transport(sc_transport_fn *open)
{
    const size_t counts[] = {0, 1, 3, 16, 65535, 65536, 65537, 500001};
    const unsigned mask = SC_AXIS_MASK(SC_TENSOR);
    struct sc_error err = SC_ERROR_INIT;
    struct sc_process process;
    struct sc_transport *transport = NULL;
    struct sc_mesh mesh;
    assert_int_equal(sc_process_mpi(&process, &err), SC_OK);
    sc_mesh_make(2, 1, 1, 1, &mesh);
    const struct sc_transport_setup setup = {.mesh = &mesh,
                                             .groups = 1,
                                             .axis_masks = &mask,
                                             .first_rank = process.index,
                                             .local_ranks = 1,
                                             .process = &process};
    assert_int_equal(open(&setup, &transport, &err), SC_OK);
    struct sc_member *member = transport->functions->member(transport, 0, process.index, NULL);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check_collectives(transport, member, process.index, counts[i]);
    sc_transport_close(&transport);
}

static void test_collectives(void **state)
{
    (void)state;
    check_transport(sc_transport_mpi);
    check_transport(sc_transport_sockets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_same_bits_as_threads),
        cmocka_unit_test(test_plan_against_reference),
        cmocka_unit_test(test_failures_are_heard),
        cmocka_unit_test(test_wrong_number_of_processes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sc_launch_end();
    return failed;
}
