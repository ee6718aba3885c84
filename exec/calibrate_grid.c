/*
 * The grid of calibration as a step program.
 *
 * Buffers. `warm`: what an operation would find in the cache; it is touched (scaled by one) right
 * before. `cold`: weights and what was saved long ago; each operation reads another place of it.
 * `result`: where operations write, another place each. Inputs are never written, so their numbers
 * stay those of the start.
 */
#include "exec/calibrate_grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "exec/clock.h"
#include "exec/launch.h"
#include "exec/process.h"
#include "model/fit.h"
#include "plans/op_cost_name.h"

enum {
    WARM_BYTES = 40 << 20,
    COLD_BYTES = 96 << 20, /* more than a cache; with as many ranks as cores, several of them */
    RESULT_BYTES = 96 << 20,
    MOMENT_BYTES = 40 << 20,
    SWEEP_BYTES = 136 << 20, /* the two moments of the longest sweep */
    STATE_WORDS = 64,
    TOKENS = 2048,
    VOCABULARY = 4000,
    WARMUP_STEPS = 2,
    EMPTY_OPS = 1000,
    PAGE_ELEMENTS = 1024 /* a page of fp32 */
};

static const struct sc_index nowhere = {.base = 0, .stride = 0, .axis = -1};

/* A place from which values are taken one behind the other, round and round. */
struct pool {
    uint32_t buffer;
    uint64_t bytes, at;
};

struct builder {
    struct sc_grid *grid;
    struct sc_program *program;
    struct sc_class *class;
    struct sc_list *list;
    int compute, comm, data, group;
    struct pool warm, cold, result, moment;
    uint32_t state, index;
};

/* ---- values ------------------------------------------------------------------------------ */

static struct pool make_pool(struct builder *b, const char *name, uint64_t bytes)
{
    struct sc_label label = sc_label(b->program, name);
    return (struct pool){
        sc_add_buffer(b->program, b->class, label, SC_DEVICE, SC_PERSISTENT, 1, bytes), bytes, 0};
}

static uint32_t take(struct builder *b, struct pool *pool, int64_t rows, int64_t cols)
{
    uint64_t bytes = sc_round_up((uint64_t)(rows * cols) * sizeof(float), SC_ALIGN);
    if (pool->at + bytes > pool->bytes) {
        pool->at = 0;
    }
    uint32_t value = sc_add_value(b->program, b->class, sc_label(b->program, "operand"),
                                  pool->buffer, pool->at, SC_FP32, rows, cols);
    pool->at += bytes;
    return value;
}

static uint32_t warm(struct builder *b, int64_t rows, int64_t cols)
{
    b->warm.at = 0;
    return take(b, &b->warm, rows, cols);
}

static uint32_t cold(struct builder *b, int64_t rows, int64_t cols)
{
    return take(b, &b->cold, rows, cols);
}

static uint32_t result(struct builder *b, int64_t rows, int64_t cols)
{
    return take(b, &b->result, rows, cols);
}

/* Normal numbers all over the inputs: a parameter that fills the buffer. */
static void initialize(struct builder *b, const struct pool *pool)
{
    enum { COLS = 1024 };
    int64_t rows = (int64_t)(pool->bytes / sizeof(float)) / COLS;
    struct sc_label label = sc_label(b->program, "initialize");
    uint32_t value =
        sc_add_value(b->program, b->class, label, pool->buffer, 0, SC_FP32, rows, COLS);
    struct sc_op *op = sc_add_op(b->program, &b->class->init, SC_INITIALIZE, b->compute, -1, label);
    op->p.initialize.parameters = true;
    op->p.initialize.first = nowhere;
    op->p.initialize.first.base = b->program->parameters.count > 0 ? (int64_t)WARM_BYTES / 4 : 0;
    op->p.initialize.seed = 1;
    sc_add_operand(b->program, &b->class->init, SC_ROLE_Y, SC_OUT, value);
    struct sc_tensor *tensor = sc_array_push(&b->program->tensors);
    struct sc_block *block = sc_array_push(&b->program->blocks);
    struct sc_parameter *parameter = sc_array_push(&b->program->parameters);
    if (tensor == NULL || block == NULL || parameter == NULL) {
        b->program->failed = SC_NO_MEMORY;
        return;
    }
    *tensor = (struct sc_tensor){
        .name = "input", .rows = rows, .cols = COLS, .init = SC_INIT_NORMAL, .deviation = 0.5f};
    uint32_t last = (uint32_t)b->program->tensors.count - 1;
    *block = (struct sc_block){last, 0, rows, COLS, nowhere, nowhere};
    *parameter = (struct sc_parameter){.label = label,
                                       .flat = op->p.initialize.first.base,
                                       .rows = rows,
                                       .cols = COLS,
                                       .value = value,
                                       .gradient = value,
                                       .first_block = last,
                                       .blocks = 1};
}

/* ---- operations -------------------------------------------------------------------------- */

static struct sc_op *op(struct builder *b, enum sc_op_kind kind)
{
    return sc_add_op(b->program, b->list, kind, b->compute, -1,
                     sc_label(b->program, sc_op_kind_name(kind)));
}

static void in(struct builder *b, enum sc_role role, uint32_t value)
{
    sc_add_operand(b->program, b->list, role, SC_IN, value);
}

static void out(struct builder *b, enum sc_role role, uint32_t value)
{
    sc_add_operand(b->program, b->list, role, SC_OUT, value);
}

static void inout(struct builder *b, enum sc_role role, uint32_t value)
{
    sc_add_operand(b->program, b->list, role, SC_INOUT, value);
}

static uint32_t next_op(const struct builder *b)
{
    return (uint32_t)b->list->ops.count;
}

/* Brings a value into the cache without changing it. */
static uint32_t touch(struct builder *b, uint32_t value)
{
    op(b, SC_SCALE)->p.scale.factor = 1.0f;
    in(b, SC_ROLE_X, value);
    out(b, SC_ROLE_Y, value);
    return value;
}

static const struct sc_value *value_of(const struct builder *b, uint32_t value)
{
    return &b->class->values.items[value];
}

