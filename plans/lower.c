/* The lowering's entry: sizes, streams and groups, the order of a step, the init list. */
#include "plans/lower.h"

#include <string.h>

#include "plans/lowering.h"
#include "plans/step_state.h"

static const char *const lower_names[SC_LOWER_NAME_COUNT] = {
#define SC_LOWER_NAME_TEXT(name, text) text,
    SC_LOWER_NAMES(SC_LOWER_NAME_TEXT)
#undef SC_LOWER_NAME_TEXT
};

struct sc_label sc_lower_plain_label(const struct sc_lowering *l, enum sc_lower_name name)
{
    return (struct sc_label){
        .name = l->name[name], .layer = -1, .micro_batch = -1, .piece = -1, .pass = SC_PASS_NONE};
}

struct sc_op *sc_lower_op(struct sc_lowering *l, enum sc_op_kind kind, struct sc_label label)
{
    return sc_add_op(l->program, l->list, kind, l->compute, -1, label);
}

void sc_lower_in(struct sc_lowering *l, enum sc_role role, uint32_t value)
{
    sc_add_operand(l->program, l->list, role, SC_IN, value);
}

void sc_lower_out(struct sc_lowering *l, enum sc_role role, uint32_t value)
{
    sc_add_operand(l->program, l->list, role, SC_OUT, value);
}

void sc_lower_inout(struct sc_lowering *l, enum sc_role role, uint32_t value)
{
    sc_add_operand(l->program, l->list, role, SC_INOUT, value);
}

struct sc_activations sc_lower_activations(struct sc_lowering *l, struct sc_label label,
                                           enum sc_dtype dtype, int64_t rows_a_token, int64_t cols)
{
    int64_t rows = l->rows * rows_a_token;
    uint64_t bytes = (uint64_t)rows * (uint64_t)cols * sc_dtype_bytes(dtype);
    uint32_t buffer = sc_add_buffer(l->program, l->class, label, SC_DEVICE, SC_STEP, 1, bytes);
    struct sc_activations out;
    out.whole = sc_add_value(l->program, l->class, label, buffer, 0, dtype, rows, cols);
    out.first_piece = out.whole;
    if (l->pieces == 1)
        return out;
    int64_t piece_rows = rows / l->pieces;
    for (int i = 0; i < l->pieces; i++) {
        label.piece = (int16_t)i;
        uint32_t view = sc_add_view(l->program, l->class, label, out.whole, i * piece_rows,
                                    piece_rows, 0, cols);
        if (i == 0)
            out.first_piece = view;
    }
    return out;
}

void sc_lower_tensor_all_reduce(struct sc_lowering *l, uint32_t value, enum sc_reduction reduction,
                                struct sc_label label, bool ordered)
{
    if (l->tensor == 1)
        return;
    struct sc_op *op =
        sc_add_op(l->program, l->list, SC_ALL_REDUCE, l->tensor_comm, l->tensor_group, label);
    op->p.collective.reduction = (uint8_t)reduction;
    sc_lower_inout(l, SC_ROLE_Y, value);
    if (ordered)
        sc_lower_out(l, SC_ROLE_TOKEN, l->tensor_order);
}

struct sc_index sc_lower_first_sequence(const struct sc_lowering *l, int piece)
{
    int64_t micro_batch = l->plan->batch.micro_batch;
    int64_t in_piece = piece < 0 ? 0 : piece * (micro_batch / l->pieces);
    return (struct sc_index){.base = l->micro_batch * micro_batch + in_piece,
                             .stride = l->plan->batch.global_batch / l->data,
                             .axis = SC_DATA};
}

struct sc_index sc_lower_first_row(const struct sc_lowering *l, int piece)
{
    struct sc_index index = sc_lower_first_sequence(l, piece);
    index.base *= l->sequence;
    index.stride *= l->sequence;
    return index;
}

int64_t sc_lower_batch(const struct sc_lowering *l, int piece)
{
    return l->plan->batch.micro_batch / (piece < 0 ? 1 : l->pieces);
}

