/* Tables of nccl-tests: validation, collective, ranks and nodes, and what has to be said about
 * them. */
#include "model/nccl_tests_settle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define MOST_RANKS ((int64_t)1 << 20)
#define BLOCKS_DIFFER 0.2

static const char *const place_names[SC_NT_PLACES] = {"out-of-place", "in-place"};

/* ---- validation ---- */

struct checks {
    size_t present, unchecked, wrong;
};

static struct checks count_checks(const struct sc_nccl_tests_table *table, int place)
{
    struct checks out = {0};
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct sc_nccl_tests_time *time = &table->rows.items[i].times[place];
        out.present += time->present;
        out.unchecked += time->present && time->check == SC_NT_UNCHECKED;
        out.wrong += time->present && time->check == SC_NT_WRONG;
    }
    return out;
}

static void drop_place(struct sc_nccl_tests_table *table, int place)
{
    for (size_t i = 0; i < table->rows.count; i++) {
        table->rows.items[i].times[place].present = false;
    }
}

static bool mostly_wrong(const struct checks *checks)
{
    return checks->present > 0 && 2 * checks->wrong >= checks->present;
}

/* A collective that is not supported in place has no in-place figures worth the name: every row is
 * wrong, or is not checked while the other half of the row is. */
static enum sc_status drop_unsupported(struct sc_nccl_tests_log *log,
                                       struct sc_nccl_tests_table *table, struct sc_error *err)
{
    struct checks out = count_checks(table, SC_NT_OUT_OF_PLACE);
    struct checks in = count_checks(table, SC_NT_IN_PLACE);
    bool unchecked = in.present > 0 && in.unchecked == in.present && out.present > out.unchecked;
    bool wrong = mostly_wrong(&in) && out.present > 0 && !mostly_wrong(&out);
    if (!unchecked && !wrong) {
        return SC_OK;
    }
    drop_place(table, SC_NT_IN_PLACE);
    return sc_nccl_tests_warn(log, table, err, "in-place figures are left out: %s",
                              wrong ? "their results are wrong, in-place is not supported"
                                    : "only the out-of-place results were checked");
}

static void forgive(struct sc_nccl_tests_table *table)
{
    for (size_t i = 0; i < table->rows.count; i++) {
        for (int place = 0; place < SC_NT_PLACES; place++) {
            struct sc_nccl_tests_time *time = &table->rows.items[i].times[place];
            time->check = time->check == SC_NT_WRONG ? SC_NT_RIGHT : time->check;
        }
    }
}

static size_t drop_wrong(struct sc_nccl_tests_table *table)
{
    size_t dropped = 0;
    for (size_t i = 0; i < table->rows.count; i++) {
        for (int place = 0; place < SC_NT_PLACES; place++) {
            struct sc_nccl_tests_time *time = &table->rows.items[i].times[place];
            bool wrong = time->present && time->check == SC_NT_WRONG;
            time->present = time->present && !wrong;
            dropped += wrong;
        }
    }
    return dropped;
}

static enum sc_status validate(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                               struct sc_error *err)
{
    if (table->wrong_values == 0) {
        forgive(table); /* the program knows its limits better than we do */
    }
    SC_TRY(drop_unsupported(log, table, err));
    size_t wrong = drop_wrong(table);
    struct checks out = count_checks(table, SC_NT_OUT_OF_PLACE);
    struct checks in = count_checks(table, SC_NT_IN_PLACE);
    table->validated = out.unchecked + in.unchecked == 0;
    if (wrong > 0) {
        SC_TRY(sc_nccl_tests_warn(log, table, err,
                                  "validation FAILED: %zu timings with wrong results are left out; "
                                  "do not trust the others before the cause is known",
                                  wrong));
    } else if (table->wrong_values > 0 && in.present > 0) {
        SC_TRY(sc_nccl_tests_warn(log, table, err, "validation FAILED: %lld values out of bounds",
                                  (long long)table->wrong_values));
    }
    return table->validated ? SC_OK
                            : sc_nccl_tests_warn(log, table, err, "results were not validated");
}

static bool any_time(const struct sc_nccl_tests_table *table)
{
    return count_checks(table, 0).present + count_checks(table, 1).present > 0;
}

/* ---- busbw / algbw ---- */

struct range {
    double low, high;
};

