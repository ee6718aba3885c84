/*
 * Device and pinned memory: blocks of the heap that say whose they are. New and freed memory is
 * full of NaNs; freed memory is kept until the end of the run, so that a late use of it is known
 * for what it is.
 */
#include "tests/standin/internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, POISON = 0xff };

struct standin_memory *standin_memory_at(const void *address)
{
    const char *at = address;
    for (struct standin_memory *m = standin.memory; m; m = m->next)
        if (at >= m->base && at < m->base + m->bytes)
            return m;
    return NULL;
}

bool standin_range_ok(const char *call, const char *what, int device, const void *start,
                      size_t bytes)
{
    if (bytes == 0)
        return true;
    const struct standin_memory *m = standin_memory_at(start);
    if (!m)
        standin_complain("%s: %s is no memory of a device", call, what);
    else if (m->freed)
        standin_complain("%s: %s is freed memory", call, what);
    else if (!m->pinned && m->device != device)
        standin_complain("%s: %s is memory of device %d, used on device %d", call, what, m->device,
                         device);
    else if ((size_t)((const char *)start - m->base) > m->bytes - bytes || bytes > m->bytes)
        standin_complain("%s: %s goes %zu bytes beyond its allocation of %zu", call, what,
                         (size_t)((const char *)start - m->base) + bytes - m->bytes, m->bytes);
    else
        return true;
    return false;
}

static cudaError_t add_memory(void **out, size_t bytes, bool pinned)
{
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct standin_memory *m = calloc(1, sizeof *m);
    char *base = aligned_alloc(ALIGNMENT, rounded);
    if (!m || !base) {
        free(m);
        free(base);
        return standin_cuda(cudaErrorMemoryAllocation);
    }
    memset(base, POISON, rounded);
    *m = (struct standin_memory){.next = standin.memory,
                                 .base = base,
                                 .bytes = bytes,
                                 .device = standin_me->device,
                                 .pinned = pinned};
    standin.memory = m;
    *out = base;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (standin_enter("cudaMalloc"))
        return standin_cuda(standin.on ? cudaErrorMemoryAllocation : cudaErrorNoDevice);
    size_t *used = &standin.used[standin_me->device];
    if (!out || bytes == 0 || bytes > standin.setup.device_bytes - *used)
        return standin_cuda(out ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    cudaError_t code = add_memory(out, bytes, false);
    *used += code == cudaSuccess ? bytes : 0;
    return code;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    if (standin_enter("cudaHostAlloc"))
        return standin_cuda(standin.on ? cudaErrorMemoryAllocation : cudaErrorNoDevice);
    return out && bytes > 0 ? add_memory(out, bytes, true) : standin_cuda(cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    if (standin_enter("cudaMallocHost"))
        return standin_cuda(standin.on ? cudaErrorMemoryAllocation : cudaErrorNoDevice);
    return out && bytes > 0 ? add_memory(out, bytes, true) : standin_cuda(cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags)
{
    if (standin_enter("cudaHostGetDevicePointer"))
        return standin_cuda(cudaErrorUnknown);
    const struct standin_memory *m = standin_memory_at(host);
    if (!out || flags != 0 || !m || !m->pinned || m->freed)
        return standin_cuda(cudaErrorInvalidValue);
    *out = host;
    return cudaSuccess;
}

static struct standin_memory *block(const char *call, void *address, bool pinned)
{
    struct standin_memory *m = standin_memory_at(address);
    if (!m || m->base != address || m->pinned != pinned)
        standin_complain("%s: no memory of this kind begins here", call);
    else if (m->freed)
        standin_complain("%s: memory is freed twice", call);
    else
        return m;
    return NULL;
}

/* Waits for the devices that may use it, as the real one does. */
static cudaError_t release(const char *call, void *address, bool pinned)
{
    bool fails = standin_enter(call); /* reported by what ran before; the memory is free */
    if (!standin.on)
        return standin_cuda(cudaErrorNoDevice);
    if (!address)
        return standin_cuda(fails ? cudaErrorUnknown : cudaSuccess);
    struct standin_memory *m = block(call, address, pinned);
    if (!m)
        return standin_cuda(cudaErrorInvalidValue);
    bool ended = standin_wait(call, standin_device_drained, &m->device, true);
    m->freed = true;
    memset(m->base, POISON, m->bytes);
    if (!pinned)
        standin.used[m->device] -= m->bytes;
    if (!ended)
        return standin_cuda(cudaErrorLaunchFailure);
    return standin_cuda(fails ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t cudaFree(void *address)
{
    return release("cudaFree", address, false);
}

cudaError_t cudaFreeHost(void *address)
{
    return release("cudaFreeHost", address, true);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    if (standin_enter("cudaMemGetInfo"))
        return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
    *all = standin.setup.device_bytes;
    *left = *all - standin.used[standin_me->device];
    return cudaSuccess;
}

bool standin_add_user(struct standin_memory *memory, const struct CUstream_st *stream,
                      const char *from, size_t bytes)
{
    for (struct standin_user *u = memory->users; u; u = u->next)
        if (u->stream == stream && u->from == from && u->bytes >= bytes)
            return true;
    struct standin_user *user = calloc(1, sizeof *user);
    if (!user)
        return false;
    *user = (struct standin_user){memory->users, stream, from, bytes};
    memory->users = user;
    return true;
}

void standin_free_memory(void)
{
    while (standin.memory) {
        struct standin_memory *next = standin.memory->next;
        while (standin.memory->users) {
            struct standin_user *user = standin.memory->users;
            standin.memory->users = user->next;
            free(user);
        }
        free(standin.memory->base);
        free(standin.memory);
        standin.memory = next;
    }
}
