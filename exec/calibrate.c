/* Calibration: the grid in four arrangements of ranks and cores, the fits, the profile. */
#include "exec/calibrate.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/calibrate_fit.h"
#include "exec/calibrate_profile.h"
#include "exec/clock.h"

enum { RANKS_MAX = 16, TRIAL_STEPS = 1, LEAST_STEPS = 5, MOST_STEPS = 31, TINY_STEPS = 2 };

#define NEUTRAL_SECONDS 30.0

enum arrangement { EACH, WHOLE, ALONE, CROWDED, ARRANGEMENTS };

static const struct {
    const char *what;
    struct sc_grid_parts parts;
    double share; /* of the time */
} arrangements[ARRANGEMENTS] = {
    [EACH] = {"one core a rank", {.compute = true, .streaming = true, .collectives = true}, 0.55},
    [WHOLE] = {"all cores for one rank", {.compute = true}, 0.2},
    [ALONE] = {"one core, nothing beside it", {.streaming = true}, 0.05},
    [CROWDED] = {"two ranks a core", {.collectives = true}, 0.1},
};

struct calibration {
    const struct sc_calibrate_options *options;
    struct sc_grid grids[ARRANGEMENTS];
    bool have[ARRANGEMENTS];
    struct sc_fits fits;
    char machine[256];
    double begun, seconds;
};

static int64_t available_cores(const struct sc_calibrate_options *options)
{
    cpu_set_t set;
    int64_t count = 1;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        count = CPU_COUNT(&set);
    }
    count = options->cores > 0 && options->cores < count ? options->cores : count;
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

static enum sc_status price(const struct sc_hardware *h, const struct sc_grid *grid,
                            const struct sc_probe *probe, struct sc_cost *out, struct sc_error *err)
{
    struct sc_group_place group = {.members = grid->ranks,
                                   .nodes = 1,
                                   .members_per_node = grid->ranks,
                                   .level = h->level_count > 0 ? 0 : -1,
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
        snprintf(row->kind, sizeof(row->kind), "%s", probe->kind);
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

static enum sc_status make_profile(const struct calibration *c, struct sc_calibration *out,
                                   struct sc_error *err)
{
    const char *name = c->options->name != NULL ? c->options->name : "this-machine";
    out->profile = sc_calibrate_profile(&c->fits, name, c->machine);
    if (out->profile == NULL) {
        return sc_fail_memory(err, sizeof(*out));
    }
    struct sc_json root = {.item = out->profile, .file = "calibrate"};
    SC_TRY(sc_hardware_parse(&root, &out->hardware, err));
    for (int i = 0; i < ARRANGEMENTS; i++) {
        if (c->have[i]) {
            SC_TRY(add_rows(out, &c->grids[i], err));
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
    enum sc_status status = measure_all(&c, err);
    if (status == SC_OK) {
        status = make_profile(&c, out, err);
    }
    for (int i = 0; i < ARRANGEMENTS; i++) {
        sc_grid_free(&c.grids[i]);
    }
    out->seconds = sc_clock() - c.begun;
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
