/*
 * Tensors of the checkpoint, the parameters that a rank holds of them, and the flat buffers in
 * which parameters, gradients and optimizer states lie: all in one order (that of the forward
 * pass), cut into buckets from the end, since backward finishes the last layers first.
 */
#include "plans/lowering.h"

#include <math.h>
#include <string.h>

static const struct sc_index nowhere = {.base = 0, .stride = 0, .axis = -1};

/* ---- names and tensors ------------------------------------------------------------------- */

/* How a family's checkpoints call the parts of layer %d. */
struct family_names {
    const char *embedding, *position, *norm1, *qkv, *query, *key, *value, *projection, *norm2;
    const char *up, *gate, *down, *final_norm, *head;
    bool transposed; /* linears are stored [inputs, outputs] */
    bool packed;     /* query, key, value in one tensor */
};

static const struct family_names names_of[SC_FAMILY_COUNT] = {
    [SC_FAMILY_GPT2] = {.embedding = "wte",
                        .position = "wpe",
                        .norm1 = "h.%d.ln_1",
                        .qkv = "h.%d.attn.c_attn",
                        .projection = "h.%d.attn.c_proj",
                        .norm2 = "h.%d.ln_2",
                        .up = "h.%d.mlp.c_fc",
                        .gate = "h.%d.mlp.c_gate",
                        .down = "h.%d.mlp.c_proj",
                        .final_norm = "ln_f",
                        .head = "lm_head",
                        .transposed = true,
                        .packed = true},
    [SC_FAMILY_LLAMA] = {.embedding = "model.embed_tokens",
                         .position = "model.embed_positions",
                         .norm1 = "model.layers.%d.input_layernorm",
                         .query = "model.layers.%d.self_attn.q_proj",
                         .key = "model.layers.%d.self_attn.k_proj",
                         .value = "model.layers.%d.self_attn.v_proj",
                         .projection = "model.layers.%d.self_attn.o_proj",
                         .norm2 = "model.layers.%d.post_attention_layernorm",
                         .up = "model.layers.%d.mlp.up_proj",
                         .gate = "model.layers.%d.mlp.gate_proj",
                         .down = "model.layers.%d.mlp.down_proj",
                         .final_norm = "model.norm",
                         .head = "lm_head"},
};

/* GPT-2's initialisation; what feeds the residual stream is scaled down by its depth. */
static float deviation(const struct sc_lowering *l, bool residual)
{
    return residual ? (float)(0.02 / sqrt(2.0 * (double)l->model->layers)) : 0.02f;
}

/* Appends as much of the text as fits, and its end. */
static size_t append(char out[SC_NAME_SIZE], size_t used, const char *text, size_t length)
{
    size_t room = SC_NAME_SIZE - 1 - used;
    length = length < room ? length : room;
    memcpy(out + used, text, length);
    out[used + length] = '\0';
    return used + length;
}

/* "h.%d.ln_1", 3, "weight": "h.3.ln_1.weight". By hand: a model has thousands of tensors. */
static void tensor_name(const char *pattern, int layer, const char *suffix, char out[SC_NAME_SIZE])
{
    const char *number = layer >= 0 ? strstr(pattern, "%d") : NULL;
    size_t used = 0;
    if (number != NULL) {
        char digits[12];
        size_t first = sizeof(digits);
        do {
            digits[--first] = (char)('0' + layer % 10);
            layer /= 10;
        } while (layer > 0);
        used = append(out, used, pattern, (size_t)(number - pattern));
        used = append(out, used, digits + first, sizeof(digits) - first);
        pattern = number + 2;
    }
    used = append(out, used, pattern, strlen(pattern));
    used = append(out, used, ".", 1);
    append(out, used, suffix, strlen(suffix));
}

