/*
 * Nothing read before written: every byte that an op reads of a step buffer was written by an
 * earlier op of the list. Row gaps count: a view with holes covers only its rows.
 *
 * A read is examined row by row, but of neighbouring rows in which no write begins or ends only the
 * first.
 */
#include <stdlib.h>
#include <string.h>

#include "plans/program_verify.h"

/* A region that was written, in a chain a buffer. */
struct written {
    struct sc_region region;
    uint32_t next; /* index + 1; 0: last */
};

struct interval {
    uint64_t begin, end;
};

struct history {
    const struct sc_verify *verify;
    uint32_t *chain; /* a buffer: newest write, index + 1 */
    SC_ARRAY(struct written) writes;
    SC_ARRAY(uint64_t) rows;          /* of a read: rows to look at */
    SC_ARRAY(struct interval) pieces; /* of a row: what was written */
    bool failed;                      /* out of memory */
};

static bool same_shape(const struct sc_region *a, const struct sc_region *b)
{
    return a->begin == b->begin && a->width == b->width && a->pitch == b->pitch &&
           a->rows == b->rows && a->axis == b->axis && a->stride == b->stride;
}

static bool contains(const struct sc_region *written, const struct sc_region *read)
{
    bool alike = written->axis == read->axis && written->stride == read->stride;
    if (alike && same_shape(written, read)) {
        return true;
    }
    return written->rows == 1 && (alike || written->axis < 0) && written->begin <= read->begin &&
           (alike ? sc_region_end(read) : sc_region_whole_end(read)) <= sc_region_end(written);
}

/* ---- rows -------------------------------------------------------------------------------- */

static void add_row(struct history *history, const struct sc_region *read, int64_t row)
{
    row = row < 0 ? 0 : row;
    if ((uint64_t)row >= read->rows) {
        return;
    }
    uint64_t *item = sc_array_push(&history->rows);
    if (item == NULL) {
        history->failed = true;
        return;
    }
    *item = (uint64_t)row;
}

/* Rows of the read at which this write's share of a row changes. */
static void add_breaks(struct history *history, const struct sc_region *read,
                       const struct sc_region *write)
{
    if (read->rows == 1) {
        return;
    }
    if (write->rows > 1 && write->pitch != read->pitch) { /* no pattern: all of them */
        for (uint64_t row = 0; row < read->rows && !history->failed; ++row) {
            add_row(history, read, (int64_t)row);
        }
        return;
    }
    int64_t pitch = (int64_t)read->pitch;
    int64_t first = ((int64_t)write->begin - (int64_t)read->begin) / pitch;
    int64_t last = ((int64_t)sc_region_end(write) - (int64_t)read->begin) / pitch;
    for (int64_t near = -2; near <= 2; ++near) { /* a row may straddle two of the other's */
        add_row(history, read, first + near);
        add_row(history, read, last + near);
    }
}

static void add_piece(struct history *history, uint64_t begin, uint64_t end)
{
    struct interval *item = sc_array_push(&history->pieces);
    if (item == NULL) {
        history->failed = true;
        return;
    }
    *item = (struct interval){begin, end};
}

/* The parts of [begin, end) that a write covers. */
static void add_pieces(struct history *history, const struct sc_region *write, uint64_t begin,
                       uint64_t end)
{
    uint64_t first = 0, rows = write->rows;
    if (write->begin >= end || sc_region_end(write) <= begin) {
        return;
    }
    if (rows > 1 && begin > write->begin) {
        first = (begin - write->begin) / write->pitch;
    }
    for (uint64_t row = first; row < rows && write->begin + row * write->pitch < end; ++row) {
        uint64_t from = write->begin + row * write->pitch;
        add_piece(history, from, from + write->width);
    }
}

