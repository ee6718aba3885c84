/* What a log of nccl-tests says, in the form that profiles take, and what has to be said beside it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/nccl_tests_fit.h"

#define COLLAPSE 0.8       /* of the peak: a bandwidth of the largest sizes below it is said */
#define LATENCY_BOUND 0.5  /* share of latency in the largest time */
#define LATENCY_SEEN 0.1   /* share of latency in the smallest time */
#define RESIDUAL_SAID 0.15 /* median */
#define BORDERS_MAX (2 * SC_NT_PIECES_MAX)

/* ---- warnings about a fit ---- */

static enum sc_status warn_of_fall(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                   const struct sc_nccl_tests_figures *figures,
                                   struct sc_error *err)
{
    char from[32], to[32], from_s[32], to_s[32];
    if (figures->fall_from_bytes == 0) {
        return SC_OK;
    }
    sc_print_bytes((double)figures->fall_from_bytes, from, sizeof(from));
    sc_print_bytes((double)figures->fall_to_bytes, to, sizeof(to));
    sc_print_seconds(figures->fall_from_s, from_s, sizeof(from_s));
    sc_print_seconds(figures->fall_to_s, to_s, sizeof(to_s));
    return sc_nccl_tests_warn(log, table, err,
                              "times fall with size, from %s at %s to %s at %s: the figures do not "
                              "follow",
                              from_s, from, to_s, to);
}

static enum sc_status warn_of_bandwidth(struct sc_nccl_tests_log *log,
                                        struct sc_nccl_tests_table *table,
                                        const struct sc_nccl_tests_figures *figures,
                                        struct sc_error *err)
{
    const struct sc_nccl_tests_piece *last = &figures->pieces[figures->piece_count - 1];
    double largest = (double)figures->largest_bytes;
    double at_largest = figures->largest_bus_bandwidth;
    char peak[32], end[32];
    sc_print_bytes((double)figures->peak_bytes, peak, sizeof(peak));
    sc_print_bytes(largest, end, sizeof(end));
    if (at_largest < COLLAPSE * figures->peak_bus_bandwidth) {
        SC_TRY(sc_nccl_tests_warn(
            log, table, err,
            "bus bandwidth collapses from %.4g GB/s at %s to %.3g GB/s at %s: "
            "that of large sizes is not what the links can do",
            figures->peak_bus_bandwidth / SC_GIGA, peak, at_largest / SC_GIGA, end));
    }
    if (figures->smallest_bytes == figures->largest_bytes) {
        return sc_nccl_tests_warn(log, table, err,
                                  "one size only: all of its time is taken for "
                                  "bandwidth, none for latency");
    }
    if (last->latency_s > LATENCY_BOUND * figures->largest_s) {
        return sc_nccl_tests_warn(log, table, err,
                                  "the largest size, %s, still is mostly latency: the bandwidth is "
                                  "not known, only that it is at least %.3g GB/s",
                                  end, figures->peak_bus_bandwidth / SC_GIGA);
    }
    return SC_OK;
}

static enum sc_status warn_of_latency(struct sc_nccl_tests_log *log,
                                      struct sc_nccl_tests_table *table,
                                      const struct sc_nccl_tests_figures *figures,
                                      struct sc_error *err)
{
    char least[32];
    bool seen = figures->pieces[0].latency_s >= LATENCY_SEEN * figures->smallest_s;
    if (seen || figures->smallest_bytes == figures->largest_bytes) {
        return SC_OK;
    }
    sc_print_bytes((double)figures->smallest_bytes, least, sizeof(least));
    return sc_nccl_tests_warn(log, table, err,
                              "the smallest size, %s, takes much longer than any latency: that is "
                              "not known",
                              least);
}

enum sc_status sc_nccl_tests_fit_warn(struct sc_nccl_tests_log *log,
                                      struct sc_nccl_tests_table *table,
                                      const struct sc_nccl_tests_figures *figures,
                                      struct sc_error *err)
{
    SC_TRY(warn_of_fall(log, table, figures, err));
    SC_TRY(warn_of_bandwidth(log, table, figures, err));
    SC_TRY(warn_of_latency(log, table, figures, err));
    if (figures->residuals.median > RESIDUAL_SAID) {
        return sc_nccl_tests_warn(log, table, err, "half of the times are off by more than %.0f %%",
                                  1e2 * figures->residuals.median);
    }
    return SC_OK;
}

/* ---- numbers ---- */

/* Five digits: more was not measured. */
static double rounded(double value)
{
    char text[32];
    double out = 0.0;
    snprintf(text, sizeof(text), "%.5g", value);
    return sscanf(text, "%lf", &out) == 1 ? out : value;
}

