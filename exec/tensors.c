/* Flat parameters to full tensors, and full tensors to and from files. */
#include "exec/tensors.h"

#include <stdlib.h>
#include <string.h>

#include "exec/safetensors.h"

enum sc_status sc_tensors_create(const struct sc_program *program, struct sc_tensors *out,
                                 struct sc_error *err)
{
    struct sc_tensors made = {.count = program->tensors.count};
    made.data = calloc(made.count + 1, sizeof *made.data);
    if (!made.data)
        return sc_fail_memory(err, (made.count + 1) * sizeof *made.data);
    for (size_t t = 0; t < made.count; t++) {
        const struct sc_tensor *tensor = &program->tensors.items[t];
        size_t elements = (size_t)(tensor->rows * tensor->cols);
        made.data[t] = calloc(elements + 1, sizeof(float));
        if (!made.data[t]) {
            sc_tensors_free(&made);
            return sc_fail_memory(err, elements * sizeof(float));
        }
    }
    *out = made;
    return SC_OK;
}

void sc_tensors_free(struct sc_tensors *tensors)
{
    for (size_t t = 0; tensors->data && t < tensors->count; t++)
        free(tensors->data[t]);
    free(tensors->data);
    *tensors = (struct sc_tensors){0};
}

/* ---- files ----------------------------------------------------------------------------------- */

static enum sc_status load_tensor(const struct sc_safetensors *stored, const char *file,
                                  const struct sc_tensor *tensor, float *data, struct sc_error *err)
{
    int64_t rows = tensor->transposed ? tensor->cols : tensor->rows;
    int64_t cols = tensor->transposed ? tensor->rows : tensor->cols;
    const struct sc_stored_tensor *found = sc_safetensors_find(stored, tensor->name);
    if (!found)
        return sc_fail(err, SC_BAD_INPUT, "%s: %s: found no such tensor, expected [%lld, %lld]",
                       file, tensor->name, (long long)rows, (long long)cols);
    if (found->rows != rows || found->cols != cols)
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: %s: found [%lld, %lld], expected [%lld, %lld] as the model says", file,
                       tensor->name, (long long)found->rows, (long long)found->cols,
                       (long long)rows, (long long)cols);
    const struct sc_rectangle all = {0, 0, rows, cols};
    return sc_safetensors_read(stored, found, all, tensor->transposed, data, tensor->cols, err);
}

enum sc_status sc_tensors_load(const struct sc_program *program, const char *file,
                               struct sc_tensors *out, struct sc_error *err)
{
    struct sc_safetensors *stored = NULL;
    struct sc_tensors made = {0};
    enum sc_status status = sc_safetensors_open(file, &stored, err);
    if (status == SC_OK)
        status = sc_tensors_create(program, &made, err);
    for (size_t t = 0; status == SC_OK && t < made.count; t++)
        status = load_tensor(stored, file, &program->tensors.items[t], made.data[t], err);
    sc_safetensors_close(&stored);
    if (status != SC_OK) {
        sc_tensors_free(&made);
        return status;
    }
    *out = made;
    return SC_OK;
}

static void transpose(const struct sc_tensor *tensor, const float *from, float *to)
{
    for (int64_t r = 0; r < tensor->rows; r++)
        for (int64_t c = 0; c < tensor->cols; c++)
            to[c * tensor->rows + r] = from[r * tensor->cols + c];
}

/* The file's orientation of every tensor; turned copies are listed in `turned`. */
static enum sc_status orient(const struct sc_program *program, const struct sc_tensors *tensors,
                             struct sc_tensor_out *out, float **turned, struct sc_error *err)
{
    for (size_t t = 0; t < tensors->count; t++) {
        const struct sc_tensor *tensor = &program->tensors.items[t];
        out[t] = (struct sc_tensor_out){.name = tensor->name,
                                        .rows = tensor->rows,
                                        .cols = tensor->cols,
                                        .vector = tensor->vector,
                                        .data = tensors->data[t]};
        if (!tensor->transposed)
            continue;
        size_t bytes = (size_t)(tensor->rows * tensor->cols) * sizeof(float);
        turned[t] = malloc(bytes + 1);
        if (!turned[t])
            return sc_fail_memory(err, bytes);
        transpose(tensor, tensors->data[t], turned[t]);
        out[t].rows = tensor->cols;
        out[t].cols = tensor->rows;
        out[t].data = turned[t];
    }
    return SC_OK;
}

