/* Fits of calibration: every family of operations by the form that model/cost_*.c prices it in. */
#include "exec/calibrate_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/fit_linear.h"

/* Timings of some operations of a grid: what they take is a sum over terms. */
struct timings {
    double *x, *seconds; /* [count][terms], [count] */
    size_t count, terms;
};

/* False: the probe is none of these. */
typedef bool terms_fn(const struct sc_probe *probe, const void *what, double *x);

static void timings_free(struct timings *timings)
{
    free(timings->x);
    free(timings->seconds);
    memset(timings, 0, sizeof(*timings));
}

static enum sc_status gather(const struct sc_grid *grid, terms_fn *choose, const void *what,
                             size_t terms, struct timings *out, struct sc_error *err)
{
    size_t room = grid->probes.count + 1;
    memset(out, 0, sizeof(*out));
    out->terms = terms;
    out->x = calloc(room * terms, sizeof(double));
    out->seconds = calloc(room, sizeof(double));
    if (out->x == NULL || out->seconds == NULL) {
        timings_free(out);
        return sc_fail_memory(err, room * (terms + 1) * sizeof(double));
    }
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->seconds > 0.0 && choose(probe, what, out->x + out->count * terms)) {
            out->seconds[out->count++] = probe->seconds;
        }
    }
    return SC_OK;
}

/* Fewer timings than constants (the smallest grid): the first ones are all that is asked for. */
static enum sc_status fit(const struct timings *t, double *b, struct sc_fit_residuals *residuals,
                          struct sc_error *err)
{
    size_t terms = t->terms < t->count ? t->terms : t->count;
    memset(b, 0, t->terms * sizeof(*b));
    if (terms == t->terms) {
        return sc_fit_linear_robust(t->x, t->seconds, t->count, terms, b, residuals, err);
    }
    double *x = calloc(t->count * terms + 1, sizeof(*x));
    if (x == NULL) {
        return sc_fail_memory(err, t->count * terms * sizeof(*x));
    }
    for (size_t i = 0; i < t->count * terms; i++) {
        x[i] = t->x[i / terms * t->terms + i % terms];
    }
    enum sc_status status = sc_fit_linear_robust(x, t->seconds, t->count, terms, b, residuals, err);
    free(x);
    return status;
}

static enum sc_status gather_and_fit(const struct sc_grid *grid, terms_fn *choose, const void *what,
                                     size_t terms, double *b, struct sc_fit_residuals *residuals,
                                     struct sc_error *err)
{
    struct timings t;
    SC_TRY(gather(grid, choose, what, terms, &t, err));
    enum sc_status status = fit(&t, b, residuals, err);
    timings_free(&t);
    return status;
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

enum { FLOPS, FIXED, B_TRANSPOSED, A_TRANSPOSED, PAGES, OPERANDS, B_COPIED, GEMM_TERMS };

static bool gemm_terms(const struct sc_probe *probe, const void *what, double *x)
{
    const struct sc_gemm_work *work = &probe->gemm;
    double m = (double)work->m, n = (double)work->n, k = (double)work->k;
    (void)what;
    if (probe->family != SC_PROBE_GEMM) {
        return false;
    }
    x[FLOPS] = probe->flops;
    x[FIXED] = 1.0;
    x[B_TRANSPOSED] = work->transpose_b ? probe->flops : 0.0;
    x[A_TRANSPOSED] = work->transpose_a ? probe->flops : 0.0;
    x[PAGES] = work->page_stride ? probe->flops : 0.0;
    x[OPERANDS] = m * k + k * n;
    x[B_COPIED] = work->transpose_b ? k * n : 0.0;
    return true;
}

static double best_rate(const struct sc_grid *grid)
{
    double best = 0.0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_GEMM && probe->seconds > 0.0) {
            best = fmax(best, probe->flops / probe->seconds);
        }
    }
    return best;
}

static enum sc_status fit_gemm(const struct sc_grid *grid, struct sc_fits *out,
                               struct sc_error *err)
{
    double b[GEMM_TERMS];
    out->peak = best_rate(grid);
    SC_TRY(gather_and_fit(grid, gemm_terms, NULL, GEMM_TERMS, b, &out->gemm, err));
    if (!(b[FLOPS] > 0.0)) {
        return sc_fail(err, SC_MACHINE, "calibrate: products take no measurable time");
    }
    double a_transposed = b[FLOPS] + b[A_TRANSPOSED];
    out->gemm_share = 1.0 / (b[FLOPS] * out->peak);
    out->gemm_fixed_s = b[FIXED];
    out->gemm_transposed_b_share = b[FLOPS] / (b[FLOPS] + b[B_TRANSPOSED]);
    out->gemm_transposed_a_share = b[FLOPS] / a_transposed;
    out->gemm_page_stride_share = a_transposed / (a_transposed + b[PAGES]);
    out->gemm_operand_s = b[OPERANDS];
    out->gemm_transposed_b_s = b[B_COPIED];
    return SC_OK;
}

