/* The host's operations: which kinds there are, how the host starts kernels, their scratch. */
#include "exec/host/host_ops.h"

#include <string.h>

/* Kinds that are more than kernels, copies and clearing. */
static sc_op_fn *const functions[SC_OP_KIND_COUNT] = {
    [SC_GEMM] = sc_host_gemm,           [SC_BATCHED_GEMM] = sc_host_batched_gemm,
    [SC_ATTENTION] = sc_host_attention, [SC_ATTENTION_BACKWARD] = sc_host_attention_backward,
    [SC_NEXT_BATCH] = sc_op_next_batch, [SC_READ_OUT] = sc_host_read_out,
    [SC_HOST_WAIT] = sc_host_host_wait,
};

/* Collectives go through the transport. */
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

/* A new kind needs a row in one of the tables above or in op_functions.c, or to be refused on
 * purpose. */
_Static_assert(SC_OP_KIND_COUNT == 36, "a kind was added: give the host a function for it");

bool sc_host_supports(enum sc_op_kind kind)
{
    return functions[kind] || sc_op_function(kind) || collectives[kind].known;
}

enum sc_status sc_host_run(const struct sc_call *call, struct sc_error *err)
{
    enum sc_op_kind kind = (enum sc_op_kind)call->op->kind;
    sc_op_fn *function = functions[kind] ? functions[kind] : sc_op_function(kind);
    if (!function)
        return sc_fail(err, SC_BUG, "host: operation kind %s has no function",
                       sc_op_kind_name(kind));
    return function(call, err);
}

struct sc_collective sc_host_collective(const struct sc_call *call)
{
    const struct sc_op_collective what = sc_op_collective(call);
    return (struct sc_collective){
        .kind = collectives[what.kind].kind,
        .reduction = what.reduction,
        .x = what.x,
        .y = what.y,
        .bytes = what.bytes,
    };
}

size_t sc_host_scratch(const struct sc_rank_data *rank, const struct sc_list *list,
                       const struct sc_op *op, int team)
{
    if (op->kind == SC_ATTENTION || op->kind == SC_ATTENTION_BACKWARD)
        return sc_attention_workspace(op->p.attention.sequence) * (size_t)team;
    return sc_op_scratch(rank->class, list, op);
}

/* ---- the machine: a team of threads, done at once -------------------------------------------- */

static enum sc_status start_kernel(const struct sc_call *call, enum sc_kernel_id kernel,
                                   const void *args, int64_t count, int64_t columns,
                                   struct sc_error *err)
{
    (void)columns;
    (void)err;
    sc_team_kernel(call->where, kernel, args, count);
    return SC_OK;
}

static enum sc_status copy_rows(const struct sc_call *call, const struct sc_row_copy *copy,
                                struct sc_error *err)
{
    (void)call;
    (void)err;
    for (int64_t r = 0; r < copy->rows; r++)
        memcpy((char *)copy->to + (size_t)r * copy->to_pitch,
               (const char *)copy->from + (size_t)r * copy->from_pitch, copy->bytes);
    return SC_OK;
}

static enum sc_status clear(const struct sc_call *call, void *to, size_t bytes,
                            struct sc_error *err)
{
    (void)call;
    (void)err;
    memset(to, 0, bytes);
    return SC_OK;
}

const struct sc_call_machine sc_host_machine = {start_kernel, copy_rows, clear};