static uint32_t add_tensor(struct sc_lowering *l, const char *pattern, int layer,
                           const char *suffix, int64_t rows, int64_t cols)
{
    struct sc_program *program = l->program;
    char name[SC_NAME_SIZE];
    tensor_name(pattern, layer, suffix, name);
    struct sc_tensor *tensor = sc_array_push(&program->tensors);
    if (!tensor) {
        program->failed = SC_NO_MEMORY;
        return 0;
    }
    uint32_t interned = sc_intern(program, name);
    tensor->name = program->names.items[interned];
    tensor->rows = rows;
    tensor->cols = cols;
    return (uint32_t)(program->tensors.count - 1);
}

static uint32_t add_matrix(struct sc_lowering *l, const char *pattern, int layer, int64_t rows,
                           int64_t cols, bool linear, bool residual)
{
    uint32_t id = add_tensor(l, pattern, layer, "weight", rows, cols);
    struct sc_tensor *tensor = &l->program->tensors.items[id];
    tensor->transposed = linear && names_of[l->model->family].transposed;
    tensor->init = SC_INIT_NORMAL;
    tensor->deviation = deviation(l, residual);
    return id;
}

static uint32_t add_vector(struct sc_lowering *l, const char *pattern, int layer,
                           const char *suffix, int64_t rows, enum sc_tensor_init init)
{
    uint32_t id = add_tensor(l, pattern, layer, suffix, rows, 1);
    l->program->tensors.items[id].vector = true;
    l->program->tensors.items[id].init = init;
    return id;
}

/* ---- parameters --------------------------------------------------------------------------- */

static uint32_t add_parameter(struct sc_lowering *l, enum sc_lower_name name, int layer,
                              int64_t rows, int64_t cols, bool replicated, bool decay)
{
    struct sc_program *program = l->program;
    struct sc_parameter *parameter = sc_array_push(&program->parameters);
    if (!parameter) {
        program->failed = SC_NO_MEMORY;
        return 0;
    }
    parameter->label = sc_lower_plain_label(l, name);
    parameter->label.layer = (int16_t)layer;
    parameter->rows = rows;
    parameter->cols = cols;
    parameter->replicated = replicated;
    parameter->decay = decay;
    parameter->first_block = (uint32_t)program->blocks.count;
    return (uint32_t)(program->parameters.count - 1);
}

/* Appends a block to the parameter added last. */
static void add_block(struct sc_lowering *l, uint32_t tensor, int64_t local_row, int64_t rows,
                      int64_t cols, struct sc_index row, struct sc_index column)
{
    struct sc_program *program = l->program;
    struct sc_block *block = sc_array_push(&program->blocks);
    if (!block || program->parameters.count == 0) {
        program->failed = SC_NO_MEMORY;
        return;
    }
    *block = (struct sc_block){.tensor = tensor,
                               .local_row = local_row,
                               .rows = rows,
                               .cols = cols,
                               .row = row,
                               .column = column};
    program->parameters.items[program->parameters.count - 1].blocks++;
}

static struct sc_index split(int64_t base, int64_t stride)
{
    return (struct sc_index){.base = base, .stride = stride, .axis = SC_TENSOR};
}

/* A tensor that every rank of the tensor group holds whole. */
static uint32_t whole_parameter(struct sc_lowering *l, enum sc_lower_name name, int layer,
                                uint32_t tensor, bool decay)
{
    const struct sc_tensor *t = &l->program->tensors.items[tensor];
    int64_t rows = t->rows, cols = t->cols;
    uint32_t id = add_parameter(l, name, layer, rows, cols, true, decay);
    add_block(l, tensor, 0, rows, cols, nowhere, nowhere);
    return id;
}

static void norm_parameters(struct sc_lowering *l, enum sc_lower_name name, const char *pattern,
                            int layer, uint32_t *gamma, uint32_t *beta)
{
    *gamma = whole_parameter(
        l, name, layer, add_vector(l, pattern, layer, "weight", l->hidden, SC_INIT_ONE), false);
    *beta = SC_NONE;
    if (l->model->biases && l->model->norm == SC_LAYER_NORM)
        *beta = whole_parameter(
            l, name, layer, add_vector(l, pattern, layer, "bias", l->hidden, SC_INIT_ZERO), false);
}

