/* The public interface alone (no other header of ours): two plans in one process, on two threads.
 */
/* ctest: labels=threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stepcast.h"

#define TRACES STEPCAST_SOURCE_DIR "/tests/cli/traces/"

static void a_status_has_a_sentence_and_an_exit_code(void **state)
{
    (void)state;
    assert_string_equal(stepcast_version(), STEPCAST_VERSION);
    assert_string_equal(stepcast_status_text(STEPCAST_BAD_INPUT), "bad input");
    assert_int_equal(stepcast_exit_code(STEPCAST_OK), 0);
    assert_int_equal(stepcast_exit_code(STEPCAST_NO), 1);
    assert_int_equal(stepcast_exit_code(STEPCAST_USAGE), 2);
    assert_int_equal(stepcast_exit_code(STEPCAST_BAD_INPUT), 3);
    assert_int_equal(stepcast_exit_code(STEPCAST_BUG), 4);
}

static void a_failure_is_one_line_and_no_handle(void **state)
{
    (void)state;
    struct stepcast_error error;
    struct stepcast_plan *plan = NULL;
    const char *const set[] = {"zero.stage=7"};
    assert_int_equal(stepcast_plan_load("host_tiny-gpt_1rank", "dgx-h100", set, 1, &plan, &error),
                     STEPCAST_BAD_INPUT);
    assert_null(plan);
    assert_int_equal(error.status, STEPCAST_BAD_INPUT);
    assert_non_null(strstr(error.text, "zero.stage: found"));
    assert_null(strchr(error.text, '\n'));
    stepcast_plan_destroy(&plan); /* NULL is accepted */
    stepcast_plan_destroy(NULL);
}

static void set_reaches_the_plan(void **state)
{
    (void)state;
    struct stepcast_error error;
    struct stepcast_plan *plan = NULL;
    char *json = NULL;
    const char *const set[] = {"batch.global_batch=8", "hw.device.memory_bandwidth_gb_per_s=1000"};
    assert_int_equal(
        stepcast_plan_load("host_tiny-gpt_2ranks_tp2", "dgx-h100", set, 2, &plan, &error),
        STEPCAST_OK);
    assert_int_equal(stepcast_plan_ranks(plan), 2);
    assert_int_equal(stepcast_plan_json(plan, &json, &error), STEPCAST_OK);
    assert_non_null(strstr(json, "\"global_batch\": 8"));
    stepcast_free(json);
    stepcast_plan_destroy(&plan);
    assert_null(plan);
}

/* Arguments left out and places past the end are wrong usage, not a crash. */
static void wrong_arguments_are_told(void **state)
{
    (void)state;
    struct stepcast_error error;
    struct stepcast_plan *plan = NULL;
    struct stepcast_search *found = NULL;
    struct stepcast_search_options options = {
        .hardware = "dgx-h100", .devices = 1, .global_batch = 1};
    char *json = NULL;
    assert_int_equal(stepcast_plan_load(NULL, NULL, NULL, 0, &plan, &error), STEPCAST_USAGE);
    assert_int_equal(stepcast_search(&options, &found, &error), STEPCAST_USAGE);
    assert_string_equal(error.text, "model: found none, expected a name or a file");
    options.model = "tiny-gpt";
    assert_int_equal(stepcast_search(&options, &found, &error), STEPCAST_OK);
    size_t count = stepcast_search_count(found);
    assert_true(count > 0 && stepcast_search_step_time(found, count - 1) > 0);
    assert_true(isnan(stepcast_search_step_time(found, count)));
    assert_int_equal(stepcast_search_plan_json(found, count, &json, &error), STEPCAST_USAGE);
    assert_null(json);
    stepcast_search_destroy(&found);
}

static struct stepcast_trace *read_trace(const char *file)
{
    struct stepcast_error error;
    struct stepcast_trace *trace = NULL;
    assert_int_equal(stepcast_trace_read(file, &trace, &error), STEPCAST_OK);
    return trace;
}

/* Parts add up to the step; without its longest kind of work the step is shorter. */
static void a_step_is_explained(void **state)
{
    (void)state;
    struct stepcast_error error;
    struct stepcast_plan *plan = NULL;
    struct stepcast_explanation *explanation = NULL;
    char *json = NULL;
    double sum = 0;
    assert_int_equal(
        stepcast_plan_load("host_tiny-gpt_2ranks_tp2", "dgx-h100", NULL, 0, &plan, &error),
        STEPCAST_OK);
    assert_int_equal(stepcast_explain(plan, &explanation, &error), STEPCAST_OK);
    size_t parts = stepcast_explanation_parts(explanation);
    for (size_t i = 0; i < parts; i++) {
        sum += stepcast_explanation_part_seconds(explanation, i);
    }
    double step = stepcast_explanation_step_time(explanation);
    assert_true(parts > 0 && fabs(sum / step - 1) < 1e-8);
    assert_null(stepcast_explanation_part_name(explanation, parts));
    assert_true(isnan(stepcast_explanation_part_seconds(explanation, parts)));
    assert_true(stepcast_explanation_step_time_if_free(
                    explanation, stepcast_explanation_part_name(explanation, 0)) < step);
    assert_true(isnan(stepcast_explanation_step_time_if_free(explanation, "tape")));
    assert_non_null(strstr(stepcast_explanation_sentence(explanation), "of the step"));
    assert_int_equal(stepcast_explanation_json(explanation, &json, &error), STEPCAST_OK);
    assert_non_null(strstr(json, "\"critical_path\""));
    stepcast_free(json);
    stepcast_explanation_destroy(&explanation);
    stepcast_explanation_destroy(&explanation);
    stepcast_plan_destroy(&plan);
}

