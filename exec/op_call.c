/* What several operations share: operands as views, random words, column sums, copies. */
#include "exec/op_call.h"

#include <string.h>

struct sc_view sc_call_view(const struct sc_call *call, enum sc_role role)
{
    const struct sc_operand *operand = sc_op_operand(call->list, call->op, role);
    struct sc_view view = {0};
    if (!operand)
        return view;
    view.value = &call->rank->class->values.items[operand->value];
    view.data =
        sc_rank_address(call->rank, operand->value, (enum sc_version)operand->version, call->step);
    view.accumulate = operand->access == SC_INOUT;
    return view;
}

int64_t sc_call_index(const struct sc_call *call, const struct sc_index *index)
{
    return sc_index_at(index, call->rank->coordinates);
}

/* Seed and step are the state's, which only kernels can read: it may lie on a device. */
struct sc_draw sc_call_draw(const struct sc_call *call, uint32_t site, float probability)
{
    const struct sc_step_state *at =
        (const struct sc_step_state *)sc_call_view(call, SC_ROLE_STATE).data;
    return (struct sc_draw){.site = site, .probability = at ? probability : 0, .state = at};
}

enum sc_status sc_call_column_sums(const struct sc_call *call, const struct sc_view *x,
                                   const struct sc_view *out, struct sc_error *err)
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
    return sc_start_reduce_rows(call, &args, args.columns, args.columns, err);
}

enum sc_status sc_call_copy(const struct sc_call *call, const struct sc_view *from,
                            const struct sc_view *to, struct sc_error *err)
{
    size_t element = sc_dtype_bytes(to->value->dtype);
    struct sc_row_copy copy = {
        .from = from->data,
        .to = to->data,
        .bytes = (size_t)to->value->cols * element,
        .from_pitch = (size_t)from->value->row_stride * element,
        .to_pitch = (size_t)to->value->row_stride * element,
        .rows = to->value->rows,
    };
    if (copy.from_pitch == copy.bytes && copy.to_pitch == copy.bytes) { /* one run */
        copy.bytes *= (size_t)copy.rows;
        copy.rows = 1;
    }
    return call->machine->copy(call, &copy, err);
}

enum sc_status sc_call_name_failure(const struct sc_call *call, enum sc_status status,
                                    struct sc_error *err)
{
    char label[128], text[SC_ERROR_TEXT];
    if (status == SC_OK)
        return SC_OK;
    memcpy(text, err->text, sizeof text);
    sc_label_text(call->rank->program, call->op->label, label, sizeof label);
    return sc_fail(err, status, "rank %lld: operation %u (%s, %s) in step %lld: %.700s",
                   (long long)call->rank->rank, call->index,
                   sc_op_kind_name((enum sc_op_kind)call->op->kind), label, (long long)call->step,
                   text);
}
