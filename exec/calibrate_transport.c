/* Times the grid's collectives with ranks as processes; timings to a file and back. */
#include "exec/calibrate_transport.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "exec/clock.h"

enum {
    TRIAL_STEPS = 1,
    TRIAL_CHAIN = 8,
    LEAST_STEPS = 5,
    MOST_STEPS = 31,
    TINY_STEPS = 2,
    CHAIN_MAX = 2000,
    TIMES = 5 /* of a probe, in the file */
};

/* The chain outlasts the collective by so much, also when the collective slows down beside it. */
#define CHAIN_ROOM 1.5
/* The chains of one step take no more than this part of the time. */
#define STEPS_WORTH 10.0

/* What process 0 finds out in a trial and all do then. */
struct decision {
    int64_t chain, steps;
};

static enum sc_status measure(const struct sc_transport_task *task, struct sc_process *process,
                              const struct decision *decision, struct sc_grid *out,
                              struct sc_error *err)
{
    char machine[256];
    struct sc_grid_parts parts = {
        .collectives = true, .tiny = task->tiny, .chain = decision->chain};
    SC_TRY(sc_grid_create(process->count, task->cores, parts, out, err));
    out->transport = task->transport;
    return sc_grid_measure(out, decision->steps, machine, sizeof(machine), err);
}

/* Seconds of a product of the chain, and of an all-reduce beside it for each 2^18 elements. */
static void read_trial(const struct sc_grid *trial, double *product_s, double *reduce_s)
{
    *product_s = INFINITY;
    *reduce_s = 0.0;
    for (size_t i = 0; i < trial->probes.count; i++) {
        const struct sc_probe *probe = &trial->probes.items[i];
        double megabytes = probe->bytes / (sizeof(float) * (1 << 18));
        if (probe->family == SC_PROBE_CHAIN) {
            *product_s = fmin(*product_s, probe->seconds / (megabytes * TRIAL_CHAIN));
        }
        if (probe->family == SC_PROBE_BESIDE) {
            *reduce_s = fmax(*reduce_s, probe->transfer_s / megabytes);
        }
    }
}

static double chained_megabytes(const struct sc_grid *grid)
{
    double megabytes = 0.0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        if (grid->probes.items[i].family == SC_PROBE_CHAIN) {
            megabytes += grid->probes.items[i].bytes / (sizeof(float) * (1 << 18));
        }
    }
    return megabytes;
}

/* `took`: the trial, with its steps of warm-up. */
static void decide(const struct sc_transport_task *task, const struct sc_grid *trial, double took,
                   struct decision *out)
{
    double product_s, reduce_s;
    read_trial(trial, &product_s, &reduce_s);
    double chain = ceil(CHAIN_ROOM * reduce_s / fmax(product_s, 1e-5));
    double affordable = task->seconds / STEPS_WORTH / (2.0 * chained_megabytes(trial) * product_s);
    chain = fmin(fmin(chain, CHAIN_MAX), affordable);
    out->chain = (int64_t)fmax(chain, TRIAL_CHAIN);
    double step = took / 3.0 +
                  2.0 * chained_megabytes(trial) * product_s * (double)(out->chain - TRIAL_CHAIN);
    double room = (task->seconds - took) / fmax(step, 1e-6) - 2.0;
    out->steps = (int64_t)fmin(fmax(room, LEAST_STEPS), MOST_STEPS);
}

/* All processes get process 0's decision. */
static enum sc_status try_out(const struct sc_transport_task *task, struct sc_process *process,
                              struct decision *decision, struct sc_error *err)
{
    struct sc_grid trial = {0};
    double begin = sc_clock();
    enum sc_status status = measure(task, process, decision, &trial, err);
    if (status == SC_OK && process->index == 0) {
        decide(task, &trial, sc_clock() - begin, decision);
    }
    sc_grid_free(&trial);
    SC_TRY(status);
    return sc_process_broadcast(process, decision, sizeof(*decision), err);
}

