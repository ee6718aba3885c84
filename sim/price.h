/*
 * What each operation of a program costs. One function, sc_price_op, gives the latency, the amounts
 * of work on resources, the units held and what bounds it alone; the engine, the bounds, search and
 * explain all read the same prices.
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

/* Price of one operation of a class's step list. Strings point into `hardware` or are constant. */
enum sc_status sc_price_op(const struct sc_program *program, uint32_t class_index,
                           const struct sc_op *op, const struct sc_hardware *hardware,
                           struct sc_price *out, struct sc_error *err);
/* Prices every operation; segments of a signature seen before are copied. `hardware` must outlive
 * the result. */
enum sc_status sc_price_program(const struct sc_program *program,
                                const struct sc_hardware *hardware, struct sc_prices *out,
                                struct sc_error *err);

#endif