/* One of several equal-width pieces of a packed product: its rows in the tensor and here. */
struct packed_piece {
    const char *pattern;
    int64_t tensor_base; /* first row of the piece in a packed tensor */
    int64_t rows;        /* on a rank */
    bool own_tensor;     /* else: the tensor before it */
};

static uint32_t packed_tensor(struct sc_lowering *l, const struct packed_piece *piece, int layer,
                              int64_t rows, bool weight)
{
    if (weight)
        return add_matrix(l, piece->pattern, layer, rows, l->hidden, true, false);
    return add_vector(l, piece->pattern, layer, "bias", rows, SC_INIT_ZERO);
}

/* A column-parallel product: output rows split over the tensor group, piece by piece. */
static uint32_t packed_parameter(struct sc_lowering *l, enum sc_lower_name name, int layer,
                                 const struct packed_piece *pieces, int count, bool weight)
{
    int64_t cols = weight ? l->hidden : 1, rows = 0, all = 0;
    for (int i = 0; i < count; i++)
        rows += pieces[i].rows;
    uint32_t id = add_parameter(l, name, layer, rows, cols, l->tensor == 1, weight);
    uint32_t tensor = 0;
    int64_t local = 0;
    all = rows * l->tensor;
    for (int i = 0; i < count; i++) {
        if (pieces[i].own_tensor) {
            bool packed = i + 1 < count && !pieces[i + 1].own_tensor;
            tensor = packed_tensor(l, &pieces[i], layer, packed ? all : pieces[i].rows * l->tensor,
                                   weight);
        }
        add_block(l, tensor, local, pieces[i].rows, cols,
                  split(pieces[i].tensor_base, pieces[i].rows), nowhere);
        local += pieces[i].rows;
    }
    return id;
}

static void qkv_parameters(struct sc_lowering *l, int layer, struct sc_layer_parameters *p)
{
    const struct family_names *names = &names_of[l->model->family];
    int64_t q = l->q * l->tensor, kv = l->kv * l->tensor;
    struct packed_piece pieces[3] = {
        {names->packed ? names->qkv : names->query, 0, l->q, true},
        {names->key, names->packed ? q : 0, l->kv, !names->packed},
        {names->value, names->packed ? q + kv : 0, l->kv, !names->packed},
    };
    p->qkv = packed_parameter(l, N_QKV, layer, pieces, 3, true);
    p->qkv_bias = SC_NONE;
    if (l->model->biases || l->model->attention_qkv_bias)
        p->qkv_bias = packed_parameter(l, N_QKV, layer, pieces, 3, false);
}

static void up_parameters(struct sc_lowering *l, int layer, struct sc_layer_parameters *p)
{
    const struct family_names *names = &names_of[l->model->family];
    bool gated = sc_activation_gated(l->model->activation);
    struct packed_piece pieces[2] = {
        {gated ? names->gate : names->up, 0, l->ffn, true},
        {names->up, 0, l->ffn, true},
    };
    p->up = packed_parameter(l, N_UP, layer, pieces, gated ? 2 : 1, true);
    p->up_bias = SC_NONE;
    if (l->model->biases)
        p->up_bias = packed_parameter(l, N_UP, layer, pieces, gated ? 2 : 1, false);
}

/* A row-parallel product: inputs split over the tensor group; its bias is added after the sum. */
static void row_parallel_parameters(struct sc_lowering *l, enum sc_lower_name name,
                                    const char *pattern, int layer, int64_t inputs,
                                    uint32_t *weight, uint32_t *bias)
{
    uint32_t tensor = add_matrix(l, pattern, layer, l->hidden, inputs * l->tensor, true, true);
    *weight = add_parameter(l, name, layer, l->hidden, inputs, l->tensor == 1, true);
    add_block(l, tensor, 0, l->hidden, inputs, nowhere, split(0, inputs));
    *bias = SC_NONE;
    if (l->model->biases)
        *bias = whole_parameter(
            l, name, layer, add_vector(l, pattern, layer, "bias", l->hidden, SC_INIT_ZERO), false);
}

