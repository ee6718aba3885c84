/* Prices of what calibration finds on cores, by hand: copies into blocks, transposed operands, how
 * cores divide a product, queries of attention, caches, memory that ranks share, variants of kinds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/cost_compute.h"
#include "model/cost_cores.h"
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

static double gemm_seconds(const struct sc_hardware *hardware, bool transpose_a, bool transpose_b)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    const struct sc_gemm_work work = {.batch = 1,
                                      .m = 100,
                                      .n = 200,
                                      .k = 400,
                                      .input = SC_FP32,
                                      .output = SC_FP32,
                                      .transpose_a = transpose_a,
                                      .transpose_b = transpose_b,
                                      .page_stride = transpose_a};
    assert_int_equal(sc_cost_gemm(hardware, &work, &cost, &err), SC_OK);
    return sc_cost_seconds(&cost);
}

/* 2 x 100 x 200 x 400 = 16e6 FLOP at 80 GFLOP/s: 200 us. Operands: 100 400 + 400 200 = 120000
 * elements; at 0.5 ns each 60 us more. B alone has 80000: at 1 ns 80 us. At 0.5 of the rate: 400
 * us.
 */
static void copies_and_transposed_operands(void **state)
{
    (void)state;
    struct sc_hardware plain = load("compute.cores.gemm_operand_ns_per_element", "0");
    struct sc_hardware copies = load("compute.cores.gemm_operand_ns_per_element", "0.5");
    struct sc_hardware copies_b = load("compute.cores.gemm_transposed_b_ns_per_element", "1");
    struct sc_hardware slow_a = load("compute.cores.gemm_transposed_a_share", "0.5");
    struct sc_hardware slow_b = load("compute.cores.gemm_transposed_b_share", "0.5");
    struct sc_hardware pages = load("compute.cores.gemm_page_stride_share", "0.8");
    near_to(gemm_seconds(&plain, false, false), 200e-6);
    near_to(gemm_seconds(&plain, true, true), 200e-6);
    near_to(gemm_seconds(&copies, false, false), 260e-6);
    near_to(gemm_seconds(&copies_b, false, false), 200e-6);
    near_to(gemm_seconds(&copies_b, false, true), 280e-6);
    near_to(gemm_seconds(&slow_b, true, false), 200e-6);
    near_to(gemm_seconds(&slow_b, false, true), 400e-6);
    near_to(gemm_seconds(&slow_a, true, false), 400e-6);
    near_to(gemm_seconds(&pages, true, false), 250e-6);
}

/* One rank with both cores: 200 us / 1.9 and 7 us for sharing out; a core a rank shares nothing. Of
 * 100 x 200 two columns of parts are cheaper to copy (2 100 + 200 against 100 + 2 200), so each
 * core copies A and half of B, 40000 + 40000 elements: 40 us at 0.5 ns beside its 100 us. */
static void teams(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware = load("compute.cores.gemm_team_us", "7");
    near_to(gemm_seconds(&hardware, false, false), 200e-6);
    assert_int_equal(sc_hardware_divide(&hardware, 1, &err), SC_OK);
    near_to(gemm_seconds(&hardware, false, false), 200e-6 / 1.9 + 7e-6);
    hardware = load("compute.cores.gemm_operand_ns_per_element", "0.5");
    assert_int_equal(sc_hardware_divide(&hardware, 1, &err), SC_OK);
    near_to(gemm_seconds(&hardware, false, false), (100e-6 + 40e-6) / 0.95);
}

/* Rows and columns of parts: the least of m columns + n rows, unless a part gets below 48. */
static void cores_divide_a_product(void **state)
{
    (void)state;
    int rows = 0, columns = 0;
    sc_product_grid(1000, 200, 2, &rows, &columns);
    assert_true(rows == 2 && columns == 1);
    sc_product_grid(200, 1000, 2, &rows, &columns);
    assert_true(rows == 1 && columns == 2);
    sc_product_grid(1000, 1000, 4, &rows, &columns);
    assert_true(rows == 2 && columns == 2);
    sc_product_grid(40, 20, 2, &rows, &columns); /* too small either way: the cheaper one */
    assert_true(rows == 2 && columns == 1);
    sc_product_grid(96, 95, 2, &rows, &columns); /* 95 columns are no two parts of 48 */
    assert_true(rows == 2 && columns == 1);
}

