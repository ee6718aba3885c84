/* Matrix products: shapes and strides from the operands' values. */
#include "exec/op_functions.h"

static const float *floats(const struct sc_view *view)
{
    return (const float *)view->data;
}

/* BIAS_GRADIENT goes with the product where both start or both add; else it is a sum of its own. */
void sc_op_gemm(const struct sc_call *call, struct sc_gemm *gemm, struct sc_view *apart)
{
    struct sc_view a = sc_call_view(call, SC_ROLE_A), b = sc_call_view(call, SC_ROLE_B);
    struct sc_view c = sc_call_view(call, SC_ROLE_C);
    struct sc_view bias = sc_call_view(call, SC_ROLE_BIAS);
    struct sc_view sums = sc_call_view(call, SC_ROLE_BIAS_GRADIENT);
    bool with = sums.data && sums.accumulate == c.accumulate;
    *gemm = (struct sc_gemm){
        .transpose_a = call->op->p.gemm.transpose_a,
        .transpose_b = call->op->p.gemm.transpose_b,
        .accumulate = c.accumulate,
        .m = c.value->rows,
        .n = c.value->cols,
        .k = call->op->p.gemm.transpose_a ? a.value->rows : a.value->cols,
        .lda = a.value->row_stride,
        .ldb = b.value->row_stride,
        .ldc = c.value->row_stride,
        .alpha = call->op->p.gemm.alpha,
        .a = floats(&a),
        .b = floats(&b),
        .c = (float *)c.data,
        .bias = floats(&bias),
        .bias_gradient = with ? (float *)sums.data : NULL,
    };
    *apart = with ? (struct sc_view){0} : sums;
}

/* Strides of an operand over (sequence of the batch, key-value head, query head of that). A stack
 * of score matrices has a matrix a head; packed rows have their heads side by side, and fewer of
 * them than query heads are shared by neighbours. */
static void batch_strides(const union sc_parameters *p, const struct sc_value *v, int64_t out[3])
{
    int64_t shared = p->attention.heads / p->attention.kv_heads;
    int64_t sequence = p->attention.sequence, row = v->row_stride;
    if (v->rows == p->attention.batch * p->attention.heads * sequence && v->cols == sequence) {
        out[0] = p->attention.heads * sequence * row;
        out[1] = shared * sequence * row;
        out[2] = sequence * row;
        return;
    }
    bool query = v->cols == p->attention.heads * (int64_t)p->attention.head_size;
    out[0] = sequence * row;
    out[1] = (query ? shared : 1) * p->attention.head_size;
    out[2] = query ? p->attention.head_size : 0;
}

/* Width of one head's matrix in an operand. */
static int64_t head_columns(const union sc_parameters *p, const struct sc_value *v)
{
    bool stack = v->rows == p->attention.batch * p->attention.heads * p->attention.sequence &&
                 v->cols == p->attention.sequence;
    return stack ? p->attention.sequence : p->attention.head_size;
}

/* Every matrix has `sequence` rows, so m and k are that or a width. */
void sc_op_batched_gemm(const struct sc_call *call, struct sc_gemm *gemm,
                        struct sc_gemm_batch *batch)
{
    const union sc_parameters *p = &call->op->p;
    struct sc_view a = sc_call_view(call, SC_ROLE_A), b = sc_call_view(call, SC_ROLE_B);
    struct sc_view c = sc_call_view(call, SC_ROLE_C);
    *gemm = (struct sc_gemm){
        .transpose_a = p->attention.transpose_a,
        .transpose_b = p->attention.transpose_b,
        .accumulate = c.accumulate,
        .m = p->attention.sequence,
        .n = head_columns(p, c.value),
        .k = p->attention.transpose_a ? p->attention.sequence : head_columns(p, a.value),
        .lda = a.value->row_stride,
        .ldb = b.value->row_stride,
        .ldc = c.value->row_stride,
        .alpha = p->attention.scale,
        .a = floats(&a),
        .b = floats(&b),
        .c = (float *)c.data,
    };
    *batch = (struct sc_gemm_batch){
        .count = {p->attention.batch, p->attention.kv_heads,
                  p->attention.heads / p->attention.kv_heads},
    };
    batch_strides(p, a.value, batch->a);
    batch_strides(p, b.value, batch->b);
    batch_strides(p, c.value, batch->c);
}