static struct range factor_of(const struct sc_nccl_tests_time *time, int64_t bytes)
{
    double least = (double)bytes / (time->seconds + time->seconds_half_digit) / SC_GIGA;
    double most = (double)bytes / (time->seconds - time->seconds_half_digit) / SC_GIGA;
    return (struct range){(time->printed_busbw - time->busbw_half_digit) / most,
                          (time->printed_busbw + time->busbw_half_digit) / least};
}

static double width(const struct range *range)
{
    return range->high - range->low;
}

/* What every row allows busbw x time / size to be; where rows contradict one another, what the
 * sharpest says. {0, 0}: busbw is zero throughout. */
static struct range factor_range(const struct sc_nccl_tests_table *table)
{
    struct range all = {0.0, 1e30}, sharpest = {0.0, 1e30};
    for (size_t i = 0; i < SC_NT_PLACES * table->rows.count; i++) {
        const struct sc_nccl_tests_row *row = &table->rows.items[i / SC_NT_PLACES];
        const struct sc_nccl_tests_time *time = &row->times[i % SC_NT_PLACES];
        if (!time->present || !(time->printed_busbw > 0.0) ||
            !(time->seconds > time->seconds_half_digit)) {
            continue;
        }
        struct range one = factor_of(time, row->bytes);
        all.low = fmax(all.low, one.low);
        all.high = fmin(all.high, one.high);
        sharpest = width(&one) < width(&sharpest) ? one : sharpest;
    }
    if (sharpest.high >= 1e30) {
        return (struct range){0.0, 0.0};
    }
    return all.low <= all.high ? all : sharpest;
}

/* ---- collective ---- */

/* size / (count x bytes of an element), the same in every row; 0: not whole, or not known. Without
 * a type column elements are taken for four bytes (mscclpp-test's are). */
static int64_t parts_of(const struct sc_nccl_tests_table *table)
{
    int64_t parts = 0;
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct sc_nccl_tests_row *row = &table->rows.items[i];
        int64_t element = row->type[0] != '\0' ? sc_nccl_tests_type_bytes(row->type) : 4;
        if (element == 0 || row->count < 1 || row->count > INT64_MAX / element ||
            row->bytes % (row->count * element) != 0) {
            return 0;
        }
        int64_t here = row->bytes / (row->count * element);
        if (parts != 0 && here != parts) {
            return 0;
        }
        parts = here;
    }
    return parts;
}

static bool reduces(const struct sc_nccl_tests_table *table)
{
    const char *operation = table->rows.items[0].operation;
    return operation[0] != '\0' && strcmp(operation, "none") != 0;
}

/* Whether the columns are those of the collective: counts, and busbw / algbw. */
static bool fits(enum sc_nccl_tests_collective collective, int64_t parts,
                 const struct range *factor)
{
    const struct sc_nccl_tests_kind *kind = &sc_nccl_tests_kinds[collective];
    if (parts != 0 && kind->per_rank != (parts > 1)) {
        return false;
    }
    switch (kind->factor) {
    case SC_NT_ONE:
        return factor->low <= 1.0 && factor->high >= 1.0;
    case SC_NT_SHARE:
        return factor->low < 1.0;
    case SC_NT_TWICE_SHARE:
        break;
    }
    return factor->high >= 1.0 && factor->low < 2.0;
}

/* From the columns alone; SC_NT_COLLECTIVE_COUNT: several would do. */
static enum sc_nccl_tests_collective from_columns(const struct sc_nccl_tests_table *table,
                                                  int64_t parts, const struct range *factor)
{
    if (parts > 1 || (parts == 0 && factor->high < 1.0)) {
        return reduces(table) ? SC_NT_REDUCE_SCATTER : SC_NT_PER_RANK;
    }
    return factor->low > 1.0 ? SC_NT_ALL_REDUCE : SC_NT_COLLECTIVE_COUNT;
}

