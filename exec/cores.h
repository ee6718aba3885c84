/* The cores that this process may run on. */
#ifndef STEPCAST_EXEC_CORES_H
#define STEPCAST_EXEC_CORES_H

#include <sched.h>
#include <stdint.h>

/* The first `most` of them (0: all), as a set; returns how many, 0 where the system does not say.
 */
static inline int64_t sc_cores_allowed(int64_t most, cpu_set_t *out)
{
    cpu_set_t set;
    int64_t count = 0;
    CPU_ZERO(out);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int core = 0; core < CPU_SETSIZE && (most <= 0 || count < most); core++) {
        if (CPU_ISSET(core, &set)) {
            CPU_SET(core, out);
            count++;
        }
    }
    return count;
}

#endif
