/*
 * Resource instances: what the simulated ranks compete for. A class is simulated by one rank; where
 * n of its ranks share an instance (a node's memory, a switch), that rank takes n times its share.
 * Classes whose representatives share a node share the node's instances.
 */
#ifndef STEPCAST_SIM_MACHINE_H
#define STEPCAST_SIM_MACHINE_H

#include "base/array.h"
#include "base/status.h"
#include "model/hardware.h"
#include "plans/program.h"
#include "sim/price.h"

#define SC_NO_INSTANCE UINT32_MAX

struct sc_instance {
    const char *name; /* lives as long as the hardware */
    uint8_t resource; /* SC_USE_... */
    double units;     /* compute: multiprocessors that operations can hold; else 0 */
};

/* A class's view. */
struct sc_machine_class {
    uint32_t instance[SC_USE_COUNT];   /* SC_NO_INSTANCE: the machine has none */
    double multiplicity[SC_USE_COUNT]; /* ranks of the class on that instance */
    int64_t representative;            /* a rank of the class on its fullest node */
};

struct sc_machine {
    SC_ARRAY(struct sc_instance) instances;
    SC_ARRAY(struct sc_machine_class) classes;
};

/* Zeroed is empty. */
void sc_machine_free(struct sc_machine *machine);
/* Places the ranks of every class on the nodes of the hardware. */
enum sc_status sc_machine_from_hardware(const struct sc_program *program,
                                        const struct sc_hardware *hardware, struct sc_machine *out,
                                        struct sc_error *err);
/* Classes without any instance, for programs with constant prices. */
enum sc_status sc_machine_empty(const struct sc_program *program, struct sc_machine *out,
                                struct sc_error *err);
/* Adds an instance; false when out of memory. */
bool sc_machine_add(struct sc_machine *machine, const char *name, uint8_t resource, double units,
                    uint32_t *index);

#endif
