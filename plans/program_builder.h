/*
 * What a program keeps while it is built and nobody reads afterwards: the hash table of names, the
 * reason of the first failure, spare objects that sc_add_* hand out after a failure, and the
 * canonical texts of segments. Internal to plans/program*.c.
 */
#ifndef STEPCAST_PLANS_PROGRAM_BUILDER_H
#define STEPCAST_PLANS_PROGRAM_BUILDER_H

#include "plans/program.h"

/* The canonical form of a segment: `words` 64-bit words in `pool`, from `first`. */
struct sc_segment_form {
    uint64_t hash;
    size_t first, words;
};

struct sc_builder {
    uint32_t *slots; /* name number + 1; 0: free */
    size_t slot_count;
    struct sc_op spare_op;
    struct sc_class spare_class;
    char reason[SC_ERROR_TEXT];
    SC_ARRAY(struct sc_segment_form) forms;
    SC_ARRAY(uint64_t) pool;    /* words of every form, then of the one being written */
    SC_ARRAY(uint64_t) renamed; /* a value: mark << 32 | number in the segment */
    SC_ARRAY(uint32_t) form_slots;
    uint32_t mark;
};

static inline struct sc_builder *sc_builder_of(struct sc_program *program)
{
    return program->intern_table;
}

/* Remembers the first failure. */
void sc_builder_fail(struct sc_program *program, enum sc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks every op of every list against the rules of its kind (program_check.c). */
enum sc_status sc_program_check(const struct sc_program *program, struct sc_error *err);

/* One line that names an op in messages: "op 12 (gemm, layer 0 / mlp.up / forward)". */
enum { SC_OP_TEXT = 192 };
const char *sc_op_text(const struct sc_program *program, const struct sc_list *list, uint32_t op,
                       char out[SC_OP_TEXT]);

#endif
