/* Medians over rounds, see compare_rounds.h. */
#include "reports/compare_rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/fit.h"

/* One number of a row. */
typedef double row_fn(const struct sc_trace_row *row);

static double start(const struct sc_trace_row *row)
{
    return row->start_us;
}

static double wait_us(const struct sc_trace_row *row)
{
    return isnan(row->transfer_us) ? 0 : row->transfer_us - row->start_us;
}

static double duration(const struct sc_trace_row *row)
{
    return row->end_us - (isnan(row->transfer_us) ? row->start_us : row->transfer_us);
}

static double median_of(const struct sc_trace *const *rounds, size_t count, size_t row,
                        row_fn *read, double *scratch)
{
    for (size_t i = 0; i < count; i++) {
        scratch[i] = read(&rounds[i]->rows.items[row]);
    }
    return sc_fit_quantile(scratch, count, 0.5);
}

/* The rows of one program stand in one order, but a file may come from anywhere. */
static bool same_row(const struct sc_trace *const *rounds, size_t count, size_t row)
{
    const struct sc_trace_row *first = &rounds[0]->rows.items[row];
    for (size_t i = 1; i < count; i++) {
        const struct sc_trace_row *other = &rounds[i]->rows.items[row];
        if (other->operation != first->operation || other->class_index != first->class_index ||
            other->rank != first->rank || isnan(other->transfer_us) != isnan(first->transfer_us)) {
            return false;
        }
    }
    return true;
}

static enum sc_status check(const struct sc_trace *const *rounds, size_t count,
                            struct sc_error *err)
{
    for (size_t i = 1; i < count; i++) {
        bool same = strcmp(rounds[i]->program, rounds[0]->program) == 0 &&
                    rounds[i]->rows.count == rounds[0]->rows.count &&
                    rounds[i]->classes.count == rounds[0]->classes.count;
        if (!same) {
            return sc_fail(
                err, SC_BAD_INPUT,
                "%s: program: found different programs among its measurements (%.15s..., "
                "%.15s...), expected runs of one",
                rounds[0]->plan, rounds[0]->program, rounds[i]->program);
        }
    }
    return SC_OK;
}

static enum sc_status merge_row(const struct sc_trace *const *rounds, size_t count, size_t row,
                                double *scratch, struct sc_trace *out, struct sc_error *err)
{
    const struct sc_trace_row *first = &rounds[0]->rows.items[row];
    if (!same_row(rounds, count, row)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: rows[%zu]: found another operation in each measurement, expected one",
                       rounds[0]->plan, row);
    }
    struct sc_trace_row *merged = sc_array_push(&out->rows);
    if (merged == NULL) {
        return sc_fail_memory(err, sizeof(*merged));
    }
    *merged = *first;
    merged->label = sc_arena_strdup(&out->arena, first->label);
    if (merged->label == NULL) {
        return sc_fail_memory(err, strlen(first->label));
    }
    merged->start_us = median_of(rounds, count, row, start, scratch);
    double from = merged->start_us + median_of(rounds, count, row, wait_us, scratch);
    merged->transfer_us = isnan(first->transfer_us) ? NAN : from;
    merged->end_us = from + median_of(rounds, count, row, duration, scratch);
    merged->bound = NULL;
    return SC_OK;
}

static enum sc_status copy_names(const struct sc_trace *from, struct sc_trace *out,
                                 struct sc_error *err)
{
    for (size_t i = 0; i < from->classes.count; i++) {
        struct sc_trace_class *class = sc_array_push(&out->classes);
        if (class == NULL) {
            return sc_fail_memory(err, sizeof(*class));
        }
        class->ranks = from->classes.items[i].ranks;
        class->name = sc_arena_strdup(&out->arena, from->classes.items[i].name);
        if (class->name == NULL) {
            return sc_fail_memory(err, strlen(from->classes.items[i].name));
        }
    }
    for (size_t i = 0; i < from->streams.count; i++) {
        const char **name = sc_array_push(&out->streams);
        if (name == NULL) {
            return sc_fail_memory(err, sizeof(*name));
        }
        *name = sc_arena_strdup(&out->arena, from->streams.items[i]);
        if (*name == NULL) {
            return sc_fail_memory(err, strlen(from->streams.items[i]));
        }
    }
    return SC_OK;
}

/* The header of the first round without what it owns. */
static void copy_header(const struct sc_trace *from, struct sc_trace *out)
{
    sc_trace_init(out);
    out->kind = from->kind;
    memcpy(out->program, from->program, sizeof(out->program));
    memcpy(out->plan, from->plan, sizeof(out->plan));
    memcpy(out->hardware, from->hardware, sizeof(out->hardware));
    memcpy(out->backend, from->backend, sizeof(out->backend));
    memcpy(out->machine, from->machine, sizeof(out->machine));
    memcpy(out->memory_mode, from->memory_mode, sizeof(out->memory_mode));
    out->measured_on = from->measured_on;
    out->solo = from->solo;
    out->steps_played = from->steps_played;
    out->anchor = from->anchor;
    out->period_low_us = from->period_low_us;
    out->period_high_us = from->period_high_us;
}

/* Of the most disturbed round; fmax passes over what is not known. */
static double most_others(const struct sc_trace *const *rounds, size_t count)
{
    double most = NAN;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, rounds[i]->others_share);
    }
    return most;
}

static void merge_period(const struct sc_trace *const *rounds, size_t count, double *scratch,
                         struct sc_trace *out, double *spread)
{
    for (size_t i = 0; i < count; i++) {
        scratch[i] = rounds[i]->period_us;
    }
    out->period_us = sc_fit_quantile(scratch, count, 0.5); /* sorts them */
    *spread = out->period_us > 0 ? (scratch[count - 1] - scratch[0]) / out->period_us : 0;
}

enum sc_status sc_rounds_merge(const struct sc_trace *const *rounds, size_t count,
                               struct sc_trace *out, double *spread, struct sc_error *err)
{
    struct sc_trace merged;
    SC_TRY(check(rounds, count, err));
    double *scratch = malloc(count * sizeof(*scratch));
    if (scratch == NULL) {
        return sc_fail_memory(err, count * sizeof(*scratch));
    }
    copy_header(rounds[0], &merged);
    merged.others_share = most_others(rounds, count);
    merge_period(rounds, count, scratch, &merged, spread);
    enum sc_status status = copy_names(rounds[0], &merged, err);
    for (size_t i = 0; status == SC_OK && i < rounds[0]->rows.count; i++) {
        if (rounds[0]->rows.items[i].rank < 0) {
            status = merge_row(rounds, count, i, scratch, &merged, err);
        }
    }
    free(scratch);
    if (status != SC_OK) {
        sc_trace_free(&merged);
        return status;
    }
    *out = merged;
    return SC_OK;
}
