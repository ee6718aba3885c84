/* Streams: queues of commands. */
#include "tests/standin/internal.h"

#include <stdlib.h>

static cudaError_t unavailable(void)
{
    return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
}

bool standin_stream_ok(const char *call, struct CUstream_st *stream)
{
    for (const struct CUstream_st *s = standin.streams; s; s = s->next)
        if (s == stream && !s->destroyed)
            return true;
    standin_complain("%s: %s", call,
                     stream ? "this stream is destroyed, or never was" : "the default stream");
    return false;
}

/* ---- queues ---------------------------------------------------------------------------------- */

void *standin_command(const struct standin_kind *kind, size_t size)
{
    struct standin_command *command = calloc(1, size);
    if (command)
        command->kind = kind;
    return command;
}

void standin_enqueue(struct CUstream_st *stream, struct standin_command *command)
{
    command->stream = stream;
    command->number = ++standin.numbers;
    if (stream->last)
        stream->last->next = command;
    else
        stream->first = command;
    stream->last = command;
    stream->enqueued++;
}

void standin_pop(struct CUstream_st *stream)
{
    struct standin_command *head = stream->first;
    stream->first = head->next;
    if (!stream->first)
        stream->last = NULL;
    stream->ended++;
    free(head);
}

bool standin_drained(const void *stream)
{
    const struct CUstream_st *s = stream;
    return !s->first;
}

bool standin_device_drained(const void *device)
{
    for (const struct CUstream_st *s = standin.streams; s; s = s->next)
        if (s->device == *(const int *)device && s->first)
            return false;
    return true;
}

void standin_free_streams(void)
{
    while (standin.streams) {
        struct CUstream_st *next = standin.streams->next;
        while (standin.streams->first)
            standin_pop(standin.streams);
        free(standin.streams);
        standin.streams = next;
    }
    while (standin.events) {
        struct CUevent_st *next = standin.events->next;
        free(standin.events);
        standin.events = next;
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static cudaError_t create(const char *call, cudaStream_t *out, unsigned flags)
{
    if (standin_enter(call))
        return unavailable();
    if (!out || flags != cudaStreamNonBlocking) {
        standin_complain("%s: without cudaStreamNonBlocking: not provided", call);
        return standin_cuda(cudaErrorInvalidValue);
    }
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return standin_cuda(cudaErrorMemoryAllocation);
    stream->number = ++standin.numbers;
    stream->priority = standin_draw_priority();
    stream->device = standin_me->device;
    if (standin_lags(stream->device, ++standin.totals.streams[stream->device]))
        stream->priority = 0;
    stream->next = standin.streams;
    standin.streams = stream;
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    (void)priority;
    return create("cudaStreamCreateWithPriority", out, flags);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return create("cudaStreamCreateWithFlags", out, flags);
}

/* What is still in it goes on. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    bool fails = standin_enter("cudaStreamDestroy");
    if (!standin.on || !standin_stream_ok("cudaStreamDestroy", stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    stream->destroyed = true;
    return fails ? unavailable() : cudaSuccess;
}

static cudaError_t synchronize(const char *call, bool (*done)(const void *), const void *what,
                               int device)
{
    if (standin.device_error[device] == cudaSuccess && !standin_wait(call, done, what, true))
        standin.device_error[device] = cudaErrorLaunchFailure;
    return standin_cuda(standin.device_error[device]);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (standin_enter("cudaStreamSynchronize"))
        return unavailable();
    if (!standin_stream_ok("cudaStreamSynchronize", stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    return synchronize("cudaStreamSynchronize", standin_drained, stream, stream->device);
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (standin_enter("cudaDeviceSynchronize"))
        return unavailable();
    int device = standin_me->device;
    return synchronize("cudaDeviceSynchronize", standin_device_drained, &device, device);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (standin_enter("cudaStreamQuery"))
        return unavailable();
    if (!standin_stream_ok("cudaStreamQuery", stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    bool done = standin_poll("cudaStreamQuery", standin_drained, stream);
    cudaError_t error = standin.device_error[stream->device];
    return error != cudaSuccess ? standin_cuda(error) : done ? cudaSuccess : cudaErrorNotReady;
}
