/*
 * The processes of a run: one alone, or those that mpirun started (one rank each). What passes
 * between them here is set-up and results; the ranks' collectives have a transport of their own.
 * Every function is called by all processes, in the same order, on their main threads.
 */
#ifndef STEPCAST_EXEC_PROCESS_H
#define STEPCAST_EXEC_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/failure.h"

struct sc_process {
    int64_t index, count;
    int64_t node_index, node_count;               /* among the processes of this machine */
    const struct sc_process_functions *functions; /* NULL: alone */
};

struct sc_process_functions {
    enum sc_status (*gather)(struct sc_process *process, const void *bytes, size_t size, void *all,
                             struct sc_error *err);
    enum sc_status (*broadcast)(struct sc_process *process, void *bytes, size_t size,
                                struct sc_error *err);
    double (*clock_offset)(struct sc_process *process);
    void (*announce)(struct sc_process *process, const struct sc_error *failure);
    void (*listen)(struct sc_process *process, struct sc_failure *failure);
    void (*quiet)(struct sc_process *process);
};

/* This process alone. */
void sc_process_alone(struct sc_process *out);
/* The processes of MPI_COMM_WORLD; starts MPI where it is not. SC_NO in a build without MPI. */
enum sc_status sc_process_mpi(struct sc_process *out, struct sc_error *err);
/* False in a build without MPI. */
bool sc_process_has_mpi(void);
/* Ends MPI where it was started; a process that used sc_process_mpi calls it once, last. */
void sc_process_end(void);
/* Ends this process at once, as if it had been killed: for tests of what the others then do. */
void sc_process_die(void);
/* True when a launcher such as mpirun started this process as one of several (environment). */
bool sc_process_under_mpi(void);

/* `size` bytes of every process, in order, into `all` of process 0 (others: unused). */
enum sc_status sc_process_gather(struct sc_process *process, const void *bytes, size_t size,
                                 void *all, struct sc_error *err);
/* `size` bytes of process 0 to all. */
enum sc_status sc_process_broadcast(struct sc_process *process, void *bytes, size_t size,
                                    struct sc_error *err);
/* Every process gives its own outcome; all get the same: SC_OK, or the failure of the first process
 * that failed. */
enum sc_status sc_process_agree(struct sc_process *process, enum sc_status mine,
                                struct sc_error *err);
/* Seconds to add to this process's CLOCK_MONOTONIC to get that of process 0. */
double sc_process_clock_offset(struct sc_process *process);

/* While ranks run: tells the other processes of a failure; takes note of theirs (called now and
 * then by one thread, may be another than the main one); ends the exchange of such notes. */
void sc_process_announce(struct sc_process *process, const struct sc_error *failure);
void sc_process_listen(struct sc_process *process, struct sc_failure *failure);
void sc_process_quiet(struct sc_process *process);

#endif
