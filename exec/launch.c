/*
 * A run: ranks are started, made ready, let go together, and ended together; then what they
 * measured goes to process 0.
 *
 * Every stage ends in an agreement of all ranks and processes, so that one that fails is heard of
 * by all before the next stage. While steps run, threads see the failure record, and processes
 * tell each other.
 */
#include "exec/launch.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "exec/backend.h"
#include "exec/clock.h"
#include "exec/data.h"
#include "exec/executor.h"
#include "exec/identity.h"
#include "exec/measure.h"
#include "exec/process.h"
#include "exec/snapshot.h"
#include "model/fit.h"
#include "plans/lower.h"

enum { TRACED_STEPS = 64 };

struct run;

struct rank {
    struct run *run;
    int64_t number;
    pthread_t thread;
    bool started;
    struct sc_device *device;
    struct sc_executor *executor;
};

struct run {
    const struct sc_program *program;
    struct sc_run_options options; /* with what was NULL filled in */
    const struct sc_backend *backend;
    struct sc_process process;
    struct sc_failure failure;
    struct sc_backend_setup setup;
    struct sc_world *world;
    struct rank *ranks; /* [local ranks] */
    struct sc_data *synthetic;
    struct sc_tensors initial;
    struct sc_snapshot snapshot;
    double begin;
    struct sc_contention_start watch;
    struct sc_contention contention;

    /* The gate that ranks pass together: each arrives, the launcher opens. */
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int64_t arrived;
    int opened;
};

/* ---- ranks as threads ------------------------------------------------------------------------ */

static void arrive(struct run *run)
{
    pthread_mutex_lock(&run->mutex);
    run->arrived++;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->mutex);
}

static void wait_open(struct run *run, int gate)
{
    pthread_mutex_lock(&run->mutex);
    while (run->opened < gate)
        pthread_cond_wait(&run->moved, &run->mutex);
    pthread_mutex_unlock(&run->mutex);
}

static void wait_arrived(struct run *run, int64_t ranks)
{
    pthread_mutex_lock(&run->mutex);
    while (run->arrived < ranks)
        pthread_cond_wait(&run->moved, &run->mutex);
    run->arrived = 0;
    pthread_mutex_unlock(&run->mutex);
}

static void open_gate(struct run *run)
{
    pthread_mutex_lock(&run->mutex);
    run->opened++;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->mutex);
}

static enum sc_status create_rank(struct rank *rank, struct sc_error *err)
{
    struct run *run = rank->run;
    SC_TRY(run->backend->create(run->world, rank->number, &rank->device, err));
    return sc_executor_create(run->backend, rank->device, run->program, rank->number,
                              run->setup.steps, &rank->executor, err);
}

static enum sc_status make_ready(struct rank *rank, struct sc_error *err)
{
    SC_TRY(create_rank(rank, err));
    SC_TRY(sc_executor_issue_init(rank->executor, err));
    return sc_executor_finish_init(rank->executor, err);
}

static void *live(void *argument)
{
    struct rank *rank = argument;
    struct run *run = rank->run;
    struct sc_error err = SC_ERROR_INIT;
    if (make_ready(rank, &err) != SC_OK)
        sc_failure_set(&run->failure, &err);
    arrive(run);
    wait_open(run, 1);
    if (!sc_failure_is_set(&run->failure) && sc_executor_run(rank->executor, &err) != SC_OK)
        sc_failure_set(&run->failure, &err);
    if (sc_failure_get(&run->failure, &err) != SC_OK)
        sc_process_announce(&run->process, &err);
    arrive(run);
    return NULL;
}

static enum sc_status start_ranks(struct run *run, struct sc_error *err)
{
    for (int64_t r = 0; r < run->setup.local_ranks; r++) {
        struct rank *rank = &run->ranks[r];
        int code = pthread_create(&rank->thread, NULL, live, rank);
        if (code != 0)
            return sc_fail(err, SC_MACHINE, "rank %lld: cannot start its thread: %s",
                           (long long)rank->number, strerror(code));
        rank->started = true;
    }
    return SC_OK;
}

static int64_t started_ranks(const struct run *run)
{
    int64_t started = 0;
    for (int64_t r = 0; r < run->setup.local_ranks; r++)
        started += run->ranks[r].started;
    return started;
}

