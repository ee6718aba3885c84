/* Writes fitted constants as stepcast.hw/1. */
#include "exec/calibrate_profile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "model/hardware.h"

enum { CONTEXT_BYTES = 50000000, COMMUNICATOR_BYTES = 1000000, HOST_ADAM_BYTES = 28 };

/* Of the machine's memory: for arenas, for pinned and for host values. */
#define DEVICE_PART 0.6
#define OTHER_PART 0.1

/* The level of each transport, and how many bytes of memory a rank reads and writes for each byte
 * on the wire. Threads read all members' slices, write one, and copy the others'; between processes
 * every byte is copied once more (MPI, straight out of the other's memory) or twice (into and out
 * of the kernel). */
static const struct {
    const char *level;
    double memory_bytes_per_byte;
} transports[SC_TRANSPORT_COUNT] = {
    [SC_TRANSPORT_THREADS] = {"shared_memory", 2.0},
    [SC_TRANSPORT_MPI] = {"local_mpi", 4.0},
    [SC_TRANSPORT_SOCKETS] = {"local_sockets", 6.0},
};

struct writer {
    const struct sc_fits *fits;
    bool failed;
};

static cJSON *object(struct writer *w, cJSON *in, const char *key)
{
    cJSON *added = in ? cJSON_AddObjectToObject(in, key) : NULL;
    w->failed |= added == NULL;
    return added;
}

/* Four digits: more than a measurement has. */
static void number(struct writer *w, cJSON *in, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.4g", value);
    w->failed |= in == NULL || cJSON_AddNumberToObject(in, key, strtod(text, NULL)) == NULL;
}

static void exact(struct writer *w, cJSON *in, const char *key, double value)
{
    w->failed |= in == NULL || cJSON_AddNumberToObject(in, key, value) == NULL;
}

static void text(struct writer *w, cJSON *in, const char *key, const char *value)
{
    w->failed |= in == NULL || cJSON_AddStringToObject(in, key, value) == NULL;
}

