/* Devices, errors and what the runtime says about itself. */
#include "tests/standin/internal.h"

#include <stdio.h>
#include <string.h>

enum { VERSION = CUDART_VERSION, MULTIPROCESSORS = 132 };

/* The codes that the stand-in gives. */
#define CODES(X)                                                                                   \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorNotSupported, "operation not supported")                                            \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorUnknown, "unknown error")

static const struct {
    cudaError_t code;
    const char *name, *text;
} codes[] = {
#define ROW(code, text) {code, #code, text},
    CODES(ROW)};

const char *cudaGetErrorString(cudaError_t code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "unrecognized error code";
}

cudaError_t standin_cuda(cudaError_t code)
{
    if (standin_me && code != cudaSuccess && code != cudaErrorNotReady)
        standin_me->last_error = code;
    return code;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = cudaPeekAtLastError();
    if (standin_me)
        standin_me->last_error = cudaSuccess;
    return code;
}

cudaError_t cudaPeekAtLastError(void)
{
    return standin_me ? standin_me->last_error : cudaSuccess;
}

/* ---- devices --------------------------------------------------------------------------------- */

static cudaError_t unavailable(void)
{
    return standin_cuda(standin.on ? cudaErrorUnknown : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    if (standin_enter("cudaGetDeviceCount"))
        return unavailable();
    *count = standin.setup.devices;
    return cudaSuccess;
}

static bool is_device(int device)
{
    return device >= 0 && device < standin.setup.devices;
}

cudaError_t cudaSetDevice(int device)
{
    if (standin_enter("cudaSetDevice"))
        return unavailable();
    if (!is_device(device))
        return standin_cuda(cudaErrorInvalidDevice);
    standin_me->device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    if (standin_enter("cudaGetDevice"))
        return unavailable();
    *device = standin_me->device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    if (standin_enter("cudaGetDeviceProperties"))
        return unavailable();
    if (!is_device(device))
        return standin_cuda(cudaErrorInvalidDevice);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "stand-in");
    out->totalGlobalMem = standin.setup.device_bytes;
    out->warpSize = 32;
    out->maxThreadsPerBlock = 1024;
    out->multiProcessorCount = MULTIPROCESSORS;
    out->major = 9;
    out->asyncEngineCount = 3;
    out->unifiedAddressing = 1;
    out->canMapHostMemory = 1;
    return cudaSuccess;
}

static const struct {
    enum cudaDeviceAttr attribute;
    int value;
} attributes[] = {
    {cudaDevAttrMultiProcessorCount, MULTIPROCESSORS},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
};

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (standin_enter("cudaDeviceGetAttribute"))
        return unavailable();
    if (!is_device(device))
        return standin_cuda(cudaErrorInvalidDevice);
    *value = 1; /* what a device of today can do */
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].attribute == attribute)
            *value = attributes[i].value;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (standin_enter("cudaDeviceGetStreamPriorityRange"))
        return unavailable();
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = standin.on ? VERSION : 0;
    return cudaSuccess;
}
