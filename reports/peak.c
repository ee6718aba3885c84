/* Buffers alive at the peak, by name and use. */
#include "reports/peak.h"

#include <stdlib.h>
#include <string.h>

#include "plans/memory.h"

const char *const sc_peak_use_names[SC_PEAK_USE_COUNT] = {
    [SC_PEAK_PARAMETERS] = "parameters", [SC_PEAK_GRADIENTS] = "gradients",
    [SC_PEAK_OPTIMIZER] = "optimizer",   [SC_PEAK_ACTIVATIONS] = "activations",
    [SC_PEAK_OTHER] = "other",
};

/* What lives across steps is known by name. */
static const struct {
    const char *name;
    enum sc_peak_use use;
} persistent[] = {
    {"parameters", SC_PEAK_PARAMETERS}, {"master_parameters", SC_PEAK_PARAMETERS},
    {"gradients", SC_PEAK_GRADIENTS},   {"optimizer.m", SC_PEAK_OPTIMIZER},
    {"optimizer.v", SC_PEAK_OPTIMIZER},
};

static enum sc_peak_use use_of(const struct sc_buffer *buffer, const char *name)
{
    if (buffer->lifetime == SC_STEP) {
        return SC_PEAK_ACTIVATIONS;
    }
    for (size_t i = 0; i < sizeof(persistent) / sizeof(persistent[0]); i++) {
        if (strcmp(persistent[i].name, name) == 0) {
            return persistent[i].use;
        }
    }
    return SC_PEAK_OTHER;
}

static const struct sc_class *fullest_class(const struct sc_program *program, enum sc_place place)
{
    const struct sc_class *fullest = &program->classes.items[0];
    for (size_t i = 1; i < program->classes.count; i++) {
        const struct sc_class *class = &program->classes.items[i];
        if (class->memory[place].arena_bytes > fullest->memory[place].arena_bytes) {
            fullest = class;
        }
    }
    return fullest;
}

static int by_bytes(const void *a, const void *b)
{
    const struct sc_peak_buffers *left = a, *right = b;
    if (left->bytes != right->bytes) {
        return left->bytes < right->bytes ? 1 : -1;
    }
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->use > right->use) - (left->use < right->use);
}

/* `slots` [names of the program][uses]: 1 + the place among the groups found so far. */
static enum sc_status group(const struct sc_program *program, const struct sc_alive *alive,
                            size_t count, uint32_t *slots, struct sc_peak *out,
                            struct sc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct sc_buffer *buffer = &out->class->buffers.items[alive[i].buffer];
        const char *name = program->names.items[buffer->label.name];
        enum sc_peak_use use = use_of(buffer, name);
        uint32_t *slot = &slots[buffer->label.name * SC_PEAK_USE_COUNT + use];
        if (*slot == 0) {
            struct sc_peak_buffers *added = sc_array_push(&out->buffers);
            if (added == NULL) {
                return sc_fail_memory(err, sizeof(*added));
            }
            *added = (struct sc_peak_buffers){.name = name, .use = use};
            *slot = (uint32_t)out->buffers.count;
        }
        struct sc_peak_buffers *found = &out->buffers.items[*slot - 1];
        found->buffers++;
        found->bytes += alive[i].bytes;
        out->bytes += alive[i].bytes;
    }
    if (out->buffers.count > 0) {
        qsort(out->buffers.items, out->buffers.count, sizeof(struct sc_peak_buffers), by_bytes);
    }
    return SC_OK;
}

enum sc_status sc_peak_of(const struct sc_program *program, enum sc_place place,
                          struct sc_peak *out, struct sc_error *err)
{
    struct sc_peak peak = {.class = fullest_class(program, place)};
    size_t count = 0, buffers = peak.class->buffers.count;
    peak.op = peak.class->memory[place].peak_op;
    struct sc_alive *alive = calloc(buffers + 1, sizeof(*alive));
    uint32_t *slots = calloc(program->names.count * SC_PEAK_USE_COUNT + 1, sizeof(*slots));
    enum sc_status status = SC_OK;
    if (alive == NULL || slots == NULL) {
        status = sc_fail_memory(err, (buffers + 1) * sizeof(*alive));
    }
    if (status == SC_OK) {
        status = sc_memory_peak(program, peak.class, place, alive, buffers, &count, err);
    }
    if (status == SC_OK) {
        status = group(program, alive, count, slots, &peak, err);
    }
    free(alive);
    free(slots);
    if (status == SC_OK) {
        *out = peak;
    } else {
        sc_peak_free(&peak);
    }
    return status;
}

void sc_peak_free(struct sc_peak *peak)
{
    sc_array_free(&peak->buffers);
    memset(peak, 0, sizeof(*peak));
}