static void add_number(cJSON *object, const char *key, double value)
{
    cJSON_AddNumberToObject(object, key, rounded(value));
}

static void add_count(cJSON *object, const char *key, int64_t value)
{
    if (value > 0) {
        cJSON_AddNumberToObject(object, key, (double)value);
    } else {
        cJSON_AddNullToObject(object, key);
    }
}

static void add_alpha_beta(cJSON *object, const char *key, const struct sc_nccl_tests_piece *piece)
{
    cJSON *item = cJSON_AddObjectToObject(object, key);
    add_number(item, "latency_us", piece->latency_s * SC_US_PER_S);
    add_number(item, "bus_bandwidth_gb_per_s", piece->bus_bandwidth / SC_GIGA);
}

static void add_residuals(cJSON *object, const struct sc_fit_residuals *residuals)
{
    cJSON *item = cJSON_AddObjectToObject(object, "residuals");
    add_number(item, "median", residuals->median);
    add_number(item, "p90", residuals->p90);
    add_number(item, "worst", residuals->worst);
    cJSON_AddNumberToObject(item, "count", (double)residuals->count);
}

/* ---- tables ---- */

static void add_figures(cJSON *object, const struct sc_nccl_tests_figures *figures)
{
    cJSON_AddNumberToObject(object, "smallest_bytes", (double)figures->smallest_bytes);
    cJSON_AddNumberToObject(object, "largest_bytes", (double)figures->largest_bytes);
    add_number(object, "peak_bus_bandwidth_gb_per_s", figures->peak_bus_bandwidth / SC_GIGA);
    cJSON_AddNumberToObject(object, "peak_bytes", (double)figures->peak_bytes);
    cJSON *pieces = cJSON_AddArrayToObject(object, "pieces");
    for (int i = 0; i < figures->piece_count; i++) {
        cJSON *item = cJSON_CreateObject();
        const struct sc_nccl_tests_piece *piece = &figures->pieces[i];
        if (isfinite(piece->maximum_bytes)) {
            cJSON_AddNumberToObject(item, "maximum_bytes", piece->maximum_bytes);
        }
        add_number(item, "latency_us", piece->latency_s * SC_US_PER_S);
        add_number(item, "bus_bandwidth_gb_per_s", piece->bus_bandwidth / SC_GIGA);
        cJSON_AddItemToArray(pieces, item);
    }
    add_residuals(object, &figures->residuals);
}

static void add_source(cJSON *object, const char *key, enum sc_nccl_tests_source source)
{
    cJSON_AddStringToObject(object, key, sc_nccl_tests_sources[source]);
}

static cJSON *table_to_json(const struct sc_nccl_tests_table *table,
                            const struct sc_nccl_tests_figures *figures)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "line", (double)table->line);
    cJSON_AddNumberToObject(object, "rows", (double)table->rows.count);
    if (table->refused != NULL) {
        cJSON_AddStringToObject(object, "refused", table->refused);
    } else {
        cJSON_AddStringToObject(object, "collective", sc_nccl_tests_kinds[table->collective].name);
        add_source(object, "collective_from", table->collective_from);
        add_count(object, "ranks", table->ranks);
        add_source(object, "ranks_from", table->ranks_from);
        add_count(object, "nodes", table->nodes);
        cJSON_AddBoolToObject(object, "validated", table->validated);
        add_figures(object, figures);
    }
    cJSON *warnings = cJSON_AddArrayToObject(object, "warnings");
    for (size_t i = 0; i < table->warnings.count; i++) {
        cJSON_AddItemToArray(warnings, cJSON_CreateString(table->warnings.items[i]));
    }
    return object;
}

static enum sc_status add_table(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                cJSON *tables, struct sc_error *err)
{
    struct sc_nccl_tests_figures figures = {0};
    const struct sc_nccl_tests_table *one = table;
    if (table->refused == NULL) {
        SC_TRY(sc_nccl_tests_fit(&one, 1, &figures, err));
        SC_TRY(sc_nccl_tests_fit_warn(log, table, &figures, err));
    }
    cJSON_AddItemToArray(tables, table_to_json(table, &figures));
    return SC_OK;
}

/* ---- levels ---- */

/* Which of a level's figures a collective gives: all_reduce; other, where it is what steps consist
 * of; other, for want of those. */
enum use { USE_ALL_REDUCE, USE_OTHER, USE_ELSE, USE_LINK, USE_COUNT };

