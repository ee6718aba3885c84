/*
 * Reads and writes safetensors: 8 bytes (little-endian length of the header), the header (JSON: for
 * each tensor its dtype, shape and [begin, end) in the data), the data.
 * Format: github.com/huggingface/safetensors, README "Format". Elements are row-major; a tensor
 * here has one or two dimensions (a scalar counts as [1]). F32 is read as it is, BF16 and F16 are
 * widened; others are listed but refused when read.
 *
 * Names. Hugging Face writes GPT-2 with or without a leading "transformer."; find accepts both. The
 * buffers that GPT-2's attention carries (`h.N.attn.bias`, `h.N.attn.masked_bias`: causal masks)
 * are not parameters and are left out of the list.
 */
#ifndef STEPCAST_EXEC_SAFETENSORS_H
#define STEPCAST_EXEC_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* ---- reading ----------------------------------------------------------------------------- */

struct sc_safetensors;

struct sc_stored_tensor {
    const char *name;
    const char *dtype; /* as the file calls it: "F32" */
    int64_t rows, cols;
    int dimensions; /* 1: [rows], cols = 1; others than 1 and 2 are refused when read */
};

/* Opens the file and checks its header: every range inside the file, sizes equal to the shapes', no
 * two ranges overlapping, no hole. Else SC_BAD_INPUT with one line. Read-only afterwards: any
 * number of threads may read. */
enum sc_status sc_safetensors_open(const char *file, struct sc_safetensors **out,
                                   struct sc_error *err);
void sc_safetensors_close(struct sc_safetensors **tensors); /* accepts NULL; sets NULL */

/* In the order of names. */
int64_t sc_safetensors_count(const struct sc_safetensors *tensors);
const struct sc_stored_tensor *sc_safetensors_at(const struct sc_safetensors *tensors,
                                                 int64_t index);
/* NULL when there is none, with "transformer." before or taken off `name` either. */
const struct sc_stored_tensor *sc_safetensors_find(const struct sc_safetensors *tensors,
                                                   const char *name);

/* A rectangle of a tensor in the file's orientation. */
struct sc_rectangle {
    int64_t row, col, rows, cols;
};

/* Copies the rectangle into to[r * stride + c] (with `transpose`: to[c * stride + r]), as fp32.
 * `stored` comes from sc_safetensors_find or _at. SC_BAD_INPUT where the rectangle leaves the
 * tensor or its dtype or dimensions cannot be read. */
enum sc_status sc_safetensors_read(const struct sc_safetensors *tensors,
                                   const struct sc_stored_tensor *stored,
                                   struct sc_rectangle rectangle, bool transpose, float *to,
                                   int64_t stride, struct sc_error *err);

/* ---- writing ----------------------------------------------------------------------------- */

/* One tensor to write: fp32, dense, [rows, cols] ([rows] with `vector`). */
struct sc_tensor_out {
    const char *name;
    int64_t rows, cols;
    bool vector;
    const float *data;
};

/* Writes the file whole or not at all; tensors stand in the order of their names, the data begins
 * at a multiple of 8 bytes. SC_BAD_INPUT on a name that stands twice, SC_MACHINE where the disk
 * fails. */
enum sc_status sc_safetensors_write(const char *file, const struct sc_tensor_out *tensors,
                                    int64_t count, struct sc_error *err);

#endif
