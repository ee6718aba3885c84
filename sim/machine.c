/* Resource instances, see machine.h. */
#include "sim/machine.h"

#include <stdlib.h>
#include <string.h>

#include "model/topology.h"

void sc_machine_free(struct sc_machine *machine)
{
    sc_array_free(&machine->instances);
    sc_array_free(&machine->classes);
    memset(machine, 0, sizeof(*machine));
}

bool sc_machine_add(struct sc_machine *machine, const char *name, uint8_t resource, double units,
                    uint32_t *index)
{
    struct sc_instance *instance = sc_array_push(&machine->instances);
    if (instance == NULL)
        return false;
    *instance = (struct sc_instance){.name = name, .resource = resource, .units = units};
    *index = (uint32_t)(machine->instances.count - 1);
    return true;
}

enum sc_status sc_machine_empty(const struct sc_program *program, struct sc_machine *out,
                                struct sc_error *err)
{
    struct sc_machine machine;
    memset(&machine, 0, sizeof(machine));
    for (size_t c = 0; c < program->classes.count; c++) {
        struct sc_machine_class *class = sc_array_push(&machine.classes);
        if (class == NULL) {
            sc_machine_free(&machine);
            return sc_fail_memory(err, sizeof(*class));
        }
        for (int u = 0; u < SC_USE_COUNT; u++) {
            class->instance[u] = SC_NO_INSTANCE;
            class->multiplicity[u] = 1;
        }
    }
    *out = machine;
    return SC_OK;
}

/* ---- ranks on nodes ---------------------------------------------------------------------------
 */

static bool in_class(const struct sc_program *program, const struct sc_class *class, int64_t rank)
{
    int64_t coordinates[SC_AXIS_COUNT];
    sc_mesh_coordinates(&program->mesh, rank, coordinates);
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++)
        if ((class->fixed_mask & SC_AXIS_MASK(axis)) &&
            coordinates[axis] != class->coordinate[axis])
            return false;
    return true;
}

/* First rank of the class on the node that holds most of its ranks, and how many those are. */
static int64_t representative(const struct sc_program *program, uint32_t class_index,
                              const struct sc_hardware *hardware, int64_t *on_node)
{
    const struct sc_class *class = &program->classes.items[class_index];
    int64_t best = 0, best_count = 0, first = 0, count = 0, node = -1;
    if (class->fixed_mask == 0) { /* every rank: the first node is as full as any */
        int64_t devices = hardware->node.devices;
        *on_node = program->mesh.ranks < devices ? program->mesh.ranks : devices;
        return 0;
    }
    for (int64_t rank = 0; rank < program->mesh.ranks; rank++) {
        if (!in_class(program, class, rank))
            continue;
        if (sc_topology_node(hardware, rank) != node) {
            node = sc_topology_node(hardware, rank);
            first = rank;
            count = 0;
        }
        if (++count > best_count) {
            best = first;
            best_count = count;
        }
    }
    *on_node = best_count > 0 ? best_count : 1;
    return best;
}

/* ---- instances --------------------------------------------------------------------------------
 */

struct placing {
    const struct sc_program *program;
    const struct sc_hardware *hardware;
    struct sc_machine *machine;
    int64_t *node;    /* a class: of its representative */
    int64_t *on_node; /* a class: ranks there */
};

/* An instance that earlier classes on the same node have, or a new one. */
static bool place_on_node(struct placing *p, uint32_t c, uint8_t resource, const char *name,
                          double units)
{
    struct sc_machine_class *class = &p->machine->classes.items[c];
    for (uint32_t d = 0; d < c; d++) {
        uint32_t other = p->machine->classes.items[d].instance[resource];
        if (p->node[d] == p->node[c] && other != SC_NO_INSTANCE) {
            class->instance[resource] = other;
            return true;
        }
    }
    return sc_machine_add(p->machine, name, resource, units, &class->instance[resource]);
}

/* `per` device: an instance of its own; a node with `count` instances: its ranks divide them. */
static bool place(struct placing *p, uint32_t c, uint8_t resource, const char *name,
                  enum sc_hw_per per, int64_t count, double units)
{
    struct sc_machine_class *class = &p->machine->classes.items[c];
    if (per == SC_PER_DEVICE && count >= p->hardware->node.devices)
        return sc_machine_add(p->machine, name, resource, units, &class->instance[resource]);
    double share = (double)p->on_node[c] / (double)(count > 0 ? count : 1);
    class->multiplicity[resource] = share > 1 ? share : 1;
    return place_on_node(p, c, resource, name, units);
}

static bool place_class(struct placing *p, uint32_t c)
{
    const struct sc_hardware *hardware = p->hardware;
    const struct sc_hw_place_info *device = &hardware->places[SC_HW_DEVICE];
    int64_t devices = hardware->node.devices;
    bool ok = place(p, c, SC_USE_COMPUTE, "compute", SC_PER_DEVICE, devices,
                    hardware->device.multiprocessors);
    ok = ok && place(p, c, SC_USE_MEMORY, "memory", device->per,
                     device->per == SC_PER_DEVICE ? devices : 1, 0);
    ok = ok && place(p, c, SC_USE_HOST_MEMORY, "host", SC_PER_NODE, 1, 0);
    ok = ok && place(p, c, SC_USE_DISK, "disk", hardware->places[SC_HW_DISK].per, 1, 0);
    for (int l = 0; ok && l < hardware->link_count; l++) {
        const struct sc_hw_link *link = &hardware->links[l];
        ok = place(p, c, (uint8_t)(SC_USE_LINK + l), link->name, link->per, link->count, 0);
    }
    return ok;
}

enum sc_status sc_machine_from_hardware(const struct sc_program *program,
                                        const struct sc_hardware *hardware, struct sc_machine *out,
                                        struct sc_error *err)
{
    struct sc_machine machine;
    SC_TRY(sc_machine_empty(program, &machine, err));
    size_t classes = program->classes.count;
    int64_t *numbers = calloc(2 * classes + 1, sizeof(*numbers));
    bool ok = numbers != NULL;
    struct placing p = {program, hardware, &machine, numbers, numbers + (ok ? classes : 0)};
    for (uint32_t c = 0; ok && c < classes; c++) {
        int64_t rank = representative(program, c, hardware, &p.on_node[c]);
        machine.classes.items[c].representative = rank;
        p.node[c] = sc_topology_node(hardware, rank);
        ok = place_class(&p, c);
    }
    free(numbers);
    if (!ok) {
        sc_machine_free(&machine);
        return sc_fail_memory(err, sizeof(struct sc_instance));
    }
    *out = machine;
    return SC_OK;
}
