/* Prices of what calibration finds on cores, by hand: copies into blocks, transposed operands,
 * queries of attention, a cache, variants of kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/cost_compute.h"
#include "plans/op_cost_name.h"

static void near_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

/* two-cores with a peak of 0.1 TFLOP/s a core at a share of 0.8, no fixed time, 10 GB/s a core. */
static struct sc_hardware load(const char *more, const char *value)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware;
    char last[128];
    snprintf(last, sizeof(last), "hw.%s=%s", more, value);
    const char *const set[] = {"hw.device.peak_tflop_per_s.fp32=0.1",
                               "hw.compute.gemm.peak_share.fp32=0.8",
                               "hw.compute.gemm.fixed_us=0",
                               "hw.compute.memory_bound.bandwidth_share=1",
                               "hw.compute.memory_bound.fixed_us=0",
                               "hw.device.core_memory_bandwidth_gb_per_s=10",
                               last};
    if (sc_hardware_load("two-cores", NULL, set, 7, &hardware, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return hardware;
}

static double gemm_seconds(const struct sc_hardware *hardware, bool transpose_b)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    const struct sc_gemm_work work = {.batch = 1,
                                      .m = 100,
                                      .n = 200,
                                      .k = 400,
                                      .input = SC_FP32,
                                      .output = SC_FP32,
                                      .transpose_b = transpose_b};
    assert_int_equal(sc_cost_gemm(hardware, &work, &cost, &err), SC_OK);
    return sc_cost_seconds(&cost);
}

/* 2 x 100 x 200 x 400 = 16e6 FLOP at 80 GFLOP/s: 200 us. Bytes: (100 400 + 400 200 + 100 200) x 4 =
 * 560000; at 5 FLOP each 2.8e6 more: 235 us. Transposed at 0.5 of the rate: 400 us. */
static void copies_and_transposed_operands(void **state)
{
    (void)state;
    struct sc_hardware plain = load("compute.gemm.flop_per_byte", "0");
    struct sc_hardware copies = load("compute.gemm.flop_per_byte", "5");
    struct sc_hardware turned = load("compute.gemm.transposed_b_share", "0.5");
    near_to(gemm_seconds(&plain, false), 200e-6);
    near_to(gemm_seconds(&plain, true), 200e-6);
    near_to(gemm_seconds(&copies, false), 235e-6);
    near_to(gemm_seconds(&turned, false), 200e-6);
    near_to(gemm_seconds(&turned, true), 400e-6);
}

/* One rank with both cores: 200 us / 1.9 and 7 us for sharing out; a core a rank shares nothing. */
static void teams(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware = load("compute.gemm.team_us", "7");
    near_to(gemm_seconds(&hardware, false), 200e-6);
    assert_int_equal(sc_hardware_divide(&hardware, 1, &err), SC_OK);
    near_to(gemm_seconds(&hardware, false), 200e-6 / 1.9 + 7e-6);
}

/* 2 sequences of 100 queries, 3 heads of 50, causal: forward 4 x 2 x 3 x (100^2 / 2) x 50 = 6e6
 * FLOP at 0.1 TFLOP/s x 0.4 (two-cores): 150 us. 600 queries of a head at 100 ns: 60 us more. With
 * both cores for one rank everything is 2 x 0.95 times as fast. */
static void queries_of_attention(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware = load("compute.attention.forward_ns_per_query", "100");
    struct sc_cost cost;
    const struct sc_attention_work work = {.batch = 2,
                                           .query_heads = 3,
                                           .key_value_heads = 3,
                                           .head_size = 50,
                                           .query_length = 100,
                                           .key_length = 100,
                                           .causal = true,
                                           .dtype = SC_FP32};
    hardware.compute.attention_fixed_s = 0.0;
    assert_int_equal(sc_cost_attention(&hardware, &work, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 210e-6);
    assert_int_equal(sc_hardware_divide(&hardware, 1, &err), SC_OK);
    assert_int_equal(sc_cost_attention(&hardware, &work, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 210e-6 / 1.9);
}

/* "activation" has 0.32 ns an element in two-cores. A million elements, 8 MB: arithmetic 320 us,
 * memory 800 us at 10 GB/s. With 6 MB of cache 2 MB are left: 200 us, so arithmetic bounds it. A
 * kind whose arithmetic is not known ("scale") has all its bytes from memory, cache or not. */
static void a_cache_takes_memory_traffic(void **state)
{
    (void)state;
    struct sc_hardware without = load("compute.memory_bound.cache_bytes", "0");
    struct sc_hardware with = load("compute.memory_bound.cache_bytes", "6e6");
    struct sc_cost cost;
    sc_cost_memory_bound(&without, "activation", 8e6, 1e6, &cost);
    near_to(sc_cost_seconds(&cost), 800e-6);
    sc_cost_memory_bound(&with, "activation", 8e6, 1e6, &cost);
    near_to(sc_cost_seconds(&cost), 320e-6);
    near_to(cost.use[SC_COST_MEMORY].amount, 2e6);
    sc_cost_memory_bound(&with, "scale", 8e6, 1e6, &cost);
    near_to(sc_cost_seconds(&cost), 800e-6);
}

static void variants_have_names(void **state)
{
    (void)state;
    struct sc_op op = {.kind = SC_ACTIVATION_FORWARD};
    op.p.activation.kind = SC_GELU_TANH;
    assert_string_equal(sc_op_cost_name(&op), "activation");
    op.p.activation.kind = SC_SWIGLU;
    assert_string_equal(sc_op_cost_name(&op), "activation_swiglu");
    op.kind = SC_ACTIVATION_BACKWARD;
    assert_string_equal(sc_op_cost_name(&op), "activation_backward_swiglu");
    op = (struct sc_op){.kind = SC_DROPOUT};
    assert_string_equal(sc_op_cost_name(&op), "dropout");
    op.p.dropout.probability = 0.1f;
    assert_string_equal(sc_op_cost_name(&op), "dropout_drawn");
    op = (struct sc_op){.kind = SC_NORM_BACKWARD};
    op.p.norm.kind = SC_RMS_NORM;
    assert_string_equal(sc_op_cost_name(&op), "norm_backward_rms");
    for (int kind = 0; kind < SC_OP_KIND_COUNT; kind++) {
        op = (struct sc_op){.kind = (uint8_t)kind};
        assert_string_equal(sc_op_cost_name(&op), sc_op_kind_name((enum sc_op_kind)kind));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_transposed_operands),
        cmocka_unit_test(teams),
        cmocka_unit_test(queries_of_attention),
        cmocka_unit_test(a_cache_takes_memory_traffic),
        cmocka_unit_test(variants_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
