/* Bus bandwidths that follow the bandwidth of their link. */
#include "model/hardware_scale.h"

#include <math.h>
#include <string.h>

static void follow(double factor, double limit, double stated, double *bus)
{
    if (*bus == stated) {
        *bus = fmin(stated * factor, fmax(stated, limit));
    }
}

/* The level inside a node that a level between nodes stands on, by transport; NULL: none. */
static const struct sc_hw_level *inside(const struct sc_hardware *hardware, const char *transport)
{
    for (int i = 0; i < hardware->level_count; i++) {
        const struct sc_hw_link *link = &hardware->links[hardware->levels[i].link];
        if (link->level == 1 &&
            (link->transport[0] == '\0' || strcmp(link->transport, transport) == 0)) {
            return &hardware->levels[i];
        }
    }
    return NULL;
}

static double ring_total(const struct sc_hw_level *level)
{
    return level->has_nccl ? (double)level->nccl.ring_channels * level->nccl.ring_bandwidth
                           : level->other.bus_bandwidth;
}

/* Channels keep their number; all of them together reach no more than a ring inside the node. What
 * NVLS reaches inside the node limits NVLSTree in any case. */
static void follow_nccl(const struct sc_hw_nccl *stated, double factor,
                        const struct sc_hw_level *limit, struct sc_hw_nccl *nccl)
{
    double total = limit ? ring_total(limit) : INFINITY;
    double rings = (double)nccl->ring_channels, trees = (double)nccl->tree_channels;
    follow(factor, total / rings, stated->ring_bandwidth, &nccl->ring_bandwidth);
    follow(factor, trees > 0.0 ? total / trees : INFINITY, stated->tree_bandwidth,
           &nccl->tree_bandwidth);
    follow(factor, INFINITY, stated->nvls_inter_bandwidth, &nccl->nvls_inter_bandwidth);
    follow(fmax(factor, 1.0), INFINITY, stated->network_limit_factor, &nccl->network_limit_factor);
    if (limit == NULL) {
        follow(factor, INFINITY, stated->nvls_bandwidth, &nccl->nvls_bandwidth);
    }
}

static void follow_level(const struct sc_hw_level *stated, double factor,
                         const struct sc_hw_level *limit, struct sc_hw_level *level)
{
    double all_reduce = limit ? limit->all_reduce.bus_bandwidth : INFINITY;
    double other = limit ? limit->other.bus_bandwidth : INFINITY;
    if (level->has_nccl && stated->has_nccl) {
        follow_nccl(&stated->nccl, factor, limit, &level->nccl);
    }
    follow(factor, all_reduce, stated->all_reduce.bus_bandwidth, &level->all_reduce.bus_bandwidth);
    follow(factor, other, stated->other.bus_bandwidth, &level->other.bus_bandwidth);
    for (int i = 0; i < level->variant_count && i < stated->variant_count; i++) {
        const struct sc_hw_variant *before = &stated->variants[i];
        struct sc_hw_variant *variant = &level->variants[i];
        follow(factor, all_reduce, before->all_reduce.bus_bandwidth,
               &variant->all_reduce.bus_bandwidth);
        follow(factor, other, before->other.bus_bandwidth, &variant->other.bus_bandwidth);
    }
}

void sc_hardware_follow_links(const struct sc_hardware *stated, struct sc_hardware *hardware)
{
    for (int i = 0; i < hardware->level_count && i < stated->level_count; i++) {
        struct sc_hw_level *level = &hardware->levels[i];
        const struct sc_hw_link *link = &hardware->links[level->link];
        const struct sc_hw_link *before = sc_hardware_link(stated, link->name);
        if (before != NULL && strcmp(level->name, stated->levels[i].name) == 0 &&
            link->bandwidth != before->bandwidth) {
            follow_level(&stated->levels[i], link->bandwidth / before->bandwidth,
                         link->level == 2 ? inside(hardware, link->transport) : NULL, level);
        }
    }
}
