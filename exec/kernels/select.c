/* Picks the table of kernels that this processor can run. */
#include <stddef.h>

#include "exec/kernels/kernels.h"

extern const struct sc_kernels sc_kernels_v1;
#ifdef SC_KERNELS_X86
extern const struct sc_kernels sc_kernels_v3, sc_kernels_v4;

/* The instruction sets of the levels x86-64-v3 and -v4 that the compiler may use. */
static int has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static int has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

const struct sc_kernels *sc_kernels_at(int index)
{
    const struct sc_kernels *usable[4] = {NULL, NULL, NULL, NULL};
    int count = 0;
#ifdef SC_KERNELS_X86
    __builtin_cpu_init();
    if (has_v4())
        usable[count++] = &sc_kernels_v4;
    if (has_v3())
        usable[count++] = &sc_kernels_v3;
#endif
    usable[count++] = &sc_kernels_v1;
    return index >= 0 && index < count ? usable[index] : NULL;
}

const struct sc_kernels *sc_kernels_select(void)
{
    return sc_kernels_at(0);
}
