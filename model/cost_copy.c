/* Copies: which link, which memories, which disk rate, from a table of place pairs. */
#include "model/cost_copy.h"

/* What a copy from one place to another uses; host and pinned are the same memory. */
enum crossing { SAME_DEVICE, SAME_HOST, DEVICE_HOST, HOST_DISK, DEVICE_DISK, SAME_DISK };

static enum crossing crossing_of(enum sc_hw_place from, enum sc_hw_place to)
{
    static const enum crossing table[SC_HW_PLACE_COUNT][SC_HW_PLACE_COUNT] = {
        [SC_HW_DEVICE] = {SAME_DEVICE, DEVICE_HOST, DEVICE_HOST, DEVICE_DISK},
        [SC_HW_PINNED] = {DEVICE_HOST, SAME_HOST, SAME_HOST, HOST_DISK},
        [SC_HW_HOST] = {DEVICE_HOST, SAME_HOST, SAME_HOST, HOST_DISK},
        [SC_HW_DISK] = {DEVICE_DISK, HOST_DISK, HOST_DISK, SAME_DISK},
    };
    return table[from][to];
}

static enum sc_status need_place(const struct sc_hardware *hardware, enum sc_hw_place place,
                                 struct sc_error *err)
{
    return hardware->places[place].present
               ? SC_OK
               : sc_fail(err, SC_BAD_INPUT,
                         "hardware %s: places.%s: found nothing, expected an object",
                         hardware->name, sc_hw_place_names[place]);
}

static void use(struct sc_cost *cost, enum sc_cost_resource resource, double amount, double rate)
{
    cost->use[resource].amount = amount;
    cost->use[resource].rate = rate;
}

static void use_device_memory(const struct sc_hardware *hardware, double bytes,
                              struct sc_cost *cost)
{
    use(cost, SC_COST_MEMORY, bytes, hardware->device.memory_draw);
}

/* On cores host memory is the device's; a profile without a host bandwidth says nothing of it. */
static void use_host_memory(const struct sc_hardware *hardware, double bytes, struct sc_cost *cost)
{
    double bandwidth = hardware->places[SC_HW_HOST].bandwidth;
    if (hardware->device.kind == SC_CORES) {
        cost->use[SC_COST_MEMORY].amount += bytes;
        cost->use[SC_COST_MEMORY].rate =
            hardware->device.memory_draw * hardware->compute.memory_bound_share;
    } else if (bandwidth > 0.0) {
        use(cost, SC_COST_HOST_MEMORY, bytes, bandwidth);
    }
}

static enum sc_status cross_host_link(const struct sc_hardware *hardware, bool pinned, double bytes,
                                      struct sc_cost *cost, struct sc_error *err)
{
    int index = sc_hardware_host_link(hardware);
    if (index < 0) {
        return sc_fail(err, SC_BAD_INPUT,
                       "hardware %s: links: found none between device and host, expected \"pcie\" "
                       "or one with to_host true",
                       hardware->name);
    }
    const struct sc_hw_link *link = &hardware->links[index];
    use(cost, SC_COST_LINK, bytes, link->bandwidth * (pinned ? 1.0 : link->pageable_share));
    cost->latency_s += link->latency_s;
    cost->link = index;
    return SC_OK;
}

static enum sc_status price_device_host(const struct sc_hardware *hardware, bool pinned,
                                        double bytes, struct sc_cost *cost, struct sc_error *err)
{
    if (hardware->device.kind == SC_CORES && sc_hardware_host_link(hardware) < 0) {
        cost->latency_s = hardware->compute.memory_bound_fixed_s;
        use_host_memory(hardware, 2.0 * bytes, cost);
        return SC_OK;
    }
    SC_TRY(cross_host_link(hardware, pinned, bytes, cost, err));
    use_device_memory(hardware, bytes, cost);
    use_host_memory(hardware, bytes, cost);
    return SC_OK;
}

static enum sc_status price_disk(const struct sc_hardware *hardware, bool reads, double bytes,
                                 struct sc_cost *cost, struct sc_error *err)
{
    const struct sc_hw_place_info *disk = &hardware->places[SC_HW_DISK];
    SC_TRY(need_place(hardware, SC_HW_DISK, err));
    use(cost, SC_COST_DISK, bytes, reads ? disk->read_bandwidth : disk->write_bandwidth);
    use_host_memory(hardware, bytes, cost);
    return SC_OK;
}

static void price_same(const struct sc_hardware *hardware, enum crossing crossing, double bytes,
                       struct sc_cost *cost)
{
    cost->latency_s = hardware->compute.memory_bound_fixed_s;
    if (crossing == SAME_DEVICE) {
        use(cost, SC_COST_MEMORY, 2.0 * bytes,
            hardware->device.memory_draw * hardware->compute.memory_bound_share);
    } else {
        use_host_memory(hardware, 2.0 * bytes, cost);
    }
}

static enum sc_status price(const struct sc_hardware *hardware, enum sc_hw_place from,
                            enum sc_hw_place to, double bytes, struct sc_cost *cost,
                            struct sc_error *err)
{
    bool pinned = from == SC_HW_PINNED || to == SC_HW_PINNED;
    bool reads = from == SC_HW_DISK;
    enum crossing crossing = crossing_of(from, to);
    switch (crossing) {
    case SAME_DEVICE:
    case SAME_HOST:
        price_same(hardware, crossing, bytes, cost);
        return SC_OK;
    case DEVICE_HOST:
        return price_device_host(hardware, pinned, bytes, cost, err);
    case HOST_DISK:
        return price_disk(hardware, reads, bytes, cost, err);
    case DEVICE_DISK:
        SC_TRY(price_disk(hardware, reads, bytes, cost, err));
        return price_device_host(hardware, true, bytes, cost, err);
    case SAME_DISK:
        break;
    }
    return sc_fail(err, SC_BUG, "a copy from disk to disk has no price");
}

enum sc_status sc_cost_copy(const struct sc_hardware *hardware, enum sc_hw_place from,
                            enum sc_hw_place to, double bytes, struct sc_cost *out,
                            struct sc_error *err)
{
    struct sc_cost cost;
    sc_cost_clear(&cost);
    SC_TRY(price(hardware, from, to, bytes, &cost, err));
    sc_cost_set_bound(hardware, &cost);
    *out = cost;
    return SC_OK;
}
