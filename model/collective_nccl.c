/* NCCL's cost model: its tables, then latency and bandwidth of each algorithm. Inside this file
 * times are microseconds and bandwidths GB/s, as the tables are. */
#include "model/collective_nccl.h"

#include <math.h>
#include <stdint.h>

#include "base/units.h"

enum { ONE_NODE, TWO_NODES, MORE_NODES, SIZE_COUNT }; /* columns that depend on the node count */

/* ---- constants of src/graph/tuning.cc -------------------------------------------------------- */

typedef double by_protocol[SC_NCCL_PROTOCOL_COUNT]; /* LL, LL128, Simple */

static const by_protocol base_us[SC_NCCL_ALGORITHM_COUNT] = {
    [SC_NCCL_RING] = {6.6, 14.0, 8.4},
    [SC_NCCL_TREE] = {6.8, 14.0, 8.4},
    [SC_NCCL_PAT] = {8.0, 8.0, 8.0},
};
/* One step inside a node, by what it goes over. */
static const by_protocol intra_us[SC_HW_INTRA_COUNT][SC_NCCL_ALGORITHM_COUNT] = {
    [SC_HW_INTRA_NVLINK] = {[SC_NCCL_RING] = {0.6, 1.9, 3.4},
                            [SC_NCCL_TREE] = {0.6, 1.25, 4.0},
                            [SC_NCCL_NVLS] = {0.0, 0.0, 25.0},
                            [SC_NCCL_NVLS_TREE] = {0.0, 0.0, 25.0},
                            [SC_NCCL_PAT] = {0.0, 0.0, 4.0}},
    [SC_HW_INTRA_PCI] = {[SC_NCCL_RING] = {1.0, 2.5, 5.7},
                         [SC_NCCL_TREE] = {1.0, 1.9, 4.0},
                         [SC_NCCL_PAT] = {0.0, 0.0, 4.0}},
};
/* One step between nodes. */
static const by_protocol network_us[SC_NCCL_ALGORITHM_COUNT] = {
    [SC_NCCL_RING] = {2.7, 4.0, 14.0}, [SC_NCCL_TREE] = {5.0, 8.5, 14.0},
    [SC_NCCL_NVLS] = {0.0, 0.0, 18.0}, [SC_NCCL_NVLS_TREE] = {0.0, 0.0, 20.9},
    [SC_NCCL_PAT] = {0.0, 0.0, 14.0},
};
/* Of a ring over nodes, a step at least; three times as much with Simple. */
static const double network_overhead_us[SC_HW_CPU_COUNT] = {[SC_HW_INTEL] = 1.0, [SC_HW_AMD] = 2.0};

/* GB/s; LL of all channels together, the others of one channel. */
static const struct limits {
    double ll_in_node, ring_ll128, tree_ll128[SIZE_COUNT], tree[SIZE_COUNT], nvls_tree[SIZE_COUNT];
    double nvls_efficiency; /* 0: no NVLS */
} limits[SC_HW_GENERATION_COUNT] = {
    [SC_HW_VOLTA] = {39.0, 20.0, {20.0, 20.0, 20.0}, {26.5, 18.5, 10.0}, {26.5, 18.5, 10.0}, 0.0},
    [SC_HW_AMPERE] = {87.7, 20.0, {20.0, 20.0, 20.0}, {24.0, 23.6, 17.8}, {24.0, 23.6, 17.8}, 0.0},
    [SC_HW_HOPPER] = {141.0, 36.7, {36.7, 36.7, 29.0}, {38.7, 41.4, 36.0}, {0.0, 57.7, 45.5}, 0.85},
    [SC_HW_BLACKWELL] =
        {282.0, 40.0, {55.6, 31.67, 20.0}, {70.0, 42.8, 24.0}, {0.0, 96.0, 80.0}, 0.74},
};
/* LL of a group over nodes. */
static const double ll_across_nodes[SC_HW_CPU_COUNT][SIZE_COUNT] = {
    [SC_HW_INTEL] = {0.0, 39.0, 20.4}, [SC_HW_AMD] = {0.0, 22.5, 19.0}};

