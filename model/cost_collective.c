/* Collectives: the level's figures, what a variant changes, and the alpha-beta sum. */
#include "model/cost_collective.h"

#include <math.h>

#include "model/collective_nccl.h"

struct figures {
    struct sc_hw_alpha_beta alpha_beta; /* bus bandwidth 0: none stated */
    double held;                        /* negative: not stated */
};

double sc_collective_moved(enum sc_collective kind, int64_t members, double bytes)
{
    double n = (double)members;
    if (members < 2) {
        return 0.0;
    }
    switch (kind) {
    case SC_COLLECTIVE_ALL_REDUCE:
        return bytes * 2.0 * (n - 1.0) / n;
    case SC_COLLECTIVE_REDUCE_SCATTER:
    case SC_COLLECTIVE_ALL_GATHER:
    case SC_COLLECTIVE_ALL_TO_ALL:
        return bytes * (n - 1.0) / n;
    case SC_COLLECTIVE_BROADCAST:
    case SC_COLLECTIVE_EXCHANGE:
    case SC_COLLECTIVE_COUNT:
        break;
    }
    return bytes;
}

static bool contains(const struct sc_hw_variant *variant, const struct sc_group_place *group,
                     double bytes)
{
    return group->members_per_node >= variant->minimum_members_per_node &&
           group->members_per_node <= variant->maximum_members_per_node &&
           group->nodes >= variant->minimum_nodes && group->nodes <= variant->maximum_nodes &&
           bytes >= variant->minimum_bytes && bytes < variant->maximum_bytes;
}

static struct figures level_figures(const struct sc_hw_level *level, bool all_reduce,
                                    const struct sc_group_place *group, double bytes)
{
    struct figures out = {all_reduce ? level->all_reduce : level->other,
                          level->held_multiprocessors};
    for (int i = 0; i < level->variant_count; i++) {
        const struct sc_hw_variant *variant = &level->variants[i];
        bool states = all_reduce ? variant->has_all_reduce : variant->has_other;
        if (!contains(variant, group, bytes)) {
            continue;
        }
        if (states) {
            out.alpha_beta = all_reduce ? variant->all_reduce : variant->other;
        }
        out.held = variant->has_held ? variant->held_multiprocessors : out.held;
        break;
    }
    return out;
}

/* latency + what each step of a ring adds, inside a node and between nodes. */
static double latency(const struct sc_hw_alpha_beta *figures, bool all_reduce,
                      const struct sc_group_place *group)
{
    double passes = all_reduce ? 2.0 : 1.0;
    double steps = passes * (double)(group->members - 1);
    double node_steps = passes * (double)(group->nodes - 1);
    return figures->latency_s + figures->per_step_s * (steps - node_steps) +
           figures->per_node_step_s * node_steps;
}

/* A send occupies no more than the channels of a ring do. */
static double exchange_held(const struct sc_hw_level *level, const struct sc_group_place *group,
                            double bytes)
{
    struct sc_nccl_price price;
    sc_nccl_try(&level->nccl, SC_COLLECTIVE_BROADCAST, group, bytes, SC_NCCL_RING, SC_NCCL_SIMPLE,
                &price);
    return price.multiprocessors;
}

static void price_exchange(const struct sc_hardware *hardware, const struct sc_hw_level *level,
                           double bytes, const struct sc_group_place *group, struct sc_cost *out)
{
    const struct sc_hw_link *link = &hardware->links[level->link];
    out->latency_s = link->latency_s;
    out->use[SC_COST_LINK].amount = bytes;
    out->use[SC_COST_LINK].rate = link->bandwidth;
    out->held_units = level->held_multiprocessors;
    if (!(level->held_multiprocessors >= 0.0)) {
        out->held_units = level->has_nccl ? exchange_held(level, group, bytes) : 0.0;
    }
}

static void price_collective(const struct sc_hw_level *level, enum sc_collective kind, double bytes,
                             const struct sc_group_place *group, struct sc_cost *out)
{
    bool all_reduce = kind == SC_COLLECTIVE_ALL_REDUCE;
    struct figures figures = level_figures(level, all_reduce, group, bytes);
    double moved = sc_collective_moved(kind, group->members, bytes);
    out->use[SC_COST_LINK].amount = moved;
    if (level->has_nccl) {
        struct sc_nccl_price price = sc_nccl_choose(&level->nccl, kind, group, bytes);
        out->latency_s = price.latency_s;
        out->use[SC_COST_LINK].rate =
            price.bandwidth * sc_collective_moved(kind, group->members, 1.0);
        out->held_units = price.multiprocessors;
    }
    if (figures.alpha_beta.bus_bandwidth > 0.0) {
        out->latency_s = latency(&figures.alpha_beta, all_reduce, group);
        out->use[SC_COST_LINK].rate = figures.alpha_beta.bus_bandwidth * group->share;
    }
    out->held_units = figures.held >= 0.0 ? figures.held : out->held_units;
}

static void add_memory(const struct sc_hardware *hardware, const struct sc_hw_level *level,
                       struct sc_cost *out)
{
    out->use[SC_COST_MEMORY].amount = out->use[SC_COST_LINK].amount * level->memory_bytes_per_byte;
    out->use[SC_COST_MEMORY].rate = hardware->device.memory_draw;
}

void sc_cost_collective(const struct sc_hardware *hardware, enum sc_collective kind, double bytes,
                        const struct sc_group_place *group, struct sc_cost *out)
{
    sc_cost_clear(out);
    if (group->level < 0 || group->members < 2) {
        return;
    }
    const struct sc_hw_level *level = &hardware->levels[group->level];
    if (kind == SC_COLLECTIVE_EXCHANGE) {
        price_exchange(hardware, level, bytes, group, out);
    } else {
        price_collective(level, kind, bytes, group, out);
    }
    out->link = level->link;
    out->slowdown_beside_compute = level->slowdown_beside_compute;
    if (hardware->device.kind == SC_CORES) {
        out->held_units *= fmin(hardware->device.multiprocessors, 1.0);
    }
    add_memory(hardware, level, out);
    sc_cost_set_bound(hardware, out);
}