/* What an element-wise kernel runs over: the largest operand, a table apart. */
static double most_elements(const struct builder *b, const struct sc_op *last)
{
    double most = 0.0;
    for (uint32_t i = 0; i < last->operands; i++) {
        const struct sc_operand *operand = &b->list->operands.items[last->first_operand + i];
        const struct sc_value *v = value_of(b, operand->value);
        bool table = operand->role == SC_ROLE_WEIGHT || operand->role == SC_ROLE_DWEIGHT;
        double elements = (double)v->rows * (double)v->cols;
        if (!table && elements > most) {
            most = elements;
        }
    }
    return most;
}

static struct sc_probe *add_probe(struct builder *b, enum sc_probe_family family, const char *kind)
{
    struct sc_probe *probe = sc_array_push(&b->grid->probes);
    if (probe == NULL) {
        b->program->failed = SC_NO_MEMORY;
        return NULL;
    }
    probe->family = family;
    probe->kind = kind;
    return probe;
}

/* Times the operation added last, from its start to that of the next one of its stream. */
static struct sc_probe *time_last(struct builder *b, enum sc_probe_family family)
{
    if (b->program->failed != SC_OK) {
        return NULL;
    }
    const struct sc_op *last = &b->list->ops.items[b->list->ops.count - 1];
    struct sc_probe *probe = add_probe(b, family, sc_op_cost_name(last));
    if (probe == NULL) {
        return NULL;
    }
    probe->from = next_op(b) - 1;
    probe->to = next_op(b);
    probe->flops = sc_op_flops(b->class, b->list, last);
    probe->bytes = sc_op_bytes(b->class, b->list, last);
    probe->elements = most_elements(b, last);
    return probe;
}

/* ---- products and attention -------------------------------------------------------------- */

enum layout { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT, LAYOUT_COUNT };
static const char *const layout_names[LAYOUT_COUNT] = {"nt", "nn", "tn"};

/* A linear layer with weights [outputs, inputs] on `rows` rows. */
static const struct linear {
    int64_t rows, outputs, inputs;
} linears[] = {
    {96, 320, 320},    {192, 320, 320},   {384, 320, 320},   {384, 960, 320},   {384, 1280, 320},
    {384, 320, 1280},  {384, 160, 320},   {192, 640, 160},   {384, 480, 160},   {640, 640, 640},
    {640, 1920, 640},  {640, 640, 2560},  {640, 2560, 640},  {192, 6000, 320},  {384, 12000, 640},
    {96, 640, 640},    {96, 1920, 640},   {96, 640, 1920},   {192, 1920, 640},  {192, 640, 1920},
    {1152, 320, 320},  {1152, 1280, 320}, {1152, 320, 1280}, {1152, 640, 640},  {1152, 2560, 640},
    {1152, 640, 2560}, {1152, 6000, 640}, {48, 320, 320},    {48, 1280, 320},   {640, 1280, 1280},
    {384, 1024, 320},  {640, 1024, 640},  {640, 2048, 320},  {1152, 2048, 640},
};

static void product(struct builder *b, const struct linear *l, enum layout layout)
{
    bool weight = layout == BACKWARD_WEIGHT;
    int64_t m = weight ? l->outputs : l->rows;
    int64_t n = layout == FORWARD ? l->outputs : l->inputs;
    int64_t k = layout == FORWARD ? l->inputs : weight ? l->rows : l->outputs;
    uint32_t a = touch(b, weight ? warm(b, k, m) : warm(b, m, k));
    uint32_t other = layout == FORWARD ? cold(b, n, k) : cold(b, k, n);
    struct sc_op *gemm = op(b, SC_GEMM);
    gemm->p.gemm.alpha = 1.0f;
    gemm->p.gemm.transpose_a = weight;
    gemm->p.gemm.transpose_b = layout == FORWARD;
    in(b, SC_ROLE_A, a);
    in(b, SC_ROLE_B, other);
    if (layout == FORWARD) {
        in(b, SC_ROLE_BIAS, cold(b, 1, n));
    }
    out(b, SC_ROLE_C, result(b, m, n));
    if (weight) {
        out(b, SC_ROLE_BIAS_GRADIENT, result(b, 1, m));
    }
    struct sc_probe *probe = time_last(b, SC_PROBE_GEMM);
    if (probe != NULL) {
        probe->gemm = (struct sc_gemm_work){.batch = 1,
                                            .m = m,
                                            .n = n,
                                            .k = k,
                                            .input = SC_FP32,
                                            .output = SC_FP32,
                                            .transpose_a = weight,
                                            .transpose_b = layout == FORWARD,
                                            .page_stride = weight && m % PAGE_ELEMENTS == 0};
        snprintf(probe->shape, sizeof(probe->shape), "%lld x %lld x %lld %s", (long long)m,
                 (long long)n, (long long)k, layout_names[layout]);
    }
}

static const struct heads {
    int64_t batch, sequence, heads, kv_heads, head_size;
} attentions[] = {
    {4, 96, 4, 4, 32},  {2, 192, 5, 5, 48}, {1, 320, 8, 8, 32},  {2, 160, 6, 3, 64},
    {1, 640, 6, 6, 64}, {2, 384, 4, 2, 80}, {6, 160, 4, 4, 64},  {8, 96, 6, 6, 64},
    {6, 192, 4, 2, 32}, {4, 320, 3, 3, 64}, {3, 224, 4, 4, 128},
};

