/*
 * Where the files are that ship with stepcast (models, hardware profiles, plans, schemas, plot
 * scripts). Looked for in this order: the folder named by the environment variable STEPCAST_DATA,
 * share/stepcast of the installation that the running program belongs to, the source folder that
 * it was built from.
 */
#ifndef STEPCAST_BASE_DATA_PATH_H
#define STEPCAST_BASE_DATA_PATH_H

#include <stddef.h>

#include "base/status.h"

/* Writes the path of `folder`/`name` into out ("plans/shipped", "x.json"); of the folder itself
 * when name is NULL. A folder is the path that it has in the source tree. SC_BAD_INPUT when it is
 * nowhere or longer than size. */
enum sc_status sc_data_path(const char *folder, const char *name, char *out, size_t size,
                            struct sc_error *err);

#endif
