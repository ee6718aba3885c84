/* Roofline arithmetic on one cost. */
#include "model/cost.h"

#include <string.h>

void sc_cost_clear(struct sc_cost *cost)
{
    memset(cost, 0, sizeof(*cost));
    cost->link = -1;
    cost->slowdown_beside_compute = 1.0;
    cost->bound = "latency";
}

static double use_seconds(const struct sc_cost_use *use)
{
    return use->amount > 0.0 ? use->amount / use->rate : 0.0;
}

double sc_cost_seconds(const struct sc_cost *cost)
{
    double longest = 0.0;
    for (int i = 0; i < SC_COST_RESOURCE_COUNT; i++) {
        double seconds = use_seconds(&cost->use[i]);
        longest = seconds > longest ? seconds : longest;
    }
    return cost->latency_s + longest;
}

void sc_cost_set_bound(const struct sc_hardware *hardware, struct sc_cost *cost)
{
    static const char *const names[SC_COST_RESOURCE_COUNT] = {"compute", "memory", "link", "host",
                                                              "disk"};
    double longest = cost->latency_s;
    cost->bound = "latency";
    for (int i = 0; i < SC_COST_RESOURCE_COUNT; i++) {
        double seconds = use_seconds(&cost->use[i]);
        if (seconds > longest) {
            bool link = i == SC_COST_LINK && cost->link >= 0;
            longest = seconds;
            cost->bound = link ? hardware->links[cost->link].name : names[i];
        }
    }
}