static void lower_sizes(struct sc_lowering *l)
{
    const struct sc_plan *plan = l->plan;
    const struct sc_model *model = l->model;
    l->tensor = plan->mesh.size[SC_TENSOR];
    l->data = plan->mesh.size[SC_DATA];
    l->micro_batches = sc_plan_micro_batches(plan);
    l->pieces = plan->domino.pieces;
    l->sequence = plan->batch.sequence_length;
    l->rows = plan->batch.micro_batch * l->sequence;
    l->hidden = model->hidden_size;
    l->head_size = model->head_size;
    l->heads = model->attention_heads / l->tensor;
    l->kv_heads = model->key_value_heads / l->tensor;
    l->q = l->heads * l->head_size;
    l->kv = l->kv_heads * l->head_size;
    l->qkv = l->q + 2 * l->kv;
    l->ffn = model->ffn_hidden_size / l->tensor;
    l->up = sc_activation_gated(model->activation) ? 2 * l->ffn : l->ffn;
    l->vocab_ranks = plan->loss.vocab_parallel ? l->tensor : 1;
    l->vocab = sc_plan_padded_vocab(plan) / l->vocab_ranks;
    l->activation = plan->precision.activations;
    l->gradient = plan->precision.gradients;
}

static void lower_streams(struct sc_lowering *l)
{
    struct sc_program *program = l->program;
    l->data_stream = sc_add_stream(program, "data", SC_ENGINE_HOST, 0);
    l->copy_in = sc_add_stream(program, "copy_in", SC_ENGINE_DEVICE, 0);
    l->compute = sc_add_stream(program, "compute", SC_ENGINE_DEVICE, 0);
    l->tensor_comm = l->data_comm = l->tensor_group = l->data_group = -1;
    if (l->tensor > 1) {
        l->tensor_comm = sc_add_stream(program, "tensor_comm", SC_ENGINE_DEVICE, 1);
        l->tensor_group = sc_add_group(program, "tensor", SC_AXIS_MASK(SC_TENSOR));
    }
    if (l->data > 1) {
        l->data_comm = sc_add_stream(program, "data_comm", SC_ENGINE_DEVICE, 1);
        l->data_group = sc_add_group(program, "data", SC_AXIS_MASK(SC_DATA));
    }
    l->copy_out = sc_add_stream(program, "copy_out", SC_ENGINE_DEVICE, 0);
}

static void lower_state(struct sc_lowering *l)
{
    struct sc_program *program = l->program;
    struct sc_label label = sc_lower_plain_label(l, N_STATE);
    uint32_t buffer = sc_add_buffer(program, l->class, label, SC_DEVICE, SC_PERSISTENT, 1,
                                    sc_round_up(sizeof(struct sc_step_state), SC_ALIGN));
    l->state = sc_add_value(program, l->class, label, buffer, 0, SC_UINT8, 1,
                            sizeof(struct sc_step_state));
    program->state_value = l->state;
    l->backward_done = sc_add_token(program, l->class, sc_label(program, "backward_done"));
    l->tensor_order = sc_add_token(program, l->class, sc_label(program, "tensor_order"));
    l->optimizer_done = sc_add_token(program, l->class, sc_label(program, "optimizer_done"));
    l->parameters_ready = sc_add_token(program, l->class, sc_label(program, "parameters_ready"));
}

/* A pinned tensor of token numbers that the data thread fills, with two versions so that the next
 * step's can be drawn while this one's is copied; and its copy on the device. */
static uint32_t lower_tokens(struct sc_lowering *l, struct sc_label label, uint32_t *pinned)
{
    uint64_t bytes = (uint64_t)l->rows * sc_dtype_bytes(SC_INT32);
    uint32_t there = sc_add_buffer(l->program, l->class, label, SC_PINNED, SC_PERSISTENT, 2, bytes);
    uint32_t here = sc_add_buffer(l->program, l->class, label, SC_DEVICE, SC_STEP, 1, bytes);
    *pinned = sc_add_value(l->program, l->class, label, there, 0, SC_INT32, l->rows, 1);
    return sc_add_value(l->program, l->class, label, here, 0, SC_INT32, l->rows, 1);
}

