/*
 * Copies and fills. Pinned and device memory is read and written when the stream gets there. Other
 * memory of the host is read at the call, and a copy to it waits for the stream: what the runtime
 * does for pageable memory.
 */
#include "tests/standin/internal.h"

#include <stdlib.h>
#include <string.h>

static cudaError_t unavailable(void)
{
    return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
}

/* `rows` of `bytes`, their starts to_pitch and from_pitch apart. */
struct copy {
    struct standin_command base;
    char *to;
    const char *from; /* NULL: `value` */
    size_t bytes, rows, to_pitch, from_pitch;
    int value;
    char staged[];
};

static void run_copy(struct CUstream_st *stream, struct standin_command *command)
{
    const struct copy *c = (const struct copy *)command;
    for (size_t r = 0; r < c->rows; r++)
        if (c->from)
            memmove(c->to + r * c->to_pitch, c->from + r * c->from_pitch, c->bytes);
        else
            memset(c->to + r * c->to_pitch, c->value, c->bytes);
    standin_pop(stream);
}

static const struct standin_kind copy_kind = {"copies", false, NULL, run_copy, NULL};
static const struct standin_kind fill_kind = {"fills", false, NULL, run_copy, NULL};

static size_t span(size_t bytes, size_t rows, size_t pitch)
{
    return rows == 0 || bytes == 0 ? 0 : (rows - 1) * pitch + bytes;
}

/* Is this end of the copy, by its direction, memory of the device? -1: whatever it is. */
static int wanted(enum cudaMemcpyKind kind, bool to)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return to;
    case cudaMemcpyDeviceToHost:
        return !to;
    case cudaMemcpyDeviceToDevice:
        return 1;
    case cudaMemcpyHostToHost:
        return 0;
    default:
        return -1;
    }
}

static bool end_ok(const char *call, const char *what, int device, const void *start, size_t bytes,
                   int on_device, bool *pageable)
{
    const struct standin_memory *m = standin_memory_at(start);
    *pageable = !m;
    if (!m && on_device != 1)
        return true;
    if (!standin_range_ok(call, what, device, start, bytes))
        return false;
    if (on_device < 0 || (m && m->pinned == !on_device))
        return true;
    standin_complain("%s: %s is %s memory", call, what, m->pinned ? "pinned" : "device");
    return false;
}

static cudaError_t copy(const char *call, const struct copy *wish, enum cudaMemcpyKind kind,
                        cudaStream_t stream)
{
    bool to_pageable = false, from_pageable = false;
    size_t from_bytes = span(wish->bytes, wish->rows, wish->from_pitch);
    if (!standin_stream_ok(call, stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    if (from_bytes == 0)
        return cudaSuccess;
    if (!end_ok(call, "the destination", stream->device, wish->to,
                span(wish->bytes, wish->rows, wish->to_pitch), wanted(kind, true), &to_pageable) ||
        !end_ok(call, "the source", stream->device, wish->from, from_bytes, wanted(kind, false),
                &from_pageable))
        return standin_cuda(cudaErrorInvalidValue);
    size_t staged = from_pageable ? from_bytes : 0;
    struct copy *c = standin_command(&copy_kind, sizeof *c + staged);
    if (!c)
        return standin_cuda(cudaErrorMemoryAllocation);
    struct standin_command base = c->base;
    *c = *wish;
    c->base = base;
    if (from_pageable) {
        memcpy(c->staged, wish->from, staged);
        c->from = c->staged;
    }
    standin_enqueue(stream, &c->base);
    if (to_pageable && !standin_wait(call, standin_drained, stream, true))
        return standin_cuda(cudaErrorLaunchFailure);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (standin_enter("cudaMemcpyAsync"))
        return unavailable();
    const struct copy wish = {.to = to, .from = from, .bytes = bytes, .rows = 1};
    return copy("cudaMemcpyAsync", &wish, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t bytes, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    if (standin_enter("cudaMemcpy2DAsync"))
        return unavailable();
    if (bytes > to_pitch || bytes > from_pitch)
        return standin_cuda(cudaErrorInvalidValue);
    const struct copy wish = {.to = to,
                              .from = from,
                              .bytes = bytes,
                              .rows = rows,
                              .to_pitch = to_pitch,
                              .from_pitch = from_pitch};
    return copy("cudaMemcpy2DAsync", &wish, kind, stream);
}

static cudaError_t fill(const char *call, void *to, size_t pitch, int value, size_t bytes,
                        size_t rows, cudaStream_t stream)
{
    if (standin_enter(call))
        return unavailable();
    if (!standin_stream_ok(call, stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    if (!standin_range_ok(call, "the destination", stream->device, to, span(bytes, rows, pitch)))
        return standin_cuda(cudaErrorInvalidValue);
    struct copy *c = standin_command(&fill_kind, sizeof *c);
    if (!c)
        return standin_cuda(cudaErrorMemoryAllocation);
    c->to = to;
    c->bytes = bytes;
    c->rows = rows;
    c->to_pitch = pitch;
    c->value = value;
    standin_enqueue(stream, &c->base);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return fill("cudaMemsetAsync", to, 0, value, bytes, 1, stream);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t bytes, size_t rows,
                              cudaStream_t stream)
{
    return fill("cudaMemset2DAsync", to, pitch, value, bytes, rows, stream);
}