static void layer_parameters(struct sc_lowering *l, int layer)
{
    const struct family_names *names = &names_of[l->model->family];
    struct sc_layer_parameters *p = &l->layer_parameters[layer];
    norm_parameters(l, N_ATTENTION_NORM, names->norm1, layer, &p->norm1, &p->norm1_bias);
    qkv_parameters(l, layer, p);
    row_parallel_parameters(l, N_PROJECTION, names->projection, layer, l->q, &p->projection,
                            &p->projection_bias);
    norm_parameters(l, N_MLP_NORM, names->norm2, layer, &p->norm2, &p->norm2_bias);
    up_parameters(l, layer, p);
    row_parallel_parameters(l, N_DOWN, names->down, layer, l->ffn, &p->down, &p->down_bias);
}

/* Embedding or head: rows are the vocabulary, split where the plan says so, padded at the end. */
static uint32_t vocabulary_parameter(struct sc_lowering *l, enum sc_lower_name name,
                                     const char *pattern)
{
    uint32_t tensor = add_matrix(l, pattern, -1, l->model->vocab_size, l->hidden, false, false);
    uint32_t id = add_parameter(l, name, -1, l->vocab, l->hidden, l->vocab_ranks == 1, true);
    add_block(l, tensor, 0, l->vocab, l->hidden, l->vocab_ranks == 1 ? nowhere : split(0, l->vocab),
              nowhere);
    return id;
}

static void all_parameters(struct sc_lowering *l)
{
    const struct family_names *names = &names_of[l->model->family];
    l->embedding = vocabulary_parameter(l, N_EMBEDDING, names->embedding);
    l->position = SC_NONE;
    if (l->model->position == SC_POSITION_LEARNED)
        l->position = whole_parameter(
            l, N_POSITION, -1,
            add_matrix(l, names->position, -1, l->model->max_positions + l->model->position_offset,
                       l->hidden, false, false),
            true);
    for (int layer = 0; layer < l->model->layers; layer++)
        layer_parameters(l, layer);
    norm_parameters(l, N_FINAL_NORM, names->final_norm, -1, &l->final_norm, &l->final_norm_bias);
    l->head = l->embedding;
    if (!l->model->tied_head)
        l->head = vocabulary_parameter(l, N_HEAD, names->head);
}

/* How often a micro-batch writes each gradient: once a piece in the layers, else once; twice where
 * the embedding is the head as well. */
static void count_contributions(struct sc_lowering *l)
{
    for (size_t i = 0; i < l->program->parameters.count; i++)
        l->states[i].contributions = (uint32_t)l->pieces;
    l->states[l->embedding].contributions = 1;
    if (l->position != SC_NONE)
        l->states[l->position].contributions = 1;
    if (l->head == l->embedding)
        l->states[l->embedding].contributions = 2;
    else
        l->states[l->head].contributions = 1;
}

/* ---- the flat layout ----------------------------------------------------------------------- */

static int64_t alignment(const struct sc_lowering *l)
{
    uint32_t bytes = sc_dtype_bytes(l->plan->precision.parameters);
    if (sc_dtype_bytes(l->gradient) < bytes)
        bytes = sc_dtype_bytes(l->gradient);
    return SC_ALIGN / bytes;
}

static int64_t padded(const struct sc_lowering *l, size_t parameter)
{
    const struct sc_parameter *p = &l->program->parameters.items[parameter];
    return (int64_t)sc_round_up((uint64_t)(p->rows * p->cols), (uint64_t)alignment(l));
}

/* Cuts the parameters into buckets, from the last: a bucket is closed where the next parameter
 * would take it over the plan's size. One rank of the data axis needs one bucket only. */
static bool cut_buckets(struct sc_lowering *l)
{
    int64_t elements = 0;
    for (size_t i = l->program->parameters.count; i-- > 0;) {
        int64_t more = padded(l, i);
        bool full = l->data > 1 && elements + more > l->plan->zero.bucket_elements;
        if (l->buckets.count == 0 || full) {
            if (!sc_array_push(&l->buckets))
                return false;
            elements = 0;
        }
        struct sc_bucket *bucket = &l->buckets.items[l->buckets.count - 1];
        bucket->first = (uint32_t)i;
        bucket->parameters++;
        bucket->waiting = bucket->parameters;
        l->states[i].bucket = (uint32_t)(l->buckets.count - 1);
        elements += more;
    }
    return true;
}

