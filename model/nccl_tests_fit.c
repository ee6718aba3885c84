/* Times of collectives by size to latencies and bus bandwidths, piece by piece. */
#include "model/nccl_tests_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define LEAST_SIZES 3       /* of a piece */
#define CUTS_MAX 64         /* places where pieces may begin */
#define RESIDUAL_MOST 0.25  /* |log| that counts at most */
#define GOOD_ENOUGH 0.01    /* mean |log| below which nothing is gained */
#define MAY_FALL 0.95       /* fitted time behind a border over that before it */
#define PRINTED_NEAR 1e-3   /* a printed bandwidth agrees with size and time */
#define FEW_SIZES 8         /* of a piece: lines through pairs of them are tried as well */
#define FALL_SAID 1.25      /* measured falls that are worth a word */
#define BANDWIDTH_MOST 10.0 /* of the last piece, over the best that was seen */

struct point {
    double bytes, moved, seconds;
    double bus; /* bytes a second: as printed, where that is what size and time say */
};

struct size_group {
    size_t first, behind;  /* points of one size */
    double bytes, seconds; /* their median */
};

struct segment {
    bool usable;
    double a, b, cost;
};

struct fit {
    SC_ARRAY(struct point) points; /* by size */
    SC_ARRAY(struct size_group) sizes;
    double *x, *y, *scratch; /* of the points */
    double peak;
    size_t cuts[CUTS_MAX + 1]; /* indices of sizes; the last is their number */
    int cut_count;             /* segments run from cuts[i] to cuts[j], 0 <= i < j <= cut_count */
    struct segment segments[CUTS_MAX + 1][CUTS_MAX + 1];
    /* Least cost of `p` pieces that end with the segment (i, j), and where its last piece begins.
     */
    double best[SC_NT_PIECES_MAX + 1][CUTS_MAX + 1][CUTS_MAX + 1];
    int before[SC_NT_PIECES_MAX + 1][CUTS_MAX + 1][CUTS_MAX + 1];
};

/* ---- points ---- */

