/*
 * One source, two compilers: the words in which the kernels of this folder are written.
 *
 * A kernel is a function of one fixed-size argument struct `a` and a half-open range [begin, end)
 * of rows, row blocks, columns or elements (kernels.h says which). Compiled as C it is a plain loop
 * nest over its range, so that a team of threads splits the range; compiled by nvcc it is a kernel
 * whose grid covers the range. The words:
 *   FOR_EACH_IN(i, lo, hi)  elements lo..hi-1; every grid thread takes its share
 *   FOR_SPAN(i, n, longest) runs of n <= longest elements from i on that make up the range; n is 1
 *                       on a device
 *   FOR_ROW(r)          rows of the range; a thread block takes one row
 *   FOR_COL(c, n)       columns 0..n-1 of the row at hand; the block's threads share them
 *   FOR_PANEL(p, n, w)  panels of w columns (the last one may be narrower): the host works on one
 *                       panel with vectors, a device thread on one narrow panel
 *   FOR_LANE(l, n)      inside a panel
 *   FOR_SHARE(lo, hi)   the whole range on the host, an even share of it in each block
 *   BLOCK_SUM, BLOCK_MAX combine what the threads of a block hold (and are a barrier for them);
 *   LEADER is one of them, OWNER(c) the one that FOR_COL gives column c
 * Iterations of every loop word are independent, so operands may be the same buffer (in place).
 * Traps: a plain `for` over columns runs in full in every device thread, and a scalar store in a
 * row kernel is done by every one of them (guard it with LEADER).
 *
 * The host side is compiled with -ffast-math -fno-finite-math-only -D__FAST_MATH__: gcc vectorises
 * expf, logf, ... with libmvec only then, and infinities and NaNs still behave.
 *
 * `elem` is what activations and parameters are stored as; load() and store() are the only
 * accesses, so that another storage type is another compilation of the same source.
 */
#ifndef STEPCAST_EXEC_KERNELS_KERNEL_SOURCE_H
#define STEPCAST_EXEC_KERNELS_KERNEL_SOURCE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "exec/kernels/kernels.h"

#ifdef __CUDACC__

#define KERNEL(name, type)                                                                         \
    extern "C" __global__ void sc_##name(const struct type a, int64_t begin, int64_t end)
#define INLINE static __device__ __forceinline__
#define FOR_EACH_IN(i, lo, hi)                                                                     \
    for (int64_t i = (lo) + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (hi);              \
         i += (int64_t)gridDim.x * blockDim.x)
#define FOR_SPAN(i, n, longest)                                                                    \
    for (int64_t i = begin + (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = 1; i < end;       \
         i += (int64_t)gridDim.x * blockDim.x)
#define FOR_ROW(r) for (int64_t r = begin + blockIdx.x; r < end; r += gridDim.x)
#define FOR_COL(c, n) for (int64_t c = threadIdx.x; c < (n); c += blockDim.x)
#define FOR_PANEL(p, n, w)                                                                         \
    for (int64_t p = (int64_t)threadIdx.x * (w); p < (n); p += (int64_t)blockDim.x * (w))
#define FOR_LANE(l, n) for (int64_t l = 0; l < (n); l++)
#define FOR_SHARE(lo, hi)                                                                          \
    for (int64_t share_ = (end - begin + gridDim.x - 1) / gridDim.x,                               \
                 lo = begin + (int64_t)blockIdx.x * share_,                                        \
                 hi = lo + share_ < end ? lo + share_ : end;                                       \
         share_ && lo < hi; share_ = 0)
#define LEADER (threadIdx.x == 0)
#define OWNER(c) (threadIdx.x == (c) % blockDim.x)
#define BLOCK_SUM(v) ((v) = sc_block_combine((v), false))
#define BLOCK_MAX(v) ((v) = sc_block_combine((v), true))
#define SC_PANEL 1 /* columns a device thread works on */
#define SC_LANES 1
#define SC_DRAW 1 /* Philox calls a device thread makes at once */

template <typename T> INLINE T sc_combine(T x, T y, bool maximum)
{
    return maximum ? (x > y ? x : y) : x + y;
}

/* Every thread of the block gets the sum or the maximum of all. */
template <typename T> INLINE T sc_block_combine(T v, bool maximum)
{
    __shared__ T part[33];
    unsigned lane = threadIdx.x & 31u, warp = threadIdx.x >> 5;
    for (int o = 16; o > 0; o >>= 1)
        v = sc_combine(v, __shfl_xor_sync(0xffffffffu, v, o), maximum);
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        T neutral = maximum ? (T)-INFINITY : (T)0;
        v = lane < (blockDim.x + 31) / 32 ? part[lane] : neutral;
        for (int o = 16; o > 0; o >>= 1)
            v = sc_combine(v, __shfl_xor_sync(0xffffffffu, v, o), maximum);
        if (lane == 0)
            part[32] = v;
    }
    __syncthreads();
    v = part[32];
    __syncthreads();
    return v;
}

