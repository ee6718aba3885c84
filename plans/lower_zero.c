/*
 * Gradient buckets and sharded optimizer states. A bucket is reduced over the data group as soon as
 * its last gradient is final (or, without overlap, behind the whole backward pass); in stage 1
 * every rank keeps the optimizer states of its shard of each bucket, and the updated parameters are
 * gathered behind Adam.
 */
#include "plans/lowering.h"

static struct sc_label bucket_label(const struct sc_lowering *l, enum sc_lower_name name,
                                    size_t bucket)
{
    struct sc_label label = sc_lower_label(l, name, -1, SC_PASS_NONE, -1);
    label.micro_batch = -1;
    label.piece = (int16_t)bucket;
    return label;
}

static void reduce(struct sc_lowering *l, size_t index, bool behind_backward)
{
    struct sc_bucket *bucket = &l->buckets.items[index];
    bool scatter =
        l->plan->zero.stage > 0 && l->plan->zero.gradient_reduction == SC_REDUCE_REDUCE_SCATTER;
    struct sc_op *op = sc_add_op(l->program, l->list, scatter ? SC_REDUCE_SCATTER : SC_ALL_REDUCE,
                                 l->data_comm, l->data_group, bucket_label(l, N_GRADIENTS, index));
    op->p.collective.reduction = SC_SUM;
    sc_lower_inout(l, scatter ? SC_ROLE_X : SC_ROLE_Y, bucket->gradient);
    if (behind_backward)
        sc_lower_in(l, SC_ROLE_TOKEN, l->backward_done);
    bucket->reduced = true;
}

void sc_lower_gradients_final(struct sc_lowering *l)
{
    if (l->data == 1 || !l->plan->zero.overlap_gradients)
        return;
    for (; l->next_bucket < l->buckets.count; l->next_bucket++) {
        if (l->buckets.items[l->next_bucket].waiting > 0)
            return;
        reduce(l, l->next_bucket, false);
    }
}

void sc_lower_reduce_rest(struct sc_lowering *l)
{
    for (size_t i = 0; l->data > 1 && i < l->buckets.count; i++)
        if (!l->buckets.items[i].reduced)
            reduce(l, i, true);
}

void sc_lower_gather_parameters(struct sc_lowering *l)
{
    if (l->data == 1 || l->plan->zero.stage == 0)
        return;
    bool overlap = l->plan->zero.overlap_parameters;
    /* The next step's forward pass wants the first parameters first. */
    for (size_t i = l->buckets.count; i-- > 0;) {
        sc_add_op(l->program, l->list, SC_ALL_GATHER, l->data_comm, l->data_group,
                  bucket_label(l, N_PARAMETERS, i));
        sc_lower_inout(l, SC_ROLE_Y, l->buckets.items[i].parameter);
        if (!overlap) {
            sc_lower_in(l, SC_ROLE_TOKEN, l->optimizer_done);
            sc_lower_out(l, SC_ROLE_TOKEN, l->parameters_ready);
        }
    }
}
