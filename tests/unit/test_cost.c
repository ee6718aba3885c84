/* Prices against arithmetic by hand and against published figures of the NCCL cost model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/cost_collective.h"
#include "model/cost_compute.h"
#include "model/cost_copy.h"

#define MIB 1048576.0

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

static struct sc_hardware load_set(const char *name, const char *set)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware;
    if (sc_hardware_load(name, NULL, &set, set != NULL ? 1 : 0, &hardware, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return hardware;
}

static struct sc_hardware load(const char *name)
{
    return load_set(name, NULL);
}

/* ---- products ---- */

static struct sc_cost price_gemm(const struct sc_hardware *h, struct sc_gemm_work work)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    if (sc_cost_gemm(h, &work, &cost, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return cost;
}

/* The four products of a GPT-3 13B layer at TP 8, 16,384 rows:
 *            m      k     n   GFLOP = 2 m k n   MB = 2 (m k + k n + m n)
 * QKV    16384   5120  1920       322.1              250.3
 * proj   16384    640  5120       107.4              195.3
 * FC1    16384   5120  2560       429.5              277.9
 * FC2    16384   2560  5120       429.5              277.9 */
static void layer_of_gpt3_13b(void **state)
{
    (void)state;
    static const struct {
        int64_t k, n;
        double gflop, megabytes;
    } rows[] = {{5120, 1920, 322.1, 250.3},
                {640, 5120, 107.4, 195.3},
                {5120, 2560, 429.5, 277.9},
                {2560, 5120, 429.5, 277.9}};
    double sum = 0.0;
    for (size_t i = 0; i < 4; i++) {
        struct sc_gemm_work work = {.batch = 1,
                                    .m = 16384,
                                    .n = rows[i].n,
                                    .k = rows[i].k,
                                    .input = SC_BF16,
                                    .output = SC_BF16};
        near_to(sc_gemm_flops(&work) / 1e9, rows[i].gflop, 5e-4);
        near_to(sc_gemm_bytes(&work) / 1e6, rows[i].megabytes, 5e-4);
        sum += sc_gemm_flops(&work);
    }
    near_to(sum / 1e12, 1.288, 5e-4);
}

/* 429.5 GFLOP without tiles, at 0.755 x 989 TFLOP/s: 4 us + 429,496,729,600 / 746.7e12 = 4 + 575.2
 * us. In tiles of 128 x 128: 128 x 20 = 2560 on 132 multiprocessors, 19.4 -> 20 waves of 2 x 128 x
 * 128 x (5120 + 340) FLOP at 746.7 / 132 TFLOP/s each: 632.5 us, 679 TFLOP/s. */
static void large_products_are_bound_by_compute(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_cost cost = price_gemm(
        &h, (struct sc_gemm_work){
                .batch = 1, .m = 16384, .n = 2560, .k = 5120, .input = SC_BF16, .output = SC_BF16});
    near_to(sc_cost_seconds(&cost), 4e-6 + 20.0 * 32768.0 * 5460.0 * 132.0 / 746.695e12, 1e-12);
    near_to(429496729600.0 / sc_cost_seconds(&cost) / 1e12, 675, 1e-3);
    assert_string_equal(cost.bound, "compute");
    assert_true(cost.link == -1 && cost.held_units == 0.0);
    struct sc_hardware plain = load_set("dgx-h100", "hw.compute.gemm.tiles=[]");
    cost = price_gemm(
        &plain,
        (struct sc_gemm_work){
            .batch = 1, .m = 16384, .n = 2560, .k = 5120, .input = SC_BF16, .output = SC_BF16});
    near_to(sc_cost_seconds(&cost), 4e-6 + 429496729600.0 / 746.695e12, 1e-12);
}

/* m = n = 4096, k = 8, fp32 output accumulated: 2 (2 x 4096 x 8) + 2 x 4 x 4096^2 bytes
 * = 131,072 + 134,217,728 at 0.85 x 3350 GB/s = 47.18 us + 4, against 8 waves of tiles: 16 us. */
static void thin_products_are_bound_by_memory(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_gemm_work work = {.batch = 1,
                                .m = 4096,
                                .n = 4096,
                                .k = 8,
                                .input = SC_BF16,
                                .output = SC_FP32,
                                .accumulate = true};
    struct sc_cost cost = price_gemm(&h, work);
    near_to(sc_cost_seconds(&cost), 4e-6 + 134348800.0 / (0.85 * 3350e9), 1e-12);
    assert_string_equal(cost.bound, "memory");
    work.epilogue_bytes = 1000.0;
    near_to(sc_gemm_bytes(&work), 134349800.0, 1e-15);
    work.m = work.n = 16; /* 16 x 16 x 8: nothing but the launch */
    work.epilogue_bytes = 0.0;
    assert_string_equal(price_gemm(&h, work).bound, "latency");
}

static void missing_rates_are_named(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    struct sc_hardware h = load("two-cores");
    struct sc_gemm_work work = {
        .batch = 1, .m = 8, .n = 8, .k = 8, .input = SC_BF16, .output = SC_BF16};
    assert_int_equal(sc_cost_gemm(&h, &work, &cost, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "compute.gemm.peak_share.bf16"));
    h.compute.gemm_peak_share[SC_PEAK_BF16] = 0.5;
    assert_int_equal(sc_cost_gemm(&h, &work, &cost, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "device.peak_tflop_per_s.bf16"));
}

/* ---- attention ---- */

/* The same layer: 8 sequences of 2048, 40 heads / 8 = 5 of 128. Full: 4 b s^2 d a = 4 x 8 x 2048^2
 * x 640 = 85.9 GFLOP; causal half: 42.9; backward 2.5 times. */
static void attention_of_gpt3_13b(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = load("dgx-h100");
    struct sc_attention_work work = {8, 5, 5, 128, 2048, 2048, true, false, SC_BF16};
    struct sc_cost cost;
    near_to(sc_attention_flops(&work), 42949672960.0, 1e-15);
    /* q, k, v, out: 4 x 8 x 2048 x 640 x 2 bytes; log-sum-exp 4 x 8 x 5 x 2048 */
    near_to(sc_attention_bytes(&work), 83886080.0 + 327680.0, 1e-15);
    assert_int_equal(sc_cost_attention(&h, &work, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 4e-6 + 42949672960.0 / (0.45 * 989e12), 1e-12);
    work.backward = true;
    near_to(sc_attention_flops(&work), 2.5 * 42949672960.0, 1e-15);
    near_to(sc_attention_bytes(&work), 2.0 * 83886080.0 + 327680.0, 1e-15);
    assert_int_equal(sc_cost_attention(&h, &work, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 4e-6 + 107374182400.0 / (0.40 * 989e12), 1e-12);
    work.causal = false;
    near_to(sc_attention_flops(&work), 5.0 * 42949672960.0, 1e-15);
    h.compute.attention_backward_share = 0.0;
    assert_int_equal(sc_cost_attention(&h, &work, &cost, &err), SC_BAD_INPUT);
}

/* 2 of 8 key and value heads: they are read once for all their queries. 4 query rows on 16 keys,
 * causal: row i sees 12 + i + 1/2 keys on average: 4 x 16 - 8 = 56 pairs. */
static void grouped_heads_and_short_queries(void **state)
{
    (void)state;
    struct sc_attention_work work = {1, 8, 2, 32, 4, 16, true, false, SC_FP32};
    near_to(sc_attention_flops(&work), 4.0 * 8 * 56 * 32, 1e-15);
    near_to(sc_attention_bytes(&work), 2.0 * (8 * 4 + 2 * 16) * 32 * 4 + 4.0 * 8 * 4, 1e-15);
}

/* ---- memory-bound work and Adam ---- */

static void bytes_and_elements(void **state)
{
    (void)state;
    struct sc_cost cost;
    struct sc_hardware h = load("dgx-h100");
    sc_cost_memory_bound(&h, "norm", 2847.5e6, 1e6, &cost); /* at 2847.5 GB/s: 1 ms */
    near_to(sc_cost_seconds(&cost), 1e-3 + 3e-6, 1e-12);
    assert_string_equal(cost.bound, "memory");
    /* On one of two cores, which works or waits: 0.32 ns an element and 8 bytes of it at 0.8 x 12
     * GB/s, 0.83 ns; of 2 bytes, arithmetic takes longer than 0.21 ns. */
    struct sc_hardware cores = load("two-cores");
    sc_cost_memory_bound(&cores, "activation", 8e6, 1e6, &cost);
    near_to(sc_cost_seconds(&cost), 2e-6 + 0.32e-3 + 8e6 / 9.6e9, 1e-12);
    sc_cost_memory_bound(&cores, "activation", 2e6, 1e6, &cost);
    near_to(sc_cost_seconds(&cost), 2e-6 + 0.32e-3 + 2e6 / 9.6e9, 1e-12);
    assert_string_equal(cost.bound, "compute");
    sc_cost_memory_bound(&cores, "add", 2e6, 1e6, &cost); /* no such row: memory only */
    near_to(sc_cost_seconds(&cost), 2e-6 + 2e6 / 9.6e9, 1e-12);
}

static void kind_rows_replace_what_they_state(void **state)
{
    (void)state;
    struct sc_cost cost;
    struct sc_hardware h = load_set("dgx-h100", "hw.compute.memory_bound.kinds={\"softmax\":{"
                                                "\"bandwidth_share\":0.5,\"fixed_us\":0}}");
    sc_cost_memory_bound(&h, "softmax", 1675e6, 1.0, &cost); /* half of 3350 GB/s: 1 ms */
    near_to(sc_cost_seconds(&cost), 1e-3, 1e-12);
}

/* 13e9 parameters on the host at 42 bytes and 65 % of 410 GB/s: 2.05 s. */
static void adam_on_host_and_device(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    struct sc_hardware h = load_set("dgx-a100-80g", "hw.places.host.bandwidth_gb_per_s=410");
    assert_int_equal(sc_cost_adam(&h, SC_HW_HOST, 13e9, 0.0, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 2.05, 2e-3);
    assert_string_equal(cost.bound, "host");
    assert_int_equal(sc_cost_adam(&h, SC_HW_DEVICE, 1e9, 30e9, &cost, &err), SC_OK);
    near_to(sc_cost_seconds(&cost), 3e-6 + 30e9 / (0.80 * 2039e9), 1e-12);
    h.places[SC_HW_HOST].present = false;
    assert_int_equal(sc_cost_adam(&h, SC_HW_HOST, 1.0, 0.0, &cost, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "places.host"));
}

/* ---- collectives ---- */

static struct sc_cost collective(const struct sc_hardware *h, enum sc_collective kind, double bytes,
                                 int64_t stride, int64_t count)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_group_place group;
    struct sc_cost cost;
    int64_t ranks[256];
    for (int64_t i = 0; i < count; i++) {
        ranks[i] = stride * i;
    }
    assert_int_equal(sc_topology_group(h, ranks, count, &group, &err), SC_OK);
    sc_cost_collective(h, kind, bytes, &group, &cost);
    return cost;
}

static double all_reduce_us(const struct sc_hardware *h, double mebibytes, int64_t stride,
                            int64_t count)
{
    struct sc_cost cost = collective(h, SC_COLLECTIVE_ALL_REDUCE, mebibytes * MIB, stride, count);
    return sc_cost_seconds(&cost) * 1e6;
}

/* 8 devices, 64 MiB, NVLS: 25 + 67,108,864 x 2 x 7/8 / 476 GB/s = 25 + 246.72 us. A100, ring:
 * 545 us. More in test_collective_nccl.c. */
static void all_reduce_in_a_node(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_cost cost = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 64 * MIB, 1, 8);
    near_to(sc_cost_seconds(&cost), 25e-6 + 64 * MIB * 2 * 7 / 8 / 476e9, 1e-12);
    assert_string_equal(cost.bound, "nvlink");
    assert_true(cost.held_units == 16.0);
    struct sc_hardware a100 = load("dgx-a100-80g");
    near_to(all_reduce_us(&a100, 64, 1, 8), 545, 2e-3);
    assert_true(collective(&a100, SC_COLLECTIVE_ALL_REDUCE, 64 * MIB, 1, 8).held_units == 24.0);
}

/* All-gather of 64 and 256 MiB on 8: 195 and 685 us; a ring of 8.4 + 7 x 3.4 = 32.2 us. */
static void the_other_collectives_in_a_node(void **state)
{
    (void)state;
    static const enum sc_collective kinds[] = {
        SC_COLLECTIVE_ALL_GATHER, SC_COLLECTIVE_REDUCE_SCATTER, SC_COLLECTIVE_ALL_TO_ALL};
    struct sc_hardware h = load("dgx-h100");
    for (size_t i = 0; i < 3; i++) {
        struct sc_cost cost = collective(&h, kinds[i], 256 * MIB, 1, 8);
        near_to(sc_cost_seconds(&cost), 32.2e-6 + 256 * MIB * 7 / 8 / 360e9, 1e-12);
        near_to(sc_cost_seconds(&cost) * 1e6, 685, 2e-3);
    }
    struct sc_cost broadcast = collective(&h, SC_COLLECTIVE_BROADCAST, 360e6, 1, 8);
    near_to(sc_cost_seconds(&broadcast), 8.4e-6 + 3.4e-6 + 1e-3, 1e-12); /* one step */
}

/* Up to four members: ring, 8.4 + 2 (N - 1) 3.4, bus 360. Five: NVLS, 5 heads of 40 x 9/6 x 0.85 x
 * 4/5 x 2 = 81.6: 408. */
static void small_groups_use_the_ring(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_cost two = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 360e6, 1, 2);
    near_to(sc_cost_seconds(&two), 15.2e-6 + 1e-3, 1e-12);
    struct sc_cost four = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 240e6, 2, 4);
    near_to(sc_cost_seconds(&four), 28.8e-6 + 1e-3, 1e-12);
    struct sc_cost five = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 408e6, 1, 5);
    near_to(sc_cost_seconds(&five), 25e-6 + 1.6e-3, 1e-12);
}