#else

#ifdef __clang__
#define SC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SC_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define SC_JOIN_(a, b, c) a##b##_##c
#define SC_JOIN(a, b, c) SC_JOIN_(a, b, c)
#define KERNEL(name, type)                                                                         \
    void SC_JOIN(sc_, name, SC_KERNEL_BUILD)(const struct type a, int64_t begin, int64_t end)
#define INLINE static inline __attribute__((always_inline, unused))
#define FOR_EACH_IN(i, lo, hi) SC_INDEPENDENT for (int64_t i = (lo); i < (hi); i++)
#define FOR_SPAN(i, n, longest)                                                                    \
    for (int64_t i = begin, n; i < end && (n = least((longest), end - i), true); i += n)
#define FOR_ROW(r) for (int64_t r = begin; r < end; r++)
#define FOR_COL(c, n) SC_INDEPENDENT for (int64_t c = 0; c < (n); c++)
#define FOR_PANEL(p, n, w) for (int64_t p = 0; p < (n); p += (w))
#define FOR_LANE(l, n) SC_INDEPENDENT for (int64_t l = 0; l < (n); l++)
#define FOR_SHARE(lo, hi)                                                                          \
    for (int64_t share_ = 1, lo = begin, hi = end; share_ && lo < hi; share_ = 0)
#define LEADER true
#define OWNER(c) ((void)(c), true)
#define BLOCK_SUM(v) ((void)(v))
#define BLOCK_MAX(v) ((void)(v))
#define SC_PANEL 256
#define SC_LANES 64
#define SC_DRAW 64

#endif

typedef float elem;

INLINE float load(const elem *x, int64_t i)
{
    return x[i];
}

INLINE void store(elem *x, int64_t i, float value)
{
    x[i] = value;
}

/* Where a row starts. */
INLINE elem *row_of(void *x, int64_t row, int64_t stride)
{
    return (elem *)x + row * stride;
}

INLINE const elem *const_row_of(const void *x, int64_t row, int64_t stride)
{
    return (const elem *)x + row * stride;
}

INLINE int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

INLINE int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/*
 * Largest of x[0..n), -INFINITY if n is 0, for every thread of the block. NaNs are passed over: the
 * sum of exponentials that follows a maximum has them. In lanes, since a compiler that honours NaNs
 * does not vectorise a plain maximum.
 */
INLINE float columns_max(const elem *x, int64_t n)
{
    float lane[SC_LANES];
    for (int l = 0; l < SC_LANES; l++)
        lane[l] = -INFINITY;
    FOR_PANEL(p, n, SC_LANES)
    {
        int64_t width = least(SC_LANES, n - p);
        if (width == SC_LANES) {
            for (int l = 0; l < SC_LANES; l++) {
                float v = load(x, p + l);
                lane[l] = v > lane[l] ? v : lane[l];
            }
        } else {
            for (int64_t l = 0; l < width; l++) {
                float v = load(x, p + l);
                lane[l] = v > lane[l] ? v : lane[l];
            }
        }
    }
    float largest = lane[0];
    for (int l = 1; l < SC_LANES; l++)
        largest = lane[l] > largest ? lane[l] : largest;
    BLOCK_MAX(largest);
    return largest;
}

