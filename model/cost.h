/*
 * What one operation costs when nothing else runs: a fixed latency that uses nothing, then amounts
 * of work on resources that proceed together. The slowest of them bounds it (roofline): alone =
 * latency_s + max over resources of amount / rate. The simulator divides resources among operations
 * that run together; the amounts stay.
 */
#ifndef STEPCAST_MODEL_COST_H
#define STEPCAST_MODEL_COST_H

#include "model/hardware.h"

enum sc_cost_resource {
    SC_COST_COMPUTE,     /* the device's units: FLOP, or elements where a kind is bound by them */
    SC_COST_MEMORY,      /* the device's memory: bytes read and written */
    SC_COST_LINK,        /* bytes on one link, in one direction */
    SC_COST_HOST_MEMORY, /* the host's memory: bytes read and written */
    SC_COST_DISK,        /* bytes */
    SC_COST_RESOURCE_COUNT
};

struct sc_cost_use {
    double amount; /* 0: not used */
    double rate;   /* amount a second that the operation reaches alone; > 0 where amount > 0 */
};

struct sc_cost {
    double latency_s;
    struct sc_cost_use use[SC_COST_RESOURCE_COUNT];
    int link;          /* index into hardware->links of SC_COST_LINK; -1: none */
    double held_units; /* of device.multiprocessors, while it runs */
    /* How much longer it takes while the device computes (collectives on cores); else 1. */
    double slowdown_beside_compute;
    /* What bounds it alone: "compute", "memory", "host", "disk", "latency" or the link's name (a
     * string that lives as long as the hardware). */
    const char *bound;
};

/* Nothing used, bound "latency". */
void sc_cost_clear(struct sc_cost *cost);
/* latency_s + the longest amount / rate. */
double sc_cost_seconds(const struct sc_cost *cost);
/* Sets cost->bound from the amounts. */
void sc_cost_set_bound(const struct sc_hardware *hardware, struct sc_cost *cost);

#endif
