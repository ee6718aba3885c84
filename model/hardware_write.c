/* Writing stepcast.hw/1 back, without sources: the mirror of hardware_read.c. */
#include <string.h>

#include "model/hardware_keys.h"

#define CONVENTION                                                                                 \
    "time = latency_us + moved bytes / bus_bandwidth, moved = S x 2(N-1)/N for all_reduce, S x "   \
    "(N-1)/N for all_gather, reduce_scatter, all_to_all; S is the whole tensor"

static bool add_by_peak(cJSON *parent, const char *name, const struct sc_key *keys,
                        const double *values)
{
    static const double absent[SC_PEAK_COUNT] = {0};
    cJSON *object = cJSON_AddObjectToObject(parent, name);
    return object != NULL && sc_keys_write(object, keys, values, absent);
}

static bool add_sections(cJSON *root, const struct sc_hardware *hardware,
                         const struct sc_hardware *neutral)
{
    for (const struct sc_hw_section *section = sc_hw_sections; section->name != NULL; section++) {
        cJSON *parent = section->parent != NULL
                            ? cJSON_GetObjectItemCaseSensitive(root, section->parent)
                            : root;
        cJSON *object = cJSON_AddObjectToObject(parent, section->name);
        if (object == NULL || !sc_keys_write(object, section->keys, hardware, neutral)) {
            return false;
        }
    }
    return true;
}

/* An optional section whose required numbers are 0 was not in the file. */
static void drop_absent(cJSON *root, const struct sc_hardware *hardware)
{
    cJSON *compute = cJSON_GetObjectItemCaseSensitive(root, "compute");
    if (hardware->compute.attention_forward_share == 0.0) {
        cJSON_DeleteItemFromObjectCaseSensitive(compute, "attention");
    }
    if (hardware->host_adam.bytes_per_parameter == 0.0) {
        cJSON_DeleteItemFromObjectCaseSensitive(root, "host_adam");
    }
    if (sc_identity_empty(&hardware->measured_on)) {
        cJSON_DeleteItemFromObjectCaseSensitive(root, "measured_on");
    }
    if (hardware->level_count == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(root, "collectives");
    }
}

static bool add_device(cJSON *root, const struct sc_hardware *hardware)
{
    cJSON *device = cJSON_GetObjectItemCaseSensitive(root, "device");
    int count = hardware->device.parallel_efficiency_count;
    if (hardware->device.kind == SC_CORES) {
        cJSON_DeleteItemFromObjectCaseSensitive(device, "multiprocessors");
    }
    if (!add_by_peak(device, "peak_tflop_per_s", sc_hw_peak_keys, hardware->device.stated_peak)) {
        return false;
    }
    if (count == 0) {
        return true;
    }
    cJSON *array = cJSON_CreateDoubleArray(hardware->device.parallel_efficiency, count);
    return array != NULL && cJSON_AddItemToObject(device, "parallel_efficiency", array);
}

static bool add_places(cJSON *root, const struct sc_hardware *hardware,
                       const struct sc_hardware *neutral)
{
    cJSON *places = cJSON_AddObjectToObject(root, "places");
    for (int i = 0; i < SC_HW_PLACE_COUNT && places != NULL; i++) {
        if (!hardware->places[i].present) {
            continue;
        }
        cJSON *object = cJSON_AddObjectToObject(places, sc_hw_place_names[i]);
        if (object == NULL || !sc_keys_write(object, sc_hw_place_keys[i], &hardware->places[i],
                                             &neutral->places[i])) {
            return false;
        }
    }
    return places != NULL;
}

static bool add_links(cJSON *root, const struct sc_hardware *hardware)
{
    cJSON *links = cJSON_AddObjectToObject(root, "links");
    for (int i = 0; i < hardware->link_count && links != NULL; i++) {
        struct sc_hw_link neutral;
        sc_hw_link_neutral(hardware->links[i].name, hardware, &neutral);
        cJSON *object = cJSON_AddObjectToObject(links, hardware->links[i].name);
        if (object == NULL ||
            !sc_keys_write(object, sc_hw_link_keys, &hardware->links[i], &neutral)) {
            return false;
        }
    }
    return links != NULL;
}

static bool add_layout_row(cJSON *layout, const struct sc_hardware *hardware, int row)
{
    int numbers[SC_HW_DEVICES_MAX];
    int count = (int)hardware->node.devices;
    for (int i = 0; i < count; i++) {
        numbers[i] = hardware->layout[row][i];
    }
    cJSON *array = cJSON_CreateIntArray(numbers, count);
    return array != NULL && cJSON_AddItemToObject(layout, sc_hw_layout_names[row], array);
}

static bool add_layout(cJSON *root, const struct sc_hardware *hardware)
{
    cJSON *layout = cJSON_AddObjectToObject(root, "device_layout");
    for (int row = 0; row < SC_LAYOUT_COUNT && layout != NULL; row++) {
        if (hardware->has_layout[row] && !add_layout_row(layout, hardware, row)) {
            return false;
        }
    }
    return layout != NULL;
}

static bool add_alpha_beta(cJSON *parent, const char *name, const struct sc_hw_alpha_beta *figures)
{
    static const struct sc_hw_alpha_beta absent;
    cJSON *object = cJSON_AddObjectToObject(parent, name);
    return object != NULL && sc_keys_write(object, sc_hw_alpha_beta_keys, figures, &absent);
}