static void attention(struct builder *b, const struct heads *h, bool backward)
{
    int64_t rows = h->batch * h->sequence, width = h->heads * h->head_size;
    int64_t packed = width + 2 * h->kv_heads * h->head_size;
    uint32_t first = backward ? cold(b, rows, packed) : touch(b, warm(b, rows, packed));
    uint32_t d_o = backward ? touch(b, warm(b, rows, width)) : 0;
    struct sc_op *last = op(b, backward ? SC_ATTENTION_BACKWARD : SC_ATTENTION);
    last->p.attention.batch = h->batch;
    last->p.attention.sequence = h->sequence;
    last->p.attention.heads = last->p.attention.total_heads = (int32_t)h->heads;
    last->p.attention.kv_heads = (int32_t)h->kv_heads;
    last->p.attention.head_size = (int32_t)h->head_size;
    last->p.attention.scale = 0.1f;
    last->p.attention.batch_index = last->p.attention.head_index = nowhere;
    in(b, SC_ROLE_QKV, first);
    if (backward) {
        in(b, SC_ROLE_DO, d_o);
        in(b, SC_ROLE_O, cold(b, rows, width));
        in(b, SC_ROLE_LSE, cold(b, rows * h->heads, 1));
        out(b, SC_ROLE_DQKV, result(b, rows, packed));
    } else {
        out(b, SC_ROLE_O, result(b, rows, width));
        out(b, SC_ROLE_LSE, result(b, rows * h->heads, 1));
    }
    struct sc_probe *probe = time_last(b, SC_PROBE_ATTENTION);
    if (probe != NULL) {
        probe->attention = (struct sc_attention_work){
            .batch = h->batch,
            .query_heads = h->heads,
            .key_value_heads = h->kv_heads,
            .head_size = h->head_size,
            .query_length = h->sequence,
            .key_length = h->sequence,
            .causal = true,
            .backward = backward,
            .dtype = SC_FP32,
        };
        snprintf(probe->shape, sizeof(probe->shape), "%lld x %lld, %lld/%lld heads of %lld",
                 (long long)h->batch, (long long)h->sequence, (long long)h->heads,
                 (long long)h->kv_heads, (long long)h->head_size);
    }
}

/* ---- memory-bound kinds ------------------------------------------------------------------ */

typedef void memory_fn(struct builder *b, int64_t rows, int64_t cols, int variant);

static void norm(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    uint32_t x = touch(b, warm(b, rows, cols));
    struct sc_op *last = op(b, SC_NORM_FORWARD);
    last->p.norm.kind = (uint8_t)variant;
    last->p.norm.epsilon = 1e-5f;
    in(b, SC_ROLE_X, x);
    in(b, SC_ROLE_GAMMA, cold(b, 1, cols));
    if (variant == SC_LAYER_NORM) {
        in(b, SC_ROLE_BETA, cold(b, 1, cols));
    }
    out(b, SC_ROLE_Y, result(b, rows, cols));
    out(b, SC_ROLE_STAT, result(b, rows, 2));
}

static void norm_backward(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    uint32_t dx = touch(b, result(b, rows, cols));
    uint32_t dy = touch(b, warm(b, rows, cols));
    struct sc_op *last = op(b, SC_NORM_BACKWARD);
    last->p.norm.kind = (uint8_t)variant;
    in(b, SC_ROLE_DY, dy);
    in(b, SC_ROLE_X, cold(b, rows, cols));
    in(b, SC_ROLE_STAT, cold(b, rows, 2));
    in(b, SC_ROLE_GAMMA, cold(b, 1, cols));
    inout(b, SC_ROLE_DX, dx);
    out(b, SC_ROLE_DGAMMA, result(b, 1, cols));
    if (variant == SC_LAYER_NORM) {
        out(b, SC_ROLE_DBETA, result(b, 1, cols));
    }
}

static void activation(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    int64_t width = sc_activation_gated((enum sc_activation)variant) ? 2 * cols : cols;
    uint32_t x = touch(b, warm(b, rows, width));
    op(b, SC_ACTIVATION_FORWARD)->p.activation.kind = (uint8_t)variant;
    in(b, SC_ROLE_X, x);
    out(b, SC_ROLE_Y, result(b, rows, cols));
}

static void activation_backward(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    bool gated = sc_activation_gated((enum sc_activation)variant);
    uint32_t dy = touch(b, gated ? warm(b, rows, cols) : result(b, rows, cols));
    op(b, SC_ACTIVATION_BACKWARD)->p.activation.kind = (uint8_t)variant;
    in(b, SC_ROLE_X, cold(b, rows, gated ? 2 * cols : cols));
    if (gated) {
        in(b, SC_ROLE_DY, dy);
        out(b, SC_ROLE_DX, result(b, rows, 2 * cols));
    } else {
        inout(b, SC_ROLE_DX, dy);
    }
}

static void scores(struct sc_op *last, int64_t rows, int64_t cols)
{
    last->p.attention.sequence = cols;
    last->p.attention.batch = 1;
    last->p.attention.heads = last->p.attention.kv_heads = (int32_t)(rows / cols);
    last->p.attention.scale = 0.1f;
    last->p.attention.batch_index = last->p.attention.head_index = nowhere;
}

/* Square score matrices: the rows are rounded to whole ones. */
static void softmax(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    rows = (rows + cols - 1) / cols * cols;
    uint32_t y = touch(b, result(b, rows, cols));
    scores(op(b, SC_SOFTMAX), rows, cols);
    inout(b, SC_ROLE_Y, y);
}

static void softmax_backward(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    rows = (rows + cols - 1) / cols * cols;
    uint32_t dx = touch(b, result(b, rows, cols));
    scores(op(b, SC_SOFTMAX_BACKWARD), rows, cols);
    in(b, SC_ROLE_Y, cold(b, rows, cols));
    inout(b, SC_ROLE_DX, dx);
}

static void dropout(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    uint32_t x = touch(b, warm(b, rows, cols));
    struct sc_op *last = op(b, SC_DROPOUT);
    last->p.dropout.probability = variant ? 0.1f : 0.0f;
    last->p.dropout.row = last->p.dropout.head_index = nowhere;
    in(b, SC_ROLE_X, x);
    in(b, SC_ROLE_BIAS, cold(b, 1, cols));
    in(b, SC_ROLE_RESIDUAL, cold(b, rows, cols));
    in(b, SC_ROLE_STATE, b->state);
    out(b, SC_ROLE_Y, result(b, rows, cols));
}

static void dropout_backward(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    uint32_t dy = touch(b, warm(b, rows, cols));
    struct sc_op *last = op(b, SC_DROPOUT_BACKWARD);
    last->p.dropout.probability = variant ? 0.1f : 0.0f;
    last->p.dropout.row = last->p.dropout.head_index = nowhere;
    in(b, SC_ROLE_DY, dy);
    in(b, SC_ROLE_STATE, b->state);
    out(b, SC_ROLE_DX, result(b, rows, cols));
    out(b, SC_ROLE_BIAS_GRADIENT, result(b, 1, cols));
}

