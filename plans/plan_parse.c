/* Reading stepcast.plan/1: the table of keys (plan_fields.h) walked over a document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/shipped.h"
#include "plans/plan.h"
#include "plans/plan_fields.h"

/* ---- complaints ---- */

#define FOUND_BYTES 80
#define TEXT_BYTES 512

/* The item as it stands in the file, cut to a readable length. */
static void print_item(const cJSON *item, char *out, size_t size)
{
    char *text = cJSON_PrintUnformatted(item);
    bool fits = text != NULL && strlen(text) < size;
    snprintf(out, size, "%.*s%s", (int)(fits ? size : size - 4), text != NULL ? text : "?",
             fits ? "" : "...");
    cJSON_free(text);
}

static enum sc_status refuse(const struct sc_json *at, const char *expected, struct sc_error *err)
{
    char path[TEXT_BYTES], found[FOUND_BYTES];
    sc_json_path(at, path, sizeof(path));
    print_item(at->item, found, sizeof(found));
    return sc_fail_input(err, at->file, path, found, expected);
}

/* ---- fields ---- */

static bool equals_text(const cJSON *item, const char *text)
{
    cJSON *other = cJSON_Parse(text);
    bool equal = other != NULL && cJSON_Compare(item, other, 1);
    cJSON_Delete(other);
    return equal;
}

/* A value that will exist one day is refused with the reason. */
static enum sc_status check_later(const struct sc_plan_field *field, const struct sc_json *at,
                                  struct sc_error *err)
{
    for (int i = 0; i < sc_plan_later_count; i++) {
        const struct sc_plan_later *later = &sc_plan_later[i];
        bool here = later->section == field->section &&
                    (later->key == NULL || strcmp(later->key, field->key) == 0);
        if (here && equals_text(at->item, later->value)) {
            char expected[TEXT_BYTES];
            sc_plan_field_expected(field, expected, sizeof(expected));
            sc_plan_append(expected, sizeof(expected), " (%s)", later->note);
            return refuse(at, expected, err);
        }
    }
    return SC_OK;
}

static enum sc_status read_neutral(const struct sc_plan_field *field, const struct sc_json *at,
                                   struct sc_error *err)
{
    char expected[TEXT_BYTES];
    if (equals_text(at->item, field->neutral)) {
        return SC_OK;
    }
    sc_plan_field_expected(field, expected, sizeof(expected));
    return refuse(at, expected, err);
}

/* Type and range; what depends on other keys is sc_plan_check's. */
static enum sc_status read_number(const struct sc_plan_field *field, const struct sc_json *section,
                                  double *out, struct sc_error *err)
{
    int64_t whole = 0;
    if (field->kind == SC_FIELD_INT) {
        SC_TRY(sc_json_int(section, field->key, (int64_t)field->min, (int64_t)field->max, &whole,
                           err));
        *out = (double)whole;
        return SC_OK;
    }
    /* The open upper end is looked at by sc_plan_check. */
    return sc_json_number(section, field->key, field->open ? -1e300 : field->min,
                          field->open ? 1e300 : field->max, out, err);
}

static enum sc_status read_name(const struct sc_plan_field *field, const struct sc_json *section,
                                double *out, struct sc_error *err)
{
    int index = 0;
    bool truth = false;
    if (field->kind == SC_FIELD_BOOL) {
        SC_TRY(sc_json_bool(section, field->key, &truth, err));
    } else {
        SC_TRY(sc_json_enum(section, field->key, field->names, &index, err));
    }
    *out = field->kind == SC_FIELD_BOOL ? truth : index;
    return SC_OK;
}

static enum sc_status read_field(const struct sc_plan_field *field, const struct sc_json *section,
                                 struct sc_plan *plan, struct sc_error *err)
{
    struct sc_json at = {cJSON_GetObjectItemCaseSensitive(section->item, field->key), section,
                         field->key, 0, section->file};
    double value = 0;
    if (at.item == NULL && !field->required) {
        return SC_OK;
    }
    if (at.item != NULL) {
        SC_TRY(check_later(field, &at, err));
    }
    if (field->kind == SC_FIELD_NEUTRAL) {
        return read_neutral(field, &at, err);
    }
    bool is_number = field->kind == SC_FIELD_INT || field->kind == SC_FIELD_NUMBER;
    SC_TRY(is_number ? read_number(field, section, &value, err)
                     : read_name(field, section, &value, err));
    sc_plan_field_set(field, plan, value);
    return SC_OK;
}

/* ---- sections ---- */

#define MAX_KEYS 40

