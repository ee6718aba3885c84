/*
 * Collectives by the profile's convention (alpha-beta with the bus bandwidth of nccl-tests):
 *     time = latency + moved / bus_bandwidth,
 *     moved = S 2 (N - 1) / N for all_reduce, S (N - 1) / N for the others, S for broadcast;
 * or by NCCL's own model where the level has one (model/collective_nccl.h) and states no figures
 * for this kind: a variant that contains the group and size goes first, then the level's figures.
 * S is the whole tensor (all_gather: the gathered one; reduce_scatter: the unreduced one). A group
 * that spans nodes is priced by the highest level with N its whole size; with r of a node's devices
 * in it, it gets r / devices of that level's bandwidth. An exchange moves S over one instance of
 * the level's link. A group of one costs nothing.
 */
#ifndef STEPCAST_MODEL_COST_COLLECTIVE_H
#define STEPCAST_MODEL_COST_COLLECTIVE_H

#include "base/status.h"
#include "model/cost.h"
#include "model/hardware.h"
#include "model/topology.h"

enum sc_collective {
    SC_COLLECTIVE_ALL_REDUCE,
    SC_COLLECTIVE_REDUCE_SCATTER,
    SC_COLLECTIVE_ALL_GATHER,
    SC_COLLECTIVE_ALL_TO_ALL,
    SC_COLLECTIVE_BROADCAST,
    SC_COLLECTIVE_EXCHANGE, /* `bytes` is what one rank sends to one other */
    SC_COLLECTIVE_COUNT
};

/* Bytes on the wire a rank, in the sense of the convention. */
double sc_collective_moved(enum sc_collective kind, int64_t members, double bytes);
void sc_cost_collective(const struct sc_hardware *hardware, enum sc_collective kind, double bytes,
                        const struct sc_group_place *group, struct sc_cost *out);

#endif