static void add(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t a = touch(b, warm(b, rows, cols));
    op(b, SC_ADD);
    in(b, SC_ROLE_A, a);
    in(b, SC_ROLE_B, cold(b, rows, cols));
    out(b, SC_ROLE_C, result(b, rows, cols));
}

static void scale(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t x = touch(b, warm(b, rows, cols));
    op(b, SC_SCALE)->p.scale.factor = 0.5f;
    in(b, SC_ROLE_X, x);
    out(b, SC_ROLE_Y, result(b, rows, cols));
}

static void reduce_rows(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t x = touch(b, warm(b, rows, cols));
    op(b, SC_REDUCE_ROWS)->p.scale.factor = 1.0f;
    in(b, SC_ROLE_X, x);
    out(b, SC_ROLE_Y, result(b, 1, cols));
}

static void rope(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t y = touch(b, warm(b, rows, cols));
    struct sc_op *last = op(b, SC_ROPE);
    last->p.rope.sequence = rows;
    last->p.rope.head_size = 32;
    last->p.rope.kv_heads = (int32_t)(cols / 128); /* two queries or so for a key */
    last->p.rope.heads = (int32_t)(cols / 32) - 2 * last->p.rope.kv_heads;
    last->p.rope.theta = 10000.0f;
    inout(b, SC_ROLE_Y, y);
}

static void embedding(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t table = cold(b, VOCABULARY, cols);
    uint32_t index =
        sc_add_view(b->program, b->class, sc_label(b->program, "index"), b->index, 0, rows, 0, 1);
    op(b, SC_EMBEDDING)->p.embedding.row = nowhere;
    in(b, SC_ROLE_INDEX, index);
    in(b, SC_ROLE_WEIGHT, table);
    out(b, SC_ROLE_Y, result(b, rows, cols));
}

/* Adds to what is there: only the rows that occur are touched. */
static void embedding_backward(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t dy = touch(b, warm(b, rows, cols));
    uint32_t index =
        sc_add_view(b->program, b->class, sc_label(b->program, "index"), b->index, 0, rows, 0, 1);
    uint32_t table = result(b, VOCABULARY, cols);
    op(b, SC_EMBEDDING_BACKWARD)->p.embedding.row = nowhere;
    in(b, SC_ROLE_INDEX, index);
    in(b, SC_ROLE_DY, dy);
    inout(b, SC_ROLE_DWEIGHT, table);
}

static void norm_squares(struct builder *b, int64_t rows, int64_t cols, int variant);

static const struct memory_kind {
    memory_fn *build;
    int variant;
} memory_kinds[] = {
    {norm, SC_LAYER_NORM},
    {norm, SC_RMS_NORM},
    {norm_backward, SC_LAYER_NORM},
    {norm_backward, SC_RMS_NORM},
    {activation, SC_GELU_TANH},
    {activation, SC_GELU_ERF},
    {activation, SC_RELU},
    {activation, SC_SWIGLU},
    {activation_backward, SC_GELU_TANH},
    {activation_backward, SC_GELU_ERF},
    {activation_backward, SC_RELU},
    {activation_backward, SC_SWIGLU},
    {softmax, 0},
    {softmax_backward, 0},
    {dropout, 0},
    {dropout, 1},
    {dropout_backward, 0},
    {dropout_backward, 1},
    {add, 0},
    {scale, 0},
    {reduce_rows, 0},
    {rope, 0},
    {embedding, 0},
    {embedding_backward, 0},
    {norm_squares, 0},
};

static const struct size {
    int64_t rows, cols;
} sizes[] = {{96, 320},   {384, 320},  {384, 640},   {384, 1280},
             {640, 1280}, {640, 2560}, {1152, 2560}, {1024, 4096}};

static void shape_of(struct sc_probe *probe, int64_t rows, int64_t cols)
{
    if (probe != NULL) {
        snprintf(probe->shape, sizeof(probe->shape), "%lld x %lld", (long long)rows,
                 (long long)cols);
    }
}

/* ---- loss -------------------------------------------------------------------------------- */

static void loss_parameters(struct sc_op *last, int64_t cols)
{
    last->p.cross_entropy.vocab_size = cols;
    last->p.cross_entropy.column = nowhere;
    last->p.cross_entropy.scale = 1e-3f;
}

static void cross_entropy(struct builder *b, int64_t rows, int64_t cols)
{
    uint32_t logits = touch(b, result(b, rows, cols));
    uint32_t maximum = result(b, rows, 1), sum = result(b, rows, 1), target = result(b, rows, 1);
    uint32_t loss = result(b, rows, 1);
    uint32_t index =
        sc_add_view(b->program, b->class, sc_label(b->program, "index"), b->index, 0, rows, 0, 1);
    loss_parameters(op(b, SC_CROSS_ENTROPY_MAX), cols);
    in(b, SC_ROLE_X, logits);
    out(b, SC_ROLE_MAX, maximum);
    shape_of(time_last(b, SC_PROBE_MEMORY), rows, cols);
    loss_parameters(op(b, SC_CROSS_ENTROPY_SUM), cols);
    in(b, SC_ROLE_MAX, maximum);
    in(b, SC_ROLE_INDEX, index);
    out(b, SC_ROLE_SUM, sum);
    out(b, SC_ROLE_TARGET_LOGIT, target);
    inout(b, SC_ROLE_PROBABILITIES, logits);
    shape_of(time_last(b, SC_PROBE_MEMORY), rows, cols);
    loss_parameters(op(b, SC_CROSS_ENTROPY_LOSS), cols);
    in(b, SC_ROLE_SUM, sum);
    in(b, SC_ROLE_MAX, maximum);
    in(b, SC_ROLE_TARGET_LOGIT, target);
    in(b, SC_ROLE_INDEX, index);
    out(b, SC_ROLE_LOSS, loss);
    inout(b, SC_ROLE_DX, logits);
    shape_of(time_last(b, SC_PROBE_MEMORY), rows, cols);
}

