/* Runs as a whole: failures end them and name the rank, the trace has the program's rows, refusals
 * are one line. */
/* ctest: labels=threads timeout=240 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/backend.h"
#include "exec/check.h"
#include "exec/launch.h"
#include "exec/safetensors.h"
#include "plans/lower.h"
#include "tests/support/near.h"
#include "tests/support/run_example.h"

/* ---- helpers --------------------------------------------------------------------------------- */

static void load(const char *name, struct sc_plan *plan)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_plan_load(name, NULL, 0, plan, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static struct sc_program *prepare(const struct sc_plan *plan)
{
    const uint64_t unlimited[SC_PLACE_COUNT] = {0};
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    assert_int_equal(sc_lower(plan, &program, &err), SC_OK);
    assert_int_equal(sc_program_prepare(program, unlimited, false, &err), SC_OK);
    return program;
}

static void run(const struct sc_plan *plan, const struct sc_run_options *options,
                struct sc_run_result *result)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_run_plan(plan, options, result, &err) != SC_OK)
        fail_msg("%s", err.text);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void check_failing_rank(bool chaos)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result result;
    struct sc_program *program = sc_run_example();
    assert_non_null(program);
    sc_run_example_options(&options, 5);
    options.chaos = chaos;
    for (uint32_t op = 7; op <= 8; op++) { /* a product, an all-reduce that its peer waits for */
        options.fault = (struct sc_fault){.on = true, .rank = 1, .step = 2, .op = op};
        memset(&err, 0, sizeof err);
        assert_int_equal(sc_run(program, &options, &result, &err), SC_MACHINE);
        assert_non_null(strstr(err.text, "rank 1: operation"));
        assert_null(result.losses);
    }
    sc_program_destroy(&program);
}

static void test_failing_rank_is_named(void **state)
{
    (void)state;
    check_failing_rank(false);
    check_failing_rank(true);
}

static enum sc_status no_data(void *context, int64_t step, int64_t sequence, int64_t batch,
                              int64_t length, int32_t *index, int32_t *target, struct sc_error *err)
{
    (void)context;
    (void)sequence;
    (void)index;
    (void)target;
    if (step < 3) {
        memset(index, 0, (size_t)(batch * length) * sizeof *index);
        memset(target, 0, (size_t)(batch * length) * sizeof *target);
        return SC_OK;
    }
    return sc_fail(err, SC_BAD_INPUT, "tokens.bin: no more tokens");
}

static void test_failing_data_ends_the_run(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_run_result result;
    load("host_tiny-gpt_2ranks_tp2", &plan);
    sc_run_options_neutral(&options);
    options.data.next = no_data;
    assert_int_equal(sc_run_plan(&plan, &options, &result, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "tokens.bin: no more tokens"));
    assert_non_null(strstr(err.text, "in step 3"));
}

static void test_refusals(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    const struct sc_backend *backend = NULL;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_run_result result;
    load("host_tiny-gpt_1rank", &plan);
    sc_run_options_neutral(&options);
    assert_int_equal(sc_backend_find("hosd", &backend, &err), SC_USAGE);
    assert_non_null(strstr(err.text, "host"));
    options.steps = 0;
    assert_int_equal(sc_run_plan(&plan, &options, &result, &err), SC_USAGE);
    options.steps = 1;
    plan.precision.parameters = plan.precision.activations = SC_BF16;
    assert_int_equal(sc_run_plan(&plan, &options, &result, &err), SC_NO);
    assert_non_null(strstr(err.text, "bf16"));
    assert_null(strchr(err.text, '\n'));
}

/* ---- results --------------------------------------------------------------------------------- */

/* Every row has its times in order; the period is that of the steps; two waits' worth of rows a
 * rank where asked. */
