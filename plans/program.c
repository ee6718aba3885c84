/* Building a step program: classes, streams, groups, buffers, values, operations. */
#include "plans/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plans/program_builder.h"

enum { FIRST_SLOTS = 4096, MAX_STREAMS = 64, MAX_OPERANDS = 255 };

const char *const sc_place_names[SC_PLACE_COUNT + 1] = {"device", "pinned", "host", "disk", NULL};

void sc_builder_fail(struct sc_program *program, enum sc_status status, const char *format, ...)
{
    struct sc_builder *builder = sc_builder_of(program);
    if (program->failed != SC_OK) {
        return;
    }
    program->failed = status;
    va_list args;
    va_start(args, format);
    vsnprintf(builder->reason, sizeof(builder->reason), format, args);
    va_end(args);
}

static void fail_memory(struct sc_program *program)
{
    sc_builder_fail(program, SC_NO_MEMORY, "out of memory while building a program");
}

enum sc_status sc_program_create(const struct sc_mesh *mesh, struct sc_program **out,
                                 struct sc_error *err)
{
    struct sc_program *program = calloc(1, sizeof(*program));
    struct sc_builder *builder = calloc(1, sizeof(*builder));
    uint32_t *slots = calloc(FIRST_SLOTS, sizeof(*slots));
    if (program == NULL || builder == NULL || slots == NULL) {
        free(program);
        free(builder);
        free(slots);
        return sc_fail_memory(err, sizeof(*program));
    }
    builder->slots = slots;
    builder->slot_count = FIRST_SLOTS;
    program->intern_table = builder;
    program->mesh = *mesh;
    program->steps_ahead = 2;
    program->loss_value = -1;
    program->exact = true;
    sc_intern(program, ""); /* number 0: no name */
    if (program->failed != SC_OK) {
        sc_program_destroy(&program);
        return sc_fail_memory(err, sizeof(*program));
    }
    *out = program;
    return SC_OK;
}

static void free_list(struct sc_list *list)
{
    sc_array_free(&list->ops);
    sc_array_free(&list->operands);
    sc_array_free(&list->waits);
}

static void free_class(struct sc_class *class)
{
    sc_array_free(&class->buffers);
    sc_array_free(&class->values);
    free_list(&class->init);
    free_list(&class->step);
    sc_array_free(&class->segments);
}

static void free_builder(struct sc_builder *builder)
{
    free(builder->slots);
    free_class(&builder->spare_class);
    sc_array_free(&builder->forms);
    sc_array_free(&builder->pool);
    sc_array_free(&builder->renamed);
    sc_array_free(&builder->form_slots);
    free(builder);
}

void sc_program_destroy(struct sc_program **program)
{
    struct sc_program *p = *program;
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->classes.count; ++i) {
        free_class(&p->classes.items[i]);
    }
    sc_array_free(&p->classes);
    sc_array_free(&p->streams);
    sc_array_free(&p->groups);
    sc_array_free(&p->tensors);
    sc_array_free(&p->blocks);
    sc_array_free(&p->parameters);
    sc_array_free(&p->ranges);
    sc_array_free(&p->names);
    sc_arena_free(&p->arena);
    free_builder(p->intern_table);
    free(p);
    *program = NULL;
}

enum sc_status sc_program_finish(struct sc_program *program, struct sc_error *err)
{
    if (program->failed != SC_OK) {
        return sc_fail(err, program->failed, "%s", sc_builder_of(program)->reason);
    }
    return sc_program_check(program, err);
}

/* ---- names ------------------------------------------------------------------------------- */

/* FNV-1a over words of eight bytes; the last one is filled up with zeros. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u, word;
    size_t length = strlen(text);
    for (; length >= sizeof(word); length -= sizeof(word), text += sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, length);
    hash = (hash ^ word) * 1099511628211u;
    return hash ^ hash >> 29;
}

/* The slot that holds the text, or the free one where it belongs. */
static size_t find_slot(const struct sc_program *program, const struct sc_builder *builder,
                        const char *text)
{
    size_t mask = builder->slot_count - 1, at = hash_text(text) & mask;
    while (builder->slots[at] != 0 &&
           strcmp(program->names.items[builder->slots[at] - 1], text) != 0) {
        at = (at + 1) & mask;
    }
    return at;
}

