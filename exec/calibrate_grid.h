/* The operations that calibration times, as a step program, and the run that times them. */
#ifndef STEPCAST_EXEC_CALIBRATE_GRID_H
#define STEPCAST_EXEC_CALIBRATE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/status.h"
#include "exec/options.h"
#include "model/cost_collective.h"
#include "model/cost_compute.h"
#include "plans/program.h"

enum sc_probe_family {
    SC_PROBE_GEMM,
    SC_PROBE_ATTENTION,
    SC_PROBE_MEMORY, /* memory-bound kinds, by bytes and elements */
    SC_PROBE_ADAM,
    SC_PROBE_STREAM, /* a plain copy of more than the caches hold: memory bandwidth */
    SC_PROBE_COLLECTIVE,
    SC_PROBE_CHAIN,  /* products one behind the other */
    SC_PROBE_BESIDE, /* the same products while a collective runs */
    SC_PROBE_FAMILY_COUNT
};

/* One thing timed: from `from` (its start, or its end) to the start of operation `to`. */
struct sc_probe {
    enum sc_probe_family family;
    const char *kind; /* as the profile calls it; static */
    char shape[SC_HW_NAME_SIZE];
    uint32_t from, to;
    bool from_end;
    double flops, bytes, elements;
    struct sc_gemm_work gemm;           /* SC_PROBE_GEMM */
    struct sc_attention_work attention; /* SC_PROBE_ATTENTION */
    enum sc_collective collective;      /* SC_PROBE_COLLECTIVE, _BESIDE */
    uint32_t op;                        /* that collective */
    double transfer_s;                  /* it alone, from the latest member's arrival to its end */
    /* SC_PROBE_COLLECTIVE: from the end of what it stood waiting for to its start; from its end to
     * the start of what stood waiting for it. */
    double wait_before_s, wait_after_s;
    /* Mean over ranks and steps without those far out (a step of training is a sum of operations);
     * SC_PROBE_COLLECTIVE: transfer_s. */
    double seconds;
    double spread; /* (90th - 10th percentile) / median */
};

/* Which parts of the grid. */
struct sc_grid_parts {
    bool compute, streaming, collectives, tiny;
    int64_t chain; /* products beside an all-reduce of a megabyte; 0: 8 beside any */
};

struct sc_grid {
    struct sc_program *program;
    int64_t ranks, cores; /* cores in all */
    struct sc_grid_parts parts;
    enum sc_run_transport transport; /* threads, unless the caller says otherwise */
    SC_ARRAY(struct sc_probe) probes;
};

/* A prepared program for `ranks` ranks on `cores` cores. */
enum sc_status sc_grid_create(int64_t ranks, int64_t cores, struct sc_grid_parts parts,
                              struct sc_grid *out, struct sc_error *err);
/* Runs `steps` steps after two of warm-up and fills seconds and spread. `machine`, of
 * `machine_size` bytes, gets the libraries that were used. With ranks as processes all of them call
 * this; process 0 gets the times. */
enum sc_status sc_grid_measure(struct sc_grid *grid, int64_t steps, char *machine,
                               size_t machine_size, struct sc_error *err);
void sc_grid_free(struct sc_grid *grid); /* a zeroed struct is accepted */

/* Seconds that the executor needs for an operation with nothing to do. */
enum sc_status sc_grid_measure_issue(int64_t ranks, int64_t cores, double *out,
                                     struct sc_error *err);

#endif
