/* Dumps of a program, for people. */
#include "plans/program_dump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 512, NAME = 128 };

/* ---- text in a fixed room ---------------------------------------------------------------- */

struct cell {
    char *text;
    size_t size, used;
};

static void append(struct cell *cell, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct cell *cell, const char *format, ...)
{
    va_list args;
    size_t room = cell->used < cell->size ? cell->size - cell->used : 0;
    va_start(args, format);
    int length = vsnprintf(cell->text + (room > 0 ? cell->used : 0), room, format, args);
    va_end(args);
    cell->used += length > 0 ? (size_t)length : 0;
}

/* ---- kinds ------------------------------------------------------------------------------- */

static bool updates(const struct sc_list *list, const struct sc_op *op, enum sc_role role)
{
    const struct sc_operand *operand = sc_op_operand(list, op, role);
    return operand != NULL && operand->access == SC_INOUT;
}

/* Operands that a kind may have or not, as an epilogue. */
struct epilogue {
    uint8_t kind, role;
    bool updated; /* only when it is inout */
    const char *text;
};

static const struct epilogue epilogues[] = {
    {SC_GEMM, SC_ROLE_BIAS, false, " +bias"},
    {SC_GEMM, SC_ROLE_BIAS_GRADIENT, false, " +bias_gradient"},
    {SC_GEMM, SC_ROLE_C, true, " +accumulate"},
    {SC_BATCHED_GEMM, SC_ROLE_C, true, " +accumulate"},
    {SC_NORM_BACKWARD, SC_ROLE_DGAMMA, true, " +accumulate"},
    {SC_EMBEDDING_BACKWARD, SC_ROLE_DWEIGHT, true, " +accumulate"},
    {SC_REDUCE_ROWS, SC_ROLE_Y, true, " +accumulate"},
    {SC_NORM_SQUARES, SC_ROLE_NORM, true, " +accumulate"},
    {SC_DROPOUT, SC_ROLE_BIAS, false, " +bias"},
    {SC_DROPOUT, SC_ROLE_RESIDUAL, false, " +add"},
    {SC_DROPOUT, SC_ROLE_MASK, false, " +mask"},
    {SC_DROPOUT_BACKWARD, SC_ROLE_BIAS_GRADIENT, false, " +bias_gradient"},
};

static enum sc_place place_of(const struct sc_class *class, const struct sc_list *list,
                              const struct sc_op *op, enum sc_role role)
{
    const struct sc_value *value = sc_op_value(class, list, op, role);
    return value != NULL ? class->buffers.items[value->buffer].place : SC_DEVICE;
}

/* "gemm +bias +accumulate", "copy pinned>device", ...: the kind with what distinguishes it. */
static const char *kind_text(const struct sc_class *class, const struct sc_list *list,
                             const struct sc_op *op, char *out, size_t size)
{
    struct cell cell = {out, size, 0};
    append(&cell, "%s", sc_op_kind_name(op->kind));
    if (op->kind == SC_COPY) {
        append(&cell, " %s>%s", sc_place_names[place_of(class, list, op, SC_ROLE_X)],
               sc_place_names[place_of(class, list, op, SC_ROLE_Y)]);
    }
    if (op->kind == SC_SCALAR) {
        append(&cell, " %s", op->p.scalar.work == SC_SCALAR_ADVANCE ? "advance" : "clip");
    }
    for (size_t i = 0; i < sizeof(epilogues) / sizeof(epilogues[0]); ++i) {
        const struct epilogue *e = &epilogues[i];
        if (e->kind == op->kind &&
            (e->updated ? updates(list, op, e->role) : sc_op_operand(list, op, e->role) != NULL)) {
            append(&cell, "%s", e->text);
        }
    }
    return out;
}

/* ---- values and waits -------------------------------------------------------------------- */

/* "layer0.mlp.up.1": short, since a line has many. */
static void append_value(struct cell *cell, const struct sc_program *program,
                         const struct sc_class *class, const struct sc_operand *operand)
{
    struct sc_label label = class->values.items[operand->value].label;
    append(cell, "%s", cell->used > 0 ? " " : "");
    if (label.layer >= 0) {
        append(cell, "l%d.", label.layer);
    }
    append(cell, "%s", program->names.items[label.name]);
    if (label.micro_batch >= 0) {
        append(cell, ".m%d", label.micro_batch);
    }
    if (label.piece >= 0) {
        append(cell, ".%d", label.piece);
    }
    append(cell, "%s", operand->version == SC_OTHER ? "[other]" : "");
}

