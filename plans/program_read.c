/* Reading a program: operands, extents, labels, and what an op computes and moves. */
#include <stdio.h>
#include <string.h>

#include "plans/program.h"
#include "plans/program_builder.h"

const struct sc_operand *sc_op_operand(const struct sc_list *list, const struct sc_op *op,
                                       enum sc_role role)
{
    const struct sc_operand *operand = &list->operands.items[op->first_operand];
    for (int i = 0; i < op->operands; ++i) {
        if (operand[i].role == role) {
            return &operand[i];
        }
    }
    return NULL;
}

const struct sc_value *sc_op_value(const struct sc_class *class, const struct sc_list *list,
                                   const struct sc_op *op, enum sc_role role)
{
    const struct sc_operand *operand = sc_op_operand(list, op, role);
    return operand != NULL ? &class->values.items[operand->value] : NULL;
}

uint64_t sc_value_extent(const struct sc_value *value)
{
    if (value->rows < 1 || value->cols < 1) {
        return 0;
    }
    return (uint64_t)((value->rows - 1) * value->row_stride + value->cols) *
           sc_dtype_bytes(value->dtype);
}

uint64_t sc_value_bytes(const struct sc_value *value)
{
    return (uint64_t)(value->rows * value->cols) * sc_dtype_bytes(value->dtype);
}

int64_t sc_index_at(const struct sc_index *index, const int64_t coordinates[SC_AXIS_COUNT])
{
    return index->axis < 0 ? index->base : index->base + index->stride * coordinates[index->axis];
}

/* ---- labels ------------------------------------------------------------------------------ */

static const char *const pass_names[] = {
    [SC_PASS_NONE] = NULL,
    [SC_PASS_FORWARD] = "forward",
    [SC_PASS_RECOMPUTE] = "recompute",
    [SC_PASS_BACKWARD] = "backward",
    [SC_PASS_BACKWARD_DATA] = "backward-data",
    [SC_PASS_BACKWARD_WEIGHT] = "backward-weight",
};

struct label_text {
    char *out;
    size_t size, used;
};

/* Appends " / text" or " / text number". */
static void append_part(struct label_text *text, const char *word, int number)
{
    const char *between = text->used > 0 ? " / " : "";
    size_t room = text->used < text->size ? text->size - text->used : 0;
    char *at = text->out + (room > 0 ? text->used : 0);
    int length = number < 0 ? snprintf(at, room, "%s%s", between, word)
                            : snprintf(at, room, "%s%s %d", between, word, number);
    text->used += length > 0 ? (size_t)length : 0;
}

const char *sc_label_text(const struct sc_program *program, struct sc_label label, char *out,
                          size_t size)
{
    struct label_text text = {out, size, 0};
    if (size == 0) {
        return out;
    }
    out[0] = '\0';
    if (label.layer >= 0) {
        append_part(&text, "layer", label.layer);
    }
    if (label.name < program->names.count && program->names.items[label.name][0] != '\0') {
        append_part(&text, program->names.items[label.name], -1);
    }
    if (label.pass < sizeof(pass_names) / sizeof(pass_names[0]) && pass_names[label.pass] != NULL) {
        append_part(&text, pass_names[label.pass], -1);
    }
    if (label.micro_batch >= 0) {
        append_part(&text, "micro-batch", label.micro_batch);
    }
    if (label.piece >= 0) {
        append_part(&text, "piece", label.piece);
    }
    return out;
}

const char *sc_op_text(const struct sc_program *program, const struct sc_list *list, uint32_t op,
                       char out[SC_OP_TEXT])
{
    char label[SC_OP_TEXT / 2];
    const struct sc_op *item = &list->ops.items[op];
    sc_label_text(program, item->label, label, sizeof(label));
    snprintf(out, SC_OP_TEXT, "op %u (%s%s%s)", op, sc_op_kind_name(item->kind),
             label[0] != '\0' ? ", " : "", label);
    return out;
}

