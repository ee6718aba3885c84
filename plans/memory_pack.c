/*
 * Packing by first fit, largest first. Buffers that were given the same bytes form a column; no two
 * in a column conflict, so they follow one another in time and only the neighbours of a new one
 * need a look: it must come after the one before and before the one behind (across the step's end
 * when it is first or last); the others follow, since "precedes" is transitive.
 */
#include "plans/memory_pack.h"

#include <stdlib.h>
#include <string.h>

/* A member of a column; kept in the order of time. */
struct member {
    int32_t first, last;
    uint32_t life;
};

struct column {
    uint64_t begin, end;
    SC_ARRAY(struct member) members;
};

struct packing {
    struct sc_lives *lives;
    SC_ARRAY(struct column) columns; /* by begin, then by end */
};

static void free_packing(struct packing *packing)
{
    for (size_t i = 0; i < packing->columns.count; ++i) {
        sc_array_free(&packing->columns.items[i].members);
    }
    sc_array_free(&packing->columns);
}

/* Number of members whose life begins before `first`. */
static size_t members_before(const struct column *column, int32_t first)
{
    size_t low = 0, high = column->members.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (column->members.items[middle].first < first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool column_conflicts(const struct packing *packing, const struct column *column,
                             uint32_t number, const struct sc_life *life)
{
    size_t count = column->members.count, at = members_before(column, life->first);
    const struct member *members = column->members.items;
    if ((at > 0 && members[at - 1].last >= life->first) ||
        (at < count && members[at].first <= life->last)) {
        return true;
    }
    const struct member *previous = &members[at > 0 ? at - 1 : count - 1];
    const struct member *next = &members[at < count ? at : 0];
    return sc_lives_conflict(packing->lives, number, previous->life) ||
           (next != previous && sc_lives_conflict(packing->lives, number, next->life));
}

/* The lowest offset at which nothing that conflicts lies. */
static uint64_t find_offset(const struct packing *packing, uint32_t number,
                            const struct sc_life *life)
{
    uint64_t at = 0;
    for (size_t i = 0; i < packing->columns.count; ++i) {
        const struct column *column = &packing->columns.items[i];
        if (column->begin >= at + life->bytes) {
            break;
        }
        if (column->end > at && column_conflicts(packing, column, number, life)) {
            at = column->end;
        }
    }
    return at;
}

/* The column with exactly these bytes, made where there is none. */
static struct column *column_at(struct packing *packing, uint64_t begin, uint64_t end)
{
    size_t low = 0, high = packing->columns.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct column *column = &packing->columns.items[middle];
        if (column->begin < begin || (column->begin == begin && column->end < end)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct column *items = packing->columns.items;
    if (low < packing->columns.count && items[low].begin == begin && items[low].end == end) {
        return &items[low];
    }
    if (sc_array_push(&packing->columns) == NULL) {
        return NULL;
    }
    items = packing->columns.items;
    memmove(&items[low + 1], &items[low],
            (packing->columns.count - 1 - low) * sizeof(struct column));
    items[low] = (struct column){.begin = begin, .end = end};
    return &items[low];
}

static bool add_member(struct column *column, uint32_t number, const struct sc_life *life)
{
    size_t at = members_before(column, life->first);
    if (sc_array_push(&column->members) == NULL) {
        return false;
    }
    struct member *members = column->members.items;
    memmove(&members[at + 1], &members[at],
            (column->members.count - 1 - at) * sizeof(struct member));
    members[at] = (struct member){life->first, life->last, number};
    return true;
}

static bool place(struct packing *packing, uint32_t number)
{
    struct sc_life *life = &packing->lives->items.items[number];
    life->offset = find_offset(packing, number, life);
    struct column *column = column_at(packing, life->offset, life->offset + life->bytes);
    return column != NULL && add_member(column, number, life);
}

/* ---- orders ------------------------------------------------------------------------------ */

struct item {
    uint64_t key[2];
    uint32_t life, buffer;
};

static int by_key(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    for (int i = 0; i < 2; ++i) {
        if (a->key[i] != b->key[i]) {
            return a->key[i] > b->key[i] ? -1 : 1;
        }
    }
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

enum order { LARGEST, LONGEST, AREA, ORDER_COUNT };

/* Descending; equal keys stay in the order of the buffers. */
static void set_key(struct item *item, const struct sc_life *life, enum order order)
{
    uint64_t length = (uint64_t)((int64_t)life->last - life->first + 1);
    switch (order) {
    case LONGEST:
        item->key[0] = length;
        item->key[1] = life->bytes;
        break;
    case AREA:
        item->key[0] = (life->bytes / SC_ALIGN) * length;
        item->key[1] = life->bytes;
        break;
    default:
        item->key[0] = life->bytes;
        item->key[1] = 0;
        break;
    }
}

/* Places everything in one order; *bytes is the region's size. */
static bool try_order(struct sc_lives *lives, struct item *items, uint32_t count, enum order order,
                      uint64_t *bytes)
{
    struct packing packing = {.lives = lives};
    for (uint32_t i = 0; i < count; ++i) {
        set_key(&items[i], &lives->items.items[items[i].life], order);
    }
    qsort(items, count, sizeof(*items), by_key);
    bool fine = true;
    *bytes = 0;
    for (uint32_t i = 0; fine && i < count; ++i) {
        fine = place(&packing, items[i].life);
        const struct sc_life *life = &lives->items.items[items[i].life];
        *bytes = *bytes > life->offset + life->bytes ? *bytes : life->offset + life->bytes;
    }
    free_packing(&packing);
    return fine;
}

static void keep_offsets(const struct sc_lives *lives, const uint32_t *which, uint32_t count,
                         uint64_t *offsets)
{
    for (uint32_t i = 0; i < count; ++i) {
        offsets[i] = lives->items.items[which[i]].offset;
    }
}

/* Further orders are tried only while the waste is more than a hundredth. */
static bool try_orders(struct sc_lives *lives, struct item *items, const uint32_t *which,
                       uint32_t count, uint64_t bound, uint64_t *offsets, uint64_t *best)
{
    *best = UINT64_MAX;
    for (int order = 0; order<ORDER_COUNT && * best> bound + bound / 100; ++order) {
        uint64_t bytes;
        if (!try_order(lives, items, count, (enum order)order, &bytes)) {
            return false;
        }
        if (bytes < *best) {
            *best = bytes;
            keep_offsets(lives, which, count, offsets);
        }
    }
    return true;
}

enum sc_status sc_pack(struct sc_lives *lives, const uint32_t *which, uint32_t count,
                       uint64_t bound, uint64_t *bytes, struct sc_error *err)
{
    *bytes = 0;
    if (count == 0) {
        return SC_OK;
    }
    struct item *items = malloc(count * sizeof(*items));
    uint64_t *offsets = malloc(count * sizeof(*offsets));
    bool fine = items != NULL && offsets != NULL;
    for (uint32_t i = 0; fine && i < count; ++i) {
        items[i].life = which[i];
        items[i].buffer = lives->items.items[which[i]].buffer;
    }
    fine = fine && try_orders(lives, items, which, count, bound, offsets, bytes);
    for (uint32_t i = 0; fine && i < count; ++i) {
        lives->items.items[which[i]].offset = offsets[i];
    }
    free(items);
    free(offsets);
    return fine ? SC_OK : sc_fail_memory(err, count * sizeof(*items));
}

/* ---- the bound --------------------------------------------------------------------------- */

struct edge {
    int32_t at;
    int64_t change;
};

static int by_time(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return a->at != b->at ? (a->at < b->at ? -1 : 1)
                          : (a->change > b->change) - (a->change < b->change);
}

/* The position at which most bytes are alive in issue order; `edges` has room for 2 a life. */
static uint64_t heaviest_position(const struct sc_lives *lives, const uint32_t *which,
                                  uint32_t count, struct edge *edges, int32_t *position)
{
    int64_t alive = 0, most = 0;
    *position = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const struct sc_life *life = &lives->items.items[which[i]];
        edges[2 * i] = (struct edge){life->first, (int64_t)life->bytes};
        edges[2 * i + 1] = (struct edge){life->last + 1, -(int64_t)life->bytes};
    }
    qsort(edges, 2 * (size_t)count, sizeof(*edges), by_time);
    for (uint32_t i = 0; i < 2 * count; ++i) {
        alive += edges[i].change;
        if (alive > most) {
            most = alive;
            *position = edges[i].at;
        }
    }
    return (uint64_t)most;
}

static bool conflicts_with_all(const struct sc_lives *lives, uint32_t life, const uint32_t *set,
                               uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (!sc_lives_conflict(lives, life, set[i])) {
            return false;
        }
    }
    return true;
}

/* Adds to the set alive at `position` whatever conflicts with all of it; returns its bytes. */
static uint64_t enlarge(const struct sc_lives *lives, const uint32_t *which, uint32_t count,
                        int32_t position, uint32_t *set)
{
    uint64_t added = 0;
    uint32_t members = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const struct sc_life *life = &lives->items.items[which[i]];
        if (life->first <= position && position <= life->last) {
            set[members++] = which[i];
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
        const struct sc_life *life = &lives->items.items[which[i]];
        if ((life->first > position || life->last < position) &&
            conflicts_with_all(lives, which[i], set, members)) {
            set[members++] = which[i];
            added += life->bytes;
        }
    }
    return added;
}

enum sc_status sc_pack_bound(const struct sc_lives *lives, const uint32_t *which, uint32_t count,
                             uint32_t *scratch, uint64_t *bound, struct sc_error *err)
{
    int32_t position;
    *bound = 0;
    if (count == 0) {
        return SC_OK;
    }
    struct edge *edges = malloc(2 * (size_t)count * sizeof(*edges));
    if (edges == NULL) {
        return sc_fail_memory(err, 2 * (size_t)count * sizeof(*edges));
    }
    *bound = heaviest_position(lives, which, count, edges, &position);
    free(edges);
    if (lives->by_waits) {
        *bound += enlarge(lives, which, count, position, scratch);
    }
    return SC_OK;
}