enum { PRODUCTS, QUERIES, QUERY_ELEMENTS, ATTENTION_TERMS };

static bool attention_terms(const struct sc_probe *probe, const void *what, double *x)
{
    const struct sc_attention_work *work = &probe->attention;
    if (probe->family != SC_PROBE_ATTENTION || work->backward != *(const bool *)what) {
        return false;
    }
    x[PRODUCTS] = sc_attention_flops(work);
    x[QUERIES] = (double)work->batch * (double)work->query_heads * (double)work->query_length;
    x[QUERY_ELEMENTS] = x[QUERIES] * (double)work->head_size;
    return true;
}

static enum sc_status fit_attention(const struct sc_grid *grid, struct sc_fits *out,
                                    struct sc_error *err)
{
    for (int i = 0; i < 2; i++) {
        bool backward = i == 1;
        double b[ATTENTION_TERMS];
        SC_TRY(gather_and_fit(grid, attention_terms, &backward, ATTENTION_TERMS, b,
                              &out->attention[i], err));
        out->attention_share[i] =
            b[PRODUCTS] > 0.0 ? fmin(1.0 / (b[PRODUCTS] * out->peak), 2.0) : 2.0;
        out->attention_s_per_query[i] = b[QUERIES];
        out->attention_s_per_element[i] = b[QUERY_ELEMENTS];
    }
    return SC_OK;
}

/* Operations large enough to be shared out well. */
#define LARGE_GEMM_S 800e-6
#define LARGE_KERNEL_S 100e-6
/* Operations whose time tells what sharing out costs. */
#define SMALL_GEMM_S 600e-6
#define LEAST_KERNEL_S 3e-6
#define SMALL_KERNEL_S 60e-6

