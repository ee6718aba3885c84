/* Walking a table of keys: reading, writing, checking. */
#include "model/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(const struct sc_key *key, void *base)
{
    return (char *)base + key->offset;
}

static const void *const_field(const struct sc_key *key, const void *base)
{
    return (const char *)base + key->offset;
}

enum sc_status sc_keys_check(const struct sc_json *at, const struct sc_key *keys,
                             const char *const *others, struct sc_error *err)
{
    const char *allowed[2 * SC_KEYS_MAX + 2];
    size_t count = 0;
    for (; keys != NULL && keys->name != NULL && count < SC_KEYS_MAX; keys++) {
        allowed[count++] = keys->name;
    }
    for (; others != NULL && *others != NULL && count < (size_t)2 * SC_KEYS_MAX; others++) {
        allowed[count++] = *others;
    }
    allowed[count++] = "source";
    allowed[count] = NULL;
    return sc_json_check_keys(at, allowed, err);
}

/* Copies a string of the file into text; what does not fit is bad input. */
static enum sc_status copy_text(const struct sc_json *at, char *text, size_t size,
                                struct sc_error *err)
{
    if (!cJSON_IsString(at->item) || strlen(at->item->valuestring) >= size) {
        return sc_json_fail(at, err, "a string of at most %zu bytes", size - 1);
    }
    memcpy(text, at->item->valuestring, strlen(at->item->valuestring) + 1);
    return SC_OK;
}

static enum sc_status read_text(const struct sc_json *at, const struct sc_key *key, char *text,
                                struct sc_error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(at->item, key->name);
    struct sc_json below = {item, at, key->name, 0, at->file};
    return copy_text(&below, text, key->size, err);
}

static enum sc_status read_number(const struct sc_json *at, const struct sc_key *key, double *out,
                                  struct sc_error *err)
{
    double value = 0.0;
    SC_TRY(sc_json_number(at, key->name, key->min, key->max, &value, err));
    /* Dividing by 1e6 is exact to the last bit where multiplying by 1e-6 is not. */
    *out = key->unit < 1.0 ? value / (1.0 / key->unit) : value * key->unit;
    return SC_OK;
}

static enum sc_status read_enum(const struct sc_json *at, const struct sc_key *key, void *out,
                                struct sc_error *err)
{
    int value = 0;
    SC_TRY(sc_json_enum(at, key->name, key->names, &value, err));
    memcpy(out, &value, sizeof(value));
    return SC_OK;
}

static enum sc_status read_key(const struct sc_json *at, const struct sc_key *key, void *base,
                               struct sc_error *err)
{
    void *out = field(key, base);
    if (!key->required && !sc_json_has(at, key->name)) {
        return SC_OK;
    }
    switch (key->kind) {
    case SC_KEY_INT:
        return sc_json_int(at, key->name, (int64_t)key->min, (int64_t)key->max, out, err);
    case SC_KEY_NUMBER:
        return read_number(at, key, out, err);
    case SC_KEY_BOOL:
        return sc_json_bool(at, key->name, out, err);
    case SC_KEY_TEXT:
        return read_text(at, key, out, err);
    case SC_KEY_ENUM:
        return read_enum(at, key, out, err);
    }
    return sc_fail(err, SC_BUG, "key %s has no kind", key->name);
}

enum sc_status sc_keys_read(const struct sc_json *at, const struct sc_key *keys, void *base,
                            struct sc_error *err)
{
    for (; keys->name != NULL; keys++) {
        SC_TRY(read_key(at, keys, base, err));
    }
    return SC_OK;
}

/* A number as a file has it: at most 15 digits, so that reading it back gives the same bits. */
static double as_written(double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    return strtod(text, NULL);
}

static cJSON *write_key(const struct sc_key *key, const void *value)
{
    int index = 0;
    switch (key->kind) {
    case SC_KEY_INT:
        return cJSON_CreateNumber((double)*(const int64_t *)value);
    case SC_KEY_NUMBER:
        return cJSON_CreateNumber(as_written(*(const double *)value / key->unit));
    case SC_KEY_BOOL:
        return cJSON_CreateBool(*(const bool *)value);
    case SC_KEY_TEXT:
        return cJSON_CreateString(value);
    case SC_KEY_ENUM:
        memcpy(&index, value, sizeof(index));
        return cJSON_CreateString(key->names[index]);
    }
    return NULL;
}

static bool is_neutral(const struct sc_key *key, const void *value, const void *neutral)
{
    if (key->required || neutral == NULL) {
        return false;
    }
    if (key->kind == SC_KEY_TEXT) {
        return strcmp(value, neutral) == 0;
    }
    return memcmp(value, neutral, key->size) == 0;
}

bool sc_keys_write(cJSON *object, const struct sc_key *keys, const void *base, const void *neutral)
{
    for (; keys->name != NULL; keys++) {
        const void *value = const_field(keys, base);
        if (is_neutral(keys, value, neutral ? const_field(keys, neutral) : NULL)) {
            continue;
        }
        cJSON *item = write_key(keys, value);
        if (item == NULL || !cJSON_AddItemToObject(object, keys->name, item)) {
            cJSON_Delete(item);
            return false;
        }
    }
    return true;
}