/* NVLSTree. Two nodes, all 16: 66.8 + S x 15/8 / (8 x 57.7); four nodes, 32: 108.6 + S x 62/32 /
 * 364; both at the profile's efficiency, 0.98. Without it 64 MiB takes 339 us and 466. */
static void all_reduce_across_nodes(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    near_to(all_reduce_us(&h, 64, 1, 16), 66.8 + 64 * MIB * 15 / 8 / (0.98 * 461.6e3), 1e-12);
    near_to(all_reduce_us(&h, 64, 1, 32), 108.6 + 64 * MIB * 62 / 32 / (0.98 * 364e3), 1e-12);
    h = load_set("dgx-h100", "hw.collectives.levels.rail.nccl.efficiency=1");
    near_to(all_reduce_us(&h, 64, 1, 16), 339, 2e-3);
    near_to(all_reduce_us(&h, 64, 1, 32), 466, 2e-3);
}

/* One rank a node has one rail of 48 GB/s, two have 96, all eight 384 (efficiency set to 1).
 * Reduce-scatter, 2 ranks on 2 nodes: 8.4 + 14 + (S/2) / 48 GB/s. All-reduce: the ring's latency
 * x 1.4 (1.4 (8.4 + 2 x 14) = 50.96) and S x 2 x 1/2 / 48. 16 ranks: 8.4 + 14 x 3.4 + 14 = 70. */