/* The outcome of a stage, the same in all processes; kept as the run's failure. */
static enum sc_status agree(struct run *run, struct sc_error *err)
{
    enum sc_status mine = sc_failure_get(&run->failure, err);
    enum sc_status all = sc_process_agree(&run->process, mine, err);
    if (all != SC_OK)
        sc_failure_set(&run->failure, err);
    return all;
}

static enum sc_status run_threads(struct run *run, struct sc_error *err)
{
    if (start_ranks(run, err) != SC_OK)
        sc_failure_set(&run->failure, err);
    int64_t started = started_ranks(run);
    wait_arrived(run, started);
    agree(run, err);
    sc_contention_begin(run->options.cores, &run->watch);
    run->begin = sc_clock();
    open_gate(run);
    wait_arrived(run, started);
    for (int64_t r = 0; r < run->setup.local_ranks; r++)
        if (run->ranks[r].started)
            pthread_join(run->ranks[r].thread, NULL);
    sc_contention_end(&run->watch, &run->contention);
    enum sc_status status = agree(run, err);
    sc_process_quiet(&run->process);
    return status;
}

/* ---- one thread for all ranks ---------------------------------------------------------------- */

static enum sc_status serial_until(struct run *run, bool (*done)(const struct sc_executor *),
                                   bool issue, struct sc_error *err)
{
    for (;;) {
        bool all = true, issued = false, progress = false;
        for (int64_t r = 0; r < run->setup.local_ranks; r++) {
            struct sc_executor *executor = run->ranks[r].executor;
            bool one = false;
            if (issue)
                SC_TRY(sc_executor_try_step(executor, &one, err));
            issued |= one;
            all &= done(executor);
        }
        if (all)
            return SC_OK;
        SC_TRY(run->backend->advance(run->world, &progress, err));
        if (!progress && !issued)
            return sc_fail(err, SC_BUG, "deadlock: no operation of any rank can run");
    }
}