enum sc_status sc_calibrate_transport(const struct sc_transport_task *task,
                                      struct sc_process *process, struct sc_grid *out,
                                      struct sc_error *err)
{
    struct decision decision = {.chain = 0, .steps = TINY_STEPS};
    memset(out, 0, sizeof(*out));
    if (!task->tiny) {
        decision = (struct decision){.chain = TRIAL_CHAIN, .steps = TRIAL_STEPS};
        SC_TRY(try_out(task, process, &decision, err));
    }
    enum sc_status status = measure(task, process, &decision, out, err);
    if (status != SC_OK) {
        sc_grid_free(out);
    }
    return status;
}

/* ---- the file ---------------------------------------------------------------------------- */

static cJSON *timings(const struct sc_grid *grid)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "transport", (double)grid->transport);
    cJSON_AddNumberToObject(root, "ranks", (double)grid->ranks);
    cJSON_AddNumberToObject(root, "cores", (double)grid->cores);
    cJSON_AddNumberToObject(root, "chain", (double)grid->parts.chain);
    cJSON_AddBoolToObject(root, "tiny", grid->parts.tiny);
    cJSON *probes = cJSON_AddArrayToObject(root, "probes");
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        const double numbers[TIMES] = {probe->seconds, probe->spread, probe->transfer_s,
                                       probe->wait_before_s, probe->wait_after_s};
        cJSON_AddItemToArray(probes, cJSON_CreateDoubleArray(numbers, TIMES));
    }
    return root;
}

enum sc_status sc_calibrate_transport_write(const struct sc_grid *grid, const char *file,
                                            struct sc_error *err)
{
    cJSON *root = timings(grid);
    enum sc_status status = sc_json_write(root, file, err);
    cJSON_Delete(root);
    return status;
}

static enum sc_status read_probe(const struct sc_json *probes, int index, struct sc_probe *out,
                                 struct sc_error *err)
{
    struct sc_json probe, number;
    double *const numbers[TIMES] = {&out->seconds, &out->spread, &out->transfer_s,
                                    &out->wait_before_s, &out->wait_after_s};
    SC_TRY(sc_json_at(probes, index, &probe, err));
    for (int i = 0; i < TIMES; i++) {
        SC_TRY(sc_json_at(&probe, i, &number, err));
        SC_TRY(sc_json_number(&number, NULL, -1e9, 1e9, numbers[i], err));
    }
    return SC_OK;
}

static enum sc_status read_probes(const struct sc_json *root, struct sc_grid *grid,
                                  struct sc_error *err)
{
    struct sc_json probes;
    int count = 0;
    SC_TRY(sc_json_array(root, "probes", &probes, &count, err));
    if ((size_t)count != grid->probes.count) {
        return sc_json_fail(&probes, err, "%zu timings", grid->probes.count);
    }
    for (int i = 0; i < count; i++) {
        SC_TRY(read_probe(&probes, i, &grid->probes.items[i], err));
    }
    return SC_OK;
}

static enum sc_status make_grid(const struct sc_json *root, struct sc_grid *out,
                                struct sc_error *err)
{
    int64_t transport = 0, ranks = 0, cores = 0;
    struct sc_grid_parts parts = {.collectives = true};
    SC_TRY(sc_json_int(root, "transport", 0, SC_TRANSPORT_COUNT - 1, &transport, err));
    SC_TRY(sc_json_int(root, "ranks", 1, 1 << 16, &ranks, err));
    SC_TRY(sc_json_int(root, "cores", 1, 1 << 16, &cores, err));
    SC_TRY(sc_json_int(root, "chain", 0, CHAIN_MAX, &parts.chain, err));
    SC_TRY(sc_json_bool(root, "tiny", &parts.tiny, err));
    SC_TRY(sc_grid_create(ranks, cores, parts, out, err));
    out->transport = (enum sc_run_transport)transport;
    return SC_OK;
}

enum sc_status sc_calibrate_transport_read(const char *file, struct sc_grid *out,
                                           struct sc_error *err)
{
    struct sc_json_doc doc;
    memset(out, 0, sizeof(*out));
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = make_grid(&root, out, err);
    if (status == SC_OK) {
        status = read_probes(&root, out, err);
    }
    if (status != SC_OK) {
        sc_grid_free(out);
    }
    sc_json_doc_free(&doc);
    return status;
}
