/*
 * The collectives of a transport whose ranks are processes. The processes may be those of this run,
 * or others that leave their timings in a file.
 */
#ifndef STEPCAST_EXEC_CALIBRATE_TRANSPORT_H
#define STEPCAST_EXEC_CALIBRATE_TRANSPORT_H

#include "exec/calibrate_grid.h"
#include "exec/process.h"

struct sc_transport_task {
    enum sc_run_transport transport;
    int64_t cores;  /* in all, of one machine */
    double seconds; /* how long it may take, about */
    bool tiny;
};

/* Called by all processes of `process`, one rank each; at process 0 the probes of *out have times.
 * The chain beside an all-reduce is made to outlast it. sc_grid_free. */
enum sc_status sc_calibrate_transport(const struct sc_transport_task *task,
                                      struct sc_process *process, struct sc_grid *out,
                                      struct sc_error *err);

/* The timings as a file, and back as a grid with times (sc_grid_free). Not a format that is kept:
 * both ends are one program. */
enum sc_status sc_calibrate_transport_write(const struct sc_grid *grid, const char *file,
                                            struct sc_error *err);
enum sc_status sc_calibrate_transport_read(const char *file, struct sc_grid *out,
                                           struct sc_error *err);

#endif