uint32_t sc_program_class_of(const struct sc_program *program, int64_t rank)
{
    int64_t at[SC_AXIS_COUNT];
    sc_mesh_coordinates(&program->mesh, rank, at);
    for (uint32_t i = 0; i < program->classes.count; ++i) {
        const struct sc_class *class = &program->classes.items[i];
        bool same = true;
        for (int axis = 0; axis < SC_AXIS_COUNT; ++axis) {
            same = same && (!(class->fixed_mask & SC_AXIS_MASK(axis)) ||
                            class->coordinate[axis] == at[axis]);
        }
        if (same) {
            return i;
        }
    }
    return 0;
}

int64_t sc_program_parameters(const struct sc_program *program)
{
    int64_t sum = 0;
    for (size_t i = 0; i < program->tensors.count; ++i) {
        sum += program->tensors.items[i].rows * program->tensors.items[i].cols;
    }
    return sum;
}

/* ---- work -------------------------------------------------------------------------------- */

static double gemm_flops(const struct sc_class *class, const struct sc_list *list,
                         const struct sc_op *op)
{
    const struct sc_value *a = sc_op_value(class, list, op, SC_ROLE_A);
    const struct sc_value *c = sc_op_value(class, list, op, SC_ROLE_C);
    if (a == NULL || c == NULL) {
        return 0;
    }
    int64_t k = op->p.gemm.transpose_a ? a->rows : a->cols;
    return 2.0 * (double)c->rows * (double)c->cols * (double)k;
}

double sc_op_flops(const struct sc_class *class, const struct sc_list *list, const struct sc_op *op)
{
    double square = (double)op->p.attention.batch * op->p.attention.heads *
                    (double)op->p.attention.sequence * (double)op->p.attention.sequence *
                    op->p.attention.head_size;
    switch (op->kind) {
    case SC_GEMM:
        return gemm_flops(class, list, op);
    case SC_BATCHED_GEMM: /* whole score matrices */
        return 2.0 * square;
    case SC_ATTENTION: /* two products, half of each */
        return 2.0 * square;
    case SC_ATTENTION_BACKWARD: /* five: the scores are computed again */
        return 5.0 * square;
    default:
        return 0;
    }
}

/* A table of which an embedding touches one row an index: the bytes of the rows it touches. */
static double touched_bytes(const struct sc_class *class, const struct sc_list *list,
                            const struct sc_op *op, const struct sc_value *table)
{
    const struct sc_value *index = sc_op_value(class, list, op, SC_ROLE_INDEX);
    double all = (double)sc_value_bytes(table);
    if (index == NULL) {
        return all;
    }
    double rows = (double)index->rows * (double)index->cols * (double)table->cols *
                  sc_dtype_bytes(table->dtype);
    return rows < all ? rows : all;
}

double sc_op_bytes(const struct sc_class *class, const struct sc_list *list, const struct sc_op *op)
{
    double sum = 0;
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand = &list->operands.items[op->first_operand + i];
        const struct sc_value *value = &class->values.items[operand->value];
        bool table = (op->kind == SC_EMBEDDING && operand->role == SC_ROLE_WEIGHT) ||
                     (op->kind == SC_EMBEDDING_BACKWARD && operand->role == SC_ROLE_DWEIGHT &&
                      operand->access == SC_INOUT);
        double bytes =
            table ? touched_bytes(class, list, op, value) : (double)sc_value_bytes(value);
        sum += operand->access == SC_INOUT ? 2 * bytes : bytes;
    }
    return sum;
}

uint64_t sc_op_collective_bytes(const struct sc_program *program, const struct sc_class *class,
                                const struct sc_list *list, const struct sc_op *op)
{
    (void)program;
    if (sc_op_kind_work(op->kind) != SC_WORK_COLLECTIVE) {
        return 0;
    }
    const struct sc_value *x = sc_op_value(class, list, op, SC_ROLE_X);
    const struct sc_value *y = sc_op_value(class, list, op, SC_ROLE_Y);
    const struct sc_value *whole = op->kind == SC_ALL_GATHER || x == NULL ? y : x;
    return whole != NULL ? sc_value_bytes(whole) : 0;
}
