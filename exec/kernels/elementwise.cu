/* Sums, copies, casts, column sums, rotary positions. */
#include "exec/kernels/kernel_source.h"

KERNEL(add, sc_add_args)
{
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.a, r, a.a_stride);
        const elem *b = const_row_of(a.b, r % a.b_rows, a.b_stride);
        elem *y = row_of(a.y, r, a.y_stride);
        FOR_COL(c, a.columns)
        {
            store(y, c, load(x, c) + load(b, c));
        }
    }
}

KERNEL(scale, sc_scale_args)
{
    FOR_ROW(r)
    {
        const elem *x = const_row_of(a.x, r, a.x_stride);
        elem *y = row_of(a.y, r, a.y_stride);
        FOR_COL(c, a.columns)
        {
            store(y, c, a.factor * load(x, c));
        }
    }
}

KERNEL(cast, sc_cast_args)
{
    const float *from32 = (const float *)a.x;
    const uint16_t *from16 = (const uint16_t *)a.x;
    float *to32 = (float *)a.y;
    uint16_t *to16 = (uint16_t *)a.y;
    switch (2 * (a.from == SC_STORAGE_BF16) + (a.to == SC_STORAGE_BF16)) {
    case 0:
        FOR_EACH_IN(i, begin, end)
        {
            to32[i] = from32[i];
        }
        break;
    case 1:
        FOR_EACH_IN(i, begin, end)
        {
            to16[i] = bf16_from_float(from32[i]);
        }
        break;
    case 2:
        FOR_EACH_IN(i, begin, end)
        {
            to32[i] = float_from_bf16(from16[i]);
        }
        break;
    default:
        FOR_EACH_IN(i, begin, end)
        {
            to16[i] = from16[i];
        }
    }
}

KERNEL(fill, sc_fill_args)
{
    elem *y = (elem *)a.y;
    FOR_EACH_IN(i, begin, end)
    {
        store(y, i, a.value);
    }
}

KERNEL(reduce_rows, sc_reduce_rows_args)
{
    FOR_SPAN(i, n, least(SC_PANEL, a.columns - i % a.columns))
    {
        const int64_t row = i / a.columns, column = i % a.columns;
        elem *out = row_of(a.out, row, a.out_stride) + column;
        float sum[SC_PANEL];
        FOR_LANE(l, n)
        {
            sum[l] = a.accumulate ? load(out, l) : 0.0f;
        }
        for (int64_t j = 0; j < a.count; j++) {
            const elem *in = const_row_of(a.in, row + j * a.out_rows, a.in_stride) + column;
            FOR_LANE(l, n)
            {
                sum[l] += load(in, l);
            }
        }
        FOR_LANE(l, n)
        {
            store(out, l, sum[l]);
        }
    }
}

/*
 * Inverse frequencies in double, rounded once, because the frameworks hold them as rounded floats:
 * at position 8191 a last-bit difference is 5e-4 radian. The two loops below are apart since a
 * compiler that merges sine and cosine of one angle has no vector version of the pair.
 */
KERNEL(rope, sc_rope_args)
{
    const int64_t half = a.rotary / 2;
    const double bits = log2((double)a.theta);
    FOR_PANEL(p, half, SC_PANEL)
    {
        float frequency[SC_PANEL], cosine[SC_PANEL], sine[SC_PANEL];
        const int64_t n = least(SC_PANEL, half - p);
        for (int64_t l = 0; l < n; l++)
            frequency[l] = (float)exp2(-2.0 * (double)(p + l) / (double)a.rotary * bits);
        FOR_ROW(r)
        {
            const float position = (float)(a.first_position + r % a.sequence);
            const float sign = a.inverse ? -1.0f : 1.0f;
            FOR_LANE(l, n)
            {
                cosine[l] = cosf(position * frequency[l]);
            }
            FOR_LANE(l, n)
            {
                sine[l] = sign * sinf(position * frequency[l]);
            }
            for (int64_t h = 0; h < a.heads; h++) {
                elem *x = row_of(a.x, r, a.stride) + h * a.head_size + p;
                FOR_LANE(l, n)
                {
                    float u = load(x, l), v = load(x, l + half);
                    store(x, l, u * cosine[l] - v * sine[l]);
                    store(x, l + half, v * cosine[l] + u * sine[l]);
                }
            }
        }
    }
}
