/* The kernels on a team. */
#include "exec/host/team_kernels.h"

struct call {
    const struct sc_kernels *kernels;
    const void *args;
    int64_t count, grain;
};

#define RUN(kernel, type, range)                                                                   \
    static void part_of_##kernel(void *arg, int part, int parts)                                   \
    {                                                                                              \
        const struct call *call = arg;                                                             \
        struct sc_part p = sc_part_of(call->count, call->grain, part, parts);                      \
        if (p.begin < p.end)                                                                       \
            call->kernels->kernel(*(const struct type *)call->args, p.begin, p.end);               \
    }                                                                                              \
    void sc_run_##kernel(struct sc_team *team, const struct type *a, int64_t count, int64_t grain) \
    {                                                                                              \
        struct call call = {sc_kernels_select(), a, count, grain};                                 \
        sc_team_run(team, part_of_##kernel, &call);                                                \
    }
SC_KERNEL_LIST(RUN)
