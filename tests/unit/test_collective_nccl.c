/*
 * NCCL's cost model against figures worked out from its tables for known machines: latencies and
 * bandwidths of every algorithm and protocol, what it picks by size, and statements of NVIDIA's
 * engineers on what parts of a node reach.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "model/collective_nccl.h"

#define MIB 1048576.0

/* Channels and heads that NCCL's search finds. */
static const struct sc_hw_nccl h100 = {.generation = SC_HW_HOPPER,
                                       .ring_channels = 12,
                                       .ring_bandwidth = 30e9,
                                       .tree_channels = 12,
                                       .tree_bandwidth = 30e9,
                                       .nvls_heads = 8,
                                       .nvls_bandwidth = 40e9,
                                       .nvls_inter_bandwidth = 60e9,
                                       .nvls_multiprocessors = 16,
                                       .network_limit_factor = 1.0,
                                       .efficiency = 1.0};
static const struct sc_hw_nccl h100_nodes = {.generation = SC_HW_HOPPER,
                                             .ring_channels = 8,
                                             .ring_bandwidth = 48e9,
                                             .tree_channels = 8,
                                             .tree_bandwidth = 45e9,
                                             .nvls_heads = 8,
                                             .nvls_bandwidth = 40e9,
                                             .nvls_inter_bandwidth = 48e9,
                                             .nvls_multiprocessors = 16,
                                             .network_limit_factor = 1.0,
                                             .efficiency = 1.0};
static const struct sc_hw_nccl a100 = {.generation = SC_HW_AMPERE,
                                       .cpu = SC_HW_AMD,
                                       .ring_channels = 12,
                                       .ring_bandwidth = 20e9,
                                       .tree_channels = 12,
                                       .tree_bandwidth = 20e9,
                                       .network_limit_factor = 1.0,
                                       .efficiency = 1.0};
static const struct sc_hw_nccl a100_nodes = {.generation = SC_HW_AMPERE,
                                             .cpu = SC_HW_AMD,
                                             .ring_channels = 8,
                                             .ring_bandwidth = 24e9,
                                             .tree_channels = 8,
                                             .tree_bandwidth = 24e9,
                                             .network_limit_factor = 1.0,
                                             .efficiency = 1.0};
static const struct sc_hw_nccl b200 = {.generation = SC_HW_BLACKWELL,
                                       .ring_channels = 16,
                                       .ring_bandwidth = 45e9,
                                       .tree_channels = 16,
                                       .tree_bandwidth = 45e9,
                                       .nvls_heads = 8,
                                       .nvls_bandwidth = 80e9,
                                       .nvls_inter_bandwidth = 90e9,
                                       .nvls_multiprocessors = 24,
                                       .network_limit_factor = 1.0,
                                       .efficiency = 1.0};

static void near_to(const char *what, double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) {
        fail_msg("%s: found %.6g, expected %.6g", what, found, expected);
    }
}

static struct sc_group_place whole(int64_t nodes)
{
    return (struct sc_group_place){
        .members = 8 * nodes, .nodes = nodes, .members_per_node = 8, .share = 1.0};
}

/* `each` of the eight devices of each node. */
static struct sc_group_place part(int64_t nodes, int64_t each)
{
    return (struct sc_group_place){.members = each * nodes,
                                   .nodes = nodes,
                                   .members_per_node = each,
                                   .share = nodes > 1 ? (double)each / 8.0 : 1.0};
}

static double chosen_us(const struct sc_hw_nccl *nccl, enum sc_collective kind, int64_t nodes,
                        double bytes)
{
    struct sc_group_place group = whole(nodes);
    struct sc_nccl_price price = sc_nccl_choose(nccl, kind, &group, bytes);
    return sc_nccl_seconds(&price, bytes) * 1e6;
}

/* ---- the whole table ------------------------------------------------------------------------- */

#define AR SC_COLLECTIVE_ALL_REDUCE
#define AG SC_COLLECTIVE_ALL_GATHER
#define LL SC_NCCL_LL
#define LL128 SC_NCCL_LL128
#define SIMPLE SC_NCCL_SIMPLE

