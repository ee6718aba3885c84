/* Vector clocks of a list's steady state, from its waits. */
#include "plans/program_clocks.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, NOTHING = INT32_MIN / 2 };

struct clocks {
    const struct sc_list *list;
    size_t streams;
    int32_t *rows; /* [STEPS * ops * streams], as each op ends: its own entry is itself */
    int32_t *now;  /* [streams * streams] */
};

static void join(int32_t *clock, const int32_t *known, size_t streams)
{
    for (size_t s = 0; s < streams; ++s) {
        clock[s] = clock[s] > known[s] ? clock[s] : known[s];
    }
}

/* Numbers count from the last step's beginning: op i of the last step is i + 1. */
static void play(const struct clocks *clocks, int32_t step)
{
    int32_t ops = (int32_t)clocks->list->ops.count;
    for (int32_t i = 0; i < ops; ++i) {
        const struct sc_op *op = &clocks->list->ops.items[i];
        int32_t *clock = &clocks->now[op->stream * clocks->streams];
        for (uint32_t j = 0; j < op->waits; ++j) {
            const struct sc_wait *wait = &clocks->list->waits.items[op->first_wait + j];
            int64_t row = ((int64_t)step - wait->distance) * ops + wait->op;
            if (row >= 0) {
                join(clock, &clocks->rows[(size_t)row * clocks->streams], clocks->streams);
            }
        }
        clock[op->stream] = i + 1 - (STEPS - 1 - step) * ops;
        memcpy(&clocks->rows[(size_t)(step * ops + i) * clocks->streams], clock,
               clocks->streams * sizeof(*clock));
    }
}

int32_t *sc_clocks(const struct sc_list *list, uint32_t streams)
{
    size_t ops = list->ops.count, row = streams;
    struct clocks clocks = {.list = list, .streams = streams};
    clocks.rows = malloc((STEPS * ops * row + 1) * sizeof(*clocks.rows));
    clocks.now = malloc((row * row + 1) * sizeof(*clocks.now));
    int32_t *out = malloc((ops * row + 1) * sizeof(*out));
    if (clocks.rows == NULL || clocks.now == NULL || out == NULL) {
        free(clocks.rows);
        free(clocks.now);
        free(out);
        return NULL;
    }
    for (size_t i = 0; i < row * row; ++i) {
        clocks.now[i] = NOTHING;
    }
    for (int32_t step = 0; step < STEPS; ++step) {
        play(&clocks, step);
    }
    memcpy(out, clocks.rows + (STEPS - 1) * ops * row, ops * row * sizeof(*out));
    for (size_t i = 0; i < ops; ++i) {
        out[i * row + list->ops.items[i].stream] =
            (int32_t)i; /* its own stream: what precedes it */
    }
    free(clocks.rows);
    free(clocks.now);
    return out;
}