static void lower_copy_in(struct sc_lowering *l, struct sc_label label, uint32_t from, uint32_t to)
{
    sc_add_op(l->program, l->list, SC_COPY, l->copy_in, -1, label);
    sc_lower_in(l, SC_ROLE_X, from);
    sc_lower_out(l, SC_ROLE_Y, to);
}

static void lower_input(struct sc_lowering *l)
{
    struct sc_label label = sc_lower_label(l, N_INPUT, -1, SC_PASS_NONE, -1);
    struct sc_label target = label;
    target.name = sc_intern(l->program, "target");
    uint32_t tokens, targets;
    l->tokens = lower_tokens(l, label, &tokens);
    l->targets = lower_tokens(l, target, &targets);
    struct sc_op *op = sc_add_op(l->program, l->list, SC_NEXT_BATCH, l->data_stream, -1, label);
    op->p.next_batch.sequence = sc_lower_first_sequence(l, -1);
    op->p.next_batch.batch = l->plan->batch.micro_batch;
    op->p.next_batch.length = l->sequence;
    sc_lower_out(l, SC_ROLE_INDEX, tokens);
    sc_lower_out(l, SC_ROLE_TARGET, targets);
    lower_copy_in(l, label, tokens, l->tokens);
    lower_copy_in(l, target, targets, l->targets);
}

static void lower_read_out(struct sc_lowering *l)
{
    struct sc_label label = sc_label(l->program, "loss");
    uint32_t buffer = sc_add_buffer(l->program, l->class, label, SC_HOST, SC_PERSISTENT, 1,
                                    sc_dtype_bytes(SC_FP32));
    uint32_t host = sc_add_value(l->program, l->class, label, buffer, 0, SC_FP32, 1, 1);
    sc_add_op(l->program, l->list, SC_READ_OUT, l->copy_out, -1, label);
    sc_lower_in(l, SC_ROLE_X, l->loss);
    sc_lower_out(l, SC_ROLE_Y, host);
    l->program->loss_value = host;
}

static void lower_initialize(struct sc_lowering *l, uint32_t value, bool parameters,
                             struct sc_index first)
{
    if (value == SC_NONE)
        return;
    struct sc_label label = l->class->values.items[value].label;
    struct sc_op *op = sc_add_op(l->program, &l->class->init, SC_INITIALIZE, l->compute, -1, label);
    op->p.initialize.parameters = parameters;
    op->p.initialize.first = first;
    op->p.initialize.seed = l->plan->seed;
    sc_add_operand(l->program, &l->class->init, SC_ROLE_Y, SC_OUT, value);
}

/* Every persistent buffer gets its first content: parameters, else zeros. */
static void lower_init(struct sc_lowering *l)
{
    const struct sc_index zero = {.base = 0, .stride = 0, .axis = -1};
    lower_initialize(l, l->state, false, zero);
    lower_initialize(l, l->parameter_flat, true, zero);
    lower_initialize(l, l->gradient_flat, false, zero);
    lower_initialize(l, l->m_flat, false, zero);
    lower_initialize(l, l->v_flat, false, zero);
    for (size_t i = 0; l->master_flat != SC_NONE && i < l->buckets.count; i++) {
        const struct sc_bucket *bucket = &l->buckets.items[i];
        struct sc_index first = {.base = bucket->flat, .stride = 0, .axis = -1};
        if (l->plan->zero.stage > 0 && l->data > 1) {
            first.stride = bucket->elements / l->data;
            first.axis = SC_DATA;
        }
        lower_initialize(l, bucket->master, true, first);
    }
}

