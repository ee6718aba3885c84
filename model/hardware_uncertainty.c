/* How far a forecast may be off, by kind of operation: reading, writing, looking up. */
#include <stdio.h>
#include <string.h>

#include "model/hardware_keys.h"

/* Where a profile says nothing, the mean error of published simulators on plans they have not seen
 * (Calculon: 3.65 % over 8 plans; SimuMax: 5.6 % over 43). A mean |error| of 5.6 % is a standard
 * deviation of 0.056 / sqrt(2 / pi) = 0.070. A single kind of operation is further off than a step,
 * where kinds make up for each other: assumed 0.1. */
#define NEUTRAL_MACHINE 0.07
#define NEUTRAL_KIND 0.1
#define MOST 2.0

static const char *const uncertainty_keys[] = {"machine", "neutral", "kinds", "source", NULL};

void sc_hw_uncertainty_neutral(struct sc_hw_uncertainty *out)
{
    memset(out, 0, sizeof(*out));
    out->machine = NEUTRAL_MACHINE;
    out->neutral = NEUTRAL_KIND;
}

static enum sc_status read_deviation(const struct sc_json *kinds, const char *name,
                                     struct sc_hw_uncertainty *out, struct sc_error *err)
{
    if (out->kind_count == SC_HW_KINDS_MAX) {
        return sc_json_fail(kinds, err, "at most %d entries", SC_HW_KINDS_MAX);
    }
    struct sc_hw_deviation *deviation = &out->kinds[out->kind_count++];
    if (strlen(name) >= sizeof(deviation->name)) {
        return sc_json_fail(kinds, err, "names of at most %zu bytes", sizeof(deviation->name) - 1);
    }
    snprintf(deviation->name, sizeof(deviation->name), "%s", name);
    return sc_json_number(kinds, name, 0.0, MOST, &deviation->deviation, err);
}

enum sc_status sc_hw_uncertainty_read(const struct sc_json *root, struct sc_hw_uncertainty *out,
                                      struct sc_error *err)
{
    struct sc_json at, kinds;
    sc_hw_uncertainty_neutral(out);
    if (!sc_json_has(root, "uncertainty")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(root, "uncertainty", &at, err));
    SC_TRY(sc_json_check_keys(&at, uncertainty_keys, err));
    SC_TRY(sc_json_opt_number(&at, "machine", 0.0, MOST, &out->machine, err));
    SC_TRY(sc_json_opt_number(&at, "neutral", 0.0, MOST, &out->neutral, err));
    if (!sc_json_has(&at, "kinds")) {
        return SC_OK;
    }
    SC_TRY(sc_json_object(&at, "kinds", &kinds, err));
    for (const cJSON *item = kinds.item->child; item != NULL; item = item->next) {
        if (strcmp(item->string, "source") != 0) {
            SC_TRY(read_deviation(&kinds, item->string, out, err));
        }
    }
    return SC_OK;
}

bool sc_hw_uncertainty_write(cJSON *root, const struct sc_hw_uncertainty *uncertainty)
{
    cJSON *object = cJSON_AddObjectToObject(root, "uncertainty");
    cJSON *kinds = object != NULL ? cJSON_AddObjectToObject(object, "kinds") : NULL;
    bool ok = kinds != NULL &&
              cJSON_AddNumberToObject(object, "machine", uncertainty->machine) != NULL &&
              cJSON_AddNumberToObject(object, "neutral", uncertainty->neutral) != NULL;
    for (int i = 0; ok && i < uncertainty->kind_count; i++) {
        ok = cJSON_AddNumberToObject(kinds, uncertainty->kinds[i].name,
                                     uncertainty->kinds[i].deviation) != NULL;
    }
    return ok;
}

static const struct sc_hw_deviation *find(const struct sc_hw_uncertainty *uncertainty,
                                          const char *name)
{
    for (int i = 0; i < uncertainty->kind_count; i++) {
        if (strcmp(uncertainty->kinds[i].name, name) == 0) {
            return &uncertainty->kinds[i];
        }
    }
    return NULL;
}

double sc_hardware_deviation(const struct sc_hardware *hardware, const char *cost_name,
                             const char *kind)
{
    const struct sc_hw_deviation *found = find(&hardware->uncertainty, cost_name);
    found = found != NULL ? found : find(&hardware->uncertainty, kind);
    return found != NULL ? found->deviation : hardware->uncertainty.neutral;
}
