/* Calibration: the grid in four arrangements of ranks and cores, collectives among processes, the
 * fits, the profile. */
#include "exec/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/calibrate_fit.h"
#include "exec/calibrate_profile.h"
#include "exec/calibrate_transport.h"
#include "exec/clock.h"
#include "exec/cores.h"
#include "exec/identity.h"

enum { RANKS_MAX = 16, TRIAL_STEPS = 1, LEAST_STEPS = 5, MOST_STEPS = 31, TINY_STEPS = 2 };

#define NEUTRAL_SECONDS 50.0

enum arrangement { EACH, WHOLE, ALONE, CROWDED, ARRANGEMENTS };

static const struct {
    const char *what;
    struct sc_grid_parts parts;
    double share; /* of the time */
} arrangements[ARRANGEMENTS] = {
    [EACH] = {"one core a rank", {.compute = true, .streaming = true, .collectives = true}, 0.6},
    [WHOLE] = {"all cores for one rank", {.compute = true}, 0.15},
    [ALONE] = {"one core, nothing beside it", {.streaming = true}, 0.05},
    [CROWDED] = {"two ranks a core", {.collectives = true}, 0.1},
};

/* Of the time, for the collectives of one transport of processes. */
#define PROCESS_SHARE 0.15

/* A transport's grids: as many ranks as cores (or as asked), and twice as many. */
struct pair {
    struct sc_grid grid[2];
    bool have[2];
};

struct calibration {
    const struct sc_calibrate_options *options;
    struct sc_grid grids[ARRANGEMENTS];
    bool have[ARRANGEMENTS];
    struct pair pairs[SC_TRANSPORT_COUNT]; /* but threads' */
    struct sc_fits fits;
    char machine[256];
    double begun, seconds;
};

static int64_t available_cores(const struct sc_calibrate_options *options)
{
    cpu_set_t set;
    int64_t count = sc_cores_allowed(options->cores, &set);
    count = count > 0 ? count : 1;
    return count < RANKS_MAX ? count : RANKS_MAX;
}

static void tell(const struct calibration *c, const char *what)
{
    double share = (sc_clock() - c->begun) / c->seconds;
    if (c->options->progress != NULL) {
        c->options->progress(c->options->context, what, fmin(share, 0.99));
    }
}

/* One step tells how many there is time for; what is kept is the longer run's. */
static enum sc_status measure(struct calibration *c, enum arrangement which, struct sc_error *err)
{
    struct sc_grid *grid = &c->grids[which];
    int64_t steps = TINY_STEPS;
    if (!c->options->tiny) {
        double begin = sc_clock();
        SC_TRY(sc_grid_measure(grid, TRIAL_STEPS, c->machine, sizeof(c->machine), err));
        double step = (sc_clock() - begin) / 3.0; /* two of warm-up */
        double room = arrangements[which].share * c->seconds / fmax(step, 1e-6) - 2.0;
        steps = (int64_t)fmin(fmax(room, LEAST_STEPS), MOST_STEPS);
    }
    return sc_grid_measure(grid, steps, c->machine, sizeof(c->machine), err);
}

static enum sc_status arrange(struct calibration *c, enum arrangement which, int64_t ranks,
                              int64_t cores, struct sc_error *err)
{
    struct sc_grid_parts parts = arrangements[which].parts;
    parts.tiny = c->options->tiny;
    tell(c, arrangements[which].what);
    SC_TRY(sc_grid_create(ranks, cores, parts, &c->grids[which], err));
    c->have[which] = true;
    return measure(c, which, err);
}

static enum sc_status measure_all(struct calibration *c, struct sc_error *err)
{
    int64_t cores = available_cores(c->options);
    SC_TRY(arrange(c, EACH, cores, cores, err));
    if (cores > 1) {
        SC_TRY(arrange(c, WHOLE, 1, cores, err));
        SC_TRY(arrange(c, CROWDED, 2 * cores, cores, err));
    }
    SC_TRY(arrange(c, ALONE, 1, 1, err));
    tell(c, "issuing operations");
    double issue_s = 0.0;
    SC_TRY(sc_grid_measure_issue(cores, cores, &issue_s, err));
    SC_TRY(sc_calibrate_fit(&c->grids[EACH], c->have[WHOLE] ? &c->grids[WHOLE] : NULL,
                            &c->grids[ALONE], c->have[CROWDED] ? &c->grids[CROWDED] : NULL,
                            &c->fits, err));
    c->fits.issue_s = issue_s;
    return SC_OK;
}