/* bf16 is the upper half of an fp32; rounding to nearest even, NaNs stay NaNs. */
INLINE uint16_t bf16_from_float(float value)
{
    union {
        float f;
        uint32_t u;
    } bits;
    bits.f = value;
    uint32_t rounded = (bits.u + 0x7FFFu + ((bits.u >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits.u >> 16) | 0x40u;
    return (uint16_t)((bits.u & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

INLINE float float_from_bf16(uint16_t value)
{
    union {
        float f;
        uint32_t u;
    } bits;
    bits.u = (uint32_t)value << 16;
    return bits.f;
}

/*
 * sc_philox for the SC_DRAW counters from `counter` on: words[4 l + j] is word j of counter + l.
 * The lanes stand in arrays so that the compiler turns a round into vector instructions.
 */
INLINE void draw_words(uint64_t key, uint64_t counter, uint32_t stream, uint32_t step,
                       uint32_t *words)
{
    uint32_t c0[SC_DRAW], c1[SC_DRAW], c2[SC_DRAW], c3[SC_DRAW];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int l = 0; l < SC_DRAW; l++) {
        uint64_t c = counter + (uint64_t)l;
        c0[l] = (uint32_t)c;
        c1[l] = (uint32_t)(c >> 32);
        c2[l] = stream;
        c3[l] = step;
    }
    for (int round = 0; round < 10; round++) {
        for (int l = 0; l < SC_DRAW; l++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[l], p1 = (uint64_t)0xCD9E8D57u * c2[l];
            uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0;
            uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c1[l] = (uint32_t)p1;
            c3[l] = (uint32_t)p0;
            c0[l] = n0;
            c2[l] = n2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int l = 0; l < SC_DRAW; l++) {
        words[4 * l] = c0[l];
        words[4 * l + 1] = c1[l];
        words[4 * l + 2] = c2[l];
        words[4 * l + 3] = c3[l];
    }
}

/*
 * Columns [*lo, *hi) of a row whose first element has the global index `first`: those whose random
 * words come from panel p of the row. Panels are cut at multiples of 4 SC_DRAW of the global index,
 * so every panel is one draw_words call and no split of the rows changes a word. Returns the first
 * counter of the panel; *lo's word is at (first + *lo) - 4 counter.
 */
INLINE uint64_t draw_panel(uint64_t first, int64_t columns, int64_t p, int64_t *lo, int64_t *hi)
{
    const uint64_t width = 4 * SC_DRAW;
    uint64_t base = (first / width + (uint64_t)p) * width; /* global index of the panel's start */
    *lo = base > first ? (int64_t)(base - first) : 0;
    *hi = least(columns, (int64_t)(base + width - first));
    return base / 4;
}

/* How many panels a row has. */
INLINE int64_t draw_panels(uint64_t first, int64_t columns)
{
    const uint64_t width = 4 * SC_DRAW;
    return columns <= 0 ? 0
                        : (int64_t)((first + (uint64_t)columns - 1) / width - first / width + 1);
}

/*
 * Dropout factors of one panel: keep[c - lo] = 1/(1-p) where the word says keep, else 0.
 * Returns the number of columns; *lo is the first one.
 */
INLINE int64_t draw_keep(const struct sc_draw *draw, uint64_t first, int64_t columns, int64_t p,
                         int64_t *lo, float *keep)
{
    uint32_t words[4 * SC_DRAW];
    int64_t hi;
    uint64_t counter = draw_panel(first, columns, p, lo, &hi);
    uint32_t step = draw->state ? (uint32_t)draw->state->step : 0;
    uint64_t seed = draw->seed + (draw->state ? draw->state->seed : 0);
    draw_words(seed, counter, draw->site, step, words);
    const uint32_t *word = words + (first + (uint64_t)*lo - 4 * counter);
    const float probability = draw->probability, factor = 1.0f / (1.0f - probability);
    int64_t n = hi - *lo;
    FOR_LANE(l, n)
    {
        keep[l] = sc_uniform(word[l]) >= probability ? factor : 0.0f;
    }
    return n;
}

#endif
