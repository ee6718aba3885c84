/* The bump arena: a list of blocks, the last one being filled. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ALIGNMENT 64

/* Under the address sanitizer every request is a block of its own, so that running past the end of
 * one is seen. */
#if defined(__SANITIZE_ADDRESS__)
#define BLOCK_BYTES ((size_t)0)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCK_BYTES ((size_t)0)
#endif
#endif
#ifndef BLOCK_BYTES
#define BLOCK_BYTES ((size_t)64 * 1024)
#endif

struct sc_arena_block {
    _Alignas(BLOCK_ALIGNMENT) struct sc_arena_block *previous;
    size_t used, size; /* of data */
    _Alignas(BLOCK_ALIGNMENT) unsigned char data[];
};

static struct sc_arena_block *add_block(struct sc_arena *arena, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    void *memory = NULL;
    if (size > SIZE_MAX - sizeof(struct sc_arena_block) ||
        posix_memalign(&memory, BLOCK_ALIGNMENT, sizeof(struct sc_arena_block) + size) != 0) {
        return NULL;
    }
    struct sc_arena_block *block = memory;
    memset(block, 0, sizeof(*block) + size);
    block->size = size;
    block->previous = arena->last;
    arena->last = block;
    return block;
}

void *sc_arena_alloc(struct sc_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = bytes > 0 ? bytes : 1;
    size_t alignment = bytes >= BLOCK_ALIGNMENT ? BLOCK_ALIGNMENT : 16;
    struct sc_arena_block *block = arena->last;
    size_t at = block ? (block->used + alignment - 1) / alignment * alignment : 0;
    if (block == NULL || at > block->size || bytes > block->size - at) {
        block = add_block(arena, bytes);
        if (block == NULL) {
            return NULL;
        }
        at = 0;
    }
    block->used = at + bytes;
    arena->bytes += bytes;
    return block->data + at;
}

char *sc_arena_strdup(struct sc_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = sc_arena_alloc(arena, size, 1);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

char *sc_arena_printf(struct sc_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : sc_arena_alloc(arena, (size_t)length + 1, 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

void sc_arena_free(struct sc_arena *arena)
{
    struct sc_arena_block *block = arena->last;
    while (block != NULL) {
        struct sc_arena_block *previous = block->previous;
        free(block);
        block = previous;
    }
    arena->last = NULL;
    arena->bytes = 0;
}