/* Share of a tree's bandwidth that a tensor of 64 x 2^i bytes reaches; outside the table 1. */
enum { TREE_SIZES = 23, NVLS_TREE_SIZES = 24 };
static const double tree_share[SC_NCCL_PROTOCOL_COUNT][NVLS_TREE_SIZES] = {
    [SC_NCCL_LL] = {1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
                    0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
    [SC_NCCL_LL128] = {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
                       0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
    [SC_NCCL_SIMPLE] = {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
                        0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9},
};

/* Threads of a block and the bytes a thread that make another block worth while. */
static const struct block {
    double threads, bytes_per_thread;
} blocks[SC_NCCL_PROTOCOL_COUNT] = {
    [SC_NCCL_LL] = {512, 8}, [SC_NCCL_LL128] = {640, 8}, [SC_NCCL_SIMPLE] = {512, 64}};
#define NVLS_THREADS 640.0
/* A channel that the search finds is run as two (NVIDIA on nccl issues 524 and 1041). */
#define BLOCKS_PER_CHANNEL 2.0
#define NVLS_MEMBERS 5 /* NVLS helps from five members on */

/* ---- a call ---------------------------------------------------------------------------------- */

struct call {
    const struct sc_hw_nccl *nccl;
    const struct sc_group_place *group;
    enum sc_collective kind;
    double bytes;
    double ranks, nodes, per_node;
    double steps, node_steps; /* of a ring, all and between nodes */
    int size;                 /* ONE_NODE, ... */
};

static struct call describe(const struct sc_hw_nccl *nccl, enum sc_collective kind,
                            const struct sc_group_place *group, double bytes)
{
    struct call call = {.nccl = nccl, .group = group, .kind = kind, .bytes = bytes};
    double passes = kind == SC_COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0;
    call.ranks = (double)group->members;
    call.nodes = (double)group->nodes;
    call.per_node = (double)(group->members / group->nodes);
    call.steps = kind == SC_COLLECTIVE_BROADCAST ? call.ranks : passes * (call.ranks - 1.0);
    call.node_steps = passes * (call.nodes - 1.0);
    call.size = group->nodes == 1 ? ONE_NODE : group->nodes == 2 ? TWO_NODES : MORE_NODES;
    return call;
}

static bool is_gather_or_scatter(enum sc_collective kind)
{
    return kind == SC_COLLECTIVE_ALL_GATHER || kind == SC_COLLECTIVE_REDUCE_SCATTER;
}

static bool has_nvls(const struct call *call)
{
    return call->nccl->nvls_heads >= 2 && call->group->members_per_node >= NVLS_MEMBERS &&
           limits[call->nccl->generation].nvls_efficiency > 0.0;
}

static bool enabled(const struct call *call, enum sc_nccl_algorithm algorithm,
                    enum sc_nccl_protocol protocol)
{
    bool all_reduce = call->kind == SC_COLLECTIVE_ALL_REDUCE;
    bool simple = protocol == SC_NCCL_SIMPLE, tree = call->nccl->tree_channels > 0;
    bool usable = protocol != SC_NCCL_LL128 || call->nccl->intra == SC_HW_INTRA_NVLINK;
    switch (algorithm) {
    case SC_NCCL_RING:
        return usable;
    case SC_NCCL_TREE:
        return usable && tree && all_reduce;
    case SC_NCCL_NVLS:
        return simple && has_nvls(call) && call->size == ONE_NODE &&
               (all_reduce || is_gather_or_scatter(call->kind));
    case SC_NCCL_NVLS_TREE:
        return simple && has_nvls(call) && call->size != ONE_NODE && all_reduce;
    case SC_NCCL_PAT:
        return simple && tree && call->size != ONE_NODE &&
               call->group->members == call->group->nodes && is_gather_or_scatter(call->kind);
    case SC_NCCL_ALGORITHM_COUNT:
        break;
    }
    return false;
}

/* ---- latency --------------------------------------------------------------------------------- */

static double intra(const struct call *call, enum sc_nccl_algorithm algorithm, int protocol)
{
    return intra_us[call->nccl->intra][algorithm][protocol];
}

static double inter(const struct call *call, enum sc_nccl_algorithm algorithm, int protocol)
{
    return network_us[call->group->members == call->group->nodes ? SC_NCCL_TREE : algorithm]
                     [protocol];
}

/* floor(log2(value)); -1 below 1. */
static int whole_log2(double value)
{
    return value < 1.0 ? -1 : ilogb(value);
}

static double ring_channels(const struct call *call)
{
    return (double)call->nccl->ring_channels * call->group->share;
}

static double ring_us(const struct call *call, int protocol)
{
    double base = base_us[SC_NCCL_RING][protocol];
    double near = intra(call, SC_NCCL_RING, protocol), far = inter(call, SC_NCCL_RING, protocol);
    if (call->kind == SC_COLLECTIVE_BROADCAST) {
        return base + (call->size == ONE_NODE ? near : far);
    }
    double overhead = call->size == ONE_NODE ? 0.0 : network_overhead_us[call->nccl->cpu];
    overhead *= protocol == SC_NCCL_SIMPLE ? 3.0 : 1.0;
    double sum =
        base + (call->steps - call->node_steps) * fmax(near, overhead) + call->node_steps * far;
    bool slow_start = protocol == SC_NCCL_SIMPLE && call->size != ONE_NODE &&
                      call->kind == SC_COLLECTIVE_ALL_REDUCE &&
                      call->bytes >= 64.0 * ring_channels(call) * call->ranks;
    double factor = call->nccl->generation < SC_HW_AMPERE ? 1.9 : 1.4;
    return slow_start ? sum * factor : sum;
}

static double latency_us(const struct call *call, enum sc_nccl_algorithm algorithm, int protocol)
{
    double base = base_us[algorithm][protocol], log_nodes = whole_log2(call->nodes);
    double near = intra(call, algorithm, protocol);
    double far = inter(call, algorithm, protocol);
    switch (algorithm) {
    case SC_NCCL_RING:
        return ring_us(call, protocol);
    case SC_NCCL_TREE:
        return base + 2.0 * ((call->per_node - 1.0) * near + log_nodes * far);
    case SC_NCCL_NVLS:
        return near;
    case SC_NCCL_NVLS_TREE:
        return base + near + 2.0 * log_nodes * far;
    case SC_NCCL_PAT:
        return base + log_nodes * far / 3.5 + 2.8 * call->ranks;
    case SC_NCCL_ALGORITHM_COUNT:
        break;
    }
    return base;
}

/* ---- bandwidth ------------------------------------------------------------------------------- */

static double ll_limit(const struct call *call)
{
    return call->size == ONE_NODE ? limits[call->nccl->generation].ll_in_node
                                  : ll_across_nodes[call->nccl->cpu][call->size];
}

static double ring_bus(const struct call *call, int protocol)
{
    double channels = ring_channels(call), bus = channels * call->nccl->ring_bandwidth / SC_GIGA;
    if (protocol == SC_NCCL_LL) {
        return fmin(ll_limit(call), 0.5 * bus);
    }
    double most = channels * limits[call->nccl->generation].ring_ll128;
    return protocol == SC_NCCL_LL128 ? fmin(0.92 * bus, most) : bus;
}

static double network_factor(const struct call *call)
{
    return call->size == ONE_NODE ? 1.0 : call->nccl->network_limit_factor;
}

static double tree_bus(const struct call *call, int protocol)
{
    const struct limits *limit = &limits[call->nccl->generation];
    double channels = (double)call->nccl->tree_channels * call->group->share;
    double most = channels * network_factor(call);
    double bus = fmin(0.92 * channels * call->nccl->tree_bandwidth / SC_GIGA,
                      most * limit->tree[call->size]);
    if (protocol == SC_NCCL_LL) {
        return fmin(bus / 3.8, ll_limit(call));
    }
    double kept = call->size == ONE_NODE ? 7.0 / 9.0 : 120.0 / 128.0;
    return protocol == SC_NCCL_LL128 ? fmin(bus * kept, most * limit->tree_ll128[call->size]) : bus;
}

/* The heads of a group that is part of a node share links that carry less of the others. */
static double head_factor(const struct call *call, double heads)
{
    return ((double)call->nccl->nvls_heads + 1.0) / (heads + 1.0);
}

static double nvls_bus(const struct call *call, bool tree)
{
    const struct limits *limit = &limits[call->nccl->generation];
    double heads = fmin((double)call->group->members_per_node, (double)call->nccl->nvls_heads);
    double near = call->nccl->nvls_bandwidth / SC_GIGA * head_factor(call, heads) *
                  limit->nvls_efficiency * (heads - 1.0) / heads;
    double far = call->nccl->nvls_inter_bandwidth / SC_GIGA;
    near *= call->kind == SC_COLLECTIVE_ALL_REDUCE ? 2.0 : (call->per_node - 1.0) / call->per_node;
    far *= call->size == ONE_NODE ? head_factor(call, heads) : 1.0;
    if (tree) {
        far *= call->size == TWO_NODES ? 2.0 : 1.0;
        far = fmin(far, limit->nvls_tree[call->size] * network_factor(call));
    }
    return heads * (far > 0.0 ? fmin(near, far) : near);
}

static double share_at(int protocol, int index, int sizes)
{
    return index >= 0 && index < sizes ? tree_share[protocol][index] : 1.0;
}

/* What of the bandwidth a tensor of this size reaches. NCCL takes the entry below; a straight line
 * to the next one keeps that, at the sizes of the table, without more bytes taking less time. */
static double size_share(const struct call *call, enum sc_nccl_algorithm algorithm, int protocol)
{
    int sizes = algorithm == SC_NCCL_TREE ? TREE_SIZES : 0;
    if (algorithm == SC_NCCL_NVLS_TREE && call->nccl->generation >= SC_HW_BLACKWELL) {
        sizes = NVLS_TREE_SIZES;
    }
    double units = call->bytes / 64.0;
    int index = whole_log2(units);
    if (index < 0 || index >= sizes) {
        return 1.0;
    }
    double here = share_at(protocol, index, sizes), next = share_at(protocol, index + 1, sizes);
    return here + (next - here) * (units / ldexp(1.0, index) - 1.0);
}

/* GB/s of the tensor's bytes. */
static double algorithm_bandwidth(const struct call *call, enum sc_nccl_algorithm algorithm,
                                  int protocol)
{
    double around = call->ranks / call->steps;
    double tree_channels = (double)call->nccl->tree_channels * call->group->share;
    switch (algorithm) {
    case SC_NCCL_RING:
        return ring_bus(call, protocol) * around;
    case SC_NCCL_TREE:
        return tree_bus(call, protocol) * 0.5;
    case SC_NCCL_NVLS:
    case SC_NCCL_NVLS_TREE:
        return nvls_bus(call, algorithm == SC_NCCL_NVLS_TREE) * around;
    case SC_NCCL_PAT:
        return 0.75 * tree_channels * call->nccl->tree_bandwidth / SC_GIGA;
    case SC_NCCL_ALGORITHM_COUNT:
        break;
    }
    return 0.0;
}

/* ---- multiprocessors ------------------------------------------------------------------------- */

static double held(const struct call *call, enum sc_nccl_algorithm algorithm, int protocol)
{
    bool nvls = algorithm == SC_NCCL_NVLS || algorithm == SC_NCCL_NVLS_TREE;
    bool ring = algorithm == SC_NCCL_RING;
    double channels = (double)(ring ? call->nccl->ring_channels : call->nccl->tree_channels);
    double most = nvls ? (double)call->nccl->nvls_multiprocessors
                       : fmax(1.0, BLOCKS_PER_CHANNEL * channels * call->group->share);
    double block = (nvls ? NVLS_THREADS : blocks[protocol].threads) *
                   blocks[protocol].bytes_per_thread *
                   (ring && protocol == SC_NCCL_LL ? call->ranks : 1.0);
    return fmin(most, fmax(1.0, floor(call->bytes / block)));
}

/* ---- public ---------------------------------------------------------------------------------- */

double sc_nccl_seconds(const struct sc_nccl_price *price, double bytes)
{
    return price->latency_s + bytes / price->bandwidth;
}

static struct sc_nccl_price priced(const struct call *call, enum sc_nccl_algorithm algorithm,
                                   enum sc_nccl_protocol protocol)
{
    double us = latency_us(call, algorithm, (int)protocol);
    double bandwidth = algorithm_bandwidth(call, algorithm, (int)protocol) *
                       size_share(call, algorithm, (int)protocol) * call->nccl->efficiency;
    return (struct sc_nccl_price){.algorithm = algorithm,
                                  .protocol = protocol,
                                  .latency_s = us / SC_US_PER_S + call->nccl->call_s,
                                  .bandwidth = bandwidth * SC_GIGA,
                                  .multiprocessors = held(call, algorithm, (int)protocol)};
}

bool sc_nccl_try(const struct sc_hw_nccl *nccl, enum sc_collective kind,
                 const struct sc_group_place *group, double bytes, enum sc_nccl_algorithm algorithm,
                 enum sc_nccl_protocol protocol, struct sc_nccl_price *out)
{
    struct call call = describe(nccl, kind, group, bytes);
    bool can = enabled(&call, algorithm, protocol);
    if (can) {
        *out = priced(&call, algorithm, protocol);
    }
    return can;
}

/* Sends to all others at once: between nodes each rank has its part of the node's adapters, and
 * (n - members a node) / n of its bytes leave the node. */
static struct sc_nccl_price all_to_all(const struct sc_hw_nccl *nccl,
                                       const struct sc_group_place *group, double bytes)
{
    struct call call = describe(nccl, SC_COLLECTIVE_ALL_GATHER, group, bytes);
    struct sc_nccl_price out = priced(&call, SC_NCCL_RING, SC_NCCL_SIMPLE);
    if (call.size != ONE_NODE) {
        double leaving = (call.ranks - call.per_node) / (call.ranks - 1.0);
        out.bandwidth /= call.per_node * leaving;
    }
    return out;
}

struct sc_nccl_price sc_nccl_choose(const struct sc_hw_nccl *nccl, enum sc_collective kind,
                                    const struct sc_group_place *group, double bytes)
{
    if (kind == SC_COLLECTIVE_ALL_TO_ALL) {
        return all_to_all(nccl, group, bytes);
    }
    struct call call = describe(nccl, kind, group, bytes);
    struct sc_nccl_price best = priced(&call, SC_NCCL_RING, SC_NCCL_SIMPLE);
    for (int i = 0; i < SC_NCCL_ALGORITHM_COUNT * SC_NCCL_PROTOCOL_COUNT; i++) {
        enum sc_nccl_algorithm algorithm = (enum sc_nccl_algorithm)(i / SC_NCCL_PROTOCOL_COUNT);
        enum sc_nccl_protocol protocol = (enum sc_nccl_protocol)(i % SC_NCCL_PROTOCOL_COUNT);
        if (!enabled(&call, algorithm, protocol)) {
            continue;
        }
        struct sc_nccl_price one = priced(&call, algorithm, protocol);
        if (sc_nccl_seconds(&one, bytes) < sc_nccl_seconds(&best, bytes)) {
            best = one;
        }
    }
    return best;
}
