/* Growable arrays: the part that does not depend on the item type. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* `items` is the address of a typed pointer: copied as bytes, since it is not a `void *` object. */
static void *load_pointer(void **items)
{
    void *pointer;
    memcpy(&pointer, items, sizeof(pointer));
    return pointer;
}

bool sc_array_reserve_(void **items, size_t count, size_t *capacity, size_t item_size, size_t more)
{
    size_t need, bytes;
    if (__builtin_add_overflow(count, more, &need)) {
        return false;
    }
    if (need <= *capacity) {
        return true;
    }
    size_t room = *capacity > SIZE_MAX / 2 ? need : *capacity * 2;
    room = room > need ? room : need;
    room = room > 8 ? room : 8;
    if (__builtin_mul_overflow(room, item_size, &bytes)) {
        return false;
    }
    void *grown = realloc(load_pointer(items), bytes);
    if (grown == NULL) {
        return false;
    }
    memcpy(items, &grown, sizeof(grown));
    *capacity = room;
    return true;
}

void sc_array_free_(void **items, size_t *count, size_t *capacity)
{
    void *none = NULL;
    free(load_pointer(items));
    memcpy(items, &none, sizeof(none));
    *count = 0;
    *capacity = 0;
}