static const char *values_text(const struct sc_program *program, const struct sc_class *class,
                               const struct sc_list *list, const struct sc_op *op,
                               enum sc_access access, char *out, size_t size)
{
    struct cell cell = {out, size, 0};
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand = &list->operands.items[op->first_operand + i];
        if (operand->access == access) {
            append_value(&cell, program, class, operand);
        }
    }
    if (cell.used == 0) {
        append(&cell, "-");
    }
    return out;
}

static const char *waits_text(const struct sc_list *list, const struct sc_op *op, char *out,
                              size_t size)
{
    struct cell cell = {out, size, 0};
    out[0] = '\0';
    for (uint32_t i = 0; i < op->waits; ++i) {
        const struct sc_wait *wait = &list->waits.items[op->first_wait + i];
        append(&cell, "%s%u", i > 0 ? ", " : "", wait->op);
        if (wait->distance > 0) {
            append(&cell, " (k-%u)", wait->distance);
        }
    }
    return out;
}

/* ---- tables ------------------------------------------------------------------------------ */

static void dump_buffers(const struct sc_program *program, const struct sc_class *class, FILE *out)
{
    char name[NAME];
    fprintf(out, "  %-40s %-7s %-10s %8s %14s %14s\n", "buffer", "place", "lifetime", "versions",
            "offset", "bytes");
    for (size_t i = 0; i < class->buffers.count; ++i) {
        const struct sc_buffer *buffer = &class->buffers.items[i];
        fprintf(out, "  %-40s %-7s %-10s %8u %14" PRIu64 " %14" PRIu64 "\n",
                sc_label_text(program, buffer->label, name, sizeof(name)),
                buffer->token ? "token" : sc_place_names[buffer->place],
                buffer->lifetime == SC_STEP ? "step" : "persistent", buffer->versions,
                buffer->offset, buffer->bytes);
    }
}

struct row {
    char kind[NAME], label[NAME], in[CELL], out[CELL], inout[CELL], waits[CELL];
};

static void fill_row(const struct sc_program *program, const struct sc_class *class,
                     const struct sc_list *list, const struct sc_op *op, struct row *row)
{
    kind_text(class, list, op, row->kind, sizeof(row->kind));
    sc_label_text(program, op->label, row->label, sizeof(row->label));
    values_text(program, class, list, op, SC_IN, row->in, sizeof(row->in));
    values_text(program, class, list, op, SC_OUT, row->out, sizeof(row->out));
    values_text(program, class, list, op, SC_INOUT, row->inout, sizeof(row->inout));
    waits_text(list, op, row->waits, sizeof(row->waits));
}

static void dump_list(const struct sc_program *program, const struct sc_class *class,
                      const struct sc_list *list, struct row *row, FILE *out)
{
    fprintf(out, "%5s %-12s %-32s %-48s %-26s %-18s %-20s %s\n", "#", "stream", "kind", "label",
            "in", "out", "inout", "waits");
    for (size_t i = 0; i < list->ops.count; ++i) {
        const struct sc_op *op = &list->ops.items[i];
        fill_row(program, class, list, op, row);
        fprintf(out, "%5zu %-12s %-32s %-48s %-26s %-18s %-*s%s\n", i,
                program->streams.items[op->stream].name, row->kind, row->label, row->in, row->out,
                row->waits[0] != '\0' ? 21 : 0, row->inout, row->waits);
    }
}

static void dump_memory(const struct sc_class *class, FILE *out)
{
    static const char *const modes[] = {"not planned", "no_added_waits", "issue_order"};
    fprintf(out, "  memory: %s, %u waits added\n", modes[class->memory_mode], class->added_waits);
    for (int place = 0; place < SC_PLACE_COUNT; ++place) {
        const struct sc_place_memory *memory = &class->memory[place];
        if (memory->arena_bytes > 0) {
            fprintf(out,
                    "  %s: arena %" PRIu64 " = step %" PRIu64 " (bound %" PRIu64
                    ") + persistent %" PRIu64 "; peak %" PRIu64 " at op %u\n",
                    sc_place_names[place], memory->arena_bytes, memory->step_bytes,
                    memory->bound_bytes, memory->persistent_bytes, memory->peak_bytes,
                    memory->peak_op);
        }
    }
}

