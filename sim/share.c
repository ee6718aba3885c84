/* Weighted max-min sharing by progressive filling, see share.h. */
#include "sim/share.h"

#include <stdlib.h>
#include <string.h>

/* Relative slack of comparisons: sums of a few doubles. */
#define SLACK 1e-12

struct node { /* one use of an active activity, in its resource's list */
    uint32_t next, previous, activity;
};

struct resource {
    double capacity, nominal; /* nominal: as created; levels are measured by it */
    double load;              /* sum of demand * cap of the users */
    double left, slope;       /* while filling */
    uint32_t users;           /* first node of the list */
    bool dirty, visited;
};

struct activity {
    const struct sc_share_use *use;
    uint32_t uses;
    double weight, cap, speed;
    double per_level; /* speed at level 1 */
    double before;    /* speed when the last solve ended */
    uint32_t limit;
    bool active, listed, visited, frozen;
};

struct sc_share {
    uint32_t resource_count, activity_count, uses_max;
    struct resource *resources;
    struct activity *activities;
    struct node *nodes; /* [activity_count * uses_max] */
    uint32_t *dirty, dirty_count;
    uint32_t *listed, listed_count;   /* activities to report */
    uint32_t *members, member_count;  /* component: activities ... */
    uint32_t *reached, reached_count; /* ... and resources */
    uint32_t *changed;
};

enum sc_status sc_share_create(const double *capacity, uint32_t resources, uint32_t activities,
                               uint32_t uses, struct sc_share **out, struct sc_error *err)
{
    struct sc_share *share = calloc(1, sizeof(*share));
    if (share == NULL)
        return sc_fail_memory(err, sizeof(*share));
    share->resource_count = resources;
    share->activity_count = activities;
    share->uses_max = uses > 0 ? uses : 1;
    size_t node_count = (size_t)activities * share->uses_max;
    share->resources = calloc(resources + 1u, sizeof(*share->resources));
    share->activities = calloc(activities + 1u, sizeof(*share->activities));
    share->nodes = calloc(node_count + 1, sizeof(*share->nodes));
    share->dirty = calloc(resources + 1u, sizeof(uint32_t));
    share->reached = calloc(resources + 1u, sizeof(uint32_t));
    share->listed = calloc(activities + 1u, sizeof(uint32_t));
    share->members = calloc(activities + 1u, sizeof(uint32_t));
    share->changed = calloc(activities + 1u, sizeof(uint32_t));
    if (!share->resources || !share->activities || !share->nodes || !share->dirty ||
        !share->reached || !share->listed || !share->members || !share->changed) {
        sc_share_destroy(&share);
        return sc_fail_memory(err, node_count * sizeof(struct node));
    }
    for (uint32_t r = 0; r < resources; r++) {
        share->resources[r].capacity = share->resources[r].nominal = capacity[r];
        share->resources[r].users = SC_SHARE_NONE;
    }
    *out = share;
    return SC_OK;
}

void sc_share_destroy(struct sc_share **share)
{
    struct sc_share *s = *share;
    if (s == NULL)
        return;
    free(s->resources);
    free(s->activities);
    free(s->nodes);
    free(s->dirty);
    free(s->reached);
    free(s->listed);
    free(s->members);
    free(s->changed);
    free(s);
    *share = NULL;
}

static bool overloaded(const struct resource *resource)
{
    return resource->load > resource->capacity * (1 + SLACK);
}

static void mark_dirty(struct sc_share *share, uint32_t r)
{
    if (share->resources[r].dirty)
        return;
    share->resources[r].dirty = true;
    share->dirty[share->dirty_count++] = r;
}

static void list_activity(struct sc_share *share, uint32_t a)
{
    if (share->activities[a].listed)
        return;
    share->activities[a].listed = true;
    share->listed[share->listed_count++] = a;
}

static double demand_of(const struct sc_share *share, uint32_t node)
{
    const struct activity *activity = &share->activities[share->nodes[node].activity];
    return activity->use[node % share->uses_max].demand;
}

/* Summed anew from the list, so that rounding does not pile up over millions of events. */
static void update_load(struct sc_share *share, uint32_t r)
{
    struct resource *resource = &share->resources[r];
    bool before = overloaded(resource);
    resource->load = 0;
    for (uint32_t n = resource->users; n != SC_SHARE_NONE; n = share->nodes[n].next)
        resource->load += demand_of(share, n) * share->activities[share->nodes[n].activity].cap;
    if (before || overloaded(resource))
        mark_dirty(share, r);
}

