/*
 * The CUDA backend's devices: one a rank, one GPU each.
 *
 * A stream of the program whose engine is the device is a CUDA stream; one whose engine is the host
 * is a queue that a worker thread of the rank serves. Between them no call ever blocks a device:
 *
 *   device waits for device   cudaStreamWaitEvent
 *   device waits for host     cuStreamWaitValue32 on a flag in pinned memory: flag[e] is the number
 *                             of steps in which event e has been recorded
 *   host waits for device     the worker sleeps in cudaEventSynchronize
 *   host waits for host       the worker sleeps until the flag is there
 *
 * Events. A device stream looks at an event when the wait is issued, a worker when it gets to it,
 * which may be as late as the end of its step. An event that a worker waits for belongs to its own
 * step or to the one before (older ones have ended when the wait is issued), so steps_ahead + 1
 * sets are enough; two would not be. The same holds for the times that are read after a step.
 *
 * Everything is allocated by `create`: one arena a place (`host` is page-locked as well), and one
 * block of the device for what kernels and products need beside it.
 */
#ifndef STEPCAST_EXEC_CUDA_CUDA_DEVICE_H
#define STEPCAST_EXEC_CUDA_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/cuda/cuda_gemm.h"
#include "exec/cuda/cuda_report.h"
#include "exec/op_functions.h"

struct sc_device;

enum sc_cuda_command_kind { SC_CUDA_WAIT, SC_CUDA_RUN, SC_CUDA_RECORD };

struct sc_cuda_command {
    uint8_t kind, list; /* enum sc_cuda_command_kind, enum sc_list_name */
    uint32_t index;     /* of an event or an operation */
    int64_t step;
};

/* A host stream's queue and the thread that serves it; under the device's mutex. */
struct sc_cuda_worker {
    struct sc_device *device;
    pthread_t thread;
    bool started;
    struct sc_cuda_command *ring; /* [size] */
    size_t size, head, tail;
};

struct sc_cuda_stream {
    struct sc_device *device;
    cudaStream_t stream;           /* engine device */
    struct sc_cuda_worker *worker; /* engine host */
    size_t scratch_bytes, workspace_bytes;
    char *scratch, *workspace; /* for one operation at a time */
};

/* When operations began and ended. Times are counted from the end of the step before: the runtime
 * gives differences as single-precision milliseconds, which a long run would wear down. */
struct sc_cuda_timing {
    int64_t anchor_op; /* last operation in issue order on a device stream; -1: none */
    cudaEvent_t base, *anchors;
    double base_s, *anchor_s;   /* [steps], CLOCK_MONOTONIC */
    cudaEvent_t *starts, *ends; /* [sets * ops] where stamps are kept */
    struct sc_stamp *stamps;
    int64_t *finished; /* by stream: steps that have ended; -1: no operations */
    int64_t read;      /* steps whose times and sums have been read */
};

struct sc_device {
    struct sc_world *world;
    struct sc_rank_data data;
    int number;     /* CUDA's */
    int processors; /* of it */
    struct sc_cuda_stream *streams;
    size_t stream_count;
    cudaStream_t reading; /* for `read` and tables */
    size_t event_count, sets;
    cudaEvent_t *events;     /* [sets * events]; NULL where nobody waits */
    _Atomic uint32_t *flags; /* [events], pinned */
    pthread_mutex_t mutex;   /* of workers, flags and `closing` */
    pthread_cond_t moved;    /* a command or a flag more, or the end */
    bool closing;
    int64_t issued; /* the step that is being issued */
    char *beside;
    struct sc_kernel_range *ranges; /* in it */
    struct sc_cuda_products products;
    float **slots; /* [sets * ops]: what read_out leaves, pinned; NULL for other kinds */
    float *slot_memory;
    struct sc_cuda_timing timing;
};

typedef CUresult sc_cuda_wait_value_fn(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                       unsigned int flags);

/* Communicators of a local rank, by group. NCCL's calls and its abort exclude each other. */
struct sc_cuda_communicators {
    pthread_mutex_t mutex;
    ncclComm_t *items;
};