static void test_trace(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_run_result result;
    load("host_tiny-gpt_2ranks_tp2_domino2", &plan);
    struct sc_program *program = prepare(&plan);
    size_t ops = program->classes.items[0].step.ops.count;
    sc_run_options_neutral(&options);
    options.trace = options.trace_ranks = true;
    options.steps = 6;
    run(&plan, &options, &result);
    assert_true(result.has_trace);
    assert_int_equal(result.trace.rows.count, 3 * ops); /* both, rank 0, rank 1 */
    assert_near(result.trace.period_us, result.step_time_s * 1e6, 1e-6);
    for (size_t i = 0; i < result.trace.rows.count; i++) {
        const struct sc_trace_row *row = &result.trace.rows.items[i];
        bool collective = sc_op_kind_work((enum sc_op_kind)row->kind) == SC_WORK_COLLECTIVE;
        assert_true(row->end_us >= row->start_us);
        assert_true(row->p90_us >= row->p10_us);
        assert_true(collective == !isnan(row->transfer_us));
        if (collective) {
            assert_true(row->transfer_us >= row->start_us - 1e-3);
            assert_true(row->end_us >= row->transfer_us);
        }
        assert_int_equal(row->rank, i < ops ? -1 : i < 2 * ops ? 0 : 1);
    }
    /* the anchor's last operation ends a period behind time zero; means of fewer than 10 s of
       microseconds in double */
    const struct sc_trace_row *last = &result.trace.rows.items[ops - 1];
    double nearest = 1e30;
    for (int64_t s = 0; s < result.steps; s++)
        nearest = fmin(nearest, fabs(last->end_us - result.step_s[s] * 1e6));
    assert_near(nearest, 0, 0.01);
    assert_true(result.machine[0] != '\0');
    assert_true(result.memory.arena_bytes[SC_DEVICE] > 0);
    assert_true(result.memory.resident_bytes > result.memory.arena_bytes[SC_DEVICE]);
    sc_run_result_free(&result);
    sc_program_destroy(&program);
}

/* tiny-gpt draws its logits near zero: the first loss is near the logarithm of the vocabulary (of
 * 512: 6.24), and the tokens, drawn evenly, teach it no more than that. */
static void test_losses(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_run_result result;
    load("host_tiny-gpt_4ranks_tp2_dp2", &plan);
    sc_run_options_neutral(&options);
    run(&plan, &options, &result);
    assert_true(result.has_losses);
    for (int64_t s = 0; s < result.warmup + result.steps; s++)
        assert_near(result.losses[s], log((double)plan.model.vocab_size), 0.3);
    sc_run_result_free(&result);
}

/* Saved by one layout, continued by another: the first loss is the same as that of the first layout
 * continued (fp32 sums in another order: 1e-5). */
static void test_save_and_start_from_a_file(void **state)
{
    (void)state;
    char file[] = "/tmp/stepcast_launch_XXXXXX";
    struct sc_plan one, two;
    struct sc_run_options options;
    struct sc_run_result result;
    double losses[2];
    int descriptor = mkstemp(file);
    assert_true(descriptor >= 0);
    load("host_tiny-gpt_2ranks_tp2", &two);
    load("host_tiny-gpt_1rank", &one);
    sc_run_options_neutral(&options);
    options.warmup = 0;
    options.steps = 3;
    options.save_file = file;
    run(&two, &options, &result);
    sc_run_result_free(&result);
    options.save_file = NULL;
    options.initial_file = file;
    options.steps = 1;
    const struct sc_plan *plans[2] = {&one, &two};
    for (int i = 0; i < 2; i++) {
        run(plans[i], &options, &result);
        losses[i] = result.losses[0];
        sc_run_result_free(&result);
    }
    assert_near(losses[0], losses[1], 1e-5);
    options.initial_file = NULL;
    run(&one, &options, &result);
    assert_true(fabs(result.losses[0] - losses[0]) > 1e-4); /* three steps made a difference */
    sc_run_result_free(&result);
    remove(file);
    (void)descriptor;
}

static void test_check(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_check_result result;
    load("host_tiny-llama_4ranks_tp2_dp2_domino2_zero1", &plan);
    sc_run_options_neutral(&options);
    options.steps = 3;
    assert_int_equal(sc_check(&plan, &options, &result, &err), SC_OK);
    assert_true(result.root && result.equal);
    assert_true(result.gradient > 0); /* sums in another order: not the same bits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_rank_is_named),
        cmocka_unit_test(test_failing_data_ends_the_run),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_save_and_start_from_a_file),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