static void link_node(struct sc_share *share, uint32_t r, uint32_t n, uint32_t a)
{
    struct resource *resource = &share->resources[r];
    share->nodes[n] =
        (struct node){.next = resource->users, .previous = SC_SHARE_NONE, .activity = a};
    if (resource->users != SC_SHARE_NONE)
        share->nodes[resource->users].previous = n;
    resource->users = n;
}

static void unlink_node(struct sc_share *share, uint32_t r, uint32_t n)
{
    struct node *node = &share->nodes[n];
    if (node->previous != SC_SHARE_NONE)
        share->nodes[node->previous].next = node->next;
    else
        share->resources[r].users = node->next;
    if (node->next != SC_SHARE_NONE)
        share->nodes[node->next].previous = node->previous;
}

static double dominant(const struct sc_share *share, const struct activity *activity)
{
    double most = 0;
    for (uint32_t u = 0; u < activity->uses; u++) {
        double part = activity->use[u].demand / share->resources[activity->use[u].resource].nominal;
        if (part > most)
            most = part;
    }
    return most;
}

void sc_share_add(struct sc_share *share, uint32_t a, const struct sc_share_use *use, uint32_t uses,
                  double weight, double cap)
{
    struct activity *activity = &share->activities[a];
    activity->use = use;
    activity->uses = uses;
    activity->weight = weight;
    activity->cap = activity->speed = cap;
    activity->before = -1; /* new: reported whatever its speed */
    activity->limit = SC_SHARE_NONE;
    activity->active = true;
    list_activity(share, a);
    for (uint32_t u = 0; u < uses; u++)
        link_node(share, use[u].resource, a * share->uses_max + u, a);
    for (uint32_t u = 0; u < uses; u++)
        update_load(share, use[u].resource);
}

void sc_share_remove(struct sc_share *share, uint32_t a)
{
    struct activity *activity = &share->activities[a];
    activity->active = false;
    for (uint32_t u = 0; u < activity->uses; u++)
        unlink_node(share, activity->use[u].resource, a * share->uses_max + u);
    for (uint32_t u = 0; u < activity->uses; u++)
        update_load(share, activity->use[u].resource);
}

void sc_share_set_cap(struct sc_share *share, uint32_t a, double cap)
{
    struct activity *activity = &share->activities[a];
    if (activity->cap == cap)
        return;
    activity->cap = cap;
    if (activity->limit == SC_SHARE_NONE || activity->speed > cap)
        activity->speed = cap;
    list_activity(share, a);
    for (uint32_t u = 0; u < activity->uses; u++)
        update_load(share, activity->use[u].resource);
}

void sc_share_set_capacity(struct sc_share *share, uint32_t r, double capacity)
{
    struct resource *resource = &share->resources[r];
    bool before = overloaded(resource);
    resource->capacity = capacity;
    if (before || overloaded(resource))
        mark_dirty(share, r);
}

/* ---- filling ------------------------------------------------------------------------------- */

static void reach(struct sc_share *share, uint32_t r)
{
    struct resource *resource = &share->resources[r];
    if (resource->visited)
        return;
    resource->visited = true;
    share->reached[share->reached_count++] = r;
}

static void join(struct sc_share *share, uint32_t a)
{
    struct activity *activity = &share->activities[a];
    if (activity->visited)
        return;
    activity->visited = true;
    share->members[share->member_count++] = a;
    for (uint32_t u = 0; u < activity->uses; u++)
        if (overloaded(&share->resources[activity->use[u].resource]))
            reach(share, activity->use[u].resource);
}

/* Everything joined to r through overloaded resources. */
static void gather(struct sc_share *share, uint32_t r)
{
    share->member_count = 0;
    share->reached_count = 0;
    reach(share, r);
    for (uint32_t i = 0; i < share->reached_count; i++)
        for (uint32_t n = share->resources[share->reached[i]].users; n != SC_SHARE_NONE;
             n = share->nodes[n].next)
            join(share, share->nodes[n].activity);
}

