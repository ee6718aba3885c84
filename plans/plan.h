/*
 * A plan: what to train, on what, and how it is parallelised (stepcast.plan/1). A section may be
 * left out: that is its neutral value. A section that is not lowered yet is accepted with its
 * neutral value only and otherwise refused by its name.
 */
#ifndef STEPCAST_PLANS_PLAN_H
#define STEPCAST_PLANS_PLAN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "model/architecture.h"
#include "model/dtype.h"

/* The axes of the device mesh, in the order that rank numbers use by default (first innermost). */
enum sc_axis { SC_TENSOR, SC_CONTEXT, SC_DATA, SC_PIPELINE, SC_AXIS_COUNT };
extern const char *const sc_axis_names[SC_AXIS_COUNT + 1];

enum sc_gradient_reduction { SC_REDUCE_ALL_REDUCE, SC_REDUCE_REDUCE_SCATTER };
enum sc_domino_schedule { SC_DOMINO_INTER_LAYER, SC_DOMINO_INTRA_LAYER };
enum sc_recompute { SC_RECOMPUTE_NONE, SC_RECOMPUTE_FULL };
enum sc_attention_kernel { SC_ATTENTION_FUSED, SC_ATTENTION_UNFUSED };
enum sc_dropout_mask { SC_MASK_RECOMPUTED, SC_MASK_SAVED };
enum sc_learning_schedule { SC_SCHEDULE_CONSTANT, SC_SCHEDULE_LINEAR, SC_SCHEDULE_COSINE };

struct sc_plan {
    char name[SC_NAME_SIZE];
    struct sc_model model;
    struct {
        char profile[SC_NAME_SIZE * 2]; /* shipped name, or path already made relative to the cwd */
        int64_t nodes;
    } hardware;
    struct {
        enum sc_axis order[SC_AXIS_COUNT]; /* innermost first */
        int64_t size[SC_AXIS_COUNT];       /* tensor_parallel, context_parallel, ... */
        int64_t expert_parallel;           /* 1 only, for now */
        bool sequence_parallel;            /* false only, for now */
        /* Where the backward all-reduce of a column-parallel product may hide: behind its weight
         * gradient (Megatron-LM's asynchronous form) or nowhere. JSON: mesh.backward_all_reduce,
         * "overlapped" (neutral) or "synchronous". */
        bool synchronous_backward;
    } mesh;
    struct {
        int64_t global_batch, micro_batch, sequence_length;
    } batch;
    struct {
        enum sc_dtype parameters, activations, gradients, master_parameters, optimizer_states;
        enum sc_dtype tensor_reduction, data_reduction;
        /* loss_scale: "none" only, for now */
    } precision;
    struct {
        int64_t stage; /* 0 or 1, for now */
        enum sc_gradient_reduction gradient_reduction;
        int64_t bucket_elements;
        bool overlap_gradients, overlap_parameters;
    } zero;
    struct {
        int64_t pieces;
        enum sc_domino_schedule schedule;
        int64_t weight_pieces; /* 1 only, for now */
    } domino;
    struct {
        enum sc_recompute granularity;
    } recompute;
    struct {
        enum sc_attention_kernel kernel;
    } attention;
    struct {
        double hidden, attention;
        enum sc_dropout_mask mask;
    } dropout;
    struct {
        double learning_rate, minimum_learning_rate;
        enum sc_learning_schedule schedule;
        int64_t warmup_steps, decay_steps;
        double beta1, beta2, epsilon, weight_decay, clip_global_norm; /* clip 0: none */
    } optimizer;
    struct {
        bool vocab_parallel;
        int64_t pad_vocab_to_multiple_of; /* times tensor_parallel when vocab_parallel */
    } loss;
    uint64_t seed;
};

/* Neutral values of every section (one rank, fp32, no dropout, AdamW with PyTorch's defaults). */
void sc_plan_neutral(struct sc_plan *plan);
/* Reads and checks a plan. `set`, of `set_count` strings "path=value", is applied first (paths that
 * begin with "hw." belong to the profile and are skipped here). */
enum sc_status sc_plan_load(const char *file, const char *const *set, int set_count,
                            struct sc_plan *out, struct sc_error *err);
/* The same from an open document; `file` gives relative paths their folder. A bare shipped name
 * (no slash, no ".json") given to sc_plan_load is looked up among the shipped plans. */
enum sc_status sc_plan_parse(const struct sc_json *root, struct sc_plan *out, struct sc_error *err);
/* Consistency: ranks, batch, heads, vocabulary, layers; names valid values nearby. `name` (a file,
 * or NULL) begins the line, JSON paths follow. */
enum sc_status sc_plan_check(const struct sc_plan *plan, const char *name, struct sc_error *err);
/* Whether the plan's nodes hold its ranks: needs the machine, so it is not part of sc_plan_check.
 */
enum sc_status sc_plan_check_devices(const struct sc_plan *plan, int64_t devices_per_node,
                                     const char *name, struct sc_error *err);
/* stepcast.plan/1 with every section; the caller deletes it. NULL when out of memory. */
cJSON *sc_plan_to_json(const struct sc_plan *plan);
/* The same into a file. A profile that is a path is written as an absolute one, since a path in a
 * plan is relative to the plan. */
enum sc_status sc_plan_write(const struct sc_plan *plan, const char *file, struct sc_error *err);

/* The plan that every layout of this training must equal: one rank, the global batch as one
 * micro-batch, no ZeRO, no Domino, nothing recomputed, fused attention, masks drawn again. */
void sc_plan_reference(const struct sc_plan *plan, struct sc_plan *out);

int64_t sc_plan_ranks(const struct sc_plan *plan);
int64_t sc_plan_micro_batches(const struct sc_plan *plan); /* global / (micro x data) */
int64_t sc_plan_padded_vocab(const struct sc_plan *plan);

#endif
