/* Reading stepcast.hw/1: sections by table, then the lists by name, then what must fit together. */
#include <stdio.h>
#include <string.h>

#include "model/hardware_keys.h"

static const char *const root_others[] = {"schema",      "notes",          "node",  "device",
                                          "places",      "reserved_bytes", "links", "device_layout",
                                          "collectives", "compute",        "issue", "host_adam",
                                          "measured_on", "uncertainty",    NULL};
static const char *const level_others[] = {"all_reduce", "other", "variants", "nccl", NULL};
static const char *const variant_others[] = {"all_reduce", "other", "held_multiprocessors", NULL};

static struct sc_json member(const struct sc_json *at, const cJSON *item)
{
    return (struct sc_json){item, at, item->string, 0, at->file};
}

/* The members of an object but its "source"; NULL at the end. */
static const cJSON *next_entry(const cJSON *item)
{
    while (item != NULL && strcmp(item->string, "source") == 0) {
        item = item->next;
    }
    return item;
}

static const cJSON *first_entry(const struct sc_json *at)
{
    return next_entry(at->item->child);
}

static enum sc_status check_room(const struct sc_json *at, int count, int most,
                                 struct sc_error *err)
{
    return count < most ? SC_OK : sc_json_fail(at, err, "at most %d entries", most);
}

static enum sc_status check_entry_name(const struct sc_json *at, struct sc_error *err)
{
    size_t length = strlen(at->key);
    return length > 0 && length < SC_HW_NAME_SIZE
               ? SC_OK
               : sc_json_fail(at, err, "a name of 1 to %d bytes", SC_HW_NAME_SIZE - 1);
}

/* ---- plain sections ---- */

static enum sc_status read_section(const struct sc_json *parent,
                                   const struct sc_hw_section *section, struct sc_hardware *out,
                                   struct sc_error *err)
{
    struct sc_json at;
    if (!section->required && !sc_json_has(parent, section->name)) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(parent, section->name, &at, err));
    SC_TRY(sc_keys_check(&at, section->keys, section->others, err));
    return sc_keys_read(&at, section->keys, out, err);
}

static enum sc_status read_sections(const struct sc_json *root, struct sc_hardware *out,
                                    struct sc_error *err)
{
    for (const struct sc_hw_section *section = sc_hw_sections; section->name != NULL; section++) {
        struct sc_json parent = *root;
        if (section->parent != NULL) {
            SC_TRY(sc_json_object(root, section->parent, &parent, err));
        }
        SC_TRY(read_section(&parent, section, out, err));
    }
    return SC_OK;
}

/* ---- numbers by peak, arrays ---- */

static enum sc_status read_by_peak(const struct sc_json *root, const char *section,
                                   const char *inner, const char *name, const struct sc_key *keys,
                                   double *out, struct sc_error *err)
{
    struct sc_json outer, middle, at;
    SC_TRY(sc_json_object(root, section, &outer, err));
    middle = outer;
    if (inner != NULL) {
        SC_TRY(sc_json_object(&outer, inner, &middle, err));
    }
    SC_TRY(sc_json_object(&middle, name, &at, err));
    SC_TRY(sc_keys_check(&at, keys, NULL, err));
    if (first_entry(&at) == NULL) {
        return sc_json_fail(&at, err, "at least one of fp32, tf32, bf16, fp16, fp8, int8");
    }
    return sc_keys_read(&at, keys, out, err);
}

static enum sc_status read_parallel_efficiency(const struct sc_json *root, struct sc_hardware *out,
                                               struct sc_error *err)
{
    struct sc_json device, at, entry;
    int count = 0;
    SC_TRY(sc_json_object(root, "device", &device, err));
    if (!sc_json_has(&device, "parallel_efficiency")) {
        return SC_OK;
    }
    SC_TRY(sc_json_array(&device, "parallel_efficiency", &at, &count, err));
    SC_TRY(check_room(&at, count - 1, SC_HW_CORES_MAX, err));
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&at, i, &entry, err));
        SC_TRY(sc_json_number(&entry, NULL, 1e-6, 2.0, &out->device.parallel_efficiency[i], err));
    }
    out->device.parallel_efficiency_count = count;
    return SC_OK;
}

