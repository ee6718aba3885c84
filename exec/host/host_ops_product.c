/* Matrix products and fused attention on a team. */
#include "exec/host/host_ops.h"

static const float *floats(const struct sc_view *view)
{
    return (const float *)view->data;
}

enum sc_status sc_host_gemm(const struct sc_call *call, struct sc_error *err)
{
    struct sc_gemm gemm;
    struct sc_view apart, a = sc_call_view(call, SC_ROLE_A);
    sc_op_gemm(call, &gemm, &apart);
    sc_gemm_run(call->where, &gemm);
    return apart.data ? sc_call_column_sums(call, &a, &apart, err) : SC_OK;
}

enum sc_status sc_host_batched_gemm(const struct sc_call *call, struct sc_error *err)
{
    (void)err;
    struct sc_gemm gemm;
    struct sc_gemm_batch batch;
    sc_op_batched_gemm(call, &gemm, &batch);
    sc_gemm_run_batch(call->where, &gemm, &batch);
    return SC_OK;
}

static struct sc_attention attention_of(const struct sc_call *call)
{
    const union sc_parameters *p = &call->op->p;
    struct sc_view qkv = sc_call_view(call, SC_ROLE_QKV);
    struct sc_view o = sc_call_view(call, SC_ROLE_O);
    struct sc_view d_o = sc_call_view(call, SC_ROLE_DO);
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
        .lse = (float *)sc_call_view(call, SC_ROLE_LSE).data,
        .d_o = floats(&d_o),
        .dqkv = (float *)sc_call_view(call, SC_ROLE_DQKV).data,
        .workspace = (float *)call->scratch,
        .batch_base = sc_call_index(call, &p->attention.batch_index),
        .head_base = sc_call_index(call, &p->attention.head_index),
        .total_heads = p->attention.total_heads,
        .draw = sc_call_draw(call, p->attention.site, p->attention.probability),
    };
}

enum sc_status sc_host_attention(const struct sc_call *call, struct sc_error *err)
{
    (void)err;
    const struct sc_attention attention = attention_of(call);
    sc_attention_forward(call->where, &attention);
    return SC_OK;
}

enum sc_status sc_host_attention_backward(const struct sc_call *call, struct sc_error *err)
{
    (void)err;
    const struct sc_attention attention = attention_of(call);
    sc_attention_backward(call->where, &attention);
    return SC_OK;
}
