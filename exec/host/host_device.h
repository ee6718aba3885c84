/*
 * The host backend's streams and threads.
 *
 * A stream is a queue of commands: wait for an event, run an operation, record an event. A worker
 * serves one stream or several: each stream with computation has a worker of its own, with a team
 * of cores; all streams that only communicate share one worker, which begins collectives, tests
 * those under way and sleeps; every other stream has a small worker. Where options ask for one
 * thread (chaos, poison), no worker is started and sc_serial_advance runs the streams of all ranks.
 *
 * Events count: done[e] is the number of steps in which event e has been recorded.
 */
#ifndef STEPCAST_EXEC_HOST_HOST_DEVICE_H
#define STEPCAST_EXEC_HOST_HOST_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "exec/host/host_rank.h"
#include "exec/host/team.h"
#include "exec/host/transport.h"
#include "exec/host/wake.h"

/* Bits of sc_device.listeners: workers, and the issuer, who waits for the ends of steps. */
enum { SC_WORKERS_MAX = 63, SC_LISTENER_ISSUER = 63 };

enum sc_command_kind { SC_COMMAND_WAIT, SC_COMMAND_RUN, SC_COMMAND_RECORD };

struct sc_command {
    uint8_t kind, list; /* enum sc_command_kind, enum sc_list_name */
    uint32_t index;     /* of an event or an operation */
    int64_t step;
};

struct sc_device;
struct sc_host_worker;

struct sc_host_stream {
    struct sc_device *device;
    struct sc_host_worker *worker;
    struct sc_command *ring; /* a power of two */
    size_t mask;
    atomic_size_t head, tail; /* moved by the worker, by the issuer */
    bool begun;               /* the collective at the head is under way */
    double started;
};

struct sc_host_worker {
    struct sc_device *device;
    pthread_t thread;
    bool started;
    struct sc_wake wake;
    struct sc_host_stream **streams; /* [count] */
    size_t count;
    bool communicates, computes;
    int threads; /* of its team */
    struct sc_team *team;
    char *scratch;
    int looks;       /* at MPI since something moved */
    uint64_t delays; /* random state of a chaos run over MPI */
};

struct sc_device {
    struct sc_world *world;
    struct sc_rank_data data;
    struct sc_host_stream *streams; /* [stream_count] */
    size_t stream_count;
    struct sc_host_worker *workers; /* [worker_count] */
    size_t worker_count;
    atomic_llong *done;  /* [events] */
    uint64_t *listeners; /* [events]: whom to wake, a bit each */
    size_t events;
    struct sc_wake finished;    /* the issuer sleeps here */
    struct sc_member **members; /* by group */
    struct sc_stamp *stamps;
    atomic_bool closing;
};

/* The order of a serial run. */
struct sc_serial {
    bool on;
    uint64_t random;
    int64_t ran;        /* operations so far */
    int64_t changes[3]; /* at which the stream that runs goes behind all others */
    int64_t *priority;  /* [local ranks * streams], higher first */
    int64_t lowest;
};

struct sc_world {
    struct sc_backend_setup setup;
    struct sc_transport *transport;
    struct sc_device **devices; /* [local ranks] */
    struct sc_serial serial;
    int *cores; /* that ranks of this process may use */
    int core_count;
    bool own_cores; /* every rank has cores that no other one uses */
    bool pinned; /* its threads stay there; or on one core that as many ranks share as any other */
};

/* ---- host_stream.c ---- */
void sc_host_push(struct sc_host_stream *stream, struct sc_command command);
/* The command at the head, NULL when the queue is empty. */
const struct sc_command *sc_host_head(const struct sc_host_stream *stream);
bool sc_host_done(const struct sc_device *device, uint32_t event, int64_t step);
/* Does waits and records at the head until an operation or nothing is there; begins a collective.
 * *moved when anything was done. */
enum sc_status sc_host_settle(struct sc_host_stream *stream, bool *moved, struct sc_error *err);
/* Runs the operation at the head; a collective is tested once. *ran when it ended. */
enum sc_status sc_host_run_head(struct sc_host_stream *stream, bool *ran, bool *moved,
                                struct sc_error *err);
struct sc_call sc_host_call_of(const struct sc_host_stream *stream,
                               const struct sc_command *command);
enum sc_status sc_host_start(struct sc_device *device, struct sc_error *err);
void sc_host_stop(struct sc_device *device);

/* ---- host_serial.c ---- */
enum sc_status sc_serial_open(struct sc_world *world, struct sc_error *err);
void sc_serial_close(struct sc_world *world);
enum sc_status sc_serial_advance(struct sc_world *world, bool *progress, struct sc_error *err);

#endif