static enum sc_status read_tile(const struct sc_json *array, int index, int64_t tile[2],
                                struct sc_error *err)
{
    struct sc_json entry, side;
    SC_TRY(sc_json_at(array, index, &entry, err));
    if (cJSON_GetArraySize(entry.item) != 2) {
        return sc_json_fail(&entry, err, "two numbers, rows and columns");
    }
    for (int i = 0; i < 2; i++) {
        SC_TRY(sc_json_at(&entry, i, &side, err));
        SC_TRY(sc_json_int(&side, NULL, 1, 1 << 16, &tile[i], err));
    }
    return SC_OK;
}

static enum sc_status read_tiles(const struct sc_json *root, struct sc_hardware *out,
                                 struct sc_error *err)
{
    struct sc_json compute, gemm, at;
    int count = 0;
    SC_TRY(sc_json_object(root, "compute", &compute, err));
    SC_TRY(sc_json_object(&compute, "gemm", &gemm, err));
    if (!sc_json_has(&gemm, "tiles")) {
        return SC_OK;
    }
    SC_TRY(sc_json_array(&gemm, "tiles", &at, &count, err));
    SC_TRY(check_room(&at, count - 1, SC_HW_TILES_MAX, err));
    for (int i = 0; i < count; i++) {
        SC_TRY(read_tile(&at, i, out->compute.gemm_tiles[i], err));
    }
    out->compute.gemm_tile_count = count;
    return SC_OK;
}

static enum sc_status read_layout_row(const struct sc_json *layout, enum sc_hw_layout row,
                                      struct sc_hardware *out, struct sc_error *err)
{
    struct sc_json at, entry;
    int count = 0;
    int64_t value = 0;
    if (!sc_json_has(layout, sc_hw_layout_names[row])) {
        return SC_OK;
    }
    SC_TRY(sc_json_array(layout, sc_hw_layout_names[row], &at, &count, err));
    if (count != out->node.devices) {
        return sc_json_fail(&at, err, "one entry a device: node.devices is %lld",
                            (long long)out->node.devices);
    }
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&at, i, &entry, err));
        SC_TRY(sc_json_int(&entry, NULL, 0, SC_HW_DEVICES_MAX - 1, &value, err));
        out->layout[row][i] = (int32_t)value;
    }
    out->has_layout[row] = true;
    return SC_OK;
}

static enum sc_status read_layout(const struct sc_json *root, struct sc_hardware *out,
                                  struct sc_error *err)
{
    struct sc_json at;
    if (!sc_json_has(root, "device_layout")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(root, "device_layout", &at, err));
    SC_TRY(sc_keys_check(&at, NULL, sc_hw_layout_names, err));
    for (int row = 0; row < SC_LAYOUT_COUNT; row++) {
        SC_TRY(read_layout_row(&at, (enum sc_hw_layout)row, out, err));
    }
    return SC_OK;
}

/* ---- places and links ---- */

static enum sc_status read_places(const struct sc_json *root, struct sc_hardware *out,
                                  struct sc_error *err)
{
    struct sc_json places, at;
    SC_TRY(sc_json_object(root, "places", &places, err));
    SC_TRY(sc_keys_check(&places, NULL, sc_hw_place_names, err));
    for (int place = 0; place < SC_HW_PLACE_COUNT; place++) {
        if (place != SC_HW_DEVICE && !sc_json_has(&places, sc_hw_place_names[place])) {
            continue;
        }
        SC_TRY(sc_json_object(&places, sc_hw_place_names[place], &at, err));
        SC_TRY(sc_keys_check(&at, sc_hw_place_keys[place], NULL, err));
        SC_TRY(sc_keys_read(&at, sc_hw_place_keys[place], &out->places[place], err));
        out->places[place].present = true;
    }
    return SC_OK;
}

