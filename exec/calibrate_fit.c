/* Fits of calibration: every family of operations by the form that model/cost_*.c prices it in. */
#include "exec/calibrate_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Timings of some operations of a grid. */
struct timings {
    double *x, *seconds, *bytes; /* x: what the fit is over */
    size_t count;
};

typedef bool choose_fn(const struct sc_probe *probe, const void *what);
typedef double measure_fn(const struct sc_probe *probe, const struct sc_grid *grid);

static void timings_free(struct timings *timings)
{
    free(timings->x);
    memset(timings, 0, sizeof(*timings));
}

static enum sc_status gather(const struct sc_grid *grid, choose_fn *choose, const void *what,
                             measure_fn *measure, struct timings *out, struct sc_error *err)
{
    size_t room = grid->probes.count + 1;
    memset(out, 0, sizeof(*out));
    out->x = calloc(3 * room, sizeof(double));
    if (out->x == NULL) {
        return sc_fail_memory(err, 3 * room * sizeof(double));
    }
    out->seconds = out->x + room;
    out->bytes = out->x + 2 * room;
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (choose(probe, what) && probe->seconds > 0.0) {
            out->x[out->count] = measure(probe, grid);
            out->seconds[out->count] = probe->seconds;
            out->bytes[out->count++] = probe->bytes;
        }
    }
    return SC_OK;
}

static double median(const double *values, size_t count)
{
    double *copy = malloc((count + 1) * sizeof(*copy));
    if (copy == NULL || count == 0) {
        free(copy);
        return 0.0;
    }
    memcpy(copy, values, count * sizeof(*copy));
    double middle = sc_fit_quantile(copy, count, 0.5);
    free(copy);
    return middle;
}

/* ---- products and attention -------------------------------------------------------------- */

static bool of_family(const struct sc_probe *probe, const void *what)
{
    return probe->family == *(const enum sc_probe_family *)what;
}

static double flops_of(const struct sc_probe *probe, const struct sc_grid *grid)
{
    (void)grid;
    return probe->flops;
}

static const double copies[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
static const double transposed[] = {1.0, 0.97, 0.94, 0.91, 0.88, 0.85, 0.82, 0.79, 0.76};

/* FLOP of each product with its copies, as one whose B is not transposed. */
static void equivalent_flops(const struct sc_grid *grid, double copy, double share,
                             struct timings *t)
{
    size_t at = 0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_GEMM && probe->seconds > 0.0) {
            double flops = probe->flops + copy * sc_gemm_bytes(&probe->gemm);
            t->x[at++] = flops / (probe->gemm.transpose_b ? share : 1.0);
        }
    }
}

static enum sc_status try_gemm(const struct sc_grid *grid, struct timings *t, double copy,
                               double share, double *best, struct sc_fits *out,
                               struct sc_error *err)
{
    struct sc_fit_line line;
    equivalent_flops(grid, copy, share, t);
    SC_TRY(sc_fit_line_robust(t->x, t->seconds, t->count, &line, err));
    double score = line.residuals.median + line.residuals.p90;
    if (line.b > 0.0 && score < *best) {
        *best = score;
        out->gemm_flop_per_byte = copy;
        out->gemm_transposed_b_share = share;
        out->gemm_fixed_s = line.a;
        out->gemm_share = 1.0 / (line.b * out->peak);
        out->gemm = line.residuals;
    }
    return SC_OK;
}

/* The cost of a byte and of a transposed B that repeat the timings best; the line through the
 * rest. */
static enum sc_status fit_shapes(const struct sc_grid *grid, struct timings *t, struct sc_fits *out,
                                 struct sc_error *err)
{
    double best = INFINITY;
    for (size_t c = 0; c < sizeof(copies) / sizeof(*copies); c++) {
        for (size_t s = 0; s < sizeof(transposed) / sizeof(*transposed); s++) {
            SC_TRY(try_gemm(grid, t, copies[c], transposed[s], &best, out, err));
        }
    }
    return isfinite(best) ? SC_OK
                          : sc_fail(err, SC_MACHINE, "calibrate: products take no measurable time");
}

