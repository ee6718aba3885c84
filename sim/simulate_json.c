/* The forecast as stepcast.result/1. */
#include <math.h>

#include "sim/simulate.h"

static bool add_number(cJSON *object, const char *key, double number)
{
    cJSON *item = isfinite(number) ? cJSON_CreateNumber(number) : cJSON_CreateNull();
    return item != NULL && cJSON_AddItemToObject(object, key, item);
}

static bool add_text(cJSON *object, const char *key, const char *text)
{
    return cJSON_AddStringToObject(object, key, text) != NULL;
}

static bool add_totals(cJSON *root, const struct sc_sim_result *result)
{
    static const char *const modes[] = {[SC_MEMORY_UNPLANNED] = "unplanned",
                                        [SC_MEMORY_NO_ADDED_WAITS] = "no_added_waits",
                                        [SC_MEMORY_ISSUE_ORDER] = "issue_order"};
    bool ok = add_text(root, "schema", "stepcast.result/1") && add_text(root, "command", "sim") &&
              add_text(root, "plan", result->plan) && add_text(root, "hardware", result->hardware);
    if (result->program[0] != '\0')
        ok = ok && add_text(root, "program", result->program);
    return ok && add_number(root, "step_time_s", result->step_time_s) &&
           add_number(root, "step_time_low_s", result->step_time_low_s) &&
           add_number(root, "step_time_high_s", result->step_time_high_s) &&
           add_number(root, "tokens_per_s", result->tokens_per_s) &&
           add_number(root, "mfu", result->mfu) && add_number(root, "hfu", result->hfu) &&
           add_number(root, "first_step_s", result->first_step_s) &&
           add_number(root, "lower_bound_s", result->bound_s) &&
           add_number(root, "ranks", (double)result->ranks) &&
           add_number(root, "operations", (double)result->operations) &&
           add_number(root, "steps_played", result->steps_played) &&
           add_text(root, "memory_mode", modes[result->memory_mode]) &&
           add_number(root, "added_waits", result->added_waits);
}

static bool add_breakdown(cJSON *root, const struct sc_sim_result *result)
{
    cJSON *object = cJSON_AddObjectToObject(root, "breakdown_s");
    bool ok = object != NULL;
    for (size_t i = 0; ok && i < result->breakdown.count; i++)
        ok =
            add_number(object, result->breakdown.items[i].name, result->breakdown.items[i].seconds);
    return ok;
}

static bool add_place(cJSON *memory, const char *name, const struct sc_sim_place *place)
{
    cJSON *object = cJSON_AddObjectToObject(memory, name);
    bool ok = object != NULL && add_number(object, "peak_bytes", (double)place->arena_bytes) &&
              add_number(object, "used_bytes", (double)place->used_bytes) &&
              add_number(object, "ranks_sharing", (double)place->sharing);
    if (!ok || place->capacity_bytes == 0)
        return ok;
    return add_number(object, "capacity_bytes", (double)place->capacity_bytes) &&
           cJSON_AddBoolToObject(object, "fits", place->used_bytes <= place->capacity_bytes);
}

static bool add_memory(cJSON *root, const struct sc_sim_result *result)
{
    cJSON *object = cJSON_AddObjectToObject(root, "memory");
    bool ok = object != NULL;
    for (int place = 0; ok && place < SC_PLACE_COUNT; place++)
        ok = add_place(object, sc_place_names[place], &result->memory[place]);
    return ok;
}

static bool add_resources(cJSON *root, const struct sc_sim_result *result)
{
    cJSON *array = cJSON_AddArrayToObject(root, "resources");
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < result->resources.count; i++) {
        const struct sc_sim_resource *resource = &result->resources.items[i];
        cJSON *item = cJSON_CreateObject();
        ok = item != NULL && cJSON_AddItemToArray(array, item) &&
             add_text(item, "name", resource->name) &&
             add_text(item, "class", resource->class_name) &&
             add_number(item, "utilisation", resource->utilisation);
    }
    return ok;
}

static bool add_warnings(cJSON *root, const struct sc_sim_result *result)
{
    cJSON *array = cJSON_AddArrayToObject(root, "warnings");
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < result->warnings.count; i++) {
        cJSON *item = cJSON_CreateString(result->warnings.items[i]);
        ok = item != NULL && cJSON_AddItemToArray(array, item);
    }
    return ok && cJSON_AddBoolToObject(root, "exact", result->exact) != NULL;
}

cJSON *sc_sim_result_to_json(const struct sc_sim_result *result)
{
    cJSON *root = cJSON_CreateObject();
    if (root == NULL)
        return NULL;
    if (add_totals(root, result) && add_breakdown(root, result) && add_memory(root, result) &&
        add_resources(root, result) && add_warnings(root, result))
        return root;
    cJSON_Delete(root);
    return NULL;
}
