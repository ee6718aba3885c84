/* The memory planner: modes, places, persistent buffers, peaks. Packing is in memory_pack.c. */
#include "plans/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "plans/memory_pack.h"

/* Everything that planning a class needs beside it. */
struct planner {
    struct sc_class *class;
    struct sc_lives lives;
    uint32_t *which, *scratch; /* [lives] */
    int64_t *alive;            /* [ops + 1]: change of bytes alive */
};

static void release(struct planner *planner)
{
    sc_lives_free(&planner->lives);
    free(planner->which);
    free(planner->scratch);
    free(planner->alive);
}

static enum sc_status prepare(const struct sc_program *program, struct sc_class *class,
                              struct planner *planner, struct sc_error *err)
{
    memset(planner, 0, sizeof(*planner));
    planner->class = class;
    SC_TRY(sc_lives_find(program, class, &planner->lives, err));
    size_t lives = planner->lives.items.count + 1, ops = class->step.ops.count + 1;
    planner->which = malloc(lives * sizeof(*planner->which));
    planner->scratch = malloc(lives * sizeof(*planner->scratch));
    planner->alive = malloc(ops * sizeof(*planner->alive));
    if (planner->which == NULL || planner->scratch == NULL || planner->alive == NULL) {
        return sc_fail_memory(err, lives * sizeof(*planner->which));
    }
    return SC_OK;
}

/* All versions, each rounded to 256. */
static uint64_t buffer_bytes(const struct sc_buffer *buffer)
{
    return buffer->token ? 0 : buffer->versions * sc_round_up(buffer->bytes, SC_ALIGN);
}

/* ---- one place --------------------------------------------------------------------------- */

static uint32_t lives_of(const struct planner *planner, enum sc_place place)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < planner->lives.items.count; ++i) {
        uint32_t buffer = planner->lives.items.items[i].buffer;
        if (planner->class->buffers.items[buffer].place == place) {
            planner->which[count++] = i;
        }
    }
    return count;
}

/* Persistent buffers, and step buffers with two versions, which live across steps too. */
static bool lasting(const struct sc_buffer *buffer, enum sc_place place)
{
    return buffer->place == place && !buffer->token &&
           (buffer->lifetime == SC_PERSISTENT || buffer->versions > 1);
}

static uint64_t place_persistent(struct sc_class *class, enum sc_place place, uint64_t from)
{
    uint64_t at = from;
    for (size_t i = 0; i < class->buffers.count; ++i) {
        struct sc_buffer *buffer = &class->buffers.items[i];
        if (lasting(buffer, place)) {
            buffer->offset = at;
            at += buffer_bytes(buffer);
        }
    }
    return at - from;
}

static void find_peak(const struct planner *planner, uint32_t count, struct sc_place_memory *memory)
{
    int64_t *alive = planner->alive, sum = 0, most = -1;
    int32_t ops = planner->lives.ops;
    memset(alive, 0, ((size_t)ops + 1) * sizeof(*alive));
    for (uint32_t i = 0; i < count; ++i) {
        const struct sc_life *life = &planner->lives.items.items[planner->which[i]];
        if (life->last >= 0) {
            alive[life->first > 0 ? life->first : 0] += (int64_t)life->bytes;
            alive[life->last + 1] -= (int64_t)life->bytes;
        }
    }
    for (int32_t i = 0; i < ops; ++i) {
        sum += alive[i];
        if (sum > most) {
            most = sum;
            memory->peak_op = (uint32_t)i;
        }
    }
    memory->peak_bytes = memory->persistent_bytes + (most > 0 ? (uint64_t)most : 0);
}

static enum sc_status plan_place(struct planner *planner, enum sc_place place, struct sc_error *err)
{
    struct sc_class *class = planner->class;
    struct sc_place_memory *memory = &class->memory[place];
    memset(memory, 0, sizeof(*memory));
    uint32_t count = lives_of(planner, place);
    SC_TRY(sc_pack_bound(&planner->lives, planner->which, count, planner->scratch,
                         &memory->bound_bytes, err));
    SC_TRY(sc_pack(&planner->lives, planner->which, count, memory->bound_bytes, &memory->step_bytes,
                   err));
    for (uint32_t i = 0; i < count; ++i) {
        const struct sc_life *life = &planner->lives.items.items[planner->which[i]];
        class->buffers.items[life->buffer].offset = life->offset;
    }
    memory->persistent_bytes = place_persistent(class, place, memory->step_bytes);
    memory->arena_bytes = memory->step_bytes + memory->persistent_bytes;
    find_peak(planner, count, memory);
    return SC_OK;
}

/* ---- one class --------------------------------------------------------------------------- */

