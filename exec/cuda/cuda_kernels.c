/*
 * Kernels by number: symbols and grids. A kernel's symbol is the host's stub that nvcc makes; what
 * is started is looked up by its address.
 */
#include "exec/cuda/cuda_kernels.h"

#include "exec/cuda/cuda_report.h"

#define PROTOTYPE(kernel, type, range)                                                             \
    void sc_##kernel(const struct type a, int64_t begin, int64_t end);
SC_KERNEL_LIST(PROTOTYPE)

typedef void stub_fn(void);

static const struct {
    stub_fn *stub;
    enum sc_kernel_range_kind range;
    const char *name;
} kernels[SC_KERNEL_COUNT] = {
#define ENTRY(kernel, type, range) {(stub_fn *)sc_##kernel, SC_RANGE_##range, #kernel},
    SC_KERNEL_LIST(ENTRY)
#undef ENTRY
};

/* Threads of a block, and blocks a multiprocessor at most: whoever has more to do takes turns. */
enum { WARP = 32, THREADS = 256, BLOCKS_ROWS = 32, BLOCKS_ELEMENTS = 16, BLOCKS_SHARES = 8 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t count, int64_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

/* A block of whole warps, no wider than a row needs. */
static int64_t row_threads(int64_t columns)
{
    return columns < WARP ? WARP : least(round_up(columns, WARP), THREADS);
}

static void shape(enum sc_kernel_range_kind range, int64_t count, int64_t columns, int processors,
                  int64_t *blocks, int64_t *threads)
{
    switch (range) {
    case SC_RANGE_ELEMENTS:
        *threads = THREADS;
        *blocks = least((count + THREADS - 1) / THREADS, (int64_t)processors * BLOCKS_ELEMENTS);
        break;
    case SC_RANGE_SHARES:
        *threads = row_threads(columns);
        *blocks = least(count, (int64_t)processors * BLOCKS_SHARES);
        break;
    default:
        *threads = row_threads(columns);
        *blocks = least(count, (int64_t)processors * BLOCKS_ROWS);
    }
}

enum sc_status sc_cuda_launch(enum sc_kernel_id kernel, const void *args, int64_t count,
                              int64_t columns, int processors, cudaStream_t stream,
                              struct sc_error *err)
{
    int64_t begin = 0, end = count, blocks, threads;
    /* The runtime only reads what the pointers point to. */
    void *arguments[] = {(void *)(uintptr_t)args, &begin, &end};
    union {
        stub_fn *stub;
        const void *address;
    } symbol = {kernels[kernel].stub};
    if (count <= 0)
        return SC_OK;
    shape(kernels[kernel].range, count, columns, processors, &blocks, &threads);
    const dim3 grid = {(unsigned)blocks, 1, 1}, block = {(unsigned)threads, 1, 1};
    return sc_cuda_ok(cudaLaunchKernel(symbol.address, grid, block, arguments, 0, stream), err,
                      "cudaLaunchKernel of %s for %lld", kernels[kernel].name, (long long)count);
}
