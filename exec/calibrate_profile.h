/* A profile (stepcast.hw/1) out of fitted constants, with where each comes from. */
#ifndef STEPCAST_EXEC_CALIBRATE_PROFILE_H
#define STEPCAST_EXEC_CALIBRATE_PROFILE_H

#include <cjson/cJSON.h>

#include "exec/calibrate_fit.h"

/* `chosen`: the transport of a forecast that says nothing else. `machine`: processor, libraries,
 * transport. NULL when out of memory; the caller deletes it. */
cJSON *sc_calibrate_profile(const struct sc_fits *fits, enum sc_run_transport chosen,
                            const char *name, const char *machine);

#endif
