/* An explanation as stepcast.explanation/1. */
#include "reports/explain.h"

static bool add_text(cJSON *object, const char *key, const char *text)
{
    return cJSON_AddStringToObject(object, key, text) != NULL;
}

static bool add_number(cJSON *object, const char *key, double number)
{
    return cJSON_AddNumberToObject(object, key, number) != NULL;
}

/* A new object at the end of the array; NULL when out of memory. */
static cJSON *add_item(cJSON *array)
{
    cJSON *item = cJSON_CreateObject();
    if (item != NULL && !cJSON_AddItemToArray(array, item)) {
        cJSON_Delete(item);
        item = NULL;
    }
    return item;
}

static bool add_totals(cJSON *root, const struct sc_explanation *explanation)
{
    bool ok = add_text(root, "schema", "stepcast.explanation/1") &&
              add_text(root, "plan", explanation->plan) &&
              add_text(root, "hardware", explanation->hardware) &&
              add_number(root, "step_time_s", explanation->step_time_s) &&
              cJSON_AddBoolToObject(root, "settled", explanation->settled) != NULL &&
              add_text(root, "sentence", explanation->sentence);
    if (explanation->worst_wait == NULL) {
        return ok && cJSON_AddNullToObject(root, "worst_wait") != NULL;
    }
    return ok && add_text(root, "worst_wait", explanation->worst_wait);
}

static bool add_path(cJSON *root, const struct sc_explanation *explanation)
{
    cJSON *array = cJSON_AddArrayToObject(root, "critical_path");
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < explanation->parts.count; i++) {
        const struct sc_explained_part *part = &explanation->parts.items[i];
        cJSON *item = add_item(array);
        ok = item != NULL && add_text(item, "name", part->name) &&
             cJSON_AddBoolToObject(item, "waits", part->waits) != NULL &&
             add_number(item, "seconds", part->seconds) &&
             add_number(item, "by_sharing_s", part->slowed_s);
    }
    array = ok ? cJSON_AddArrayToObject(root, "operations") : NULL;
    ok = array != NULL;
    for (size_t i = 0; ok && i < explanation->operations.count; i++) {
        const struct sc_explained_ops *ops = &explanation->operations.items[i];
        cJSON *item = add_item(array);
        ok = item != NULL && add_text(item, "label", ops->label) &&
             add_text(item, "kind", ops->kind) && add_number(item, "times", ops->count) &&
             add_number(item, "seconds", ops->seconds);
    }
    return ok;
}

static bool add_what_if(cJSON *array, const struct sc_explained_what_if *what)
{
    cJSON *item = add_item(array);
    return item != NULL && add_text(item, "name", what->name) &&
           add_text(item, "what", what->resource ? "resource" : "work") &&
           add_number(item, "step_time_s", what->step_time_s) &&
           add_number(item, "gain_s", what->gain_s);
}

static bool add_what_ifs(cJSON *root, const struct sc_explanation *explanation)
{
    cJSON *array = cJSON_AddArrayToObject(root, "if_free");
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < explanation->free.count; i++) {
        ok = add_what_if(array, &explanation->free.items[i]);
    }
    array = ok ? cJSON_AddArrayToObject(root, "if_10_percent_faster") : NULL;
    ok = array != NULL;
    for (size_t i = 0; ok && i < explanation->faster.count; i++) {
        ok = add_what_if(array, &explanation->faster.items[i]);
    }
    return ok;
}

static bool add_place(cJSON *memory, const struct sc_explained_place *place)
{
    cJSON *object = cJSON_AddObjectToObject(memory, place->place);
    bool ok = object != NULL && add_number(object, "peak_bytes", place->bytes) &&
              add_text(object, "at", place->label);
    cJSON *array = ok ? cJSON_AddArrayToObject(object, "buffers") : NULL;
    ok = array != NULL;
    for (size_t i = 0; ok && i < place->buffers.count; i++) {
        const struct sc_explained_buffers *buffers = &place->buffers.items[i];
        cJSON *item = add_item(array);
        ok = item != NULL && add_text(item, "name", buffers->name) &&
             add_text(item, "for", buffers->use) &&
             add_number(item, "buffers", (double)buffers->buffers) &&
             add_number(item, "bytes", buffers->bytes);
    }
    return ok;
}

static bool add_memory(cJSON *root, const struct sc_explanation *explanation)
{
    cJSON *object = cJSON_AddObjectToObject(root, "memory");
    bool ok = object != NULL;
    for (size_t i = 0; ok && i < explanation->places.count; i++) {
        ok = add_place(object, &explanation->places.items[i]);
    }
    return ok;
}

cJSON *sc_explanation_to_json(const struct sc_explanation *explanation)
{
    cJSON *root = cJSON_CreateObject();
    if (root == NULL) {
        return NULL;
    }
    if (add_totals(root, explanation) && add_path(root, explanation) &&
        add_what_ifs(root, explanation) && add_memory(root, explanation)) {
        return root;
    }
    cJSON_Delete(root);
    return NULL;
}