static void dump_header(const struct sc_program *program, FILE *out)
{
    fprintf(out, "program %s, %" PRId64 " ranks\nstreams:", program->name, program->mesh.ranks);
    for (size_t i = 0; i < program->streams.count; ++i) {
        fprintf(out, " %s", program->streams.items[i].name);
    }
    fprintf(out, "\ngroups:");
    for (size_t i = 0; i < program->groups.count; ++i) {
        fprintf(out, " %s (%" PRId64 ")", program->groups.items[i].name,
                program->groups.items[i].size);
    }
    fprintf(out, "\n");
}

static enum sc_status written(FILE *out, struct sc_error *err)
{
    return ferror(out) ? sc_fail(err, SC_MACHINE, "writing a program's dump failed") : SC_OK;
}

enum sc_status sc_program_dump(const struct sc_program *program, FILE *out, struct sc_error *err)
{
    struct row *row = malloc(sizeof(*row));
    if (row == NULL) {
        return sc_fail_memory(err, sizeof(*row));
    }
    dump_header(program, out);
    for (size_t i = 0; i < program->classes.count; ++i) {
        const struct sc_class *class = &program->classes.items[i];
        fprintf(out, "class %s, %" PRId64 " ranks\n", class->name, class->ranks);
        dump_memory(class, out);
        dump_buffers(program, class, out);
        if (class->init.ops.count > 0) {
            fprintf(out, "init:\n");
            dump_list(program, class, &class->init, row, out);
            fprintf(out, "step:\n");
        }
        dump_list(program, class, &class->step, row, out);
    }
    free(row);
    return written(out, err);
}

/* ---- graph ------------------------------------------------------------------------------- */

static void dot_stream(const struct sc_program *program, const struct sc_class *class,
                       uint32_t stream, FILE *out)
{
    const struct sc_list *list = &class->step;
    char label[NAME];
    fprintf(out, "  subgraph \"cluster_%u\" {\n    label=\"%s\";\n", stream,
            program->streams.items[stream].name);
    size_t previous = SIZE_MAX;
    for (size_t i = 0; i < list->ops.count; ++i) {
        const struct sc_op *op = &list->ops.items[i];
        if (op->stream != stream) {
            continue;
        }
        fprintf(out, "    o%zu [label=\"%zu %s\\n%s\"];\n", i, i, sc_op_kind_name(op->kind),
                sc_label_text(program, op->label, label, sizeof(label)));
        if (previous != SIZE_MAX) {
            fprintf(out, "    o%zu -> o%zu [color=gray];\n", previous, i);
        }
        previous = i;
    }
    fprintf(out, "  }\n");
}

static void dot_waits(const struct sc_list *list, FILE *out)
{
    for (size_t i = 0; i < list->ops.count; ++i) {
        const struct sc_op *op = &list->ops.items[i];
        for (uint32_t j = 0; j < op->waits; ++j) {
            const struct sc_wait *wait = &list->waits.items[op->first_wait + j];
            fprintf(out, "  o%u -> o%zu", wait->op, i);
            if (wait->distance > 0) { /* across the step's end: not part of the layout */
                fprintf(out, " [style=dashed, constraint=false, label=\"k-%u\"]", wait->distance);
            }
            fprintf(out, ";\n");
        }
    }
}

enum sc_status sc_program_dump_dot(const struct sc_program *program, uint32_t class, FILE *out,
                                   struct sc_error *err)
{
    if (class >= program->classes.count) {
        return sc_fail(err, SC_USAGE, "class %u of %zu", class, program->classes.count);
    }
    const struct sc_class *item = &program->classes.items[class];
    fprintf(out, "digraph \"%s\" {\n  rankdir=LR;\n  node [shape=box];\n", item->name);
    for (uint32_t stream = 0; stream < program->streams.count; ++stream) {
        dot_stream(program, item, stream, out);
    }
    dot_waits(&item->step, out);
    fprintf(out, "}\n");
    return written(out, err);
}