static enum sc_status fit_gemm(const struct sc_grid *grid, struct sc_fits *out,
                               struct sc_error *err)
{
    static const enum sc_probe_family family = SC_PROBE_GEMM;
    struct timings t;
    SC_TRY(gather(grid, of_family, &family, flops_of, &t, err));
    out->peak = 0.0;
    for (size_t i = 0; i < t.count; i++) {
        out->peak = fmax(out->peak, t.x[i] / t.seconds[i]);
    }
    enum sc_status status = fit_shapes(grid, &t, out, err);
    timings_free(&t);
    return status;
}

static bool of_attention(const struct sc_probe *probe, const void *what)
{
    return probe->family == SC_PROBE_ATTENTION && probe->attention.backward == *(const bool *)what;
}

static double queries_of(const struct sc_probe *probe)
{
    return (double)probe->attention.batch * (double)probe->attention.query_heads *
           (double)probe->attention.query_length;
}

static double flops_per_query(const struct sc_probe *probe, const struct sc_grid *grid)
{
    (void)grid;
    return sc_attention_flops(&probe->attention) / queries_of(probe);
}

/* Time a query = s_per_query + FLOP a query / rate: relative residuals are those of the time. */
static enum sc_status fit_attention(const struct sc_grid *grid, struct sc_fits *out,
                                    struct sc_error *err)
{
    for (int i = 0; i < 2; i++) {
        bool backward = i == 1;
        struct timings t;
        struct sc_fit_line line;
        SC_TRY(gather(grid, of_attention, &backward, flops_per_query, &t, err));
        size_t at = 0;
        for (size_t p = 0; p < grid->probes.count; p++) {
            const struct sc_probe *probe = &grid->probes.items[p];
            if (of_attention(probe, &backward) && probe->seconds > 0.0) {
                t.seconds[at++] = probe->seconds / queries_of(probe);
            }
        }
        enum sc_status status = sc_fit_line_robust(t.x, t.seconds, t.count, &line, err);
        timings_free(&t);
        SC_TRY(status);
        out->attention_share[i] = line.b > 0.0 ? fmin(1.0 / (line.b * out->peak), 2.0) : 1.0;
        out->attention_s_per_query[i] = line.a;
        out->attention[i] = line.residuals;
    }
    return SC_OK;
}

/* A product large enough to be shared out. */
#define LARGE_FLOPS 2e8
/* Operations whose time tells what sharing out costs. */
#define SMALL_GEMM_S 600e-6
#define LEAST_KERNEL_S 3e-6
#define SMALL_KERNEL_S 60e-6

/* One rank with all cores against one core. */
static double efficiency(const struct sc_grid *each, const struct sc_grid *whole)
{
    double *ratios = calloc(each->probes.count + 1, sizeof(*ratios));
    size_t count = 0;
    for (size_t i = 0; ratios != NULL && i < whole->probes.count && i < each->probes.count; i++) {
        const struct sc_probe *one = &each->probes.items[i], *all = &whole->probes.items[i];
        if (one->family == SC_PROBE_GEMM && all->family == SC_PROBE_GEMM &&
            one->flops >= LARGE_FLOPS && all->seconds > 0.0) {
            ratios[count++] = one->seconds / all->seconds / (double)whole->cores;
        }
    }
    double middle = median(ratios, count);
    free(ratios);
    return middle > 0.0 ? fmin(middle, 1.0) : 1.0;
}

/* What small operations take with all cores beyond their share of what they take with one. */
static double team_seconds(const struct sc_grid *each, const struct sc_grid *whole,
                           enum sc_probe_family family, double least_s, double most_s,
                           double efficient)
{
    double *extra = calloc(each->probes.count + 1, sizeof(*extra));
    size_t count = 0;
    for (size_t i = 0; extra != NULL && i < whole->probes.count && i < each->probes.count; i++) {
        double one = each->probes.items[i].seconds, all = whole->probes.items[i].seconds;
        bool chosen = each->probes.items[i].family == family && one > least_s && one < most_s;
        if (chosen && whole->probes.items[i].family == family && all > 0.0) {
            extra[count++] = all - one / ((double)whole->cores * efficient);
        }
    }
    double middle = median(extra, count);
    free(extra);
    return fmax(middle, 0.0);
}

