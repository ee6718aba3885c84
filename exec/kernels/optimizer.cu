/* AdamW over ranges of a flat buffer, and the squared norm of one. */
#include "exec/kernels/kernel_source.h"

/* The elements [lo, hi), which share their decay. */
INLINE void adamw_range(const struct sc_adamw_args *a, int64_t lo, int64_t hi, float weight)
{
    float *parameter = a->parameter, *m = a->m, *v = a->v;
    const float *gradient = a->gradient;
    const float rate = a->state->learning_rate, clip = a->state->clip;
    const float correction1 = a->state->correction1, correction2 = a->state->correction2;
    const float beta1 = (float)a->beta1, rest1 = (float)(1.0 - a->beta1);
    const float beta2 = (float)a->beta2, rest2 = (float)(1.0 - a->beta2);
    const float epsilon = a->epsilon;
    const float shrink = 1.0f - rate * a->weight_decay * weight;
    FOR_EACH_IN(i, lo, hi)
    {
        float g = clip * gradient[i];
        float m_new = beta1 * m[i] + rest1 * g;
        float v_new = beta2 * v[i] + rest2 * g * g;
        float update = rate * (m_new * correction1) / (sqrtf(v_new * correction2) + epsilon);
        m[i] = m_new;
        v[i] = v_new;
        parameter[i] = shrink * parameter[i] - update;
    }
    if (a->low_precision) {
        uint16_t *copy = a->low_precision;
        FOR_EACH_IN(i, lo, hi)
        {
            copy[i] = bf16_from_float(parameter[i]);
        }
    }
}

KERNEL(adamw, sc_adamw_args)
{
    if (a.state->skip)
        return;
    for (int64_t q = 0; q < a.range_count; q++) {
        const struct sc_kernel_range range = a.ranges[q];
        adamw_range(&a, most(begin, range.first), least(end, range.first + range.count),
                    range.weight);
    }
}

KERNEL(norm_squares, sc_norm_squares_args)
{
    FOR_ROW(b)
    {
        const int64_t first = b * SC_SQUARES_BLOCK, last = least(first + SC_SQUARES_BLOCK, a.count);
        double total = 0.0;
        for (int64_t q = 0; q < a.range_count; q++) {
            const struct sc_kernel_range range = a.ranges[q];
            const int64_t lo = most(first, range.first);
            const int64_t n = least(last, range.first + range.count) - lo;
            double sum = 0.0;
            FOR_COL(c, n)
            {
                sum += (double)a.x[lo + c] * (double)a.x[lo + c];
            }
            total += (double)range.weight * sum;
        }
        BLOCK_SUM(total);
        if (LEADER)
            a.partial[b] = total;
    }
}
