/* Failed calls as one line. */
#include "exec/cuda/cuda_report.h"

#include <stdarg.h>
#include <stdio.h>

enum { WHAT = 256 };

static enum sc_status report(struct sc_error *err, enum sc_status status, const char *why,
                             const char *format, va_list arguments)
{
    char what[WHAT];
    vsnprintf(what, sizeof what, format, arguments);
    return sc_fail(err, status, "cuda: %s: %s", what, why);
}

enum sc_status sc_cuda_ok(cudaError_t code, struct sc_error *err, const char *what, ...)
{
    va_list arguments;
    if (code == cudaSuccess)
        return SC_OK;
    cudaGetLastError(); /* so that the next launch is not blamed for it */
    va_start(arguments, what);
    enum sc_status status =
        report(err, code == cudaErrorMemoryAllocation ? SC_NO_MEMORY : SC_MACHINE,
               cudaGetErrorString(code), what, arguments);
    va_end(arguments);
    return status;
}

enum sc_status sc_cublas_ok(cublasStatus_t code, struct sc_error *err, const char *what, ...)
{
    va_list arguments;
    if (code == CUBLAS_STATUS_SUCCESS)
        return SC_OK;
    va_start(arguments, what);
    enum sc_status status =
        report(err, code == CUBLAS_STATUS_ALLOC_FAILED ? SC_NO_MEMORY : SC_MACHINE,
               cublasLtGetStatusString(code), what, arguments);
    va_end(arguments);
    return status;
}

enum sc_status sc_nccl_ok(ncclResult_t code, struct sc_error *err, const char *what, ...)
{
    va_list arguments;
    if (code == ncclSuccess)
        return SC_OK;
    va_start(arguments, what);
    enum sc_status status = report(err, SC_MACHINE, ncclGetErrorString(code), what, arguments);
    va_end(arguments);
    return status;
}

/* The driver's names of errors would need another entry point; the number is in cuda.h. */
enum sc_status sc_driver_ok(CUresult code, struct sc_error *err, const char *what, ...)
{
    va_list arguments;
    char why[64];
    if (code == CUDA_SUCCESS)
        return SC_OK;
    snprintf(why, sizeof why, "driver error %d", (int)code);
    va_start(arguments, what);
    enum sc_status status = report(err, SC_MACHINE, why, what, arguments);
    va_end(arguments);
    return status;
}
