/* Enumerates, plays and ranks, see search.h. Workers take the next plan by a shared counter; each
 * result has its place by number, so that their order does not matter. */
#include "sim/search.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/simulate.h"

enum { WORKERS_MAX = 64 };

enum outcome { OUTCOME_NONE, OUTCOME_PRUNED, OUTCOME_FOUND };

/* One combination; filled by a worker. */
struct candidate {
    int64_t tensor, data, micro_batch;
    int8_t stage, pieces;
    bool intra_layer, recompute, unfused, synchronous;
    enum outcome outcome;
    double step_time_s, step_time_low_s, step_time_high_s, tokens_per_s, mfu;
    uint64_t peak_bytes, used_bytes;
};

struct search {
    const struct sc_search_options *options;
    SC_ARRAY(struct candidate) candidates;
    atomic_size_t next;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    size_t done;
    double best_s;
    size_t refused_at; /* the lowest number that was pruned, for the refusal */
    char refusal[SC_ERROR_TEXT];
    struct sc_error failure; /* the first that is no verdict on a plan */
};

/* ---- enumeration -------------------------------------------------------------------------------
 */

/* The innermost knobs of one mesh and micro-batch. */
static bool add_variants(struct search *search, const struct candidate *base)
{
    static const struct {
        int8_t pieces;
        bool intra_layer;
    } domino[] = {{1, false}, {2, false}, {2, true}, {4, false}, {4, true}};
    int stages = base->data > 1 ? 2 : 1;
    size_t dominos = base->tensor > 1 ? sizeof(domino) / sizeof(domino[0]) : 1;
    int synchronous = base->tensor > 1 && search->options->synchronous ? 2 : 1;
    for (int stage = 0; stage < stages; stage++)
        for (size_t d = 0; d < dominos; d++)
            for (int bits = 0; bits < 4 * synchronous; bits++) {
                struct candidate *c = sc_array_push(&search->candidates);
                if (c == NULL)
                    return false;
                *c = *base;
                c->stage = (int8_t)stage;
                c->pieces = domino[d].pieces;
                c->intra_layer = domino[d].intra_layer;
                c->recompute = (bits & 1) != 0;
                c->unfused = (bits & 2) != 0;
                c->synchronous = (bits & 4) != 0;
            }
    return true;
}

static enum sc_status enumerate(struct search *search, struct sc_error *err)
{
    int64_t devices = search->options->devices;
    int64_t global = search->options->base->batch.global_batch;
    for (int64_t tensor = 1; tensor <= devices; tensor++) {
        int64_t data = devices / tensor;
        if (devices % tensor != 0 || global % data != 0)
            continue;
        for (int64_t micro = 1; micro <= global / data; micro++) {
            const struct candidate base = {.tensor = tensor, .data = data, .micro_batch = micro};
            if (global / data % micro == 0 && !add_variants(search, &base))
                return sc_fail_memory(err, sizeof(base));
        }
    }
    return SC_OK;
}

static void name_plan(const struct candidate *c, struct sc_plan *plan)
{
    char domino[32] = "", name[2 * SC_NAME_SIZE];
    if (c->pieces > 1)
        snprintf(domino, sizeof(domino), "_domino%d%s", c->pieces, c->intra_layer ? "-intra" : "");
    snprintf(name, sizeof(name), "%.60s_tp%lld-dp%lld_mb%lld%s%s%s%s%s",
             plan->model.name[0] != '\0' ? plan->model.name : "model", (long long)c->tensor,
             (long long)c->data, (long long)c->micro_batch, c->stage > 0 ? "_zero1" : "", domino,
             c->recompute ? "_recompute" : "", c->unfused ? "_unfused" : "",
             c->synchronous ? "_sync" : "");
    name[sizeof(plan->name) - 1] = '\0';
    for (char *at = strchr(name, '/'); at != NULL; at = strchr(at, '/'))
        *at = '-'; /* a model may be called as its maker's folder */
    memcpy(plan->name, name, sizeof(plan->name));
}

