/*
 * Waits from byte ranges. Two ops conflict when an operand of the one overlaps an operand of the
 * other and at least one of the two writes; the later one must then start after the earlier one's
 * end.
 *
 * The program is a cycle. It is unrolled: waits at distance d are the same from step d on (a path
 * from an op of step k-d to one of step k runs through those steps only), and distance 2 comes from
 * buffers with two versions only. So the waits of step 2, or of step 1 without such buffers, are
 * those of the steady state.
 *
 * Of the conflicting ops on one stream only the last counts: it ends after the others. A range
 * therefore remembers its last writer, and of the readers since then the last on each stream;
 * readers and writers before are implied, because that writer waited for them.
 *
 * Reduction is online: every op keeps its stream's vector clock as it was after its waits. The
 * candidates are taken latest first; one that the clock covers is implied by a later one or by the
 * own stream and dropped, another becomes a wait, and its clock joins. What implies a candidate
 * ends after it, so none that is listed is implied by others: the result is the transitive
 * reduction.
 */
#include <stdlib.h>
#include <string.h>

#include "plans/memory.h"
#include "plans/program.h"
#include "plans/program_ranges.h"

enum { MAX_STEPS = 3, MAX_STREAMS = 64, CONFLICT_STEPS = 3 };

/* Last accesses of one version of a range. Ops are numbered from 1 over the unrolled steps. */
struct touched {
    uint64_t readers; /* streams that have read since the write, as bits */
    uint32_t writer;  /* 0: none */
    uint32_t writer_stream;
};

struct pass {
    struct sc_list *list;
    struct sc_ranges ranges;
    const struct sc_class *class;
    uint32_t streams, steps;
    struct touched *touched; /* [2 ranges]: range * 2 + version */
    uint32_t *reads;         /* [2 ranges * streams]: last reader since the write */
    uint32_t *clocks;        /* [steps * ops * streams]: last op known to have ended, a stream */
    uint32_t now[MAX_STREAMS * MAX_STREAMS]; /* clock of each stream */
    uint32_t candidate[MAX_STREAMS];         /* latest conflicting op, a stream */
};

static bool has_two_versions(const struct sc_class *class)
{
    for (size_t i = 0; i < class->buffers.count; ++i) {
        if (class->buffers.items[i].versions > 1) {
            return true;
        }
    }
    return false;
}

static bool allocate(struct pass *pass)
{
    size_t states = 2 * pass->ranges.items.count + 1, streams = pass->streams;
    pass->touched = calloc(states, sizeof(*pass->touched));
    pass->reads = calloc(states * streams + 1, sizeof(*pass->reads));
    pass->clocks =
        malloc((pass->steps * pass->list->ops.count * streams + 1) * sizeof(*pass->clocks));
    return pass->touched != NULL && pass->reads != NULL && pass->clocks != NULL;
}

static void release(struct pass *pass)
{
    sc_ranges_free(&pass->ranges);
    free(pass->touched);
    free(pass->reads);
    free(pass->clocks);
}

/* ---- candidates -------------------------------------------------------------------------- */

static void offer(struct pass *pass, uint32_t stream, uint32_t op)
{
    if (op > pass->candidate[stream]) {
        pass->candidate[stream] = op;
    }
}

/* Everything that an access to this version of a range conflicts with. */
static void gather(struct pass *pass, uint32_t range, uint32_t version, bool writes)
{
    const struct sc_ranges *ranges = &pass->ranges;
    for (uint32_t i = ranges->first[range]; i < ranges->first[range + 1]; ++i) {
        uint32_t state = ranges->neighbours[i] * 2 + version;
        const struct touched *touched = &pass->touched[state];
        if (touched->writer != 0) {
            offer(pass, touched->writer_stream, touched->writer);
        }
        for (uint64_t left = writes ? touched->readers : 0; left != 0; left &= left - 1) {
            uint32_t stream = (uint32_t)__builtin_ctzll(left);
            offer(pass, stream, pass->reads[(size_t)state * pass->streams + stream]);
        }
    }
}

static void touch(struct pass *pass, uint32_t state, bool writes, uint32_t stream, uint32_t op)
{
    struct touched *touched = &pass->touched[state];
    if (writes) {
        *touched = (struct touched){.writer = op, .writer_stream = stream};
    } else {
        touched->readers |= (uint64_t)1 << stream;
        pass->reads[(size_t)state * pass->streams + stream] = op;
    }
}

