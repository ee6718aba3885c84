/* Backends by name: those of this build, and what the others answer. */
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "exec/backend.h"
#include "exec/backend_list.h"

struct entry {
    const char *name;
    const struct sc_backend *backend; /* NULL: not in this build */
    const char *missing;
};

static const struct entry entries[] = {
#define SC_BACKEND_ENTRY(name, backend, missing) {name, backend, missing},
    SC_BACKEND_LIST(SC_BACKEND_ENTRY)
#undef SC_BACKEND_ENTRY
};

static const char *const names[] = {
#define SC_BACKEND_NAME(name, backend, missing) name,
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

enum sc_status sc_backend_find(const char *name, const struct sc_backend **out,
                               struct sc_error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(entries[i].name, name))
            continue;
        if (!entries[i].backend)
            return sc_fail(err, SC_NO, "%s", entries[i].missing);
        *out = entries[i].backend;
        return SC_OK;
    }
    return fail_unknown(name, err);
}