static int by_size(const void *a, const void *b)
{
    const struct point *left = a, *right = b;
    if (left->bytes != right->bytes) {
        return left->bytes < right->bytes ? -1 : 1;
    }
    return (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

static enum sc_status add_points(struct fit *fit, const struct sc_nccl_tests_table *table,
                                 struct sc_error *err)
{
    double factor = sc_nccl_tests_bus_factor(table->collective, table->ranks);
    for (size_t i = 0; i < SC_NT_PLACES * table->rows.count; i++) {
        const struct sc_nccl_tests_row *row = &table->rows.items[i / SC_NT_PLACES];
        const struct sc_nccl_tests_time *time = &row->times[i % SC_NT_PLACES];
        if (!time->present) {
            continue;
        }
        struct point *point = sc_array_push(&fit->points);
        if (point == NULL) {
            return sc_fail_memory(err, sizeof(*point));
        }
        point->bytes = (double)row->bytes;
        point->moved = factor * (double)row->bytes;
        point->seconds = time->seconds;
        double bus = point->moved / point->seconds, printed = time->printed_busbw * SC_GIGA;
        point->bus = fabs(printed - bus) <= PRINTED_NEAR * bus + time->busbw_half_digit * SC_GIGA
                         ? printed
                         : bus;
    }
    return SC_OK;
}

static enum sc_status group_sizes(struct fit *fit, struct sc_error *err)
{
    size_t count = fit->points.count;
    const struct point *points = fit->points.items;
    for (size_t i = 0; i < count;) {
        struct size_group *group = sc_array_push(&fit->sizes);
        if (group == NULL) {
            return sc_fail_memory(err, sizeof(*group));
        }
        group->first = i;
        group->bytes = points[i].bytes;
        while (i < count && points[i].bytes == group->bytes) {
            i++;
        }
        group->behind = i;
        size_t low = (group->first + i - 1) / 2, high = (group->first + i) / 2;
        group->seconds = (points[low].seconds + points[high].seconds) / 2.0;
    }
    return SC_OK;
}

static enum sc_status prepare(struct fit *fit, const struct sc_nccl_tests_table *const *tables,
                              size_t table_count, struct sc_error *err)
{
    for (size_t i = 0; i < table_count; i++) {
        SC_TRY(add_points(fit, tables[i], err));
    }
    size_t count = fit->points.count;
    qsort(fit->points.items, count, sizeof(struct point), by_size);
    SC_TRY(group_sizes(fit, err));
    fit->x = malloc((3 * count + 1) * sizeof(double));
    if (fit->x == NULL) {
        return sc_fail_memory(err, (3 * count + 1) * sizeof(double));
    }
    fit->y = fit->x + count;
    fit->scratch = fit->y + count;
    for (size_t i = 0; i < count; i++) {
        fit->x[i] = fit->points.items[i].moved;
        fit->y[i] = fit->points.items[i].seconds;
        fit->peak = fmax(fit->peak, fit->x[i] / fit->y[i]);
    }
    size_t sizes = fit->sizes.count;
    fit->cut_count = sizes < CUTS_MAX ? (int)sizes : CUTS_MAX;
    for (int i = 0; i <= fit->cut_count; i++) {
        fit->cuts[i] = sizes * (size_t)i / (size_t)fit->cut_count;
    }
    return SC_OK;
}

/* ---- one piece ---- */

/* Where b would say more bandwidth than can be: that bandwidth, and the latency that is left. */
static void limit_bandwidth(struct fit *fit, size_t first, size_t behind, double limit,
                            struct segment *out)
{
    if (out->b >= 1.0 / limit) {
        return;
    }
    out->b = 1.0 / limit;
    for (size_t i = first; i < behind; i++) {
        fit->scratch[i - first] = fit->y[i] - out->b * fit->x[i];
    }
    out->a = fmax(0.0, sc_fit_quantile(fit->scratch, behind - first, 0.5));
}

static double cost_of(const struct fit *fit, size_t first_size, size_t behind_size,
                      const struct segment *segment)
{
    double cost = 0.0;
    for (size_t i = first_size; i < behind_size; i++) {
        const struct size_group *group = &fit->sizes.items[i];
        double sum = 0.0;
        for (size_t j = group->first; j < group->behind; j++) {
            double off = fabs(log((segment->a + segment->b * fit->x[j]) / fit->y[j]));
            sum += fmin(off, RESIDUAL_MOST);
        }
        cost += sum / (double)(group->behind - group->first);
    }
    return cost;
}

/* Few sizes and one of them out of line: a robust fit starts from all of them and may stay between.
 * Lines through two of the sizes do not. */
static void try_pairs(struct fit *fit, size_t first_size, size_t behind_size, double limit,
                      struct segment *best)
{
    const struct size_group *sizes = fit->sizes.items;
    for (size_t i = first_size; i < behind_size; i++) {
        for (size_t j = i + 1; j < behind_size; j++) {
            double x = fit->x[sizes[i].first], step = fit->x[sizes[j].first] - x;
            struct segment one = {.b = (sizes[j].seconds - sizes[i].seconds) / step};
            one.a = sizes[i].seconds - one.b * x;
            one.cost = cost_of(fit, first_size, behind_size, &one);
            if (one.a >= 0.0 && one.b >= 1.0 / limit && one.cost < best->cost) {
                *best = one;
            }
        }
    }
}

/* A smaller message never runs faster on the wire than the best that was seen; the largest ones may
 * be on their way to more. */
static enum sc_status fit_segment(struct fit *fit, int i, int j, struct sc_error *err)
{
    struct segment *out = &fit->segments[i][j];
    size_t first_size = fit->cuts[i], behind_size = fit->cuts[j];
    bool last = j == fit->cut_count;
    if (behind_size - first_size < LEAST_SIZES && !(i == 0 && last)) {
        return SC_OK;
    }
    size_t first = fit->sizes.items[first_size].first;
    size_t behind = fit->sizes.items[behind_size - 1].behind;
    struct sc_fit_line line = {.b = 1.0 / fit->peak};
    if (behind_size - first_size > 1) {
        SC_TRY(sc_fit_line_robust(fit->x + first, fit->y + first, behind - first, &line, err));
    }
    out->a = line.a;
    out->b = line.b;
    double limit = (last ? BANDWIDTH_MOST : 1.0) * fit->peak;
    limit_bandwidth(fit, first, behind, limit, out);
    out->cost = cost_of(fit, first_size, behind_size, out);
    if (behind_size - first_size <= FEW_SIZES) {
        try_pairs(fit, first_size, behind_size, limit, out);
    }
    out->usable = true;
    return SC_OK;
}

/* ---- several pieces ---- */

static double border_bytes(const struct fit *fit, int cut)
{
    const struct size_group *above = &fit->sizes.items[fit->cuts[cut]];
    return round(sqrt(above[-1].bytes * above->bytes));
}

static bool follows(const struct fit *fit, const struct segment *low, const struct segment *high,
                    int cut)
{
    const struct size_group *above = &fit->sizes.items[fit->cuts[cut]];
    double factor = fit->x[above->first] / above->bytes;
    double moved = factor * border_bytes(fit, cut);
    return high->a + high->b * moved >= MAY_FALL * (low->a + low->b * moved);
}

static void extend(struct fit *fit, int pieces, int i, int j)
{
    double *best = &fit->best[pieces][i][j];
    const struct segment *segment = &fit->segments[i][j];
    *best = INFINITY;
    if (!segment->usable) {
        return;
    }
    if (pieces == 1) {
        *best = i == 0 ? segment->cost : INFINITY;
        return;
    }
    for (int h = 0; h < i; h++) {
        double cost = fit->best[pieces - 1][h][i] + segment->cost;
        if (cost < *best && follows(fit, &fit->segments[h][i], segment, i)) {
            *best = cost;
            fit->before[pieces][i][j] = h;
        }
    }
}

/* Where the last of `pieces` pieces begins; -1: there is no such choice. */
static int last_begin(const struct fit *fit, int pieces)
{
    int begin = -1;
    double least = INFINITY;
    for (int i = 0; i < fit->cut_count; i++) {
        if (fit->best[pieces][i][fit->cut_count] < least) {
            least = fit->best[pieces][i][fit->cut_count];
            begin = i;
        }
    }
    return begin;
}

/* Schwarz: n log of the mean deviation + half of log n for each constant, three a piece. */
static int choose_count(const struct fit *fit)
{
    double n = (double)fit->sizes.count, least = INFINITY;
    int chosen = 1;
    for (int pieces = 1; pieces <= SC_NT_PIECES_MAX; pieces++) {
        int begin = last_begin(fit, pieces);
        if (begin < 0) {
            continue;
        }
        double mean = fit->best[pieces][begin][fit->cut_count] / n;
        double score = n * log(mean + GOOD_ENOUGH) + 1.5 * pieces * log(n);
        if (score < least) {
            least = score;
            chosen = pieces;
        }
    }
    return chosen;
}

static void write_pieces(const struct fit *fit, struct sc_nccl_tests_figures *out)
{
    int end = fit->cut_count;
    out->piece_count = choose_count(fit);
    int begin = last_begin(fit, out->piece_count);
    for (int piece = out->piece_count; piece > 0; piece--) {
        const struct segment *segment = &fit->segments[begin][end];
        struct sc_nccl_tests_piece *to = &out->pieces[piece - 1];
        to->latency_s = segment->a;
        to->bus_bandwidth = 1.0 / segment->b;
        to->maximum_bytes = end == fit->cut_count ? INFINITY : border_bytes(fit, end);
        int before = fit->before[piece][begin][end];
        end = begin;
        begin = before;
    }
}

static enum sc_status fit_pieces(struct fit *fit, struct sc_nccl_tests_figures *out,
                                 struct sc_error *err)
{
    for (int i = 0; i < fit->cut_count; i++) {
        for (int j = i + 1; j <= fit->cut_count; j++) {
            SC_TRY(fit_segment(fit, i, j, err));
        }
    }
    for (int pieces = 1; pieces <= SC_NT_PIECES_MAX; pieces++) {
        for (int i = 0; i < fit->cut_count; i++) {
            for (int j = i + 1; j <= fit->cut_count; j++) {
                extend(fit, pieces, i, j);
            }
        }
    }
    write_pieces(fit, out);
    return SC_OK;
}

/* ---- what was seen ---- */

static void find_peak(const struct fit *fit, struct sc_nccl_tests_figures *out)
{
    for (size_t i = 0; i < fit->points.count; i++) {
        const struct point *point = &fit->points.items[i];
        if (point->bus > out->peak_bus_bandwidth) {
            out->peak_bus_bandwidth = point->bus;
            out->peak_bytes = (int64_t)point->bytes;
        }
    }
    const struct size_group *last = &fit->sizes.items[fit->sizes.count - 1];
    out->smallest_bytes = (int64_t)fit->sizes.items[0].bytes;
    out->largest_bytes = (int64_t)last->bytes;
    out->smallest_s = fit->sizes.items[0].seconds;
    out->largest_s = last->seconds;
    out->largest_bus_bandwidth = fit->points.items[last->first].bus; /* the fastest stands first */
}

static void find_fall(const struct fit *fit, struct sc_nccl_tests_figures *out)
{
    const struct size_group *slowest = &fit->sizes.items[0];
    double worst = FALL_SAID;
    for (size_t i = 1; i < fit->sizes.count; i++) {
        const struct size_group *group = &fit->sizes.items[i];
        if (slowest->seconds / group->seconds > worst) {
            worst = slowest->seconds / group->seconds;
            out->fall_from_bytes = (int64_t)slowest->bytes;
            out->fall_to_bytes = (int64_t)group->bytes;
            out->fall_from_s = slowest->seconds;
            out->fall_to_s = group->seconds;
        }
        slowest = group->seconds > slowest->seconds ? group : slowest;
    }
}

double sc_nccl_tests_seconds(const struct sc_nccl_tests_figures *figures, double factor,
                             double bytes)
{
    const struct sc_nccl_tests_piece *piece = figures->pieces;
    while (bytes >= piece->maximum_bytes) {
        piece++;
    }
    return piece->latency_s + factor * bytes / piece->bus_bandwidth;
}

static enum sc_status find_residuals(struct fit *fit, struct sc_nccl_tests_figures *out,
                                     struct sc_error *err)
{
    for (size_t i = 0; i < fit->points.count; i++) {
        const struct point *point = &fit->points.items[i];
        fit->scratch[i] = sc_nccl_tests_seconds(out, point->moved / point->bytes, point->bytes);
    }
    return sc_fit_residuals(fit->scratch, fit->y, fit->points.count, &out->residuals, err);
}

enum sc_status sc_nccl_tests_fit(const struct sc_nccl_tests_table *const *tables, size_t count,
                                 struct sc_nccl_tests_figures *out, struct sc_error *err)
{
    struct sc_nccl_tests_figures figures = {0};
    struct fit *fit = calloc(1, sizeof(*fit));
    if (fit == NULL) {
        return sc_fail_memory(err, sizeof(*fit));
    }
    enum sc_status status = SC_OK;
    SC_TRY_GOTO(prepare(fit, tables, count, err), end);
    SC_TRY_GOTO(fit_pieces(fit, &figures, err), end);
    find_peak(fit, &figures);
    find_fall(fit, &figures);
    SC_TRY_GOTO(find_residuals(fit, &figures, err), end);
    *out = figures;
end:
    sc_array_free(&fit->points);
    sc_array_free(&fit->sizes);
    free(fit->x);
    free(fit);
    return status;
}
