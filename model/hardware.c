/* Hardware profiles: finding and changing one, dividing cores among ranks, looking things up. */
#include "model/hardware.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hardware_scale.h"
#include "model/shipped.h"

#define PREFIX "hw."
#define LINKS PREFIX "links."

/* ---- loading ---- */

static enum sc_status apply_set(struct sc_json_doc *doc, const char *setting, struct sc_error *err)
{
    if (strncmp(setting, PREFIX, strlen(PREFIX)) != 0) {
        return SC_OK;
    }
    const char *equals = strchr(setting, '=');
    if (equals == NULL) {
        return sc_fail(err, SC_USAGE, "--set %s: expected path=value", setting);
    }
    const char *start = setting + strlen(PREFIX);
    char *path = strndup(start, (size_t)(equals - start));
    if (path == NULL) {
        return sc_fail_memory(err, strlen(setting));
    }
    enum sc_status status = sc_json_set(doc, path, equals + 1, err);
    free(path);
    return status;
}

/* The profile as the file has it, where a setting changes a link. One that is only complete with
 * its settings has no "before". */
static bool read_stated(const struct sc_json_doc *doc, const char *const *set, int set_count,
                        struct sc_hardware *out)
{
    struct sc_error ignored = SC_ERROR_INIT;
    struct sc_json root = sc_json_root(doc);
    for (int i = 0; i < set_count; i++) {
        if (strncmp(set[i], LINKS, strlen(LINKS)) == 0) {
            return sc_hardware_parse(&root, out, &ignored) == SC_OK;
        }
    }
    return false;
}

static enum sc_status load_file(const char *file, const char *const *set, int set_count,
                                struct sc_hardware *out, struct sc_error *err)
{
    struct sc_json_doc doc;
    struct sc_hardware stated;
    SC_TRY(sc_json_read(file, &doc, err));
    bool follows = read_stated(&doc, set, set_count, &stated);
    enum sc_status status = SC_OK;
    for (int i = 0; i < set_count && status == SC_OK; i++) {
        status = apply_set(&doc, set[i], err);
    }
    if (status == SC_OK) {
        struct sc_json root = sc_json_root(&doc);
        status = sc_hardware_parse(&root, out, err);
    }
    if (status == SC_OK && follows) {
        sc_hardware_follow_links(&stated, out);
    }
    sc_json_doc_free(&doc);
    return status;
}

enum sc_status sc_hardware_load(const char *name_or_file, const char *relative_to,
                                const char *const *set, int set_count, struct sc_hardware *out,
                                struct sc_error *err)
{
    char file[SC_PATH_SIZE];
    SC_TRY(sc_shipped_resolve(SC_SHIPPED_HARDWARE, "hardware profile", name_or_file, relative_to,
                              file, sizeof(file), err));
    return load_file(file, set, set_count, out, err);
}

void sc_hardware_free(struct sc_hardware *hardware)
{
    memset(hardware, 0, sizeof(*hardware));
}

struct list_call {
    sc_hardware_fn each;
    void *context;
};

static enum sc_status list_one(void *context, const char *name, const char *file,
                               struct sc_error *err)
{
    const struct list_call *call = context;
    struct sc_hardware hardware;
    SC_TRY(load_file(file, NULL, 0, &hardware, err));
    return call->each(call->context, name, &hardware, err);
}

enum sc_status sc_hardware_list(sc_hardware_fn each, void *context, struct sc_error *err)
{
    struct list_call call = {each, context};
    return sc_shipped_list(SC_SHIPPED_HARDWARE, list_one, &call, err);
}

/* ---- cores among ranks ---- */

/* Efficiency of so many cores (1 or more), between whole numbers by a straight line, beyond the
 * last entry as the last one; of less than a core as of one. */
static double parallel_efficiency(const struct sc_hardware *hardware, double cores)
{
    const double *entry = hardware->device.parallel_efficiency;
    int count = hardware->device.parallel_efficiency_count;
    if (count == 0) {
        return 1.0;
    }
    double place = fmin(fmax(cores - 1.0, 0.0), (double)(count - 1));
    int below = (int)place;
    int above = below + 1 < count ? below + 1 : below;
    return entry[below] + (entry[above] - entry[below]) * (place - below);
}

