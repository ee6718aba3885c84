/* Matrix products and attention: shapes and strides from the operands' values. */
#include "exec/host/host_ops.h"

static const float *floats(const struct sc_host_view *view)
{
    return (const float *)view->data;
}

/* BIAS_GRADIENT goes with the product where both start or both add; else it is a sum of its own. */
enum sc_status sc_host_gemm(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_host_view a = sc_host_operand(call, SC_ROLE_A), b = sc_host_operand(call, SC_ROLE_B);
    struct sc_host_view c = sc_host_operand(call, SC_ROLE_C);
    struct sc_host_view bias = sc_host_operand(call, SC_ROLE_BIAS);
    struct sc_host_view sums = sc_host_operand(call, SC_ROLE_BIAS_GRADIENT);
    bool apart = sums.data && sums.accumulate != c.accumulate;
    const struct sc_gemm gemm = {
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
        .bias_gradient = apart ? NULL : (float *)sums.data,
    };
    sc_gemm_run(call->team, &gemm);
    if (apart)
        sc_host_column_sums(call, &a, &sums);
    return SC_OK;
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
enum sc_status sc_host_batched_gemm(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    const union sc_parameters *p = &call->op->p;
    struct sc_host_view a = sc_host_operand(call, SC_ROLE_A), b = sc_host_operand(call, SC_ROLE_B);
    struct sc_host_view c = sc_host_operand(call, SC_ROLE_C);
    const struct sc_gemm gemm = {
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
    struct sc_gemm_batch batch = {
        .count = {p->attention.batch, p->attention.kv_heads,
                  p->attention.heads / p->attention.kv_heads},
    };
    batch_strides(p, a.value, batch.a);
    batch_strides(p, b.value, batch.b);
    batch_strides(p, c.value, batch.c);
    sc_gemm_run_batch(call->team, &gemm, &batch);
    return SC_OK;
}

static struct sc_attention attention_of(const struct sc_host_call *call)
{
    const union sc_parameters *p = &call->op->p;
    struct sc_host_view qkv = sc_host_operand(call, SC_ROLE_QKV);
    struct sc_host_view o = sc_host_operand(call, SC_ROLE_O);
    struct sc_host_view d_o = sc_host_operand(call, SC_ROLE_DO);
    return (struct sc_attention){
        .batch = p->attention.batch,
        .sequence = p->attention.sequence,
        .heads = p->attention.heads,
        .kv_heads = p->attention.kv_heads,
        .head_size = p->attention.head_size,
        .qkv_stride = qkv.value->row_stride,
        .o_stride = o.value->row_stride,
        .scale = p->attention.scale,
        .qkv = floats(&qkv),
        .o = (float *)o.data,
        .lse = (float *)sc_host_operand(call, SC_ROLE_LSE).data,
        .d_o = floats(&d_o),
        .dqkv = (float *)sc_host_operand(call, SC_ROLE_DQKV).data,
        .workspace = (float *)call->scratch,
        .batch_base = sc_host_index(call, &p->attention.batch_index),
        .head_base = sc_host_index(call, &p->attention.head_index),
        .total_heads = p->attention.total_heads,
        .draw = sc_host_draw(call, p->attention.site, p->attention.probability),
    };
}

enum sc_status sc_host_attention(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    const struct sc_attention attention = attention_of(call);
    sc_attention_forward(call->team, &attention);
    return SC_OK;
}

enum sc_status sc_host_attention_backward(const struct sc_host_call *call, struct sc_error *err)
{
    (void)err;
    const struct sc_attention attention = attention_of(call);
    sc_attention_backward(call->team, &attention);
    return SC_OK;
}
