/* Where ranks sit, and what joins a group of them. Ranks fill the devices of nodes in order. */
#ifndef STEPCAST_MODEL_TOPOLOGY_H
#define STEPCAST_MODEL_TOPOLOGY_H

#include <stdint.h>

#include "base/status.h"
#include "model/hardware.h"

struct sc_group_place {
    int64_t members;
    int64_t nodes;            /* that the group touches */
    int64_t members_per_node; /* the fewest in any of those nodes: the group's width */
    int level;                /* index into hardware->levels; -1: a group of one, nothing moves */
    double share;             /* of the level's bandwidth: members_per_node / devices across nodes,
                                 1 inside one */
};

int64_t sc_topology_node(const struct sc_hardware *hardware, int64_t rank);
int64_t sc_topology_device(const struct sc_hardware *hardware, int64_t rank);
/* Nodes that so many ranks need. */
int64_t sc_topology_nodes(const struct sc_hardware *hardware, int64_t ranks);
/* Instance, within its node, of a row of device_layout on which the rank's device hangs; 0 where
 * the profile does not say. */
int sc_topology_instance(const struct sc_hardware *hardware, enum sc_hw_layout row, int64_t rank);
/* Places a group of distinct ranks (ascending or not). Fails when the profile has no collective
 * level between them. */
enum sc_status sc_topology_group(const struct sc_hardware *hardware, const int64_t *ranks,
                                 int64_t count, struct sc_group_place *out, struct sc_error *err);

#endif