static void divide_cores(struct sc_hardware *hardware, int64_t ranks)
{
    double cores = (double)hardware->node.cores / (double)ranks;
    double draw = hardware->device.core_memory_bandwidth * cores;
    double whole = hardware->device.memory_bandwidth;
    hardware->node.devices = ranks;
    hardware->device.multiprocessors = cores;
    hardware->device.units_speed = cores * parallel_efficiency(hardware, cores);
    hardware->device.memory_draw = draw > 0.0 ? fmin(draw, whole) : whole;
}

enum sc_status sc_hardware_divide(struct sc_hardware *hardware, int64_t ranks, struct sc_error *err)
{
    bool cores = hardware->device.kind == SC_CORES;
    int64_t most = cores ? SC_HW_DEVICES_MAX : hardware->node.devices;
    if (ranks < 1 || ranks > most) {
        return sc_fail(err, SC_BAD_INPUT,
                       "hardware %s: found %lld ranks on a node, expected 1 to %lld",
                       hardware->name, (long long)ranks, (long long)most);
    }
    hardware->device.units_speed = 1.0;
    hardware->device.memory_draw = hardware->device.memory_bandwidth;
    if (cores) {
        divide_cores(hardware, ranks);
    }
    for (int i = 0; i < SC_PEAK_COUNT; i++) {
        hardware->device.peak[i] = hardware->device.stated_peak[i] * hardware->device.units_speed;
    }
    return SC_OK;
}

double sc_hardware_capacity(const struct sc_hardware *hardware, enum sc_hw_place place)
{
    const struct sc_hw_place_info *info = &hardware->places[place];
    if (!info->present) {
        return 0.0;
    }
    double sharers = info->per == SC_PER_NODE ? (double)hardware->node.devices : 1.0;
    return info->capacity_bytes / sharers;
}

/* ---- looking up ---- */

static bool carries(const struct sc_hw_link *link, const char *transport)
{
    return link->level > 0 &&
           (link->transport[0] == '\0' || strcmp(link->transport, transport) == 0);
}

enum sc_status sc_hardware_use_transport(struct sc_hardware *hardware, const char *transport,
                                         struct sc_error *err)
{
    char known[SC_HW_LINKS_MAX * (SC_HW_NAME_SIZE + 2)] = "";
    for (int i = 0; i < hardware->link_count; i++) {
        const struct sc_hw_link *link = &hardware->links[i];
        if (carries(link, transport) && strlen(transport) < sizeof(hardware->transport)) {
            memmove(hardware->transport, transport, strlen(transport) + 1);
            return SC_OK;
        }
        if (link->transport[0] != '\0') {
            size_t used = strlen(known);
            snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                     link->transport);
        }
    }
    return sc_fail(err, SC_BAD_INPUT,
                   "hardware %s: found no link of transport \"%.60s\", expected %.300s",
                   hardware->name, transport, known[0] != '\0' ? known : "a link with a level");
}

enum sc_hw_peak sc_hardware_peak_of(enum sc_dtype dtype)
{
    static const enum sc_hw_peak peaks[SC_DTYPE_COUNT] = {
        [SC_FP32] = SC_PEAK_FP32,  [SC_BF16] = SC_PEAK_BF16, [SC_FP16] = SC_PEAK_FP16,
        [SC_INT32] = SC_PEAK_FP32, [SC_INT8] = SC_PEAK_INT8, [SC_UINT8] = SC_PEAK_INT8,
    };
    return peaks[dtype];
}

const struct sc_hw_link *sc_hardware_link(const struct sc_hardware *hardware, const char *name)
{
    for (int i = 0; i < hardware->link_count; i++) {
        if (strcmp(hardware->links[i].name, name) == 0) {
            return &hardware->links[i];
        }
    }
    return NULL;
}

const struct sc_hw_kind *sc_hardware_kind(const struct sc_hardware *hardware, const char *kind)
{
    for (int i = 0; i < hardware->compute.kind_count; i++) {
        if (strcmp(hardware->compute.kinds[i].name, kind) == 0) {
            return &hardware->compute.kinds[i];
        }
    }
    return NULL;
}

int sc_hardware_host_link(const struct sc_hardware *hardware)
{
    for (int i = 0; i < hardware->link_count; i++) {
        if (hardware->links[i].to_host) {
            return i;
        }
    }
    return -1;
}