/* The first place that is too small; SC_PLACE_COUNT when all suffice. */
static int too_small(const struct sc_class *class, const uint64_t capacity[SC_PLACE_COUNT])
{
    for (int place = 0; place < SC_PLACE_COUNT; ++place) {
        if (capacity[place] != 0 && class->memory[place].arena_bytes > capacity[place]) {
            return place;
        }
    }
    return SC_PLACE_COUNT;
}

static enum sc_status plan_mode(struct planner *planner, enum sc_memory_mode mode,
                                struct sc_error *err)
{
    planner->class->memory_mode = mode;
    planner->class->added_waits = 0;
    planner->lives.by_waits = mode == SC_MEMORY_NO_ADDED_WAITS;
    for (int place = 0; place < SC_PLACE_COUNT; ++place) {
        SC_TRY(plan_place(planner, (enum sc_place)place, err));
    }
    return SC_OK;
}

static enum sc_status plan_class(struct planner *planner, const uint64_t capacity[SC_PLACE_COUNT],
                                 struct sc_error *err)
{
    struct sc_class *class = planner->class;
    SC_TRY(plan_mode(planner, SC_MEMORY_NO_ADDED_WAITS, err));
    if (too_small(class, capacity) == SC_PLACE_COUNT) {
        return SC_OK;
    }
    SC_TRY(plan_mode(planner, SC_MEMORY_ISSUE_ORDER, err));
    int place = too_small(class, capacity);
    if (place == SC_PLACE_COUNT) {
        return SC_OK;
    }
    char needed[32], there[32];
    sc_print_bytes((double)class->memory[place].arena_bytes, needed, sizeof(needed));
    sc_print_bytes((double)capacity[place], there, sizeof(there));
    return sc_fail(err, SC_NO,
                   "%s memory: class \"%s\" needs %s (%llu bytes), there are %s (%llu bytes)",
                   sc_place_names[place], class->name, needed,
                   (unsigned long long)class->memory[place].arena_bytes, there,
                   (unsigned long long)capacity[place]);
}

enum sc_status sc_memory_plan(struct sc_program *program, const uint64_t capacity[SC_PLACE_COUNT],
                              struct sc_error *err)
{
    static const uint64_t unlimited[SC_PLACE_COUNT];
    enum sc_status status = SC_OK;
    for (size_t i = 0; status == SC_OK && i < program->classes.count; ++i) {
        struct planner planner;
        status = prepare(program, &program->classes.items[i], &planner, err);
        if (status == SC_OK) {
            status = plan_class(&planner, capacity != NULL ? capacity : unlimited, err);
        }
        release(&planner);
    }
    return status;
}

/* ---- the peak ---------------------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
    const struct sc_alive *a = left, *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

/* First and last op of the step that touch each buffer; first > last: none. */
static void find_spans(const struct sc_class *class, uint32_t *first, uint32_t *last)
{
    for (size_t i = 0; i < class->buffers.count; ++i) {
        first[i] = UINT32_MAX;
        last[i] = 0;
    }
    for (uint32_t i = 0; i < class->step.ops.count; ++i) {
        const struct sc_op *op = &class->step.ops.items[i];
        for (uint32_t j = 0; j < op->operands; ++j) {
            uint32_t value = class->step.operands.items[op->first_operand + j].value;
            uint32_t buffer = class->values.items[value].buffer;
            first[buffer] = first[buffer] < i ? first[buffer] : i;
            last[buffer] = i;
        }
    }
}

enum sc_status sc_memory_peak(const struct sc_program *program, const struct sc_class *class,
                              enum sc_place place, struct sc_alive *out, size_t room, size_t *count,
                              struct sc_error *err)
{
    (void)program;
    size_t buffers = class->buffers.count, found = 0;
    uint32_t peak = class->memory[place].peak_op;
    uint32_t *spans = malloc((2 * buffers + 1) * sizeof(*spans));
    struct sc_alive *alive = malloc((buffers + 1) * sizeof(*alive));
    if (spans == NULL || alive == NULL) {
        free(spans);
        free(alive);
        return sc_fail_memory(err, buffers * sizeof(*alive));
    }
    find_spans(class, spans, spans + buffers);
    for (uint32_t i = 0; i < buffers; ++i) {
        const struct sc_buffer *buffer = &class->buffers.items[i];
        bool touched = spans[i] <= peak && peak <= spans[buffers + i];
        if (lasting(buffer, place) || (buffer->place == place && !buffer->token && touched)) {
            alive[found++] = (struct sc_alive){i, buffer_bytes(buffer)};
        }
    }
    qsort(alive, found, sizeof(*alive), by_size);
    if (room > 0 && found > 0) {
        memcpy(out, alive, (found < room ? found : room) * sizeof(*out));
    }
    *count = found;
    free(spans);
    free(alive);
    return SC_OK;
}