static enum sc_status run_serial(struct run *run, struct sc_error *err)
{
    for (int64_t r = 0; r < run->setup.local_ranks; r++) {
        SC_TRY(create_rank(&run->ranks[r], err));
        SC_TRY(sc_executor_issue_init(run->ranks[r].executor, err));
    }
    SC_TRY(serial_until(run, sc_executor_init_done, false, err));
    sc_contention_begin(run->options.cores, &run->watch);
    run->begin = sc_clock();
    enum sc_status status = serial_until(run, sc_executor_steps_done, true, err);
    sc_contention_end(&run->watch, &run->contention);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum sc_status open_process(struct run *run, struct sc_error *err)
{
    sc_process_alone(&run->process);
    if (run->options.transport == SC_TRANSPORT_THREADS)
        return SC_OK;
    SC_TRY(sc_process_mpi(&run->process, err));
    if (run->process.count != run->program->mesh.ranks)
        return sc_fail(err, SC_USAGE, "mpi: found %lld processes, expected %lld, the plan's ranks",
                       (long long)run->process.count, (long long)run->program->mesh.ranks);
    return SC_OK;
}

static enum sc_status check_options(const struct sc_run_options *options, struct sc_error *err)
{
    if (options->steps < 1)
        return sc_fail(err, SC_USAGE, "run: found %lld steps, expected at least 1",
                       (long long)options->steps);
    if (options->warmup < 0)
        return sc_fail(err, SC_USAGE, "run: found %lld steps of warm-up, expected at least 0",
                       (long long)options->warmup);
    return SC_OK;
}

static enum sc_status open_data(struct run *run, struct sc_error *err)
{
    if (run->options.data.next)
        return SC_OK;
    int64_t vocab = run->program->vocab_size > 0 ? run->program->vocab_size : 1;
    SC_TRY(sc_data_synthetic(vocab, run->options.data_seed, &run->synthetic, err));
    run->options.data = (struct sc_batch_source){sc_data_next, run->synthetic};
    return SC_OK;
}

/* All ranks of this process together must fit this machine. */
static enum sc_status check_memory(const struct run *run, struct sc_error *err)
{
    double need = 0, have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char needed[32], there[32];
    for (int64_t r = 0; r < run->setup.local_ranks; r++) {
        uint32_t class = sc_program_class_of(run->program, run->setup.first_rank + r);
        for (int place = 0; place < SC_PLACE_COUNT; place++)
            if (place != SC_DEVICE || !run->backend->device_apart)
                need += (double)run->program->classes.items[class].memory[place].arena_bytes;
    }
    if (need <= have)
        return SC_OK;
    return sc_fail(err, SC_NO, "run: %lld ranks here need %s of memory, this machine has %s",
                   (long long)run->setup.local_ranks, sc_print_bytes(need, needed, sizeof needed),
                   sc_print_bytes(have, there, sizeof there));
}

static void make_setup(struct run *run)
{
    const struct sc_run_options *options = &run->options;
    bool processes = options->transport != SC_TRANSPORT_THREADS;
    int64_t traced = options->traced_steps > 0 ? options->traced_steps : TRACED_STEPS;
    run->setup = (struct sc_backend_setup){
        .program = run->program,
        .options = options,
        .process = processes ? &run->process : NULL,
        .first_rank = processes ? run->process.index : 0,
        .local_ranks = processes ? 1 : run->program->mesh.ranks,
        .steps = options->warmup + options->steps,
        .initial =
            options->initial_file ? (const float *const *)run->initial.data : options->initial,
        .failure = &run->failure,
    };
    if (options->trace)
        run->setup.traced_steps = traced < options->steps ? traced : options->steps;
}

static enum sc_status open_ranks(struct run *run, struct sc_error *err)
{
    run->ranks = calloc((size_t)run->setup.local_ranks, sizeof *run->ranks);
    if (!run->ranks)
        return sc_fail_memory(err, (size_t)run->setup.local_ranks * sizeof *run->ranks);
    for (int64_t r = 0; r < run->setup.local_ranks; r++)
        run->ranks[r] = (struct rank){.run = run, .number = run->setup.first_rank + r};
    return SC_OK;
}

static enum sc_status open_alone(struct run *run, struct sc_error *err)
{
    SC_TRY(check_options(&run->options, err));
    SC_TRY(run->backend->check(run->program, &run->options, err));
    SC_TRY(open_data(run, err));
    if (run->options.initial_file)
        SC_TRY(sc_tensors_load(run->program, run->options.initial_file, &run->initial, err));
    make_setup(run);
    SC_TRY(check_memory(run, err));
    SC_TRY(open_ranks(run, err));
    return sc_snapshot_open(&run->snapshot, run->backend, run->program, &run->options,
                            run->setup.first_rank, run->setup.local_ranks, err);
}

static enum sc_status open_run(struct run *run, struct sc_error *err)
{
    const char *name = run->options.backend ? run->options.backend : "host";
    SC_TRY(sc_backend_find(name, &run->backend, err));
    SC_TRY(open_process(run, err));
    enum sc_status mine = open_alone(run, err);
    SC_TRY(sc_process_agree(&run->process, mine, err));
    mine = run->backend->open(&run->setup, &run->world, err);
    return sc_process_agree(&run->process, mine, err);
}

static void close_run(struct run *run)
{
    for (int64_t r = 0; run->ranks && r < run->setup.local_ranks; r++) {
        sc_executor_destroy(&run->ranks[r].executor);
        if (run->ranks[r].device)
            run->backend->destroy(&run->ranks[r].device);
    }
    free(run->ranks);
    if (run->world)
        run->backend->close(&run->world);
    sc_snapshot_close(&run->snapshot);
    sc_tensors_free(&run->initial);
    sc_data_close(&run->synthetic);
    sc_failure_destroy(&run->failure);
    pthread_mutex_destroy(&run->mutex);
    pthread_cond_destroy(&run->moved);
}

/* ---- results --------------------------------------------------------------------------------- */

/* One array of `bytes` a rank, in rank order, at process 0 (NULL elsewhere): from a function of
 * the rank's device. The caller frees. */
static enum sc_status gather(struct run *run, size_t bytes,
                             const void *(*of)(const struct run *, const struct rank *), char **out,
                             struct sc_error *err)
{
    size_t ranks = (size_t)run->program->mesh.ranks;
    bool root = run->process.index == 0;
    char *all = root ? malloc(ranks * bytes + 1) : NULL;
    if (root && !all)
        return sc_fail_memory(err, ranks * bytes);
    enum sc_status status = SC_OK;
    if (run->process.count > 1) {
        status = sc_process_gather(&run->process, of(run, &run->ranks[0]), bytes, all, err);
    } else {
        for (int64_t r = 0; r < run->setup.local_ranks; r++)
            memcpy(all + (size_t)r * bytes, of(run, &run->ranks[r]), bytes);
    }
    if (status != SC_OK) {
        free(all);
        return status;
    }
    *out = all;
    return SC_OK;
}

static const void *read_outs_of(const struct run *run, const struct rank *rank)
{
    return run->backend->read_outs(rank->device);
}

static const void *step_ends_of(const struct run *run, const struct rank *rank)
{
    return run->backend->step_ends(rank->device);
}

static const void *stamps_of(const struct run *run, const struct rank *rank)
{
    return run->backend->stamps(rank->device);
}

/* Ranks that differ along the tensor axis have the same tokens: one of them counts. */
static bool counts(const struct sc_program *program, int64_t rank)
{
    int64_t coordinates[SC_AXIS_COUNT];
    sc_mesh_coordinates(&program->mesh, rank, coordinates);
    return coordinates[SC_TENSOR] == 0;
}

static enum sc_status gather_losses(struct run *run, struct sc_run_result *result,
                                    struct sc_error *err)
{
    size_t steps = (size_t)run->setup.steps;
    char *all = NULL;
    SC_TRY(gather(run, steps * sizeof(double), read_outs_of, &all, err));
    if (!result->root)
        return SC_OK;
    result->has_losses = run->program->loss_value >= 0;
    result->losses = calloc(steps, sizeof *result->losses);
    for (int64_t r = 0; result->losses && r < run->program->mesh.ranks; r++)
        for (size_t s = 0; counts(run->program, r) && s < steps; s++)
            result->losses[s] += ((const double *)all)[(size_t)r * steps + s];
    free(all);
    return result->losses ? SC_OK : sc_fail_memory(err, steps * sizeof(double));
}

/* Clocks of other processes are moved to that of process 0. */
static void align_clocks(struct run *run, const double *offsets, struct sc_measured *measured)
{
    size_t sets = (size_t)measured->traced_steps;
    for (int64_t r = 0; r < run->program->mesh.ranks; r++) {
        const struct sc_class *class =
            &run->program->classes.items[sc_program_class_of(run->program, r)];
        for (int64_t s = 0; s < run->setup.steps; s++)
            measured->step_ends[r][s] += offsets[r];
        for (size_t i = 0; measured->stamps && i < sets * class->step.ops.count; i++) {
            measured->stamps[r][i].issue += offsets[r];
            measured->stamps[r][i].start += offsets[r];
            measured->stamps[r][i].end += offsets[r];
        }
    }
}

/* All classes' stamps in arrays of one size, that of the longest list. */
static size_t stamp_bytes(const struct run *run)
{
    size_t most = 0;
    for (size_t c = 0; c < run->program->classes.count; c++) {
        size_t ops = run->program->classes.items[c].step.ops.count;
        most = ops > most ? ops : most;
    }
    return most * (size_t)run->setup.traced_steps * sizeof(struct sc_stamp);
}

static enum sc_status make_trace(struct run *run, const struct sc_measured *measured,
                                 struct sc_run_result *result, struct sc_error *err)
{
    SC_TRY(sc_trace_begin(&result->trace, SC_MEASURED, run->program, err));
    result->has_trace = true;
    snprintf(result->trace.backend, sizeof result->trace.backend, "%s", run->backend->name);
    snprintf(result->trace.machine, sizeof result->trace.machine, "%s", result->machine);
    result->trace.measured_on = result->measured_on;
    if (result->contention.known)
        result->trace.others_share = result->contention.others_share;
    if (run->options.hardware)
        snprintf(result->trace.hardware, sizeof result->trace.hardware, "%s",
                 run->options.hardware);
    return sc_measure_trace(measured, result->step_s, run->options.trace_ranks, &result->trace,
                            err);
}

static enum sc_status measure(struct run *run, struct sc_measured *measured,
                              struct sc_run_result *result, struct sc_error *err)
{
    size_t steps = (size_t)measured->steps;
    result->step_s = calloc(steps, sizeof *result->step_s);
    double *sorted = calloc(steps, sizeof *sorted);
    if (!result->step_s || !sorted) {
        free(sorted);
        return sc_fail_memory(err, steps * sizeof *sorted);
    }
    sc_measure_periods(measured, result->step_s);
    memcpy(sorted, result->step_s, steps * sizeof *sorted);
    result->step_time_s = sc_fit_quantile(sorted, steps, 0.5);
    result->contention.spread =
        (sc_fit_quantile(sorted, steps, 0.9) - sc_fit_quantile(sorted, steps, 0.1)) /
        result->step_time_s;
    free(sorted);
    return run->options.trace ? make_trace(run, measured, result, err) : SC_OK;
}

/* Views of gathered arrays, one a rank. */
static enum sc_status split(struct run *run, char *ends, char *stamps, const double *offsets,
                            struct sc_run_result *result, struct sc_error *err)
{
    size_t ranks = (size_t)run->program->mesh.ranks;
    struct sc_measured measured = {
        .program = run->program,
        .first_step = run->options.warmup,
        .steps = run->options.steps,
        .traced_steps = run->setup.traced_steps,
        .begin = run->begin,
    };
    measured.step_ends = calloc(ranks, sizeof *measured.step_ends);
    struct sc_stamp **views = calloc(ranks, sizeof *views);
    enum sc_status status = SC_OK;
    if (!measured.step_ends || !views)
        status = sc_fail_memory(err, ranks * sizeof *views);
    for (size_t r = 0; status == SC_OK && r < ranks; r++) {
        measured.step_ends[r] = (double *)ends + r * (size_t)run->setup.steps;
        views[r] = stamps ? (struct sc_stamp *)(stamps + r * stamp_bytes(run)) : NULL;
    }
    measured.stamps = stamps ? views : NULL;
    if (status == SC_OK) {
        align_clocks(run, offsets, &measured);
        status = measure(run, &measured, result, err);
    }
    free(measured.step_ends);
    free(views);
    return status;
}

/* Seconds to add to each rank's clock, at process 0. */
static enum sc_status gather_offsets(struct run *run, double **out, struct sc_error *err)
{
    double mine = sc_process_clock_offset(&run->process);
    double *all = calloc((size_t)run->program->mesh.ranks, sizeof *all);
    if (!all)
        return sc_fail_memory(err, (size_t)run->program->mesh.ranks * sizeof *all);
    enum sc_status status = SC_OK;
    if (run->process.count > 1)
        status = sc_process_gather(&run->process, &mine, sizeof mine, all, err);
    if (status != SC_OK) {
        free(all);
        return status;
    }
    *out = all;
    return SC_OK;
}

static enum sc_status gather_times(struct run *run, struct sc_run_result *result,
                                   struct sc_error *err)
{
    char *ends = NULL, *stamps = NULL;
    double *offsets = NULL;
    enum sc_status status = gather_offsets(run, &offsets, err);
    if (status == SC_OK)
        status = gather(run, (size_t)run->setup.steps * sizeof(double), step_ends_of, &ends, err);
    if (status == SC_OK && run->options.trace)
        status = gather(run, stamp_bytes(run), stamps_of, &stamps, err);
    if (status == SC_OK && result->root)
        status = split(run, ends, stamps, offsets, result, err);
    free(ends);
    free(stamps);
    free(offsets);
    return status;
}

static enum sc_status gather_memory(struct run *run, struct sc_run_result *result,
                                    struct sc_error *err)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t mine = (uint64_t)usage.ru_maxrss * 1024;
    uint64_t *all = calloc((size_t)run->process.count, sizeof *all);
    if (!all)
        return sc_fail_memory(err, (size_t)run->process.count * sizeof *all);
    enum sc_status status = sc_process_gather(&run->process, &mine, sizeof mine, all, err);
    for (int64_t p = 0; status == SC_OK && result->root && p < run->process.count; p++)
        if (all[p] > result->memory.resident_bytes)
            result->memory.resident_bytes = all[p];
    free(all);
    for (size_t c = 0; c < run->program->classes.count; c++)
        for (int place = 0; place < SC_PLACE_COUNT; place++) {
            uint64_t bytes = run->program->classes.items[c].memory[place].arena_bytes;
            if (bytes > result->memory.arena_bytes[place])
                result->memory.arena_bytes[place] = bytes;
        }
    return status;
}