static enum sc_status check_keys(enum sc_plan_section section, const struct sc_json *at,
                                 struct sc_error *err)
{
    const char *keys[MAX_KEYS] = {NULL};
    int count = 0;
    static const char *const extra[][5] = {
        [SC_SECTION_ROOT] = {"schema", "name", "model", "notes", NULL},
        [SC_SECTION_HARDWARE] = {"profile", NULL},
        [SC_SECTION_MESH] = {"order", NULL},
    };
    if ((size_t)section < sizeof(extra) / sizeof(extra[0])) {
        for (int i = 0; extra[section][i] != NULL; i++) {
            keys[count++] = extra[section][i];
        }
    }
    for (int i = SC_SECTION_ROOT + 1; i < SC_SECTION_COUNT; i++) {
        if (sc_plan_sections[i].parent == section) {
            keys[count++] = sc_plan_sections[i].key;
        }
    }
    for (int i = 0; i < sc_plan_field_count && count < MAX_KEYS - 1; i++) {
        if (sc_plan_fields[i].section == section) {
            keys[count++] = sc_plan_fields[i].key;
        }
    }
    return sc_json_check_keys(at, keys, err);
}

static enum sc_status read_order(const struct sc_json *mesh, struct sc_plan *plan,
                                 struct sc_error *err)
{
    struct sc_json order;
    int count = 0;
    unsigned seen = 0;
    if (!sc_json_has(mesh, "order")) {
        return SC_OK;
    }
    SC_TRY(sc_json_array(mesh, "order", &order, &count, err));
    for (int i = 0; i < count && i < SC_AXIS_COUNT; i++) {
        struct sc_json item;
        int axis = 0;
        SC_TRY(sc_json_at(&order, i, &item, err));
        SC_TRY(sc_json_enum(&item, NULL, sc_axis_names, &axis, err));
        seen |= 1u << axis;
        plan->mesh.order[i] = (enum sc_axis)axis;
    }
    if (count != SC_AXIS_COUNT || seen != (1u << SC_AXIS_COUNT) - 1) {
        return refuse(&order,
                      "each of \"tensor\", \"context\", \"data\" and \"pipeline\" once, innermost "
                      "first",
                      err);
    }
    return SC_OK;
}

/* What a plan does not say follows from what it says: activations are like parameters, and a
 * reduction has the type of what it reduces. */
static void default_precision(const struct sc_json *section, struct sc_plan *plan)
{
    if (!sc_json_has(section, "activations")) {
        plan->precision.activations = plan->precision.parameters;
    }
    if (!sc_json_has(section, "tensor_reduction")) {
        plan->precision.tensor_reduction = plan->precision.activations;
    }
    if (!sc_json_has(section, "data_reduction")) {
        plan->precision.data_reduction = plan->precision.gradients;
    }
}

/* The string at a key, at most size - 1 bytes. */
static enum sc_status read_text(const struct sc_json *at, const char *key, char *out, size_t size,
                                struct sc_error *err)
{
    struct sc_json item = {cJSON_GetObjectItemCaseSensitive(at->item, key), at, key, 0, at->file};
    size_t length = cJSON_IsString(item.item) ? strlen(item.item->valuestring) : 0;
    if (length == 0 || length >= size) {
        return sc_json_fail(&item, err, "a string of 1 to %zu bytes", size - 1);
    }
    memcpy(out, item.item->valuestring, length + 1);
    return SC_OK;
}

static enum sc_status read_profile(const struct sc_json *hardware, struct sc_plan *plan,
                                   struct sc_error *err)
{
    char text[sizeof(plan->hardware.profile)];
    const char *file = hardware->file != NULL ? hardware->file : "";
    const char *slash = strrchr(file, '/');
    int folder = slash != NULL ? (int)(slash - file) + 1 : 0;
    SC_TRY(read_text(hardware, "profile", text, sizeof(text), err));
    if (sc_shipped_is_name(text) || text[0] == '/') {
        folder = 0;
    }
    if ((size_t)folder + strlen(text) >= sizeof(text)) {
        return sc_fail_input(err, file, "hardware.profile", "a path that is too long",
                             "one of at most 255 bytes, the plan's folder included");
    }
    snprintf(plan->hardware.profile, sizeof(plan->hardware.profile), "%.*s%s", folder, file, text);
    return SC_OK;
}

static enum sc_status read_model(const struct sc_json *root, struct sc_plan *plan,
                                 struct sc_error *err)
{
    struct sc_json at = {cJSON_GetObjectItemCaseSensitive(root->item, "model"), root, "model", 0,
                         root->file};
    if (cJSON_IsObject(at.item)) {
        return sc_model_parse(&at, &plan->model, err);
    }
    if (!cJSON_IsString(at.item)) {
        return sc_json_fail(&at, err, "a shipped model's name, a file or an object");
    }
    enum sc_status status = sc_model_load(at.item->valuestring, root->file, &plan->model, err);
    if (status != SC_OK && root->file != NULL && root->file[0] != '\0') {
        return sc_fail(err, status, "%s: model: %s", root->file, err->text);
    }
    return status;
}

