/* The verifier's rules about places: values inside their buffers, buffers inside their arenas,
 * shared bytes only where lifetimes in issue order are apart. */
#include <stdlib.h>

#include "plans/program_verify.h"

/* A buffer's bytes in its place and its time in the list. */
struct tenant {
    uint64_t begin, end;
    uint32_t buffer, first, last;
    bool lasting; /* holds something across steps */
};

static uint64_t all_versions(const struct sc_buffer *buffer)
{
    return buffer->versions * ((buffer->bytes + SC_ALIGN - 1) / SC_ALIGN * SC_ALIGN);
}

static enum sc_status check_operand(const struct sc_verify *verify, uint32_t op, uint32_t value)
{
    const struct sc_value *v = &verify->class->values.items[value];
    const struct sc_buffer *buffer = &verify->class->buffers.items[v->buffer];
    if (buffer->token) {
        return SC_OK;
    }
    if (v->rows < 1 || v->cols < 1 || (v->rows > 1 && v->row_stride < v->cols)) {
        return sc_verify_fail(verify, "outside-buffer", op, "value %u: shape or stride", value);
    }
    struct sc_region region = sc_region_of(verify, value, 0, false);
    if (sc_region_whole_end(&region) > buffer->bytes) {
        return sc_verify_fail(
            verify, "outside-buffer", op, "value %u ends at byte %llu of a buffer of %llu", value,
            (unsigned long long)sc_region_whole_end(&region), (unsigned long long)buffer->bytes);
    }
    return SC_OK;
}

static enum sc_status check_buffer(const struct sc_verify *verify, uint32_t op, uint32_t number)
{
    const struct sc_buffer *buffer = &verify->class->buffers.items[number];
    const struct sc_place_memory *memory = &verify->class->memory[buffer->place];
    if (buffer->token || verify->class->memory_mode == SC_MEMORY_UNPLANNED) {
        return SC_OK;
    }
    if (buffer->offset % SC_ALIGN != 0 || buffer->offset > memory->arena_bytes ||
        all_versions(buffer) > memory->arena_bytes - buffer->offset) {
        return sc_verify_fail(
            verify, "outside-arena", op, "buffer %u at %llu, %llu bytes, of an arena of %llu",
            number, (unsigned long long)buffer->offset, (unsigned long long)all_versions(buffer),
            (unsigned long long)memory->arena_bytes);
    }
    return SC_OK;
}

/* ---- tenants ----------------------------------------------------------------------------- */

static int by_begin(const void *left, const void *right)
{
    const struct tenant *a = left, *b = right;
    return a->begin != b->begin ? (a->begin < b->begin ? -1 : 1)
                                : (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static void see_uses(const struct sc_verify *verify, struct tenant *tenants)
{
    for (uint32_t i = 0; i < verify->list->ops.count; ++i) {
        const struct sc_op *op = &verify->list->ops.items[i];
        for (uint32_t j = 0; j < op->operands; ++j) {
            uint32_t value = verify->list->operands.items[op->first_operand + j].value;
            struct tenant *tenant = &tenants[verify->class->values.items[value].buffer];
            tenant->first = tenant->first < i ? tenant->first : i;
            tenant->last = i;
        }
    }
}

static enum sc_status check_pair(const struct sc_verify *verify, const struct tenant *a,
                                 const struct tenant *b)
{
    bool apart = a->last < b->first || b->last < a->first;
    if (!a->lasting && !b->lasting && apart) {
        return SC_OK;
    }
    uint32_t op = a->first > b->first ? a->first : b->first;
    op = op < verify->list->ops.count ? op : 0;
    return sc_verify_fail(verify, "shared-bytes", op,
                          "buffers %u and %u are both alive in bytes "
                          "%llu to %llu",
                          a->buffer, b->buffer, (unsigned long long)b->begin,
                          (unsigned long long)(a->end < b->end ? a->end : b->end));
}

/* Tenants of one place, sorted: only those that meet are compared. */
static enum sc_status check_tenants(const struct sc_verify *verify, struct tenant *tenants,
                                    size_t count)
{
    qsort(tenants, count, sizeof(*tenants), by_begin);
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = i + 1; j < count && tenants[j].begin < tenants[i].end; ++j) {
            SC_TRY(check_pair(verify, &tenants[i], &tenants[j]));
        }
    }
    return SC_OK;
}

static size_t tenants_of(const struct sc_verify *verify, const struct tenant *all,
                         enum sc_place place, struct tenant *out)
{
    size_t count = 0;
    for (uint32_t i = 0; i < verify->class->buffers.count; ++i) {
        const struct sc_buffer *buffer = &verify->class->buffers.items[i];
        bool used = all[i].first <= all[i].last;
        if (buffer->place == place && !buffer->token && (used || all[i].lasting)) {
            out[count++] = all[i];
        }
    }
    return count;
}

static enum sc_status check_sharing(const struct sc_verify *verify, struct tenant *all,
                                    struct tenant *some)
{
    for (uint32_t i = 0; i < verify->class->buffers.count; ++i) {
        const struct sc_buffer *buffer = &verify->class->buffers.items[i];
        all[i] =
            (struct tenant){.begin = buffer->offset,
                            .end = buffer->offset + all_versions(buffer),
                            .buffer = i,
                            .first = UINT32_MAX,
                            .lasting = buffer->lifetime == SC_PERSISTENT || buffer->versions > 1};
    }
    see_uses(verify, all);
    for (int place = 0; place < SC_PLACE_COUNT; ++place) {
        size_t count = tenants_of(verify, all, (enum sc_place)place, some);
        SC_TRY(check_tenants(verify, some, count));
    }
    return SC_OK;
}

enum sc_status sc_verify_bytes(const struct sc_verify *verify)
{
    for (uint32_t i = 0; i < verify->list->ops.count; ++i) {
        const struct sc_op *op = &verify->list->ops.items[i];
        for (uint32_t j = 0; j < op->operands; ++j) {
            uint32_t value = verify->list->operands.items[op->first_operand + j].value;
            SC_TRY(check_operand(verify, i, value));
            SC_TRY(check_buffer(verify, i, verify->class->values.items[value].buffer));
        }
    }
    if (verify->class->memory_mode == SC_MEMORY_UNPLANNED || verify->list->ops.count == 0) {
        return SC_OK;
    }
    size_t buffers = verify->class->buffers.count;
    struct tenant *tenants = malloc((2 * buffers + 1) * sizeof(*tenants));
    if (tenants == NULL) {
        return sc_fail_memory(verify->err, 2 * buffers * sizeof(*tenants));
    }
    enum sc_status status = check_sharing(verify, tenants, tenants + buffers);
    free(tenants);
    return status;
}