static void fewer_ranks_a_node_have_fewer_rails(void **state)
{
    (void)state;
    struct sc_hardware h = load_set("dgx-h100", "hw.collectives.levels.rail.nccl.efficiency=1");
    struct sc_cost scatter = collective(&h, SC_COLLECTIVE_REDUCE_SCATTER, 96e6, 8, 2);
    near_to(sc_cost_seconds(&scatter), 22.4e-6 + 1e-3, 1e-12);
    assert_string_equal(scatter.bound, "rail");
    struct sc_cost reduce = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 48e6, 8, 2);
    near_to(sc_cost_seconds(&reduce), 50.96e-6 + 1e-3, 1e-12);
    struct sc_cost pair = collective(&h, SC_COLLECTIVE_REDUCE_SCATTER, 128e6, 4, 4);
    near_to(sc_cost_seconds(&pair), 8.4e-6 + 2 * 3.4e-6 + 14e-6 + 1e-3, 1e-12);
    struct sc_cost full = collective(&h, SC_COLLECTIVE_ALL_GATHER, 409.6e6, 1, 16);
    near_to(sc_cost_seconds(&full), 70e-6 + 1e-3, 1e-12);
}

/* A send between neighbours: one device's link; between nodes: one rail. */
static void exchanges_cross_one_link(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_cost near = collective(&h, SC_COLLECTIVE_EXCHANGE, 370.8e6, 1, 2);
    near_to(sc_cost_seconds(&near), 3.4e-6 + 1e-3, 1e-12);
    struct sc_cost far = collective(&h, SC_COLLECTIVE_EXCHANGE, 48e6, 8, 2);
    near_to(sc_cost_seconds(&far), 14e-6 + 1e-3, 1e-12);
}

