/*
 * Kernels: the symbols that a launch names are functions of their own here, which run the host's
 * build of the same source over the whole range. A launch copies the arguments, as the real one
 * does; every pointer among them that lies in device memory must be of this device.
 */
#include "tests/standin/internal.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "exec/kernels/kernels.h"

enum { ARGUMENT_BYTES = 512, WARP = 32, LONGEST_BLOCK = 1024 };

#define SYMBOL(kernel, type, range)                                                                \
    void sc_##kernel(const struct type a, int64_t begin, int64_t end);                             \
    void sc_##kernel(const struct type a, int64_t begin, int64_t end)                              \
    {                                                                                              \
        sc_kernels_select()->kernel(a, begin, end);                                                \
    }                                                                                              \
    static void run_##kernel(const void *a, int64_t begin, int64_t end)                            \
    {                                                                                              \
        struct type copy;                                                                          \
        memcpy(&copy, a, sizeof copy);                                                             \
        sc_##kernel(copy, begin, end);                                                             \
    }                                                                                              \
    _Static_assert(sizeof(struct type) <= ARGUMENT_BYTES, "arguments do not fit");
SC_KERNEL_LIST(SYMBOL)

typedef void symbol_fn(void);

static const struct kernel {
    symbol_fn *symbol;
    const char *name;
    size_t bytes;
    void (*run)(const void *a, int64_t begin, int64_t end);
} kernels[] = {
#define ROW(kernel, type, range)                                                                   \
    {(symbol_fn *)sc_##kernel, "kernel " #kernel, sizeof(struct type), run_##kernel},
    SC_KERNEL_LIST(ROW)};

enum { KERNELS = sizeof kernels / sizeof *kernels };

struct launch {
    struct standin_command base;
    const struct kernel *kernel;
    int64_t begin, end;
    _Alignas(16) char arguments[ARGUMENT_BYTES];
};

static void run_launch(struct CUstream_st *stream, struct standin_command *command)
{
    const struct launch *launch = (const struct launch *)command;
    launch->kernel->run(launch->arguments, launch->begin, launch->end);
    standin_pop(stream);
}

static const struct standin_kind launch_kind = {"runs a kernel", false, NULL, run_launch, NULL};

static const struct kernel *kernel_of(const void *symbol)
{
    for (int i = 0; i < KERNELS; i++)
        if (!memcmp(&kernels[i].symbol, &symbol, sizeof symbol))
            return &kernels[i];
    standin_complain("cudaLaunchKernel: the symbol is no kernel");
    return NULL;
}

static bool grid_ok(const struct kernel *kernel, dim3 grid, dim3 block)
{
    bool flat = grid.y == 1 && grid.z == 1 && block.y == 1 && block.z == 1;
    if (flat && grid.x > 0 && grid.x <= INT32_MAX && block.x > 0 && block.x % WARP == 0 &&
        block.x <= LONGEST_BLOCK)
        return true;
    standin_complain("cudaLaunchKernel: %s: a grid of %u x %u x %u blocks of %u x %u x %u threads",
                     kernel->name, grid.x, grid.y, grid.z, block.x, block.y, block.z);
    return false;
}

static bool pointers_ok(const struct kernel *kernel, const char *arguments, int device)
{
    for (size_t at = 0; at + sizeof(void *) <= kernel->bytes; at += sizeof(void *)) {
        char what[64];
        const void *word;
        memcpy(&word, arguments + at, sizeof word);
        snprintf(what, sizeof what, "%s: the argument at byte %zu", kernel->name, at);
        if (standin_memory_at(word) && !standin_range_ok("cudaLaunchKernel", what, device, word, 1))
            return false;
    }
    return true;
}

cudaError_t cudaLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    if (standin_enter("cudaLaunchKernel"))
        return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
    const struct kernel *kernel = kernel_of(symbol);
    if (!kernel)
        return standin_cuda(cudaErrorInvalidDeviceFunction);
    if (!standin_stream_ok("cudaLaunchKernel", stream))
        return standin_cuda(cudaErrorInvalidResourceHandle);
    if (stream->device != standin_me->device) {
        standin_complain("cudaLaunchKernel: %s: a stream of device %d from a thread on device %d",
                         kernel->name, stream->device, standin_me->device);
        return standin_cuda(cudaErrorInvalidResourceHandle);
    }
    if (!grid_ok(kernel, grid, block) || shared_bytes > 0)
        return standin_cuda(cudaErrorInvalidConfiguration);
    if (!pointers_ok(kernel, arguments[0], stream->device))
        return standin_cuda(cudaErrorIllegalAddress);
    struct launch *launch = standin_command(&launch_kind, sizeof *launch);
    if (!launch)
        return standin_cuda(cudaErrorMemoryAllocation);
    launch->kernel = kernel;
    memcpy(launch->arguments, arguments[0], kernel->bytes);
    memcpy(&launch->begin, arguments[1], sizeof launch->begin);
    memcpy(&launch->end, arguments[2], sizeof launch->end);
    standin_enqueue(stream, &launch->base);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *symbol, enum cudaFuncAttribute attribute, int value)
{
    (void)attribute;
    (void)value;
    if (standin_enter("cudaFuncSetAttribute"))
        return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
    return kernel_of(symbol) ? cudaSuccess : standin_cuda(cudaErrorInvalidDeviceFunction);
}
