/* Explanations of shipped plans: what must add up, whatever numbers the profile has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reports/explain.h"
#include "sim/simulate.h"
#include "tests/support/near.h"

static void load(const char *name, struct sc_plan *plan, struct sc_hardware *hardware)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_plan_load(name, NULL, 0, plan, &err) != SC_OK ||
        sc_hardware_load(plan->hardware.profile, name, NULL, 0, hardware, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static void explain(const char *name, struct sc_explanation *out)
{
    struct sc_plan plan;
    struct sc_hardware hardware;
    struct sc_error err = SC_ERROR_INIT;
    load(name, &plan, &hardware);
    if (sc_explain(&plan, &hardware, out, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static const struct sc_explained_what_if *if_free(const struct sc_explanation *e, const char *name)
{
    for (size_t i = 0; i < e->free.count; i++)
        if (strcmp(e->free.items[i].name, name) == 0)
            return &e->free.items[i];
    fail_msg("nothing is called %s", name);
    return NULL;
}

static double part(const struct sc_explanation *e, const char *name)
{
    for (size_t i = 0; i < e->parts.count; i++)
        if (strcmp(e->parts.items[i].name, name) == 0)
            return e->parts.items[i].seconds;
    return 0;
}

static const char *const plans[] = {
    "gpt3-13b_1xdgx-h100_tp8_megatron-sync", "gpt3-13b_4xdgx-h100_tp32_domino2-intra",
    "gpt3-175b_64xdgx-h100_tp16_dp32_zero1", "host_tiny-gpt_2ranks_dp2_zero1_accumulate2",
    "host_tiny-llama_4ranks_tp2_dp2_domino2_zero1"};

/* Parts and lines of operations each add up to the step (operations: less issue and waits, of which
 * these plans have none on their paths); both are sorted; so are gains. */
static void everything_adds_up(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof(plans) / sizeof(plans[0]); p++) {
        struct sc_explanation e;
        explain(plans[p], &e);
        double parts = 0, operations = 0;
        for (size_t i = 0; i < e.parts.count; i++) {
            parts += e.parts.items[i].seconds;
            assert_true(e.parts.items[i].slowed_s <= e.parts.items[i].seconds * (1 + 1e-9));
            assert_true(i == 0 || e.parts.items[i].seconds <= e.parts.items[i - 1].seconds);
        }
        for (size_t i = 0; i < e.operations.count; i++) {
            operations += e.operations.items[i].seconds;
            assert_true(e.operations.items[i].count > 0);
            assert_true(i == 0 ||
                        e.operations.items[i].seconds <= e.operations.items[i - 1].seconds);
        }
        assert_near(parts / e.step_time_s, 1, 1e-8);
        assert_near((operations + part(&e, "issue")) / e.step_time_s, 1, 1e-8);
        for (size_t i = 0; i < e.free.count; i++) {
            const struct sc_explained_what_if *what = &e.free.items[i];
            assert_near((what->step_time_s + what->gain_s) / e.step_time_s, 1, 1e-8);
            assert_true(i == 0 || what->gain_s <= e.free.items[i - 1].gain_s);
        }
        sc_explanation_free(&e);
    }
}

/* Without any overlap (every all-reduce is waited for at once, nothing shares) a kind of work is
 * worth what it takes on the path. */
static void without_overlap_a_gain_is_the_part(void **state)
{
    (void)state;
    struct sc_explanation e;
    explain("gpt3-13b_1xdgx-h100_tp8_megatron-sync", &e);
    const char *const names[] = {"gemm", "attention", "norm", "all_reduce of tensor"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(part(&e, names[i]) > 0);
        assert_near(if_free(&e, names[i])->gain_s / part(&e, names[i]), 1, 1e-6);
        assert_false(if_free(&e, names[i])->resource);
    }
    assert_true(if_free(&e, "nvlink")->resource);
    assert_near(if_free(&e, "nvlink")->gain_s / part(&e, "all_reduce of tensor"), 1, 1e-6);
    sc_explanation_free(&e);
}

/* A tenth faster: what a resource takes alone shrinks to 1/1.1, so that where nothing overlaps and
 * a kind of work is bound by it alone, the gain is the work / 11. All-reduces have latency as well:
 * less. */