/* "AMD EPYC, 2 cores; openblas 0.3.21 SkylakeX, kernels x86-64-v4, threads" */
static void describe_machine(const struct run *run, struct sc_run_result *result)
{
    char backend[128] = "";
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct sc_identity *identity = &result->measured_on;
    sc_identity_here(run->backend, run->options.cores, identity);
    /* Where a launcher bound the processes to cores of their own, none of them knows the node's. */
    if (run->process.node_count > 1 && identity->cores < online && run->options.cores == 0)
        identity->cores = 0;
    if (run->backend->describe)
        run->backend->describe(run->world, backend, sizeof backend);
    snprintf(result->machine, sizeof result->machine, "%.100s, %ld cores; %.120s",
             identity->processor[0] ? identity->processor : "unknown processor", online, backend);
}

/* The ranks of other processes here are no strangers. On several nodes nobody sees all cores. */
static enum sc_status gather_contention(struct run *run, struct sc_run_result *result,
                                        struct sc_error *err)
{
    size_t count = (size_t)run->process.count;
    double *own = calloc(count, sizeof *own);
    if (!own)
        return sc_fail_memory(err, count * sizeof *own);
    enum sc_status status =
        sc_process_gather(&run->process, &run->contention.own_s, sizeof *own, own, err);
    result->contention = run->contention;
    result->contention.known &= run->process.node_count == run->process.count;
    for (size_t p = 1; status == SC_OK && result->root && p < count; p++)
        sc_contention_add_own(&result->contention, own[p]);
    free(own);
    return status;
}

