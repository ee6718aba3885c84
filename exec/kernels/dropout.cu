/* Dropout with bias and residual, by counter; parameter initialisation by counter. */
#include "exec/kernels/kernel_source.h"

/* y = residual + keep (x + bias) over n columns; the optional operands are absent as NULL. */
INLINE void keep_add(const elem *x, const elem *bias, const elem *residual, const float *keep,
                     elem *y, int64_t n)
{
    FOR_LANE(l, n)
    {
        float v = load(x, l) + (bias ? load(bias, l) : 0.0f);
        store(y, l, (residual ? load(residual, l) : 0.0f) + keep[l] * v);
    }
}

INLINE void save_mask(uint8_t *mask, const float *keep, int64_t n)
{
    FOR_LANE(l, n)
    {
        mask[l] = keep[l] != 0.0f;
    }
}

/* The row without dropout: no random numbers. */
INLINE void add_row(const elem *x, const elem *bias, const elem *residual, uint8_t *mask, elem *y,
                    int64_t columns)
{
    FOR_COL(c, columns)
    {
        float v = load(x, c) + (bias ? load(bias, c) : 0.0f);
        store(y, c, (residual ? load(residual, c) : 0.0f) + v);
    }
    if (mask)
        FOR_COL(c, columns)
        {
            mask[c] = 1;
        }
}

KERNEL(dropout_forward, sc_dropout_args)
{
    const elem *bias = (const elem *)a.bias;
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.x, r, a.x_stride);
        const elem *residual = a.residual ? const_row_of(a.residual, r, a.residual_stride) : NULL;
        elem *y = row_of(a.y, r, a.y_stride);
        uint8_t *mask = a.mask ? a.mask + r * a.columns : NULL;
        if (a.draw.probability > 0.0f) {
            const uint64_t first = (uint64_t)((a.row_base + r) * a.columns);
            FOR_PANEL(p, draw_panels(first, a.columns), 1)
            {
                float keep[4 * SC_DRAW];
                int64_t lo, n = draw_keep(&a.draw, first, a.columns, p, &lo, keep);
                keep_add(x + lo, bias ? bias + lo : NULL, residual ? residual + lo : NULL, keep,
                         y + lo, n);
                if (mask)
                    save_mask(mask + lo, keep, n);
            }
        } else {
            add_row(x, bias, residual, mask, y, a.columns);
        }
    }
}

KERNEL(dropout_backward, sc_dropout_args)
{
    const float factor = 1.0f / (1.0f - a.draw.probability);
    FOR_ROW(r)
    {
        const elem *dy = const_row_of(a.x, r, a.x_stride);
        elem *dx = row_of(a.y, r, a.y_stride);
        if (a.draw.probability <= 0.0f) {
            FOR_COL(c, a.columns)
            {
                store(dx, c, load(dy, c));
            }
        } else if (a.mask) {
            const uint8_t *mask = a.mask + r * a.columns;
            FOR_COL(c, a.columns)
            {
                store(dx, c, mask[c] ? factor * load(dy, c) : 0.0f);
            }
        } else {
            const uint64_t first = (uint64_t)((a.row_base + r) * a.columns);
            FOR_PANEL(p, draw_panels(first, a.columns), 1)
            {
                float keep[4 * SC_DRAW];
                int64_t lo, n = draw_keep(&a.draw, first, a.columns, p, &lo, keep);
                FOR_LANE(l, n)
                {
                    store(dx, lo + l, keep[l] * load(dy, lo + l));
                }
            }
        }
    }
}

/*
 * The 4 SC_DRAW normal values of one panel. Whole panels always, so that a value does not depend on
 * where a row or a split begins (a vector loop and its remainder may round differently).
 */
INLINE void normal_panel(const uint32_t *word, float *value)
{
    float radius[2 * SC_DRAW], angle[2 * SC_DRAW];
    for (int l = 0; l < 2 * SC_DRAW; l++) {
        float u = ((float)(word[2 * l] >> 8) + 0.5f) * (1.0f / 16777216.0f); /* in (0, 1) */
        radius[l] = sqrtf(-2.0f * logf(u));
        angle[l] = 6.283185307179586f * sc_uniform(word[2 * l + 1]);
    }
    for (int l = 0; l < 2 * SC_DRAW; l++)
        value[2 * l] = radius[l] * cosf(angle[l]);
    for (int l = 0; l < 2 * SC_DRAW; l++)
        value[2 * l + 1] = radius[l] * sinf(angle[l]);
}

KERNEL(init_normal, sc_init_normal_args)
{
    const uint32_t step = a.draw.state ? (uint32_t)a.draw.state->step : 0;
    FOR_ROW(r)
    {
        elem *y = row_of(a.y, r, a.stride);
        const uint64_t first = (uint64_t)((a.row_base + r) * a.total_columns + a.column_base);
        FOR_PANEL(p, draw_panels(first, a.columns), 1)
        {
            uint32_t words[4 * SC_DRAW];
            float value[4 * SC_DRAW];
            int64_t lo, hi;
            uint64_t counter = draw_panel(first, a.columns, p, &lo, &hi);
            draw_words(a.draw.seed, counter, a.draw.site, step, words);
            normal_panel(words, value);
            const float *from = value + (first + (uint64_t)lo - 4 * counter);
            for (int64_t l = 0; l < hi - lo; l++)
                store(y, lo + l, a.deviation * from[l]);
        }
    }
}
