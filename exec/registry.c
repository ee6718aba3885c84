/* Backends by name: those of this build, those in modules, and what the others answer. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "exec/backend.h"
#include "exec/backend_list.h"

struct entry {
    const char *name;
    const struct sc_backend *backend; /* NULL: not in this program */
    const char *module;               /* the file that has it, NULL: none */
    const char *missing;
};

static const struct entry entries[] = {
#define SC_BACKEND_ENTRY(name, backend, module, missing) {name, backend, module, missing},
    SC_BACKEND_LIST(SC_BACKEND_ENTRY)
#undef SC_BACKEND_ENTRY
};

static const char *const names[] = {
#define SC_BACKEND_NAME(name, backend, module, missing) name,
    SC_BACKEND_LIST(SC_BACKEND_NAME)
#undef SC_BACKEND_NAME
        NULL,
};

static enum sc_status fail_unknown(const char *name, struct sc_error *err)
{
    const char *nearest = sc_nearest(name, names);
    if (!nearest)
        nearest = names[0];
    return sc_fail(err, SC_USAGE, "backend: found \"%s\", expected a backend such as \"%s\"", name,
                   nearest);
}

/* The module stays open: what it gives is used until the program ends. */
static enum sc_status load(const struct entry *entry, const struct sc_backend **out,
                           struct sc_error *err)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "sc_backend_%s", entry->name);
    void *module = dlopen(entry->module, RTLD_NOW | RTLD_LOCAL);
    const struct sc_backend *found = module ? dlsym(module, symbol) : NULL;
    if (!found) {
        const char *why = dlerror();
        return sc_fail(err, SC_MACHINE, "backend %s: %s", entry->name, why ? why : entry->module);
    }
    *out = found;
    return SC_OK;
}

enum sc_status sc_backend_find(const char *name, const struct sc_backend **out,
                               struct sc_error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(entries[i].name, name))
            continue;
        if (!entries[i].backend && entries[i].module)
            return load(&entries[i], out, err);
        if (!entries[i].backend)
            return sc_fail(err, SC_NO, "%s", entries[i].missing);
        *out = entries[i].backend;
        return SC_OK;
    }
    return fail_unknown(name, err);
}