struct row {
    enum sc_collective kind;
    enum sc_nccl_algorithm algorithm;
    enum sc_nccl_protocol protocol;
    double latency_us, algorithm_bandwidth; /* at sizes beyond the tree's table */
    double bus_bandwidth;                   /* 0: not printed */
    double tolerance_us, tolerance_gb;      /* half of the last digit printed */
};

static void check_rows(const struct sc_hw_nccl *nccl, int64_t nodes, const struct row *rows,
                       size_t count)
{
    struct sc_group_place group = whole(nodes);
    double n = (double)group.members;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        struct sc_nccl_price price;
        char what[64];
        snprintf(what, sizeof(what), "%lld nodes, row %zu", (long long)nodes, i);
        assert_true(
            sc_nccl_try(nccl, row->kind, &group, 64e9, row->algorithm, row->protocol, &price));
        near_to(what, price.latency_s * 1e6, row->latency_us, row->tolerance_us);
        near_to(what, price.bandwidth / 1e9, row->algorithm_bandwidth, row->tolerance_gb);
        double factor = (row->kind == AR ? 2.0 : 1.0) * (n - 1.0) / n;
        if (row->bus_bandwidth > 0.0) {
            near_to(what, price.bandwidth / 1e9 * factor, row->bus_bandwidth, 0.5);
        }
    }
}

/* By hand, ring LL: 6.6 + 14 x 0.6 = 15.0 us; min(141, 360/2) x 8/14 = 80.6 GB/s. Tree LL128: 14 +
 * 2 x 7 x 1.25 = 31.5; 0.92 x 360 x 7/9 / 2 = 128.8. NVLS: 25; 8 x min(40 x .85 x 7/8 x 2, 60) =
 * 476 of bus, x 8/14 = 272. */
