/*
 * An event counts its records: a wait means the last one enqueued before it, none if there is none
 * yet, and a later record does not change what an earlier wait is for.
 */
#include "tests/standin/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static cudaError_t unavailable(void)
{
    return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
}

static bool event_ok(const char *call, const struct CUevent_st *event)
{
    for (const struct CUevent_st *e = standin.events; e; e = e->next)
        if (e == event && !e->destroyed)
            return true;
    standin_complain("%s: this event is destroyed, or never was", call);
    return false;
}

bool standin_skips_wait(const struct CUstream_st *stream)
{
    const struct sc_standin_setup *setup = &standin.setup;
    uint64_t number = ++standin.totals.waits[stream->device];
    return number == setup->skip_wait && stream->device == setup->skip_device;
}

/* ---- commands -------------------------------------------------------------------------------- */

struct event_command {
    struct standin_command base;
    struct CUevent_st *event;
    uint64_t record;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void run_record(struct CUstream_st *stream, struct standin_command *command)
{
    const struct event_command *c = (const struct event_command *)command;
    if (c->record > c->event->reached) {
        c->event->reached = c->record;
        c->event->time = now();
    }
    standin_pop(stream);
}

static bool wait_ready(const struct standin_command *command)
{
    const struct event_command *c = (const struct event_command *)command;
    return c->event->reached >= c->record;
}

static void run_wait(struct CUstream_st *stream, struct standin_command *command)
{
    (void)command;
    standin_pop(stream);
}

static void describe_wait(const struct standin_command *command, char *out, size_t size)
{
    const struct event_command *c = (const struct event_command *)command;
    snprintf(out, size, "for record %llu of event %llu, at %llu", (unsigned long long)c->record,
             (unsigned long long)c->event->number, (unsigned long long)c->event->reached);
}

static const struct standin_kind record_kind = {"records", true, NULL, run_record, NULL};
static const struct standin_kind wait_kind = {"waits", true, wait_ready, run_wait, describe_wait};

static cudaError_t enqueue_event(const struct standin_kind *kind, struct CUevent_st *event,
                                 struct CUstream_st *stream)
{
    struct event_command *command = standin_command(kind, sizeof *command);
    if (!command)
        return standin_cuda(cudaErrorMemoryAllocation);
    command->event = event;
    command->record = event->recorded;
    standin_enqueue(stream, &command->base);
    return cudaSuccess;
}

/* ---- events ---------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    if (standin_enter("cudaEventCreateWithFlags"))
        return unavailable();
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (!event)
        return standin_cuda(cudaErrorMemoryAllocation);
    event->number = ++standin.numbers;
    event->device = standin_me->device;
    event->timed = !(flags & cudaEventDisableTiming);
    event->next = standin.events;
    standin.events = event;
    *out = event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    bool fails = standin_enter("cudaEventDestroy");
    if (!standin.on || !event_ok("cudaEventDestroy", event))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    event->destroyed = true;
    return fails ? unavailable() : cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (standin_enter("cudaEventRecord"))
        return unavailable();
    if (!event_ok("cudaEventRecord", event) || !standin_stream_ok("cudaEventRecord", stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    if (event->device != stream->device) {
        standin_complain("cudaEventRecord: event of device %d, stream of device %d", event->device,
                         stream->device);
        return standin_cuda(cudaErrorInvalidResourceHandle);
    }
    event->recorded++;
    event->recorder = stream;
    return enqueue_event(&record_kind, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return flags == cudaEventRecordDefault ? cudaEventRecord(event, stream)
                                           : standin_cuda(cudaErrorNotSupported);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    if (standin_enter("cudaStreamWaitEvent"))
        return unavailable();
    if (!event_ok("cudaStreamWaitEvent", event) ||
        !standin_stream_ok("cudaStreamWaitEvent", stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    if (flags != cudaEventWaitDefault)
        return standin_cuda(cudaErrorNotSupported);
    if (event->recorded == 0 || (event->recorder != stream && standin_skips_wait(stream)))
        return cudaSuccess;
    return enqueue_event(&wait_kind, event, stream);
}

/* What a thread waits for is the last record at the call: one that comes later does not count. */
struct awaited {
    const struct CUevent_st *event;
    uint64_t record;
};

static bool record_reached(const void *what)
{
    const struct awaited *awaited = what;
    return awaited->event->reached >= awaited->record;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (standin_enter("cudaEventSynchronize"))
        return unavailable();
    if (!event_ok("cudaEventSynchronize", event))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    const struct awaited last = {event, event->recorded};
    cudaError_t *error = &standin.device_error[event->device];
    if (*error == cudaSuccess && !standin_wait("cudaEventSynchronize", record_reached, &last, true))
        *error = cudaErrorLaunchFailure;
    return standin_cuda(*error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (standin_enter("cudaEventQuery"))
        return unavailable();
    if (!event_ok("cudaEventQuery", event))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    const struct awaited last = {event, event->recorded};
    bool done = standin_poll("cudaEventQuery", record_reached, &last);
    cudaError_t error = standin.device_error[event->device];
    return error != cudaSuccess ? standin_cuda(error) : done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (standin_enter("cudaEventElapsedTime"))
        return unavailable();
    if (!event_ok("cudaEventElapsedTime", start) || !event_ok("cudaEventElapsedTime", end) ||
        !start->timed || !end->timed || start->recorded == 0 || end->recorded == 0)
        return standin_cuda(cudaErrorInvalidResourceHandle);
    if (start->reached < start->recorded || end->reached < end->recorded)
        return cudaErrorNotReady;
    *ms = (float)((end->time - start->time) * 1e3);
    return cudaSuccess;
}
