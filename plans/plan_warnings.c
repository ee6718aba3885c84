/* Warnings that follow from the plan alone: a row each. */
#include "plans/plan_warnings.h"

static bool zero_alone(const struct sc_plan *plan)
{
    return plan->zero.stage > 0 && plan->mesh.size[SC_DATA] == 1;
}

static bool scatter_alone(const struct sc_plan *plan)
{
    return plan->zero.gradient_reduction == SC_REDUCE_REDUCE_SCATTER &&
           plan->mesh.size[SC_DATA] == 1;
}

static bool domino_alone(const struct sc_plan *plan)
{
    return plan->domino.pieces > 1 && plan->mesh.size[SC_TENSOR] == 1;
}

static const struct {
    bool (*holds)(const struct sc_plan *plan);
    const char *line;
} warnings[] = {
    {zero_alone, "zero.stage: nothing is divided, because mesh.data_parallel is 1"},
    {scatter_alone, "zero.gradient_reduction: nothing is reduced, because mesh.data_parallel is 1"},
    {domino_alone,
     "domino.pieces: there is no communication to hide, because mesh.tensor_parallel is 1"},
};

void sc_plan_warnings(const struct sc_plan *plan, sc_plan_warning_fn each, void *context)
{
    for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
        if (warnings[i].holds(plan))
            each(context, warnings[i].line);
}
