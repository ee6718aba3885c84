/*
 * Matrix products on a team: C is split into one part a member, each a single-threaded library
 * call, because several ranks live in one process and a library's own threads know nothing of that.
 * fp32, row-major. All calls: no allocation of ours, cannot fail; sizes of 0 are allowed.
 */
#ifndef STEPCAST_EXEC_HOST_GEMM_H
#define STEPCAST_EXEC_HOST_GEMM_H

#include "exec/gemm_shape.h"
#include "exec/host/team.h"

/* Runs it on a team (NULL: on the caller alone). A team of a given size gives the same bits always;
 * bias_gradient has the same bits for every team. */
void sc_gemm_run(struct sc_team *team, const struct sc_gemm *g);
/* The products are dealt to members whole. */
void sc_gemm_run_batch(struct sc_team *team, const struct sc_gemm *g,
                       const struct sc_gemm_batch *batch);

/* The library in use with its version, for traces: "onednn 2.6.3". Static. */
const char *sc_gemm_library(void);

#endif
