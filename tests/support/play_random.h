/* Random programs for the engine, with constant prices. */
#ifndef STEPCAST_TESTS_SUPPORT_PLAY_RANDOM_H
#define STEPCAST_TESTS_SUPPORT_PLAY_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/play.h"

enum { PLAY_STREAMS = 4 };

/* Which parts a random program has. */
struct play_shape {
    int stages;
    bool resources, held, issue;
    bool kinds; /* operations of several kinds; else additions (and all-reduces between stages) */
};

/* Begins a case: between collectives that all stages share, in one order, each stage has operations
 * of its own. Moves the seed on. */
void play_random(struct play_case *c, const struct play_shape *shape, uint64_t *seed);

#endif