/* The traces of tests/cli/traces: 1590 us forecast, 1727.2 us measured: -7.94 %. */
static void traces_compare(void **state)
{
    (void)state;
    struct stepcast_error error;
    struct stepcast_comparison *comparison = NULL;
    struct stepcast_trace *predicted = read_trace(TRACES "predicted.json");
    struct stepcast_trace *measured = read_trace(TRACES "measured.json");
    assert_int_equal(stepcast_trace_operations(predicted), 34);
    const struct stepcast_trace *const left[] = {predicted}, *const right[] = {measured};
    assert_int_equal(stepcast_compare(left, right, 1, &comparison, &error), STEPCAST_OK);
    double expected = 1590 / 1727.2 - 1;
    assert_true(fabs(stepcast_comparison_error(comparison, 0) - expected) < 1e-12);
    assert_true(isnan(stepcast_comparison_error(comparison, 1)));
    assert_true(fabs(stepcast_comparison_max_abs_error(comparison) + expected) < 1e-12);
    stepcast_comparison_destroy(&comparison);
    stepcast_trace_destroy(&predicted);
    stepcast_trace_destroy(&measured);
}

/* Forecast and run are two readings of one step program: the same operations, rank by rank. */
static void forecast_and_run_have_the_same_rows(void **state)
{
    (void)state;
    struct stepcast_error error;
    struct stepcast_plan *plan = NULL;
    struct stepcast_forecast *forecast = NULL;
    struct stepcast_run *run = NULL;
    struct stepcast_comparison *comparison = NULL;
    struct stepcast_run_options options;
    char *json = NULL;
    size_t losses = 0;
    const char *const set[] = {"batch.sequence_length=16"};
    assert_int_equal(
        stepcast_plan_load("host_tiny-gpt_2ranks_tp2_domino2", NULL, set, 1, &plan, &error),
        STEPCAST_OK);
    assert_int_equal(stepcast_simulate(plan, &forecast, &error), STEPCAST_OK);
    stepcast_run_options_neutral(&options);
    options.steps = 2;
    options.warmup = 1;
    options.trace = true;
    assert_int_equal(stepcast_run(plan, &options, &run, &error), STEPCAST_OK);
    stepcast_plan_destroy(&plan); /* results stand on their own */

    const struct stepcast_trace *predicted = stepcast_forecast_trace(forecast);
    const struct stepcast_trace *measured = stepcast_run_trace(run);
    assert_true(stepcast_trace_operations(predicted) > 100);
    assert_int_equal(stepcast_trace_operations(predicted), stepcast_trace_operations(measured));
    assert_int_equal(stepcast_compare(&predicted, &measured, 1, &comparison, &error), STEPCAST_OK);
    assert_int_equal(stepcast_comparison_json(comparison, &json, &error), STEPCAST_OK);
    assert_non_null(strstr(json, "\"joined\": true"));
    assert_non_null(strstr(json, "\"notes\": [")); /* empty, unless this machine was busy */
    assert_non_null(stepcast_run_losses(run, &losses));
    assert_int_equal(losses, 3);
    stepcast_free(json);
    stepcast_comparison_destroy(&comparison);
    stepcast_run_destroy(&run);
    stepcast_forecast_destroy(&forecast);
}

struct job {
    const char *plan;
    double step_time;
    struct stepcast_error error;
    enum stepcast_status status;
};

static enum stepcast_status forecast(struct job *job)
{
    struct stepcast_plan *plan = NULL;
    struct stepcast_forecast *result = NULL;
    enum stepcast_status status =
        stepcast_plan_load(job->plan, "dgx-h100", NULL, 0, &plan, &job->error);
    if (status == STEPCAST_OK) {
        status = stepcast_simulate(plan, &result, &job->error);
    }
    if (status == STEPCAST_OK) {
        job->step_time = stepcast_forecast_step_time(result);
        double low, high;
        stepcast_forecast_interval(result, &low, &high);
        if (!(low < job->step_time && job->step_time < high)) {
            status = STEPCAST_BUG;
        }
        const struct stepcast_trace *trace = stepcast_forecast_trace(result);
        if (fabs(stepcast_trace_step_time(trace) - job->step_time) > 1e-9 * job->step_time) {
            status = STEPCAST_BUG;
        }
    }
    stepcast_forecast_destroy(&result);
    stepcast_plan_destroy(&plan);
    return status;
}

static void *work(void *job)
{
    ((struct job *)job)->status = forecast(job);
    return NULL;
}

/* Nothing is shared: each thread finds what it finds alone. */
static void two_plans_at_once(void **state)
{
    (void)state;
    struct job alone[2] = {{.plan = "gpt3-13b_1xdgx-h100_tp8_domino2"},
                           {.plan = "gpt3-13b_1xdgx-h100_tp8_megatron"}};
    struct job together[2] = {alone[0], alone[1]};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        work(&alone[i]);
        assert_int_equal(alone[i].status, STEPCAST_OK);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &together[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(together[i].status, STEPCAST_OK);
        assert_true(together[i].step_time > 0);
        assert_true(together[i].step_time == alone[i].step_time);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_has_a_sentence_and_an_exit_code),
        cmocka_unit_test(a_failure_is_one_line_and_no_handle),
        cmocka_unit_test(set_reaches_the_plan),
        cmocka_unit_test(wrong_arguments_are_told),
        cmocka_unit_test(a_step_is_explained),
        cmocka_unit_test(traces_compare),
        cmocka_unit_test(forecast_and_run_have_the_same_rows),
        cmocka_unit_test(two_plans_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