static void a_tenth_faster(void **state)
{
    (void)state;
    struct sc_explanation e;
    explain("gpt3-13b_1xdgx-h100_tp8_megatron-sync", &e);
    double reduce = part(&e, "all_reduce of tensor"), gain = -1;
    for (size_t i = 0; i < e.faster.count; i++) {
        assert_true(e.faster.items[i].resource);
        assert_true(e.faster.items[i].gain_s >= 0);
        if (strcmp(e.faster.items[i].name, "nvlink") == 0)
            gain = e.faster.items[i].gain_s;
    }
    assert_true(gain > 0.8 * reduce / 11 && gain < reduce / 11);
    sc_explanation_free(&e);
}

/* The sentence names what gains most, its part of the path and the step without it. */
static void the_sentence(void **state)
{
    (void)state;
    struct sc_explanation e;
    explain("gpt3-13b_4xdgx-h100_tp32_megatron", &e);
    const struct sc_explained_what_if *what = if_free(&e, "all_reduce of tensor");
    char begin[64], factor[32];
    snprintf(begin, sizeof(begin), "%.0f %% of the step waits for all_reduce of tensor; ",
             100 * part(&e, "all_reduce of tensor") / e.step_time_s);
    snprintf(factor, sizeof(factor), "(%.2fx).", e.step_time_s / what->step_time_s);
    assert_memory_equal(e.sentence, begin, strlen(begin));
    assert_non_null(strstr(e.sentence, factor));
    assert_null(e.worst_wait); /* the sentence is about it */
    sc_explanation_free(&e);
    explain("gpt3-13b_1xdgx-h100_tp8_megatron-sync", &e);
    assert_non_null(strstr(e.sentence, "% of the step is gemm; if it were free"));
    assert_non_null(strstr(e.worst_wait, "waits for all_reduce of tensor"));
    sc_explanation_free(&e);
}

/* 40 layers of one all-reduce each are one line; the peak's buffers by use. */
static void layers_are_one_line(void **state)
{
    (void)state;
    struct sc_explanation e;
    explain("gpt3-13b_1xdgx-h100_tp8_megatron-sync", &e);
    bool found = false;
    for (size_t i = 0; i < e.operations.count; i++)
        if (strcmp(e.operations.items[i].label, "layer * / mlp.down / forward") == 0 &&
            strcmp(e.operations.items[i].kind, "all_reduce") == 0) {
            found = true;
            assert_near(e.operations.items[i].count, 40, 1e-6);
        }
    assert_true(found);
    assert_true(e.places.count > 0);
    assert_string_equal(e.places.items[0].place, "device");
    double bytes = 0;
    for (size_t i = 0; i < e.places.items[0].buffers.count; i++) {
        const struct sc_explained_buffers *buffers = &e.places.items[0].buffers.items[i];
        bytes += buffers->bytes;
        if (strcmp(buffers->name, "optimizer.m") == 0)
            assert_string_equal(buffers->use, "optimizer");
        if (strcmp(buffers->name, "mlp.residual") == 0)
            assert_string_equal(buffers->use, "activations");
    }
    assert_near(bytes / e.places.items[0].bytes, 1, 1e-12);
    sc_explanation_free(&e);
}

/* The step time is the forecast's. */
static void the_step_time_is_the_forecasts(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_hardware hardware;
    struct sc_sim_result r;
    struct sc_explanation e;
    struct sc_error err = SC_ERROR_INIT;
    load("gpt3-175b_64xdgx-h100_tp16_dp32_zero1", &plan, &hardware);
    assert_int_equal(sc_simulate(&plan, &hardware, NULL, &r, &err), SC_OK);
    assert_int_equal(sc_explain(&plan, &hardware, &e, &err), SC_OK);
    assert_true(r.step_time_s >= e.step_time_s && r.step_time_s <= e.step_time_s);
    sc_explanation_free(&e);
    sc_sim_result_free(&r);
}

/* What does not fit is no explanation. */
static void what_does_not_fit(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_hardware hardware;
    struct sc_explanation e;
    struct sc_error err = SC_ERROR_INIT;
    load("gpt3-13b_1xdgx-h100_tp8_domino2", &plan, &hardware);
    hardware.places[SC_HW_DEVICE].capacity_bytes = 1e9;
    assert_int_equal(sc_explain(&plan, &hardware, &e, &err), SC_NO);
    assert_non_null(strstr(err.text, "device"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_adds_up),  cmocka_unit_test(without_overlap_a_gain_is_the_part),
        cmocka_unit_test(a_tenth_faster),      cmocka_unit_test(the_sentence),
        cmocka_unit_test(layers_are_one_line), cmocka_unit_test(the_step_time_is_the_forecasts),
        cmocka_unit_test(what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
