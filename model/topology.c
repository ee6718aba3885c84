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

/* Nodes that the group touches and the fewest members on one of them. Ascending ranks (the usual
 * case) stand in runs of one node. */
struct spread {
    int64_t nodes, thinnest;
};

static bool ascending(const int64_t *ranks, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        if (ranks[i] < ranks[i - 1]) {
            return false;
        }
    }
    return true;
}

static void add_node(struct spread *spread, int64_t members)
{
    spread->nodes++;
    spread->thinnest = members < spread->thinnest ? members : spread->thinnest;
}

static struct spread spread_ascending(const struct sc_hardware *hardware, const int64_t *ranks,
                                      int64_t count)
{
    struct spread out = {0, count};
    int64_t first = 0;
    for (int64_t i = 1; i <= count; i++) {
        if (i == count ||
            sc_topology_node(hardware, ranks[i]) != sc_topology_node(hardware, ranks[first])) {
            add_node(&out, i - first);
            first = i;
        }
    }
    return out;
}

static struct spread spread_any(const struct sc_hardware *hardware, const int64_t *ranks,
                                int64_t count)
{
    struct spread out = {0, count};
    for (int64_t i = 0; i < count; i++) {
        int64_t node = sc_topology_node(hardware, ranks[i]), members = 0;
        bool first = true;
        for (int64_t j = 0; j < count; j++) {
            bool here = sc_topology_node(hardware, ranks[j]) == node;
            members += here;
            first = first && !(here && j < i);
        }
        if (first) {
            add_node(&out, members);
        }
    }
    return out;
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
    struct spread spread = ascending(ranks, count) ? spread_ascending(hardware, ranks, count)
                                                   : spread_any(hardware, ranks, count);
    struct sc_group_place place = {count, spread.nodes, spread.thinnest, -1, 1.0};
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
