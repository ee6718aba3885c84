/* The optimizer: global norm, clip factor, AdamW over the flat buffers, one op a bucket. */
#include "plans/lowering.h"

static bool sharded(const struct sc_lowering *l)
{
    return l->plan->zero.stage > 0 && l->data > 1;
}

void sc_lower_advance(struct sc_lowering *l)
{
    struct sc_label label = sc_lower_label(l, N_STATE, -1, SC_PASS_NONE, -1);
    label.micro_batch = -1;
    struct sc_op *op = sc_lower_op(l, SC_SCALAR, label);
    op->p.scalar.work = SC_SCALAR_ADVANCE;
    op->p.scalar.advance.schedule = (uint8_t)l->plan->optimizer.schedule;
    op->p.scalar.advance.learning_rate = l->plan->optimizer.learning_rate;
    op->p.scalar.advance.minimum_learning_rate = l->plan->optimizer.minimum_learning_rate;
    op->p.scalar.advance.beta1 = l->plan->optimizer.beta1;
    op->p.scalar.advance.beta2 = l->plan->optimizer.beta2;
    op->p.scalar.advance.warmup_steps = l->plan->optimizer.warmup_steps;
    op->p.scalar.advance.decay_steps = l->plan->optimizer.decay_steps;
    op->p.scalar.advance.seed = l->plan->seed;
    sc_lower_inout(l, SC_ROLE_STATE, l->state);
    if (sharded(l) && !l->plan->zero.overlap_parameters)
        sc_lower_in(l, SC_ROLE_TOKEN, l->parameters_ready);
}

static struct sc_op *flat_op(struct sc_lowering *l, enum sc_op_kind kind, enum sc_lower_name name,
                             size_t index)
{
    const struct sc_bucket *bucket = &l->buckets.items[index];
    struct sc_label label = sc_lower_label(l, name, -1, SC_PASS_NONE, -1);
    label.micro_batch = -1;
    label.piece = (int16_t)(l->buckets.count > 1 ? (int)index : -1);
    struct sc_op *op = sc_lower_op(l, kind, label);
    op->p.flat.first_range = bucket->first_range;
    op->p.flat.ranges = bucket->ranges;
    op->p.flat.shard = (struct sc_index){.base = 0, .stride = 0, .axis = -1};
    if (sharded(l)) {
        op->p.flat.shard.stride = bucket->elements / l->data;
        op->p.flat.shard.axis = SC_DATA;
    }
    return op;
}

/* Sum of squares over this rank's gradients, then over the ranks that hold others. Parameters that
 * a tensor group holds in common weigh one over its size. */
static void global_norm(struct sc_lowering *l)
{
    struct sc_label label = sc_lower_label(l, N_NORM, -1, SC_PASS_NONE, -1);
    label.micro_batch = -1;
    uint32_t buffer =
        sc_add_buffer(l->program, l->class, label, SC_DEVICE, SC_STEP, 1, sc_dtype_bytes(SC_FP32));
    l->norm = sc_add_value(l->program, l->class, label, buffer, 0, SC_FP32, 1, 1);
    for (size_t i = 0; i < l->buckets.count; i++) {
        flat_op(l, SC_NORM_SQUARES, N_NORM, i);
        sc_lower_in(l, SC_ROLE_GRADIENT, l->buckets.items[i].gradient_shard);
        if (i == 0)
            sc_lower_out(l, SC_ROLE_NORM, l->norm);
        else
            sc_lower_inout(l, SC_ROLE_NORM, l->norm);
    }
    if (sharded(l)) {
        struct sc_op *op =
            sc_add_op(l->program, l->list, SC_ALL_REDUCE, l->data_comm, l->data_group, label);
        op->p.collective.reduction = SC_SUM;
        sc_lower_inout(l, SC_ROLE_Y, l->norm);
    }
    sc_lower_tensor_all_reduce(l, l->norm, SC_SUM, label, false);
}

static void clip(struct sc_lowering *l)
{
    struct sc_label label = sc_lower_label(l, N_CLIP, -1, SC_PASS_NONE, -1);
    label.micro_batch = -1;
    struct sc_op *op = sc_lower_op(l, SC_SCALAR, label);
    op->p.scalar.work = SC_SCALAR_CLIP;
    op->p.scalar.clip = (float)l->plan->optimizer.clip_global_norm;
    sc_lower_inout(l, SC_ROLE_STATE, l->state);
    sc_lower_in(l, SC_ROLE_NORM, l->norm);
}

static void adam(struct sc_lowering *l, size_t index, bool last)
{
    const struct sc_bucket *bucket = &l->buckets.items[index];
    struct sc_op *op = flat_op(l, SC_ADAM, N_OPTIMIZER, index);
    op->p.flat.beta1 = l->plan->optimizer.beta1;
    op->p.flat.beta2 = l->plan->optimizer.beta2;
    op->p.flat.epsilon = (float)l->plan->optimizer.epsilon;
    op->p.flat.weight_decay = (float)l->plan->optimizer.weight_decay;
    sc_lower_in(l, SC_ROLE_GRADIENT, bucket->gradient_shard);
    sc_lower_in(l, SC_ROLE_STATE, l->state);
    if (bucket->master != SC_NONE) {
        sc_lower_out(l, SC_ROLE_PARAMETER, bucket->parameter_shard);
        sc_lower_inout(l, SC_ROLE_MASTER, bucket->master);
    } else {
        sc_lower_inout(l, SC_ROLE_PARAMETER, bucket->parameter_shard);
    }
    sc_lower_inout(l, SC_ROLE_M, bucket->m);
    sc_lower_inout(l, SC_ROLE_V, bucket->v);
    if (last && sharded(l) && !l->plan->zero.overlap_parameters)
        sc_lower_out(l, SC_ROLE_TOKEN, l->optimizer_done);
}

void sc_lower_optimizer(struct sc_lowering *l)
{
    if (l->plan->optimizer.clip_global_norm > 0) {
        global_norm(l);
        clip(l);
    }
    for (size_t i = l->buckets.count; i-- > 0;)
        adam(l, i, i == 0);
}
