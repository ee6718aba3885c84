/* Element types: sizes and names. */
#include "model/dtype.h"

#include <stddef.h>

static const uint32_t sizes[SC_DTYPE_COUNT] = {
#define SC_DTYPE_SIZE(name, text, bytes) bytes,
    SC_DTYPE_LIST(SC_DTYPE_SIZE)
#undef SC_DTYPE_SIZE
};

const char *const sc_dtype_names[SC_DTYPE_COUNT + 1] = {
#define SC_DTYPE_TEXT(name, text, bytes) text,
    SC_DTYPE_LIST(SC_DTYPE_TEXT)
#undef SC_DTYPE_TEXT
        NULL};

uint32_t sc_dtype_bytes(enum sc_dtype dtype)
{
    return sizes[dtype];
}

const char *sc_dtype_name(enum sc_dtype dtype)
{
    return sc_dtype_names[dtype];
}
