/* Which machine this is: processor, cores, libraries. */
#ifndef STEPCAST_EXEC_IDENTITY_H
#define STEPCAST_EXEC_IDENTITY_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "exec/backend.h"
#include "model/identity.h"

/* `cores` as in the options of a run: 0 stands for all that the process may run on. */
void sc_identity_here(const struct sc_backend *backend, int64_t cores, struct sc_identity *out);
/* Puts measured_on into a profile. False when out of memory. */
bool sc_identity_write(const struct sc_identity *identity, cJSON *profile);

#endif