static void lay_out(struct sc_lowering *l)
{
    int64_t flat = 0;
    for (size_t i = l->buckets.count; i-- > 0;) {
        struct sc_bucket *bucket = &l->buckets.items[i];
        bucket->flat = flat;
        for (uint32_t j = 0; j < bucket->parameters; j++) {
            l->program->parameters.items[bucket->first + j].flat = flat;
            flat += padded(l, bucket->first + j);
        }
        uint64_t unit = (uint64_t)alignment(l) * (uint64_t)l->data;
        bucket->elements = (int64_t)sc_round_up((uint64_t)(flat - bucket->flat), unit);
        flat = bucket->flat + bucket->elements;
    }
    l->flat_elements = flat;
}

static uint32_t flat_value(struct sc_lowering *l, enum sc_lower_name name, enum sc_dtype dtype,
                           int64_t elements)
{
    struct sc_label label = sc_lower_plain_label(l, name);
    uint32_t buffer = sc_add_buffer(l->program, l->class, label, SC_DEVICE, SC_PERSISTENT, 1,
                                    (uint64_t)elements * sc_dtype_bytes(dtype));
    return sc_add_value(l->program, l->class, label, buffer, 0, dtype, elements, 1);
}

static uint32_t flat_part(struct sc_lowering *l, struct sc_label label, uint32_t flat,
                          int64_t first, int64_t rows, int64_t cols)
{
    const struct sc_value *of = &l->class->values.items[flat];
    return sc_add_value(l->program, l->class, label, of->buffer,
                        (uint64_t)first * sc_dtype_bytes(of->dtype), of->dtype, rows, cols);
}

static void parameter_values(struct sc_lowering *l)
{
    for (size_t i = 0; i < l->program->parameters.count; i++) {
        struct sc_parameter *p = &l->program->parameters.items[i];
        struct sc_label label = p->label;
        p->value = flat_part(l, label, l->parameter_flat, p->flat, p->rows, p->cols);
        label.pass = SC_PASS_BACKWARD;
        p->gradient = flat_part(l, label, l->gradient_flat, p->flat, p->rows, p->cols);
    }
}

/* The ranges of a bucket (or of all) that Adam and the norm treat alike. Padding is zero, so it
 * may join its neighbours. */
static void flat_ranges(struct sc_lowering *l, uint32_t first, uint32_t count, int64_t base)
{
    struct sc_program *program = l->program;
    struct sc_flat_range *range = NULL;
    for (uint32_t i = first; i < first + count; i++) {
        const struct sc_parameter *p = &program->parameters.items[i];
        float weight = p->replicated ? (float)(1.0 / (double)l->tensor) : 1;
        int64_t begin = p->flat - base, elements = p->rows * p->cols;
        if (range && range->weight == weight && range->decay == p->decay) {
            range->count = begin + elements - range->first;
            continue;
        }
        range = sc_array_push(&program->ranges);
        if (!range) {
            program->failed = SC_NO_MEMORY;
            return;
        }
        *range = (struct sc_flat_range){
            .first = begin, .count = elements, .weight = weight, .decay = p->decay};
    }
}

