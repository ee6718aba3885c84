/*
 * The trace: what an interpreter of a program says happened (or will), one row an operation
 * (stepcast.trace/1). Forecast and measurement have the same rows and the same format.
 *
 * Times are microseconds from the end, in the step before, of the last operation on the anchor
 * stream (the stream of the last operation in issue order): a run-ahead stream has negative times.
 */
#ifndef STEPCAST_PLANS_TRACE_H
#define STEPCAST_PLANS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"
#include "model/identity.h"
#include "plans/program.h"

enum sc_trace_kind { SC_PREDICTED, SC_MEASURED };

struct sc_trace_class {
    const char *name;
    int64_t ranks;
};

struct sc_trace_row {
    uint32_t class_index;
    uint32_t operation;
    int64_t rank; /* -1: over ranks and steps */
    uint8_t kind; /* enum sc_op_kind */
    uint32_t stream;
    const char *label; /* in the trace's arena */
    double ready_us, start_us;
    double transfer_us; /* collectives: latest start over the members; NAN for others */
    double end_us;
    const char *bound;     /* what limited it ("compute", "memory", a link); NULL when measured */
    double p10_us, p90_us; /* of end - start over the measured steps; NAN when predicted */
};

struct sc_trace {
    enum sc_trace_kind kind;
    char program[SC_HASH_SIZE];
    char plan[SC_NAME_SIZE], hardware[SC_NAME_SIZE];
    char backend[32];  /* "host", ...; "" when predicted */
    char machine[256]; /* measured: processor, BLAS and its kernel, transport; "" when predicted */
    struct sc_identity measured_on; /* predicted: the profile's */
    double others_share;            /* of the cores' time, while measuring; NAN: not known */
    bool solo;
    int64_t steps_played;
    double period_us; /* step time */
    /* Where the step time of a run is expected in four of five cases; NAN: not said. */
    double period_low_us, period_high_us;
    char memory_mode[32];
    uint32_t anchor;
    SC_ARRAY(const char *) streams;
    SC_ARRAY(struct sc_trace_class) classes;
    SC_ARRAY(struct sc_trace_row) rows;
    struct sc_arena arena;
};

void sc_trace_init(struct sc_trace *trace);
void sc_trace_free(struct sc_trace *trace);
/* Fills header, streams, classes and one row an operation (times zero) from a program. */
enum sc_status sc_trace_begin(struct sc_trace *trace, enum sc_trace_kind kind,
                              const struct sc_program *program, struct sc_error *err);
/* stepcast.trace/1, header first, one row a line; complete or absent. */
enum sc_status sc_trace_write(const struct sc_trace *trace, const char *file, struct sc_error *err);
enum sc_status sc_trace_read(const char *file, struct sc_trace *out, struct sc_error *err);

#endif
