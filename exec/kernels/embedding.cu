/* Embedding over a range of the vocabulary. */
#include "exec/kernels/kernel_source.h"

KERNEL(embedding_forward, sc_embedding_args)
{
    FOR_ROW(r)
    {
        elem *y = row_of(a.y, r, a.y_stride);
        const int64_t local = (int64_t)a.id[r] - a.first;
        if (local >= 0 && local < a.count) {
            const elem *x = const_row_of(a.table, local, a.table_stride);
            FOR_COL(c, a.columns)
            {
                store(y, c, load(x, c));
            }
        } else {
            FOR_COL(c, a.columns)
            {
                store(y, c, 0.0f);
            }
        }
    }
}

/* Whoever holds table rows [lo, hi) walks all tokens in order: no atomics, one order of additions.
 */
KERNEL(embedding_backward, sc_embedding_backward_args)
{
    FOR_SHARE(lo, hi)
    {
        if (!a.accumulate)
            for (int64_t v = lo; v < hi; v++) {
                elem *y = row_of(a.table, v, a.table_stride);
                FOR_COL(c, a.columns)
                {
                    store(y, c, 0.0f);
                }
            }
        for (int64_t r = 0; r < a.rows; r++) {
            const int64_t local = (int64_t)a.id[r] - a.first;
            if (local < lo || local >= hi)
                continue;
            const elem *dy = const_row_of(a.dy, r, a.dy_stride);
            elem *y = row_of(a.table, local, a.table_stride);
            FOR_COL(c, a.columns)
            {
                store(y, c, load(y, c) + load(dy, c));
            }
        }
    }
}
