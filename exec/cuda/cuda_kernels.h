/* Starting the kernels that nvcc compiled. */
#ifndef STEPCAST_EXEC_CUDA_CUDA_KERNELS_H
#define STEPCAST_EXEC_CUDA_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include "base/status.h"
#include "exec/kernels/kernels.h"

/* The kernel over 0..count of its range on a device of so many multiprocessors; `columns` is the
 * width of a row. Nothing for a count of 0. */
enum sc_status sc_cuda_launch(enum sc_kernel_id kernel, const void *args, int64_t count,
                              int64_t columns, int processors, cudaStream_t stream,
                              struct sc_error *err);

#endif
