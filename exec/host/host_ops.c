/* The host's operations: which kinds there are, their scratch, and what several of them share. */
#include "exec/host/host_ops.h"

#include <stdlib.h>

static sc_host_op_fn *const functions[SC_OP_KIND_COUNT] = {
    [SC_GEMM] = sc_host_gemm,
    [SC_BATCHED_GEMM] = sc_host_batched_gemm,
    [SC_ATTENTION] = sc_host_attention,
    [SC_ATTENTION_BACKWARD] = sc_host_attention_backward,
    [SC_NORM_FORWARD] = sc_host_norm,
    [SC_NORM_BACKWARD] = sc_host_norm_backward,
    [SC_ACTIVATION_FORWARD] = sc_host_activation,
    [SC_ACTIVATION_BACKWARD] = sc_host_activation_backward,
    [SC_SOFTMAX] = sc_host_softmax,
    [SC_SOFTMAX_BACKWARD] = sc_host_softmax_backward,
    [SC_CROSS_ENTROPY_MAX] = sc_host_cross_entropy_max,
    [SC_CROSS_ENTROPY_SUM] = sc_host_cross_entropy_sum,
    [SC_CROSS_ENTROPY_LOSS] = sc_host_cross_entropy_loss,
    [SC_EMBEDDING] = sc_host_embedding,
    [SC_EMBEDDING_BACKWARD] = sc_host_embedding_backward,
    [SC_ADD] = sc_host_add,
    [SC_SCALE] = sc_host_scale,
    [SC_CAST] = sc_host_cast,
    [SC_REDUCE_ROWS] = sc_host_reduce_rows,
    [SC_ROPE] = sc_host_rope,
    [SC_DROPOUT] = sc_host_dropout,
    [SC_DROPOUT_BACKWARD] = sc_host_dropout_backward,
    [SC_NORM_SQUARES] = sc_host_norm_squares,
    [SC_ADAM] = sc_host_adam,
    [SC_SCALAR] = sc_host_scalar,
    [SC_INITIALIZE] = sc_host_initialize,
    [SC_COPY] = sc_host_copy,
    [SC_NEXT_BATCH] = sc_host_next_batch,
    [SC_READ_OUT] = sc_host_read_out,
    [SC_HOST_WAIT] = sc_host_host_wait,
};

/* Collectives go through the transport. A kind in neither table is one that the host cannot do. */
static const struct {
    bool known;
    enum sc_collective_kind kind;
} collectives[SC_OP_KIND_COUNT] = {
    [SC_ALL_REDUCE] = {true, SC_COLLECTIVE_ALL_REDUCE},
    [SC_REDUCE_SCATTER] = {true, SC_COLLECTIVE_REDUCE_SCATTER},
    [SC_ALL_GATHER] = {true, SC_COLLECTIVE_ALL_GATHER},
    [SC_ALL_TO_ALL] = {true, SC_COLLECTIVE_ALL_TO_ALL},
    [SC_BROADCAST] = {true, SC_COLLECTIVE_BROADCAST},
};

/* A new kind needs a row in one of the tables above, or to be refused on purpose. */
_Static_assert(SC_OP_KIND_COUNT == 36, "a kind was added: give the host a function for it");

bool sc_host_supports(enum sc_op_kind kind)
{
    return functions[kind] || collectives[kind].known;
}

enum sc_status sc_host_run(const struct sc_host_call *call, struct sc_error *err)
{
    sc_host_op_fn *function = functions[call->op->kind];
    if (!function)
        return sc_fail(err, SC_BUG, "host: operation kind %s has no function",
                       sc_op_kind_name((enum sc_op_kind)call->op->kind));
    return function(call, err);
}

/* In place, the shard that a rank gives or keeps lies in the whole at its position in the group. */
struct sc_collective sc_host_collective(const struct sc_host_call *call)
{
    const struct sc_group *group = &call->rank->program->groups.items[call->op->group];
    struct sc_host_view x = sc_host_operand(call, SC_ROLE_X), y = sc_host_operand(call, SC_ROLE_Y);
    const struct sc_value *whole = y.value;
    if (call->op->kind == SC_REDUCE_SCATTER || (call->op->kind == SC_ALL_TO_ALL && x.data))
        whole = x.value;
    struct sc_collective collective = {
        .kind = collectives[call->op->kind].kind,
        .reduction = (enum sc_reduction)call->op->p.collective.reduction,
        .x = x.data,
        .y = y.data,
        .bytes = (size_t)sc_value_bytes(whole),
    };
    size_t shard = collective.bytes / (size_t)group->size;
    size_t index =
        (size_t)sc_mesh_group_index(&call->rank->program->mesh, group->axis_mask, call->rank->rank);
    if (call->op->kind == SC_REDUCE_SCATTER && !y.data)
        collective.y = x.data + index * shard;
    if (call->op->kind == SC_ALL_GATHER && !x.data)
        collective.x = y.data + index * shard;
    return collective;
}

int64_t sc_host_index(const struct sc_host_call *call, const struct sc_index *index)
{
    return sc_index_at(index, call->rank->coordinates);
}

struct sc_draw sc_host_draw(const struct sc_host_call *call, uint32_t site, float probability)
{
    const struct sc_step_state *at =
        (const struct sc_step_state *)sc_host_operand(call, SC_ROLE_STATE).data;
    return (struct sc_draw){
        .seed = at ? at->seed : 0, .site = site, .probability = at ? probability : 0, .state = at};
}

void sc_host_column_sums(const struct sc_host_call *call, const struct sc_host_view *x,
                         const struct sc_host_view *out)
{
    const struct sc_reduce_rows_args args = {
        .in = x->data,
        .out = out->data,
        .count = x->value->rows,
        .out_rows = 1,
        .columns = x->value->cols,
        .in_stride = x->value->row_stride,
        .out_stride = x->value->cols,
        .accumulate = out->accumulate,
    };
    sc_run_reduce_rows(call->team, &args, args.columns, 64);
}

size_t sc_host_scratch(const struct sc_host_rank *rank, const struct sc_list *list,
                       const struct sc_op *op, int team)
{
    const struct sc_value *x = sc_op_value(rank->class, list, op, SC_ROLE_X);
    switch (op->kind) {
    case SC_ATTENTION:
    case SC_ATTENTION_BACKWARD:
        return sc_attention_workspace(op->p.attention.sequence) * (size_t)team;
    case SC_NORM_BACKWARD:
        return sc_host_norm_backward_scratch(x);
    case SC_NORM_SQUARES:
        return sc_host_norm_squares_scratch(sc_op_value(rank->class, list, op, SC_ROLE_GRADIENT));
    default:
        return 0;
    }
}
