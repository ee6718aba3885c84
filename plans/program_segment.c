/*
 * Signatures of segments. The canonical form of a segment is a list of 64-bit words: what each op
 * is and does, with everything that only names a place in the program (value numbers, layer,
 * micro-batch, dropout site, first rows) written relative to the segment's first mention of it. Two
 * segments have one signature when their forms are equal word by word; the hash only finds the
 * candidates.
 */
#include <string.h>

#include "plans/program.h"
#include "plans/program_builder.h"

/* Firsts that later mentions are counted from. */
enum base {
    BASE_LAYER,
    BASE_MICRO_BATCH,
    BASE_SITE,
    BASE_BATCH_INDEX,
    BASE_HEAD_INDEX,
    BASE_ROW,
    BASE_SEQUENCE,
    BASE_FLAT,
    BASE_INITIALIZE,
    BASE_COUNT
};

struct writer {
    struct sc_program *program;
    const struct sc_class *class;
    struct sc_builder *builder;
    bool known[BASE_COUNT];
    int64_t base[BASE_COUNT];
    uint32_t values;
    uint64_t *next; /* in the pool, while an op is written */
    bool failed;
};

/* Room for an op's words was made before (make_room). */
static void put(struct writer *writer, uint64_t word)
{
    *writer->next++ = word;
}

static void put_double(struct writer *writer, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof(word));
    put(writer, word);
}

/* The distance from the segment's first number of this sort. */
static int64_t relative(struct writer *writer, enum base sort, int64_t number)
{
    if (!writer->known[sort]) {
        writer->known[sort] = true;
        writer->base[sort] = number;
    }
    return number - writer->base[sort];
}

static void put_relative(struct writer *writer, enum base sort, int64_t number)
{
    put(writer, (uint64_t)relative(writer, sort, number));
}

static void put_index(struct writer *writer, enum base sort, const struct sc_index *index)
{
    put_relative(writer, sort, index->base);
    put(writer, (uint64_t)index->stride);
    put(writer, (uint64_t)index->axis);
}

/* -1 stays apart from every distance. */
static uint64_t place_of(struct writer *writer, enum base sort, int16_t number)
{
    return number < 0 ? 0xffff : (uint64_t)(relative(writer, sort, number) + 0x8000) & 0x1ffff;
}

static void put_label(struct writer *writer, struct sc_label label)
{
    put(writer, (uint64_t)label.name << 32 | (uint64_t)(uint16_t)label.piece << 16 | label.pass);
    put(writer, place_of(writer, BASE_LAYER, label.layer) << 32 |
                    place_of(writer, BASE_MICRO_BATCH, label.micro_batch));
}

/* ---- parameters -------------------------------------------------------------------------- */

static void put_attention(struct writer *writer, const union sc_parameters *p)
{
    put(writer, (uint64_t)p->attention.batch);
    put(writer, (uint64_t)p->attention.sequence);
    put(writer, (uint64_t)(uint32_t)p->attention.heads << 32 | (uint32_t)p->attention.kv_heads);
    put(writer, (uint64_t)(uint32_t)p->attention.head_size << 32 |
                    (uint64_t)p->attention.transpose_a << 1 | (uint64_t)p->attention.transpose_b);
    put_double(writer, p->attention.scale);
    put_double(writer, p->attention.probability);
    put_relative(writer, BASE_SITE, p->attention.site);
    put_index(writer, BASE_BATCH_INDEX, &p->attention.batch_index);
    put_index(writer, BASE_HEAD_INDEX, &p->attention.head_index);
    put(writer, (uint64_t)p->attention.total_heads);
}

static void put_dropout(struct writer *writer, const union sc_parameters *p)
{
    put_double(writer, p->dropout.probability);
    put_relative(writer, BASE_SITE, p->dropout.site);
    put_index(writer, BASE_ROW, &p->dropout.row);
    put(writer, (uint64_t)p->dropout.heads);
    put(writer, (uint64_t)p->dropout.sequence);
    put_index(writer, BASE_HEAD_INDEX, &p->dropout.head_index);
    put(writer, (uint64_t)p->dropout.total_heads);
}