static enum sc_status find_collective(struct sc_nccl_tests_log *log,
                                      struct sc_nccl_tests_table *table, int64_t parts,
                                      const struct range *factor, struct sc_error *err)
{
    enum sc_nccl_tests_collective named = table->collective;
    table->collective_from = SC_NT_FROM_HEADER;
    if (named != SC_NT_COLLECTIVE_COUNT && fits(named, parts, factor)) {
        return SC_OK;
    }
    table->collective = from_columns(table, parts, factor);
    table->collective_from = parts > 1 ? SC_NT_FROM_COUNTS : SC_NT_FROM_BANDWIDTHS;
    if (table->collective == SC_NT_COLLECTIVE_COUNT) {
        table->collective = SC_NT_ALL_REDUCE;
        table->refused = "found a table of an unnamed collective with busbw = algbw, expected a "
                         "line before it that names the program (all_reduce_perf, ...)";
        return SC_OK;
    }
    if (named != SC_NT_COLLECTIVE_COUNT) {
        return sc_nccl_tests_warn(log, table, err, "named %s, but its columns are those of %s",
                                  sc_nccl_tests_kinds[named].name,
                                  sc_nccl_tests_kinds[table->collective].name);
    }
    return sc_nccl_tests_warn(log, table, err, "no line names the collective: %s by its columns",
                              sc_nccl_tests_kinds[table->collective].name);
}

/* ---- ranks ---- */

/* n of k = 2 (n - 1) / n or (n - 1) / n. */
static double ranks_of(double factor, bool twice)
{
    double share = twice ? factor / 2.0 : factor;
    return share < 1.0 - 1.0 / (double)MOST_RANKS ? 1.0 / (1.0 - share) : (double)MOST_RANKS;
}

/* The number in the range that two divides most often: machines come that way. */
static int64_t roundest(int64_t low, int64_t high)
{
    for (int64_t power = MOST_RANKS; power > 1; power /= 2) {
        int64_t multiple = (low + power - 1) / power * power;
        if (multiple <= high) {
            return multiple;
        }
    }
    return low;
}

static enum sc_status ranks_from_factor(struct sc_nccl_tests_log *log,
                                        struct sc_nccl_tests_table *table,
                                        const struct range *factor, struct sc_error *err)
{
    bool twice = sc_nccl_tests_kinds[table->collective].factor == SC_NT_TWICE_SHARE;
    double low = ranks_of(factor->low, twice), high = ranks_of(factor->high, twice);
    int64_t least = (int64_t)ceil(low), most = (int64_t)floor(high);
    table->ranks_from = SC_NT_FROM_BANDWIDTHS;
    if (least > most) {
        table->ranks = (int64_t)round((low + high) / 2.0);
        return sc_nccl_tests_warn(log, table, err,
                                  "busbw / algbw is that of %.2f ranks: taken for %lld",
                                  (low + high) / 2.0, (long long)table->ranks);
    }
    table->ranks = roundest(least, most);
    if (least == most) {
        return sc_nccl_tests_warn(log, table, err, "%lld ranks by busbw / algbw",
                                  (long long)table->ranks);
    }
    return sc_nccl_tests_warn(log, table, err,
                              "%lld to %lld ranks by busbw / algbw: taken for %lld",
                              (long long)least, (long long)most, (long long)table->ranks);
}

static bool complete(const struct sc_nccl_tests_devices *devices)
{
    return devices->listed > 0 && devices->listed == devices->highest + 1;
}

static bool agrees(const struct sc_nccl_tests_table *table, int64_t ranks,
                   const struct range *factor)
{
    double expected = sc_nccl_tests_bus_factor(table->collective, ranks);
    return ranks > 1 && expected > factor->low - 1e-3 && expected < factor->high + 1e-3;
}

static enum sc_status find_ranks(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                 const struct sc_nccl_tests_devices *devices, int64_t parts,
                                 const struct range *factor, struct sc_error *err)
{
    const struct sc_nccl_tests_kind *kind = &sc_nccl_tests_kinds[table->collective];
    bool listed = complete(devices);
    table->ranks_from = SC_NT_FROM_DEVICES;
    table->ranks = listed ? devices->listed : 0;
    if (kind->factor == SC_NT_ONE) {
        table->ranks_from = listed ? SC_NT_FROM_DEVICES : SC_NT_FROM_NOWHERE;
        return SC_OK;
    }
    if (kind->per_rank && parts > 1) {
        table->ranks = parts;
        table->ranks_from = SC_NT_FROM_COUNTS;
    } else if (!listed || !agrees(table, devices->listed, factor)) {
        SC_TRY(ranks_from_factor(log, table, factor, err));
    }
    if (listed && table->ranks != devices->listed) {
        return sc_nccl_tests_warn(log, table, err,
                                  "%lld devices are listed, but the table is of %lld",
                                  (long long)devices->listed, (long long)table->ranks);
    }
    return SC_OK;
}