/* One rank with all cores against one core. */
static double efficiency(const struct sc_grid *each, const struct sc_grid *whole,
                         enum sc_probe_family family, double least_s)
{
    double *ratios = calloc(each->probes.count + 1, sizeof(*ratios));
    size_t count = 0;
    for (size_t i = 0; ratios != NULL && i < whole->probes.count && i < each->probes.count; i++) {
        const struct sc_probe *one = &each->probes.items[i], *all = &whole->probes.items[i];
        if (one->family == family && all->family == family && one->seconds >= least_s &&
            all->seconds > 0.0) {
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
    out->efficiency = out->memory_efficiency = 1.0;
    if (whole != NULL) {
        out->efficiency = efficiency(each, whole, SC_PROBE_GEMM, LARGE_GEMM_S);
        out->memory_efficiency = efficiency(each, whole, SC_PROBE_MEMORY, LARGE_KERNEL_S);
        out->gemm_team_s =
            team_seconds(each, whole, SC_PROBE_GEMM, 0.0, SMALL_GEMM_S, out->efficiency);
        out->memory_team_s = team_seconds(each, whole, SC_PROBE_MEMORY, LEAST_KERNEL_S,
                                          SMALL_KERNEL_S, out->memory_efficiency);
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

enum { ONCE, ELEMENTS, BEYOND, KIND_TERMS };

struct kind_choice {
    const char *name;
    double cache;
};

static bool kind_terms(const struct sc_probe *probe, const void *what, double *x)
{
    const struct kind_choice *choice = what;
    if ((probe->family != SC_PROBE_MEMORY && probe->family != SC_PROBE_ADAM) ||
        strcmp(probe->kind, choice->name) != 0) {
        return false;
    }
    x[ONCE] = 1.0;
    x[ELEMENTS] = probe->elements;
    x[BEYOND] = fmax(probe->bytes - choice->cache, 0.0);
    return true;
}

/* Of its part of the last cache, so much at least and at most serves one operation: the rest is
 * taken by what was written before and will be read. */
#define LEAST_CACHE_PART (1.0 / 32.0)
/* A share of bandwidth at which memory costs as good as nothing, and the least that is believed: a
 * streaming kernel that gets less was disturbed. */
#define FREE_MEMORY 100.0
#define LEAST_SHARE 0.3

static enum sc_status fit_kind(const struct sc_grid *grid, const char *name, double bandwidth,
                               struct sc_kind_fit *out, struct sc_error *err)
{
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    double part = (size > 0 ? (double)size : 16e6) / (double)grid->cores, best = INFINITY;
    memset(out, 0, sizeof(*out));
    out->name = name;
    for (double cache = part * LEAST_CACHE_PART; cache <= part; cache *= sqrt(2.0)) {
        struct kind_choice choice = {name, cache};
        struct sc_fit_residuals residuals;
        double b[KIND_TERMS];
        SC_TRY(gather_and_fit(grid, kind_terms, &choice, KIND_TERMS, b, &residuals, err));
        if (residuals.median + residuals.p90 < best) {
            best = residuals.median + residuals.p90;
            out->fixed_s = b[ONCE];
            out->s_per_element = b[ELEMENTS];
            out->share = b[BEYOND] > 0.0
                             ? fmax(fmin(1.0 / (b[BEYOND] * bandwidth), FREE_MEMORY), LEAST_SHARE)
                             : FREE_MEMORY;
            out->cache_bytes = cache;
            out->residuals = residuals;
        }
    }
    return SC_OK;
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

static enum sc_status fit_kinds(const struct sc_grid *grid, double bandwidth, struct sc_fits *out,
                                struct sc_error *err)
{
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_ADAM && out->adam.name == NULL) {
            SC_TRY(fit_kind(grid, probe->kind, bandwidth, &out->adam, err));
        }
        if (probe->family == SC_PROBE_MEMORY && !known(out, probe->kind) &&
            out->kind_count < SC_FITTED_KINDS_MAX) {
            SC_TRY(fit_kind(grid, probe->kind, bandwidth, &out->kinds[out->kind_count], err));
            out->kind_count++;
        }
    }
    return SC_OK;
}

/* ---- collectives ------------------------------------------------------------------------- */

enum { LATENCY, MOVED, COLLECTIVE_TERMS };

/* Collectives of a range of sizes. */
struct collective_choice {
    bool all_reduce;
    int64_t ranks;
    double least_bytes, most_bytes;
};

static bool collective_terms(const struct sc_probe *probe, const void *what, double *x)
{
    const struct collective_choice *choice = what;
    if (probe->family != SC_PROBE_COLLECTIVE ||
        (probe->collective == SC_COLLECTIVE_ALL_REDUCE) != choice->all_reduce ||
        probe->bytes < choice->least_bytes || probe->bytes > choice->most_bytes) {
        return false;
    }
    x[LATENCY] = 1.0;
    x[MOVED] = sc_collective_moved(probe->collective, choice->ranks, probe->bytes);
    return true;
}

static enum sc_status fit_range(const struct sc_grid *grid, bool all_reduce, double least,
                                double most, struct sc_collective_fit *out,
                                struct sc_fit_residuals *residuals, struct sc_error *err)
{
    struct collective_choice choice = {all_reduce, grid->ranks, least, most};
    double b[COLLECTIVE_TERMS];
    SC_TRY(gather_and_fit(grid, collective_terms, &choice, COLLECTIVE_TERMS, b, residuals, err));
    out->latency_s = b[LATENCY];
    out->bus_bandwidth = b[MOVED] > 0.0 ? 1.0 / b[MOVED] : 1e12;
    return SC_OK;
}

/* Two lines that meet nowhere in particular, or one: how badly they repeat the timings. */
static enum sc_status fit_split(const struct sc_grid *grid, double split, struct sc_level_fit *out,
                                double *score, struct sc_error *err)
{
    *score = 0.0;
    out->small_bytes = split;
    for (int i = 0; i < 2; i++) {
        struct sc_fit_residuals small = {0}, large = {0};
        struct sc_collective_fit *below = i == 0 ? &out->small_all_reduce : &out->small_other;
        struct sc_collective_fit *above = i == 0 ? &out->all_reduce : &out->other;
        if (split > 0.0) {
            SC_TRY(fit_range(grid, i == 0, 0.0, split, below, &small, err));
        }
        SC_TRY(fit_range(grid, i == 0, nextafter(split, INFINITY), INFINITY, above, &large, err));
        out->residuals[i] = (struct sc_fit_residuals){
            .median = fmax(small.median, large.median),
            .p90 = fmax(small.p90, large.p90),
            .worst = fmax(small.worst, large.worst),
            .count = small.count + large.count,
        };
        *score += (small.median + small.p90) * (double)small.count +
                  (large.median + large.p90) * (double)large.count;
    }
    return SC_OK;
}

enum { SIZES_MAX = 32, LEAST_SMALL = 2, LEAST_LARGE = 3 };

/* Sizes of the grid's all-reduces, which grow. */
static int sizes_of(const struct sc_grid *grid, double *sizes)
{
    int count = 0;
    for (size_t i = 0; i < grid->probes.count && count < SIZES_MAX; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_COLLECTIVE && probe->collective == SC_COLLECTIVE_ALL_REDUCE) {
            sizes[count++] = probe->bytes;
        }
    }
    return count;
}

/* Small ones stay in the caches, large ones do not: a second line where it repeats the timings
 * better by a fifth. */
static enum sc_status fit_level(const struct sc_grid *grid, struct sc_level_fit *out,
                                struct sc_error *err)
{
    double sizes[SIZES_MAX], best, score;
    int count = sizes_of(grid, sizes);
    SC_TRY(fit_split(grid, 0.0, out, &best, err));
    best *= 0.8;
    for (int i = LEAST_SMALL - 1; i + LEAST_LARGE < count; i++) {
        struct sc_level_fit split;
        SC_TRY(fit_split(grid, sizes[i], &split, &score, err));
        if (score < best) {
            best = score;
            *out = split;
        }
    }
    return SC_OK;
}

static double all_reduce_seconds(const struct sc_level_fit *level, const struct sc_probe *probe,
                                 int64_t ranks)
{
    const struct sc_collective_fit *fit =
        probe->bytes <= level->small_bytes ? &level->small_all_reduce : &level->all_reduce;
    double moved = sc_collective_moved(SC_COLLECTIVE_ALL_REDUCE, ranks, probe->bytes);
    return fit->latency_s + moved / fit->bus_bandwidth;
}

/*
 * A chain of products takes T0 alone and T1 beside a collective that takes E then: of E, T1 - T0 is
 * lost to the products, the part of a core that the collective holds; and E is so many times what
 * the collective takes alone.
 */
static void fit_beside(const struct sc_grid *grid, struct sc_transport_fit *out)
{
    double held[16], slower[16];
    size_t count = 0;
    for (size_t i = 0; i + 1 < grid->probes.count && count < 16; i++) {
        const struct sc_probe *p = &grid->probes.items[i];
        if (p[0].family != SC_PROBE_CHAIN || p[1].family != SC_PROBE_BESIDE ||
            p[1].transfer_s <= 0.0) {
            continue;
        }
        double alone = all_reduce_seconds(&out->level[0], &p[1], grid->ranks);
        held[count] = fmin(fmax(p[1].seconds - p[0].seconds, 0.0) / p[1].transfer_s, 0.95);
        slower[count++] = fmax(p[1].transfer_s / alone, 1.0);
    }
    out->held_cores = median(held, count);
    out->slowdown_beside_compute = fmax(median(slower, count), 1.0);
}

/* How long it takes to notice that a wait is over: small ones tell, beside which nothing else is to
 * be done. */
static void fit_waits(const struct sc_grid *grid, struct sc_transport_fit *out)
{
    double before[64], after[64];
    size_t count = 0;
    for (size_t i = 0; i < grid->probes.count && count < 64; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family == SC_PROBE_COLLECTIVE) {
            before[count] = probe->wait_before_s;
            after[count++] = probe->wait_after_s;
        }
    }
    out->wait_before_s = fmax(median(before, count), 0.0);
    out->wait_after_s = fmax(median(after, count), 0.0);
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
        SC_TRY(fit_level(each, &out->level[0], err));
        fit_beside(each, out);
        fit_waits(each, out);
    }
    return out->has_level[1] ? fit_level(crowded, &out->level[1], err) : SC_OK;
}

/* 90th less 10th percentile of a normal distribution, in standard deviations. */
#define SPREAD_OF_NORMAL 2.563

/* How much this machine's times vary from step to step, the longer the more an operation counts. */
static double deviation(const struct sc_grid *grid)
{
    double spread = 0.0, time = 0.0;
    for (size_t i = 0; i < grid->probes.count; i++) {
        const struct sc_probe *probe = &grid->probes.items[i];
        if (probe->family <= SC_PROBE_ADAM && probe->seconds > 0.0) {
            spread += probe->spread * probe->seconds;
            time += probe->seconds;
        }
    }
    return time > 0.0 ? spread / time / SPREAD_OF_NORMAL : 0.0;
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
    out->deviation = deviation(each);
    double rank_bandwidth = streaming(each);
    out->node_bandwidth = rank_bandwidth * (double)each->ranks;
    out->core_bandwidth = fmax(streaming(alone), rank_bandwidth);
    SC_TRY(fit_kinds(each, rank_bandwidth, out, err));
    return sc_calibrate_fit_transport(each, crowded, &out->transport[SC_TRANSPORT_THREADS], err);
}