static void a_group_of_one_costs_nothing(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_cost cost = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 1e9, 1, 1);
    assert_true(sc_cost_seconds(&cost) == 0.0);
    assert_true(cost.held_units == 0.0);
    assert_true(sc_collective_moved(SC_COLLECTIVE_ALL_GATHER, 1, 8.0) == 0.0);
}

/* Stated figures go before NCCL's model: a variant's below 1 MiB (15 us and 141 GB/s), the level's
 * for every size. What is not stated stays the model's: at 1 MiB LL, 15 us + S / (141 x 8/14) on 24
 * multiprocessors; an all-gather beside it. */
static void stated_figures_go_first(void **state)
{
    (void)state;
    struct sc_hardware h = load_set("dgx-h100", "hw.collectives.levels.nvlink.variants=[{"
                                                "\"maximum_bytes\":1048576,\"all_reduce\":{"
                                                "\"latency_us\":15,\"bus_bandwidth_gb_per_s\":141},"
                                                "\"held_multiprocessors\":4}]");
    struct sc_cost small = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 8.0, 1, 8);
    near_to(sc_cost_seconds(&small), 15e-6 + 14.0 / 141e9, 1e-12);
    assert_true(small.held_units == 4.0);
    assert_string_equal(small.bound, "latency");
    near_to(all_reduce_us(&h, 1, 1, 8), 15 + MIB / (141e3 * 8 / 14), 1e-12);
    assert_true(collective(&h, SC_COLLECTIVE_ALL_REDUCE, MIB, 1, 8).held_units == 24.0);
    h = load_set("dgx-h100", "hw.collectives.levels.nvlink.all_reduce={"
                             "\"latency_us\":30,\"bus_bandwidth_gb_per_s\":350}");
    near_to(all_reduce_us(&h, 1, 1, 8), 30 + MIB * 1.75 / 350e3, 1e-12);
    assert_true(collective(&h, SC_COLLECTIVE_ALL_REDUCE, MIB, 1, 8).held_units == 24.0);
    struct sc_cost gather = collective(&h, SC_COLLECTIVE_ALL_GATHER, 64 * MIB, 1, 8);
    near_to(sc_cost_seconds(&gather), 32.2e-6 + 64 * MIB * 7 / 8 / 360e9, 1e-12);
    h = load_set("dgx-h100", "hw.collectives.levels.nvlink.held_multiprocessors=3");
    assert_true(collective(&h, SC_COLLECTIVE_ALL_REDUCE, MIB, 1, 8).held_units == 3.0);
    assert_true(collective(&h, SC_COLLECTIVE_EXCHANGE, MIB, 1, 2).held_units == 3.0);
}