static void begin_filling(struct sc_share *share)
{
    for (uint32_t i = 0; i < share->reached_count; i++) {
        struct resource *resource = &share->resources[share->reached[i]];
        resource->left = resource->capacity;
        resource->slope = 0;
    }
    for (uint32_t i = 0; i < share->member_count; i++) {
        struct activity *activity = &share->activities[share->members[i]];
        activity->frozen = false;
        activity->per_level = activity->weight / dominant(share, activity);
        for (uint32_t u = 0; u < activity->uses; u++)
            share->resources[activity->use[u].resource].slope +=
                activity->use[u].demand * activity->per_level;
    }
}

static void freeze(struct sc_share *share, struct activity *activity, double speed, uint32_t limit)
{
    activity->frozen = true;
    activity->speed = speed;
    activity->limit = limit;
    for (uint32_t u = 0; u < activity->uses; u++) {
        struct resource *resource = &share->resources[activity->use[u].resource];
        resource->left -= activity->use[u].demand * speed;
        resource->slope -= activity->use[u].demand * activity->per_level;
    }
}

/* The lowest level at which a reached resource is full; *at is that resource. */
static double lowest_full(const struct sc_share *share, uint32_t *at)
{
    double lowest = -1;
    for (uint32_t i = 0; i < share->reached_count; i++) {
        const struct resource *resource = &share->resources[share->reached[i]];
        if (!(resource->slope > SLACK * resource->capacity))
            continue;
        double left = resource->left > 0 ? resource->left : 0;
        double level = left / resource->slope;
        if (lowest < 0 || level < lowest) {
            lowest = level;
            *at = share->reached[i];
        }
    }
    return lowest;
}

/* Freezes those whose cap is not above the level; how many. */
static uint32_t freeze_capped(struct sc_share *share, double level)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < share->member_count; i++) {
        struct activity *activity = &share->activities[share->members[i]];
        if (activity->frozen)
            continue;
        if (level >= 0 && activity->cap > level * activity->per_level * (1 + SLACK))
            continue;
        freeze(share, activity, activity->cap, SC_SHARE_NONE);
        count++;
    }
    return count;
}

static uint32_t freeze_users(struct sc_share *share, uint32_t r, double level)
{
    uint32_t count = 0;
    for (uint32_t n = share->resources[r].users; n != SC_SHARE_NONE; n = share->nodes[n].next) {
        struct activity *activity = &share->activities[share->nodes[n].activity];
        if (activity->frozen)
            continue;
        freeze(share, activity, level * activity->per_level, r);
        count++;
    }
    share->resources[r].slope = 0;
    return count;
}

/* Freezing at a cap below the level never lowers the level of a resource, so all caps below the
 * lowest full resource may stop at once. */
static void fill(struct sc_share *share)
{
    begin_filling(share);
    uint32_t open = share->member_count;
    while (open > 0) {
        uint32_t at = SC_SHARE_NONE;
        double level = lowest_full(share, &at);
        uint32_t frozen = freeze_capped(share, level);
        if (frozen == 0)
            frozen = freeze_users(share, at, level);
        open -= frozen;
    }
    for (uint32_t i = 0; i < share->member_count; i++)
        list_activity(share, share->members[i]);
}

static void clear_component(struct sc_share *share)
{
    for (uint32_t i = 0; i < share->member_count; i++)
        share->activities[share->members[i]].visited = false;
    for (uint32_t i = 0; i < share->reached_count; i++) {
        struct resource *resource = &share->resources[share->reached[i]];
        resource->visited = resource->dirty = false;
    }
}

uint32_t sc_share_solve(struct sc_share *share, const uint32_t **changed)
{
    for (uint32_t i = 0; i < share->dirty_count; i++) {
        if (!share->resources[share->dirty[i]].dirty)
            continue; /* part of a component worked out before */
        gather(share, share->dirty[i]);
        fill(share);
        clear_component(share);
    }
    share->dirty_count = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < share->listed_count; i++) {
        struct activity *activity = &share->activities[share->listed[i]];
        activity->listed = false;
        if (!activity->active || activity->speed == activity->before)
            continue;
        activity->before = activity->speed;
        share->changed[count++] = share->listed[i];
    }
    share->listed_count = 0;
    *changed = share->changed;
    return count;
}

double sc_share_speed(const struct sc_share *share, uint32_t activity)
{
    return share->activities[activity].speed;
}

uint32_t sc_share_limit(const struct sc_share *share, uint32_t activity)
{
    return share->activities[activity].limit;
}