/* ---- processes --------------------------------------------------------------------------- */

/* Other processes take the times and leave them in a file. */
static enum sc_status measure_started(struct calibration *c, enum sc_run_transport transport,
                                      int64_t ranks, struct sc_grid *out, struct sc_error *err)
{
    const char *folder = getenv("TMPDIR");
    char file[4096];
    if (c->options->start == NULL) {
        return sc_fail(err, SC_NO, "transport %s: nobody starts its processes",
                       sc_run_transport_name(transport));
    }
    snprintf(file, sizeof(file), "%.4000s/stepcast-timings-XXXXXX",
             folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    int descriptor = mkstemp(file);
    if (descriptor < 0) {
        return sc_fail(err, SC_MACHINE, "%.400s: cannot make a temporary file", file);
    }
    close(descriptor);
    enum sc_status status =
        c->options->start(c->options->start_context, transport, ranks, file, err);
    if (status == SC_OK) {
        status = sc_calibrate_transport_read(file, out, err);
    }
    unlink(file);
    return status;
}

void sc_calibrate_transport_task(const struct sc_calibrate_options *options,
                                 enum sc_run_transport transport, struct sc_transport_task *out)
{
    double seconds = options->seconds > 0.0 ? options->seconds : NEUTRAL_SECONDS;
    *out = (struct sc_transport_task){.transport = transport,
                                      .cores = available_cores(options),
                                      .seconds = PROCESS_SHARE * seconds,
                                      .tiny = options->tiny};
}

static enum sc_status measure_processes(struct calibration *c, enum sc_run_transport transport,
                                        int64_t ranks, struct sc_grid *out, struct sc_error *err)
{
    struct sc_transport_task task;
    sc_calibrate_transport_task(c->options, transport, &task);
    tell(c, transport == SC_TRANSPORT_MPI ? "collectives over mpi" : "collectives over sockets");
    return c->options->process != NULL
               ? sc_calibrate_transport(&task, c->options->process, out, err)
               : measure_started(c, transport, ranks, out, err);
}

static enum sc_status measure_pair(struct calibration *c, enum sc_run_transport transport,
                                   struct sc_error *err)
{
    const struct sc_process *process = c->options->process;
    struct pair *pair = &c->pairs[transport];
    bool alone = process != NULL || c->options->ranks > 0;
    int64_t cores = available_cores(c->options);
    int64_t ranks = process != NULL         ? process->count
                    : c->options->ranks > 0 ? c->options->ranks
                                            : cores;
    if (ranks < 2) {
        return sc_fail(err, SC_NO, "transport %s: found 1 rank, expected at least 2",
                       sc_run_transport_name(transport));
    }
    for (int i = 0; i < (alone ? 1 : 2); i++) {
        SC_TRY(measure_processes(c, transport, ranks << i, &pair->grid[i], err));
        pair->have[i] = true;
    }
    return SC_OK;
}

static enum sc_status fit_pair(struct calibration *c, enum sc_run_transport transport,
                               struct sc_error *err)
{
    const struct pair *pair = &c->pairs[transport];
    if (!pair->have[0] || (c->options->process != NULL && c->options->process->index > 0)) {
        return SC_OK;
    }
    return sc_calibrate_fit_transport(&pair->grid[0], pair->have[1] ? &pair->grid[1] : NULL,
                                      &c->fits.transport[transport], err);
}

/* One that is not there is no failure, unless it was asked for; one of which only the first grid
 * was measured has no fit, and no rows to compare with it. */
static enum sc_status measure_transports(struct calibration *c, struct sc_calibration *out,
                                         struct sc_error *err)
{
    for (int t = SC_TRANSPORT_THREADS + 1; t < SC_TRANSPORT_COUNT; t++) {
        enum sc_run_transport transport = (enum sc_run_transport)t;
        bool chosen = transport == c->options->transport;
        if (!chosen && !c->options->optional[t]) {
            continue;
        }
        enum sc_status status = measure_pair(c, transport, err);
        if (status != SC_OK && chosen) {
            return status;
        }
        if (status != SC_OK) {
            c->pairs[t].have[0] = false;
            snprintf(out->skipped, sizeof(out->skipped), "%.1000s", err->text);
            *err = (struct sc_error)SC_ERROR_INIT;
            continue;
        }
        SC_TRY(fit_pair(c, transport, err));
    }
    return SC_OK;
}

/* ---- how well the profile repeats it ----------------------------------------------------- */

/* Of what ranks that run the same at once get from memory that they share. */
static double crowding(const struct sc_hardware *h)
{
    double wanted = h->device.memory_draw * (double)h->node.devices;
    return fmax(wanted / h->device.memory_bandwidth, 1.0);
}

static double seconds_of(const struct sc_hardware *h, const struct sc_cost *cost)
{
    double longest = 0.0;
    for (int i = 0; i < SC_COST_RESOURCE_COUNT; i++) {
        const struct sc_cost_use *use = &cost->use[i];
        double slower = i == SC_COST_MEMORY ? crowding(h) : 1.0;
        if (use->amount > 0.0) {
            longest = fmax(longest, slower * use->amount / use->rate);
        }
    }
    return cost->latency_s + longest;
}

static int level_of(const struct sc_hardware *h, enum sc_run_transport transport)
{
    const char *name = sc_run_transport_name(transport);
    for (int i = 0; i < h->level_count; i++) {
        if (strcmp(h->links[h->levels[i].link].transport, name) == 0) {
            return i;
        }
    }
    return -1;
}

static enum sc_status price(const struct sc_hardware *h, const struct sc_grid *grid,
                            const struct sc_probe *probe, struct sc_cost *out, struct sc_error *err)
{
    struct sc_group_place group = {.members = grid->ranks,
                                   .nodes = 1,
                                   .members_per_node = grid->ranks,
                                   .level = level_of(h, grid->transport),
                                   .share = 1.0};
    switch (probe->family) {
    case SC_PROBE_GEMM:
        return sc_cost_gemm(h, &probe->gemm, out, err);
    case SC_PROBE_ATTENTION:
        return sc_cost_attention(h, &probe->attention, out, err);
    case SC_PROBE_ADAM:
        return sc_cost_adam(h, SC_HW_DEVICE, probe->elements, probe->bytes, out, err);
    case SC_PROBE_COLLECTIVE:
        sc_cost_collective(h, probe->collective, probe->bytes, &group, out);
        return SC_OK;
    default:
        sc_cost_memory_bound(h, probe->kind, probe->bytes, probe->elements, out);
        return SC_OK;
    }
}

static enum sc_status add_rows(struct sc_calibration *out, const struct sc_grid *grid,
                               struct sc_error *err)
{
    struct sc_hardware h = out->hardware;
    SC_TRY(sc_hardware_divide(&h, grid->ranks, err));
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        struct sc_cost cost;
        if (probe->family >= SC_PROBE_CHAIN || probe->family == SC_PROBE_STREAM) {
            continue;
        }
        SC_TRY(price(&h, grid, probe, &cost, err));
        struct sc_calibration_row *row = sc_array_push(&out->rows);
        if (row == NULL) {
            return sc_fail_memory(err, sizeof(*row));
        }
        *row = (struct sc_calibration_row){.ranks = grid->ranks,
                                           .cores = grid->cores / grid->ranks,
                                           .flops = probe->flops,
                                           .bytes = probe->bytes,
                                           .elements = probe->elements,
                                           .measured_s = probe->seconds,
                                           .spread = probe->spread,
                                           .fitted_s = seconds_of(&h, &cost)};
        snprintf(row->kind, sizeof(row->kind), "%s%s%s", probe->kind,
                 grid->transport == SC_TRANSPORT_THREADS ? "" : ", ",
                 grid->transport == SC_TRANSPORT_THREADS ? ""
                                                         : sc_run_transport_name(grid->transport));
        snprintf(row->shape, sizeof(row->shape), "%s", probe->shape);
    }
    return SC_OK;
}