static void put_flat(struct writer *writer, const union sc_parameters *p)
{
    put_double(writer, p->flat.beta1);
    put_double(writer, p->flat.beta2);
    put_double(writer, p->flat.epsilon);
    put_double(writer, p->flat.weight_decay);
    put_index(writer, BASE_FLAT, &p->flat.shard);
    put(writer, p->flat.ranges);
    for (uint32_t i = 0; i < p->flat.ranges; ++i) {
        uint64_t at = (uint64_t)p->flat.first_range + i;
        if (at >= writer->program->ranges.count) {
            return;
        }
        const struct sc_flat_range *range = &writer->program->ranges.items[at];
        put_relative(writer, BASE_FLAT, range->first);
        put(writer, (uint64_t)range->count);
        put_double(writer, range->weight);
        put(writer, range->decay);
    }
}

static void put_scalar(struct writer *writer, const union sc_parameters *p)
{
    put(writer, p->scalar.work);
    put_double(writer, p->scalar.clip);
    put(writer, p->scalar.advance.schedule);
    put_double(writer, p->scalar.advance.learning_rate);
    put_double(writer, p->scalar.advance.minimum_learning_rate);
    put_double(writer, p->scalar.advance.beta1);
    put_double(writer, p->scalar.advance.beta2);
    put(writer, (uint64_t)p->scalar.advance.warmup_steps);
    put(writer, (uint64_t)p->scalar.advance.decay_steps);
    put(writer, p->scalar.advance.seed);
}

static void put_rope(struct writer *writer, const union sc_parameters *p)
{
    put(writer, (uint64_t)p->rope.sequence);
    put(writer, (uint64_t)(uint32_t)p->rope.heads << 32 | (uint32_t)p->rope.kv_heads);
    put(writer, (uint64_t)(uint32_t)p->rope.head_size << 1 | (uint64_t)p->rope.inverse);
    put_double(writer, p->rope.theta);
}

static void put_cross_entropy(struct writer *writer, const union sc_parameters *p)
{
    put(writer, (uint64_t)p->cross_entropy.vocab_size);
    put(writer, (uint64_t)p->cross_entropy.column.base);
    put(writer, (uint64_t)p->cross_entropy.column.stride);
    put_double(writer, p->cross_entropy.scale);
}

static void put_initialize(struct writer *writer, const union sc_parameters *p)
{
    put(writer, p->initialize.parameters);
    put(writer, p->initialize.seed);
    put_index(writer, BASE_INITIALIZE, &p->initialize.first);
}

static void put_small(struct writer *writer, enum sc_op_kind kind, const union sc_parameters *p)
{
    switch (kind) {
    case SC_GEMM:
        put(writer, (uint64_t)p->gemm.transpose_a << 1 | (uint64_t)p->gemm.transpose_b);
        put_double(writer, p->gemm.alpha);
        break;
    case SC_NORM_FORWARD:
    case SC_NORM_BACKWARD:
        put(writer, p->norm.kind);
        put_double(writer, p->norm.epsilon);
        break;
    case SC_ACTIVATION_FORWARD:
    case SC_ACTIVATION_BACKWARD:
        put(writer, p->activation.kind);
        break;
    case SC_EMBEDDING:
    case SC_EMBEDDING_BACKWARD:
        put(writer, (uint64_t)p->embedding.row.base);
        put(writer, (uint64_t)p->embedding.row.stride);
        break;
    case SC_SCALE:
    case SC_REDUCE_ROWS:
        put_double(writer, p->scale.factor);
        break;
    case SC_NEXT_BATCH:
        put_index(writer, BASE_SEQUENCE, &p->next_batch.sequence);
        put(writer, (uint64_t)p->next_batch.batch);
        put(writer, (uint64_t)p->next_batch.length);
        break;
    default: /* collectives and copies: what they move is in the values */
        put(writer, sc_op_kind_work(kind) == SC_WORK_COLLECTIVE ? p->collective.reduction : 0);
        break;
    }
}

