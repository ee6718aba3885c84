/* Distinct byte ranges of a list's operands, by a hash table, and their overlaps, by a sweep. */
#include "plans/program_ranges.h"

#include <stdlib.h>
#include <string.h>

/* ---- one range --------------------------------------------------------------------------- */

struct sc_byte_range sc_byte_range(const struct sc_program *program, const struct sc_class *class,
                                   uint32_t value, enum sc_range_space space)
{
    const struct sc_value *v = &class->values.items[value];
    const struct sc_buffer *buffer = &class->buffers.items[v->buffer];
    uint64_t element = sc_dtype_bytes(v->dtype);
    struct sc_byte_range range = {
        .space = v->buffer + SC_PLACE_COUNT, .axis = -1, .offset = v->offset};
    if (buffer->token) {
        range.width = range.rows = 1;
        range.whole_end = 1;
        return range;
    }
    if (space == SC_BY_ADDRESS && buffer->lifetime == SC_STEP && buffer->versions == 1) {
        range.space = buffer->place;
        range.offset += buffer->offset;
    }
    bool one_run = v->rows == 1 || v->row_stride == v->cols;
    range.rows = one_run ? 1 : (uint64_t)v->rows;
    range.width = (uint64_t)(one_run ? v->rows * v->cols : v->cols) * element;
    range.pitch = one_run ? 0 : (uint64_t)v->row_stride * element;
    range.whole_end = range.offset + (range.rows - 1) * range.pitch + range.width;
    if (v->shard_axis >= 0) {
        range.axis = v->shard_axis;
        range.stride = v->shard_stride;
        range.whole_end += range.stride * (uint64_t)(program->mesh.size[v->shard_axis] - 1);
    }
    return range;
}

