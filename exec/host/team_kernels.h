/* The kernels on a team. */
#ifndef STEPCAST_EXEC_HOST_TEAM_KERNELS_H
#define STEPCAST_EXEC_HOST_TEAM_KERNELS_H

#include "exec/host/team.h"
#include "exec/kernels/kernels.h"

/* Splits the kernel's range 0..count over the members in multiples of its grain (1 for rows; 64 for
 * elements, so that members do not write one cache line) and runs the fastest build of it. `args`
 * is the kernel's struct. A NULL team runs it on the caller. */
void sc_team_kernel(struct sc_team *team, enum sc_kernel_id kernel, const void *args,
                    int64_t count);

#endif
