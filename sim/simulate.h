/*
 * A forecast: plan and hardware to step time, memory and where the time goes. Lowers the plan,
 * plans its memory for this machine, prices and plays it.
 */
#ifndef STEPCAST_SIM_SIMULATE_H
#define STEPCAST_SIM_SIMULATE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"
#include "model/hardware.h"
#include "plans/plan.h"
#include "plans/program.h"
#include "plans/trace.h"
#include "sim/engine.h"

struct sc_sim_options {
    bool verify; /* the program's rules are checked (slower) */
    bool trace;  /* result.trace is filled */
    bool path;   /* the play keeps its critical path (sc_sim_made) */
};

/* Where the time of a step goes on the main stream of the busiest class. */
struct sc_sim_part {
    /* "compute", "memory_bound", "optimizer", "exposed_tensor" (a group's name), "exposed_copy",
     * "exposed_host", "exposed_other", "held", "issue", "rest" */
    const char *name;
    double seconds;
};

struct sc_sim_place {
    uint64_t arena_bytes;    /* planned, a rank */
    uint64_t used_bytes;     /* device: with context, communicators, workspace; else the arena */
    uint64_t capacity_bytes; /* for one rank; 0: the profile does not say */
    int64_t sharing;         /* ranks of a node that share the place (1: each has its own) */
};

struct sc_sim_resource {
    const char *name;
    const char *class_name; /* first class that uses the instance */
    double utilisation;     /* of the period */
};

struct sc_sim_result {
    char plan[SC_NAME_SIZE], hardware[SC_NAME_SIZE], program[SC_HASH_SIZE];
    double step_time_s, first_step_s;
    double step_time_low_s, step_time_high_s; /* hold four of five runs (sim/uncertainty.h) */
    double tokens_per_s;
    double mfu, hfu; /* of the peak of the activations' dtype; NAN when the profile has none */
    double bound_s;  /* no order of operations takes less (sim/bound.h) */
    int64_t ranks, operations; /* operations of a step, all classes */
    int steps_played, cycle;
    bool settled, exact;
    struct sc_sim_place memory[SC_PLACE_COUNT];
    enum sc_memory_mode memory_mode;
    uint32_t added_waits;
    SC_ARRAY(struct sc_sim_part) breakdown;
    SC_ARRAY(struct sc_sim_resource) resources;
    SC_ARRAY(const char *) warnings;
    bool has_trace;
    struct sc_trace trace;
    struct sc_arena arena; /* names and warnings */
};

/* The plan must have been checked. `options` NULL: neither verified nor traced. SC_NO when it does
 * not fit the machine (place, needed, there). `out` is freed with sc_sim_result_free. */
enum sc_status sc_simulate(const struct sc_plan *plan, const struct sc_hardware *hardware,
                           const struct sc_sim_options *options, struct sc_sim_result *out,
                           struct sc_error *err);
/* Zeroed is empty. */
void sc_sim_result_free(struct sc_sim_result *result);

/* What a forecast was read from. */
struct sc_sim_made {
    const struct sc_hardware *hardware; /* for the plan's ranks */
    const struct sc_program *program;   /* waits derived, memory planned */
    const struct sc_prices *prices;
    const struct sc_machine *machine;
    const struct sc_play *play;
    void *owner; /* of all of it */
};

/* The same, and hands out what it was made of; freed with sc_sim_made_free. */
enum sc_status sc_simulate_keep(const struct sc_plan *plan, const struct sc_hardware *hardware,
                                const struct sc_sim_options *options, struct sc_sim_result *out,
                                struct sc_sim_made *made, struct sc_error *err);
/* Zeroed is empty. */
void sc_sim_made_free(struct sc_sim_made *made);

/* Bytes that one rank may plan for in each place: the capacity, divided among the ranks that share
 * it, less what the device reserves beside the arena. 0: no limit known. SC_NO when the reserve
 * alone does not fit. */
enum sc_status sc_sim_capacity(const struct sc_program *program, const struct sc_hardware *hardware,
                               uint64_t capacity[SC_PLACE_COUNT], struct sc_error *err);
/* A copy of the hardware for so many ranks on so many nodes (cores are divided among ranks). SC_NO
 * when they are too many for the nodes. */
enum sc_status sc_sim_machine_for(const struct sc_hardware *hardware, int64_t ranks, int64_t nodes,
                                  struct sc_hardware *out, struct sc_error *err);

/* stepcast.result/1; the caller deletes it. NULL when out of memory. */
cJSON *sc_sim_result_to_json(const struct sc_sim_result *result);

#endif