static void make_plan(const struct sc_search_options *options, const struct candidate *c,
                      struct sc_plan *plan)
{
    int64_t devices = options->hardware->node.devices;
    *plan = *options->base;
    if (options->hardware->device.kind != SC_CORES)
        plan->hardware.nodes = (options->devices + devices - 1) / devices;
    plan->mesh.size[SC_TENSOR] = c->tensor;
    plan->mesh.size[SC_DATA] = c->data;
    plan->mesh.synchronous_backward = c->synchronous;
    plan->batch.micro_batch = c->micro_batch;
    plan->zero.stage = c->stage;
    plan->zero.gradient_reduction = c->stage > 0 ? SC_REDUCE_REDUCE_SCATTER : SC_REDUCE_ALL_REDUCE;
    plan->zero.overlap_gradients = true;
    plan->zero.overlap_parameters = c->stage > 0;
    plan->domino.pieces = c->pieces;
    plan->domino.schedule = c->intra_layer ? SC_DOMINO_INTRA_LAYER : SC_DOMINO_INTER_LAYER;
    plan->recompute.granularity = c->recompute ? SC_RECOMPUTE_FULL : SC_RECOMPUTE_NONE;
    plan->attention.kernel = c->unfused ? SC_ATTENTION_UNFUSED : SC_ATTENTION_FUSED;
    name_plan(c, plan);
}

/* ---- workers -----------------------------------------------------------------------------------
 */

static void take_result(struct candidate *c, const struct sc_sim_result *result)
{
    c->outcome = OUTCOME_FOUND;
    c->step_time_s = result->step_time_s;
    c->step_time_low_s = result->step_time_low_s;
    c->step_time_high_s = result->step_time_high_s;
    c->tokens_per_s = result->tokens_per_s;
    c->mfu = result->mfu;
    c->peak_bytes = result->memory[SC_DEVICE].arena_bytes;
    c->used_bytes = result->memory[SC_DEVICE].used_bytes;
}

static enum sc_status try_plan(const struct search *search, struct candidate *c,
                               struct sc_error *err)
{
    struct sc_plan plan;
    struct sc_sim_result result;
    make_plan(search->options, c, &plan);
    if (sc_plan_check(&plan, NULL, err) != SC_OK)
        return SC_NO;
    SC_TRY(sc_simulate(&plan, search->options->hardware, NULL, &result, err));
    take_result(c, &result);
    sc_sim_result_free(&result);
    return SC_OK;
}

static void report(struct search *search)
{
    char line[160];
    if (search->options->progress == NULL)
        return;
    snprintf(line, sizeof(line), "%zu of %zu plans, best %.4g s", search->done,
             search->candidates.count, search->best_s);
    search->options->progress(search->options->context, line);
}

static void book(struct search *search, size_t number, enum sc_status status,
                 const struct sc_error *err)
{
    struct candidate *c = &search->candidates.items[number];
    pthread_mutex_lock(&search->lock);
    search->done++;
    if (status == SC_NO) {
        c->outcome = OUTCOME_PRUNED;
        if (search->refusal[0] == '\0' || number < search->refused_at) {
            search->refused_at = number;
            memcpy(search->refusal, err->text, sizeof(search->refusal));
        }
    } else if (status != SC_OK) {
        if (search->failure.status == SC_OK)
            search->failure = *err;
        atomic_store(&search->stop, true);
    } else if (search->best_s <= 0 || c->step_time_s < search->best_s) {
        search->best_s = c->step_time_s;
    }
    report(search);
    pthread_mutex_unlock(&search->lock);
}

static void *work(void *context)
{
    struct search *search = context;
    while (!atomic_load(&search->stop)) {
        size_t number = atomic_fetch_add(&search->next, 1);
        if (number >= search->candidates.count)
            break;
        struct sc_error err = SC_ERROR_INIT;
        enum sc_status status = try_plan(search, &search->candidates.items[number], &err);
        book(search, number, status, &err);
    }
    return NULL;
}

static int worker_count(const struct search *search)
{
    long count = search->options->threads;
    if (count <= 0)
        count = sysconf(_SC_NPROCESSORS_ONLN);
    if (count > WORKERS_MAX)
        count = WORKERS_MAX;
    if ((size_t)count > search->candidates.count)
        count = (long)search->candidates.count;
    return count > 1 ? (int)count : 1;
}

/* The caller works too; a thread that cannot be had is done without. */
static void work_all(struct search *search)
{
    pthread_t threads[WORKERS_MAX];
    int started = 0, wanted = worker_count(search) - 1;
    while (started < wanted && pthread_create(&threads[started], NULL, work, search) == 0)
        started++;
    work(search);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- ranking -----------------------------------------------------------------------------------
 */

struct rank {
    double step_time_s;
    size_t number;
};

static int by_time(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->step_time_s < y->step_time_s)
        return -1;
    if (x->step_time_s > y->step_time_s)
        return 1;
    return x->number < y->number ? -1 : 1;
}