/* 2 sequences of 100 queries, 3 heads of 50, causal: forward 4 x 2 x 3 x (100^2 / 2) x 50 = 6e6
 * FLOP at 0.1 TFLOP/s x 0.4 (two-cores): 150 us. 600 queries of a head at 100 ns: 60 us more. With
 * both cores for one rank everything is 2 x 0.95 times as fast. */
static void queries_of_attention(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware = load("compute.cores.attention_forward_ns_per_query", "100");
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
    hardware = load("compute.cores.attention_forward_ns_per_element", "2"); /* 600 x 50 x 2 ns */
    hardware.compute.attention_fixed_s = 0.0;
    assert_int_equal(sc_cost_attention(&hardware, &work, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 210e-6);
}

static struct sc_cost activation_cost(const struct sc_hardware *hardware)
{
    struct sc_cost cost;
    sc_cost_memory_bound(hardware, "activation", 8e6, 1e6, &cost);
    return cost;
}

static double memory_seconds(const struct sc_cost *cost)
{
    return cost->use[SC_COST_MEMORY].amount / cost->use[SC_COST_MEMORY].rate;
}

/* "activation" has 0.32 ns an element in two-cores. A million elements, 8 MB: arithmetic 320 us.
 * Both ranks together get 20 GB/s, so each 10, which a core draws alone as well: 800 us for all
 * bytes, 200 us for those beyond 6 MB of cache. The core works or waits: the times add up. */
static void a_cache_takes_memory_traffic(void **state)
{
    (void)state;
    struct sc_hardware without = load("compute.memory_bound.kinds.activation.cache_bytes", "0");
    struct sc_hardware with = load("compute.memory_bound.kinds.activation.cache_bytes", "6e6");
    struct sc_hardware all = load("compute.memory_bound.kinds.activation.cache_bytes", "8e6");
    struct sc_cost cost = activation_cost(&without);
    near_to(sc_cost_seconds(&cost), 1120e-6);
    near_to(memory_seconds(&cost), 1120e-6);
    assert_string_equal(cost.bound, "memory");
    cost = activation_cost(&with);
    near_to(sc_cost_seconds(&cost), 520e-6);
    near_to(cost.use[SC_COST_MEMORY].amount, 2e6);
    assert_string_equal(cost.bound, "compute");
    cost = activation_cost(&all);
    near_to(sc_cost_seconds(&cost), 320e-6);
    assert_true(cost.use[SC_COST_MEMORY].amount <= 0.0);
}

/* A core alone draws 16 GB/s of the 20: with the memory to itself a rank takes 320 + 800 10 / 16 =
 * 820 us. It asks for the memory for 1120 / 1.6 = 700 us of them: two ranks at once ask for 700 /
 * 820 x 16 x 2 = 27.3 GB/s of 20, so both slow down to 820 x 27.3 / 20 = 1120 us, as was measured.
 */
static void ranks_share_their_memory(void **state)
{
    (void)state;
    struct sc_hardware hardware = load("device.core_memory_bandwidth_gb_per_s", "16");
    struct sc_cost cost = activation_cost(&hardware);
    near_to(sc_cost_seconds(&cost), 820e-6);
    near_to(memory_seconds(&cost), 700e-6);
    near_to(820e-6 * (2.0 * hardware.device.memory_draw * 700.0 / 820.0) / 20e9, 1120e-6);
}

/* Both cores for one rank, of which together memory-bound work gets 0.8: 320 us / 1.6 of
 * arithmetic, 8 MB at 20 GB/s, 3 us for sharing out. */
static void both_cores_for_one_rank(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware = load("compute.cores.memory_bound_parallel_efficiency", "0.8");
    hardware.compute.cores.memory_bound_team_s = 3e-6;
    assert_int_equal(sc_hardware_divide(&hardware, 1, &err), SC_OK);
    struct sc_cost cost = activation_cost(&hardware);
    near_to(sc_cost_seconds(&cost), 200e-6 + 400e-6 + 3e-6);
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
        cmocka_unit_test(cores_divide_a_product),
        cmocka_unit_test(queries_of_attention),
        cmocka_unit_test(a_cache_takes_memory_traffic),
        cmocka_unit_test(ranks_share_their_memory),
        cmocka_unit_test(both_cores_for_one_rank),
        cmocka_unit_test(variants_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