/* Which of a buffer's versions an operand of this step means. */
static uint32_t version_of(const struct sc_class *class, const struct sc_operand *operand,
                           uint32_t step)
{
    const struct sc_value *value = &class->values.items[operand->value];
    return class->buffers.items[value->buffer].versions > 1 ? (step + operand->version) & 1 : 0;
}

static void access_operands(struct pass *pass, const struct sc_op *op, uint32_t step,
                            uint32_t number)
{
    const struct sc_operand *operand = &pass->list->operands.items[op->first_operand];
    memset(pass->candidate, 0, pass->streams * sizeof(pass->candidate[0]));
    for (uint32_t i = 0; i < op->operands; ++i, ++operand) {
        uint32_t range = pass->ranges.of_value[operand->value];
        uint32_t version = version_of(pass->class, operand, step);
        bool writes = operand->access != SC_IN;
        gather(pass, range, version, writes);
        touch(pass, range * 2 + version, writes, op->stream, number);
    }
}

/* ---- reduction --------------------------------------------------------------------------- */

/* The latest candidate that the clock does not cover; 0 when there is none. */
static uint32_t latest(const struct pass *pass, const uint32_t *clock, uint32_t own)
{
    uint32_t best = 0;
    for (uint32_t s = 0; s < pass->streams; ++s) {
        if (s != own && pass->candidate[s] > clock[s] && pass->candidate[s] > best) {
            best = pass->candidate[s];
        }
    }
    return best;
}

static bool record(struct sc_list *list, struct sc_op *op, uint32_t awaited, uint32_t number)
{
    uint32_t ops = (uint32_t)list->ops.count;
    struct sc_wait *wait = sc_array_push(&list->waits);
    if (wait == NULL) {
        return false;
    }
    wait->op = (awaited - 1) % ops;
    wait->distance = (number - 1) / ops - (awaited - 1) / ops;
    ++op->waits;
    return true;
}

static bool reduce(struct pass *pass, struct sc_op *op, uint32_t number, bool keep)
{
    uint32_t *clock = &pass->now[op->stream * pass->streams];
    uint32_t awaited;
    while ((awaited = latest(pass, clock, op->stream)) != 0) {
        if (keep && !record(pass->list, op, awaited, number)) {
            return false;
        }
        const uint32_t *known = &pass->clocks[(size_t)(awaited - 1) * pass->streams];
        for (uint32_t s = 0; s < pass->streams; ++s) {
            clock[s] = clock[s] > known[s] ? clock[s] : known[s];
        }
    }
    clock[op->stream] = number;
    memcpy(&pass->clocks[(size_t)(number - 1) * pass->streams], clock,
           pass->streams * sizeof(*clock));
    return true;
}

static bool walk(struct pass *pass)
{
    struct sc_list *list = pass->list;
    uint32_t number = 1;
    list->waits.count = 0;
    for (uint32_t step = 0; step < pass->steps; ++step) {
        bool keep = step + 1 == pass->steps;
        for (size_t i = 0; i < list->ops.count; ++i, ++number) {
            struct sc_op *op = &list->ops.items[i];
            op->waits = 0;
            op->first_wait = (uint32_t)list->waits.count;
            access_operands(pass, op, step, number);
            if (!reduce(pass, op, number, keep)) {
                return false;
            }
        }
    }
    return true;
}

static enum sc_status derive(const struct sc_program *program, const struct sc_class *class,
                             struct sc_list *list, uint32_t steps, enum sc_range_space space,
                             struct sc_error *err)
{
    struct pass *pass = calloc(1, sizeof(*pass));
    if (pass == NULL) {
        return sc_fail_memory(err, sizeof(*pass));
    }
    pass->list = list;
    pass->class = class;
    pass->streams = (uint32_t)program->streams.count;
    pass->steps = steps;
    enum sc_status status = sc_ranges_find(program, class, list, space, &pass->ranges, err);
    if (status == SC_OK && (!allocate(pass) || !walk(pass))) {
        status = sc_fail_memory(err, list->ops.count * pass->streams * sizeof(uint32_t));
    }
    release(pass);
    free(pass);
    return status;
}

static enum sc_status derive_class(const struct sc_program *program, struct sc_class *class,
                                   enum sc_range_space space, struct sc_error *err)
{
    uint32_t steps = has_two_versions(class) ? MAX_STEPS : MAX_STEPS - 1;
    SC_TRY(derive(program, class, &class->init, 1, space, err));
    return derive(program, class, &class->step, steps, space, err);
}