static int by_begin(const void *left, const void *right)
{
    const struct interval *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static bool pieces_cover(struct history *history, uint64_t begin, uint64_t end)
{
    if (history->pieces.count > 0) {
        qsort(history->pieces.items, history->pieces.count, sizeof(struct interval), by_begin);
    }
    for (size_t i = 0; i < history->pieces.count && begin < end; ++i) {
        const struct interval *piece = &history->pieces.items[i];
        if (piece->begin > begin) {
            return false;
        }
        begin = piece->end > begin ? piece->end : begin;
    }
    return begin >= end;
}

/* ---- one read ---------------------------------------------------------------------------- */

/* The write as it lies when the read is at `coordinate`; false when it is of no use to the read. */
static bool usable(const struct sc_region *read, const struct sc_region *write, uint64_t coordinate,
                   struct sc_region *out)
{
    *out = *write;
    if (write->axis < 0) {
        return true;
    }
    if (write->axis != read->axis || write->stride != read->stride) {
        return false;
    }
    out->begin += coordinate * write->stride;
    return true;
}

static bool row_covered(struct history *history, const struct sc_region *read, uint32_t chain,
                        uint64_t coordinate, uint64_t row)
{
    uint64_t begin = read->begin + coordinate * read->stride + row * read->pitch;
    history->pieces.count = 0;
    for (uint32_t at = chain; at != 0; at = history->writes.items[at - 1].next) {
        struct sc_region write;
        if (usable(read, &history->writes.items[at - 1].region, coordinate, &write)) {
            add_pieces(history, &write, begin, begin + read->width);
        }
    }
    return pieces_cover(history, begin, begin + read->width);
}

/* One run that was written in columns: seen as rows of their pitch, so that most need no look. */
static void cut_into_rows(const struct history *history, uint32_t chain, struct sc_region *read)
{
    for (uint32_t at = chain; at != 0 && read->rows == 1; at = history->writes.items[at - 1].next) {
        const struct sc_region *write = &history->writes.items[at - 1].region;
        if (write->rows > 1 && read->width % write->pitch == 0) {
            read->rows = read->width / write->pitch;
            read->width = read->pitch = write->pitch;
        }
    }
}

static bool covered_at(struct history *history, const struct sc_region *read, uint32_t chain,
                       uint64_t coordinate)
{
    struct sc_region here = *read;
    here.begin += coordinate * read->stride;
    history->rows.count = 0;
    add_row(history, read, 0);
    for (uint32_t at = chain; at != 0; at = history->writes.items[at - 1].next) {
        struct sc_region write;
        if (usable(read, &history->writes.items[at - 1].region, coordinate, &write)) {
            add_breaks(history, &here, &write);
        }
    }
    for (size_t i = 0; i < history->rows.count && !history->failed; ++i) {
        if (!row_covered(history, read, chain, coordinate, history->rows.items[i])) {
            return false;
        }
    }
    return true;
}

static bool covered(struct history *history, const struct sc_region *read, uint32_t chain)
{
    for (uint32_t at = chain; at != 0; at = history->writes.items[at - 1].next) {
        if (contains(&history->writes.items[at - 1].region, read)) {
            return true;
        }
    }
    struct sc_region rows = *read;
    cut_into_rows(history, chain, &rows);
    for (uint64_t coordinate = 0; coordinate < read->pieces; ++coordinate) {
        if (!covered_at(history, &rows, chain, coordinate)) {
            return false;
        }
    }
    return true;
}

/* ---- the walk ---------------------------------------------------------------------------- */

/* What an operand reads: an all_gather in place reads only this rank's share. */
static bool read_region(const struct history *history, const struct sc_op *op,
                        const struct sc_operand *operand, struct sc_region *out)
{
    *out = sc_region_of(history->verify, operand->value, 0, false);
    if (op->kind != SC_ALL_GATHER || operand->role != SC_ROLE_Y) {
        return true;
    }
    unsigned mask = history->verify->program->groups.items[op->group].axis_mask;
    for (int axis = 0; axis < SC_AXIS_COUNT; ++axis) {
        if (mask == SC_AXIS_MASK(axis) && out->rows == 1 && out->axis < 0) {
            out->pieces = (uint64_t)history->verify->program->mesh.size[axis];
            out->stride = out->width / out->pieces;
            out->width = out->stride;
            out->axis = out->pieces > 1 ? axis : -1;
            return true;
        }
    }
    return false; /* over several axes: its share is no shard of one */
}

static bool remember(struct history *history, uint32_t buffer, const struct sc_region *region)
{
    for (uint32_t at = history->chain[buffer]; at != 0; at = history->writes.items[at - 1].next) {
        if (same_shape(&history->writes.items[at - 1].region, region)) {
            return true;
        }
    }
    struct written *item = sc_array_push(&history->writes);
    if (item == NULL) {
        return false;
    }
    *item = (struct written){*region, history->chain[buffer]};
    history->chain[buffer] = (uint32_t)history->writes.count;
    return true;
}

/* The buffer when its content begins anew every step. */
static bool fresh(const struct history *history, const struct sc_operand *operand, uint32_t *buffer)
{
    *buffer = history->verify->class->values.items[operand->value].buffer;
    const struct sc_buffer *item = &history->verify->class->buffers.items[*buffer];
    return item->lifetime == SC_STEP && !item->token;
}

static enum sc_status check_reads(struct history *history, uint32_t number)
{
    const struct sc_list *list = history->verify->list;
    const struct sc_op *op = &list->ops.items[number];
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand = &list->operands.items[op->first_operand + i];
        uint32_t buffer;
        struct sc_region region;
        if (operand->access == SC_OUT || !fresh(history, operand, &buffer) ||
            !read_region(history, op, operand, &region)) {
            continue;
        }
        if (!covered(history, &region, history->chain[buffer])) {
            char name[SC_OP_TEXT];
            sc_label_text(history->verify->program,
                          history->verify->class->values.items[operand->value].label, name,
                          sizeof(name));
            return sc_verify_fail(history->verify, "read-before-write", number,
                                  "reads bytes of \"%s\" (%s) that nothing wrote", name,
                                  sc_role_name(operand->role));
        }
    }
    return SC_OK;
}

static void note_writes(struct history *history, uint32_t number)
{
    const struct sc_list *list = history->verify->list;
    const struct sc_op *op = &list->ops.items[number];
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand = &list->operands.items[op->first_operand + i];
        uint32_t buffer;
        if (operand->access != SC_IN && fresh(history, operand, &buffer)) {
            struct sc_region region = sc_region_of(history->verify, operand->value, 0, false);
            history->failed |= !remember(history, buffer, &region);
        }
    }
}

enum sc_status sc_verify_written(const struct sc_verify *verify)
{
    struct history history = {.verify = verify};
    enum sc_status status = SC_OK;
    history.chain = calloc(verify->class->buffers.count + 1, sizeof(*history.chain));
    history.failed = history.chain == NULL;
    for (uint32_t i = 0; i < verify->list->ops.count && status == SC_OK && !history.failed; ++i) {
        status = check_reads(&history, i);
        note_writes(&history, i);
    }
    if (history.failed) {
        status = sc_fail_memory(verify->err, history.writes.count * sizeof(struct written));
    }
    free(history.chain);
    sc_array_free(&history.writes);
    sc_array_free(&history.rows);
    sc_array_free(&history.pieces);
    return status;
}
