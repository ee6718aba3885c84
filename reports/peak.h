/*
 * Who holds the memory of a place when most of it is in use: the buffers alive at the peak, those
 * of one name together (of forty layers one line), by what they are for.
 */
#ifndef STEPCAST_REPORTS_PEAK_H
#define STEPCAST_REPORTS_PEAK_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/status.h"
#include "plans/program.h"

enum sc_peak_use {
    SC_PEAK_PARAMETERS, /* with their master copies */
    SC_PEAK_GRADIENTS,
    SC_PEAK_OPTIMIZER,
    SC_PEAK_ACTIVATIONS, /* whatever lives within a step: activations, their gradients, workspaces
                          */
    SC_PEAK_OTHER,
    SC_PEAK_USE_COUNT
};
extern const char *const sc_peak_use_names[SC_PEAK_USE_COUNT];

struct sc_peak_buffers {
    const char *name; /* the program's */
    enum sc_peak_use use;
    size_t buffers;
    uint64_t bytes;
};

struct sc_peak {
    const struct sc_class *class;             /* the one with the fullest place */
    uint32_t op;                              /* at which the peak is; past the step list: none */
    uint64_t bytes;                           /* alive there */
    SC_ARRAY(struct sc_peak_buffers) buffers; /* largest first */
};

/* `program` has its memory planned. `out` is freed with sc_peak_free. */
enum sc_status sc_peak_of(const struct sc_program *program, enum sc_place place,
                          struct sc_peak *out, struct sc_error *err);
/* Zeroed is empty. */
void sc_peak_free(struct sc_peak *peak);

#endif
