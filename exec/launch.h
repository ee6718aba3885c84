/*
 * Running a program for real: starts its ranks (as threads, or one in each process that mpirun
 * started), walks their lists, and gathers what they measured.
 *
 * A rank that fails ends the run for all of them; the error names it. Under MPI every process calls
 * sc_run with the same program and options; the result is process 0's, others get root = false.
 */
#ifndef STEPCAST_EXEC_LAUNCH_H
#define STEPCAST_EXEC_LAUNCH_H

#include "exec/contention.h"
#include "exec/options.h"
#include "exec/tensors.h"
#include "plans/plan.h"
#include "plans/program.h"
#include "plans/trace.h"

struct sc_run_result {
    bool root;
    int64_t warmup, steps; /* as asked */
    double *losses;        /* [warmup + steps]: sum over ranks that hold different tokens */
    bool has_losses;
    double *step_s;     /* [steps]: periods of the measured steps */
    double step_time_s; /* their median */
    struct {
        uint64_t arena_bytes[SC_PLACE_COUNT]; /* of the rank that has most */
        uint64_t resident_bytes;              /* peak of a process (all its ranks) */
    } memory;
    char machine[256];
    struct sc_identity measured_on;
    struct sc_contention contention; /* its spread: of the measured steps */
    bool has_trace;
    struct sc_trace trace;
    bool has_snapshot;
    struct sc_tensors gradients, parameters; /* after options.snapshot_step, full tensors */
};

/* `program` is prepared (sc_program_prepare). On failure *result is empty. */
enum sc_status sc_run(const struct sc_program *program, const struct sc_run_options *options,
                      struct sc_run_result *result, struct sc_error *err);
/* Lowers and prepares the plan first, with no limit of memory but the machine's. */
enum sc_status sc_run_plan(const struct sc_plan *plan, const struct sc_run_options *options,
                           struct sc_run_result *result, struct sc_error *err);
void sc_run_result_free(struct sc_run_result *result);

/* Replaces this process by `mpirun -n ranks <this program> argv...`; returns only when that fails.
 * Root and more ranks than cores are allowed. */
enum sc_status sc_launch_mpirun(int64_t ranks, char *const argv[], struct sc_error *err);
/* The same beside this process; returns when it has ended. SC_NO where there is no mpirun. */
enum sc_status sc_launch_mpirun_wait(int64_t ranks, char *const argv[], struct sc_error *err);
/* True in a process that mpirun (or srun) started: then do not start it again. */
bool sc_launched_by_mpi(void);
/* A program that ran with MPI calls this once before it ends. */
void sc_launch_end(void);

#endif
