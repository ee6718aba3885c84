/*
 * What an executor needs from a machine: a small struct of functions. A backend knows devices,
 * streams, events and how to do each kind of operation; it knows nothing about plans.
 *
 * A *world* is what the ranks of one process share (communicators, threads, the order of a chaos
 * run); a *device* is one rank: its arenas (one allocation a place, made by `create`, before the
 * first step), its streams, its events. Nothing is allocated while steps run.
 *
 * Events. Event e < ops of the step list belongs to operation e; event ops + i to operation i of
 * the init list. `record` of (e, step) says "operation e of that step has ended". A wait is issued
 * in its own step or one of the steps_ahead behind it, before the event is recorded again; a wait
 * for a step that had ended when the present one was issued may be dropped. Whoever looks at an
 * event only later than the wait was issued, such as a host thread that serves a stream, may do so
 * until its step ends: it needs steps_ahead + 1 sets of events. A stream of a device, which takes
 * the event as it is when the wait is issued, needs steps_ahead.
 *
 * Ends of steps. `finish` is called for the last operation of every stream in step s before step
 * s + steps_ahead is issued, and for all streams in the last step; the ends of the step before the
 * last follow from it. That is when times and what read_out left can be collected.
 *
 * Threads. `create` and everything up to `finish` are called by the rank's own thread; `destroy`
 * and `read` after the steps by the launcher's; `read` within a step by whoever calls the observer,
 * who must see the operation alone: a backend that only starts operations waits for it there.
 *
 * Order. wait, dispatch and record append to a stream and return at once; a stream does what was
 * appended first in, first out. A failure inside a stream goes to setup.failure and shows at the
 * next call. A call that fails ends all ranks: what they sleep in (a collective, a flag) must end
 * too, which only the backend can bring about.
 */
#ifndef STEPCAST_EXEC_BACKEND_H
#define STEPCAST_EXEC_BACKEND_H

#include "exec/failure.h"
#include "exec/options.h"
#include "plans/program.h"

struct sc_world;
struct sc_device;
struct sc_process;

enum sc_list_name { SC_LIST_STEP, SC_LIST_INIT };

/* When an operation was appended to its stream, began and ended: seconds of CLOCK_MONOTONIC. */
struct sc_stamp {
    double issue, start, end;
};

struct sc_backend_setup {
    const struct sc_program *program;
    const struct sc_run_options *options;
    struct sc_process *process;      /* NULL: ranks are threads of this process */
    int64_t first_rank, local_ranks; /* ranks that live in this process */
    int64_t steps;                   /* warm-up and measured */
    int64_t traced_steps;            /* sets of stamps to keep, 0: none */
    const float *const *initial;     /* by tensor: content for parameters, NULL: drawn */
    struct sc_failure *failure;
};

struct sc_backend {
    const char *name;

    /* ---- required ---- */
    /* SC_NO and one line when it cannot run the program: kinds, element types, places. */
    enum sc_status (*check)(const struct sc_program *program, const struct sc_run_options *options,
                            struct sc_error *err);
    enum sc_status (*open)(const struct sc_backend_setup *setup, struct sc_world **out,
                           struct sc_error *err);
    void (*close)(struct sc_world **world); /* accepts NULL; sets NULL */
    enum sc_status (*create)(struct sc_world *world, int64_t rank, struct sc_device **out,
                             struct sc_error *err);
    void (*destroy)(struct sc_device **device); /* ends its streams; accepts NULL; sets NULL */
    enum sc_status (*wait)(struct sc_device *device, int stream, uint32_t event, int64_t step,
                           struct sc_error *err);
    enum sc_status (*dispatch)(struct sc_device *device, enum sc_list_name list, uint32_t op,
                               int64_t step, struct sc_error *err);
    enum sc_status (*record)(struct sc_device *device, int stream, uint32_t event, int64_t step,
                             struct sc_error *err);
    /* Blocks the caller until the event is recorded. */
    enum sc_status (*finish)(struct sc_device *device, uint32_t event, int64_t step,
                             struct sc_error *err);
    /* Copies a value of this rank into `to` (sc_value_bytes, rows without gaps). */
    enum sc_status (*read)(struct sc_device *device, uint32_t value, enum sc_version version,
                           int64_t step, void *to, struct sc_error *err);
    /* Stamps of step s at [(s % traced_steps) * ops + op]; NULL when none are kept. */
    const struct sc_stamp *(*stamps)(const struct sc_device *device);
    /* When the last operation in issue order ended, [steps], seconds of CLOCK_MONOTONIC. */
    const double *(*step_ends)(const struct sc_device *device);
    /* What `read_out` left: [steps], the sum of the value's elements in each step. */
    const double *(*read_outs)(const struct sc_device *device);

    /* ---- optional ---- */
    bool device_apart; /* place `device` is memory of its own, not this machine's */
    /* Set where options can ask for one thread that runs everything (chaos, poison): true when
     * they do. The launcher then calls `advance` instead of starting threads. NULL: never. */
    bool (*serial)(const struct sc_run_options *options);
    /* Runs one operation of some device; *progress false when none can. Needed with `serial`. */
    enum sc_status (*advance)(struct sc_world *world, bool *progress, struct sc_error *err);
    /* True when the event is recorded; never blocks. Needed with `serial`. */
    bool (*done)(const struct sc_device *device, uint32_t event, int64_t step);
    /* Names libraries and transport, for the trace. NULL: "". */
    void (*describe)(const struct sc_world *world, char *out, size_t size);
    /* Names the libraries that compute: what must be the same for times to be. NULL: "". */
    void (*library)(char *out, size_t size);
};

/* The backend of that name. Unknown: SC_USAGE with the nearest; not in this build: SC_NO with its
 * line. */
enum sc_status sc_backend_find(const char *name, const struct sc_backend **out,
                               struct sc_error *err);

#endif
