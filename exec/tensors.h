/*
 * Between the two forms of parameters: flat, as a rank holds them, and full tensors, as a
 * checkpoint names them (sc_program.tensors; rows = outputs). The blocks table says where which
 * rows lie.
 */
#ifndef STEPCAST_EXEC_TENSORS_H
#define STEPCAST_EXEC_TENSORS_H

#include <stdint.h>

#include "base/status.h"
#include "plans/program.h"

/* Full tensors: data[t] is [rows, cols] of tensor t, zero at first. */
struct sc_tensors {
    size_t count;
    float **data;
};

enum sc_status sc_tensors_create(const struct sc_program *program, struct sc_tensors *out,
                                 struct sc_error *err);
void sc_tensors_free(struct sc_tensors *tensors); /* a zeroed struct is accepted */
/* From a safetensors file: every tensor of the program, by name, with its shape. */
enum sc_status sc_tensors_load(const struct sc_program *program, const char *file,
                               struct sc_tensors *out, struct sc_error *err);
enum sc_status sc_tensors_save(const struct sc_program *program, const struct sc_tensors *tensors,
                               const char *file, struct sc_error *err);

/* Number of elements of the flat form. */
int64_t sc_flat_elements(const struct sc_program *program);
/* Flat elements that a rank has: have[i] says whether data[i] is set. */
struct sc_flat {
    int64_t elements;
    float *data;
    uint8_t *have;
};
enum sc_status sc_flat_create(int64_t elements, struct sc_flat *out, struct sc_error *err);
void sc_flat_free(struct sc_flat *flat);
/* Sets what `flat`, of the rank with these coordinates, has. */
void sc_tensors_collect(const struct sc_program *program, const int64_t coordinates[SC_AXIS_COUNT],
                        const struct sc_flat *flat, struct sc_tensors *tensors);
/* Flat element at which a value of class 0 begins on a rank; the value lies in the buffer of the
 * gradients or of the parameters. -1: in neither. */
int64_t sc_flat_of_value(const struct sc_program *program, uint32_t value,
                         const int64_t coordinates[SC_AXIS_COUNT]);

#endif
