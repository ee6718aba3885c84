/*
 * Growable arrays with checked sizes. Declare SC_ARRAY(type) fields, zero-initialised; the owner
 * frees with sc_array_free.
 */
#ifndef STEPCAST_BASE_ARRAY_H
#define STEPCAST_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SC_ARRAY(type)                                                                             \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }

/* Makes room for `more` further items; false when out of memory (the array is unchanged). */
bool sc_array_reserve_(void **items, size_t count, size_t *capacity, size_t item_size, size_t more);

/* The call only where there is no room: most additions are one comparison. */
#define sc_array_reserve(array, more)                                                              \
    ((more) <= (array)->capacity - (array)->count ||                                               \
     sc_array_reserve_((void **)&(array)->items, (array)->count, &(array)->capacity,               \
                       sizeof(*(array)->items), (more)))

/* Appends a zeroed item; its address, or NULL when out of memory. */
#define sc_array_push(array)                                                                       \
    (sc_array_reserve((array), 1)                                                                  \
         ? sc_array_zero_(&(array)->items[(array)->count++], sizeof(*(array)->items))              \
         : NULL)
static inline void *sc_array_zero_(void *item, size_t size)
{
    return memset(item, 0, size);
}

void sc_array_free_(void **items, size_t *count, size_t *capacity);
#define sc_array_free(array)                                                                       \
    sc_array_free_((void **)&(array)->items, &(array)->count, &(array)->capacity)

/* Checked arithmetic: false on overflow, *out untouched. */
static inline bool sc_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool sc_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline uint64_t sc_round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

#endif