/* What is not in the table. */
static enum sc_status read_special(enum sc_plan_section section, const struct sc_json *at,
                                   struct sc_plan *plan, struct sc_error *err)
{
    switch (section) {
    case SC_SECTION_ROOT:
        SC_TRY(read_text(at, "name", plan->name, sizeof(plan->name), err));
        return read_model(at, plan, err);
    case SC_SECTION_HARDWARE:
        return read_profile(at, plan, err);
    case SC_SECTION_MESH:
        return read_order(at, plan, err);
    case SC_SECTION_PRECISION:
        default_precision(at, plan);
        return SC_OK;
    default:
        return SC_OK;
    }
}

static enum sc_status read_section(enum sc_plan_section section, const struct sc_json *at,
                                   struct sc_plan *plan, struct sc_error *err)
{
    SC_TRY(check_keys(section, at, err));
    for (int i = 0; i < sc_plan_field_count; i++) {
        if (sc_plan_fields[i].section == section) {
            SC_TRY(read_field(&sc_plan_fields[i], at, plan, err));
        }
    }
    SC_TRY(read_special(section, at, plan, err));
    for (int i = SC_SECTION_ROOT + 1; i < SC_SECTION_COUNT; i++) {
        const struct sc_plan_section_row *row = &sc_plan_sections[i];
        struct sc_json below;
        if (row->parent == section && (row->required || sc_json_has(at, row->key))) {
            SC_TRY(sc_json_object(at, row->key, &below, err));
            SC_TRY(read_section((enum sc_plan_section)i, &below, plan, err));
        }
    }
    return SC_OK;
}

enum sc_status sc_plan_parse(const struct sc_json *root, struct sc_plan *out, struct sc_error *err)
{
    struct sc_plan plan;
    sc_plan_neutral(&plan);
    SC_TRY(sc_json_schema(root, SC_PLAN_SCHEMA, err));
    SC_TRY(read_section(SC_SECTION_ROOT, root, &plan, err));
    SC_TRY(sc_plan_check(&plan, root->file, err));
    *out = plan;
    return SC_OK;
}

/* ---- files ---- */

/* `--set model.layers=4` reaches into a model that the plan only names: the name is replaced by the
 * object first. */
static enum sc_status inline_model(struct sc_json_doc *doc, struct sc_error *err)
{
    struct sc_model model;
    cJSON *named = cJSON_GetObjectItemCaseSensitive(doc->root, "model");
    if (!cJSON_IsString(named)) {
        return SC_OK;
    }
    SC_TRY(sc_model_load(named->valuestring, doc->file, &model, err));
    cJSON *object = sc_model_to_json(&model);
    if (object == NULL) {
        return sc_fail_memory(err, sizeof(cJSON));
    }
    if (!cJSON_ReplaceItemInObjectCaseSensitive(doc->root, "model", object)) {
        cJSON_Delete(object);
        return sc_fail_memory(err, sizeof(cJSON));
    }
    return SC_OK;
}

static enum sc_status apply_set(struct sc_json_doc *doc, const char *assignment,
                                struct sc_error *err)
{
    const char *equals = strchr(assignment, '=');
    if (strncmp(assignment, "hw.", 3) == 0) {
        return SC_OK;
    }
    if (equals == NULL) {
        return sc_fail(err, SC_USAGE, "--set %s: expected path=value", assignment);
    }
    if (strncmp(assignment, "model.", 6) == 0) {
        SC_TRY(inline_model(doc, err));
    }
    char *path = strndup(assignment, (size_t)(equals - assignment));
    if (path == NULL) {
        return sc_fail_memory(err, (size_t)(equals - assignment) + 1);
    }
    enum sc_status status = sc_json_set(doc, path, equals + 1, err);
    free(path);
    return status;
}

enum sc_status sc_plan_load(const char *file, const char *const *set, int set_count,
                            struct sc_plan *out, struct sc_error *err)
{
    char path[SC_PATH_SIZE];
    struct sc_json_doc doc;
    enum sc_status status;
    SC_TRY(sc_shipped_resolve(SC_SHIPPED_PLANS, "plan", file, NULL, path, sizeof(path), err));
    SC_TRY(sc_json_read(path, &doc, err));
    for (int i = 0; i < set_count; i++) {
        SC_TRY_GOTO(apply_set(&doc, set[i], err), done);
    }
    struct sc_json root = sc_json_root(&doc);
    status = sc_plan_parse(&root, out, err);
done:
    sc_json_doc_free(&doc);
    return status;
}