struct sc_world {
    struct sc_backend_setup setup;
    int first_device; /* of local rank 0 */
    sc_cuda_wait_value_fn *wait_value;
    pthread_mutex_t mutex;      /* of devices and aborted */
    struct sc_device **devices; /* [local ranks] */
    bool aborted;
    struct sc_cuda_communicators *communicators; /* [local ranks] */
};

/* ---- cuda_device.c ---- */
enum sc_status sc_cuda_create(struct sc_world *world, int64_t rank, struct sc_device **out,
                              struct sc_error *err);
void sc_cuda_destroy(struct sc_device **device);
/* The stream that records an event. */
int sc_cuda_stream_of(const struct sc_device *device, uint32_t event);
cudaEvent_t *sc_cuda_event(const struct sc_device *device, uint32_t event, int64_t step);
/* Whether the stream is served by a worker. */
bool sc_cuda_is_host(const struct sc_device *device, int stream);
const struct sc_list *sc_cuda_list(const struct sc_device *device, enum sc_list_name name);

/* ---- cuda_issue.c: the executor's calls ---- */
enum sc_status sc_cuda_wait(struct sc_device *device, int stream, uint32_t event, int64_t step,
                            struct sc_error *err);
enum sc_status sc_cuda_dispatch(struct sc_device *device, enum sc_list_name list, uint32_t op,
                                int64_t step, struct sc_error *err);
enum sc_status sc_cuda_record(struct sc_device *device, int stream, uint32_t event, int64_t step,
                              struct sc_error *err);
enum sc_status sc_cuda_finish(struct sc_device *device, uint32_t event, int64_t step,
                              struct sc_error *err);
struct sc_call sc_cuda_call(struct sc_device *device, enum sc_list_name list, uint32_t op,
                            int64_t step);
/* A failure of the rank ends all ranks: kept, communicators aborted, flags set. Hands it on. */
enum sc_status sc_cuda_failed(struct sc_device *device, enum sc_status status,
                              struct sc_error *err);
void sc_cuda_abort(struct sc_world *world);

/* ---- cuda_worker.c: host streams ---- */
enum sc_status sc_cuda_open_workers(struct sc_device *device, struct sc_error *err);
void sc_cuda_close_workers(struct sc_device *device); /* joins */
void sc_cuda_push(struct sc_device *device, int stream, struct sc_cuda_command command);
/* Sleeps until the flag says that the event was recorded in `step`, or a failure is there. */
void sc_cuda_await_flag(struct sc_device *device, uint32_t event, int64_t step);

/* ---- cuda_ops.c ---- */
/* Starts an operation on its device stream, or does it, on a worker. */
enum sc_status sc_cuda_start(const struct sc_call *call, struct sc_error *err);
bool sc_cuda_supports(enum sc_op_kind kind);

/* ---- cuda_collective.c ---- */
enum sc_status sc_cuda_open_communicators(struct sc_world *world, struct sc_error *err);
void sc_cuda_close_communicators(struct sc_world *world);
void sc_cuda_abort_communicators(struct sc_world *world);
enum sc_status sc_cuda_collective(const struct sc_call *call, struct sc_error *err);

/* ---- cuda_timing.c ---- */
enum sc_status sc_cuda_open_timing(struct sc_device *device, struct sc_error *err);
void sc_cuda_close_timing(struct sc_device *device);
/* An operation of the step list is issued; before and after it is started. */
void sc_cuda_issued(struct sc_device *device, uint32_t op, int64_t step);
enum sc_status sc_cuda_mark(struct sc_device *device, uint32_t op, int64_t step, bool before,
                            struct sc_error *err);
/* A worker's operation ran from `start` to `end`. */
void sc_cuda_stamp(struct sc_device *device, uint32_t op, int64_t step, double start, double end);
/* The stream has ended its part of the step; when all have, times and sums are read. */
enum sc_status sc_cuda_step_finished(struct sc_device *device, int stream, int64_t step,
                                     struct sc_error *err);

#endif
