/* Forecasts of shipped plans: what must add up, whatever numbers the profile has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/simulate.h"
#include "tests/support/near.h"

static void load(const char *name, struct sc_plan *plan, struct sc_hardware *hardware)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_plan_load(name, NULL, 0, plan, &err) != SC_OK ||
        sc_hardware_load(plan->hardware.profile, name, NULL, 0, hardware, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static void forecast(const struct sc_plan *plan, const struct sc_hardware *hardware, bool trace,
                     struct sc_sim_result *result)
{
    const struct sc_sim_options options = {.verify = trace, .trace = trace};
    struct sc_error err = SC_ERROR_INIT;
    if (sc_simulate(plan, hardware, &options, result, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static double part(const struct sc_sim_result *result, const char *name)
{
    for (size_t i = 0; i < result->breakdown.count; i++)
        if (strcmp(result->breakdown.items[i].name, name) == 0)
            return result->breakdown.items[i].seconds;
    return 0;
}

/* 13B, one micro-batch of 16 x 1024 tokens (T = 16,384), h = 5120, 40 layers, padded vocabulary
 * 51,200. Model FLOPs: products 3 x (24 T h^2) a layer, attention 3 x (2 T s h) a layer (the causal
 * half of 4 T s h), head 3 x (2 T h V). */
static void totals_of_13b(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_hardware hw;
    struct sc_sim_result r;
    load("gpt3-13b_1xdgx-h100_tp8_domino2", &plan, &hw);
    forecast(&plan, &hw, true, &r);
    const double t = 16384, h = 5120, s = 1024, vocabulary = 51200;
    double flops = 3 * (40 * (24 * t * h * h + 2 * t * s * h) + 2 * t * h * vocabulary);
    double peak = hw.device.peak[SC_PEAK_BF16];
    assert_near(r.mfu * peak * 8 * r.step_time_s / flops, 1, 1e-9);
    assert_true(r.hfu > r.mfu); /* a fused attention's backward computes scores again */
    assert_near(r.tokens_per_s * r.step_time_s, t, 1e-6);
    double sum = 0;
    for (size_t i = 0; i < r.breakdown.count; i++)
        sum += r.breakdown.items[i].seconds;
    assert_near(sum / r.step_time_s, 1, 1e-6);
    assert_true(part(&r, "compute") > part(&r, "exposed_tensor"));
    assert_true(r.bound_s <= r.step_time_s);
    assert_true(r.settled);
    /* context + workspace + one communicator */
    double reserved = hw.reserved.context + hw.reserved.workspace + hw.reserved.per_communicator;
    assert_near((double)(r.memory[SC_DEVICE].used_bytes - r.memory[SC_DEVICE].arena_bytes),
                reserved, 1);
    assert_int_equal(r.trace.rows.count, r.operations);
    assert_near(r.trace.period_us, r.step_time_s * 1e6, 1e-6);
    assert_string_equal(r.trace.hardware, "dgx-h100");
    sc_sim_result_free(&r);
}

static double step_time(const char *name)
{
    struct sc_plan plan;
    struct sc_hardware hw;
    struct sc_sim_result r;
    load(name, &plan, &hw);
    forecast(&plan, &hw, false, &r);
    double time = r.step_time_s;
    sc_sim_result_free(&r);
    return time;
}

/* Hiding all-reduces behind the other half-batch beats hiding the backward ones behind weight
 * gradients, which beats hiding none. */
static void domino_hides_more(void **state)
{
    (void)state;
    double domino = step_time("gpt3-13b_1xdgx-h100_tp8_domino2");
    double megatron = step_time("gpt3-13b_1xdgx-h100_tp8_megatron");
    double synchronous = step_time("gpt3-13b_1xdgx-h100_tp8_megatron-sync");
    assert_true(domino < megatron);
    assert_true(megatron < synchronous);
}

/* The names that other programs rely on. */
static void json_names(void **state)
{
    (void)state;
    static const char *const numbers[] = {"step_time_s", "tokens_per_s", "mfu", "hfu"};
    struct sc_plan plan;
    struct sc_hardware hw;
    struct sc_sim_result r;
    load("host_tiny-gpt_2ranks_tp2", &plan, &hw);
    forecast(&plan, &hw, true, &r);
    cJSON *json = sc_sim_result_to_json(&r);
    assert_non_null(json);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(json, numbers[i])) > 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "schema")),
                        "stepcast.result/1");
    assert_true(cJSON_IsObject(cJSON_GetObjectItem(json, "breakdown_s")));
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(json, "warnings")));
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "exact")));
    const cJSON *memory = cJSON_GetObjectItem(json, "memory");
    const cJSON *device = cJSON_GetObjectItem(memory, "device");
    assert_near(cJSON_GetNumberValue(cJSON_GetObjectItem(device, "peak_bytes")),
                (double)r.memory[SC_DEVICE].arena_bytes, 0);
    assert_near(cJSON_GetNumberValue(cJSON_GetObjectItem(device, "used_bytes")),
                (double)r.memory[SC_DEVICE].used_bytes, 0);
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(memory, "host"), "peak_bytes"));
    cJSON_Delete(json);
    sc_sim_result_free(&r);
}

static bool warned(const struct sc_sim_result *r, const char *words)
{
    for (size_t i = 0; i < r->warnings.count; i++)
        if (strstr(r->warnings.items[i], words) != NULL)
            return true;
    return false;
}

static void warnings(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_hardware hw;
    struct sc_sim_result r;
    load("host_tiny-gpt_2ranks_tp2", &plan, &hw);
    forecast(&plan, &hw, false, &r);
    assert_int_equal(r.warnings.count, 0);
    sc_sim_result_free(&r);
    plan.zero.stage = 1;
    plan.hardware.nodes = 2;
    forecast(&plan, &hw, false, &r);
    assert_true(warned(&r, "zero.stage"));
    assert_true(warned(&r, "group tensor spans 2 nodes"));
    sc_sim_result_free(&r);
}

/* A device half as large: refused with place, needed and there, nothing leaked. */
static void does_not_fit(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_hardware hw;
    struct sc_sim_result r;
    struct sc_error err = SC_ERROR_INIT;
    load("gpt3-13b_1xdgx-h100_tp8_domino2", &plan, &hw);
    hw.places[SC_HW_DEVICE].capacity_bytes /= 2;
    assert_int_equal(sc_simulate(&plan, &hw, NULL, &r, &err), SC_NO);
    assert_non_null(strstr(err.text, "device"));
    hw.places[SC_HW_DEVICE].capacity_bytes = 1e6;
    assert_int_equal(sc_simulate(&plan, &hw, NULL, &r, &err), SC_NO);
    assert_non_null(strstr(err.text, "context"));
    plan.mesh.size[SC_DATA] = 2;
    assert_int_equal(sc_simulate(&plan, &hw, NULL, &r, &err), SC_NO);
    assert_non_null(strstr(err.text, "16 ranks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_13b), cmocka_unit_test(domino_hides_more),
        cmocka_unit_test(json_names),    cmocka_unit_test(warnings),
        cmocka_unit_test(does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
