/*
 * A bump arena: many small allocations, one release. Memory comes back zeroed and aligned to 64
 * bytes for requests of 64 bytes or more, else to 16. Not thread safe.
 */
#ifndef STEPCAST_BASE_ARENA_H
#define STEPCAST_BASE_ARENA_H

#include <stddef.h>

struct sc_arena_block;

struct sc_arena {
    struct sc_arena_block *last;
    size_t bytes; /* handed out so far */
};

#define SC_ARENA_INIT                                                                              \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

/* count x size bytes; NULL when the product overflows or memory is out. */
void *sc_arena_alloc(struct sc_arena *arena, size_t count, size_t size);
char *sc_arena_strdup(struct sc_arena *arena, const char *text);
char *sc_arena_printf(struct sc_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Releases everything; the arena can be used again. */
void sc_arena_free(struct sc_arena *arena);

#endif
