/* Which kinds are kernels, copies and clearing alone; scratch; what collectives work on. */
#include "exec/op_functions.h"

static sc_op_fn *const functions[SC_OP_KIND_COUNT] = {
    [SC_NORM_FORWARD] = sc_op_norm,
    [SC_NORM_BACKWARD] = sc_op_norm_backward,
    [SC_ACTIVATION_FORWARD] = sc_op_activation,
    [SC_ACTIVATION_BACKWARD] = sc_op_activation_backward,
    [SC_SOFTMAX] = sc_op_softmax,
    [SC_SOFTMAX_BACKWARD] = sc_op_softmax_backward,
    [SC_CROSS_ENTROPY_MAX] = sc_op_cross_entropy_max,
    [SC_CROSS_ENTROPY_SUM] = sc_op_cross_entropy_sum,
    [SC_CROSS_ENTROPY_LOSS] = sc_op_cross_entropy_loss,
    [SC_EMBEDDING] = sc_op_embedding,
    [SC_EMBEDDING_BACKWARD] = sc_op_embedding_backward,
    [SC_ADD] = sc_op_add,
    [SC_SCALE] = sc_op_scale,
    [SC_CAST] = sc_op_cast,
    [SC_REDUCE_ROWS] = sc_op_reduce_rows,
    [SC_ROPE] = sc_op_rope,
    [SC_DROPOUT] = sc_op_dropout,
    [SC_DROPOUT_BACKWARD] = sc_op_dropout_backward,
    [SC_NORM_SQUARES] = sc_op_norm_squares,
    [SC_ADAM] = sc_op_adam,
    [SC_SCALAR] = sc_op_scalar,
    [SC_INITIALIZE] = sc_op_initialize,
    [SC_COPY] = sc_op_copy,
};

sc_op_fn *sc_op_function(enum sc_op_kind kind)
{
    return functions[kind];
}

size_t sc_op_scratch(const struct sc_class *class, const struct sc_list *list,
                     const struct sc_op *op)
{
    switch (op->kind) {
    case SC_NORM_BACKWARD:
        return sc_op_norm_backward_scratch(sc_op_value(class, list, op, SC_ROLE_X));
    case SC_NORM_SQUARES:
        return sc_op_norm_squares_scratch(sc_op_value(class, list, op, SC_ROLE_GRADIENT));
    default:
        return 0;
    }
}

struct sc_op_collective sc_op_collective(const struct sc_call *call)
{
    const struct sc_group *group = &call->rank->program->groups.items[call->op->group];
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    const struct sc_value *whole = y.value;
    if (call->op->kind == SC_REDUCE_SCATTER || (call->op->kind == SC_ALL_TO_ALL && x.data))
        whole = x.value;
    struct sc_op_collective collective = {
        .kind = (enum sc_op_kind)call->op->kind,
        .reduction = (enum sc_reduction)call->op->p.collective.reduction,
        .x = x.data,
        .y = y.data,
        .bytes = (size_t)sc_value_bytes(whole),
    };
    collective.shard = collective.bytes / (size_t)group->size;
    size_t index =
        (size_t)sc_mesh_group_index(&call->rank->program->mesh, group->axis_mask, call->rank->rank);
    if (call->op->kind == SC_REDUCE_SCATTER && !y.data)
        collective.y = x.data + index * collective.shard;
    if (call->op->kind == SC_ALL_GATHER && !x.data)
        collective.x = y.data + index * collective.shard;
    return collective;
}
