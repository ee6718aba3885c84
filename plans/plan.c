/* A plan's neutral values, the numbers that follow from it, and its JSON. */
#include "plans/plan.h"

#include <stdlib.h>
#include <string.h>

#include "model/shipped.h"
#include "plans/plan_fields.h"

const char *const sc_axis_names[SC_AXIS_COUNT + 1] = {"tensor", "context", "data", "pipeline",
                                                      NULL};

void sc_plan_neutral(struct sc_plan *plan)
{
    memset(plan, 0, sizeof(*plan)); /* fp32, stage 0, no dropout, the first name of every enum */
    plan->hardware.nodes = 1;
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
        plan->mesh.order[axis] = (enum sc_axis)axis;
        plan->mesh.size[axis] = 1;
    }
    plan->mesh.expert_parallel = 1;
    plan->batch.global_batch = 1;
    plan->batch.micro_batch = 1;
    plan->zero.bucket_elements = 40000000; /* Megatron-LM's smallest default */
    plan->zero.overlap_gradients = true;
    plan->domino.pieces = 1;
    plan->domino.weight_pieces = 1;
    plan->optimizer.learning_rate = 1e-3; /* torch.optim.AdamW, here and below */
    plan->optimizer.beta1 = 0.9;
    plan->optimizer.beta2 = 0.999;
    plan->optimizer.epsilon = 1e-8;
    plan->optimizer.weight_decay = 0.01;
    plan->loss.vocab_parallel = true;
    plan->loss.pad_vocab_to_multiple_of = 128; /* Megatron-LM's default */
}

int64_t sc_plan_ranks(const struct sc_plan *plan)
{
    int64_t ranks = 1;
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
        ranks *= plan->mesh.size[axis];
    }
    return ranks;
}

int64_t sc_plan_micro_batches(const struct sc_plan *plan)
{
    return plan->batch.global_batch / (plan->batch.micro_batch * plan->mesh.size[SC_DATA]);
}

int64_t sc_plan_padded_vocab(const struct sc_plan *plan)
{
    int64_t unit = plan->loss.pad_vocab_to_multiple_of;
    unit *= plan->loss.vocab_parallel ? plan->mesh.size[SC_TENSOR] : 1;
    return (plan->model.vocab_size + unit - 1) / unit * unit;
}

/* ---- JSON ---- */

static cJSON *field_to_json(const struct sc_plan_field *field, const struct sc_plan *plan)
{
    if (field->kind == SC_FIELD_NEUTRAL) {
        return cJSON_Parse(field->neutral);
    }
    double value = sc_plan_field_get(field, plan);
    if (field->kind == SC_FIELD_ENUM) {
        return cJSON_CreateString(field->names[(int)value]);
    }
    return field->kind == SC_FIELD_BOOL ? cJSON_CreateBool(value != 0) : cJSON_CreateNumber(value);
}

/* Takes the item over in any case. */
static bool add(cJSON *object, const char *key, cJSON *item)
{
    if (item == NULL || !cJSON_AddItemToObject(object, key, item)) {
        cJSON_Delete(item);
        return false;
    }
    return true;
}

static cJSON *order_to_json(const struct sc_plan *plan)
{
    const char *names[SC_AXIS_COUNT];
    for (int i = 0; i < SC_AXIS_COUNT; i++) {
        names[i] = sc_axis_names[plan->mesh.order[i]];
    }
    return cJSON_CreateStringArray(names, SC_AXIS_COUNT);
}

static bool add_sections(cJSON *root, const struct sc_plan *plan, cJSON *sections[])
{
    sections[SC_SECTION_ROOT] = root;
    for (int i = SC_SECTION_ROOT + 1; i < SC_SECTION_COUNT; i++) {
        const struct sc_plan_section_row *row = &sc_plan_sections[i];
        sections[i] = cJSON_AddObjectToObject(sections[row->parent], row->key);
        if (sections[i] == NULL) {
            return false;
        }
    }
    return add(sections[SC_SECTION_HARDWARE], "profile",
               cJSON_CreateString(plan->hardware.profile)) &&
           add(sections[SC_SECTION_MESH], "order", order_to_json(plan));
}

static bool fill(cJSON *root, const struct sc_plan *plan)
{
    cJSON *sections[SC_SECTION_COUNT];
    if (!add(root, "schema", cJSON_CreateString(SC_PLAN_SCHEMA)) ||
        !add(root, "name", cJSON_CreateString(plan->name)) ||
        !add(root, "model", sc_model_to_json(&plan->model)) ||
        !add_sections(root, plan, sections)) {
        return false;
    }
    for (int i = 0; i < sc_plan_field_count; i++) {
        const struct sc_plan_field *field = &sc_plan_fields[i];
        if (!add(sections[field->section], field->key, field_to_json(field, plan))) {
            return false;
        }
    }
    return true;
}

cJSON *sc_plan_to_json(const struct sc_plan *plan)
{
    cJSON *root = cJSON_CreateObject();
    if (root != NULL && !fill(root, plan)) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

/* Leaves a profile alone that is a shipped name or not there. */
static enum sc_status make_profile_absolute(struct sc_plan *plan, struct sc_error *err)
{
    char *profile = plan->hardware.profile;
    char *absolute = sc_shipped_is_name(profile) ? NULL : realpath(profile, NULL);
    if (absolute == NULL) {
        return SC_OK;
    }
    bool fits = strlen(absolute) < sizeof(plan->hardware.profile);
    if (fits) {
        memcpy(profile, absolute, strlen(absolute) + 1);
    }
    free(absolute);
    return fits ? SC_OK
                : sc_fail_input(err, profile, NULL, "a path that is too long",
                                "an absolute path of at most 255 bytes");
}

enum sc_status sc_plan_write(const struct sc_plan *plan, const char *file, struct sc_error *err)
{
    struct sc_plan copy = *plan;
    SC_TRY(make_profile_absolute(&copy, err));
    cJSON *root = sc_plan_to_json(&copy);
    if (root == NULL) {
        return sc_fail_memory(err, sizeof(cJSON));
    }
    enum sc_status status = sc_json_write(root, file, err);
    cJSON_Delete(root);
    return status;
}

void sc_plan_reference(const struct sc_plan *plan, struct sc_plan *out)
{
    struct sc_plan neutral;
    sc_plan_neutral(&neutral);
    *out = *plan;
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++)
        out->mesh.size[axis] = 1;
    out->mesh.synchronous_backward = false;
    out->batch.micro_batch = plan->batch.global_batch;
    out->zero = neutral.zero;
    out->domino = neutral.domino;
    out->recompute = neutral.recompute;
    out->attention = neutral.attention;
    out->dropout.mask = neutral.dropout.mask;
}