static void put_parameters(struct writer *writer, enum sc_op_kind kind,
                           const union sc_parameters *p)
{
    switch (kind) {
    case SC_BATCHED_GEMM:
    case SC_ATTENTION:
    case SC_ATTENTION_BACKWARD:
    case SC_SOFTMAX:
    case SC_SOFTMAX_BACKWARD:
        put_attention(writer, p);
        break;
    case SC_DROPOUT:
    case SC_DROPOUT_BACKWARD:
        put_dropout(writer, p);
        break;
    case SC_NORM_SQUARES:
    case SC_ADAM:
        put_flat(writer, p);
        break;
    case SC_SCALAR:
        put_scalar(writer, p);
        break;
    case SC_ROPE:
        put_rope(writer, p);
        break;
    case SC_CROSS_ENTROPY_MAX:
    case SC_CROSS_ENTROPY_SUM:
    case SC_CROSS_ENTROPY_LOSS:
        put_cross_entropy(writer, p);
        break;
    case SC_INITIALIZE:
        put_initialize(writer, p);
        break;
    default:
        put_small(writer, kind, p);
        break;
    }
}

/* ---- values and ops ---------------------------------------------------------------------- */

/* The value's number in the segment; *first when it is mentioned for the first time. */
static uint32_t renamed(struct writer *writer, uint32_t value, bool *first)
{
    uint64_t *entry = &writer->builder->renamed.items[value];
    *first = *entry >> 32 != writer->builder->mark;
    if (*first) {
        *entry = (uint64_t)writer->builder->mark << 32 | writer->values++;
    }
    return (uint32_t)*entry;
}

static void put_operand(struct writer *writer, const struct sc_operand *operand)
{
    if (operand->value >= writer->class->values.count) {
        return; /* sc_program_finish says so */
    }
    bool first;
    uint32_t number = renamed(writer, operand->value, &first);
    put(writer, (uint64_t)number << 32 | (uint64_t)operand->role << 16 |
                    (uint64_t)operand->access << 8 | operand->version);
    if (!first) {
        return;
    }
    const struct sc_value *value = &writer->class->values.items[operand->value];
    const struct sc_buffer *buffer = &writer->class->buffers.items[value->buffer];
    put(writer, (uint64_t)value->dtype << 32 | (uint64_t)(uint8_t)value->shard_axis << 16 |
                    (uint64_t)buffer->place << 8 | (uint64_t)buffer->lifetime);
    put(writer, (uint64_t)value->rows);
    put(writer, (uint64_t)value->cols);
    put(writer, (uint64_t)value->row_stride);
}

enum { PARAMETER_WORDS = 24, OPERAND_WORDS = 5, RANGE_WORDS = 4 };

/* Words that an op can take at most. */
static bool make_room(struct writer *writer, const struct sc_op *op)
{
    size_t words = 3 + PARAMETER_WORDS + (size_t)op->operands * OPERAND_WORDS;
    if (op->kind == SC_NORM_SQUARES || op->kind == SC_ADAM) {
        words += (size_t)op->p.flat.ranges * RANGE_WORDS;
    }
    if (!sc_array_reserve(&writer->builder->pool, words)) {
        return false;
    }
    writer->next = writer->builder->pool.items + writer->builder->pool.count;
    return true;
}

static void put_op(struct writer *writer, const struct sc_list *list, const struct sc_op *op)
{
    if (!make_room(writer, op)) {
        writer->failed = true;
        return;
    }
    put(writer, (uint64_t)op->kind << 32 | (uint64_t)op->operands << 24 |
                    (uint64_t)op->stream << 16 | (uint16_t)op->group);
    put_label(writer, op->label);
    for (uint32_t i = 0; i < op->operands; ++i) {
        put_operand(writer, &list->operands.items[op->first_operand + i]);
    }
    put_parameters(writer, op->kind, &op->p);
    writer->builder->pool.count = (size_t)(writer->next - writer->builder->pool.items);
}