static enum sc_status gather_results(struct run *run, struct sc_run_result *result,
                                     struct sc_error *err)
{
    result->root = run->process.index == 0;
    result->warmup = run->options.warmup;
    result->steps = run->options.steps;
    describe_machine(run, result);
    SC_TRY(gather_contention(run, result, err));
    SC_TRY(gather_losses(run, result, err));
    SC_TRY(gather_times(run, result, err));
    SC_TRY(gather_memory(run, result, err));
    if (run->options.snapshot_step >= 0) {
        SC_TRY(sc_snapshot_gather(&run->snapshot, &run->process, &result->gradients,
                                  &result->parameters, err));
        result->has_snapshot = result->root;
    }
    return SC_OK;
}

/* The parameters after the last step. */
static enum sc_status save(struct run *run, struct sc_error *err)
{
    struct sc_tensors tensors = {0};
    if (!run->options.save_file)
        return SC_OK;
    enum sc_status status = SC_OK;
    for (int64_t r = 0; status == SC_OK && r < run->setup.local_ranks; r++)
        status = sc_snapshot_read_parameters(&run->snapshot, r, run->ranks[r].device,
                                             run->setup.steps, err);
    SC_TRY(sc_process_agree(&run->process, status, err));
    SC_TRY(sc_snapshot_gather(&run->snapshot, &run->process, NULL, &tensors, err));
    if (run->process.index == 0)
        status = sc_tensors_save(run->program, &tensors, run->options.save_file, err);
    sc_tensors_free(&tensors);
    return sc_process_agree(&run->process, status, err);
}

