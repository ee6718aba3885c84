/*
 * No unordered conflicting access. Three steps are played in issue order with vector clocks that
 * follow the recorded waits only. For every region the last reader and the last writer on each
 * stream are kept; whatever an op conflicts with must be covered by its clock.
 */
#include <stdlib.h>
#include <string.h>

#include "plans/program_verify.h"

enum { STEPS = 3 };

/* A version of a value with its region; equal regions have one number. */
struct entry {
    struct sc_region region;
    uint32_t key; /* value * 2 + slot */
};

struct order {
    const struct sc_verify *verify;
    size_t streams, ops;
    struct entry *entries; /* distinct regions, sorted by begin */
    size_t count;
    uint32_t *number; /* [2 values]: region of (value, slot) */
    uint32_t *first;  /* [count + 1] in meets */
    SC_ARRAY(uint32_t) meets;
    uint32_t *last; /* [count][2][streams]: last read, last write; ops from 1 */
    uint32_t *rows; /* [STEPS * ops][streams] */
    uint32_t *now;  /* [streams][streams] */
};

/* ---- regions ----------------------------------------------------------------------------- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_region(const void *left, const void *right)
{
    const struct sc_region *a = &((const struct entry *)left)->region;
    const struct sc_region *b = &((const struct entry *)right)->region;
    int order = compare_u64(a->space, b->space);
    order = order != 0 ? order : compare_u64(a->begin, b->begin);
    order = order != 0 ? order : compare_u64(a->width, b->width);
    order = order != 0 ? order : compare_u64(a->rows, b->rows);
    order = order != 0 ? order : compare_u64(a->pitch, b->pitch);
    order = order != 0 ? order : compare_u64(a->stride, b->stride);
    return order != 0 ? order : (a->axis > b->axis) - (a->axis < b->axis);
}

/* One entry for every version of every value that is an operand. */
static size_t list_entries(const struct order *order)
{
    const struct sc_verify *verify = order->verify;
    bool addresses = verify->class->memory_mode != SC_MEMORY_UNPLANNED;
    size_t count = 0;
    for (size_t i = 0; i < verify->list->operands.count; ++i) {
        uint32_t value = verify->list->operands.items[i].value;
        uint32_t buffer = verify->class->values.items[value].buffer;
        if (order->number[2 * value] != UINT32_MAX) {
            continue;
        }
        order->number[2 * value] = 0;
        for (uint32_t slot = 0; slot < verify->class->buffers.items[buffer].versions; ++slot) {
            order->entries[count++] =
                (struct entry){sc_region_of(verify, value, slot, addresses), 2 * value + slot};
        }
    }
    return count;
}

static void number_regions(struct order *order, size_t listed)
{
    qsort(order->entries, listed, sizeof(*order->entries), by_region);
    order->count = 0;
    for (size_t i = 0; i < listed; ++i) {
        struct entry entry = order->entries[i];
        if (order->count == 0 || by_region(&order->entries[order->count - 1], &entry) != 0) {
            order->entries[order->count++] = entry;
        }
        order->number[entry.key] = (uint32_t)order->count - 1;
    }
}

/* Both directions, every region with itself: counted, then filled. */
static bool find_meets(struct order *order)
{
    struct pair {
        uint32_t a, b;
    };
    SC_ARRAY(struct pair) pairs = {0};
    for (uint32_t i = 0; i < order->count; ++i) {
        const struct sc_region *a = &order->entries[i].region;
        for (uint32_t j = i; j < order->count; ++j) {
            const struct sc_region *b = &order->entries[j].region;
            if (b->space != a->space || b->begin >= sc_region_whole_end(a)) {
                break;
            }
            struct pair *pair = sc_regions_meet(a, b) ? sc_array_push(&pairs) : NULL;
            if (pair != NULL) {
                *pair = (struct pair){i, j};
                ++order->first[i + 1];
                order->first[j + 1] += i != j;
            } else if (sc_regions_meet(a, b)) {
                sc_array_free(&pairs);
                return false;
            }
        }
    }
    for (size_t i = 0; i < order->count; ++i) {
        order->first[i + 1] += order->first[i];
    }
    bool fine = sc_array_reserve(&order->meets, order->first[order->count] + (size_t)1);
    uint32_t *fill = malloc((order->count + 1) * sizeof(*fill));
    fine = fine && fill != NULL;
    if (fine) {
        memcpy(fill, order->first, (order->count + 1) * sizeof(*fill));
    }
    for (size_t i = 0; fine && i < pairs.count; ++i) {
        struct pair pair = pairs.items[i];
        order->meets.items[fill[pair.a]++] = pair.b;
        if (pair.a != pair.b) {
            order->meets.items[fill[pair.b]++] = pair.a;
        }
    }
    free(fill);
    sc_array_free(&pairs);
    return fine;
}

/* ---- the play ---------------------------------------------------------------------------- */

