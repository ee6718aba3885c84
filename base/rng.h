/*
 * Counter-based random numbers (Philox 4x32-10: Salmon et al., SC 2011). The same (key, counter)
 * gives the same numbers on every rank, thread and machine: parameter initialisation, dropout and
 * data are drawn so, hence every layout draws the same values. Usable from both compilers.
 */
#ifndef STEPCAST_BASE_RNG_H
#define STEPCAST_BASE_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#define SC_RNG_FN static __host__ __device__ __forceinline__
#else
#define SC_RNG_FN static inline __attribute__((always_inline, unused))
#endif

/* Four words out of a 64-bit key and a 64-bit counter with a 32-bit stream and step beside it. */
SC_RNG_FN void sc_philox(uint64_t key, uint64_t counter, uint32_t stream, uint32_t step,
                         uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = stream, c3 = step;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A word to [0, 1). */
SC_RNG_FN float sc_uniform(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* A small sequential generator for tests, search and chaos: splitmix64 over *state. */
SC_RNG_FN uint64_t sc_random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

#endif
