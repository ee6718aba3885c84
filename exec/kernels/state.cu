/*
 * The step state: what changes from step to step, worked out where the kernels read it.
 *
 * Learning rate (Megatron-LM's OptimizerParamScheduler; PyTorch's LambdaLR counts alike): with n
 * steps done before this one, n <= warmup: maximum * n / warmup (so the first step of a warm-up has
 * rate 0); n > decay_steps: minimum; else minimum + c (maximum - minimum) with
 * r = (n - warmup) / (decay_steps - warmup) and c = 1 - r (linear), (cos(pi r) + 1) / 2 (cosine).
 * Constant: the maximum once warm.
 *
 * Clipping (torch.nn.utils.clip_grad_norm_): factor min(1, limit / (norm + 1e-6)).
 */
#include "exec/kernels/kernel_source.h"

#define CLIP_EPSILON 1e-6

INLINE double learning_rate(const struct sc_state_advance_args *a, int64_t done)
{
    const double maximum = a->learning_rate, minimum = a->minimum_learning_rate;
    const int64_t warmup = a->warmup_steps, decay = a->decay_steps;
    if (warmup > 0 && done <= warmup)
        return maximum * (double)done / (double)warmup;
    if (a->schedule == SC_KERNEL_RATE_CONSTANT)
        return maximum;
    if (done > decay || decay <= warmup)
        return minimum;
    const double ratio = (double)(done - warmup) / (double)(decay - warmup);
    const double share = a->schedule == SC_KERNEL_RATE_LINEAR
                             ? 1 - ratio
                             : 0.5 * (cos(3.14159265358979323846 * ratio) + 1);
    return minimum + share * (maximum - minimum);
}

INLINE float correction(double beta, int64_t step)
{
    return (float)(1 / (1 - pow(beta, (double)step)));
}

KERNEL(state_advance, sc_state_advance_args)
{
    FOR_EACH_IN(i, begin, end)
    {
        struct sc_step_state *state = a.state + i;
        const double rate = learning_rate(&a, state->step);
        state->step++;
        state->seed = a.seed;
        state->learning_rate = (float)rate;
        state->correction1 = correction(a.beta1, state->step);
        state->correction2 = correction(a.beta2, state->step);
        state->clip = 1;
        state->gradient_norm = 0;
        state->skip = 0;
    }
}

KERNEL(state_clip, sc_state_clip_args)
{
    FOR_EACH_IN(i, begin, end)
    {
        const double norm = sqrt((double)a.squares[i]), factor = a.limit / (norm + CLIP_EPSILON);
        a.state[i].gradient_norm = (float)norm;
        a.state[i].clip = (float)(factor < 1 ? factor : 1);
    }
}

KERNEL(squares_sum, sc_squares_sum_args)
{
    FOR_ROW(r)
    {
        double total = 0;
        FOR_COL(b, a.blocks)
        {
            total += a.partial[b];
        }
        BLOCK_SUM(total);
        if (LEADER)
            a.norm[r] = (float)(total + (a.accumulate ? (double)a.norm[r] : 0));
    }
}
