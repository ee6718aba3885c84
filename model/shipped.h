/*
 * Models, profiles and plans that come with stepcast are named without folder and ".json"; anything
 * else that stands where such a name may stand is a file.
 */
#ifndef STEPCAST_MODEL_SHIPPED_H
#define STEPCAST_MODEL_SHIPPED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define SC_PATH_SIZE 4096

/* Folders, as sc_data_path takes them. */
#define SC_SHIPPED_MODELS "model/shipped"
#define SC_SHIPPED_HARDWARE "hw_profiles"
#define SC_SHIPPED_PLANS "plans/shipped"

/* A bare name: no slash, and no ".json" at its end. */
bool sc_shipped_is_name(const char *name_or_file);
/* The file behind a shipped name or a path. A relative path is taken relative to the folder of
 * `relative_to` (a file; NULL: the current folder). An unknown name fails with SC_BAD_INPUT and the
 * nearest shipped one; `what` is the noun for that line ("model"). Whether a path exists is not
 * looked at. */
enum sc_status sc_shipped_resolve(const char *folder, const char *what, const char *name_or_file,
                                  const char *relative_to, char *out, size_t size,
                                  struct sc_error *err);
/* Calls `each` with every shipped name of the folder, sorted; stops at its first failure. */
typedef enum sc_status (*sc_shipped_fn)(void *context, const char *name, const char *file,
                                        struct sc_error *err);
enum sc_status sc_shipped_list(const char *folder, sc_shipped_fn each, void *context,
                               struct sc_error *err);

#endif