static void one_node_of_h100(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {AR, SC_NCCL_RING, LL, 15.0, 80.6, 141, 0.05, 0.05},
        {AR, SC_NCCL_RING, LL128, 40.6, 189.3, 331, 0.05, 0.05},
        {AR, SC_NCCL_RING, SIMPLE, 56.0, 205.7, 360, 0.05, 0.05},
        {AR, SC_NCCL_TREE, LL, 15.2, 43.6, 76, 0.05, 0.05},
        {AR, SC_NCCL_TREE, LL128, 31.5, 128.8, 225, 0.05, 0.05},
        {AR, SC_NCCL_TREE, SIMPLE, 64.4, 165.6, 290, 0.05, 0.05},
        {AR, SC_NCCL_NVLS, SIMPLE, 25.0, 272.0, 476, 0.05, 0.05},
        {AG, SC_NCCL_RING, LL, 10.8, 161, 141, 0.05, 0.5},
        {AG, SC_NCCL_RING, LL128, 27.3, 378.5, 331, 0.05, 0.5},
        {AG, SC_NCCL_RING, SIMPLE, 32.2, 411, 360, 0.05, 0.5},
        /* 8 x 40 x .85 x 7/8 x 7/8 = 208 of bus */
        {AG, SC_NCCL_NVLS, SIMPLE, 25.0, 238, 208, 0.05, 0.5},
    };
    check_rows(&h100, 1, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Ring Simple of an all-reduce over nodes starts slowly: 1.4 x (8.4 + 28 x 3.4 + 2 x 14 = 131.6).
 */
static void several_nodes_of_h100(void **state)
{
    (void)state;
    static const struct row two[] = {
        {AR, SC_NCCL_RING, LL, 40.0, 20.8, 39, 0.05, 0.05},
        {AR, SC_NCCL_RING, LL128, 75.2, 156.6, 0, 0.05, 0.05},
        {AR, SC_NCCL_RING, SIMPLE, 131.6 * 1.4, 204.8, 384, 0.07, 0.05},
        {AR, SC_NCCL_TREE, LL, 25.2, 19.5, 0, 0.05, 0.05},
        {AR, SC_NCCL_TREE, LL128, 48.5, 146.8, 0, 0.05, 0.05},
        {AR, SC_NCCL_TREE, SIMPLE, 92.4, 165.6, 0, 0.05, 0.05},
        {AR, SC_NCCL_NVLS_TREE, SIMPLE, 66.8, 246.2, 461.6, 0.05, 0.05},
        {AG, SC_NCCL_RING, SIMPLE, 70.0, 409.6, 384, 0.05, 0.05},
    };
    static const struct row four[] = {
        {AR, SC_NCCL_RING, LL, 78.8, 10.5, 20.4, 0.05, 0.05},
        {AR, SC_NCCL_RING, LL128, 144.4, 151.5, 0, 0.05, 0.05},
        {AR, SC_NCCL_RING, SIMPLE, 282.8 * 1.4, 198.2, 384, 0.07, 0.05},
        {AR, SC_NCCL_TREE, LL, 35.2, 10.2, 0, 0.05, 0.05},
        {AR, SC_NCCL_TREE, LL128, 65.5, 116.0, 0, 0.05, 0.05},
        {AR, SC_NCCL_TREE, SIMPLE, 120.4, 144.0, 0, 0.05, 0.05},
        {AR, SC_NCCL_NVLS_TREE, SIMPLE, 108.6, 187.9, 364, 0.05, 0.05},
        {AG, SC_NCCL_RING, SIMPLE, 145.6, 396.4, 384, 0.05, 0.05},
    };
    static const struct row sixteen[] = {
        {AR, SC_NCCL_RING, LL, 311.6, 10.3, 20.4, 0.05, 0.05},
        {AR, SC_NCCL_RING, LL128, 559.6, 148.0, 0, 0.05, 0.05},
        {AR, SC_NCCL_RING, SIMPLE, 1190 * 1.4, 193.5, 384, 0.7, 0.05},
        {AR, SC_NCCL_TREE, LL, 55.2, 10.2, 0, 0.05, 0.05},
        {AR, SC_NCCL_TREE, LL128, 99.5, 116.0, 0, 0.05, 0.05},
        {AR, SC_NCCL_TREE, SIMPLE, 176.4, 144.0, 0, 0.05, 0.05},
        {AR, SC_NCCL_NVLS_TREE, SIMPLE, 192.2, 183.4, 364, 0.05, 0.05},
        {AG, SC_NCCL_RING, SIMPLE, 599.0, 387, 384, 0.5, 0.5},
    };
    check_rows(&h100_nodes, 2, two, sizeof(two) / sizeof(two[0]));
    check_rows(&h100_nodes, 4, four, sizeof(four) / sizeof(four[0]));
    check_rows(&h100_nodes, 16, sixteen, sizeof(sixteen) / sizeof(sixteen[0]));
}

/* A100: 12 x 20; two nodes 8 x 24 on AMD, where LL reaches 22.5. Before Ampere a ring over nodes
 * starts 1.9 times as slowly. B200: ring 16 x 45; NVLS limited to 8 x 90 of bus. */
static void other_generations(void **state)
{
    (void)state;
    static const struct row ampere[] = {
        {AR, SC_NCCL_RING, LL, 15.0, 50.1, 87.7, 0.05, 0.05},
        {AR, SC_NCCL_RING, SIMPLE, 56.0, 137.1, 240, 0.05, 0.05},
    };
    static const struct row ampere_nodes[] = {
        {AR, SC_NCCL_RING, LL, 6.6 + 28 * 2.0 + 2 * 2.7, 12.0, 22.5, 0.05, 0.05},
        {AR, SC_NCCL_RING, SIMPLE, 1.4 * (8.4 + 28 * 6.0 + 28.0), 102.4, 192, 0.05, 0.05},
    };
    static const struct row volta_nodes[] = {
        {AR, SC_NCCL_RING, SIMPLE, 1.9 * (8.4 + 28 * 6.0 + 28.0), 102.4, 192, 0.05, 0.05}};
    static const struct row blackwell[] = {
        {AR, SC_NCCL_RING, SIMPLE, 56.0, 411.4, 720, 0.05, 0.05},
        {AR, SC_NCCL_NVLS, SIMPLE, 25.0, 411.4, 720, 0.05, 0.05},
    };
    struct sc_hw_nccl volta = a100_nodes;
    volta.generation = SC_HW_VOLTA;
    check_rows(&a100, 1, ampere, 2);
    check_rows(&a100_nodes, 2, ampere_nodes, 2);
    check_rows(&volta, 2, volta_nodes, 1);
    check_rows(&b200, 1, blackwell, 2);
}

/* ---- what is picked -------------------------------------------------------------------------- */

static void best_times_by_size(void **state)
{
    (void)state;
    static const struct {
        const struct sc_hw_nccl *nccl;
        int64_t nodes;
        enum sc_collective kind;
        double mebibytes, us;
    } rows[] = {
        {&h100, 1, AR, 1.0 / 16, 16},
        {&h100, 1, AR, 0.25, 18},
        {&h100, 1, AR, 1, 28},
        {&h100, 1, AR, 4, 40},
        {&h100, 1, AR, 8, 56},
        {&h100, 1, AR, 16, 87},
        {&h100, 1, AR, 32, 148},
        {&h100, 1, AR, 64, 272},
        {&h100, 1, AR, 128, 518},
        {&h100, 1, AR, 256, 1012},
        {&h100, 1, AR, 1024, 3973},
        {&h100, 1, AG, 1, 17},
        {&h100, 1, AG, 4, 37},
        {&h100, 1, AG, 16, 72},
        {&h100, 1, AG, 64, 195},
        {&h100, 1, AG, 256, 685},
        {&h100_nodes, 2, AR, 1, 60},
        {&h100_nodes, 2, AR, 16, 135},
        {&h100_nodes, 2, AR, 64, 339},
        {&h100_nodes, 2, AR, 256, 1157},
        {&h100_nodes, 2, AR, 1024, 4428},
        {&h100_nodes, 4, AR, 1, 81},
        {&h100_nodes, 4, AR, 16, 198},
        {&h100_nodes, 4, AR, 64, 466},
        {&h100_nodes, 4, AR, 256, 1537},
        {&h100_nodes, 16, AR, 1, 115},
        {&h100_nodes, 16, AR, 16, 260},
        {&h100_nodes, 16, AR, 64, 558},
        {&h100_nodes, 16, AR, 256, 1656},
        {&h100_nodes, 16, AR, 1024, 6046},
        {&a100, 1, AR, 1, 36},
        {&a100, 1, AR, 16, 174},
        {&a100, 1, AR, 64, 545},
        {&a100, 1, AR, 256, 2013},
        {&b200, 1, AR, 16, 66},
        {&b200, 1, AR, 256, 677},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char what[48];
        snprintf(what, sizeof(what), "row %zu: %g MiB", i, rows[i].mebibytes);
        near_to(what, chosen_us(rows[i].nccl, rows[i].kind, rows[i].nodes, rows[i].mebibytes * MIB),
                rows[i].us, 0.5);
    }
}

static struct sc_nccl_price choose(const struct sc_hw_nccl *nccl, enum sc_collective kind,
                                   struct sc_group_place group, double bytes)
{
    return sc_nccl_choose(nccl, kind, &group, bytes);
}

/* All-reduce in a node: LL until 15 + S/80.6 = 25 + S/272, S = 1.15e6 bytes, then NVLS. All-gather:
 * a ring always, LL until (27.3 - 10.8) / (1/161.1 - 1/378.5) = 4.63e6 bytes, LL128 until
 * (32.2 - 27.3) / (1/378.5 - 1/411.4) = 23.2e6. One rank a node: PAT while small. */
static void switches_by_size(void **state)
{
    (void)state;
    assert_int_equal(choose(&h100, SC_COLLECTIVE_ALL_REDUCE, whole(1), 1.14e6).protocol, LL);
    assert_int_equal(choose(&h100, SC_COLLECTIVE_ALL_REDUCE, whole(1), 1.16e6).algorithm,
                     SC_NCCL_NVLS);
    static const struct {
        double bytes;
        enum sc_nccl_protocol protocol;
    } rings[] = {{4.62e6, LL}, {4.64e6, LL128}, {23.0e6, LL128}, {23.4e6, SIMPLE}, {1e9, SIMPLE}};
    for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
        static const enum sc_collective kinds[] = {SC_COLLECTIVE_ALL_GATHER,
                                                   SC_COLLECTIVE_REDUCE_SCATTER};
        for (size_t k = 0; k < 2; k++) {
            struct sc_nccl_price price = choose(&h100, kinds[k], whole(1), rings[i].bytes);
            assert_int_equal(price.algorithm, SC_NCCL_RING);
            assert_int_equal(price.protocol, rings[i].protocol);
        }
    }
    assert_int_equal(choose(&h100_nodes, SC_COLLECTIVE_ALL_GATHER, part(16, 1), MIB).algorithm,
                     SC_NCCL_PAT);
    assert_int_equal(choose(&h100_nodes, SC_COLLECTIVE_ALL_GATHER, part(16, 1), 64 * MIB).algorithm,
                     SC_NCCL_RING);
}

