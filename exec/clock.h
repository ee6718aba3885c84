/* Seconds of CLOCK_MONOTONIC: what stamps are in. */
#ifndef STEPCAST_EXEC_CLOCK_H
#define STEPCAST_EXEC_CLOCK_H

#include <time.h>

static inline double sc_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
