/*
 * The host's table of kernels for one kind of processor: all sources in one compilation, which the
 * build repeats with other instruction sets and another SC_KERNEL_BUILD (v1, v3, v4).
 */
#include "exec/kernels/kernels.h"

#define SC_TABLE_JOIN_(a, b) a##b
#define SC_TABLE_JOIN(a, b) SC_TABLE_JOIN_(a, b)
#define SC_SYMBOL_(kernel, build) sc_##kernel##_##build
#define SC_SYMBOL(kernel, build) SC_SYMBOL_(kernel, build)

#define SC_PROTOTYPE(kernel, type, range)                                                          \
    void SC_SYMBOL(kernel, SC_KERNEL_BUILD)(const struct type a, int64_t begin, int64_t end);
SC_KERNEL_LIST(SC_PROTOTYPE)

#include "exec/kernels/norm.cu"
#include "exec/kernels/activation.cu"
#include "exec/kernels/softmax.cu"
#include "exec/kernels/cross_entropy.cu"
#include "exec/kernels/embedding.cu"
#include "exec/kernels/elementwise.cu"
#include "exec/kernels/dropout.cu"
#include "exec/kernels/optimizer.cu"
#include "exec/kernels/state.cu"

#define SC_ENTRY(kernel, type, range) .kernel = SC_SYMBOL(kernel, SC_KERNEL_BUILD),

extern const struct sc_kernels SC_TABLE_JOIN(sc_kernels_, SC_KERNEL_BUILD);
const struct sc_kernels SC_TABLE_JOIN(sc_kernels_, SC_KERNEL_BUILD) = {.name = SC_KERNEL_NAME,
                                                                       SC_KERNEL_LIST(SC_ENTRY)};