static enum sc_status read_link(const struct sc_json *at, struct sc_hardware *out,
                                struct sc_error *err)
{
    SC_TRY(check_room(at->parent, out->link_count, SC_HW_LINKS_MAX, err));
    SC_TRY(check_entry_name(at, err));
    struct sc_hw_link *link = &out->links[out->link_count];
    sc_hw_link_neutral(at->key, out, link);
    SC_TRY(sc_keys_check(at, sc_hw_link_keys, NULL, err));
    SC_TRY(sc_keys_read(at, sc_hw_link_keys, link, err));
    out->link_count++;
    return SC_OK;
}

static enum sc_status read_links(const struct sc_json *root, struct sc_hardware *out,
                                 struct sc_error *err)
{
    struct sc_json links;
    if (!sc_json_has(root, "links")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(root, "links", &links, err));
    for (const cJSON *item = first_entry(&links); item != NULL; item = next_entry(item->next)) {
        struct sc_json at = member(&links, item);
        SC_TRY(read_link(&at, out, err));
    }
    return SC_OK;
}

/* ---- collectives ---- */

static enum sc_status read_alpha_beta(const struct sc_json *level, const char *name,
                                      struct sc_hw_alpha_beta *out, struct sc_error *err)
{
    struct sc_json at;
    SC_TRY(sc_json_object(level, name, &at, err));
    SC_TRY(sc_keys_check(&at, sc_hw_alpha_beta_keys, NULL, err));
    return sc_keys_read(&at, sc_hw_alpha_beta_keys, out, err);
}

static enum sc_status read_variant(const struct sc_json *at, struct sc_hw_variant *out,
                                   struct sc_error *err)
{
    sc_hw_variant_neutral(out);
    SC_TRY(sc_keys_check(at, sc_hw_variant_keys, variant_others, err));
    SC_TRY(sc_keys_read(at, sc_hw_variant_keys, out, err));
    out->has_all_reduce = sc_json_has(at, "all_reduce");
    out->has_other = sc_json_has(at, "other");
    out->has_held = sc_json_has(at, "held_multiprocessors");
    if (out->has_all_reduce) {
        SC_TRY(read_alpha_beta(at, "all_reduce", &out->all_reduce, err));
    }
    if (out->has_other) {
        SC_TRY(read_alpha_beta(at, "other", &out->other, err));
    }
    return sc_json_opt_number(at, "held_multiprocessors", 0.0, 1e6, &out->held_multiprocessors,
                              err);
}

static enum sc_status read_variants(const struct sc_json *level, struct sc_hw_level *out,
                                    struct sc_error *err)
{
    struct sc_json array, at;
    int count = 0;
    if (!sc_json_has(level, "variants")) {
        return SC_OK;
    }
    SC_TRY(sc_json_array(level, "variants", &array, &count, err));
    SC_TRY(check_room(&array, count - 1, SC_HW_VARIANTS_MAX, err));
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&array, i, &at, err));
        SC_TRY(read_variant(&at, &out->variants[i], err));
    }
    out->variant_count = count;
    return SC_OK;
}

/* A channel or a head without a bandwidth would be free. */
static enum sc_status check_nccl(const struct sc_json *at, const struct sc_hw_nccl *nccl,
                                 struct sc_error *err)
{
    double ignored = 0.0;
    if (nccl->tree_channels > 0) {
        SC_TRY(sc_json_number(at, "tree_bandwidth_gb_per_s", 1e-6, SC_LARGEST, &ignored, err));
    }
    if (nccl->nvls_heads > 0) {
        SC_TRY(sc_json_number(at, "nvls_bandwidth_gb_per_s", 1e-6, SC_LARGEST, &ignored, err));
    }
    return SC_OK;
}

