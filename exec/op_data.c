/* The next batch of tokens, into a value that the process can write. */
#include "exec/op_functions.h"

enum sc_status sc_op_next_batch(const struct sc_call *call, struct sc_error *err)
{
    const struct sc_batch_source *data = &call->rank->setup->options->data;
    const union sc_parameters *p = &call->op->p;
    return data->next(data->context, call->step, sc_call_index(call, &p->next_batch.sequence),
                      p->next_batch.batch, p->next_batch.length,
                      (int32_t *)sc_call_view(call, SC_ROLE_INDEX).data,
                      (int32_t *)sc_call_view(call, SC_ROLE_TARGET).data, err);
}