static void who_may_use_what(void **state)
{
    (void)state;
    struct sc_nccl_price price;
    struct sc_group_place node = whole(1), four = part(1, 4), nodes = whole(2);
    struct sc_hw_nccl pci = h100;
    pci.intra = SC_HW_INTRA_PCI;
    assert_false(sc_nccl_try(&pci, AR, &node, MIB, SC_NCCL_RING, LL128, &price));
    assert_true(sc_nccl_try(&pci, AR, &node, MIB, SC_NCCL_RING, LL, &price));
    assert_true(fabs(price.latency_s - (6.6 + 14 * 1.0) / 1e6) < 1e-12);
    assert_false(sc_nccl_try(&h100, AR, &four, MIB, SC_NCCL_NVLS, SIMPLE, &price));
    assert_false(sc_nccl_try(&h100, AR, &node, MIB, SC_NCCL_NVLS, LL, &price));
    assert_false(sc_nccl_try(&h100, AR, &node, MIB, SC_NCCL_NVLS_TREE, SIMPLE, &price));
    assert_false(sc_nccl_try(&h100_nodes, AR, &nodes, MIB, SC_NCCL_NVLS, SIMPLE, &price));
    assert_false(sc_nccl_try(&a100, AR, &node, MIB, SC_NCCL_NVLS, SIMPLE, &price));
    assert_false(sc_nccl_try(&h100, AG, &node, MIB, SC_NCCL_TREE, SIMPLE, &price));
    assert_false(sc_nccl_try(&h100_nodes, AG, &nodes, MIB, SC_NCCL_PAT, SIMPLE, &price));
}