static uint64_t piece_end(const struct sc_byte_range *range)
{
    return range->offset + (range->rows - 1) * range->pitch + range->width;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/*
 * Row i of a is [a.offset + i P, + a.width), row j of b alike: with d = b.offset - a.offset and
 * k = j - i they meet where -b.width < d + k P < a.width; k runs over (-a.rows, b.rows).
 */
static bool rows_meet(const struct sc_byte_range *a, const struct sc_byte_range *b, uint64_t pitch)
{
    int64_t d = (int64_t)b->offset - (int64_t)a->offset, p = (int64_t)pitch;
    int64_t least = floor_divide(-(int64_t)b->width - d, p) + 1;
    int64_t most = -floor_divide(d - (int64_t)a->width, p) - 1;
    int64_t first = -(int64_t)a->rows + 1, last = (int64_t)b->rows - 1;
    least = least > first ? least : first;
    most = most < last ? most : last;
    return least <= most;
}

bool sc_ranges_overlap(const struct sc_byte_range *a, const struct sc_byte_range *b)
{
    if (a->space != b->space) {
        return false;
    }
    if (a->axis != b->axis || a->stride != b->stride) {
        return a->offset < b->whole_end && b->offset < a->whole_end;
    }
    if (a->offset >= piece_end(b) || b->offset >= piece_end(a)) {
        return false;
    }
    if (a->pitch != 0 && b->pitch != 0 && a->pitch != b->pitch) {
        return true; /* by extents */
    }
    uint64_t pitch = a->pitch != 0 ? a->pitch : b->pitch;
    return pitch == 0 || rows_meet(a, b, pitch);
}

/* ---- distinct ranges --------------------------------------------------------------------- */

static uint64_t hash_range(const struct sc_byte_range *range)
{
    uint64_t hash = range->offset * 0x9e3779b97f4a7c15u + range->space;
    hash = (hash ^ hash >> 32) * 0xff51afd7ed558ccdu + range->width;
    hash = (hash ^ hash >> 32) * 0xc4ceb9fe1a85ec53u + range->rows + range->pitch + range->stride +
           (uint64_t)(range->axis + 1);
    return hash ^ hash >> 29;
}

static bool same_range(const struct sc_byte_range *a, const struct sc_byte_range *b)
{
    return a->space == b->space && a->offset == b->offset && a->width == b->width &&
           a->rows == b->rows && a->pitch == b->pitch && a->axis == b->axis &&
           a->stride == b->stride;
}

struct slots {
    uint32_t *items; /* number of a range + 1 */
    size_t mask;
};

/* The range's number; UINT32_MAX when out of memory. */
static uint32_t number_range(struct sc_ranges *ranges, struct slots *slots,
                             const struct sc_byte_range *range)
{
    size_t at = hash_range(range) & slots->mask;
    for (; slots->items[at] != 0; at = (at + 1) & slots->mask) {
        if (same_range(&ranges->items.items[slots->items[at] - 1], range)) {
            return slots->items[at] - 1;
        }
    }
    struct sc_byte_range *item = sc_array_push(&ranges->items);
    if (item == NULL) {
        return UINT32_MAX;
    }
    *item = *range;
    slots->items[at] = (uint32_t)ranges->items.count;
    return slots->items[at] - 1;
}

static bool number_values(const struct sc_program *program, const struct sc_class *class,
                          const struct sc_list *list, enum sc_range_space space,
                          struct sc_ranges *ranges, struct slots *slots)
{
    for (size_t i = 0; i < list->operands.count; ++i) {
        uint32_t value = list->operands.items[i].value;
        if (ranges->of_value[value] == UINT32_MAX) {
            struct sc_byte_range range = sc_byte_range(program, class, value, space);
            ranges->of_value[value] = number_range(ranges, slots, &range);
            if (ranges->of_value[value] == UINT32_MAX) {
                return false;
            }
        }
    }
    return true;
}

/* ---- overlaps ---------------------------------------------------------------------------- */

struct sorted {
    uint64_t offset, whole_end;
    uint32_t space, range;
};

static int by_place(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    if (a->space != b->space) {
        return a->space < b->space ? -1 : 1;
    }
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return a->range < b->range ? -1 : 1;
}

struct pair {
    uint32_t a, b;
};

struct pairs {
    SC_ARRAY(struct pair) items;
};

static bool sweep(const struct sc_ranges *ranges, const struct sorted *sorted, struct pairs *pairs)
{
    size_t count = ranges->items.count;
    for (size_t i = 0; i < count; ++i) {
        const struct sc_byte_range *a = &ranges->items.items[sorted[i].range];
        for (size_t j = i + 1; j < count && sorted[j].space == sorted[i].space &&
                               sorted[j].offset < sorted[i].whole_end;
             ++j) {
            if (!sc_ranges_overlap(a, &ranges->items.items[sorted[j].range])) {
                continue;
            }
            struct pair *pair = sc_array_push(&pairs->items);
            if (pair == NULL) {
                return false;
            }
            *pair = (struct pair){sorted[i].range, sorted[j].range};
        }
    }
    return pairs->items.count < UINT32_MAX / 4;
}

/* Pairs and every range itself, as lists a range. */
static bool list_neighbours(struct sc_ranges *ranges, const struct pairs *pairs)
{
    size_t count = ranges->items.count, entries = count + 2 * pairs->items.count;
    ranges->first = calloc(count + 2, sizeof(*ranges->first));
    ranges->neighbours = malloc((entries + 1) * sizeof(*ranges->neighbours));
    if (ranges->first == NULL || ranges->neighbours == NULL) {
        return false;
    }
    uint32_t *fill = ranges->first + 1; /* fill[i] ends as the end of list i */
    for (size_t i = 0; i < count; ++i) {
        fill[i + 1] = 1;
    }
    for (size_t i = 0; i < pairs->items.count; ++i) {
        ++fill[pairs->items.items[i].a + 1];
        ++fill[pairs->items.items[i].b + 1];
    }
    for (size_t i = 0; i < count; ++i) {
        fill[i + 1] += fill[i];
    }
    for (uint32_t i = 0; i < count; ++i) {
        ranges->neighbours[fill[i]++] = i;
    }
    for (size_t i = 0; i < pairs->items.count; ++i) {
        struct pair pair = pairs->items.items[i];
        ranges->neighbours[fill[pair.a]++] = pair.b;
        ranges->neighbours[fill[pair.b]++] = pair.a;
    }
    return true;
}

static bool find_overlaps(struct sc_ranges *ranges)
{
    size_t count = ranges->items.count;
    struct pairs pairs = {0};
    struct sorted *sorted = malloc((count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const struct sc_byte_range *range = &ranges->items.items[i];
        sorted[i] = (struct sorted){range->offset, range->whole_end, range->space, i};
    }
    qsort(sorted, count, sizeof(*sorted), by_place);
    bool fine = sweep(ranges, sorted, &pairs) && list_neighbours(ranges, &pairs);
    free(sorted);
    sc_array_free(&pairs.items);
    return fine;
}

enum sc_status sc_ranges_find(const struct sc_program *program, const struct sc_class *class,
                              const struct sc_list *list, enum sc_range_space space,
                              struct sc_ranges *out, struct sc_error *err)
{
    memset(out, 0, sizeof(*out));
    struct slots slots = {NULL, 63};
    while (slots.mask < 2 * list->operands.count && slots.mask < 2 * class->values.count) {
        slots.mask = 2 * slots.mask + 1;
    }
    slots.items = calloc(slots.mask + 1, sizeof(*slots.items));
    out->of_value = malloc((class->values.count + 1) * sizeof(*out->of_value));
    if (slots.items == NULL || out->of_value == NULL) {
        free(slots.items);
        return sc_fail_memory(err, slots.mask * sizeof(*slots.items));
    }
    memset(out->of_value, 0xff, class->values.count * sizeof(*out->of_value));
    bool fine = number_values(program, class, list, space, out, &slots) && find_overlaps(out);
    free(slots.items);
    return fine ? SC_OK : sc_fail_memory(err, out->items.count * sizeof(struct sc_byte_range));
}

void sc_ranges_free(struct sc_ranges *ranges)
{
    sc_array_free(&ranges->items);
    free(ranges->of_value);
    free(ranges->first);
    free(ranges->neighbours);
    memset(ranges, 0, sizeof(*ranges));
}