/* ---- the table of forms ------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

/* In four lanes, since a multiplication need not wait for another lane's. */
static uint64_t hash_words(const uint64_t *words, size_t count)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, hash = 0x9e3779b97f4a7c15u + count;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        a = mix(a, words[i]);
        b = mix(b, words[i + 1]);
        c = mix(c, words[i + 2]);
        d = mix(d, words[i + 3]);
    }
    for (; i < count; ++i) {
        a = mix(a, words[i]);
    }
    return mix(mix(mix(mix(hash, a), b), c), d);
}

static bool grow_form_slots(struct sc_builder *builder)
{
    size_t size = builder->form_slots.count > 0 ? builder->form_slots.count * 2 : 64;
    builder->form_slots.count = 0;
    if (!sc_array_reserve(&builder->form_slots, size)) {
        return false;
    }
    builder->form_slots.count = size;
    memset(builder->form_slots.items, 0, size * sizeof(uint32_t));
    for (uint32_t i = 0; i < builder->forms.count; ++i) {
        size_t at = builder->forms.items[i].hash & (size - 1);
        while (builder->form_slots.items[at] != 0) {
            at = (at + 1) & (size - 1);
        }
        builder->form_slots.items[at] = i + 1;
    }
    return true;
}

/* Number of the form that is the last `words` words of the pool; the pool keeps it if it is new. */
static bool form_number(struct sc_builder *builder, size_t first, uint32_t *out)
{
    size_t words = builder->pool.count - first;
    uint64_t hash = hash_words(builder->pool.items + first, words);
    if (builder->forms.count * 2 >= builder->form_slots.count && !grow_form_slots(builder)) {
        return false;
    }
    size_t mask = builder->form_slots.count - 1, at = hash & mask;
    for (; builder->form_slots.items[at] != 0; at = (at + 1) & mask) {
        const struct sc_segment_form *form =
            &builder->forms.items[builder->form_slots.items[at] - 1];
        if (form->hash == hash && form->words == words &&
            memcmp(builder->pool.items + form->first, builder->pool.items + first,
                   words * sizeof(uint64_t)) == 0) {
            *out = builder->form_slots.items[at] - 1;
            builder->pool.count = first;
            return true;
        }
    }
    struct sc_segment_form *form = sc_array_push(&builder->forms);
    if (form == NULL) {
        return false;
    }
    *form = (struct sc_segment_form){.hash = hash, .first = first, .words = words};
    builder->form_slots.items[at] = (uint32_t)builder->forms.count;
    *out = (uint32_t)builder->forms.count - 1;
    return true;
}

static bool begin(struct writer *writer)
{
    struct sc_builder *builder = writer->builder;
    size_t values = writer->class->values.count, had = builder->renamed.count;
    if (values > had) {
        if (!sc_array_reserve(&builder->renamed, values - had)) {
            return false;
        }
        memset(builder->renamed.items + had, 0, (values - had) * sizeof(uint64_t));
        builder->renamed.count = values;
    }
    ++builder->mark;
    return true;
}

void sc_mark_segment(struct sc_program *program, struct sc_class *class, uint32_t first,
                     uint32_t end)
{
    struct writer writer = {.program = program, .class = class, .builder = sc_builder_of(program)};
    struct sc_segment segment = {.first_op = first, .ops = end - first};
    if (program->failed != SC_OK) {
        return;
    }
    if (first >= end || end > class->step.ops.count) {
        sc_builder_fail(program, SC_BUG, "segment [%u, %u) of %zu ops", first, end,
                        class->step.ops.count);
        return;
    }
    size_t start = writer.builder->pool.count;
    bool fine = begin(&writer);
    for (uint32_t i = first; fine && i < end; ++i) {
        put_op(&writer, &class->step, &class->step.ops.items[i]);
    }
    struct sc_segment *item = NULL;
    if (fine && !writer.failed && form_number(writer.builder, start, &segment.signature)) {
        item = sc_array_push(&class->segments);
    }
    if (item == NULL) {
        sc_builder_fail(program, SC_NO_MEMORY, "out of memory while marking a segment");
        return;
    }
    *item = segment;
}
