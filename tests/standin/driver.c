/*
 * The driver's share: words in memory that streams wait for and write. Found by name, as a program
 * does that links the runtime only, or linked.
 */
#include "tests/standin/internal.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

/* ---- words in memory ------------------------------------------------------------------------- */

struct value_command {
    struct standin_command base;
    uint32_t *address;
    uint32_t value;
    unsigned flags;
};

static bool value_ready(const struct standin_command *command)
{
    const struct value_command *c = (const struct value_command *)command;
    uint32_t found = __atomic_load_n(c->address, __ATOMIC_ACQUIRE);
    switch (c->flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int32_t)(found - c->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return found == c->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (found & c->value) != 0;
    default:
        return ~(found | c->value) != 0;
    }
}

static void run_wait(struct CUstream_st *stream, struct standin_command *command)
{
    (void)command;
    standin_pop(stream);
}

static void run_write(struct CUstream_st *stream, struct standin_command *command)
{
    const struct value_command *c = (const struct value_command *)command;
    __atomic_store_n(c->address, c->value, __ATOMIC_RELEASE);
    standin_pop(stream);
}

static void describe_value(const struct standin_command *command, char *out, size_t size)
{
    const struct value_command *c = (const struct value_command *)command;
    snprintf(out, size, "for the word %u, found %u", c->value,
             __atomic_load_n(c->address, __ATOMIC_ACQUIRE));
}

static const struct standin_kind wait_value_kind = {"waits", true, value_ready, run_wait,
                                                    describe_value};
static const struct standin_kind write_value_kind = {"writes a word", true, NULL, run_write, NULL};

static CUresult enqueue_value(const char *call, const struct standin_kind *kind, CUstream stream,
                              CUdeviceptr address, uint32_t value, unsigned flags)
{
    if (!standin_stream_ok(call, stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (address % 4 != 0 ||
        !standin_range_ok(call, "the word", stream->device, (const void *)address, 4))
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == &wait_value_kind && standin_skips_wait(stream))
        return CUDA_SUCCESS;
    struct value_command *command = standin_command(kind, sizeof *command);
    if (!command)
        return CUDA_ERROR_OUT_OF_MEMORY;
    command->address = (uint32_t *)address;
    command->value = value;
    command->flags = flags;
    standin_enqueue(stream, &command->base);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    if (standin_enter("cuStreamWaitValue32"))
        return standin.on ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_NOT_INITIALIZED;
    return enqueue_value("cuStreamWaitValue32", &wait_value_kind, stream, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned flags)
{
    if (standin_enter("cuStreamWriteValue32"))
        return standin.on ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_NOT_INITIALIZED;
    return enqueue_value("cuStreamWriteValue32", &write_value_kind, stream, address, value, flags);
}

/* ---- the driver's functions by name ---------------------------------------------------------- */

CUresult cuGetErrorString(CUresult code, const char **text)
{
    *text = code == CUDA_SUCCESS                ? "no error"
            : code == CUDA_ERROR_INVALID_VALUE  ? "invalid argument"
            : code == CUDA_ERROR_INVALID_HANDLE ? "invalid resource handle"
                                                : "unknown error";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char **name)
{
    *name = code == CUDA_SUCCESS                ? "CUDA_SUCCESS"
            : code == CUDA_ERROR_INVALID_VALUE  ? "CUDA_ERROR_INVALID_VALUE"
            : code == CUDA_ERROR_INVALID_HANDLE ? "CUDA_ERROR_INVALID_HANDLE"
                                                : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

static cudaError_t entry_point(const char *call, const char *symbol, void **out,
                               enum cudaDriverEntryPointQueryResult *result)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        {"cuStreamWaitValue32", (void (*)(void))cuStreamWaitValue32},
        {"cuStreamWriteValue32", (void (*)(void))cuStreamWriteValue32},
        {"cuGetErrorString", (void (*)(void))cuGetErrorString},
        {"cuGetErrorName", (void (*)(void))cuGetErrorName},
    };
    *out = NULL;
    if (result)
        *result = cudaDriverEntryPointSymbolNotFound;
    if (standin_enter(call))
        return standin_cuda(cudaErrorUnknown);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, symbol)) {
            memcpy(out, &functions[i].function, sizeof *out);
            if (result)
                *result = cudaDriverEntryPointSuccess;
            return cudaSuccess;
        }
    standin_complain("%s: %s: not provided", call, symbol);
    return standin_cuda(cudaErrorNotSupported);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    (void)version;
    (void)flags;
    return entry_point("cudaGetDriverEntryPointByVersion", symbol, out, result);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    (void)flags;
    return entry_point("cudaGetDriverEntryPoint", symbol, out, result);
}