static enum sc_status do_run(struct run *run, struct sc_run_result *result, struct sc_error *err)
{
    SC_TRY(open_run(run, err));
    if (run->backend->serial && run->backend->serial(&run->options))
        SC_TRY(run_serial(run, err));
    else
        SC_TRY(run_threads(run, err));
    SC_TRY(gather_results(run, result, err));
    return save(run, err);
}

enum sc_status sc_run(const struct sc_program *program, const struct sc_run_options *options,
                      struct sc_run_result *result, struct sc_error *err)
{
    struct run run = {.program = program, .options = *options};
    struct sc_run_result made;
    memset(&made, 0, sizeof made);
    sc_trace_init(&made.trace);
    sc_failure_init(&run.failure);
    pthread_mutex_init(&run.mutex, NULL);
    pthread_cond_init(&run.moved, NULL);
    enum sc_status status = do_run(&run, &made, err);
    close_run(&run);
    if (status != SC_OK)
        sc_run_result_free(&made);
    *result = made;
    return status;
}

enum sc_status sc_run_plan(const struct sc_plan *plan, const struct sc_run_options *options,
                           struct sc_run_result *result, struct sc_error *err)
{
    const uint64_t unlimited[SC_PLACE_COUNT] = {0};
    struct sc_program *program = NULL;
    struct sc_run_options mine = *options;
    mine.data_seed = plan->seed;
    SC_TRY(sc_lower(plan, &program, err));
    enum sc_status status = sc_program_prepare(program, unlimited, true, err);
    if (status == SC_OK)
        status = sc_run(program, &mine, result, err);
    sc_program_destroy(&program);
    return status;
}