enum sc_status sc_tensors_save(const struct sc_program *program, const struct sc_tensors *tensors,
                               const char *file, struct sc_error *err)
{
    struct sc_tensor_out *out = calloc(tensors->count + 1, sizeof *out);
    float **turned = calloc(tensors->count + 1, sizeof *turned);
    enum sc_status status = SC_OK;
    if (!out || !turned)
        status = sc_fail_memory(err, (tensors->count + 1) * sizeof *out);
    if (status == SC_OK)
        status = orient(program, tensors, out, turned, err);
    if (status == SC_OK)
        status = sc_safetensors_write(file, out, (int64_t)tensors->count, err);
    for (size_t t = 0; turned && t < tensors->count; t++)
        free(turned[t]);
    free(turned);
    free(out);
    return status;
}

/* ---- flat ------------------------------------------------------------------------------------ */

int64_t sc_flat_elements(const struct sc_program *program)
{
    int64_t elements = 0;
    for (size_t i = 0; i < program->parameters.count; i++) {
        const struct sc_parameter *p = &program->parameters.items[i];
        int64_t end = p->flat + p->rows * p->cols;
        elements = end > elements ? end : elements;
    }
    return elements;
}

enum sc_status sc_flat_create(int64_t elements, struct sc_flat *out, struct sc_error *err)
{
    struct sc_flat made = {.elements = elements};
    made.data = calloc((size_t)elements + 1, sizeof *made.data);
    made.have = calloc((size_t)elements + 1, sizeof *made.have);
    if (!made.data || !made.have) {
        sc_flat_free(&made);
        return sc_fail_memory(err, (size_t)elements * sizeof *made.data);
    }
    *out = made;
    return SC_OK;
}

void sc_flat_free(struct sc_flat *flat)
{
    free(flat->data);
    free(flat->have);
    *flat = (struct sc_flat){0};
}

static void collect_block(const struct sc_program *program, const struct sc_parameter *p,
                          const struct sc_block *block, const int64_t coordinates[SC_AXIS_COUNT],
                          const struct sc_flat *flat, struct sc_tensors *tensors)
{
    const struct sc_tensor *tensor = &program->tensors.items[block->tensor];
    int64_t row = sc_index_at(&block->row, coordinates);
    int64_t column = sc_index_at(&block->column, coordinates);
    for (int64_t r = 0; r < block->rows && row + r < tensor->rows; r++)
        for (int64_t c = 0; c < block->cols; c++) {
            int64_t at = p->flat + (block->local_row + r) * p->cols + c;
            if (flat->have[at])
                tensors->data[block->tensor][(row + r) * tensor->cols + column + c] =
                    flat->data[at];
        }
}

void sc_tensors_collect(const struct sc_program *program, const int64_t coordinates[SC_AXIS_COUNT],
                        const struct sc_flat *flat, struct sc_tensors *tensors)
{
    for (size_t i = 0; i < program->parameters.count; i++) {
        const struct sc_parameter *p = &program->parameters.items[i];
        for (uint32_t b = 0; b < p->blocks; b++)
            collect_block(program, p, &program->blocks.items[p->first_block + b], coordinates, flat,
                          tensors);
    }
}

int64_t sc_flat_of_value(const struct sc_program *program, uint32_t value,
                         const int64_t coordinates[SC_AXIS_COUNT])
{
    const struct sc_class *class = &program->classes.items[0];
    const struct sc_value *v = &class->values.items[value];
    uint64_t at = v->offset;
    if (v->shard_axis >= 0)
        at += v->shard_stride * (uint64_t)coordinates[v->shard_axis];
    for (size_t i = 0; i < program->parameters.count; i++) {
        const struct sc_parameter *p = &program->parameters.items[i];
        const struct sc_value *views[2] = {&class->values.items[p->value],
                                           &class->values.items[p->gradient]};
        for (int w = 0; w < 2; w++)
            if (views[w]->buffer == v->buffer)
                return p->flat + ((int64_t)at - (int64_t)views[w]->offset) /
                                     (int64_t)sc_dtype_bytes(v->dtype);
    }
    return -1;
}