static enum sc_status add_found(const struct search *search, size_t number,
                                struct sc_search_result *out, struct sc_error *err)
{
    const struct candidate *c = &search->candidates.items[number];
    struct sc_found *found = sc_array_push(&out->plans);
    if (found == NULL)
        return sc_fail_memory(err, sizeof(*found));
    make_plan(search->options, c, &found->plan);
    found->step_time_s = c->step_time_s;
    found->step_time_low_s = c->step_time_low_s;
    found->step_time_high_s = c->step_time_high_s;
    found->tokens_per_s = c->tokens_per_s;
    found->mfu = c->mfu;
    found->peak_bytes = c->peak_bytes;
    found->used_bytes = c->used_bytes;
    found->considered = (int64_t)number;
    return SC_OK;
}

static enum sc_status rank_plans(const struct search *search, struct sc_search_result *out,
                                 struct sc_error *err)
{
    struct rank *ranks = calloc(search->candidates.count + 1, sizeof(*ranks));
    if (ranks == NULL)
        return sc_fail_memory(err, search->candidates.count * sizeof(*ranks));
    size_t count = 0;
    for (size_t i = 0; i < search->candidates.count; i++) {
        out->considered++;
        if (search->candidates.items[i].outcome == OUTCOME_FOUND)
            ranks[count++] = (struct rank){search->candidates.items[i].step_time_s, i};
        else
            out->pruned++;
    }
    out->simulated = (int64_t)count;
    qsort(ranks, count, sizeof(*ranks), by_time);
    int64_t top = search->options->top;
    size_t kept = top > 0 && (size_t)top < count ? (size_t)top : count;
    enum sc_status status = SC_OK;
    for (size_t i = 0; i < kept && status == SC_OK; i++)
        status = add_found(search, ranks[i].number, out, err);
    free(ranks);
    return status;
}

/* ---- entry -------------------------------------------------------------------------------------
 */

void sc_search_base(const struct sc_model *model, const struct sc_hardware *hardware,
                    int64_t global_batch, int64_t sequence_length, struct sc_plan *out)
{
    sc_plan_neutral(out);
    out->model = *model;
    snprintf(out->hardware.profile, sizeof(out->hardware.profile), "%s", hardware->name);
    out->batch.global_batch = global_batch;
    out->batch.sequence_length = sequence_length;
    bool mixed = hardware->device.peak[SC_PEAK_BF16] > 0 &&
                 hardware->compute.gemm_peak_share[SC_PEAK_BF16] > 0;
    enum sc_dtype dtype = mixed ? SC_BF16 : SC_FP32;
    out->precision.parameters = out->precision.activations = dtype;
    out->precision.tensor_reduction = dtype;
    out->precision.gradients = out->precision.data_reduction = SC_FP32;
    out->precision.master_parameters = out->precision.optimizer_states = SC_FP32;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum sc_status sc_search(const struct sc_search_options *options, struct sc_search_result *out,
                         struct sc_error *err)
{
    struct search search;
    struct sc_search_result result;
    double begun = seconds_now();
    memset(&search, 0, sizeof(search));
    memset(&result, 0, sizeof(result));
    search.options = options;
    if (options->devices < 1)
        return sc_fail(err, SC_USAGE, "a search needs at least one device");
    if (pthread_mutex_init(&search.lock, NULL) != 0)
        return sc_fail(err, SC_MACHINE, "a mutex could not be had");
    enum sc_status status;
    SC_TRY_GOTO(enumerate(&search, err), release);
    work_all(&search);
    if (search.failure.status != SC_OK) {
        *err = search.failure;
        status = search.failure.status;
        goto release;
    }
    SC_TRY_GOTO(rank_plans(&search, &result, err), release);
    memcpy(result.refusal, search.refusal, sizeof(result.refusal));
    result.seconds = seconds_now() - begun;
    *out = result;
release:
    if (status != SC_OK)
        sc_search_result_free(&result);
    sc_array_free(&search.candidates);
    pthread_mutex_destroy(&search.lock);
    return status;
}

void sc_search_result_free(struct sc_search_result *result)
{
    sc_array_free(&result->plans);
    memset(result, 0, sizeof(*result));
}