static bool add_variant(cJSON *array, const struct sc_hw_variant *variant)
{
    struct sc_hw_variant neutral;
    sc_hw_variant_neutral(&neutral);
    cJSON *object = cJSON_CreateObject();
    if (object == NULL || !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        return false;
    }
    return sc_keys_write(object, sc_hw_variant_keys, variant, &neutral) &&
           (!variant->has_all_reduce ||
            add_alpha_beta(object, "all_reduce", &variant->all_reduce)) &&
           (!variant->has_other || add_alpha_beta(object, "other", &variant->other)) &&
           (!variant->has_held || cJSON_AddNumberToObject(object, "held_multiprocessors",
                                                          variant->held_multiprocessors) != NULL);
}

static bool add_nccl(cJSON *level, const struct sc_hw_nccl *nccl)
{
    struct sc_hw_nccl neutral;
    sc_hw_nccl_neutral(&neutral);
    cJSON *object = cJSON_AddObjectToObject(level, "nccl");
    return object != NULL && sc_keys_write(object, sc_hw_nccl_keys, nccl, &neutral);
}

static bool add_stated(cJSON *level, const char *name, const struct sc_hw_alpha_beta *figures)
{
    return !(figures->bus_bandwidth > 0.0) || add_alpha_beta(level, name, figures);
}

static bool add_level(cJSON *levels, const struct sc_hw_level *level)
{
    struct sc_hw_level neutral;
    sc_hw_level_neutral(level->name, &neutral);
    cJSON *object = cJSON_AddObjectToObject(levels, level->name);
    if (object == NULL || !add_stated(object, "all_reduce", &level->all_reduce) ||
        !add_stated(object, "other", &level->other) ||
        (level->has_nccl && !add_nccl(object, &level->nccl)) ||
        !sc_keys_write(object, sc_hw_level_keys, level, &neutral)) {
        return false;
    }
    cJSON *array = level->variant_count > 0 ? cJSON_AddArrayToObject(object, "variants") : NULL;
    for (int i = 0; i < level->variant_count; i++) {
        if (array == NULL || !add_variant(array, &level->variants[i])) {
            return false;
        }
    }
    return true;
}

static bool add_levels(cJSON *root, const struct sc_hardware *hardware)
{
    cJSON *collectives = cJSON_GetObjectItemCaseSensitive(root, "collectives");
    if (collectives == NULL) {
        return true;
    }
    cJSON *convention = cJSON_AddStringToObject(collectives, "convention", CONVENTION);
    cJSON *levels = cJSON_AddObjectToObject(collectives, "levels");
    for (int i = 0; i < hardware->level_count && levels != NULL; i++) {
        if (!add_level(levels, &hardware->levels[i])) {
            return false;
        }
    }
    return levels != NULL && convention != NULL;
}

static bool add_kinds(cJSON *bound, const struct sc_hardware *hardware)
{
    int count = hardware->compute.kind_count;
    cJSON *kinds = count > 0 ? cJSON_AddObjectToObject(bound, "kinds") : NULL;
    for (int i = 0; i < count; i++) {
        const struct sc_hw_kind *kind = &hardware->compute.kinds[i];
        struct sc_hw_kind neutral;
        sc_hw_kind_neutral(kind->name, &neutral);
        cJSON *object = kinds != NULL ? cJSON_AddObjectToObject(kinds, kind->name) : NULL;
        if (object == NULL || !sc_keys_write(object, sc_hw_kind_keys, kind, &neutral)) {
            return false;
        }
    }
    return true;
}

static bool add_tiles(cJSON *gemm, const struct sc_hardware *hardware)
{
    int count = hardware->compute.gemm_tile_count;
    cJSON *tiles = count > 0 ? cJSON_AddArrayToObject(gemm, "tiles") : NULL;
    for (int i = 0; i < count; i++) {
        const int64_t *tile = hardware->compute.gemm_tiles[i];
        const int sides[2] = {(int)tile[0], (int)tile[1]};
        cJSON *entry = cJSON_CreateIntArray(sides, 2);
        if (entry == NULL || !cJSON_AddItemToArray(tiles, entry)) {
            cJSON_Delete(entry);
            return false;
        }
    }
    return true;
}

static bool add_compute(cJSON *root, const struct sc_hardware *hardware)
{
    cJSON *compute = cJSON_GetObjectItemCaseSensitive(root, "compute");
    cJSON *gemm = cJSON_GetObjectItemCaseSensitive(compute, "gemm");
    cJSON *bound = cJSON_GetObjectItemCaseSensitive(compute, "memory_bound");
    return add_by_peak(gemm, "peak_share", sc_hw_share_keys, hardware->compute.gemm_peak_share) &&
           add_tiles(gemm, hardware) && add_kinds(bound, hardware);
}

static bool fill(cJSON *root, const struct sc_hardware *hardware)
{
    struct sc_hardware neutral;
    sc_hardware_neutral(&neutral);
    if (!cJSON_AddStringToObject(root, "schema", SC_HW_SCHEMA) ||
        !sc_keys_write(root, sc_hw_root_keys, hardware, &neutral) ||
        !add_sections(root, hardware, &neutral)) {
        return false;
    }
    drop_absent(root, hardware);
    return add_device(root, hardware) && add_places(root, hardware, &neutral) &&
           add_links(root, hardware) && add_layout(root, hardware) && add_levels(root, hardware) &&
           add_compute(root, hardware) && sc_hw_uncertainty_write(root, &hardware->uncertainty);
}

cJSON *sc_hardware_to_json(const struct sc_hardware *hardware)
{
    cJSON *root = cJSON_CreateObject();
    if (root != NULL && !fill(root, hardware)) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}