static const enum use uses[SC_NT_COLLECTIVE_COUNT] = {
    [SC_NT_ALL_REDUCE] = USE_ALL_REDUCE, [SC_NT_ALL_GATHER] = USE_OTHER,
    [SC_NT_REDUCE_SCATTER] = USE_OTHER,  [SC_NT_PER_RANK] = USE_OTHER,
    [SC_NT_ALL_TO_ALL] = USE_ELSE,       [SC_NT_BROADCAST] = USE_ELSE,
    [SC_NT_REDUCE] = USE_ELSE,           [SC_NT_GATHER] = USE_ELSE,
    [SC_NT_SCATTER] = USE_ELSE,          [SC_NT_HYPERCUBE] = USE_ELSE,
    [SC_NT_SEND_RECV] = USE_LINK,
};

struct level {
    bool has[2]; /* all_reduce, other */
    struct sc_nccl_tests_figures figures[2];
};
static const char *const level_keys[2] = {"all_reduce", "other"};

static bool same_place(const struct sc_nccl_tests_table *a, const struct sc_nccl_tests_table *b)
{
    return a->ranks == b->ranks && a->nodes == b->nodes;
}

/* Tables of one use on the same ranks as `like`; of the last-resort kind, the first one only. */
static enum sc_status fit_use(const struct sc_nccl_tests_log *log,
                              const struct sc_nccl_tests_table *like, enum use use,
                              struct level *level, int which, struct sc_error *err)
{
    SC_ARRAY(const struct sc_nccl_tests_table *) tables = {0};
    enum sc_status status = SC_OK;
    for (size_t i = 0; i < log->tables.count; i++) {
        const struct sc_nccl_tests_table *table = &log->tables.items[i];
        if (table->refused != NULL || uses[table->collective] != use || !same_place(table, like) ||
            (use == USE_ELSE && tables.count > 0)) {
            continue;
        }
        const struct sc_nccl_tests_table **place = sc_array_push(&tables);
        if (place == NULL) {
            SC_TRY_GOTO(sc_fail_memory(err, sizeof(*place)), end);
        }
        *place = table;
    }
    if (tables.count > 0) {
        SC_TRY_GOTO(sc_nccl_tests_fit(tables.items, tables.count, &level->figures[which], err),
                    end);
        level->has[which] = true;
    }
end:
    sc_array_free(&tables);
    return status;
}

static const struct sc_nccl_tests_piece *piece_below(const struct sc_nccl_tests_figures *figures,
                                                     double bytes)
{
    const struct sc_nccl_tests_piece *piece = figures->pieces;
    while (piece->maximum_bytes < bytes) {
        piece++;
    }
    return piece;
}

/* The borders of both, ascending: the first variant that holds a size wins, for both figures. */
static int collect_borders(const struct level *level, double *borders)
{
    int count = 0;
    for (int which = 0; which < 2; which++) {
        for (int i = 0; level->has[which] && i + 1 < level->figures[which].piece_count; i++) {
            borders[count++] = level->figures[which].pieces[i].maximum_bytes;
        }
    }
    if (count == 0) {
        return 0;
    }
    int kept = 0;
    sc_fit_quantile(borders, (size_t)count, 0.0); /* sorts */
    for (int i = 0; i < count; i++) {
        if (kept == 0 || borders[i] > borders[kept - 1]) {
            borders[kept++] = borders[i];
        }
    }
    return kept;
}

static void add_level_figures(cJSON *object, const struct level *level, double below)
{
    for (int which = 0; which < 2; which++) {
        if (level->has[which]) {
            add_alpha_beta(object, level_keys[which], piece_below(&level->figures[which], below));
        }
    }
}

/* The ranges of a variant that holds for groups like this one only. */
static void add_group(cJSON *variant, const struct sc_nccl_tests_table *like)
{
    double members = (double)(like->ranks / like->nodes);
    cJSON_AddNumberToObject(variant, "minimum_members_per_node", members);
    cJSON_AddNumberToObject(variant, "maximum_members_per_node", members);
    cJSON_AddNumberToObject(variant, "minimum_nodes", (double)like->nodes);
    cJSON_AddNumberToObject(variant, "maximum_nodes", (double)like->nodes);
}

/* The figures below each border; of a group (`like`), above the last as well. */
static void add_variants(cJSON *object, const struct level *level,
                         const struct sc_nccl_tests_table *like, const char *source)
{
    double borders[BORDERS_MAX + 1];
    int count = collect_borders(level, borders);
    if (like != NULL) {
        borders[count++] = INFINITY;
    }
    cJSON *variants = count > 0 ? cJSON_AddArrayToObject(object, "variants") : NULL;
    for (int i = 0; i < count; i++) {
        cJSON *variant = cJSON_CreateObject();
        if (like != NULL) {
            add_group(variant, like);
        }
        if (isfinite(borders[i])) {
            cJSON_AddNumberToObject(variant, "maximum_bytes", borders[i]);
        }
        add_level_figures(variant, level, borders[i]);
        if (source != NULL) {
            cJSON_AddStringToObject(variant, "source", source);
        }
        cJSON_AddItemToArray(variants, variant);
    }
}