/* ---- optimizer --------------------------------------------------------------------------- */

static void flat_parameters(struct builder *b, struct sc_op *last, int64_t elements)
{
    struct sc_flat_range *range = sc_array_push(&b->program->ranges);
    if (range == NULL) {
        b->program->failed = SC_NO_MEMORY;
        return;
    }
    *range = (struct sc_flat_range){.first = 0, .count = elements, .weight = 1.0f, .decay = 1};
    last->p.flat.beta1 = 0.9;
    last->p.flat.beta2 = 0.95;
    last->p.flat.epsilon = 1e-8f;
    last->p.flat.weight_decay = 0.1f;
    last->p.flat.first_range = (uint32_t)b->program->ranges.count - 1;
    last->p.flat.ranges = 1;
    last->p.flat.shard = nowhere;
}

/* The step state stays zero: a learning rate of nothing, the same arithmetic. */
static void adam(struct builder *b, int64_t elements)
{
    uint32_t gradient = cold(b, elements, 1), parameter = result(b, elements, 1);
    uint32_t m = take(b, &b->moment, elements, 1), v = take(b, &b->moment, elements, 1);
    flat_parameters(b, op(b, SC_ADAM), elements);
    in(b, SC_ROLE_GRADIENT, gradient);
    in(b, SC_ROLE_STATE, b->state);
    inout(b, SC_ROLE_PARAMETER, parameter);
    inout(b, SC_ROLE_M, m);
    inout(b, SC_ROLE_V, v);
    struct sc_probe *probe = time_last(b, SC_PROBE_ADAM);
    if (probe != NULL) {
        probe->elements = (double)elements;
        snprintf(probe->shape, sizeof(probe->shape), "%lld", (long long)elements);
    }
}

static void norm_squares(struct builder *b, int64_t rows, int64_t cols, int variant)
{
    (void)variant;
    uint32_t gradient = cold(b, rows * cols, 1);
    flat_parameters(b, op(b, SC_NORM_SQUARES), rows * cols);
    in(b, SC_ROLE_GRADIENT, gradient);
    out(b, SC_ROLE_NORM, result(b, 1, 1));
}

/* A copy of what lies in no cache: what memory gives. */
static void stream(struct builder *b, int64_t elements)
{
    op(b, SC_SCALE)->p.scale.factor = 0.5f;
    in(b, SC_ROLE_X, cold(b, elements / 1024, 1024));
    out(b, SC_ROLE_Y, result(b, elements / 1024, 1024));
    struct sc_probe *probe = time_last(b, SC_PROBE_STREAM);
    if (probe != NULL) {
        snprintf(probe->shape, sizeof(probe->shape), "%lld", (long long)elements);
    }
}

static void scalar(struct builder *b)
{
    struct sc_op *last = op(b, SC_SCALAR);
    last->p.scalar.work = SC_SCALAR_CLIP;
    last->p.scalar.clip = 1.0f;
    inout(b, SC_ROLE_STATE, b->state);
    in(b, SC_ROLE_NORM, cold(b, 1, 1));
    time_last(b, SC_PROBE_MEMORY);
}

/* ---- collectives ------------------------------------------------------------------------- */

static struct sc_op *collective_op(struct builder *b, enum sc_op_kind kind)
{
    return sc_add_op(b->program, b->list, kind, b->comm, b->group,
                     sc_label(b->program, sc_op_kind_name(kind)));
}

/* In place, as the optimizer's buckets are: a rank's shard is a view of the whole. */
static void collective_operands(struct builder *b, enum sc_op_kind kind, uint32_t whole)
{
    collective_op(b, kind)->p.collective.reduction = SC_SUM;
    inout(b, kind == SC_REDUCE_SCATTER ? SC_ROLE_X : SC_ROLE_Y, whole);
}

static const struct reduction {
    enum sc_op_kind kind;
    enum sc_collective collective;
} reductions[] = {
    {SC_ALL_REDUCE, SC_COLLECTIVE_ALL_REDUCE},
    {SC_REDUCE_SCATTER, SC_COLLECTIVE_REDUCE_SCATTER},
    {SC_ALL_GATHER, SC_COLLECTIVE_ALL_GATHER},
};

/* Between what writes the value and what reads it. */
static void collective(struct builder *b, const struct reduction *reduction, int64_t elements)
{
    uint32_t whole = touch(b, result(b, elements, 1));
    uint32_t producer = next_op(b) - 1;
    collective_operands(b, reduction->kind, whole);
    touch(b, whole);
    struct sc_probe *probe = add_probe(b, SC_PROBE_COLLECTIVE, sc_op_kind_name(reduction->kind));
    if (probe != NULL) {
        probe->from = producer;
        probe->from_end = true;
        probe->to = producer + 2;
        probe->bytes = (double)elements * sizeof(float);
        probe->collective = reduction->collective;
        probe->op = producer + 1;
        snprintf(probe->shape, sizeof(probe->shape), "%.0f bytes", probe->bytes);
    }
}

enum { CHAIN = 8 };

/* Products that take about as long together as the collective beside them. */
static void chain(struct builder *b, int64_t elements)
{
    int64_t asked = b->grid->parts.chain, products = asked > 0 ? asked * elements >> 18 : CHAIN;
    for (int64_t i = 0; i < products; i++) {
        op(b, SC_GEMM)->p.gemm.alpha = 1.0f;
        in(b, SC_ROLE_A, warm(b, 192, 320));
        in(b, SC_ROLE_B, cold(b, 320, 320));
        out(b, SC_ROLE_C, result(b, 192, 320));
    }
}

static void between(struct builder *b, enum sc_probe_family family, uint32_t from, int64_t elements)
{
    struct sc_probe *probe = add_probe(b, family, "beside");
    if (probe != NULL) {
        probe->from = from;
        probe->from_end = true;
        probe->to = next_op(b) - 1;
        probe->bytes = (double)elements * sizeof(float);
        probe->collective = SC_COLLECTIVE_ALL_REDUCE;
        probe->op = from + 1;
        snprintf(probe->shape, sizeof(probe->shape), "%.0f bytes", probe->bytes);
    }
}

