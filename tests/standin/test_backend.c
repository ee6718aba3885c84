/* ctest: timeout=120 */
/*
 * What the CUDA backend answers where it cannot run, and what a run leaves beside losses: gradients
 * seen by an observer, times of operations, the line of a rank that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/backend.h"
#include "exec/launch.h"
#include "plans/lower.h"
#include "tests/standin/training.h"

enum { DEVICES = 8, STEPS = 3 };

static void neutral(struct sc_run_options *options, const char *backend, int64_t ranks)
{
    sc_run_options_neutral(options);
    options->backend = backend;
    options->warmup = 0;
    options->steps = STEPS;
    options->cores = ranks;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static enum sc_status check_plan(const char *name, const char *set, bool chaos,
                                 struct sc_error *err)
{
    const uint64_t unlimited[SC_PLACE_COUNT] = {0};
    const struct sc_backend *backend = NULL;
    struct sc_program *program = NULL;
    struct sc_run_options options;
    struct sc_plan plan;
    const char *sets[] = {"attention.kernel=unfused", set};
    assert_int_equal(sc_backend_find("cuda", &backend, err), SC_OK);
    assert_int_equal(sc_plan_load(name, sets, set ? 2 : 1, &plan, err), SC_OK);
    assert_int_equal(sc_lower(&plan, &program, err), SC_OK);
    assert_int_equal(sc_program_prepare(program, unlimited, false, err), SC_OK);
    neutral(&options, "cuda", 1);
    options.chaos = chaos;
    enum sc_status status = backend->check(program, &options, err);
    sc_program_destroy(&program);
    return status;
}

static void test_what_it_refuses(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(check_plan("host_tiny-gpt_1rank", NULL, false, &err), SC_OK);
    assert_int_equal(check_plan("host_tiny-llama_2ranks_dp2_zero1", NULL, false, &err), SC_OK);
    assert_int_equal(check_plan("host_tiny-gpt_1rank", "attention.kernel=fused", false, &err),
                     SC_NO);
    assert_string_equal(err.text, "backend cuda: found fused attention, expected attention.kernel "
                                  "\"unfused\"");
    assert_int_equal(check_plan("host_tiny-gpt_1rank", NULL, true, &err), SC_USAGE);
    assert_string_equal(err.text, "backend cuda: chaos and poison are the host backend's");
    assert_int_equal(check_plan("gpt3-22b_1xdgx-a100_tp8", NULL, false, &err), SC_NO);
    assert_non_null(strstr(err.text, "backend cuda: found bf16 values in the plan, expected fp32"));
}

static enum sc_status run(const struct sc_program *program, const struct sc_run_options *options,
                          int devices, struct sc_run_result *result, struct sc_error *err)
{
    const struct sc_standin_setup setup = {.seed = 11, .devices = devices};
    if (devices > 0)
        sc_standin_begin(&setup);
    enum sc_status status = sc_run(program, options, result, err);
    if (devices == 0)
        return status;
    assert_string_equal(sc_standin_complaint(), "");
    assert_string_equal(sc_standin_left(), "");
    sc_standin_end();
    return status;
}

static void test_machines_without_enough_devices(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_result result;
    struct sc_run_options options;
    struct sc_program *program = sc_training_program(SC_TRAINING_GPT_TENSOR, 1);
    assert_non_null(program);
    neutral(&options, "cuda", 2);
    assert_int_equal(run(program, &options, 0, &result, &err), SC_MACHINE);
    assert_non_null(strstr(err.text, "backend cuda: no usable GPU: cudaGetDeviceCount: "));
    assert_int_equal(run(program, &options, 1, &result, &err), SC_MACHINE);
    assert_string_equal(err.text, "backend cuda: found 1 GPUs for 2 ranks here, expected one each");
    sc_program_destroy(&program);
}

/* ---- what a run leaves ----------------------------------------------------------------------- */

static void assert_equal_tensors(const struct sc_program *program, const struct sc_tensors *a,
                                 const struct sc_tensors *b)
{
    for (size_t t = 0; t < program->tensors.count; t++) {
        const struct sc_tensor *tensor = &program->tensors.items[t];
        assert_memory_equal(a->data[t], b->data[t],
                            (size_t)(tensor->rows * tensor->cols) * sizeof(float));
    }
}

static void test_an_observer_sees_gradients(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_result host, cuda;
    struct sc_run_options options;
    struct sc_program *program = sc_training_program(SC_TRAINING_GPT_ALL, 1);
    assert_non_null(program);
    neutral(&options, "host", 4);
    options.snapshot_step = 1;
    assert_int_equal(sc_run(program, &options, &host, &err), SC_OK);
    options.backend = "cuda";
    assert_int_equal(run(program, &options, DEVICES, &cuda, &err), SC_OK);
    assert_equal_tensors(program, &host.gradients, &cuda.gradients);
    assert_equal_tensors(program, &host.parameters, &cuda.parameters);
    sc_run_result_free(&host);
    sc_run_result_free(&cuda);
    sc_program_destroy(&program);
}

/* Operations end after they begin, and those of one stream follow one another. */
static void test_times_of_operations(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_result result;
    struct sc_run_options options;
    struct sc_program *program = sc_training_program(SC_TRAINING_LLAMA_DATA, 1);
    double last[256] = {0};
    assert_non_null(program);
    neutral(&options, "cuda", 2);
    options.trace = true;
    options.traced_steps = 1;
    assert_int_equal(run(program, &options, DEVICES, &result, &err), SC_OK);
    const struct sc_list *list = &program->classes.items[0].step;
    assert_true(result.has_trace && result.trace.rows.count == list->ops.count);
    for (int s = 0; s < 256; s++)
        last[s] = -1e30;
    for (size_t i = 0; i < list->ops.count; i++) {
        const struct sc_trace_row *row = &result.trace.rows.items[i];
        assert_true(row->end_us >= row->start_us);
        assert_true(row->start_us >= last[list->ops.items[i].stream]);
        last[list->ops.items[i].stream] = row->start_us;
    }
    for (int64_t s = 0; s < STEPS; s++)
        assert_true(result.step_s[s] > 0);
    sc_run_result_free(&result);
    sc_program_destroy(&program);
}

static void test_a_rank_that_fails_ends_all(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_result result;
    struct sc_run_options options;
    struct sc_program *program = sc_training_program(SC_TRAINING_GPT_DOMINO, 1);
    assert_non_null(program);
    neutral(&options, "cuda", 2);
    for (uint32_t op = 0; op < program->classes.items[0].step.ops.count; op += 7) {
        char expected[64];
        snprintf(expected, sizeof expected, "rank 1: operation %u (", op);
        options.fault = (struct sc_fault){.on = true, .rank = 1, .step = 1, .op = op};
        assert_int_equal(run(program, &options, DEVICES, &result, &err), SC_MACHINE);
        assert_non_null(strstr(err.text, expected));
        assert_non_null(strstr(err.text, ") in step 1: made to fail"));
    }
    sc_program_destroy(&program);
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1); /* the stand-in's sums */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_refuses),
        cmocka_unit_test(test_machines_without_enough_devices),
        cmocka_unit_test(test_an_observer_sees_gradients),
        cmocka_unit_test(test_times_of_operations),
        cmocka_unit_test(test_a_rank_that_fails_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
