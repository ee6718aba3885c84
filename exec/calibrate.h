/*
 * Measures this machine and makes a hardware profile of it (stepcast.hw/1, device kind "cores").
 *
 * What the simulator will price is what is measured: a fixed grid of single operations (products in
 * three layouts, attention, every memory-bound kind, Adam, collectives of several sizes, a
 * collective beside products) is a step program, and the executor runs it as it runs any other, on
 * one core a rank with all ranks at once and on all cores for one rank. Inputs that a step would
 * find in the cache are touched just before; weights and results rotate through more memory than
 * the caches hold. A time is the mean over steps and ranks without those far out, from the start of
 * the operation to the start of the one behind it (a collective's: the median, from its last
 * member's arrival to its end). The grid has no layer, no step and no shape of a shipped plan.
 *
 * Collectives among processes are timed by the same program, started by mpirun: by the caller's
 * `start`, or all processes of a run under mpirun call sc_calibrate together.
 *
 * Constants are fitted by model/fit_linear.h; how well they repeat the measurements stands beside
 * them.
 */
#ifndef STEPCAST_EXEC_CALIBRATE_H
#define STEPCAST_EXEC_CALIBRATE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/status.h"
#include "exec/calibrate_storage.h"
#include "exec/contention.h"
#include "exec/options.h"
#include "exec/process.h"
#include "model/hardware.h"

struct sc_calibrate_options {
    const char *name;           /* of the profile; NULL: "this-machine" */
    int64_t cores;              /* to use; 0: all that the process may run on */
    double seconds;             /* how long measuring may take, about; 0: 50 */
    const char *storage_folder; /* where the disk is tried; NULL: the current one */
    bool tiny; /* the smallest grid, two steps: for tests, its numbers mean nothing */
    enum sc_run_transport transport; /* the profile's choice; it must be measured */
    /* Others beside threads that are measured where that is possible. */
    bool optional[SC_TRANSPORT_COUNT];
    int64_t ranks;              /* that are processes; 0: as many as cores, then twice as many */
    struct sc_process *process; /* the ranks that mpirun started; NULL: alone */
    /* Runs sc_calibrate_transport in that many processes, which write their timings to `file`. */
    enum sc_status (*start)(void *start_context, enum sc_run_transport transport, int64_t ranks,
                            const char *file, struct sc_error *err);
    void *start_context;
    /* Told what is going on, with the share that is done; NULL: nobody. */
    void (*progress)(void *context, const char *what, double share);
    void *context;
};

/* One operation of the grid. */
struct sc_calibration_row {
    char kind[SC_HW_NAME_SIZE];  /* as the profile calls it: "gemm", "activation_swiglu", ... */
    char shape[SC_HW_NAME_SIZE]; /* "384 x 960 x 320 nt" */
    int64_t ranks, cores;        /* ranks at once, cores of each */
    double flops, bytes, elements;
    double measured_s, spread; /* as sc_probe.seconds; (90th - 10th percentile) / median */
    double fitted_s;           /* by the profile, with nothing else running */
};

struct sc_calibration {
    bool root;                       /* the process that has the rest */
    struct sc_hardware hardware;     /* as the profile says, divided for one rank a core */
    cJSON *profile;                  /* stepcast.hw/1 with a source beside every number */
    struct sc_contention contention; /* while operations were measured */
    struct sc_storage storage;
    SC_ARRAY(struct sc_calibration_row) rows;
    double median_error, worst_error; /* of |fitted / measured - 1| over the rows */
    double spread;               /* median over the rows; above 0.1 the machine was not quiet */
    double seconds;              /* it took */
    char skipped[SC_ERROR_TEXT]; /* why a transport was not measured; "": none was skipped */
};

/* SC_MACHINE where the machine cannot be measured. The caller frees with sc_calibration_free. */
enum sc_status sc_calibrate(const struct sc_calibrate_options *options, struct sc_calibration *out,
                            struct sc_error *err);
/* How long and on what the collectives of a transport of processes are measured. */
struct sc_transport_task;
void sc_calibrate_transport_task(const struct sc_calibrate_options *options,
                                 enum sc_run_transport transport, struct sc_transport_task *out);
void sc_calibration_free(struct sc_calibration *calibration); /* a zeroed struct is accepted */

#endif