static void source(struct writer *w, cJSON *in, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void source(struct writer *w, cJSON *in, const char *format, ...)
{
    char line[1536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    text(w, in, "source", line);
}

static const char *residuals(const struct sc_fit_residuals *r, char *out, size_t size)
{
    snprintf(out, size, "|error| median %.1f %%, 90th percentile %.1f %%, worst %.1f %% over %zu",
             100.0 * r->median, 100.0 * r->p90, 100.0 * r->worst, r->count);
    return out;
}

/* ---- sections ---------------------------------------------------------------------------- */

static void add_device(struct writer *w, cJSON *root, const char *machine)
{
    const struct sc_fits *f = w->fits;
    cJSON *node = object(w, root, "node");
    number(w, node, "devices", (double)f->cores);
    number(w, node, "sockets", 1.0);
    number(w, node, "cores", (double)f->cores);
    source(w, node, "cores that the process may use; one rank a core where nothing says otherwise");
    cJSON *device = object(w, root, "device");
    char name[SC_NAME_SIZE];
    snprintf(name, sizeof(name), "%s", machine);
    text(w, device, "name", name);
    text(w, device, "kind", "cores");
    number(w, object(w, device, "peak_tflop_per_s"), "fp32", f->peak / SC_TERA);
    cJSON *list = device ? cJSON_AddArrayToObject(device, "parallel_efficiency") : NULL;
    int64_t entries = f->cores < SC_HW_CORES_MAX ? f->cores : SC_HW_CORES_MAX;
    for (int64_t c = 1; c <= entries; c++) {
        double part = entries > 1 ? (double)(c - 1) / (double)(entries - 1) : 0.0;
        double rounded = (double)(int64_t)(1e4 * (1.0 + (f->efficiency - 1.0) * part)) / 1e4;
        w->failed |= !cJSON_AddItemToArray(list, cJSON_CreateNumber(rounded));
    }
    number(w, device, "memory_bandwidth_gb_per_s", f->node_bandwidth / SC_GIGA);
    number(w, device, "core_memory_bandwidth_gb_per_s", f->core_bandwidth / SC_GIGA);
    source(w, device,
           "measured: peak is the best product of one core while all cores work; efficiency one "
           "rank with all cores against that; bandwidths are copies of more than the caches hold, "
           "bytes read and written, all cores at once and one alone");
}

static void add_place(struct writer *w, cJSON *places, const char *name, double bytes,
                      double bandwidth)
{
    cJSON *place = object(w, places, name);
    w->failed |= place == NULL ||
                 cJSON_AddNumberToObject(place, "capacity_bytes", (double)(int64_t)bytes) == NULL;
    text(w, place, "per", "node");
    if (bandwidth > 0.0) {
        number(w, place, "bandwidth_gb_per_s", bandwidth / SC_GIGA);
    }
}

static void add_memory(struct writer *w, cJSON *root)
{
    double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    cJSON *places = object(w, root, "places");
    add_place(w, places, "device", DEVICE_PART * total, 0.0);
    add_place(w, places, "pinned", OTHER_PART * total, 0.0);
    add_place(w, places, "host", OTHER_PART * total, w->fits->node_bandwidth);
    source(w, places, "parts of the machine's memory: %.0f %%, %.0f %%, %.0f %% of it",
           100.0 * DEVICE_PART, 100.0 * OTHER_PART, 100.0 * OTHER_PART);
    cJSON *reserved = object(w, root, "reserved_bytes");
    number(w, reserved, "context", CONTEXT_BYTES);
    number(w, reserved, "per_communicator", COMMUNICATOR_BYTES);
    number(w, reserved, "workspace", 0.0);
    source(w, reserved, "assumption: program and libraries, buffers of a group");
}

static void add_alpha_beta(struct writer *w, cJSON *in, const char *key,
                           const struct sc_collective_fit *fit)
{
    cJSON *figures = object(w, in, key);
    number(w, figures, "latency_us", fit->latency_s * SC_US_PER_S);
    number(w, figures, "bus_bandwidth_gb_per_s", fit->bus_bandwidth / SC_GIGA);
}

/* Figures for some groups or sizes; `least_members` and `most_bytes` 0: no limit. */
static void add_variant(struct writer *w, cJSON *variants, double least_members, double most_bytes,
                        const struct sc_collective_fit *all_reduce,
                        const struct sc_collective_fit *other)
{
    cJSON *variant = cJSON_CreateObject();
    if (least_members > 0.0) {
        number(w, variant, "minimum_members_per_node", least_members);
    }
    if (most_bytes > 0.0) {
        exact(w, variant, "maximum_bytes", most_bytes + 1.0);
    }
    add_alpha_beta(w, variant, "all_reduce", all_reduce);
    add_alpha_beta(w, variant, "other", other);
    if (!cJSON_AddItemToArray(variants, variant)) {
        cJSON_Delete(variant);
        w->failed = true;
    }
}

/* The first variant that holds counts: small ones before all of a group. */
static void add_level(struct writer *w, cJSON *levels, enum sc_run_transport transport)
{
    const struct sc_transport_fit *f = &w->fits->transport[transport];
    cJSON *level = object(w, levels, transports[transport].level);
    add_alpha_beta(w, level, "all_reduce", &f->level[0].all_reduce);
    add_alpha_beta(w, level, "other", &f->level[0].other);
    number(w, level, "held_multiprocessors", f->held_cores);
    number(w, level, "slowdown_beside_compute", f->slowdown_beside_compute);
    number(w, level, "memory_bytes_per_byte", transports[transport].memory_bytes_per_byte);
    cJSON *variants = level ? cJSON_AddArrayToObject(level, "variants") : NULL;
    w->failed |= variants == NULL;
    for (int i = f->has_level[1] ? 1 : 0; i >= 0; i--) {
        const struct sc_level_fit *fit = &f->level[i];
        double members = i > 0 ? (double)f->ranks + 1.0 : 0.0;
        if (fit->small_bytes > 0.0) {
            add_variant(w, variants, members, fit->small_bytes, &fit->small_all_reduce,
                        &fit->small_other);
        }
        if (i > 0) {
            add_variant(w, variants, members, 0.0, &fit->all_reduce, &fit->other);
        }
    }
}

static void add_link(struct writer *w, cJSON *links, enum sc_run_transport transport)
{
    const struct sc_collective_fit *fit = &w->fits->transport[transport].level[0].all_reduce;
    cJSON *link = object(w, links, transports[transport].level);
    number(w, link, "level", 1.0);
    text(w, link, "transport", sc_run_transport_name(transport));
    text(w, link, "per", "node");
    number(w, link, "count", 1.0);
    number(w, link, "bandwidth_gb_per_s", fit->bus_bandwidth / SC_GIGA);
    number(w, link, "latency_us", fit->latency_s * SC_US_PER_S);
}

/* "threads, 2 ranks: all_reduce |error| ...; other ...; " */
static void say_residuals(const struct sc_fits *fits, enum sc_run_transport transport, char *out,
                          size_t size)
{
    const struct sc_transport_fit *f = &fits->transport[transport];
    char first[160], second[160];
    snprintf(out, size, "%s, %lld ranks: all_reduce %s; other %s; ",
             sc_run_transport_name(transport), (long long)f->ranks,
             residuals(&f->level[0].residuals[0], first, sizeof(first)),
             residuals(&f->level[0].residuals[1], second, sizeof(second)));
}

static void add_collectives(struct writer *w, cJSON *root, enum sc_run_transport chosen)
{
    char said[SC_TRANSPORT_COUNT][400] = {""};
    cJSON *links = NULL, *levels = NULL, *collectives = NULL;
    for (int t = 0; t < SC_TRANSPORT_COUNT; t++) {
        if (!w->fits->transport[t].has_level[0]) {
            continue;
        }
        if (levels == NULL) {
            links = object(w, root, "links");
            collectives = object(w, root, "collectives");
            text(w, collectives, "transport", sc_run_transport_name(chosen));
            levels = object(w, collectives, "levels");
        }
        add_link(w, links, (enum sc_run_transport)t);
        add_level(w, levels, (enum sc_run_transport)t);
        say_residuals(w->fits, (enum sc_run_transport)t, said[t], sizeof(said[t]));
    }
    if (levels == NULL) {
        return;
    }
    source(w, links, "the all-reduces' figures");
    source(w, collectives,
           "measured: %s%s%sheld and slowdown: an all-reduce beside a chain of products; memory "
           "bytes: counted",
           said[0], said[1], said[2]);
}

static void add_kind(struct writer *w, cJSON *in, const struct sc_kind_fit *kind)
{
    char line[160];
    number(w, in, "fixed_us", kind->fixed_s * SC_US_PER_S);
    if (kind->s_per_element > 0.0) {
        number(w, in, "ns_per_element", kind->s_per_element * SC_GIGA);
    }
    if (kind->share > 0.0) {
        number(w, in, "bandwidth_share", kind->share);
        number(w, in, "cache_bytes", kind->cache_bytes);
    }
    source(w, in, "measured: %s", residuals(&kind->residuals, line, sizeof(line)));
}

static const struct sc_kind_fit *kind_of(const struct sc_fits *fits, const char *name)
{
    for (int i = 0; i < fits->kind_count; i++) {
        if (strcmp(fits->kinds[i].name, name) == 0) {
            return &fits->kinds[i];
        }
    }
    return NULL;
}

static void add_cores(struct writer *w, cJSON *compute)
{
    const struct sc_fits *f = w->fits;
    cJSON *cores = object(w, compute, "cores");
    number(w, cores, "gemm_transposed_a_share", f->gemm_transposed_a_share);
    number(w, cores, "gemm_transposed_b_share", f->gemm_transposed_b_share);
    number(w, cores, "gemm_page_stride_share", f->gemm_page_stride_share);
    number(w, cores, "gemm_operand_ns_per_element", f->gemm_operand_s * SC_GIGA);
    number(w, cores, "gemm_transposed_b_ns_per_element", f->gemm_transposed_b_s * SC_GIGA);
    number(w, cores, "gemm_team_us", f->gemm_team_s * SC_US_PER_S);
    number(w, cores, "attention_forward_ns_per_query", f->attention_s_per_query[0] * SC_GIGA);
    number(w, cores, "attention_backward_ns_per_query", f->attention_s_per_query[1] * SC_GIGA);
    number(w, cores, "attention_forward_ns_per_element", f->attention_s_per_element[0] * SC_GIGA);
    number(w, cores, "attention_backward_ns_per_element", f->attention_s_per_element[1] * SC_GIGA);
    number(w, cores, "memory_bound_team_us", f->memory_team_s * SC_US_PER_S);
    number(w, cores, "memory_bound_parallel_efficiency", f->memory_efficiency);
}

static void add_compute(struct writer *w, cJSON *root)
{
    const struct sc_fits *f = w->fits;
    char line[160], other[160];
    cJSON *compute = object(w, root, "compute");
    cJSON *gemm = object(w, compute, "gemm");
    number(w, object(w, gemm, "peak_share"), "fp32", f->gemm_share);
    number(w, gemm, "fixed_us", f->gemm_fixed_s * SC_US_PER_S);
    source(w, gemm, "measured: %s", residuals(&f->gemm, line, sizeof(line)));
    cJSON *attention = object(w, compute, "attention");
    number(w, attention, "forward_peak_share", f->attention_share[0]);
    number(w, attention, "backward_peak_share", f->attention_share[1]);
    number(w, attention, "fixed_us", 0.0);
    source(w, attention, "measured: forward %s; backward %s",
           residuals(&f->attention[0], line, sizeof(line)),
           residuals(&f->attention[1], other, sizeof(other)));
    cJSON *memory = object(w, compute, "memory_bound");
    const struct sc_kind_fit *plain = kind_of(f, "scale");
    number(w, memory, "bandwidth_share", 1.0);
    number(w, memory, "fixed_us", plain ? plain->fixed_s * SC_US_PER_S : 1.0);
    cJSON *kinds = object(w, memory, "kinds");
    for (int i = 0; i < f->kind_count; i++) {
        add_kind(w, object(w, kinds, f->kinds[i].name), &f->kinds[i]);
    }
    cJSON *adam = object(w, compute, "adam");
    add_kind(w, adam, &f->adam);
    add_cores(w, compute);
    source(w, compute, "measured; caches are what repeats the memory-bound timings best");
}

/* How far prices are off: the 90th percentile of |residual| is 1.645 standard deviations. */
#define P90_OF_NORMAL 1.645
/* An operation that calibration did not measure. */
#define NEUTRAL_DEVIATION 0.3

static void add_deviation(struct writer *w, cJSON *kinds, const char *kind,
                          const struct sc_fit_residuals *residuals)
{
    if (residuals->count > 0) {
        number(w, kinds, kind, fmin(fmax(residuals->p90 / P90_OF_NORMAL, 0.005), 1.0));
    }
}

static void add_uncertainty(struct writer *w, cJSON *root)
{
    const struct sc_fits *f = w->fits;
    const struct sc_transport_fit *threads = &f->transport[SC_TRANSPORT_THREADS];
    cJSON *uncertainty = object(w, root, "uncertainty");
    number(w, uncertainty, "machine", fmin(f->deviation, 1.0));
    number(w, uncertainty, "neutral", NEUTRAL_DEVIATION);
    cJSON *kinds = object(w, uncertainty, "kinds");
    add_deviation(w, kinds, "gemm", &f->gemm);
    add_deviation(w, kinds, "attention", &f->attention[0]);
    add_deviation(w, kinds, "attention_backward", &f->attention[1]);
    add_deviation(w, kinds, "adam", &f->adam.residuals);
    for (int i = 0; i < f->kind_count; i++) {
        add_deviation(w, kinds, f->kinds[i].name, &f->kinds[i].residuals);
    }
    if (threads->has_level[0]) {
        add_deviation(w, kinds, "all_reduce", &threads->level[0].residuals[0]);
        add_deviation(w, kinds, "reduce_scatter", &threads->level[0].residuals[1]);
        add_deviation(w, kinds, "all_gather", &threads->level[0].residuals[1]);
    }
    source(
        w, uncertainty,
        "kinds: 90th percentile of the fit's |residuals| / 1.645; machine: how much an operation's "
        "time varied between repeats; neutral: assumption for what was not "
        "measured");
}

static void add_host(struct writer *w, cJSON *root)
{
    double us = w->fits->issue_s * SC_US_PER_S;
    cJSON *issue = object(w, root, "issue");
    number(w, issue, "kernel_us", us);
    number(w, issue, "collective_us", us);
    number(w, issue, "copy_us", us);
    number(w, issue, "steps_ahead", 2.0);
    const struct sc_transport_fit *threads = &w->fits->transport[SC_TRANSPORT_THREADS];
    if (threads->has_level[0]) {
        number(w, issue, "kernel_wait_us", threads->wait_after_s * SC_US_PER_S);
        number(w, issue, "collective_wait_us", threads->wait_before_s * SC_US_PER_S);
    }
    source(w, issue,
           "measured: a step of operations with nothing to do; waits: before and after collectives "
           "of threads, median over sizes");
    cJSON *adam = object(w, root, "host_adam");
    number(w, adam, "bytes_per_parameter", HOST_ADAM_BYTES);
    number(w, adam, "bandwidth_share",
           w->fits->adam.share > 0.0 ? fmin(w->fits->adam.share, 1.0) : 1.0);
    source(w, adam, "bytes: gradient 4; parameter, m and v read and written 24; share: adam's");
}

cJSON *sc_calibrate_profile(const struct sc_fits *fits, enum sc_run_transport chosen,
                            const char *name, const char *machine)
{
    struct writer w = {fits, false};
    cJSON *root = cJSON_CreateObject();
    if (root == NULL) {
        return NULL;
    }
    text(&w, root, "schema", "stepcast.hw/1");
    text(&w, root, "name", name);
    text(&w, root, "notes", "Written by stepcast calibrate on the machine that device.name names.");
    add_device(&w, root, machine);
    add_memory(&w, root);
    add_collectives(&w, root, chosen);
    add_compute(&w, root);
    add_host(&w, root);
    add_uncertainty(&w, root);
    if (w.failed) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}
