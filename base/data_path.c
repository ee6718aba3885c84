/* Finding shipped files: environment, installation, source folder. */
#include "base/data_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* PREFIX/share/stepcast for a program PREFIX/bin/NAME; false when the program's path is unknown. */
static bool installed_root(char *out, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0) {
        return false;
    }
    out[length] = '\0';
    for (int i = 0; i < 2; i++) { /* the program's name, then "bin" */
        char *slash = strrchr(out, '/');
        if (slash == NULL) {
            return false;
        }
        *slash = '\0';
    }
    size_t used = strlen(out);
    return snprintf(out + used, size - used, "/share/stepcast") < (int)(size - used);
}

static bool try_root(const char *root, const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    int length =
        snprintf(path, sizeof(path), "%s/%s%s%s", root, folder, name ? "/" : "", name ? name : "");
    if (length < 0 || (size_t)length >= sizeof(path) || (size_t)length >= size ||
        !sc_file_exists(path)) {
        return false;
    }
    memcpy(out, path, (size_t)length + 1);
    return true;
}

enum sc_status sc_data_path(const char *folder, const char *name, char *out, size_t size,
                            struct sc_error *err)
{
    char root[PATH_MAX];
    const char *from_user = getenv("STEPCAST_DATA");
    if (from_user != NULL && from_user[0] != '\0' && try_root(from_user, folder, name, out, size)) {
        return SC_OK;
    }
    if (installed_root(root, sizeof(root)) && try_root(root, folder, name, out, size)) {
        return SC_OK;
    }
    if (try_root(STEPCAST_SOURCE_DIR, folder, name, out, size)) {
        return SC_OK;
    }
    return sc_fail(
        err, SC_BAD_INPUT,
        "%s%s%s: found in neither $STEPCAST_DATA, the installation nor the source folder", folder,
        name ? "/" : "", name ? name : "");
}