static enum sc_status summarize(struct sc_calibration *out, struct sc_error *err)
{
    size_t count = out->rows.count, used = 0;
    double *errors = malloc((count + 1) * sizeof(*errors));
    double *spreads = malloc((count + 1) * sizeof(*spreads));
    if (errors == NULL || spreads == NULL) {
        free(errors);
        free(spreads);
        return sc_fail_memory(err, count * sizeof(*errors));
    }
    for (size_t i = 0; i < count; i++) {
        const struct sc_calibration_row *row = &out->rows.items[i];
        if (row->measured_s > 0.0) {
            spreads[used] = row->spread;
            errors[used++] = fabs(row->fitted_s / row->measured_s - 1.0);
        }
    }
    if (used > 0) {
        out->median_error = sc_fit_quantile(errors, used, 0.5);
        out->worst_error = errors[used - 1];
        out->spread = sc_fit_quantile(spreads, used, 0.5);
    }
    free(errors);
    free(spreads);
    return SC_OK;
}

/* What is not fitted: which machine this is, and what its other places do. */
static enum sc_status add_machine(const struct sc_calibrate_options *options, int64_t cores,
                                  struct sc_calibration *out, struct sc_error *err)
{
    const struct sc_backend *host = NULL;
    struct sc_identity here;
    const struct sc_storage_options storage = {options->storage_folder, cores, options->tiny};
    SC_TRY(sc_backend_find("host", &host, err));
    sc_identity_here(host, cores, &here);
    SC_TRY(sc_storage_measure(&storage, &out->storage, err));
    return sc_identity_write(&here, out->profile) && sc_storage_write(&out->storage, out->profile)
               ? SC_OK
               : sc_fail_memory(err, sizeof(*out));
}

