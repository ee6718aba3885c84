/* Changing one item of a JSON document by its path (`--set path=value`). */
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES 128

/* The next part of "a.b[3].c" into part; false at the end. An empty part means a malformed path. */
static bool next_part(const char **path, char part[PART_BYTES])
{
    if (**path == '\0') {
        return false;
    }
    size_t length = strcspn(*path, ".[]");
    size_t kept = length < PART_BYTES - 1 ? length : PART_BYTES - 1;
    memcpy(part, *path, kept);
    part[kept] = '\0';
    *path += length;
    if (**path == ']') {
        (*path)++;
    }
    if ((**path == '.' || **path == '[') && (*path)[1] != '\0') {
        (*path)++;
    }
    return true;
}

static bool array_index(const char *part, const cJSON *array, int *index)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(part, &end, 10);
    *index = (int)value;
    return end != part && *end == '\0' && errno == 0 && value >= 0 &&
           value <= cJSON_GetArraySize(array);
}

/* Item of `container` that part names, NULL when absent; *index is its place in an array. */
static enum sc_status find_part(const struct sc_json_doc *doc, cJSON *container, const char *path,
                                const char *part, cJSON **item, int *index, struct sc_error *err)
{
    if (part[0] == '\0') {
        return sc_fail(err, SC_USAGE, "--set %s: an empty part in the path", path);
    }
    if (cJSON_IsObject(container)) {
        *item = cJSON_GetObjectItemCaseSensitive(container, part);
        return SC_OK;
    }
    if (!cJSON_IsArray(container)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: --set %s: there is nothing below the value that stands before \"%s\"",
                       doc->file, path, part);
    }
    if (!array_index(part, container, index)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: --set %s: found \"%s\", expected a place from 0 to %d", doc->file, path,
                       part, cJSON_GetArraySize(container));
    }
    *item = cJSON_GetArrayItem(container, *index);
    return SC_OK;
}

/* Puts value (owned here on success only) where part points. */
static bool put_part(cJSON *container, const char *part, const cJSON *old, int index, cJSON *value)
{
    if (cJSON_IsArray(container)) {
        return old != NULL ? cJSON_ReplaceItemInArray(container, index, value) != 0
                           : cJSON_AddItemToArray(container, value) != 0;
    }
    return old != NULL ? cJSON_ReplaceItemInObjectCaseSensitive(container, part, value) != 0
                       : cJSON_AddItemToObject(container, part, value) != 0;
}

static cJSON *parse_value(const char *value)
{
    cJSON *item = cJSON_ParseWithOpts(value, NULL, 1);
    return item != NULL ? item : cJSON_CreateString(value);
}

enum sc_status sc_json_set(struct sc_json_doc *doc, const char *path, const char *value,
                           struct sc_error *err)
{
    const char *rest = path;
    char part[PART_BYTES];
    cJSON *container = doc->root;
    if (!next_part(&rest, part)) {
        return sc_fail(err, SC_USAGE, "--set %s=%s: a path must stand before the =", path, value);
    }
    if (sc_json_not_utf8(path) != NULL || sc_json_not_utf8(value) != NULL) {
        return sc_fail(err, SC_USAGE, "--set: found bytes that are not UTF-8, expected path=value");
    }
    for (;;) {
        cJSON *item = NULL;
        int index = 0;
        SC_TRY(find_part(doc, container, path, part, &item, &index, err));
        bool last = *rest == '\0';
        cJSON *fresh = last ? parse_value(value) : item == NULL ? cJSON_CreateObject() : NULL;
        if (fresh == NULL && (last || item == NULL)) {
            return sc_fail_memory(err, sizeof(cJSON));
        }
        if (fresh != NULL && !put_part(container, part, item, index, fresh)) {
            cJSON_Delete(fresh);
            return sc_fail_memory(err, sizeof(cJSON));
        }
        if (last) {
            return SC_OK;
        }
        container = fresh != NULL ? fresh : item;
        next_part(&rest, part);
    }
}
