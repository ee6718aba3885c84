/* Element types of values. One row a type; nothing else knows their sizes or names. */
#ifndef STEPCAST_MODEL_DTYPE_H
#define STEPCAST_MODEL_DTYPE_H

#include <stdint.h>

/* X(name, text, bytes) */
#define SC_DTYPE_LIST(X)                                                                           \
    X(SC_FP32, "fp32", 4)                                                                          \
    X(SC_BF16, "bf16", 2)                                                                          \
    X(SC_FP16, "fp16", 2)                                                                          \
    X(SC_INT32, "int32", 4)                                                                        \
    X(SC_INT8, "int8", 1)                                                                          \
    X(SC_UINT8, "uint8", 1)

enum sc_dtype {
#define SC_DTYPE_ENUM(name, text, bytes) name,
    SC_DTYPE_LIST(SC_DTYPE_ENUM)
#undef SC_DTYPE_ENUM
        SC_DTYPE_COUNT
};

uint32_t sc_dtype_bytes(enum sc_dtype dtype);
const char *sc_dtype_name(enum sc_dtype dtype);
/* Names in enum order, NULL-terminated, for JSON enumerations. */
extern const char *const sc_dtype_names[SC_DTYPE_COUNT + 1];

#endif
