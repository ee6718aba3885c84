/*
 * The hash of a program (SHA-256, FIPS 180-4, by libmd): kinds, operands, values, streams, groups
 * and labels of every class, as lowered. Addresses, waits and parameters are not in it, so that
 * traces of different machines compare.
 */
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plans/program.h"

enum { WORDS = 512 };

/* Words collected before they go into the hash, most significant byte first. */
struct hasher {
    const struct sc_program *program;
    uint32_t *seen; /* [names]: number of the mention; 0: not yet */
    uint32_t mentioned;
    SHA2_CTX context;
    size_t used;
    uint8_t bytes[WORDS * 8];
};

static void flush(struct hasher *hasher)
{
    SHA256Update(&hasher->context, hasher->bytes, hasher->used);
    hasher->used = 0;
}

static void put(struct hasher *hasher, uint64_t word)
{
    if (hasher->used == sizeof(hasher->bytes)) {
        flush(hasher);
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        hasher->bytes[hasher->used++] = (uint8_t)(word >> shift);
    }
}

static void put_text(struct hasher *hasher, const char *text)
{
    size_t length = strlen(text);
    put(hasher, length);
    flush(hasher);
    SHA256Update(&hasher->context, (const uint8_t *)text, length);
}

/* A name goes in as its text where it is first mentioned, later as the number of that mention:
 * names that the program holds and no label uses make no difference. */
static void put_name(struct hasher *hasher, uint32_t name)
{
    if (hasher->seen[name] == 0) {
        hasher->seen[name] = ++hasher->mentioned;
        put_text(hasher, hasher->program->names.items[name]);
    } else {
        put(hasher, hasher->seen[name]);
    }
}

static void put_label(struct hasher *hasher, struct sc_label label)
{
    put_name(hasher, label.name);
    put(hasher, label.pass);
    put(hasher, (uint64_t)(uint16_t)label.layer << 32 |
                    (uint64_t)(uint16_t)label.micro_batch << 16 | (uint16_t)label.piece);
}

static void put_streams(struct hasher *hasher, const struct sc_program *program)
{
    put(hasher, program->streams.count);
    for (size_t i = 0; i < program->streams.count; ++i) {
        put_text(hasher, program->streams.items[i].name);
        put(hasher, program->streams.items[i].engine);
    }
    put(hasher, program->groups.count);
    for (size_t i = 0; i < program->groups.count; ++i) {
        put_text(hasher, program->groups.items[i].name);
        put(hasher, program->groups.items[i].axis_mask);
        put(hasher, (uint64_t)program->groups.items[i].size);
    }
}

static void put_buffer(struct hasher *hasher, const struct sc_buffer *buffer)
{
    put_label(hasher, buffer->label);
    put(hasher, (uint64_t)buffer->place << 32 | (uint64_t)buffer->lifetime << 16 |
                    (uint64_t)buffer->versions << 8 | (uint64_t)buffer->token);
    put(hasher, buffer->bytes);
}

static void put_value(struct hasher *hasher, const struct sc_value *value)
{
    put_label(hasher, value->label);
    put(hasher,
        (uint64_t)value->buffer << 32 | (uint64_t)value->dtype << 16 | (uint8_t)value->shard_axis);
    put(hasher, value->offset);
    put(hasher, (uint64_t)value->rows);
    put(hasher, (uint64_t)value->cols);
    put(hasher, (uint64_t)value->row_stride);
    put(hasher, value->shard_stride);
}

static void put_list(struct hasher *hasher, const struct sc_list *list)
{
    put(hasher, list->ops.count);
    for (size_t i = 0; i < list->ops.count; ++i) {
        const struct sc_op *op = &list->ops.items[i];
        put(hasher, (uint64_t)op->kind << 48 | (uint64_t)op->operands << 32 |
                        (uint64_t)op->stream << 16 | (uint16_t)op->group);
        put_label(hasher, op->label);
        for (uint32_t j = 0; j < op->operands; ++j) {
            const struct sc_operand *operand = &list->operands.items[op->first_operand + j];
            put(hasher, (uint64_t)operand->value << 32 | (uint64_t)operand->role << 16 |
                            (uint64_t)operand->access << 8 | operand->version);
        }
    }
}

static void put_class(struct hasher *hasher, const struct sc_class *class)
{
    put_text(hasher, class->name);
    put(hasher, class->fixed_mask);
    for (int axis = 0; axis < SC_AXIS_COUNT; ++axis) {
        put(hasher, (uint64_t) class->coordinate[axis]);
    }
    put(hasher, class->buffers.count);
    for (size_t i = 0; i < class->buffers.count; ++i) {
        put_buffer(hasher, &class->buffers.items[i]);
    }
    put(hasher, class->values.count);
    for (size_t i = 0; i < class->values.count; ++i) {
        put_value(hasher, &class->values.items[i]);
    }
    put_list(hasher, &class->init);
    put_list(hasher, &class->step);
}

enum sc_status sc_program_hash(const struct sc_program *program, char out[SC_HASH_SIZE],
                               struct sc_error *err)
{
    struct hasher hasher = {.program = program};
    char hex[SHA256_DIGEST_STRING_LENGTH];
    hasher.seen = calloc(program->names.count + 1, sizeof(*hasher.seen));
    if (hasher.seen == NULL) {
        return sc_fail_memory(err, program->names.count * sizeof(*hasher.seen));
    }
    SHA256Init(&hasher.context);
    put_streams(&hasher, program);
    put(&hasher, program->classes.count);
    for (size_t i = 0; i < program->classes.count; ++i) {
        put_class(&hasher, &program->classes.items[i]);
    }
    flush(&hasher);
    SHA256End(&hasher.context, hex);
    free(hasher.seen);
    snprintf(out, SC_HASH_SIZE, "sha256:%s", hex);
    return SC_OK;
}
