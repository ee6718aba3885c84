/*
 * The kernels on a team: for every kernel k of kernels.h
 *   void sc_run_k(struct sc_team *team, const struct ..._args *a, int64_t count, int64_t grain);
 * splits the kernel's range 0..count over the members in multiples of grain (1 for rows; 64 for
 * elements and columns, so that members do not write one cache line) and runs the fastest build of
 * it. A NULL team runs it on the caller.
 */
#ifndef STEPCAST_EXEC_HOST_TEAM_KERNELS_H
#define STEPCAST_EXEC_HOST_TEAM_KERNELS_H

#include "exec/host/team.h"
#include "exec/kernels/kernels.h"

#define SC_RUN_PROTOTYPE(kernel, type, range)                                                      \
    void sc_run_##kernel(struct sc_team *team, const struct type *a, int64_t count, int64_t grain);
SC_KERNEL_LIST(SC_RUN_PROTOTYPE)
#undef SC_RUN_PROTOTYPE

/* The same by number, with the grain of the kernel's range. */
void sc_team_kernel(struct sc_team *team, enum sc_kernel_id kernel, const void *args,
                    int64_t count);

#endif