/* The chain alone, then beside an all-reduce. */
static void beside(struct builder *b, int64_t elements)
{
    uint32_t begin = next_op(b);
    touch(b, warm(b, 192, 320));
    chain(b, elements);
    touch(b, warm(b, 1, 64));
    between(b, SC_PROBE_CHAIN, begin, elements);
    uint32_t whole = touch(b, result(b, elements, 1));
    uint32_t producer = next_op(b) - 1;
    collective_operands(b, SC_ALL_REDUCE, whole);
    chain(b, elements);
    touch(b, warm(b, 1, 64));
    between(b, SC_PROBE_BESIDE, producer, elements);
    touch(b, whole); /* later operations do not run beside it */
}

/* ---- the program ------------------------------------------------------------------------- */

static void add_input(struct builder *b)
{
    struct sc_label label = sc_label(b->program, "index");
    uint32_t buffer = sc_add_buffer(b->program, b->class, label, SC_PINNED, SC_PERSISTENT, 1,
                                    (uint64_t)TOKENS * 2 * sizeof(int32_t));
    b->index = sc_add_value(b->program, b->class, label, buffer, 0, SC_INT32, TOKENS, 1);
    uint32_t target = sc_add_value(b->program, b->class, label, buffer, TOKENS * sizeof(int32_t),
                                   SC_INT32, TOKENS, 1);
    struct sc_op *next = sc_add_op(b->program, b->list, SC_NEXT_BATCH, b->data, -1, label);
    next->p.next_batch.sequence = nowhere;
    next->p.next_batch.batch = 1;
    next->p.next_batch.length = TOKENS;
    out(b, SC_ROLE_INDEX, b->index);
    out(b, SC_ROLE_TARGET, target);
}

/* Elements of the optimizer's sweeps over flat buffers, far beyond the caches. */
static const int64_t sweeps[] = {8000000, 15500000};

static void add_compute(struct builder *b, bool tiny)
{
    size_t linear_count = tiny ? 3 : sizeof(linears) / sizeof(*linears);
    for (size_t i = 0; i < linear_count; i++) {
        for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
            product(b, &linears[i], (enum layout)layout);
        }
    }
    for (size_t i = 0; i < (tiny ? 2 : sizeof(attentions) / sizeof(*attentions)); i++) {
        attention(b, &attentions[i], false);
        attention(b, &attentions[i], true);
    }
    size_t size_count = tiny ? 2 : sizeof(sizes) / sizeof(*sizes);
    for (size_t i = 0; i < size_count; i++) {
        for (size_t k = 0; k < sizeof(memory_kinds) / sizeof(*memory_kinds); k++) {
            memory_kinds[k].build(b, sizes[i].rows, sizes[i].cols, memory_kinds[k].variant);
            shape_of(time_last(b, SC_PROBE_MEMORY), sizes[i].rows, sizes[i].cols);
        }
        cross_entropy(b, sizes[i].rows,
                      sizes[i].rows > 384 ? 5 * sizes[i].cols / 2 : 2 * sizes[i].cols);
        adam(b, 4 * sizes[i].rows * sizes[i].cols / ((int64_t)i / 2 + 1));
        scalar(b);
    }
    for (size_t i = 0; i < (tiny ? 0 : sizeof(sweeps) / sizeof(*sweeps)); i++) {
        adam(b, sweeps[i]);
        norm_squares(b, sweeps[i], 1, 0);
        shape_of(time_last(b, SC_PROBE_MEMORY), sweeps[i], 1);
    }
}

static void add_streaming(struct builder *b, bool tiny)
{
    for (int i = 0; i < 6; i++) {
        stream(b, tiny ? 1 << 16 : 4 << 20);
    }
}

/* Sizes in and beyond the caches, and what a link lets pass at a rate that it does not keep;
 * between processes, over what may be a slow link, not the largest. */
static void add_collectives(struct builder *b, bool tiny)
{
    static const int64_t elements[] = {1 << 10, 1 << 14, 1 << 16, 1 << 17, 1 << 18,
                                       1 << 19, 1 << 20, 1 << 21, 1 << 23};
    collective(b, &reductions[0], 1 << 10); /* the first one waits for what went before: not used */
    if (b->grid->probes.count > 0) {
        b->grid->probes.count--;
    }
    size_t all = sizeof(elements) / sizeof(*elements) - (b->grid->parts.chain > 0 ? 1 : 0);
    for (size_t i = 0; i < (tiny ? 2 : all); i++) {
        for (size_t k = 0; k < sizeof(reductions) / sizeof(*reductions); k++) {
            collective(b, &reductions[k], elements[i]);
        }
    }
    for (int i = 0; i < (tiny ? 1 : 6); i++) {
        beside(b, tiny ? 1 << 12 : (int64_t)1 << (18 + i % 3));
    }
}

static void add_streams(struct builder *b)
{
    b->data = sc_add_stream(b->program, "data", SC_ENGINE_HOST, 0);
    b->compute = sc_add_stream(b->program, "compute", SC_ENGINE_DEVICE, 0);
    b->comm = sc_add_stream(b->program, "comm", SC_ENGINE_DEVICE, 1);
    b->group = -1;
}

static void add_buffers(struct builder *b)
{
    b->warm = make_pool(b, "warm", WARM_BYTES);
    b->cold = make_pool(b, "cold", COLD_BYTES);
    b->result = make_pool(b, "result", RESULT_BYTES);
    bool sweeps_come = b->grid->parts.compute && !b->grid->parts.tiny;
    b->moment = make_pool(b, "moment", sweeps_come ? SWEEP_BYTES : MOMENT_BYTES);
    initialize(b, &b->warm);
    initialize(b, &b->cold);
    struct sc_label label = sc_label(b->program, "state");
    uint32_t state = sc_add_buffer(b->program, b->class, label, SC_DEVICE, SC_PERSISTENT, 1,
                                   STATE_WORDS * sizeof(float));
    b->state = sc_add_value(b->program, b->class, label, state, 0, SC_FP32, 1, STATE_WORDS);
    b->program->state_value = b->state;
}

