/* Small helpers of the numerical tests: seeded numbers, comparison of arrays with a stated
 * tolerance. */
#ifndef STEPCAST_TESTS_SUPPORT_NUMERIC_H
#define STEPCAST_TESTS_SUPPORT_NUMERIC_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"

/* `count` floats, evenly spread over [-1, 1), the same for one seed. Freed by the caller. */
static inline float *random_floats(int64_t count, uint64_t seed)
{
    float *x = malloc((size_t)(count > 0 ? count : 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = 2.0f * sc_uniform((uint32_t)(sc_random_next(&seed) >> 32)) - 1.0f;
    return x;
}

/* A copy; freed by the caller. */
static inline float *copy_floats(const float *x, int64_t count)
{
    float *y = malloc((size_t)(count > 0 ? count : 1) * sizeof *y);
    assert_non_null(y);
    memcpy(y, x, (size_t)count * sizeof *y);
    return y;
}

/* |got - want| <= tolerance max(1, |want|) for every element; names the first that is not. */
#define assert_floats_near(got, want, count, tolerance)                                            \
    do {                                                                                           \
        for (int64_t near_ = 0; near_ < (count); near_++) {                                        \
            double got_ = (double)(got)[near_], want_ = (double)(want)[near_];                     \
            double room_ = (tolerance)*fmax(1.0, fabs(want_));                                     \
            if (!(fabs(got_ - want_) <= room_))                                                    \
                fail_msg("%s[%ld] = %.9g, expected %.9g (tolerance %.1e)", #got, (long)near_,      \
                         got_, want_, room_);                                                      \
        }                                                                                          \
    } while (0)

#endif
