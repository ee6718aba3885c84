/* Lifetimes of step buffers: from operands, and from the waits that order them. */
#include <stdlib.h>
#include <string.h>

#include "plans/memory_pack.h"
#include "plans/program_clocks.h"

enum { NEVER = INT32_MIN / 2, ALWAYS = INT32_MAX / 2 };

static bool packed(const struct sc_buffer *buffer)
{
    return buffer->lifetime == SC_STEP && !buffer->token && buffer->versions == 1;
}

static struct sc_life *life_of(const struct sc_class *class, struct sc_lives *lives, uint32_t value)
{
    uint32_t number = class->values.items[value].buffer;
    const struct sc_buffer *buffer = &class->buffers.items[number];
    if (!packed(buffer)) {
        return NULL;
    }
    if (lives->of_buffer[number] == UINT32_MAX) {
        struct sc_life *life = &lives->items.items[lives->items.count];
        *life = (struct sc_life){.buffer = number,
                                 .first = ALWAYS,
                                 .last = NEVER,
                                 .bytes = sc_round_up(buffer->bytes, SC_ALIGN)};
        lives->of_buffer[number] = (uint32_t)lives->items.count++;
    }
    return &lives->items.items[lives->of_buffer[number]];
}

/* A step buffer that the init list touches is taken as alive through all of it. */
static void see_init(const struct sc_class *class, struct sc_lives *lives)
{
    int32_t begin = -(int32_t) class->init.ops.count;
    for (size_t i = 0; i < class->init.operands.count; ++i) {
        struct sc_life *life = life_of(class, lives, class->init.operands.items[i].value);
        if (life != NULL) {
            life->first = begin;
            life->last = -1;
        }
    }
}

static void see_op(const struct sc_class *class, struct sc_lives *lives, int32_t number,
                   const int32_t *clock)
{
    const struct sc_op *op = &class->step.ops.items[number];
    for (uint32_t i = 0; i < op->operands; ++i) {
        uint32_t value = class->step.operands.items[op->first_operand + i].value;
        struct sc_life *life = life_of(class, lives, value);
        if (life == NULL) {
            continue;
        }
        size_t row = lives->of_buffer[life->buffer] * lives->streams;
        int32_t *before = &lives->before[row], *last = &lives->last[row] + op->stream;
        life->first = life->first < number ? life->first : number;
        life->last = number;
        if (*last == NEVER) { /* the first access on this stream; later ones know as much */
            for (size_t s = 0; s < lives->streams; ++s) {
                before[s] = before[s] < clock[s] ? before[s] : clock[s];
            }
        }
        *last = number + 1;
    }
}

enum sc_status sc_lives_find(const struct sc_program *program, const struct sc_class *class,
                             struct sc_lives *out, struct sc_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t buffers = class->buffers.count, streams = program->streams.count;
    out->streams = streams;
    out->ops = (int32_t) class->step.ops.count;
    out->by_waits = true;
    out->of_buffer = malloc((buffers + 1) * sizeof(*out->of_buffer));
    out->last = malloc((buffers * streams + 1) * sizeof(*out->last));
    out->before = malloc((buffers * streams + 1) * sizeof(*out->before));
    int32_t *clocks = sc_clocks(&class->step, (uint32_t)streams);
    if (out->of_buffer == NULL || out->last == NULL || out->before == NULL || clocks == NULL ||
        !sc_array_reserve(&out->items, buffers + 1)) {
        free(clocks);
        return sc_fail_memory(err, buffers * streams * sizeof(*out->last));
    }
    memset(out->of_buffer, 0xff, buffers * sizeof(*out->of_buffer));
    for (size_t i = 0; i < buffers * streams; ++i) {
        out->last[i] = NEVER;
        out->before[i] = ALWAYS;
    }
    see_init(class, out);
    for (int32_t i = 0; i < out->ops; ++i) {
        see_op(class, out, i, &clocks[(size_t)i * streams]);
    }
    free(clocks);
    return SC_OK;
}

void sc_lives_free(struct sc_lives *lives)
{
    sc_array_free(&lives->items);
    free(lives->of_buffer);
    free(lives->last);
    free(lives->before);
    memset(lives, 0, sizeof(*lives));
}

/* Every access of a has ended before any of b, `later` ops after a's step began, starts. */
static bool precedes(const struct sc_lives *lives, uint32_t a, uint32_t b, int32_t later)
{
    const int32_t *last = &lives->last[a * lives->streams];
    const int32_t *before = &lives->before[b * lives->streams];
    bool open = false;
    for (size_t s = 0; s < lives->streams; ++s) {
        open |= last[s] - later > before[s];
    }
    return !open;
}

bool sc_lives_conflict(const struct sc_lives *lives, uint32_t a, uint32_t b)
{
    const struct sc_life *x = &lives->items.items[a], *y = &lives->items.items[b];
    if (x->first > y->last) {
        uint32_t swap = a;
        a = b;
        b = swap;
    } else if (y->first <= x->last) {
        return true; /* alive together in issue order */
    }
    return lives->by_waits && !(precedes(lives, a, b, 0) && precedes(lives, b, a, lives->ops));
}
