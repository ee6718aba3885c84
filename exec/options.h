/* What a run is asked to do: read by the launcher, the executor and the backends. */
#ifndef STEPCAST_EXEC_OPTIONS_H
#define STEPCAST_EXEC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plans/program.h"

/* Where tokens come from. `next` fills index and target [batch, length] for the sequences
 * [sequence, sequence + batch) of the global batch of `step` (0 is the first); it is called from
 * several threads at once, and again for the same step by every rank that needs the sequences. */
struct sc_batch_source {
    enum sc_status (*next)(void *context, int64_t step, int64_t sequence, int64_t batch,
                           int64_t length, int32_t *index, int32_t *target, struct sc_error *err);
    void *context;
};

/* How ranks talk: as threads of one process, or a process each (started by mpirun) whose
 * collectives go over MPI or over TCP. */
enum sc_run_transport {
    SC_TRANSPORT_THREADS,
    SC_TRANSPORT_MPI,
    SC_TRANSPORT_SOCKETS,
    SC_TRANSPORT_COUNT
};

/* Sees every operation of the step list of a rank just before and just after it runs, on the thread
 * that runs it; collectives only on request: before when the rank takes part, after when its result
 * is complete. `device` goes to the backend's `read`. Used by calibration, checks and tests. */
struct sc_device;
struct sc_observer {
    void (*before)(void *context, struct sc_device *device, int64_t rank, int64_t step,
                   uint32_t op);
    void (*after)(void *context, struct sc_device *device, int64_t rank, int64_t step, uint32_t op);
    void *context;
    bool collectives;
};

/* Makes one rank fail, for tests of what happens then. */
struct sc_fault {
    bool on;
    bool die; /* the process is killed; else the operation fails */
    int64_t rank, step;
    uint32_t op;
};

struct sc_run_options {
    int64_t steps;       /* measured ones, after the warm-up; at least 1 */
    int64_t warmup;      /* run before them; their losses are kept, their times are not */
    const char *backend; /* NULL: "host" */
    enum sc_run_transport transport;
    int64_t cores; /* of this machine to use, 0: all that the process may run on */
    bool chaos;    /* another order of what the waits leave open */
    uint64_t chaos_seed;
    bool poison;          /* serial; every byte that an operation does not name is poisoned */
    bool trace;           /* keep time stamps of operations */
    bool trace_ranks;     /* and give rows of single ranks as well */
    int64_t traced_steps; /* the last so many measured steps; 0: 64 */
    struct sc_batch_source data; /* next NULL: synthetic tokens (exec/data.h) ... */
    uint64_t data_seed;          /* ... of this seed; sc_run_plan takes the plan's */
    const char *initial_file;    /* parameters from a safetensors file, else ... */
    const float *const *initial; /* ... these full tensors, by number; NULL: drawn */
    const char *save_file;       /* parameters after the last step; NULL: not saved */
    int64_t snapshot_step; /* step (warm-up counts) whose gradients, and the parameters after which,
                              are kept in the result; -1: none */
    struct sc_observer observer;
    struct sc_fault fault;
    const char *hardware; /* name for the trace; NULL: "" */
};

/* The neutral values: 5 steps after 2 of warm-up, threads, all cores, no snapshot. */
void sc_run_options_neutral(struct sc_run_options *options);

/* "threads", "mpi", "sockets": as on the command line and in profiles. */
const char *sc_run_transport_name(enum sc_run_transport transport);
/* SC_USAGE with the names; `option` is what asked for it ("--transport"). */
enum sc_status sc_run_transport_find(const char *name, const char *option,
                                     enum sc_run_transport *out, struct sc_error *err);

#endif