/* Products that are shared out unevenly or hardly at all, and kernels of some microseconds. */
static void fit_team(const struct sc_grid *each, const struct sc_grid *whole, struct sc_fits *out)
{
    out->efficiency = whole != NULL ? efficiency(each, whole) : 1.0;
    if (whole != NULL) {
        out->gemm_team_s =
            team_seconds(each, whole, SC_PROBE_GEMM, 0.0, SMALL_GEMM_S, out->efficiency);
        out->memory_team_s = team_seconds(each, whole, SC_PROBE_MEMORY, LEAST_KERNEL_S,
                                          SMALL_KERNEL_S, out->efficiency);
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

static double streaming(const struct sc_grid *grid)
{
    double rates[64];
    size_t count = 0;
    for (size_t i = 0; i < grid->probes.count && count < 64; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_STREAM && probe->seconds > 0.0) {
            rates[count++] = probe->bytes / probe->seconds;
        }
    }
    return median(rates, count);
}

static bool of_kind(const struct sc_probe *probe, const void *what)
{
    return (probe->family == SC_PROBE_MEMORY || probe->family == SC_PROBE_ADAM) &&
           strcmp(probe->kind, what) == 0;
}

static double elements_of(const struct sc_probe *probe, const struct sc_grid *grid)
{
    (void)grid;
    return probe->elements;
}

/* Sorts by bytes; few enough for insertion. */
static void sort_by_bytes(struct timings *t)
{
    for (size_t i = 1; i < t->count; i++) {
        for (size_t j = i; j > 0 && t->bytes[j] < t->bytes[j - 1]; j--) {
            double x = t->x[j], s = t->seconds[j], b = t->bytes[j];
            t->x[j] = t->x[j - 1], t->seconds[j] = t->seconds[j - 1];
            t->bytes[j] = t->bytes[j - 1];
            t->x[j - 1] = x, t->seconds[j - 1] = s, t->bytes[j - 1] = b;
        }
    }
}

static bool differ(const double *x, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (x[i] != x[0]) {
            return true;
        }
    }
    return false;
}

static double beyond(double bytes, double cache)
{
    return bytes > cache ? bytes - cache : 0.0;
}

static double kind_seconds(const struct sc_kind_fit *fit, double elements, double bytes,
                           double cache, double bandwidth)
{
    double share = fit->share > 0.0 ? fit->share : 1.0;
    double memory = beyond(bytes, cache) / (bandwidth * share);
    return fit->fixed_s + fmax(elements * fit->s_per_element, memory);
}

/* What the largest operands get from memory, if they are far beyond the cache. Where arithmetic is
 * what bounds them, memory is only known to give no less than that: 0, or that if it is more than a
 * plain copy gets. `t` is sorted by bytes. */
static double memory_share(const struct timings *t, double cache, double bandwidth,
                           const struct sc_kind_fit *fit)
{
    size_t last = t->count - 1;
    double left = t->seconds[last] - fit->fixed_s;
    if (t->bytes[last] < 2.0 * cache || left <= 0.0) {
        return 0.0;
    }
    double share = fmin((t->bytes[last] - cache) / left / bandwidth, 100.0);
    bool memory_bound = left > 1.1 * t->x[last] * fit->s_per_element;
    return memory_bound || share > 1.0 ? share : 0.0;
}

static enum sc_status fit_timings(struct timings *t, double cache, double bandwidth,
                                  struct sc_kind_fit *out, struct sc_error *err)
{
    size_t cached = 0;
    struct sc_fit_line line = {0};
    double fitted[64];
    sort_by_bytes(t);
    while (cached < t->count && t->bytes[cached] <= cache) {
        cached++;
    }
    cached = cached < 2 ? t->count : cached;
    if (differ(t->x, cached)) {
        SC_TRY(sc_fit_line_robust(t->x, t->seconds, cached, &line, err));
    } else {
        line.a = median(t->seconds, cached);
    }
    out->fixed_s = line.a;
    out->s_per_element = line.b;
    out->share = memory_share(t, cache, bandwidth, out);
    size_t count = t->count < 64 ? t->count : 64;
    for (size_t i = 0; i < count; i++) {
        fitted[i] = kind_seconds(out, t->x[i], t->bytes[i], cache, bandwidth);
    }
    return sc_fit_residuals(fitted, t->seconds, count, &out->residuals, err);
}

static enum sc_status fit_kind(const struct sc_grid *grid, const char *name, double cache,
                               double bandwidth, struct sc_kind_fit *out, struct sc_error *err)
{
    struct timings t;
    SC_TRY(gather(grid, of_kind, name, elements_of, &t, err));
    out->name = name;
    enum sc_status status = fit_timings(&t, cache, bandwidth, out, err);
    timings_free(&t);
    return status;
}

