/* Cross entropy in the three parts between the reductions of a vocabulary-parallel head. */
#include "exec/kernels/kernel_source.h"

/* How many of the local columns are no padding. */
INLINE int64_t real_columns(const struct sc_cross_entropy_args *a)
{
    return most(0, least(a->columns, a->vocab_size - a->first_column));
}

/* The target's local column, -1 if it is ignored or another rank's. */
INLINE int64_t local_target(const struct sc_cross_entropy_args *a, int64_t row, int64_t real)
{
    int64_t column = (int64_t)a->target[row] - a->first_column;
    return a->target[row] >= 0 && column >= 0 && column < real ? column : -1;
}

KERNEL(cross_entropy_max, sc_cross_entropy_args)
{
    const int64_t real = real_columns(&a);
    FOR_ROW(r)
    {
        float largest = columns_max(const_row_of(a.logits, r, a.stride), real);
        if (LEADER)
            a.maximum[r] = largest;
    }
}

/* Sum of exp(x - maximum), written to y as well if it is there. */
INLINE float sum_exponentials(const elem *x, elem *y, int64_t n, float maximum)
{
    float sum = 0.0f;
    if (y) {
        FOR_COL(c, n)
        {
            float e = expf(load(x, c) - maximum);
            store(y, c, e);
            sum += e;
        }
    } else {
        FOR_COL(c, n)
        {
            sum += expf(load(x, c) - maximum);
        }
    }
    BLOCK_SUM(sum);
    return sum;
}

KERNEL(cross_entropy_sum, sc_cross_entropy_args)
{
    const int64_t real = real_columns(&a);
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.logits, r, a.stride);
        elem *y = a.exponentials ? row_of(a.exponentials, r, a.exponentials_stride) : NULL;
        const int64_t target = local_target(&a, r, real);
        float logit = target >= 0 ? load(x, target) : 0.0f;
        BLOCK_MAX(logit); /* a barrier: all have read it before it is overwritten */
        float sum = sum_exponentials(x, y, real, a.maximum[r]);
        if (y)
            FOR_COL(c, a.columns - real)
            {
                store(y, real + c, 0.0f);
            }
        if (LEADER) {
            a.sum[r] = sum;
            a.target_logit[r] = logit;
        }
    }
}

/* gradient = scale (p - [column is target]) of one row. */
INLINE void cross_entropy_gradient(const struct sc_cross_entropy_args *a, int64_t r, int64_t real)
{
    const elem *x = const_row_of(a->logits, r, a->stride);
    elem *g = row_of(a->gradient, r, a->gradient_stride);
    const int64_t target = local_target(a, r, real);
    const float scale = a->target[r] < 0 ? 0.0f : a->scale;
    const float maximum = a->maximum[r], factor = scale / a->sum[r];
    const bool mine = target >= 0 && OWNER(target);
    float at_target = 0.0f; /* read before the row is overwritten */
    if (mine)
        at_target = a->have_exponentials ? load(x, target) : expf(load(x, target) - maximum);
    if (a->have_exponentials) {
        FOR_COL(c, real)
        {
            store(g, c, factor * load(x, c));
        }
    } else {
        FOR_COL(c, real)
        {
            store(g, c, factor * expf(load(x, c) - maximum));
        }
    }
    FOR_COL(c, a->columns - real)
    {
        store(g, real + c, 0.0f);
    }
    if (mine)
        store(g, target, factor * at_target - scale);
}

KERNEL(cross_entropy_loss, sc_cross_entropy_args)
{
    const int64_t real = real_columns(&a);
    FOR_ROW(r)
    {
        if (a.loss && LEADER)
            a.loss[r] = a.target[r] < 0 ? 0.0f : logf(a.sum[r]) + a.maximum[r] - a.target_logit[r];
        if (a.gradient)
            cross_entropy_gradient(&a, r, real);
    }
}