/* The clock of an op as it starts: its stream's, joined with those of the ops it waits for. */
static uint32_t *start_clock(const struct order *order, const struct sc_op *op, uint32_t step)
{
    uint32_t *clock = &order->now[op->stream * order->streams];
    for (uint32_t i = 0; i < op->waits; ++i) {
        const struct sc_wait *wait = &order->verify->list->waits.items[op->first_wait + i];
        if (wait->distance > step) {
            continue;
        }
        const uint32_t *known =
            &order->rows[((step - wait->distance) * order->ops + wait->op) * order->streams];
        for (size_t s = 0; s < order->streams; ++s) {
            clock[s] = known[s] > clock[s] ? known[s] : clock[s];
        }
    }
    return clock;
}

static uint32_t region_of(const struct order *order, const struct sc_operand *operand,
                          uint32_t step)
{
    uint32_t buffer = order->verify->class->values.items[operand->value].buffer;
    bool two = order->verify->class->buffers.items[buffer].versions == 2;
    return order->number[2 * operand->value + (two ? (step + operand->version) % 2 : 0)];
}

/* An op that the clock leaves open, of the last accesses to one region; 0: none. */
static uint32_t open_access(const struct order *order, uint32_t region, bool writes,
                            const uint32_t *clock, uint32_t own)
{
    const uint32_t *last = &order->last[(size_t)region * 2 * order->streams];
    for (size_t s = 0; s < order->streams; ++s) {
        if (s != own && last[order->streams + s] > clock[s]) {
            return last[order->streams + s];
        }
        if (s != own && writes && last[s] > clock[s]) {
            return last[s];
        }
    }
    return 0;
}

static enum sc_status complain(const struct order *order, uint32_t number, uint32_t other,
                               const struct sc_operand *operand)
{
    char name[SC_OP_TEXT], text[SC_OP_TEXT];
    const struct sc_verify *verify = order->verify;
    uint32_t ops = (uint32_t)order->ops;
    sc_label_text(verify->program, verify->class->values.items[operand->value].label, name,
                  sizeof(name));
    return sc_verify_fail(verify, "unordered-access", (number - 1) % ops,
                          "touches \"%s\" (%s); nothing orders it after %s of %u steps before",
                          name, sc_role_name(operand->role),
                          sc_op_text(verify->program, verify->list, (other - 1) % ops, text),
                          (number - 1) / ops - (other - 1) / ops);
}

static enum sc_status check_op(const struct order *order, const struct sc_op *op, uint32_t step,
                               uint32_t number, const uint32_t *clock)
{
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand =
            &order->verify->list->operands.items[op->first_operand + i];
        uint32_t region = region_of(order, operand, step);
        for (uint32_t j = order->first[region]; j < order->first[region + 1]; ++j) {
            uint32_t other = open_access(order, order->meets.items[j], operand->access != SC_IN,
                                         clock, op->stream);
            if (other != 0) {
                return complain(order, number, other, operand);
            }
        }
    }
    return SC_OK;
}

static void note_op(const struct order *order, const struct sc_op *op, uint32_t step,
                    uint32_t number)
{
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand =
            &order->verify->list->operands.items[op->first_operand + i];
        size_t at = (size_t)region_of(order, operand, step) * 2 * order->streams + op->stream;
        if (operand->access & SC_IN) {
            order->last[at] = number;
        }
        if (operand->access & SC_OUT) {
            order->last[at + order->streams] = number;
        }
    }
}

static enum sc_status play(const struct order *order)
{
    uint32_t number = 1;
    uint32_t steps = order->verify->init ? 1 : STEPS;
    for (uint32_t step = 0; step < steps; ++step) {
        for (size_t i = 0; i < order->ops; ++i, ++number) {
            const struct sc_op *op = &order->verify->list->ops.items[i];
            uint32_t *clock = start_clock(order, op, step);
            SC_TRY(check_op(order, op, step, number, clock));
            note_op(order, op, step, number);
            clock[op->stream] = number;
            memcpy(&order->rows[(number - 1) * order->streams], clock,
                   order->streams * sizeof(*clock));
        }
    }
    return SC_OK;
}

static bool allocate(struct order *order)
{
    size_t values = order->verify->class->values.count;
    order->entries = malloc((2 * values + 1) * sizeof(*order->entries));
    order->number = malloc((2 * values + 1) * sizeof(*order->number));
    order->rows = malloc((STEPS * order->ops * order->streams + 1) * sizeof(*order->rows));
    order->now = calloc(order->streams * order->streams + 1, sizeof(*order->now));
    if (order->entries == NULL || order->number == NULL || order->rows == NULL ||
        order->now == NULL) {
        return false;
    }
    memset(order->number, 0xff, 2 * values * sizeof(*order->number));
    number_regions(order, list_entries(order));
    order->first = calloc(order->count + 2, sizeof(*order->first));
    order->last = calloc(2 * order->count * order->streams + 1, sizeof(*order->last));
    return order->first != NULL && order->last != NULL && find_meets(order);
}

enum sc_status sc_verify_order(const struct sc_verify *verify)
{
    struct order order = {.verify = verify,
                          .streams = verify->program->streams.count,
                          .ops = verify->list->ops.count};
    enum sc_status status =
        allocate(&order)
            ? play(&order)
            : sc_fail_memory(verify->err, order.ops * order.streams * sizeof(uint32_t));
    free(order.entries);
    free(order.number);
    free(order.first);
    free(order.last);
    free(order.rows);
    free(order.now);
    sc_array_free(&order.meets);
    return status;
}