enum sc_status sc_program_derive_waits(struct sc_program *program, struct sc_error *err)
{
    for (size_t i = 0; i < program->classes.count; ++i) {
        SC_TRY(derive_class(program, &program->classes.items[i], SC_BY_BUFFER, err));
    }
    return SC_OK;
}

/* ---- waits by shared bytes --------------------------------------------------------------- */

static bool had_wait(const struct sc_wait *waits, uint32_t count, const struct sc_wait *wait)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (waits[i].op == wait->op && waits[i].distance == wait->distance) {
            return true;
        }
    }
    return false;
}

/* A list's waits before they are derived again. */
struct waits_before {
    uint32_t *first; /* [ops + 1] */
    struct sc_wait *items;
};

static bool keep_waits(const struct sc_list *list, struct waits_before *out)
{
    out->first = malloc((list->ops.count + 1) * sizeof(*out->first));
    out->items = malloc((list->waits.count + 1) * sizeof(*out->items));
    if (out->first == NULL || out->items == NULL) {
        return false;
    }
    for (size_t i = 0; i < list->ops.count; ++i) {
        out->first[i] = list->ops.items[i].first_wait;
    }
    out->first[list->ops.count] = (uint32_t)list->waits.count;
    if (list->waits.count > 0) {
        memcpy(out->items, list->waits.items, list->waits.count * sizeof(*out->items));
    }
    return true;
}

static uint32_t count_new(const struct sc_list *list, const struct waits_before *before)
{
    uint32_t added = 0;
    for (size_t i = 0; i < list->ops.count; ++i) {
        const struct sc_op *op = &list->ops.items[i];
        for (uint32_t j = 0; j < op->waits; ++j) {
            added +=
                !had_wait(before->items + before->first[i], before->first[i + 1] - before->first[i],
                          &list->waits.items[op->first_wait + j]);
        }
    }
    return added;
}

enum sc_status sc_program_derive_waits_shared(struct sc_program *program, struct sc_error *err)
{
    enum sc_status status = SC_OK;
    for (size_t i = 0; status == SC_OK && i < program->classes.count; ++i) {
        struct sc_class *class = &program->classes.items[i];
        struct waits_before before = {0};
        class->added_waits = 0;
        if (class->memory_mode != SC_MEMORY_ISSUE_ORDER) {
            continue;
        }
        if (!keep_waits(&class->step, &before)) {
            status = sc_fail_memory(err, class->step.waits.count * sizeof(struct sc_wait));
        } else {
            status = derive_class(program, class, SC_BY_ADDRESS, err);
        }
        if (status == SC_OK) {
            class->added_waits = count_new(&class->step, &before);
        }
        free(before.first);
        free(before.items);
    }
    return status;
}

/* ---- conflicts, by counting -------------------------------------------------------------- */

static bool operands_conflict(const struct sc_program *program, const struct sc_class *class,
                              const struct sc_operand *a, uint32_t step_a,
                              const struct sc_operand *b, uint32_t step_b)
{
    if (a->access == SC_IN && b->access == SC_IN) {
        return false;
    }
    if (version_of(class, a, step_a) != version_of(class, b, step_b)) {
        return false;
    }
    struct sc_byte_range left = sc_byte_range(program, class, a->value, SC_BY_BUFFER);
    struct sc_byte_range right = sc_byte_range(program, class, b->value, SC_BY_BUFFER);
    return sc_ranges_overlap(&left, &right);
}

static bool ops_conflict(const struct sc_program *program, const struct sc_class *class,
                         const struct sc_op *a, uint32_t step_a, const struct sc_op *b,
                         uint32_t step_b)
{
    const struct sc_operand *operands = class->step.operands.items;
    for (uint32_t i = 0; i < a->operands; ++i) {
        for (uint32_t j = 0; j < b->operands; ++j) {
            if (operands_conflict(program, class, &operands[a->first_operand + i], step_a,
                                  &operands[b->first_operand + j], step_b)) {
                return true;
            }
        }
    }
    return false;
}

uint64_t sc_program_conflicts(const struct sc_program *program, const struct sc_class *class)
{
    uint64_t pairs = 0;
    const struct sc_list *list = &class->step;
    uint32_t ops = (uint32_t)list->ops.count;
    for (uint32_t i = 0; i < ops; ++i) {
        for (uint32_t back = 1; back <= CONFLICT_STEPS * ops; ++back) {
            uint32_t at = (CONFLICT_STEPS + 1) * ops + i - back, step = at / ops;
            pairs += ops_conflict(program, class, &list->ops.items[i], CONFLICT_STEPS + 1,
                                  &list->ops.items[at % ops], step);
        }
    }
    return pairs;
}