static enum sc_status make_profile(const struct calibration *c, struct sc_calibration *out,
                                   struct sc_error *err)
{
    const char *name = c->options->name != NULL ? c->options->name : "this-machine";
    out->profile = sc_calibrate_profile(&c->fits, c->options->transport, name, c->machine);
    if (out->profile == NULL) {
        return sc_fail_memory(err, sizeof(*out));
    }
    SC_TRY(add_machine(c->options, c->fits.cores, out, err));
    struct sc_json root = {.item = out->profile, .file = "calibrate"};
    SC_TRY(sc_hardware_parse(&root, &out->hardware, err));
    for (int i = 0; i < ARRANGEMENTS; i++) {
        if (c->have[i]) {
            SC_TRY(add_rows(out, &c->grids[i], err));
        }
    }
    for (int i = 0; i < 2 * SC_TRANSPORT_COUNT; i++) {
        if (c->pairs[i / 2].have[i % 2]) {
            SC_TRY(add_rows(out, &c->pairs[i / 2].grid[i % 2], err));
        }
    }
    return summarize(out, err);
}

enum sc_status sc_calibrate(const struct sc_calibrate_options *options, struct sc_calibration *out,
                            struct sc_error *err)
{
    struct calibration c = {.options = options, .begun = sc_clock()};
    memset(out, 0, sizeof(*out));
    c.seconds = options->seconds > 0.0 ? options->seconds : NEUTRAL_SECONDS;
    out->root = options->process == NULL || options->process->index == 0;
    struct sc_contention_start watch;
    sc_contention_begin(options->cores, &watch);
    enum sc_status status = out->root ? measure_all(&c, err) : SC_OK;
    sc_contention_end(&watch, &out->contention);
    if (options->process != NULL) {
        status = sc_process_agree(options->process, status, err);
    }
    if (status == SC_OK) {
        status = measure_transports(&c, out, err);
    }
    if (status == SC_OK && out->root) {
        status = make_profile(&c, out, err);
    }
    for (int i = 0; i < ARRANGEMENTS; i++) {
        sc_grid_free(&c.grids[i]);
    }
    for (int i = 0; i < 2 * SC_TRANSPORT_COUNT; i++) {
        sc_grid_free(&c.pairs[i / 2].grid[i % 2]);
    }
    out->seconds = sc_clock() - c.begun;
    out->contention.spread = out->spread;
    if (status != SC_OK) {
        sc_calibration_free(out);
    }
    return status;
}

void sc_calibration_free(struct sc_calibration *calibration)
{
    cJSON_Delete(calibration->profile);
    calibration->profile = NULL;
    sc_hardware_free(&calibration->hardware);
    sc_array_free(&calibration->rows);
}