/* Whether it is known which group of a machine the table is of: equally many ranks on each node. */
static bool group_known(const struct sc_nccl_tests_table *table)
{
    return table->nodes > 0 && table->ranks > 0 && table->ranks % table->nodes == 0;
}

static void add_level(cJSON *levels, const struct sc_nccl_tests_table *like,
                      const struct level *level, const char *file)
{
    char source[SC_ERROR_TEXT], nodes[48] = "an unknown number of nodes";
    cJSON *entry = cJSON_CreateObject();
    add_count(entry, "ranks", like->ranks);
    add_count(entry, "nodes", like->nodes);
    if (like->nodes > 0) {
        snprintf(nodes, sizeof(nodes), "%lld node%s", (long long)like->nodes,
                 like->nodes == 1 ? "" : "s");
    }
    snprintf(source, sizeof(source), "nccl-tests, %lld ranks on %s: %s", (long long)like->ranks,
             nodes, file);
    if (group_known(like)) {
        add_variants(entry, level, like, source);
    }
    cJSON *object = cJSON_AddObjectToObject(entry, "level");
    add_level_figures(object, level, INFINITY);
    add_variants(object, level, NULL, NULL);
    cJSON_AddStringToObject(object, "source", source);
    cJSON_AddItemToArray(levels, entry);
}

static bool first_of_its_place(const struct sc_nccl_tests_log *log, size_t index)
{
    const struct sc_nccl_tests_table *tables = log->tables.items;
    if (tables[index].refused != NULL || uses[tables[index].collective] == USE_LINK) {
        return false;
    }
    for (size_t i = 0; i < index; i++) {
        if (tables[i].refused == NULL && uses[tables[i].collective] != USE_LINK &&
            same_place(&tables[i], &tables[index])) {
            return false;
        }
    }
    return true;
}

static enum sc_status add_levels(const struct sc_nccl_tests_log *log, const char *file,
                                 cJSON *levels, struct sc_error *err)
{
    for (size_t i = 0; i < log->tables.count; i++) {
        const struct sc_nccl_tests_table *table = &log->tables.items[i];
        struct level level = {0};
        if (!first_of_its_place(log, i)) {
            continue;
        }
        SC_TRY(fit_use(log, table, USE_ALL_REDUCE, &level, 0, err));
        SC_TRY(fit_use(log, table, USE_OTHER, &level, 1, err));
        if (!level.has[1]) {
            SC_TRY(fit_use(log, table, USE_ELSE, &level, 1, err));
        }
        add_level(levels, table, &level, file);
    }
    return SC_OK;
}

/* What one rank sends to one other, at large sizes. */
static enum sc_status add_links(const struct sc_nccl_tests_log *log, cJSON *links,
                                struct sc_error *err)
{
    for (size_t i = 0; i < log->tables.count; i++) {
        const struct sc_nccl_tests_table *table = &log->tables.items[i];
        struct sc_nccl_tests_figures figures;
        if (table->refused != NULL || uses[table->collective] != USE_LINK) {
            continue;
        }
        SC_TRY(sc_nccl_tests_fit(&table, 1, &figures, err));
        const struct sc_nccl_tests_piece *last = &figures.pieces[figures.piece_count - 1];
        cJSON *entry = cJSON_CreateObject();
        add_count(entry, "ranks", table->ranks);
        add_count(entry, "nodes", table->nodes);
        cJSON *link = cJSON_AddObjectToObject(entry, "link");
        add_number(link, "bandwidth_gb_per_s", last->bus_bandwidth / SC_GIGA);
        add_number(link, "latency_us", last->latency_s * SC_US_PER_S);
        cJSON_AddItemToArray(links, entry);
    }
    return SC_OK;
}

enum sc_status sc_nccl_tests_to_json(struct sc_nccl_tests_log *log, const char *file, cJSON **out,
                                     struct sc_error *err)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", file);
    cJSON *tables = cJSON_AddArrayToObject(root, "tables");
    cJSON *levels = cJSON_AddArrayToObject(root, "levels");
    cJSON *links = cJSON_AddArrayToObject(root, "links");
    enum sc_status status = SC_OK;
    if (links == NULL) {
        SC_TRY_GOTO(sc_fail_memory(err, sizeof(*links)), fail);
    }
    for (size_t i = 0; i < log->tables.count; i++) {
        SC_TRY_GOTO(add_table(log, &log->tables.items[i], tables, err), fail);
    }
    SC_TRY_GOTO(add_levels(log, file, levels, err), fail);
    SC_TRY_GOTO(add_links(log, links, err), fail);
    *out = root;
    return SC_OK;
fail:
    cJSON_Delete(root);
    return status;
}
