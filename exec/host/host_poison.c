/*
 * Finding accesses that a program does not declare. With the address sanitizer, arenas are poisoned
 * except for the operands of the operation that runs; in every build, what an operation is to write
 * is filled with NaN first, so that leaving it out shows.
 */
#include <string.h>

#include "exec/host/host_rank.h"

#if defined(__SANITIZE_ADDRESS__)
#define SC_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SC_ASAN 1
#endif
#endif

#ifdef SC_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

enum { GRANULE = 8 }; /* what the sanitizer tells apart */

void sc_host_poison_all(const struct sc_rank_data *rank)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++)
        ASAN_POISON_MEMORY_REGION(rank->arenas[place].base, rank->arenas[place].bytes);
}

void sc_host_poison_none(const struct sc_rank_data *rank)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++)
        ASAN_UNPOISON_MEMORY_REGION(rank->arenas[place].base, rank->arenas[place].bytes);
}

/* Calls `visit` with every row of an operand. */
static void each_row(const struct sc_call *call, const struct sc_operand *operand,
                     void (*visit)(char *row, size_t bytes))
{
    const struct sc_value *value = &call->rank->class->values.items[operand->value];
    char *data =
        sc_rank_address(call->rank, operand->value, (enum sc_version)operand->version, call->step);
    size_t element = sc_dtype_bytes(value->dtype);
    for (int64_t r = 0; data && r < value->rows; r++)
        visit(data + (size_t)(r * value->row_stride) * element, (size_t)value->cols * element);
}

static void each_operand(const struct sc_call *call, bool out_only,
                         void (*visit)(char *row, size_t bytes))
{
    for (uint32_t i = 0; i < call->op->operands; i++) {
        const struct sc_operand *operand = &call->list->operands.items[call->op->first_operand + i];
        if (!out_only || operand->access == SC_OUT)
            each_row(call, operand, visit);
    }
}

static void unpoison(char *row, size_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(row, bytes);
}

/* Whole granules: a row may begin inside one. */
static void poison(char *row, size_t bytes)
{
    char *begin = row - (uintptr_t)row % GRANULE;
    char *end = row + bytes;
    end += (GRANULE - (uintptr_t)end % GRANULE) % GRANULE;
    ASAN_POISON_MEMORY_REGION(begin, (size_t)(end - begin));
}

/* All bits set: NaN in every floating type, -1 as an index. */
static void spoil(char *row, size_t bytes)
{
    memset(row, 0xff, bytes);
}

void sc_host_poison_open(const struct sc_call *call)
{
    each_operand(call, false, unpoison);
    each_operand(call, true, spoil);
}

void sc_host_poison_shut(const struct sc_call *call)
{
    each_operand(call, false, poison);
}
