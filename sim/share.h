/*
 * Who gets how much of a resource when several activities want it: weighted max-min sharing.
 *
 * An activity progresses at a speed x in (0, cap], cap <= 1; x = 1 is its speed alone. At speed x
 * it takes x * demand of each resource that it uses. While every resource has room for all its
 * users at their caps, everybody runs at the cap. Where one has not, the level
 *
 *     level = x * (largest demand / capacity over the activity's resources) / weight
 *
 * is raised equally for all until a resource is full or a cap is reached; those concerned stop
 * there and the others go on (progressive filling; with several resources: dominant resource
 * fairness, Ghodsi et al., NSDI 2011). On one resource that is the usual max-min share: demands of
 * 70 and 50 of 100 get 50 and 50.
 *
 * Only resources that are asked for more than they have can bind, so a change that meets none costs
 * a few additions, and else only the activities joined through such resources are worked out anew.
 */
#ifndef STEPCAST_SIM_SHARE_H
#define STEPCAST_SIM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define SC_SHARE_NONE UINT32_MAX

struct sc_share_use {
    uint32_t resource;
    double demand; /* at speed 1, in the unit of the resource's capacity; > 0 */
};

struct sc_share;

/* `activities` numbers 0 .. activities - 1 can be active at a time, each with at most `uses`
 * resources. Capacities must be > 0. */
enum sc_status sc_share_create(const double *capacity, uint32_t resources, uint32_t activities,
                               uint32_t uses, struct sc_share **out, struct sc_error *err);
/* Accepts NULL; sets *share NULL. */
void sc_share_destroy(struct sc_share **share);

/* `use` stays the caller's and must live while the activity is active; no resource twice. */
void sc_share_add(struct sc_share *share, uint32_t activity, const struct sc_share_use *use,
                  uint32_t uses, double weight, double cap);
void sc_share_remove(struct sc_share *share, uint32_t activity);
void sc_share_set_cap(struct sc_share *share, uint32_t activity, double cap);
void sc_share_set_capacity(struct sc_share *share, uint32_t resource, double capacity);

/* Works out what changed since the last call. *changed: the activities whose speed is another now,
 * among them every one added; valid until the next call. */
uint32_t sc_share_solve(struct sc_share *share, const uint32_t **changed);

/* After sc_share_solve. */
double sc_share_speed(const struct sc_share *share, uint32_t activity);
/* The resource that limits the activity; SC_SHARE_NONE: it runs at its cap. */
uint32_t sc_share_limit(const struct sc_share *share, uint32_t activity);

#endif
