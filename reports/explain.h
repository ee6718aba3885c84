/*
 * Why a step takes that long: its critical path by kind of work, the longest operations on it, what
 * the step would take if something were free or a resource a tenth faster, and who holds the memory
 * at its peak.
 */
#ifndef STEPCAST_REPORTS_EXPLAIN_H
#define STEPCAST_REPORTS_EXPLAIN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"
#include "model/hardware.h"
#include "plans/plan.h"
#include "reports/peak.h"

/* A part of the critical path: a kind of work, or "issue" (the host thread issues), or "signal"
 * (an operation notices that what it stood waiting for has ended), or "units" (an
 * operation waits behind another one for units of the device). The parts add up to the step. */
struct sc_explained_part {
    const char *name;
    bool waits; /* the step waits for it: no computation */
    double seconds;
    double slowed_s; /* of it: because resources were shared with what ran beside it */
};

/* Operations on the path that differ by layer, micro-batch and piece only. */
struct sc_explained_ops {
    const char *kind, *label; /* "gemm", "layer * / mlp.up / backward-weight" */
    double count;             /* in a step; a part of one where the path enters or leaves in it */
    double seconds;
};

struct sc_explained_what_if {
    const char *name;
    bool resource; /* else a kind of work */
    double step_time_s;
    double gain_s; /* negative: a scheduling anomaly (sim/sensitivity.h) */
};

struct sc_explained_buffers {
    const char *name, *use;
    int64_t buffers;
    double bytes;
};

struct sc_explained_place {
    const char *place, *label; /* of the operation at which the peak is; "" without one */
    double bytes;
    SC_ARRAY(struct sc_explained_buffers) buffers; /* largest first */
};

struct sc_explanation {
    char plan[SC_NAME_SIZE], hardware[SC_NAME_SIZE];
    int64_t ranks;
    double step_time_s;
    bool settled;
    const char *sentence;   /* why it takes that long: what would gain most if it were free */
    const char *worst_wait; /* likewise of what is no computation, where it is not that; or NULL */
    SC_ARRAY(struct sc_explained_part) parts;           /* longest first */
    SC_ARRAY(struct sc_explained_ops) operations;       /* longest first */
    SC_ARRAY(struct sc_explained_what_if) free, faster; /* largest gain first */
    SC_ARRAY(struct sc_explained_place) places;         /* those in use */
    struct sc_arena arena;                              /* texts */
};

/* The plan must have been checked. SC_NO when it does not fit the machine. `out` is freed with
 * sc_explanation_free. */
enum sc_status sc_explain(const struct sc_plan *plan, const struct sc_hardware *hardware,
                          struct sc_explanation *out, struct sc_error *err);
/* Zeroed is empty. */
void sc_explanation_free(struct sc_explanation *explanation);

/* For people (explain_print.c). */
enum sc_status sc_explanation_print(const struct sc_explanation *explanation, FILE *stream,
                                    struct sc_error *err);
/* stepcast.explanation/1; the caller deletes it. NULL when out of memory. */
cJSON *sc_explanation_to_json(const struct sc_explanation *explanation);

#endif
