/*
 * What NCCL expects a collective to take, by its own cost model (nccl src/graph/tuning.cc,
 * search.cc, topo.h, transport/nvls.cc), and so which algorithm and protocol it picks: time =
 * latency(algorithm, protocol) + bytes / bandwidth(algorithm, protocol), the least of all that the
 * group may use. `bytes` is the whole tensor (all_gather: the gathered one). Latencies and the
 * limits of a generation are NCCL's constants and stand as tables in collective_nccl.c; what its
 * search finds on a machine (channels, their bandwidth) is the profile's (struct sc_hw_nccl).
 *
 * Who may use what: tree: all_reduce. NVLS (in a node), NVLSTree (between nodes): more than four
 * members a node, Hopper or later, Simple only; in a node all_gather and reduce_scatter too. PAT:
 * all_gather, reduce_scatter with one rank a node. Ring: all. LL128: NVLink in the node. CollNet
 * and NVLS over several nodes need a network that reduces and are left out.
 *
 * Part of a node: inside one, a ring keeps all channels; of NVLS, g members are g heads, and since
 * each link carries its own head's traffic twice and once every other's, a head of g gets
 * (heads + 1) / (g + 1) of what it gets in a whole node (with the published figures of an H100
 * node: 408, 437, 459, 476 GB/s of bus bandwidth for 5 to 8 members; NVIDIA states 420, 440, 460,
 * 480). Between nodes, a group with r of a node's devices sees r / devices of the channels
 * (adapters).
 */
#ifndef STEPCAST_MODEL_COLLECTIVE_NCCL_H
#define STEPCAST_MODEL_COLLECTIVE_NCCL_H

#include <stdbool.h>

#include "model/cost_collective.h"
#include "model/hardware.h"
#include "model/topology.h"

enum sc_nccl_algorithm {
    SC_NCCL_RING,
    SC_NCCL_TREE,
    SC_NCCL_NVLS,
    SC_NCCL_NVLS_TREE,
    SC_NCCL_PAT,
    SC_NCCL_ALGORITHM_COUNT
};

enum sc_nccl_protocol { SC_NCCL_LL, SC_NCCL_LL128, SC_NCCL_SIMPLE, SC_NCCL_PROTOCOL_COUNT };

struct sc_nccl_price {
    enum sc_nccl_algorithm algorithm;
    enum sc_nccl_protocol protocol;
    double latency_s;
    double bandwidth;       /* bytes of the tensor a second ("algorithm bandwidth") */
    double multiprocessors; /* held while it runs: one a block; few bytes use fewer blocks */
};

/* One algorithm with one protocol, for a group of two or more; false: this group cannot use it.
 * `kind` is any but all_to_all and exchange, which have no algorithm. */
bool sc_nccl_try(const struct sc_hw_nccl *nccl, enum sc_collective kind,
                 const struct sc_group_place *group, double bytes, enum sc_nccl_algorithm algorithm,
                 enum sc_nccl_protocol protocol, struct sc_nccl_price *out);
/* The least of those; all_to_all: n - 1 sends at a ring's latency, each rank over its own part of
 * the links. */
struct sc_nccl_price sc_nccl_choose(const struct sc_hw_nccl *nccl, enum sc_collective kind,
                                    const struct sc_group_place *group, double bytes);
double sc_nccl_seconds(const struct sc_nccl_price *price, double bytes);

#endif