/* Views of a bucket in the flat buffers and, where states are sharded, this rank's piece of it. */
static void bucket_values(struct sc_lowering *l, struct sc_bucket *bucket, int64_t state_first)
{
    bool sharded = l->plan->zero.stage > 0 && l->data > 1;
    int64_t states = sharded ? bucket->elements / l->data : bucket->elements;
    struct sc_label gradient = sc_lower_plain_label(l, N_GRADIENTS);
    struct sc_label parameter = sc_lower_plain_label(l, N_PARAMETERS);
    gradient.piece = parameter.piece = (int16_t)(bucket - l->buckets.items);
    bucket->gradient = flat_part(l, gradient, l->gradient_flat, bucket->flat, bucket->elements, 1);
    bucket->parameter =
        flat_part(l, parameter, l->parameter_flat, bucket->flat, bucket->elements, 1);
    bucket->gradient_shard = bucket->gradient;
    bucket->parameter_shard = bucket->parameter;
    if (sharded) {
        bucket->gradient_shard =
            sc_add_shard(l->program, l->class, gradient, bucket->gradient, SC_DATA);
        bucket->parameter_shard =
            sc_add_shard(l->program, l->class, parameter, bucket->parameter, SC_DATA);
    }
    bucket->m = flat_part(l, gradient, l->m_flat, state_first, states, 1);
    bucket->v = flat_part(l, gradient, l->v_flat, state_first, states, 1);
    bucket->master = SC_NONE;
    if (l->master_flat != SC_NONE)
        bucket->master = flat_part(l, gradient, l->master_flat, state_first, states, 1);
}

static void flat_values(struct sc_lowering *l)
{
    bool sharded = l->plan->zero.stage > 0 && l->data > 1;
    int64_t states = sharded ? l->flat_elements / l->data : l->flat_elements;
    enum sc_dtype state = l->plan->precision.optimizer_states;
    l->parameter_flat =
        flat_value(l, N_PARAMETERS, l->plan->precision.parameters, l->flat_elements);
    l->gradient_flat = flat_value(l, N_GRADIENTS, l->gradient, l->flat_elements);
    l->m_flat = flat_value(l, N_MOMENT1, state, states);
    l->v_flat = flat_value(l, N_MOMENT2, state, states);
    l->master_flat = SC_NONE;
    if (l->plan->precision.parameters != l->plan->precision.master_parameters)
        l->master_flat = flat_value(l, N_MASTER, l->plan->precision.master_parameters, states);
    parameter_values(l);
    int64_t first = 0;
    for (size_t i = l->buckets.count; i-- > 0;) {
        struct sc_bucket *bucket = &l->buckets.items[i];
        bucket_values(l, bucket, first);
        first += sharded ? bucket->elements / l->data : bucket->elements;
        bucket->first_range = (uint32_t)l->program->ranges.count;
        flat_ranges(l, bucket->first, bucket->parameters, bucket->flat);
        bucket->ranges = (uint32_t)l->program->ranges.count - bucket->first_range;
    }
}

enum sc_status sc_lower_parameters(struct sc_lowering *l, struct sc_error *err)
{
    size_t layers = (size_t)l->model->layers;
    l->layer_parameters = sc_arena_alloc(&l->arena, layers, sizeof(*l->layer_parameters));
    if (!l->layer_parameters)
        return sc_fail_memory(err, layers * sizeof(*l->layer_parameters));
    all_parameters(l);
    SC_TRY(sc_program_finish(l->program, err));
    size_t count = l->program->parameters.count;
    l->states = sc_arena_alloc(&l->arena, count, sizeof(*l->states));
    if (!l->states || !cut_buckets(l))
        return sc_fail_memory(err, count * sizeof(*l->states));
    count_contributions(l);
    lay_out(l);
    flat_values(l);
    return SC_OK;
}

uint32_t sc_lower_parameter(const struct sc_lowering *l, uint32_t parameter)
{
    return l->program->parameters.items[parameter].value;
}

void sc_lower_gradient_view(struct sc_lowering *l, enum sc_role role, uint32_t parameter,
                            uint32_t view)
{
    struct sc_parameter_state *state = &l->states[parameter];
    if (state->written++ == 0)
        sc_lower_out(l, role, view);
    else
        sc_lower_inout(l, role, view);
    if (state->written == state->contributions * (uint32_t)l->micro_batches)
        l->buckets.items[state->bucket].waiting--;
}

void sc_lower_gradient(struct sc_lowering *l, enum sc_role role, uint32_t parameter)
{
    sc_lower_gradient_view(l, role, parameter, l->program->parameters.items[parameter].gradient);
}