/* On cores a collective moves memory as well: 2 bytes a byte. */
static void collectives_on_cores(void **state)
{
    (void)state;
    struct sc_hardware h = load("two-cores");
    struct sc_cost cost = collective(&h, SC_COLLECTIVE_ALL_REDUCE, 3e6, 1, 2);
    near_to(sc_cost_seconds(&cost), 30e-6 + 1e-3, 1e-12);
    near_to(cost.use[SC_COST_MEMORY].amount, 6e6, 1e-15);
    assert_true(cost.slowdown_beside_compute == 1.5);
    assert_string_equal(cost.bound, "shared_memory");
    assert_true(cost.held_units == 0.5); /* of a core of its own; of half a core, a quarter */
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_hardware_divide(&h, 4, &err), SC_OK);
    assert_true(collective(&h, SC_COLLECTIVE_ALL_REDUCE, 3e6, 1, 4).held_units == 0.25);
}

/* ---- copies ---- */

static struct sc_cost copy(const struct sc_hardware *h, enum sc_hw_place from, enum sc_hw_place to,
                           double bytes)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    if (sc_cost_copy(h, from, to, bytes, &cost, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return cost;
}

/* Pinned 52 GB/s + 8 us; pageable a fifth; disk 20 read, 10 written; on the device two passes. */
static void copies_on_an_accelerator(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_cost pinned = copy(&h, SC_HW_DEVICE, SC_HW_PINNED, 52e6);
    near_to(sc_cost_seconds(&pinned), 8e-6 + 1e-3, 1e-12);
    assert_string_equal(pinned.bound, "pcie");
    near_to(pinned.use[SC_COST_HOST_MEMORY].amount, 52e6, 1e-15);
    struct sc_cost pageable = copy(&h, SC_HW_HOST, SC_HW_DEVICE, 52e6);
    near_to(sc_cost_seconds(&pageable), 8e-6 + 5e-3, 1e-12);
    struct sc_cost read = copy(&h, SC_HW_DISK, SC_HW_PINNED, 20e6);
    near_to(sc_cost_seconds(&read), 1e-3, 1e-12);
    assert_string_equal(read.bound, "disk");
    struct sc_cost written = copy(&h, SC_HW_DEVICE, SC_HW_DISK, 20e6);
    near_to(sc_cost_seconds(&written), 8e-6 + 2e-3, 1e-12);
    struct sc_cost local = copy(&h, SC_HW_DEVICE, SC_HW_DEVICE, 1e9);
    near_to(sc_cost_seconds(&local), 3e-6 + 2e9 / (0.85 * 3350e9), 1e-12);
    struct sc_cost host = copy(&h, SC_HW_HOST, SC_HW_PINNED, 491e6);
    near_to(sc_cost_seconds(&host), 3e-6 + 2e-3, 1e-12);
}

/* On cores: read and write the same memory, 0.8 x 12 GB/s. */
static void copies_on_cores(void **state)
{
    (void)state;
    struct sc_hardware h = load("two-cores");
    struct sc_cost cost = copy(&h, SC_HW_PINNED, SC_HW_DEVICE, 4.8e6);
    near_to(sc_cost_seconds(&cost), 2e-6 + 1e-3, 1e-12);
    assert_string_equal(cost.bound, "memory");
    assert_int_equal(cost.link, -1);
}

static void copies_that_the_machine_cannot_do(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_cost cost;
    struct sc_hardware h = load_set("dgx-h100", "hw.links.pcie.to_host=false");
    assert_int_equal(sc_cost_copy(&h, SC_HW_HOST, SC_HW_DEVICE, 1.0, &cost, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "to_host"));
    h.places[SC_HW_DISK].present = false;
    assert_int_equal(sc_cost_copy(&h, SC_HW_HOST, SC_HW_DISK, 1.0, &cost, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "places.disk"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_of_gpt3_13b),
        cmocka_unit_test(large_products_are_bound_by_compute),
        cmocka_unit_test(thin_products_are_bound_by_memory),
        cmocka_unit_test(missing_rates_are_named),
        cmocka_unit_test(attention_of_gpt3_13b),
        cmocka_unit_test(grouped_heads_and_short_queries),
        cmocka_unit_test(bytes_and_elements),
        cmocka_unit_test(kind_rows_replace_what_they_state),
        cmocka_unit_test(adam_on_host_and_device),
        cmocka_unit_test(all_reduce_in_a_node),
        cmocka_unit_test(the_other_collectives_in_a_node),
        cmocka_unit_test(small_groups_use_the_ring),
        cmocka_unit_test(all_reduce_across_nodes),
        cmocka_unit_test(fewer_ranks_a_node_have_fewer_rails),
        cmocka_unit_test(exchanges_cross_one_link),
        cmocka_unit_test(a_group_of_one_costs_nothing),
        cmocka_unit_test(stated_figures_go_first),
        cmocka_unit_test(collectives_on_cores),
        cmocka_unit_test(copies_on_an_accelerator),
        cmocka_unit_test(copies_on_cores),
        cmocka_unit_test(copies_that_the_machine_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
