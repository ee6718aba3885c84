/*
 * What each operation of a program costs. One function, sc_price_op, gives the latency, the amounts
 * of work on resources, the units held and what bounds it alone; the engine, the bounds, search and
 * explain all read the same prices (sim/price.c; the table of them: sim/prices.c).
 *
 * Amounts are kept relative: `work_us` is the time of the work phase alone, `share` the part of one
 * resource instance that it takes meanwhile (1: all of it).
 */
#ifndef STEPCAST_SIM_PRICE_H
#define STEPCAST_SIM_PRICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/status.h"
#include "model/cost.h"
#include "model/hardware.h"
#include "plans/program.h"

/* Resources as a rank sees them; sim/machine.h says which instance that is. */
enum {
    SC_USE_COMPUTE, /* the device's units */
    SC_USE_MEMORY,  /* the device's memory bandwidth */
    SC_USE_HOST_MEMORY,
    SC_USE_DISK,
    SC_USE_LINK, /* + index of the link in the profile */
    SC_USE_COUNT = SC_USE_LINK + SC_HW_LINKS_MAX
};

enum { SC_PRICE_USES = 5 };

struct sc_price_use {
    uint8_t resource; /* SC_USE_... */
    double share;     /* of one instance, at full speed, by one rank; > 0 */
};

struct sc_price {
    double latency_us; /* uses no resource that is shared */
    double work_us;    /* after it; alone */
    struct sc_price_use use[SC_PRICE_USES];
    uint8_t uses;
    double held_units; /* of the device's multiprocessors, from start to end */
    double weight;     /* in sharing; 1 */
    /* It runs so many times longer while operations with `computes` run on the same rank; >= 1. */
    double slowdown_beside_compute;
    bool computes;
    double issue_us;   /* time of the issuing host thread */
    double wait_us;    /* how long it takes to notice the end of what it stood waiting for */
    double flops;      /* as the hardware does them (recomputation included) */
    const char *bound; /* alone: "compute", "memory", a link's name, "latency", "host", ... */
};

/* A price with nothing in it but a duration; for tests and constant models. */
struct sc_price sc_price_constant(double latency_us, const char *bound);

struct sc_class_prices {
    uint32_t *of_op; /* [ops of the step list] index into sc_prices.table */
    size_t ops;
};

struct sc_prices {
    SC_ARRAY(struct sc_price) table; /* distinct prices */
    SC_ARRAY(struct sc_class_prices) classes;
};

/* Zeroed is empty. */
void sc_prices_free(struct sc_prices *prices);
/* One of_op array a class, all entries 0; the table stays empty. For prices made by hand. */
enum sc_status sc_prices_begin(const struct sc_program *program, struct sc_prices *out,
                               struct sc_error *err);
/* Appends to the table; false when out of memory. */
bool sc_prices_add(struct sc_prices *prices, const struct sc_price *price, uint32_t *index);

static inline const struct sc_price *sc_price_of(const struct sc_prices *prices,
                                                 uint32_t class_index, uint32_t op)
{
    return &prices->table.items[prices->classes.items[class_index].of_op[op]];
}

/* What prices depend on beside the operation: where the groups of each class sit on the machine. A
 * group whose members sit differently from class member to class member (some inside a node, some
 * across) is priced by the slowest. */
struct sc_pricing;

/* `program` and `hardware` must outlive it, and the hardware the prices. */
enum sc_status sc_pricing_create(const struct sc_program *program,
                                 const struct sc_hardware *hardware, struct sc_pricing **out,
                                 struct sc_error *err);
/* Accepts NULL; sets *pricing NULL. */
void sc_pricing_destroy(struct sc_pricing **pricing);
/* Most nodes that a group of the class touches (1: inside a node); *uneven: its groups differ. */
int64_t sc_pricing_nodes(const struct sc_pricing *pricing, uint32_t class_index, uint32_t group,
                         bool *uneven);

/* What if: from now on this resource (SC_USE_..., or SC_USE_ISSUE: the issuing host thread) is so
 * many times as fast as the hardware has it; INFINITY: what is done on it takes no time there, and
 * transfers over such a link have no latency either. */
enum { SC_USE_ISSUE = SC_USE_COUNT, SC_USE_SPEEDS };
void sc_pricing_set_speed(struct sc_pricing *pricing, int resource, double times);

/* Share of a kind's arithmetic that belongs to the model: the rest is computed again or masked. */
double sc_price_model_share(enum sc_op_kind kind);

/* The price of one operation of a class's step list. */
enum sc_status sc_price_op(const struct sc_pricing *pricing, uint32_t class_index,
                           const struct sc_op *op, struct sc_price *out, struct sc_error *err);
/* Prices every operation; segments with a signature seen before are copied, equal prices stand in
 * the table once. */
enum sc_status sc_price_program(const struct sc_pricing *pricing, struct sc_prices *out,
                                struct sc_error *err);

#endif
