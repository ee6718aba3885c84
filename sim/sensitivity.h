/*
 * What if something took no time, or a resource were a tenth faster: the program is played again
 * with other prices. Program, memory plan and order of operations stay as they are; prices come
 * from the same function (price.h).
 *
 * Nothing forbids that a program of several streams gets slower when an operation gets faster:
 * another one may come first on a shared resource (a scheduling anomaly; R. L. Graham, Bounds on
 * multiprocessing timing anomalies, 1969). Such a result is reported as it is.
 */
#ifndef STEPCAST_SIM_SENSITIVITY_H
#define STEPCAST_SIM_SENSITIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/status.h"
#include "model/hardware.h"
#include "plans/program.h"
#include "sim/machine.h"
#include "sim/price.h"
#include "sim/work_kinds.h"

/* A resource is faster by this in `faster`. */
#define SC_SENSITIVITY_STEP 1.1

#define SC_EVERY_WORK_KIND UINT32_MAX

/* The period when the operations of one kind (or of every kind) are free: no latency, no work, no
 * units held. They still have to be issued; `issue` free: that takes no time either. */
enum sc_status sc_period_if_free(const struct sc_program *program, const struct sc_prices *prices,
                                 const struct sc_machine *machine,
                                 const struct sc_work_kinds *kinds, uint32_t kind, bool issue,
                                 double *period_us, struct sc_error *err);

/* The period when a resource (SC_USE_... or SC_USE_ISSUE) is so many times as fast; INFINITY: free.
 */
enum sc_status sc_period_if_faster(const struct sc_program *program,
                                   const struct sc_hardware *hardware,
                                   const struct sc_machine *machine, int resource, double times,
                                   double *period_us, struct sc_error *err);

struct sc_what_if {
    const char *name; /* of a kind of work or a resource; lives as long as those do */
    bool resource;    /* else a kind of work */
    uint32_t number;  /* of the work kind; of a resource: SC_USE_... or SC_USE_ISSUE */
    double period_us; /* then */
    double gain_us;   /* how much less; negative: a scheduling anomaly */
};

struct sc_sensitivity {
    SC_ARRAY(struct sc_what_if) free;   /* kinds of work and resources, largest gain first */
    SC_ARRAY(struct sc_what_if) faster; /* resources a tenth faster, likewise */
};

/* Tries every kind of work that the program has and every resource that its prices use, against
 * `period_us`. `out` is freed with sc_sensitivity_free. */
enum sc_status sc_sensitivity_of(const struct sc_program *program,
                                 const struct sc_hardware *hardware,
                                 const struct sc_machine *machine, const struct sc_prices *prices,
                                 const struct sc_work_kinds *kinds, double period_us,
                                 struct sc_sensitivity *out, struct sc_error *err);
/* Zeroed is empty. */
void sc_sensitivity_free(struct sc_sensitivity *sensitivity);

#endif