/* ---- parts of a node ------------------------------------------------------------------------- */

/* NVIDIA's engineers: rings 360-370 whatever the group, NVLS 370 and below with up to four members
 * (so the ring stays), 420, 440, 460, 480 with five to eight. */
static void parts_of_a_node(void **state)
{
    (void)state;
    static const double stated[] = {0, 0, 370, 370, 370, 420, 440, 460, 480};
    for (int64_t g = 2; g <= 8; g++) {
        struct sc_nccl_price price = choose(&h100, SC_COLLECTIVE_ALL_REDUCE, part(1, g), 8e9);
        double bus = price.bandwidth * 2.0 * (double)(g - 1) / (double)g / 1e9;
        near_to("bus bandwidth", bus, stated[g], 0.03 * stated[g]);
        assert_int_equal(price.algorithm, g > 4 ? SC_NCCL_NVLS : SC_NCCL_RING);
    }
}

/* One rank a node has one adapter, 48; two have 96. Two ranks on two nodes, reduce-scatter: 8.4 +
 * 14, bus 48 x 2/1. All-reduce on 16: PAT's is not for it, a ring's 48 x 16/30. */
static void parts_of_several_nodes(void **state)
{
    (void)state;
    struct sc_nccl_price pair = choose(&h100_nodes, SC_COLLECTIVE_REDUCE_SCATTER, part(2, 1), 1e9);
    near_to("pair", pair.latency_s * 1e6, 22.4, 1e-9);
    near_to("pair", pair.bandwidth / 1e9, 96, 1e-9);
    struct sc_nccl_price twos = choose(&h100_nodes, SC_COLLECTIVE_ALL_GATHER, part(2, 2), 1e9);
    near_to("twos", twos.bandwidth / 1e9, 96.0 * 4 / 3, 1e-9);
    struct sc_nccl_price line = choose(&h100_nodes, SC_COLLECTIVE_ALL_REDUCE, part(16, 1), 8e9);
    near_to("line", line.bandwidth / 1e9, 48.0 * 16 / 30, 1e-9);
}

/* To all others over nodes: of 8 of 16 ranks' worth, each rank's own adapter of 48: S/2 / 48. */
static void all_to_all_uses_each_ranks_adapter(void **state)
{
    (void)state;
    struct sc_nccl_price far = choose(&h100_nodes, SC_COLLECTIVE_ALL_TO_ALL, whole(2), 96e6);
    near_to("far", 96e6 / far.bandwidth * 1e6, 1000, 1e-6);
    struct sc_nccl_price near = choose(&h100, SC_COLLECTIVE_ALL_TO_ALL, whole(1), 360e6);
    near_to("near", 360e6 / near.bandwidth * 1e6, 875, 1e-6);
}