static enum sc_status begin(int64_t ranks, struct builder *b, struct sc_error *err)
{
    static const int64_t nothing[SC_AXIS_COUNT] = {0};
    struct sc_mesh mesh;
    sc_mesh_make(1, 1, ranks, 1, &mesh);
    SC_TRY(sc_program_create(&mesh, &b->program, err));
    snprintf(b->program->name, sizeof(b->program->name), "calibration");
    b->program->global_batch = 1;
    b->program->sequence_length = TOKENS;
    b->program->vocab_size = VOCABULARY;
    b->program->steps_ahead = 2;
    b->program->loss_value = -1;
    b->class = sc_add_class(b->program, "all", 0, nothing);
    if (b->class == NULL) {
        return sc_program_finish(b->program, err);
    }
    b->list = &b->class->step;
    add_streams(b);
    return SC_OK;
}

static enum sc_status prepare(struct sc_program *program, struct sc_error *err)
{
    static const uint64_t unlimited[SC_PLACE_COUNT];
    SC_TRY(sc_program_finish(program, err));
    return sc_program_prepare(program, unlimited, false, err);
}

static enum sc_status build(struct builder *b, struct sc_error *err)
{
    const struct sc_grid_parts parts = b->grid->parts;
    SC_TRY(begin(b->grid->ranks, b, err));
    b->grid->program = b->program;
    add_buffers(b);
    add_input(b);
    if (parts.compute) {
        add_compute(b, parts.tiny);
    }
    if (parts.streaming) {
        add_streaming(b, parts.tiny);
    }
    if (parts.collectives && b->grid->ranks > 1) {
        b->group = sc_add_group(b->program, "data", SC_AXIS_MASK(SC_DATA));
        add_collectives(b, parts.tiny);
    }
    touch(b, warm(b, 1, 64)); /* the last operation timed ends where another begins */
    return prepare(b->program, err);
}

enum sc_status sc_grid_create(int64_t ranks, int64_t cores, struct sc_grid_parts parts,
                              struct sc_grid *out, struct sc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->ranks = ranks;
    out->cores = cores;
    out->parts = parts;
    struct builder b = {.grid = out};
    enum sc_status status = build(&b, err);
    if (status != SC_OK) {
        sc_program_destroy(&b.program);
        out->program = NULL;
        sc_grid_free(out);
    }
    return status;
}

void sc_grid_free(struct sc_grid *grid)
{
    sc_program_destroy(&grid->program);
    sc_array_free(&grid->probes);
}

/* ---- measuring --------------------------------------------------------------------------- */

/* When each operation began and ended, by rank and step. */
struct watch {
    double *begin, *end;
    int64_t steps;
    size_t ops;
};

static size_t place(const struct watch *watch, int64_t rank, int64_t step, uint32_t index)
{
    return ((size_t)rank * (size_t)watch->steps + (size_t)step) * watch->ops + index;
}

static void note_begin(void *context, struct sc_device *device, int64_t rank, int64_t step,
                       uint32_t index)
{
    struct watch *watch = context;
    (void)device;
    watch->begin[place(watch, rank, step, index)] = sc_clock();
}

static void note_end(void *context, struct sc_device *device, int64_t rank, int64_t step,
                     uint32_t index)
{
    struct watch *watch = context;
    (void)device;
    watch->end[place(watch, rank, step, index)] = sc_clock();
}

/* Times of operation `index` of all ranks in one step. */
static double latest(const struct watch *watch, const double *times, int64_t ranks, int64_t step,
                     uint32_t index)
{
    double most = 0.0;
    for (int64_t r = 0; r < ranks; r++) {
        double time = times[place(watch, r, step, index)];
        most = time > most ? time : most;
    }
    return most;
}

static bool has_collective(const struct sc_probe *probe)
{
    return probe->family == SC_PROBE_COLLECTIVE || probe->family == SC_PROBE_BESIDE;
}

/* What of a probe is sampled, of one rank in one step. */
typedef double sample_fn(const struct watch *watch, int64_t ranks, int64_t rank, int64_t step,
                         const struct sc_probe *probe);

/* From the start of the operation, or from the end of the one before it: a chain of products waits
 * for no other rank. */
static double whole_time(const struct watch *watch, int64_t ranks, int64_t rank, int64_t step,
                         const struct sc_probe *probe)
{
    const double *times = probe->from_end ? watch->end : watch->begin;
    double from = times[place(watch, rank, step, probe->from)];
    (void)ranks;
    return watch->begin[place(watch, rank, step, probe->to)] - from;
}

/* The collective alone: from its last arrival. */
static double transfer_time(const struct watch *watch, int64_t ranks, int64_t rank, int64_t step,
                            const struct sc_probe *probe)
{
    return watch->end[place(watch, rank, step, probe->op)] -
           latest(watch, watch->begin, ranks, step, probe->op);
}

static double wait_before(const struct watch *watch, int64_t ranks, int64_t rank, int64_t step,
                          const struct sc_probe *probe)
{
    (void)ranks;
    return watch->begin[place(watch, rank, step, probe->op)] -
           watch->end[place(watch, rank, step, probe->from)];
}

static double wait_after(const struct watch *watch, int64_t ranks, int64_t rank, int64_t step,
                         const struct sc_probe *probe)
{
    (void)ranks;
    return watch->begin[place(watch, rank, step, probe->to)] -
           watch->end[place(watch, rank, step, probe->op)];
}

/* A step in which something else happened takes so many times the median. */
#define FAR_OUT 2.0

/* Of one rank's samples, which get sorted. */
static double usual(double *samples, size_t count)
{
    double limit = FAR_OUT * sc_fit_quantile(samples, count, 0.5), sum = 0.0;
    size_t used = 0;
    while (used < count && (samples[used] <= limit || used == 0)) {
        sum += samples[used++];
    }
    return sum / (double)used;
}

struct sampled {
    double usual, median, spread;
};

