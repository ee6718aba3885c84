/*
 * Gradients and parameters of a step as full tensors. An observer copies what every `adam` is about
 * to read and what it wrote; the flat pieces of all ranks then make the tensors, whatever the
 * layout.
 */
#ifndef STEPCAST_EXEC_SNAPSHOT_H
#define STEPCAST_EXEC_SNAPSHOT_H

#include "exec/backend.h"
#include "exec/process.h"
#include "exec/tensors.h"

struct sc_snapshot {
    const struct sc_backend *backend;
    const struct sc_program *program;
    int64_t step, first_rank, ranks;        /* step -1: none */
    struct sc_flat *gradients, *parameters; /* [ranks] of this process */
    float *room;             /* [ranks][flat elements]: what is read before it is sorted in */
    struct sc_observer next; /* the caller's own */
};

/* Sets options->observer to itself, in front of the caller's, when options->snapshot_step says so;
 * the snapshot must outlive the run. */
enum sc_status sc_snapshot_open(struct sc_snapshot *snapshot, const struct sc_backend *backend,
                                const struct sc_program *program, struct sc_run_options *options,
                                int64_t first_rank, int64_t ranks, struct sc_error *err);
void sc_snapshot_close(struct sc_snapshot *snapshot); /* a zeroed struct is accepted */

/* Replaces the parameters of local rank `index` by what its device holds now. */
enum sc_status sc_snapshot_read_parameters(struct sc_snapshot *snapshot, int64_t index,
                                           struct sc_device *device, int64_t step,
                                           struct sc_error *err);
/* Full tensors at process 0 (others get none); called by all. gradients may be NULL. */
enum sc_status sc_snapshot_gather(const struct sc_snapshot *snapshot, struct sc_process *process,
                                  struct sc_tensors *gradients, struct sc_tensors *parameters,
                                  struct sc_error *err);

#endif
