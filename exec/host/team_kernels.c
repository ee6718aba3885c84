/* The kernels on a team. */
#include "exec/host/team_kernels.h"

struct call {
    const struct sc_kernels *kernels;
    const void *args;
    int64_t count, grain;
};

#define PART_OF(kernel, type, range)                                                               \
    static void part_of_##kernel(void *arg, int part, int parts)                                   \
    {                                                                                              \
        const struct call *call = arg;                                                             \
        struct sc_part p = sc_part_of(call->count, call->grain, part, parts);                      \
        if (p.begin < p.end)                                                                       \
            call->kernels->kernel(*(const struct type *)call->args, p.begin, p.end);               \
    }
SC_KERNEL_LIST(PART_OF)

#define PART(kernel, type, range) part_of_##kernel,
static sc_team_fn *const parts_of[SC_KERNEL_COUNT] = {SC_KERNEL_LIST(PART)};

#define GRAIN_ROWS 1
#define GRAIN_SHARES 1
#define GRAIN_ELEMENTS SC_ELEMENT_GRAIN
#define GRAIN(kernel, type, range) GRAIN_##range,
static const int64_t grains[SC_KERNEL_COUNT] = {SC_KERNEL_LIST(GRAIN)};

void sc_team_kernel(struct sc_team *team, enum sc_kernel_id kernel, const void *args, int64_t count)
{
    struct call call = {sc_kernels_select(), args, count, grains[kernel]};
    sc_team_run(team, parts_of[kernel], &call);
}