static void lower_step(struct sc_lowering *l)
{
    for (int i = 0; i < l->micro_batches; i++) {
        l->micro_batch = i;
        lower_input(l);
        if (i == 0)
            sc_lower_advance(l);
        sc_lower_embedding(l);
        sc_lower_forward(l);
        sc_lower_head(l);
        if (i + 1 == l->micro_batches)
            lower_read_out(l);
        sc_lower_backward(l);
        sc_lower_embedding_backward(l);
    }
    sc_lower_reduce_rest(l);
    sc_lower_optimizer(l);
    sc_lower_gather_parameters(l);
}

/* Room for what the layers will add, so that nothing large is copied while it grows: a guess from
 * above, since room that is not used costs nothing. */
static void make_room(struct sc_lowering *l)
{
    bool again = l->plan->recompute.granularity != SC_RECOMPUTE_NONE;
    bool unfused = l->plan->attention.kernel != SC_ATTENTION_FUSED;
    size_t layers = (size_t)l->model->layers + 2, batches = (size_t)l->micro_batches;
    size_t pieces = (size_t)l->pieces, parts = layers * batches;
    size_t ops = 36 + (again ? 16 : 0) + (unfused ? 10 : 0);
    size_t tensors = 24 + (again ? 14 : 0) + (unfused ? 4 : 0), views = unfused ? 9 : 0;
    bool ok = sc_array_reserve(&l->list->ops, parts * pieces * ops) &&
              sc_array_reserve(&l->list->operands, parts * pieces * ops * 4) &&
              sc_array_reserve(&l->class->buffers, parts * tensors) &&
              sc_array_reserve(&l->class->values,
                               parts * (tensors + pieces * (views + (pieces > 1 ? tensors : 0))) +
                                   32 * layers) &&
              sc_array_reserve(&l->program->tensors, layers * 20) &&
              sc_array_reserve(&l->program->names, layers * 20) &&
              sc_array_reserve(&l->program->blocks, layers * 20) &&
              sc_array_reserve(&l->program->parameters, layers * 12);
    (void)ok; /* what could not be had now is asked for again when it is needed */
}

static enum sc_status lower_all(struct sc_lowering *l, struct sc_error *err)
{
    struct sc_program *program = l->program;
    const int64_t nowhere[SC_AXIS_COUNT] = {0};
    memcpy(program->name, l->plan->name, sizeof(program->name));
    program->global_batch = l->plan->batch.global_batch;
    program->sequence_length = l->sequence;
    program->vocab_size = l->model->vocab_size;
    program->steps_ahead = 2;
    program->exact = true;
    program->parameter_dtype = l->plan->precision.parameters;
    program->loss_value = -1;
    for (int i = 0; i < SC_LOWER_NAME_COUNT; i++)
        l->name[i] = sc_intern(program, lower_names[i]);
    l->class = sc_add_class(program, "all", 0, nowhere);
    if (!l->class)
        return sc_program_finish(program, err);
    l->list = &l->class->step;
    make_room(l);
    lower_streams(l);
    lower_state(l);
    SC_TRY(sc_lower_parameters(l, err));
    SC_TRY(sc_lower_order(l, err));
    lower_step(l);
    lower_init(l);
    return sc_program_finish(program, err);
}

enum sc_status sc_lower(const struct sc_plan *plan, struct sc_program **out, struct sc_error *err)
{
    struct sc_lowering l;
    memset(&l, 0, sizeof(l));
    l.plan = plan;
    l.model = &plan->model;
    l.loss = SC_NONE;
    lower_sizes(&l);
    if (l.pieces > SC_MAX_PIECES)
        return sc_fail(err, SC_BAD_INPUT, "%s: domino.pieces: found %lld, expected at most %d",
                       plan->name, (long long)l.pieces, SC_MAX_PIECES);
    struct sc_mesh mesh;
    sc_mesh_from_plan(plan, &mesh);
    enum sc_status status = sc_program_create(&mesh, &l.program, err);
    if (status == SC_OK)
        status = lower_all(&l, err);
    sc_array_free(&l.buckets);
    sc_arena_free(&l.arena);
    if (status != SC_OK) {
        sc_program_destroy(&l.program);
        return status;
    }
    *out = l.program;
    return SC_OK;
}
