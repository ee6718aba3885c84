/* Shipped names to files: the folder comes from base/data_path, the rest is listing and joining. */
#include "model/shipped.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/data_path.h"
#include "base/json.h"

#define SUFFIX ".json"

static bool ends_with_suffix(const char *text)
{
    size_t length = strlen(text), suffix = strlen(SUFFIX);
    return length > suffix && strcmp(text + length - suffix, SUFFIX) == 0;
}

bool sc_shipped_is_name(const char *name_or_file)
{
    return strchr(name_or_file, '/') == NULL && !ends_with_suffix(name_or_file);
}

struct name_list {
    SC_ARRAY(char *) names; /* sorted */
};

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

static void free_names(struct name_list *list)
{
    for (size_t i = 0; i < list->names.count; i++) {
        free(list->names.items[i]);
    }
    sc_array_free(&list->names);
}

static enum sc_status add_name(struct name_list *list, const char *file_name, struct sc_error *err)
{
    size_t length = strlen(file_name) - strlen(SUFFIX);
    char *name = strndup(file_name, length);
    char **slot = name != NULL ? sc_array_push(&list->names) : NULL;
    if (slot == NULL) {
        free(name);
        return sc_fail_memory(err, length + 1);
    }
    *slot = name;
    return SC_OK;
}

static enum sc_status read_names(const char *directory, struct name_list *out, struct sc_error *err)
{
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return sc_fail(err, SC_MACHINE, "%s: cannot read this folder", directory);
    }
    enum sc_status status = SC_OK;
    const struct dirent *entry;
    while (status == SC_OK && (entry = readdir(stream)) != NULL) {
        if (ends_with_suffix(entry->d_name)) {
            status = add_name(out, entry->d_name, err);
        }
    }
    closedir(stream);
    if (out->names.count > 1) {
        qsort(out->names.items, out->names.count, sizeof(char *), compare_names);
    }
    return status;
}

/* The first prefix_length bytes of prefix (which end in a slash, or are none), name, suffix. */
static enum sc_status join(const char *prefix, int prefix_length, const char *name,
                           const char *suffix, char *out, size_t size, struct sc_error *err)
{
    int length = snprintf(out, size, "%.*s%s%s", prefix_length, prefix_length > 0 ? prefix : "",
                          name, suffix);
    if (length < 0 || (size_t)length >= size) {
        return sc_fail(err, SC_BAD_INPUT, "%s: the path is longer than %zu bytes", name, size - 1);
    }
    return SC_OK;
}

static enum sc_status fail_unknown(const char *directory, const char *what, const char *name,
                                   struct sc_error *err)
{
    struct name_list list = {0};
    enum sc_status status = read_names(directory, &list, err);
    if (status == SC_OK && !sc_array_push(&list.names)) { /* the terminating NULL */
        status = sc_fail_memory(err, sizeof(char *));
    }
    if (status == SC_OK) {
        const char *nearest = sc_nearest(name, (const char *const *)list.names.items);
        status = sc_fail(err, SC_BAD_INPUT,
                         "%s \"%s\": found no shipped %s of that name, expected %s%s%s or a file",
                         what, name, what, nearest ? "\"" : "one that `stepcast list` shows",
                         nearest ? nearest : "", nearest ? "\"" : "");
    }
    free_names(&list);
    return status;
}

static enum sc_status resolve_name(const char *folder, const char *what, const char *name,
                                   char *out, size_t size, struct sc_error *err)
{
    char directory[SC_PATH_SIZE];
    struct sc_error ignored = SC_ERROR_INIT;
    char file[NAME_MAX + 1];
    if (snprintf(file, sizeof(file), "%s" SUFFIX, name) < (int)sizeof(file) &&
        sc_data_path(folder, file, out, size, &ignored) == SC_OK) {
        return SC_OK;
    }
    SC_TRY(sc_data_path(folder, NULL, directory, sizeof(directory), err));
    return fail_unknown(directory, what, name, err);
}

enum sc_status sc_shipped_resolve(const char *folder, const char *what, const char *name_or_file,
                                  const char *relative_to, char *out, size_t size,
                                  struct sc_error *err)
{
    if (name_or_file == NULL) { /* a caller of the library that left it out */
        return sc_fail(err, SC_USAGE, "%s: found none, expected a name or a file", what);
    }
    if (name_or_file[0] == '\0') {
        return sc_fail(err, SC_BAD_INPUT, "%s: found an empty name, expected a name or a file",
                       what);
    }
    if (sc_shipped_is_name(name_or_file)) {
        return resolve_name(folder, what, name_or_file, out, size, err);
    }
    const char *slash = relative_to != NULL ? strrchr(relative_to, '/') : NULL;
    bool absolute = name_or_file[0] == '/';
    int length = absolute || slash == NULL ? 0 : (int)(slash - relative_to) + 1;
    return join(relative_to, length, name_or_file, "", out, size, err);
}

enum sc_status sc_shipped_list(const char *folder, sc_shipped_fn each, void *context,
                               struct sc_error *err)
{
    char directory[SC_PATH_SIZE], file[SC_PATH_SIZE];
    struct name_list list = {0};
    SC_TRY(sc_data_path(folder, NULL, directory, sizeof(directory) - 1, err));
    enum sc_status status = read_names(directory, &list, err);
    strcat(directory, "/");
    for (size_t i = 0; status == SC_OK && i < list.names.count; i++) {
        status = join(directory, (int)strlen(directory), list.names.items[i], SUFFIX, file,
                      sizeof(file), err);
        if (status == SC_OK) {
            status = each(context, list.names.items[i], file, err);
        }
    }
    free_names(&list);
    return status;
}
