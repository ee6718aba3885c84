/* Host streams: a queue and a thread each, that does what the processor does itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/clock.h"
#include "exec/cuda/cuda_device.h"

static bool stopped(const struct sc_device *device)
{
    return device->closing || sc_failure_is_set(device->world->setup.failure);
}

/* A failure elsewhere is not always announced by a signal: look now and then. */
static void sleep_a_while(struct sc_device *device)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 50000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&device->moved, &device->mutex, &until);
}

static bool flagged(const struct sc_device *device, uint32_t event, int64_t step)
{
    return atomic_load(&device->flags[event]) > (uint32_t)step;
}

void sc_cuda_await_flag(struct sc_device *device, uint32_t event, int64_t step)
{
    pthread_mutex_lock(&device->mutex);
    while (!flagged(device, event, step) && !stopped(device))
        sleep_a_while(device);
    pthread_mutex_unlock(&device->mutex);
}

void sc_cuda_push(struct sc_device *device, int stream, struct sc_cuda_command command)
{
    struct sc_cuda_worker *worker = device->streams[stream].worker;
    pthread_mutex_lock(&device->mutex);
    worker->ring[worker->tail++ % worker->size] = command;
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->mutex);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool take(struct sc_cuda_worker *worker, struct sc_cuda_command *out)
{
    struct sc_device *device = worker->device;
    pthread_mutex_lock(&device->mutex);
    while (worker->head == worker->tail && !stopped(device))
        sleep_a_while(device);
    bool more = !stopped(device);
    if (more)
        *out = worker->ring[worker->head++ % worker->size];
    pthread_mutex_unlock(&device->mutex);
    return more;
}

static enum sc_status await(struct sc_device *device, const struct sc_cuda_command *command,
                            struct sc_error *err)
{
    if (!sc_cuda_is_host(device, sc_cuda_stream_of(device, command->index)))
        return sc_cuda_ok(
            cudaEventSynchronize(*sc_cuda_event(device, command->index, command->step)), err,
            "cudaEventSynchronize");
    sc_cuda_await_flag(device, command->index, command->step);
    return SC_OK;
}

static enum sc_status run(struct sc_device *device, const struct sc_cuda_command *command,
                          struct sc_error *err)
{
    const struct sc_call call =
        sc_cuda_call(device, (enum sc_list_name)command->list, command->index, command->step);
    double start = sc_clock();
    SC_TRY(sc_call_name_failure(&call, sc_cuda_start(&call, err), err));
    if (command->list == SC_LIST_STEP)
        sc_cuda_stamp(device, command->index, command->step, start, sc_clock());
    return SC_OK;
}

/* A device that waits for the flag sees what was written before it. After a failure flags stay as
 * the abort has set them. */
static void record(struct sc_device *device, const struct sc_cuda_command *command)
{
    pthread_mutex_lock(&device->mutex);
    if (!stopped(device))
        atomic_store(&device->flags[command->index], (uint32_t)command->step + 1);
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->mutex);
}

static enum sc_status serve(struct sc_device *device, const struct sc_cuda_command *command,
                            struct sc_error *err)
{
    if (command->kind == SC_CUDA_WAIT)
        return await(device, command, err);
    if (command->kind == SC_CUDA_RUN)
        return run(device, command, err);
    record(device, command);
    return SC_OK;
}

static void *work(void *argument)
{
    struct sc_cuda_worker *worker = argument;
    struct sc_device *device = worker->device;
    struct sc_cuda_command command;
    struct sc_error err = SC_ERROR_INIT;
    enum sc_status status =
        sc_cuda_ok(cudaSetDevice(device->number), &err, "cudaSetDevice %d", device->number);
    while (status == SC_OK && take(worker, &command))
        status = serve(device, &command, &err);
    sc_cuda_failed(device, status, &err);
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static size_t commands_of(const struct sc_list *list, size_t stream)
{
    size_t commands = 0;
    for (size_t i = 0; i < list->ops.count; i++)
        if (list->ops.items[i].stream == stream)
            commands += 3 + list->ops.items[i].waits;
    return commands;
}

/* Room for all commands of the steps that can be under way: pushing never waits. */
static enum sc_status open_worker(struct sc_device *device, size_t index, struct sc_error *err)
{
    struct sc_cuda_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return sc_fail_memory(err, sizeof *worker);
    device->streams[index].worker = worker;
    worker->device = device;
    worker->size = commands_of(&device->data.class->step, index) * device->sets +
                   commands_of(&device->data.class->init, index) + 1;
    worker->ring = calloc(worker->size, sizeof *worker->ring);
    if (!worker->ring)
        return sc_fail_memory(err, worker->size * sizeof *worker->ring);
    int code = pthread_create(&worker->thread, NULL, work, worker);
    if (code != 0)
        return sc_fail(err, SC_MACHINE, "rank %lld: cannot start a worker thread: %s",
                       (long long)device->data.rank, strerror(code));
    worker->started = true;
    return SC_OK;
}

enum sc_status sc_cuda_open_workers(struct sc_device *device, struct sc_error *err)
{
    for (size_t s = 0; s < device->stream_count; s++)
        if (sc_cuda_is_host(device, (int)s))
            SC_TRY(open_worker(device, s, err));
    return SC_OK;
}

void sc_cuda_close_workers(struct sc_device *device)
{
    pthread_mutex_lock(&device->mutex);
    device->closing = true;
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->mutex);
    for (size_t s = 0; device->streams && s < device->stream_count; s++) {
        struct sc_cuda_worker *worker = device->streams[s].worker;
        if (!worker)
            continue;
        if (worker->started)
            pthread_join(worker->thread, NULL);
        free(worker->ring);
        free(worker);
        device->streams[s].worker = NULL;
    }
}
