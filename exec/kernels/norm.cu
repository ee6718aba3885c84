/* LayerNorm and RMSNorm, forward and backward. */
#include "exec/kernels/kernel_source.h"

INLINE float row_mean(const elem *x, int64_t columns)
{
    float sum = 0.0f;
    FOR_COL(c, columns)
    {
        sum += load(x, c);
    }
    BLOCK_SUM(sum);
    return sum / (float)columns;
}

INLINE float row_rstd(const elem *x, int64_t columns, float mean, float epsilon)
{
    float squares = 0.0f;
    FOR_COL(c, columns)
    {
        float d = load(x, c) - mean;
        squares += d * d;
    }
    BLOCK_SUM(squares);
    return 1.0f / sqrtf(squares / (float)columns + epsilon);
}

KERNEL(norm_forward, sc_norm_args)
{
    const elem *gamma = (const elem *)a.gamma, *beta = (const elem *)a.beta;
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.x, r, a.x_stride);
        elem *y = row_of(a.y, r, a.y_stride);
        float mean = a.kind == SC_KERNEL_RMS_NORM ? 0.0f : row_mean(x, a.columns);
        float rstd = row_rstd(x, a.columns, mean, a.epsilon);
        FOR_COL(c, a.columns)
        {
            float shift = beta ? load(beta, c) : 0.0f;
            store(y, c, (load(x, c) - mean) * rstd * load(gamma, c) + shift);
        }
        if (LEADER) {
            a.stat[2 * r] = mean;
            a.stat[2 * r + 1] = rstd;
        }
    }
}

/* One row of the backward: dx, and the row's share of the two column sums. */
INLINE void norm_backward_row(const struct sc_norm_backward_args *a, int64_t r, float *dgamma,
                              float *dbeta)
{
    const elem *dy = const_row_of(a->dy, r, a->dy_stride), *x = const_row_of(a->x, r, a->x_stride);
    const elem *gamma = (const elem *)a->gamma;
    elem *dx = row_of(a->dx, r, a->dx_stride);
    const float mean = a->stat[2 * r], rstd = a->stat[2 * r + 1];
    float sum = 0.0f, product = 0.0f;
    FOR_COL(c, a->columns)
    {
        float g = load(dy, c) * load(gamma, c);
        sum += g;
        product += g * (load(x, c) - mean);
    }
    BLOCK_SUM(sum);
    BLOCK_SUM(product);
    const float share = 1.0f / (float)a->columns;
    const float mean_g = a->kind == SC_KERNEL_RMS_NORM ? 0.0f : sum * share;
    const float mean_gz = product * rstd * share;
    const bool add = a->add != 0;
    FOR_COL(c, a->columns)
    {
        float d = load(dy, c), z = (load(x, c) - mean) * rstd;
        dgamma[c] += d * z;
        dbeta[c] += d;
        float v = rstd * (d * load(gamma, c) - mean_g - z * mean_gz);
        store(dx, c, add ? load(dx, c) + v : v);
    }
}

KERNEL(norm_backward, sc_norm_backward_args)
{
    FOR_ROW(b)
    {
        float *dgamma = a.partial + b * 2 * a.columns, *dbeta = dgamma + a.columns;
        FOR_COL(c, a.columns)
        {
            dgamma[c] = 0.0f;
            dbeta[c] = 0.0f;
        }
        const int64_t last = least(a.rows, (b + 1) * SC_NORM_BLOCK);
        for (int64_t r = b * SC_NORM_BLOCK; r < last; r++)
            norm_backward_row(&a, r, dgamma, dbeta);
    }
}