static enum sc_status read_nccl(const struct sc_json *level, struct sc_hw_level *out,
                                struct sc_error *err)
{
    struct sc_json at;
    if (!sc_json_has(level, "nccl")) {
        return SC_OK;
    }
    sc_hw_nccl_neutral(&out->nccl);
    SC_TRY(sc_json_object(level, "nccl", &at, err));
    SC_TRY(sc_keys_check(&at, sc_hw_nccl_keys, NULL, err));
    SC_TRY(sc_keys_read(&at, sc_hw_nccl_keys, &out->nccl, err));
    SC_TRY(check_nccl(&at, &out->nccl, err));
    out->has_nccl = true;
    return SC_OK;
}

/* Needed where no model stands in for it. */
static enum sc_status read_figures(const struct sc_json *level, const char *name, bool has_nccl,
                                   struct sc_hw_alpha_beta *out, struct sc_error *err)
{
    return has_nccl && !sc_json_has(level, name) ? SC_OK : read_alpha_beta(level, name, out, err);
}

static enum sc_status find_link(const struct sc_json *at, const struct sc_hardware *hardware,
                                int *out, struct sc_error *err)
{
    const char *names[SC_HW_LINKS_MAX + 1] = {NULL};
    int count = 0;
    for (int i = 0; i < hardware->link_count; i++) {
        const struct sc_hw_link *link = &hardware->links[i];
        if (link->level == 0) {
            continue;
        }
        if (strcmp(link->name, at->key) == 0) {
            *out = i;
            return SC_OK;
        }
        names[count++] = link->name;
    }
    const char *nearest = sc_nearest(at->key, names);
    return sc_json_fail(at, err, "the name of a link that has a level%s%s%s",
                        nearest ? " (did you mean \"" : "", nearest ? nearest : "",
                        nearest ? "\"?)" : "");
}

static enum sc_status read_level(const struct sc_json *at, struct sc_hardware *out,
                                 struct sc_error *err)
{
    SC_TRY(check_room(at->parent, out->level_count, SC_HW_LEVELS_MAX, err));
    SC_TRY(check_entry_name(at, err));
    struct sc_hw_level *level = &out->levels[out->level_count];
    sc_hw_level_neutral(at->key, level);
    SC_TRY(find_link(at, out, &level->link, err));
    SC_TRY(sc_keys_check(at, sc_hw_level_keys, level_others, err));
    SC_TRY(sc_keys_read(at, sc_hw_level_keys, level, err));
    SC_TRY(read_nccl(at, level, err));
    SC_TRY(read_figures(at, "all_reduce", level->has_nccl, &level->all_reduce, err));
    SC_TRY(read_figures(at, "other", level->has_nccl, &level->other, err));
    SC_TRY(read_variants(at, level, err));
    out->level_count++;
    return SC_OK;
}

static enum sc_status read_levels(const struct sc_json *root, struct sc_hardware *out,
                                  struct sc_error *err)
{
    struct sc_json collectives, levels;
    if (!sc_json_has(root, "collectives")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(root, "collectives", &collectives, err));
    SC_TRY(sc_json_object(&collectives, "levels", &levels, err));
    for (const cJSON *item = first_entry(&levels); item != NULL; item = next_entry(item->next)) {
        struct sc_json at = member(&levels, item);
        SC_TRY(read_level(&at, out, err));
    }
    return SC_OK;
}

/* ---- kinds ---- */

static enum sc_status read_kind(const struct sc_json *at, struct sc_hardware *out,
                                struct sc_error *err)
{
    SC_TRY(check_room(at->parent, out->compute.kind_count, SC_HW_KINDS_MAX, err));
    SC_TRY(check_entry_name(at, err));
    struct sc_hw_kind *kind = &out->compute.kinds[out->compute.kind_count];
    sc_hw_kind_neutral(at->key, kind);
    SC_TRY(sc_keys_check(at, sc_hw_kind_keys, NULL, err));
    SC_TRY(sc_keys_read(at, sc_hw_kind_keys, kind, err));
    out->compute.kind_count++;
    return SC_OK;
}