static bool known(const struct sc_fits *fits, const char *name)
{
    for (int i = 0; i < fits->kind_count; i++) {
        if (strcmp(fits->kinds[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum sc_status fit_kinds_at(const struct sc_grid *grid, double cache, double bandwidth,
                                   struct sc_fits *out, double *score, struct sc_error *err)
{
    out->kind_count = 0;
    *score = 0.0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_ADAM) {
            SC_TRY(fit_kind(grid, probe->kind, cache, bandwidth, &out->adam, err));
        }
        if (probe->family != SC_PROBE_MEMORY || known(out, probe->kind) ||
            out->kind_count == SC_FITTED_KINDS_MAX) {
            continue;
        }
        struct sc_kind_fit *fit = &out->kinds[out->kind_count];
        SC_TRY(fit_kind(grid, probe->kind, cache, bandwidth, fit, err));
        out->kind_count++;
        *score += fit->residuals.median + fit->residuals.p90;
    }
    return SC_OK;
}

/* How much of its part of the last cache one operation's operands find: what repeats the timings
 * best. The rest is taken by what was written before and will be read. */
static enum sc_status fit_kinds(const struct sc_grid *grid, double bandwidth, struct sc_fits *out,
                                struct sc_error *err)
{
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    double part = (size > 0 ? (double)size : 16e6) / (double)grid->cores, best = INFINITY, score;
    for (double cache = part / 64.0; cache <= part / 4.0; cache *= 2.0) {
        SC_TRY(fit_kinds_at(grid, cache, bandwidth, out, &score, err));
        if (score < best) {
            best = score;
            out->cache_bytes = cache;
        }
    }
    return fit_kinds_at(grid, out->cache_bytes, bandwidth, out, &score, err);
}

/* ---- collectives ------------------------------------------------------------------------- */

/* Which timings of collectives: all-reduces or the others, and tensors of [least, most) bytes. */
struct which {
    bool all_reduce;
    double least, most;
};

static bool of_which(const struct sc_probe *probe, const void *what)
{
    const struct which *which = what;
    return probe->family == SC_PROBE_COLLECTIVE && probe->bytes >= which->least &&
           probe->bytes < which->most &&
           (probe->collective == SC_COLLECTIVE_ALL_REDUCE) == which->all_reduce;
}

static double moved_of(const struct sc_probe *probe, const struct sc_grid *grid)
{
    return sc_collective_moved(probe->collective, grid->ranks, probe->bytes);
}

static enum sc_status fit_collective(const struct sc_grid *grid, const struct which *which,
                                     struct sc_collective_fit *out, struct sc_error *err)
{
    struct timings t;
    struct sc_fit_line line = {0};
    SC_TRY(gather(grid, of_which, which, moved_of, &t, err));
    enum sc_status status = SC_OK;
    if (differ(t.x, t.count)) {
        status = sc_fit_line_robust(t.x, t.seconds, t.count, &line, err);
    } else {
        line.a = median(t.seconds, t.count);
    }
    timings_free(&t);
    SC_TRY(status);
    out->latency_s = line.a;
    out->bus_bandwidth = line.b > 0.0 ? 1.0 / line.b : 1e12;
    out->residuals = line.residuals;
    return SC_OK;
}

static enum sc_status fit_level(const struct sc_grid *grid, double least, double most,
                                struct sc_level_fit *out, struct sc_error *err)
{
    const struct which all_reduces = {true, least, most}, others = {false, least, most};
    SC_TRY(fit_collective(grid, &all_reduces, &out->all_reduce, err));
    return fit_collective(grid, &others, &out->other, err);
}

enum { SIZES_LEAST = 4 }; /* that a line is fitted to */

/* The smallest all-reduce of at least `least` bytes and how many sizes there are from it on. */
static double next_size(const struct sc_grid *grid, double least, size_t *from_here)
{
    double next = INFINITY;
    const struct which which = {true, least, INFINITY};
    *from_here = 0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        if (of_which(&grid->probes.items[i], &which)) {
            next = fmin(next, grid->probes.items[i].bytes);
            ++*from_here;
        }
    }
    return next;
}

/* Where one line does not repeat all sizes (a link lets a burst pass at once, a library sends small
 * messages another way), the smallest are left to figures of their own, as few as will do. */
static enum sc_status fit_sizes(const struct sc_grid *grid, struct sc_transport_fit *out,
                                struct sc_error *err)
{
    const double good = 0.15;
    double least = 0.0;
    SC_TRY(fit_level(grid, 0.0, INFINITY, &out->level[0], err));
    for (;;) {
        size_t left = 0;
        double first = next_size(grid, least, &left);
        if (out->level[0].all_reduce.residuals.worst <= good || left <= SIZES_LEAST) {
            break;
        }
        least = nextafter(first, INFINITY);
        SC_TRY(fit_level(grid, least, INFINITY, &out->level[0], err));
    }
    if (least > 0.0) {
        size_t left = 0;
        out->small_bytes = next_size(grid, least, &left);
        SC_TRY(fit_level(grid, 0.0, least, &out->small, err));
    }
    return SC_OK;
}

/* Transfer times of the all-reduces that run alone. */
static enum sc_status fit_transfers(const struct sc_grid *grid, double least,
                                    struct sc_fit_line *out, struct sc_error *err)
{
    const struct which which = {true, least, INFINITY};
    struct timings t;
    SC_TRY(gather(grid, of_which, &which, moved_of, &t, err));
    size_t at = 0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (of_which(probe, &which) && probe->seconds > 0.0) {
            t.seconds[at++] = fmax(probe->transfer_s, 1e-9);
        }
    }
    enum sc_status status = sc_fit_line_robust(t.x, t.seconds, t.count, out, err);
    timings_free(&t);
    return status;
}

/*
 * A chain of products takes T0 alone and T1 beside a collective that takes E then: of E, T1 - T0 is
 * lost to the products, the part of a core that the collective holds; and E is so many times what
 * the collective takes alone.
 */
static enum sc_status fit_beside(const struct sc_grid *grid, struct sc_transport_fit *out,
                                 struct sc_error *err)
{
    double held[16], slower[16];
    size_t count = 0;
    struct sc_fit_line alone;
    SC_TRY(fit_transfers(grid, out->small_bytes, &alone, err));
    for (size_t i = 0; i + 1 < grid->probes.count && count < 16; i++) {
        const struct sc_probe *p = &grid->probes.items[i];
        if (p[0].family != SC_PROBE_CHAIN || p[1].family != SC_PROBE_BESIDE ||
            p[1].transfer_s <= 0.0) {
            continue;
        }
        double expected = alone.a + alone.b * moved_of(&p[1], grid);
        held[count] = fmin(fmax(p[1].seconds - p[0].seconds, 0.0) / p[1].transfer_s, 0.95);
        slower[count++] = fmax(p[1].transfer_s / expected, 1.0);
    }
    out->held_cores = median(held, count);
    out->slowdown_beside_compute = fmax(median(slower, count), 1.0);
    return SC_OK;
}

enum sc_status sc_calibrate_fit_transport(const struct sc_grid *each, const struct sc_grid *crowded,
                                          struct sc_transport_fit *out, struct sc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->ranks = each->ranks;
    out->slowdown_beside_compute = 1.0;
    out->has_level[0] = each->ranks > 1;
    out->has_level[1] = crowded != NULL;
    if (out->has_level[0]) {
        SC_TRY(each->transport == SC_TRANSPORT_THREADS
                   ? fit_level(each, 0.0, INFINITY, &out->level[0], err)
                   : fit_sizes(each, out, err));
        SC_TRY(fit_beside(each, out, err));
    }
    return out->has_level[1] ? fit_level(crowded, 0.0, INFINITY, &out->level[1], err) : SC_OK;
}

enum sc_status sc_calibrate_fit(const struct sc_grid *each, const struct sc_grid *whole,
                                const struct sc_grid *alone, const struct sc_grid *crowded,
                                struct sc_fits *out, struct sc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->cores = each->cores;
    SC_TRY(fit_gemm(each, out, err));
    SC_TRY(fit_attention(each, out, err));
    fit_team(each, whole, out);
    double rank_bandwidth = streaming(each);
    out->node_bandwidth = rank_bandwidth * (double)each->ranks;
    out->core_bandwidth = fmax(streaming(alone), rank_bandwidth);
    SC_TRY(fit_kinds(each, rank_bandwidth, out, err));
    return sc_calibrate_fit_transport(each, crowded, &out->transport[SC_TRANSPORT_THREADS], err);
}
