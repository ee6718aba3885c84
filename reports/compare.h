/*
 * Forecast against measurement: pairs of traces, compared by step time, by kind and, where both
 * come from one program (equal hashes), operation by operation.
 *
 * error = predicted / measured - 1. An operation's time is end - start; a collective's is
 * end - transfer, so that ranks that arrive late do not count as transfer: what they wait
 * (transfer - start) is the skew, apart. Sums by kind are the mean over ranks: a class counts by
 * its share of the ranks. Rows of single ranks are not compared.
 *
 * The first trace of a pair takes the place of the forecast, the second of the measurement,
 * whatever they are: two forecasts compare as well.
 */
#ifndef STEPCAST_REPORTS_COMPARE_H
#define STEPCAST_REPORTS_COMPARE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"
#include "plans/op.h"
#include "plans/trace.h"

struct sc_compared_plan {
    char plan[SC_NAME_SIZE];
    double predicted_s, measured_s; /* step time */
    double error;                   /* NAN when nothing was measured */
    bool joined;                    /* compared operation by operation */
};

struct sc_compared_kind {
    size_t count;                   /* operations: pairs where joined, else of the first trace */
    double predicted_s, measured_s; /* of a step, summed over plans */
    double error;                   /* of the sums; NAN when nothing was measured */
    double median_abs_error;        /* over joined operations; NAN without */
    double skew_s;                  /* measured, collectives */
    SC_ARRAY(double) abs_errors;    /* joined operations */
};

/* One joined operation, for the list of the largest differences. */
struct sc_compared_operation {
    const char *plan, *label; /* in the comparison's arena */
    uint8_t kind;
    uint32_t operation;
    double predicted_s, measured_s;
};

enum { SC_COMPARED_WORST = 10 };

struct sc_comparison {
    SC_ARRAY(struct sc_compared_plan) plans;
    struct sc_compared_kind kinds[SC_OP_KIND_COUNT];
    /* Largest |predicted - measured| first. */
    struct sc_compared_operation worst[SC_COMPARED_WORST];
    size_t worst_count;
    SC_ARRAY(const char *) notes;           /* what a reader must know, one sentence each */
    double median_abs_error, max_abs_error; /* over plans; NAN when nothing was measured */
    /* Measured time of the plan forecast fastest / measured fastest; NAN likewise. */
    double regret;
    struct sc_arena arena;
};

void sc_comparison_init(struct sc_comparison *comparison);
void sc_comparison_free(struct sc_comparison *comparison);
/* Adds a pair; the traces may be freed afterwards. */
enum sc_status sc_comparison_add(struct sc_comparison *comparison, const struct sc_trace *predicted,
                                 const struct sc_trace *measured, struct sc_error *err);
/* Fills medians, maxima and regret; call it after the last pair. */
void sc_comparison_finish(struct sc_comparison *comparison);

/* {rows[], median_abs_error, max_abs_error, by_kind{}, regret, worst[], notes[]}; what is not known
 * is null. The caller deletes it; NULL when out of memory. */
cJSON *sc_comparison_to_json(const struct sc_comparison *comparison);
/* The same for people. */
enum sc_status sc_comparison_print(const struct sc_comparison *comparison, FILE *stream,
                                   struct sc_error *err);
/* The table by kind (one plan) or by plan (several) as CSV. */
enum sc_status sc_comparison_print_csv(const struct sc_comparison *comparison, FILE *stream,
                                       struct sc_error *err);

#endif