static enum sc_status read_kinds(const struct sc_json *root, struct sc_hardware *out,
                                 struct sc_error *err)
{
    struct sc_json compute, bound, kinds;
    SC_TRY(sc_json_object(root, "compute", &compute, err));
    SC_TRY(sc_json_object(&compute, "memory_bound", &bound, err));
    if (!sc_json_has(&bound, "kinds")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(&bound, "kinds", &kinds, err));
    for (const cJSON *item = first_entry(&kinds); item != NULL; item = next_entry(item->next)) {
        struct sc_json at = member(&kinds, item);
        SC_TRY(read_kind(&at, out, err));
    }
    return SC_OK;
}

/* ---- what must fit together ---- */

static enum sc_status check_device(const struct sc_json *root, const struct sc_hardware *hardware,
                                   struct sc_error *err)
{
    struct sc_json node, device;
    SC_TRY(sc_json_object(root, "node", &node, err));
    SC_TRY(sc_json_object(root, "device", &device, err));
    if (hardware->device.kind == SC_CORES) {
        return sc_json_int(&node, "cores", 1, 1 << 16, &(int64_t){0}, err);
    }
    return sc_json_number(&device, "multiprocessors", 1.0, 1e6, &(double){0.0}, err);
}

static enum sc_status check_sources(const struct sc_json *at, struct sc_error *err)
{
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(at->item, "source");
    int index = 0;
    if (cJSON_IsObject(at->item) && source != NULL) {
        struct sc_json below = member(at, source);
        if (!cJSON_IsString(source) && !cJSON_IsObject(source)) {
            return sc_json_fail(&below, err, "a string, or an object of strings by key");
        }
    }
    for (const cJSON *item = at->item->child; item != NULL; item = item->next) {
        struct sc_json below = {item, at, item->string, index++, at->file};
        if (item->child != NULL) {
            SC_TRY(check_sources(&below, err));
        }
    }
    return SC_OK;
}

enum sc_status sc_hardware_parse(const struct sc_json *root, struct sc_hardware *out,
                                 struct sc_error *err)
{
    struct sc_hardware read;
    sc_hardware_neutral(&read);
    SC_TRY(sc_json_schema(root, SC_HW_SCHEMA, err));
    SC_TRY(sc_keys_check(root, sc_hw_root_keys, root_others, err));
    SC_TRY(check_sources(root, err));
    SC_TRY(sc_keys_read(root, sc_hw_root_keys, &read, err));
    SC_TRY(read_sections(root, &read, err));
    SC_TRY(check_device(root, &read, err));
    SC_TRY(read_by_peak(root, "device", NULL, "peak_tflop_per_s", sc_hw_peak_keys,
                        read.device.stated_peak, err));
    SC_TRY(read_by_peak(root, "compute", "gemm", "peak_share", sc_hw_share_keys,
                        read.compute.gemm_peak_share, err));
    SC_TRY(read_tiles(root, &read, err));
    SC_TRY(read_parallel_efficiency(root, &read, err));
    SC_TRY(read_places(root, &read, err));
    SC_TRY(read_links(root, &read, err));
    SC_TRY(read_layout(root, &read, err));
    SC_TRY(read_levels(root, &read, err));
    SC_TRY(read_kinds(root, &read, err));
    SC_TRY(sc_hw_uncertainty_read(root, &read.uncertainty, err));
    if (read.transport[0] != '\0') {
        SC_TRY(sc_hardware_use_transport(&read, read.transport, err));
    }
    SC_TRY(sc_hardware_divide(&read, read.node.devices, err));
    *out = read;
    return SC_OK;
}
