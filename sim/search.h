/*
 * Search: every combination of the knobs that lowerings offer is lowered, planned, priced and
 * played; what is invalid or does not fit counts as pruned, the rest is ranked by step time.
 *
 * Knobs: tensor x data parallelism (whose product is the number of devices), micro-batch, ZeRO
 * stage, Domino pieces and schedule, recomputation, attention kernel. Combinations that differ by a
 * knob without effect (ZeRO without data parallelism, Domino without tensor parallelism) count
 * once.
 */
#ifndef STEPCAST_SIM_SEARCH_H
#define STEPCAST_SIM_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/log.h"
#include "base/status.h"
#include "model/hardware.h"
#include "plans/plan.h"

struct sc_search_options {
    /* Everything but the knobs: model, hardware name, batch, sequence length, precision, ... Its
     * nodes count on cores only; accelerators take as many nodes as the devices fill. */
    const struct sc_plan *base;
    const struct sc_hardware *hardware;
    int64_t devices;
    int threads;      /* 0: one a processor */
    bool synchronous; /* also tries backward all-reduces that nothing hides */
    int64_t top;      /* plans to keep; 0: all */
    sc_progress_fn progress;
    void *context; /* of progress */
};

struct sc_found {
    struct sc_plan plan; /* valid, named by what it does */
    double step_time_s, tokens_per_s, mfu;
    double step_time_low_s, step_time_high_s; /* hold four of five runs */
    uint64_t peak_bytes;                      /* device: arena */
    uint64_t used_bytes;                      /* with context, communicators, workspace */
    int64_t considered;                       /* its number in the order of enumeration */
};

struct sc_search_result {
    int64_t considered, pruned, simulated;
    double seconds;
    SC_ARRAY(struct sc_found) plans; /* fastest first; of equal ones the first considered */
    char refusal[SC_ERROR_TEXT];     /* why the first pruned plan was; "" without one */
};

/* Neutral values for a model on a machine: bf16 with fp32 gradients, master parameters and states
 * where the devices have a bf16 rate, else fp32. */
void sc_search_base(const struct sc_model *model, const struct sc_hardware *hardware,
                    int64_t global_batch, int64_t sequence_length, struct sc_plan *out);

/* A search that finds nothing is no failure: plans is empty and refusal says why. The result does
 * not depend on the number of threads. `out` is freed with sc_search_result_free. */
enum sc_status sc_search(const struct sc_search_options *options, struct sc_search_result *out,
                         struct sc_error *err);
/* Zeroed is empty. */
void sc_search_result_free(struct sc_search_result *result);

#endif