/* ---- how it behaves -------------------------------------------------------------------------- */

static void check_monotone(const struct sc_hw_nccl *nccl, enum sc_collective kind, int64_t nodes)
{
    double most = 0.0;
    for (double bytes = 8; bytes < 16e9; bytes *= 1.02) {
        double us = chosen_us(nccl, kind, nodes, floor(bytes));
        if (us < (1.0 - 1e-12) * most) {
            fail_msg("kind %d, %lld nodes: %g bytes take %g us, fewer %g", (int)kind,
                     (long long)nodes, bytes, us, most);
        }
        most = fmax(most, us);
    }
}

/* More bytes never take less time. */
static void more_bytes_take_longer(void **state)
{
    (void)state;
    static const struct sc_hw_nccl *const machines[] = {&h100, &a100, &b200};
    static const enum sc_collective kinds[] = {AR, AG, SC_COLLECTIVE_BROADCAST,
                                               SC_COLLECTIVE_ALL_TO_ALL};
    static const int64_t nodes[] = {1, 1, 1, 2, 3, 4, 16, 64};
    for (size_t m = 0; m < 8; m++) {
        for (size_t k = 0; k < 4; k++) {
            check_monotone(m < 3 ? machines[m] : &h100_nodes, kinds[k], nodes[m]);
        }
    }
}

/* Channels run as two blocks each; a block wants 512 x 64 bytes with Simple, 8 x 512 x 8 of LL. */
static void multiprocessors_held(void **state)
{
    (void)state;
    struct sc_nccl_price small = choose(&h100, AG, whole(1), 65536);
    assert_true(small.multiprocessors == 2.0); /* 65,536 / 32,768 */
    assert_true(choose(&h100, AG, whole(1), 8).multiprocessors == 1.0);
    assert_true(choose(&h100, AG, whole(1), 1e9).multiprocessors == 24.0);
    assert_true(choose(&h100, AR, whole(1), 1e9).multiprocessors == 16.0);
    assert_true(choose(&h100_nodes, AG, whole(2), 1e9).multiprocessors == 16.0);
    assert_true(choose(&h100_nodes, AG, part(2, 1), 1e9).multiprocessors == 2.0);
}

/* Twice the network: heads of 96 between two nodes reach what NVLink lets through, 8 x 40 x 0.85 x
 * 7/8 x 2 = 476; at NCCL's limit for a Hopper's usual network they would stay at 8 x 57.7. */
static void a_faster_network(void **state)
{
    (void)state;
    struct sc_hw_nccl fast = h100_nodes;
    fast.nvls_inter_bandwidth *= 2.0;
    near_to("limited", choose(&fast, AR, whole(2), 1e9).bandwidth * 30 / 16 / 1e9, 461.6, 1e-9);
    fast.network_limit_factor = 2.0;
    near_to("free", choose(&fast, AR, whole(2), 1e9).bandwidth * 30 / 16 / 1e9, 476.0, 1e-9);
}

static void efficiency_and_call(void **state)
{
    (void)state;
    struct sc_hw_nccl half = h100;
    half.efficiency = 0.5;
    half.call_s = 6e-6;
    struct sc_nccl_price price = choose(&half, AR, whole(1), 1e9);
    near_to("bandwidth", price.bandwidth / 1e9, 136.0, 1e-9);
    near_to("latency", price.latency_s * 1e6, 31.0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_of_h100),
        cmocka_unit_test(several_nodes_of_h100),
        cmocka_unit_test(other_generations),
        cmocka_unit_test(best_times_by_size),
        cmocka_unit_test(switches_by_size),
        cmocka_unit_test(who_may_use_what),
        cmocka_unit_test(parts_of_a_node),
        cmocka_unit_test(parts_of_several_nodes),
        cmocka_unit_test(all_to_all_uses_each_ranks_adapter),
        cmocka_unit_test(more_bytes_take_longer),
        cmocka_unit_test(multiprocessors_held),
        cmocka_unit_test(a_faster_network),
        cmocka_unit_test(efficiency_and_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
