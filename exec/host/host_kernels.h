/* The kernels' headers beside the program's: the names that both define are told apart. */
#ifndef STEPCAST_EXEC_HOST_HOST_KERNELS_H
#define STEPCAST_EXEC_HOST_HOST_KERNELS_H

#include "model/architecture.h"
#include "plans/program.h"
#include "plans/step_state.h"

#define sc_step_state sc_kernel_state
#define sc_flat_range sc_kernel_range
#define SC_LAYER_NORM SC_KERNEL_LAYER_NORM
#define SC_RMS_NORM SC_KERNEL_RMS_NORM
#define SC_GELU_TANH SC_KERNEL_GELU_TANH
#define SC_GELU_ERF SC_KERNEL_GELU_ERF
#define SC_SWIGLU SC_KERNEL_SWIGLU
#define SC_RELU SC_KERNEL_RELU
#include "exec/host/attention.h"
#include "exec/host/gemm.h"
#include "exec/host/team_kernels.h"
#undef sc_step_state
#undef sc_flat_range
#undef SC_LAYER_NORM
#undef SC_RMS_NORM
#undef SC_GELU_TANH
#undef SC_GELU_ERF
#undef SC_SWIGLU
#undef SC_RELU

#endif