static enum sc_status find_nodes(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                 const struct sc_nccl_tests_devices *devices, struct sc_error *err)
{
    bool known = complete(devices) && (table->ranks == devices->listed || table->ranks == 0);
    table->nodes = known ? devices->hosts : 0;
    if (devices->listed > devices->highest + 1) {
        return sc_nccl_tests_warn(log, table, err,
                                  "ranks are listed more than once: several runs in one, as of an "
                                  "nccl-tests built without MPI");
    }
    return known ? SC_OK
                 : sc_nccl_tests_warn(log, table, err,
                                      "no complete device list: the number of nodes is unknown");
}

/* ---- what is said of the rows ---- */

static enum sc_status say_left_out(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                   const struct sc_nccl_tests_left_out *left_out,
                                   struct sc_error *err)
{
    if (left_out->cut > 0) {
        SC_TRY(sc_nccl_tests_warn(log, table, err, "line %lld: %s left out: cut, or not a row",
                                  (long long)left_out->first_cut,
                                  left_out->cut > 1 ? "this and other lines are" : "this line is"));
    }
    if (left_out->empty > 0) {
        SC_TRY(sc_nccl_tests_warn(log, table, err, "%lld rows of size 0 are left out",
                                  (long long)left_out->empty));
    }
    return SC_OK;
}

static bool same_kind(const struct sc_nccl_tests_row *a, const struct sc_nccl_tests_row *b)
{
    return strcmp(a->type, b->type) == 0 && strcmp(a->operation, b->operation) == 0;
}

/* -o all and -d all print the sizes again for each operation and type. */
static enum sc_status say_pooled(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                 struct sc_error *err)
{
    const struct sc_nccl_tests_row *rows = table->rows.items;
    for (size_t i = 1; i < table->rows.count; i++) {
        if (!same_kind(&rows[i], &rows[0])) {
            return sc_nccl_tests_warn(log, table, err,
                                      "rows of several types or operations are taken together");
        }
    }
    return SC_OK;
}

static enum sc_status say_blocks(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                 struct sc_error *err)
{
    double worst = 0.0;
    int64_t line = 0;
    int faster = SC_NT_OUT_OF_PLACE;
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct sc_nccl_tests_row *row = &table->rows.items[i];
        const struct sc_nccl_tests_time *out = &row->times[SC_NT_OUT_OF_PLACE];
        const struct sc_nccl_tests_time *in = &row->times[SC_NT_IN_PLACE];
        double ratio = out->present && in->present ? out->seconds / in->seconds : 1.0;
        if (fabs(log2(ratio)) > worst) {
            worst = fabs(log2(ratio));
            line = row->line;
            faster = ratio > 1.0 ? SC_NT_IN_PLACE : SC_NT_OUT_OF_PLACE;
        }
    }
    if (worst <= log2(1.0 + BLOCKS_DIFFER)) {
        return SC_OK;
    }
    return sc_nccl_tests_warn(log, table, err,
                              "line %lld: %s is %.1f times as fast as the other; both are fitted",
                              (long long)line, place_names[faster], exp2(worst));
}

enum sc_status sc_nccl_tests_settle(struct sc_nccl_tests_log *log,
                                    struct sc_nccl_tests_table *table,
                                    const struct sc_nccl_tests_left_out *left_out, bool cpu_time,
                                    struct sc_error *err)
{
    table->refused_line = table->line;
    SC_TRY(say_left_out(log, table, left_out, err));
    SC_TRY(validate(log, table, err));
    struct range factor = factor_range(table);
    int64_t parts = parts_of(table);
    if (cpu_time) {
        table->refused = "found times of the host (cputime), expected times of the collective";
    } else if (!any_time(table)) {
        table->refused = "found wrong results in every row, expected rows whose results are right";
    } else if (!(factor.high > 0.0)) {
        table->refused = "found busbw 0.00 in every row, expected a run of two ranks or more "
                         "(one rank sends nothing) and sizes that show a bandwidth";
    }
    if (table->refused != NULL) {
        table->collective =
            table->collective == SC_NT_COLLECTIVE_COUNT ? SC_NT_ALL_REDUCE : table->collective;
        return SC_OK;
    }
    SC_TRY(find_collective(log, table, parts, &factor, err));
    SC_TRY(find_ranks(log, table, &left_out->devices, parts, &factor, err));
    SC_TRY(find_nodes(log, table, &left_out->devices, err));
    SC_TRY(say_pooled(log, table, err));
    return say_blocks(log, table, err);
}