static enum sc_status sample(const struct watch *watch, int64_t ranks, const struct sc_probe *probe,
                             sample_fn *function, struct sampled *out, struct sc_error *err)
{
    size_t steps = (size_t)(watch->steps - WARMUP_STEPS), count = (size_t)ranks * steps;
    double *samples = malloc(count * sizeof(*samples));
    if (samples == NULL) {
        return sc_fail_memory(err, count * sizeof(*samples));
    }
    memset(out, 0, sizeof(*out));
    for (int64_t r = 0; r < ranks; r++) {
        double *mine = samples + (size_t)r * steps;
        for (size_t s = 0; s < steps; s++) {
            mine[s] = function(watch, ranks, r, WARMUP_STEPS + (int64_t)s, probe);
        }
        out->usual += usual(mine, steps) / (double)ranks;
    }
    double low = sc_fit_quantile(samples, count, 0.1), high = sc_fit_quantile(samples, count, 0.9);
    out->median = sc_fit_quantile(samples, count, 0.5);
    out->spread = out->median > 0.0 ? (high - low) / out->median : 0.0;
    free(samples);
    return SC_OK;
}

static enum sc_status summarize(const struct watch *watch, int64_t ranks, struct sc_probe *probe,
                                struct sc_error *err)
{
    struct sampled sampled;
    if (has_collective(probe)) {
        SC_TRY(sample(watch, ranks, probe, transfer_time, &sampled, err));
        probe->transfer_s = sampled.median;
    }
    if (probe->family == SC_PROBE_COLLECTIVE) {
        probe->seconds = probe->transfer_s;
        probe->spread = sampled.spread;
        SC_TRY(sample(watch, ranks, probe, wait_before, &sampled, err));
        probe->wait_before_s = sampled.median;
        SC_TRY(sample(watch, ranks, probe, wait_after, &sampled, err));
        probe->wait_after_s = sampled.median;
        return SC_OK;
    }
    SC_TRY(sample(watch, ranks, probe, whole_time, &sampled, err));
    bool beside = probe->family == SC_PROBE_CHAIN || probe->family == SC_PROBE_BESIDE;
    probe->seconds = beside ? sampled.median : sampled.usual;
    probe->spread = sampled.spread;
    return SC_OK;
}

static enum sc_status run_watched(struct sc_grid *grid, struct watch *watch, char *machine,
                                  size_t machine_size, struct sc_error *err)
{
    struct sc_run_options options;
    struct sc_run_result result;
    sc_run_options_neutral(&options);
    options.warmup = WARMUP_STEPS;
    options.steps = watch->steps - WARMUP_STEPS;
    options.cores = grid->cores;
    options.transport = grid->transport;
    options.observer = (struct sc_observer){note_begin, note_end, watch, true};
    SC_TRY(sc_run(grid->program, &options, &result, err));
    snprintf(machine, machine_size, "%s", result.machine);
    sc_run_result_free(&result);
    return SC_OK;
}

/* A process saw its own rank: its times, by the clock of process 0, go there. */
static enum sc_status gather_times(struct sc_process *process, const struct watch *watch,
                                   double *times, struct sc_error *err)
{
    size_t count = (size_t)watch->steps * watch->ops;
    double offset = sc_process_clock_offset(process), *mine = malloc(count * sizeof(*mine));
    if (mine == NULL) {
        return sc_fail_memory(err, count * sizeof(*mine));
    }
    for (size_t i = 0; i < count; i++) {
        mine[i] = times[(size_t)process->index * count + i] + offset;
    }
    enum sc_status status = sc_process_gather(process, mine, count * sizeof(*mine), times, err);
    free(mine);
    return status;
}

static enum sc_status gather_watch(const struct sc_grid *grid, struct watch *watch, bool *root,
                                   struct sc_error *err)
{
    struct sc_process process;
    *root = true;
    if (grid->transport == SC_TRANSPORT_THREADS) {
        return SC_OK;
    }
    SC_TRY(sc_process_mpi(&process, err));
    *root = process.index == 0;
    SC_TRY(gather_times(&process, watch, watch->begin, err));
    return gather_times(&process, watch, watch->end, err);
}

enum sc_status sc_grid_measure(struct sc_grid *grid, int64_t steps, char *machine,
                               size_t machine_size, struct sc_error *err)
{
    struct watch watch = {.steps = steps + WARMUP_STEPS,
                          .ops = grid->program->classes.items[0].step.ops.count};
    size_t count = (size_t)(grid->ranks * watch.steps) * watch.ops;
    watch.begin = calloc(count, sizeof(double));
    watch.end = calloc(count, sizeof(double));
    enum sc_status status = SC_OK;
    if (watch.begin == NULL || watch.end == NULL) {
        status = sc_fail_memory(err, 2 * count * sizeof(double));
    }
    if (status == SC_OK) {
        status = run_watched(grid, &watch, machine, machine_size, err);
    }
    bool root = false;
    if (status == SC_OK) {
        status = gather_watch(grid, &watch, &root, err);
    }
    for (size_t i = 0; status == SC_OK && root && i < grid->probes.count; i++) {
        status = summarize(&watch, grid->ranks, &grid->probes.items[i], err);
    }
    free(watch.begin);
    free(watch.end);
    return status;
}

enum sc_status sc_grid_measure_issue(int64_t ranks, int64_t cores, double *out,
                                     struct sc_error *err)
{
    struct sc_grid grid = {.ranks = ranks, .cores = cores};
    struct builder b = {.grid = &grid};
    struct sc_run_options options;
    struct sc_run_result result;
    enum sc_status status = begin(ranks, &b, err);
    if (status == SC_OK) {
        b.warm = make_pool(&b, "warm", SC_ALIGN);
        for (int i = 0; i < EMPTY_OPS; i++) {
            touch(&b, warm(&b, 1, 1));
        }
        status = prepare(b.program, err);
    }
    sc_run_options_neutral(&options);
    options.steps = 20;
    options.cores = cores;
    if (status == SC_OK) {
        status = sc_run(b.program, &options, &result, err);
    }
    if (status == SC_OK) {
        *out = result.step_time_s / EMPTY_OPS;
        sc_run_result_free(&result);
    }
    sc_program_destroy(&b.program);
    return status;
}
