/* Softmax of attention scores: unfused, and the element-wise middle of fused attention. */
#include "exec/kernels/kernel_source.h"

/* x[0..n) to exp(scale x - shift) in y; returns the sum. */
INLINE float exponentials(const elem *x, elem *y, int64_t n, float scale, float shift)
{
    float sum = 0.0f;
    FOR_COL(c, n)
    {
        float e = expf(scale * load(x, c) - shift);
        store(y, c, e);
        sum += e;
    }
    BLOCK_SUM(sum);
    return sum;
}

INLINE void clear_behind(elem *y, int64_t n, int64_t columns)
{
    FOR_COL(c, columns - n)
    {
        store(y, n + c, 0.0f);
    }
}

/* How many columns a row of the score matrix sees. */
INLINE int64_t visible(const struct sc_softmax_args *a, int64_t row)
{
    return a->causal ? most(0, row % a->queries + 1 + a->columns - a->queries) : a->columns;
}

KERNEL(softmax_forward, sc_softmax_args)
{
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.x, r, a.stride);
        elem *y = row_of(a.y, r, a.stride);
        const int64_t n = visible(&a, r);
        float largest = columns_max(x, n);
        float sum = exponentials(x, y, n, a.scale, a.scale * largest);
        const float factor = 1.0f / sum;
        FOR_COL(c, n)
        {
            store(y, c, load(y, c) * factor);
        }
        clear_behind(y, n, a.columns);
    }
}

KERNEL(softmax_backward, sc_softmax_args)
{
    FOR_ROW(r)
    {
        const elem *y = const_row_of(a.y, r, a.stride), *dy = const_row_of(a.dy, r, a.stride);
        elem *dx = row_of(a.dx, r, a.stride);
        const int64_t n = visible(&a, r);
        float sum = 0.0f;
        FOR_COL(c, n)
        {
            sum += load(dy, c) * load(y, c);
        }
        BLOCK_SUM(sum);
        FOR_COL(c, n)
        {
            store(dx, c, a.scale * load(y, c) * (load(dy, c) - sum));
        }
        clear_behind(dx, n, a.columns);
    }
}

/* Global index of the first element of a row of [batch, heads, queries, columns]. */
INLINE uint64_t score_index(const struct sc_attention_dropout_args *a, int64_t row)
{
    int64_t query = row % a->queries, unit = row / a->queries;
    int64_t head = a->head_base + unit % a->heads, batch = a->batch_base + unit / a->heads;
    return ((uint64_t)(batch * a->total_heads + head) * (uint64_t)a->queries + (uint64_t)query) *
           (uint64_t)a->columns;
}

KERNEL(attention_dropout, sc_attention_dropout_args)
{
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.x, r, a.stride);
        elem *y = row_of(a.y, r, a.stride);
        uint8_t *mask = a.mask ? a.mask + r * a.columns : NULL;
        const uint64_t first = score_index(&a, r);
        FOR_PANEL(p, draw_panels(first, a.columns), 1)
        {
            float keep[4 * SC_DRAW];
            int64_t lo, n = draw_keep(&a.draw, first, a.columns, p, &lo, keep);
            FOR_LANE(l, n)
            {
                store(y, lo + l, keep[l] * load(x, lo + l));
            }
            if (mask)
                FOR_LANE(l, n)
                {
                    mask[lo + l] = keep[l] != 0.0f;
                }
        }
    }
}

KERNEL(attention_softmax, sc_attention_block_args)
{
    FOR_ROW(r)
    {
        float *s = a.scores + r * a.stride;
        const int64_t n = a.first_query + r + 1;
        const uint64_t first = a.index + (uint64_t)r * a.index_stride;
        float largest = columns_max(s, n);
        float sum = exponentials(s, s, n, 1.0f, largest);
        const float factor = 1.0f / sum;
        if (a.draw.probability > 0.0f) {
            FOR_PANEL(p, draw_panels(first, n), 1)
            {
                float keep[4 * SC_DRAW];
                int64_t lo, width = draw_keep(&a.draw, first, n, p, &lo, keep);
                FOR_LANE(l, width)
                {
                    s[lo + l] *= factor * keep[l];
                }
            }
        } else {
            FOR_COL(c, n)
            {
                s[c] *= factor;
            }
        }
        clear_behind(s, n, a.columns);
        if (LEADER)
            a.lse[r] = largest + logf(sum);
    }
}

KERNEL(attention_gradient, sc_attention_block_args)
{
    FOR_ROW(r)
    {
        float *s = a.scores + r * a.stride, *dp = a.dp + r * a.dp_stride;
        const int64_t n = a.first_query + r + 1;
        const uint64_t first = a.index + (uint64_t)r * a.index_stride;
        const float lse = a.lse[r], delta = a.delta[r];
        if (a.draw.probability > 0.0f) {
            FOR_PANEL(p, draw_panels(first, n), 1)
            {
                float keep[4 * SC_DRAW];
                int64_t lo, width = draw_keep(&a.draw, first, n, p, &lo, keep);
                FOR_LANE(l, width)
                {
                    float e = expf(s[lo + l] - lse);
                    s[lo + l] = e * keep[l];
                    dp[lo + l] = e * (keep[l] * dp[lo + l] - delta);
                }
            }
        } else {
            FOR_COL(c, n)
            {
                float e = expf(s[c] - lse);
                s[c] = e;
                dp[c] = e * (dp[c] - delta);
            }
        }
        clear_behind(s, n, a.columns);
        clear_behind(dp, n, a.columns);
    }
}

KERNEL(attention_delta, sc_attention_block_args)
{
    FOR_ROW(r)
    {
        const float *o = a.scores + r * a.stride, *d = a.dp + r * a.dp_stride;
        float sum = 0.0f;
        FOR_COL(c, a.columns)
        {
            sum += o[c] * d[c];
        }
        BLOCK_SUM(sum);
        if (LEADER)
            a.delta[r] = sum;
    }
}