static bool grow_slots(struct sc_program *program, struct sc_builder *builder)
{
    uint32_t *grown = calloc(builder->slot_count * 2, sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    free(builder->slots);
    builder->slots = grown;
    builder->slot_count *= 2;
    for (size_t i = 0; i < program->names.count; ++i) {
        builder->slots[find_slot(program, builder, program->names.items[i])] = (uint32_t)i + 1;
    }
    return true;
}

uint32_t sc_intern(struct sc_program *program, const char *text)
{
    struct sc_builder *builder = sc_builder_of(program);
    size_t at = find_slot(program, builder, text);
    if (builder->slots[at] != 0) {
        return builder->slots[at] - 1;
    }
    char *copy = sc_arena_strdup(&program->arena, text);
    const char **name = copy != NULL ? sc_array_push(&program->names) : NULL;
    if (name == NULL) {
        fail_memory(program);
        return 0;
    }
    *name = copy;
    builder->slots[at] = (uint32_t)program->names.count;
    if (program->names.count * 2 > builder->slot_count && !grow_slots(program, builder)) {
        fail_memory(program);
    }
    return (uint32_t)program->names.count - 1;
}

struct sc_label sc_label(struct sc_program *program, const char *name)
{
    return (struct sc_label){.name = sc_intern(program, name),
                             .layer = -1,
                             .micro_batch = -1,
                             .piece = -1,
                             .pass = SC_PASS_NONE};
}

/* ---- classes, streams, groups ------------------------------------------------------------ */

/* The array of names may move while it grows, so it is read after the call. */
static const char *interned(struct sc_program *program, const char *text)
{
    uint32_t number = sc_intern(program, text);
    return program->names.items[number];
}

struct sc_class *sc_add_class(struct sc_program *program, const char *name, unsigned fixed_mask,
                              const int64_t coordinate[SC_AXIS_COUNT])
{
    struct sc_class *class = sc_array_push(&program->classes);
    if (class == NULL) {
        fail_memory(program);
        return &sc_builder_of(program)->spare_class;
    }
    class->name = interned(program, name);
    class->fixed_mask = fixed_mask;
    class->ranks = program->mesh.ranks;
    for (int axis = 0; axis < SC_AXIS_COUNT; ++axis) {
        if (fixed_mask & SC_AXIS_MASK(axis)) {
            class->coordinate[axis] = coordinate[axis];
            class->ranks /= program->mesh.size[axis];
        }
    }
    return class;
}

int sc_add_stream(struct sc_program *program, const char *name, enum sc_engine engine, int priority)
{
    if (program->streams.count >= MAX_STREAMS) {
        sc_builder_fail(program, SC_BUG, "stream \"%s\": a program has at most %d", name,
                        MAX_STREAMS);
        return 0;
    }
    struct sc_stream *stream = sc_array_push(&program->streams);
    if (stream == NULL) {
        fail_memory(program);
        return 0;
    }
    stream->name = interned(program, name);
    stream->engine = engine;
    stream->priority = priority;
    return (int)program->streams.count - 1;
}

int sc_add_group(struct sc_program *program, const char *name, unsigned axis_mask)
{
    struct sc_group *group =
        program->groups.count < INT16_MAX ? sc_array_push(&program->groups) : NULL;
    if (group == NULL) {
        fail_memory(program);
        return 0;
    }
    group->name = interned(program, name);
    group->axis_mask = axis_mask;
    group->size = sc_mesh_group_size(&program->mesh, axis_mask);
    return (int)program->groups.count - 1;
}

/* ---- buffers and values ------------------------------------------------------------------ */

static void fail_label(struct sc_program *program, struct sc_label label, const char *what)
{
    char text[SC_OP_TEXT];
    sc_builder_fail(program, SC_BUG, "\"%s\": %s",
                    sc_label_text(program, label, text, sizeof(text)), what);
}

uint32_t sc_add_buffer(struct sc_program *program, struct sc_class *class, struct sc_label label,
                       enum sc_place place, enum sc_lifetime lifetime, int versions, uint64_t bytes)
{
    if (bytes == 0 || bytes > INT64_MAX / 4 || versions < 1 || versions > 2) {
        fail_label(program, label, "a buffer has 1 byte or more, and 1 or 2 versions");
        return 0;
    }
    struct sc_buffer *buffer =
        class->buffers.count < UINT32_MAX ? sc_array_push(&class->buffers) : NULL;
    if (buffer == NULL) {
        fail_memory(program);
        return 0;
    }
    buffer->label = label;
    buffer->place = place;
    buffer->lifetime = lifetime;
    buffer->versions = (uint8_t)versions;
    buffer->bytes = bytes;
    return (uint32_t) class->buffers.count - 1;
}

static uint32_t push_value(struct sc_program *program, struct sc_class *class,
                           const struct sc_value *value)
{
    struct sc_value *item = class->values.count < UINT32_MAX ? sc_array_push(&class->values) : NULL;
    if (item == NULL) {
        fail_memory(program);
        return 0;
    }
    *item = *value;
    return (uint32_t) class->values.count - 1;
}

/* offset + rows x cols elements lie inside `bytes`. */
static bool fits(uint64_t offset, int64_t rows, int64_t cols, uint32_t element, uint64_t bytes)
{
    uint64_t size;
    return rows > 0 && cols > 0 && sc_mul_u64((uint64_t)rows, (uint64_t)cols, &size) &&
           sc_mul_u64(size, element, &size) && sc_add_u64(size, offset, &size) && size <= bytes;
}

uint32_t sc_add_value(struct sc_program *program, struct sc_class *class, struct sc_label label,
                      uint32_t buffer, uint64_t offset, enum sc_dtype dtype, int64_t rows,
                      int64_t cols)
{
    uint32_t element = sc_dtype_bytes(dtype);
    if (buffer >= class->buffers.count || class->buffers.items[buffer].token) {
        fail_label(program, label, "a value needs a buffer with bytes");
        return 0;
    }
    if (!fits(offset, rows, cols, element, class->buffers.items[buffer].bytes) ||
        offset % element != 0) {
        fail_label(program, label, "a value lies inside its buffer, aligned to its element");
        return 0;
    }
    struct sc_value *value =
        class->values.count < UINT32_MAX ? sc_array_push(&class->values) : NULL;
    if (value == NULL) {
        fail_memory(program);
        return 0;
    }
    value->label = label;
    value->buffer = buffer;
    value->dtype = dtype;
    value->offset = offset;
    value->rows = rows;
    value->cols = value->row_stride = cols;
    value->shard_axis = -1;
    return (uint32_t) class->values.count - 1;
}

uint32_t sc_add_view(struct sc_program *program, struct sc_class *class, struct sc_label label,
                     uint32_t of, int64_t first_row, int64_t rows, int64_t first_col, int64_t cols)
{
    if (of >= class->values.count) {
        fail_label(program, label, "a view needs a value");
        return 0;
    }
    struct sc_value view = class->values.items[of];
    if (first_row < 0 || rows < 1 || first_row > view.rows - rows || first_col < 0 || cols < 1 ||
        first_col > view.cols - cols) {
        fail_label(program, label, "a view lies inside its value");
        return 0;
    }
    view.label = label;
    view.offset += (uint64_t)(first_row * view.row_stride + first_col) * sc_dtype_bytes(view.dtype);
    view.rows = rows;
    view.cols = cols;
    return push_value(program, class, &view);
}

uint32_t sc_add_shard(struct sc_program *program, struct sc_class *class, struct sc_label label,
                      uint32_t of, enum sc_axis axis)
{
    if (of >= class->values.count) {
        fail_label(program, label, "a shard needs a value");
        return 0;
    }
    struct sc_value shard = class->values.items[of];
    int64_t pieces = program->mesh.size[axis], elements = shard.rows * shard.cols;
    bool dense = shard.rows == 1 || shard.row_stride == shard.cols;
    uint64_t stride = (uint64_t)(elements / pieces) * sc_dtype_bytes(shard.dtype);
    shard.label = label;
    if (pieces == 1) { /* the whole value, in every respect */
        return push_value(program, class, &shard);
    }
    if (!dense || shard.shard_axis >= 0 || elements % pieces != 0 || stride % SC_ALIGN != 0 ||
        shard.offset % SC_ALIGN != 0) {
        fail_label(program, label,
                   "a shard is cut from an aligned dense run into equal multiples of 256 bytes");
        return 0;
    }
    shard.shard_axis = (int8_t)axis;
    shard.shard_stride = stride;
    if (shard.rows % pieces == 0) {
        shard.rows /= pieces;
    } else {
        shard.rows = 1;
        shard.cols = elements / pieces;
    }
    shard.row_stride = shard.cols;
    return push_value(program, class, &shard);
}

uint32_t sc_add_token(struct sc_program *program, struct sc_class *class, struct sc_label label)
{
    struct sc_buffer *buffer =
        class->buffers.count < UINT32_MAX ? sc_array_push(&class->buffers) : NULL;
    if (buffer == NULL) {
        fail_memory(program);
        return 0;
    }
    buffer->label = label;
    buffer->lifetime = SC_PERSISTENT;
    buffer->versions = 1;
    buffer->token = true;
    return push_value(program, class,
                      &(struct sc_value){.label = label,
                                         .buffer = (uint32_t) class->buffers.count - 1,
                                         .dtype = SC_UINT8,
                                         .shard_axis = -1});
}

/* ---- operations -------------------------------------------------------------------------- */

struct sc_op *sc_add_op(struct sc_program *program, struct sc_list *list, enum sc_op_kind kind,
                        int stream, int group, struct sc_label label)
{
    struct sc_op *op = NULL;
    if (stream < 0 || (size_t)stream >= program->streams.count || group < -1 ||
        (group >= 0 && (size_t)group >= program->groups.count)) {
        fail_label(program, label, "an op names a stream, and a group or -1, of its program");
    } else {
        op = list->ops.count < UINT32_MAX / 8 ? sc_array_push(&list->ops) : NULL;
        if (op == NULL) {
            fail_memory(program);
        }
    }
    if (op == NULL) {
        return &sc_builder_of(program)->spare_op;
    }
    op->kind = (uint8_t)kind;
    op->stream = (uint8_t)stream;
    op->group = (int16_t)group;
    op->label = label;
    op->first_operand = (uint32_t)list->operands.count;
    return op;
}

void sc_add_operand_version(struct sc_program *program, struct sc_list *list, enum sc_role role,
                            enum sc_access access, uint32_t value, enum sc_version version)
{
    if (list->ops.count == 0) {
        sc_builder_fail(program, SC_BUG, "operand \"%s\" added before any op", sc_role_name(role));
        return;
    }
    struct sc_op *op = &list->ops.items[list->ops.count - 1];
    if (op->operands == MAX_OPERANDS) {
        fail_label(program, op->label, "an op has at most 255 operands");
        return;
    }
    struct sc_operand *operand =
        list->operands.count < UINT32_MAX ? sc_array_push(&list->operands) : NULL;
    if (operand == NULL) {
        fail_memory(program);
        return;
    }
    *operand = (struct sc_operand){.value = value,
                                   .role = (uint8_t)role,
                                   .access = (uint8_t)access,
                                   .version = (uint8_t)version};
    ++op->operands;
}

void sc_add_operand(struct sc_program *program, struct sc_list *list, enum sc_role role,
                    enum sc_access access, uint32_t value)
{
    sc_add_operand_version(program, list, role, access, value, SC_NOW);
}
