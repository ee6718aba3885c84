/* One line for a failed call of CUDA, cuBLASLt, NCCL or the driver: "cuda: <what>: <why>". */
#ifndef STEPCAST_EXEC_CUDA_CUDA_REPORT_H
#define STEPCAST_EXEC_CUDA_CUDA_REPORT_H

#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "base/status.h"

/* Each returns SC_OK for success, else SC_MACHINE (SC_NO_MEMORY where the call says so) with a line
 * whose middle is the formatted text. */
enum sc_status sc_cuda_ok(cudaError_t code, struct sc_error *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
enum sc_status sc_cublas_ok(cublasStatus_t code, struct sc_error *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
enum sc_status sc_nccl_ok(ncclResult_t code, struct sc_error *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
enum sc_status sc_driver_ok(CUresult code, struct sc_error *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

#endif
