/* Ranks to nodes, groups to the level of links that joins them. */
#include "model/topology.h"

#include <string.h>

int64_t sc_topology_node(const struct sc_hardware *hardware, int64_t rank)
{
    return rank / hardware->node.devices;
}

int64_t sc_topology_device(const struct sc_hardware *hardware, int64_t rank)
{
    return rank % hardware->node.devices;
}

int64_t sc_topology_nodes(const struct sc_hardware *hardware, int64_t ranks)
{
    return (ranks + hardware->node.devices - 1) / hardware->node.devices;
}

int sc_topology_instance(const struct sc_hardware *hardware, enum sc_hw_layout row, int64_t rank)
{
    return hardware->has_layout[row] ? hardware->layout[row][sc_topology_device(hardware, rank)]
                                     : 0;
}

/* Members of the group on the node of its member `index`; *first: no earlier member is there. */
static int64_t count_on_node(const struct sc_hardware *hardware, const int64_t *ranks,
                             int64_t count, int64_t index, bool *first)
{
    int64_t node = sc_topology_node(hardware, ranks[index]);
    int64_t members = 0;
    *first = true;
    for (int64_t i = 0; i < count; i++) {
        bool here = sc_topology_node(hardware, ranks[i]) == node;
        members += here;
        *first = *first && !(here && i < index);
    }
    return members;
}

static bool usable(const struct sc_hardware *hardware, const struct sc_hw_level *level)
{
    const char *transport = hardware->links[level->link].transport;
    return transport[0] == '\0' || hardware->transport[0] == '\0' ||
           strcmp(transport, hardware->transport) == 0;
}

/* The lowest usable level that reaches far enough: links between nodes also join one node's
 * devices where the profile has nothing nearer. */
static int find_level(const struct sc_hardware *hardware, int64_t nodes)
{
    int64_t needed = nodes > 1 ? 2 : 1;
    int found = -1;
    for (int i = 0; i < hardware->level_count; i++) {
        int64_t level = hardware->links[hardware->levels[i].link].level;
        bool nearer = found < 0 || level < hardware->links[hardware->levels[found].link].level;
        if (level >= needed && nearer && usable(hardware, &hardware->levels[i])) {
            found = i;
        }
    }
    return found;
}

enum sc_status sc_topology_group(const struct sc_hardware *hardware, const int64_t *ranks,
                                 int64_t count, struct sc_group_place *out, struct sc_error *err)
{
    struct sc_group_place place = {
        .members = count, .members_per_node = count, .level = -1, .share = 1.0};
    for (int64_t i = 0; i < count; i++) {
        bool first = false;
        int64_t here = count_on_node(hardware, ranks, count, i, &first);
        place.nodes += first;
        place.members_per_node = here < place.members_per_node ? here : place.members_per_node;
    }
    if (count > 1) {
        place.level = find_level(hardware, place.nodes);
        if (place.level < 0) {
            return sc_fail(err, SC_BAD_INPUT,
                           "hardware %s: collectives.levels: found none that joins %lld ranks on "
                           "%lld nodes, expected one with a link of level %d",
                           hardware->name, (long long)count, (long long)place.nodes,
                           place.nodes > 1 ? 2 : 1);
        }
    }
    if (place.nodes > 1) {
        place.share = (double)place.members_per_node / (double)hardware->node.devices;
    }
    *out = place;
    return SC_OK;
}