void sc_run_result_free(struct sc_run_result *result)
{
    free(result->losses);
    free(result->step_s);
    sc_trace_free(&result->trace);
    sc_tensors_free(&result->gradients);
    sc_tensors_free(&result->parameters);
    memset(result, 0, sizeof *result);
    sc_trace_init(&result->trace);
}

/* ---- mpirun ---------------------------------------------------------------------------------- */

/* mpirun -n RANKS ... THIS-PROGRAM argv[1]...; `self` and `count` are room for two of the words.
 * The caller frees. */
static const char **mpirun_arguments(int64_t ranks, char *const argv[], char self[4096],
                                     char count[32], struct sc_error *err)
{
    ssize_t length = readlink("/proc/self/exe", self, 4095);
    size_t arguments = 0;
    if (length < 0) {
        sc_fail(err, SC_MACHINE, "mpirun: cannot find this program's own file");
        return NULL;
    }
    self[length] = '\0';
    snprintf(count, 32, "%lld", (long long)ranks);
    while (argv[arguments])
        arguments++;
    const char *front[] = {"mpirun", "-n", count, "--oversubscribe", "--bind-to", "none", self};
    size_t fronts = sizeof front / sizeof *front;
    const char **all = calloc(fronts + arguments + 1, sizeof *all);
    if (!all) {
        sc_fail_memory(err, (fronts + arguments) * sizeof *all);
        return NULL;
    }
    memcpy(all, front, sizeof front);
    for (size_t i = 1; i < arguments; i++)
        all[fronts + i - 1] = argv[i];
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    return all;
}

enum sc_status sc_launch_mpirun(int64_t ranks, char *const argv[], struct sc_error *err)
{
    char self[4096], count[32];
    const char **all = mpirun_arguments(ranks, argv, self, count, err);
    if (!all)
        return err->status;
    execvp("mpirun", (char *const *)all);
    free(all);
    return sc_fail(err, SC_MACHINE, "mpirun: cannot start it");
}

enum sc_status sc_launch_mpirun_wait(int64_t ranks, char *const argv[], struct sc_error *err)
{
    char self[4096], count[32];
    pid_t child = 0;
    int ended = 0;
    if (!sc_process_has_mpi())
        return sc_fail(err, SC_NO, "mpirun: this build has no MPI");
    const char **all = mpirun_arguments(ranks, argv, self, count, err);
    if (!all)
        return err->status;
    int code = posix_spawnp(&child, "mpirun", NULL, NULL, (char *const *)all, environ);
    free(all);
    if (code != 0)
        return sc_fail(err, SC_NO, "mpirun: cannot start it: %s", strerror(code));
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return sc_fail(err, SC_MACHINE, "mpirun: lost: %s", strerror(errno));
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return SC_OK;
    return sc_fail(err, SC_MACHINE, "mpirun: its processes failed (exit code %d)",
                   WIFEXITED(ended) ? WEXITSTATUS(ended) : -1);
}

bool sc_launched_by_mpi(void)
{
    return sc_process_under_mpi();
}

void sc_launch_end(void)
{
    sc_process_end();
}
