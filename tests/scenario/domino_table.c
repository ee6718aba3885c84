/*
 * Domino against Megatron-LM on one GPT-3 13B layer, by hand (techniques 5.8): 600 TFLOP/s in
 * products, 400 TFLOP/s in attention, all-reduces of S bytes in 30 us + S / algbw, nothing else
 * costs anything. b = 8, s = 2048 (T = 16,384), h = 5120, bf16.
 *
 * Half-batch on 8 ranks (ms): QKV .268, attention .054, projection .089, up and down .358 each;
 * half all-reduce of T/2 h 2 B = 83.9 MB: .030 + .305 = .335, whole .640.
 *   forward  compute 2 (.268 + .054 + .089 + 2 x .358) = 2.25; baseline + 2 x .640 = 3.54;
 *            Domino: windows .322 .358 .358 .322 against .335: exposed 2 x .013, in all 2.28
 *   backward compute 4.56; behind the weight gradients (.537 for QKV, .716 for up, against .640)
 *            only QKV's .10 is exposed: 4.67; synchronous 4.56 + 2 x .640 = 5.84; Domino 4.56
 * On 16 ranks products take half as long, all-reduces longer (algbw 229 and 170 GB/s).
 *
 * The settings, as one would give them to `stepcast sim --set`:
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/simulate.h"

static const char *const FREE[] = {
    /* products at 600 of 989 TFLOP/s, attention at 400; no launch cost */
    "hw.compute.gemm.peak_share.bf16=0.606673407",
    "hw.compute.gemm.fixed_us=0",
    "hw.compute.gemm.tiles=[]",
    "hw.compute.attention.forward_peak_share=0.404448938",
    "hw.compute.attention.backward_peak_share=0.404448938",
    /* memory-bound work at nothing */
    "hw.compute.memory_bound.fixed_us=0",
    "hw.device.memory_bandwidth_gb_per_s=1e9",
    /* issue cost at nothing */
    "hw.issue.kernel_us=0",
    "hw.issue.collective_us=0",
    "hw.issue.copy_us=0",
    /* no multiprocessors held */
    "hw.collectives.levels.nvlink.held_multiprocessors=0",
    "hw.collectives.levels.rail.held_multiprocessors=0",
    "hw.links.pcie.latency_us=0",
    /* the plan of techniques 1.7 */
    "batch.global_batch=8",
    "batch.micro_batch=8",
    "batch.sequence_length=2048",
    "model.max_positions=2048",
    "model.layers=8",
    "dropout.hidden=0",
    "dropout.attention=0",
};

enum { FREE_COUNT = sizeof(FREE) / sizeof(FREE[0]), SET_MAX = FREE_COUNT + 8 };

struct layer_times {
    double forward_ms, backward_ms;
};

/* Start of the first op with this label's layer, name and pass. */
static double start_of(const struct sc_trace *trace, const char *begin)
{
    for (size_t i = 0; i < trace->rows.count; i++)
        if (strncmp(trace->rows.items[i].label, begin, strlen(begin)) == 0)
            return trace->rows.items[i].start_us;
    fail_msg("no operation %s", begin);
    return 0;
}

/* A layer in the steady state: from one layer's first product to the next one's. */
static struct layer_times play(const char *plan_name, double all_reduce_gb_per_s, int64_t ranks,
                               const char *more)
{
    char bandwidth[2][96];
    const char *set[SET_MAX];
    int count = 0;
    const char *const levels[] = {"nvlink", "rail"};
    double bus = all_reduce_gb_per_s * 2 * (double)(ranks - 1) / (double)ranks;
    const char *level = levels[ranks > 8];
    for (; count < FREE_COUNT; count++)
        set[count] = FREE[count];
    snprintf(bandwidth[0], sizeof(bandwidth[0]),
             "hw.collectives.levels.%s.all_reduce.bus_bandwidth_gb_per_s=%.9g", level, bus);
    snprintf(bandwidth[1], sizeof(bandwidth[1]),
             "hw.collectives.levels.%s.all_reduce.latency_us=30", level);
    set[count++] = bandwidth[0];
    set[count++] = bandwidth[1];
    if (more)
        set[count++] = more;

    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan;
    struct sc_hardware hardware;
    struct sc_sim_result result = {0};
    const struct sc_sim_options options = {.trace = true};
    if (sc_plan_load(plan_name, set, count, &plan, &err) != SC_OK ||
        sc_hardware_load("dgx-h100", NULL, set, count, &hardware, &err) != SC_OK ||
        sc_simulate(&plan, &hardware, &options, &result, &err) != SC_OK)
        fail_msg("%s", err.text);
    const char *down = plan.domino.pieces > 1 ? "layer %d / mlp.down / backward-data / piece 1"
                                              : "layer %d / mlp.down / backward-data";
    char from[96], to[96];
    struct layer_times out;
    snprintf(from, sizeof(from), down, 4);
    snprintf(to, sizeof(to), down, 3);
    out.forward_ms = (start_of(&result.trace, "layer 4 / attention.qkv / forward") -
                      start_of(&result.trace, "layer 3 / attention.qkv / forward")) /
                     1e3;
    out.backward_ms = (start_of(&result.trace, to) - start_of(&result.trace, from)) / 1e3;
    sc_hardware_free(&hardware);
    sc_sim_result_free(&result);
    return out;
}

static void assert_near(double got, double expected, const char *what)
{
    if (got < expected * 0.95 || got > expected * 1.05)
        fail_msg("%s: found %.3f ms, expected %.3f", what, got, expected);
}

struct row {
    const char *nodes; /* in the plan's name */
    int64_t ranks;
    double algorithm_bandwidth;
    double baseline_forward, domino_forward;
    double overlapped_backward, synchronous_backward, domino_backward;
};

static void check_row(const struct row *row)
{
    char name[3][96];
    const char *const variant[] = {"megatron", "megatron-sync", "domino2"};
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof(name[i]), "gpt3-13b_%s_%s", row->nodes, variant[i]);
    struct layer_times overlapped = play(name[0], row->algorithm_bandwidth, row->ranks, NULL);
    struct layer_times synchronous = play(name[1], row->algorithm_bandwidth, row->ranks, NULL);
    struct layer_times domino = play(name[2], row->algorithm_bandwidth, row->ranks, NULL);
    assert_near(overlapped.forward_ms, row->baseline_forward, "baseline forward");
    assert_near(synchronous.forward_ms, row->baseline_forward, "synchronous forward");
    assert_near(domino.forward_ms, row->domino_forward, "Domino forward");
    assert_near(overlapped.backward_ms, row->overlapped_backward, "overlapped backward");
    assert_near(synchronous.backward_ms, row->synchronous_backward, "synchronous backward");
    assert_near(domino.backward_ms, row->domino_backward, "Domino backward");
}

static void test_one_node(void **state)
{
    (void)state;
    const struct row row = {"1xdgx-h100_tp8", 8, 275, 3.54, 2.28, 4.67, 5.84, 4.56};
    check_row(&row);
}

static void test_two_nodes(void **state)
{
    (void)state;
    const struct row row = {"2xdgx-h100_tp16", 16, 229, 2.65, 2.03, 3.18, 3.81, 2.58};
    check_row(&row);
}

static void test_two_nodes_without_nvls_tree(void **state)
{
    (void)state;
    const struct row row = {"2xdgx-h100_tp16", 16, 170, 3.16, 2.54, 3.69, 4.32, 2.87};
    check_row(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_two_nodes_without_nvls_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
