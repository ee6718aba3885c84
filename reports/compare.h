/*
 * Forecast against measurement: pairs of traces, compared by step time, by kind and, where both
 * come from one program (equal hashes), operation by operation. A plan measured several times
 * (rounds) counts with the median of its rounds, step time and operations alike.
 *
 * error = predicted / measured - 1. An operation's time is end - start; a collective's is
 * end - transfer, so that ranks that arrive late do not count as transfer: what they wait
 * (transfer - start) is the skew, apart. Sums by kind are the mean over ranks: a class counts by
 * its share of the ranks. Rows of single ranks are not compared.
 *
 * The first trace of a pair takes the place of the forecast, the second of the measurement,
 * whatever they are: two forecasts compare as well.
 *
 * Plans of one group answer one question (same model, batch and sequence), so that one of them is
 * the best: regret and the order of step times are asked within a group. Without groups all plans
 * are one.
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
#include "reports/compare_groups.h"

struct sc_compared_plan {
    char plan[SC_NAME_SIZE];
    const char *group, *transport;  /* in the comparison's arena; NULL: not known */
    double predicted_s, measured_s; /* step time */
    double low_s, high_s;           /* the forecast's interval; NAN without */
    double error;                   /* NAN when nothing was measured */
    size_t rounds;                  /* measurements; measured_s is their median */
    double spread;                  /* (slowest - fastest round) / median; NAN for one round */
    bool joined;                    /* compared operation by operation */
};

/* Plans that compete. */
struct sc_compared_group {
    const char *name;               /* NULL: all plans */
    size_t plans;                   /* measured ones */
    const char *forecast, *fastest; /* names of the plans forecast and measured fastest */
    /* Measured time of the plan forecast fastest / measured fastest; NAN when nothing was measured.
     */
    double regret;
    /* Pairs whose measured times differ by more than SC_GAP, and those among them that the forecast
     * puts in the other order or in none. */
    size_t gaps, wrong;
};

/* A pair in the wrong order. */
struct sc_wrong_gap {
    const char *group, *faster, *slower; /* as measured */
    double measured, predicted;          /* time of the slower / of the faster - 1 */
};

#define SC_GAP 0.05

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
    SC_ARRAY(struct sc_compared_group) groups; /* in the order of the plans */
    SC_ARRAY(struct sc_wrong_gap) wrong_gaps;
    struct sc_compared_kind kinds[SC_OP_KIND_COUNT];
    /* Largest |predicted - measured| first. */
    struct sc_compared_operation worst[SC_COMPARED_WORST];
    size_t worst_count;
    SC_ARRAY(const char *) notes; /* what a reader must know, one sentence each */
    /* Of |error| over plans (the 90th percentile linear between plans); NAN when nothing was
     * measured. */
    double median_abs_error, p90_abs_error, max_abs_error;
    double regret;   /* the largest of any group; NAN likewise */
    bool grouped;    /* sc_comparison_label was called */
    double coverage; /* share of the plans with an interval that holds the measurement; NAN: none */
    struct sc_arena arena;
};

void sc_comparison_init(struct sc_comparison *comparison);
void sc_comparison_free(struct sc_comparison *comparison);
/* Adds a pair; the traces may be freed afterwards. */
enum sc_status sc_comparison_add(struct sc_comparison *comparison, const struct sc_trace *predicted,
                                 const struct sc_trace *measured, struct sc_error *err);
/* The same with `count` >= 1 measurements of one program. SC_BAD_INPUT where their programs differ.
 */
enum sc_status sc_comparison_add_rounds(struct sc_comparison *comparison,
                                        const struct sc_trace *predicted,
                                        const struct sc_trace *const *measured, size_t count,
                                        struct sc_error *err);
/* Says which plans belong together. SC_BAD_INPUT for a plan that the list does not name. */
enum sc_status sc_comparison_label(struct sc_comparison *comparison,
                                   const struct sc_plan_groups *groups, struct sc_error *err);
/* Fills statistics and groups; call it after the last pair. */
enum sc_status sc_comparison_finish(struct sc_comparison *comparison, struct sc_error *err);

/* Whether the forecast's interval holds the measurement; false without an interval. */
bool sc_compared_inside(const struct sc_compared_plan *plan);

/* {rows[], median_abs_error, p90_abs_error, max_abs_error, regret, gaps, gaps_wrong[], coverage,
 * by_kind{}, worst[], notes[]}; what is not known is null. regret is a number, with groups an
 * object {group: regret}. The caller deletes it; NULL when out of memory. */
cJSON *sc_comparison_to_json(const struct sc_comparison *comparison);
/* The same for people. */
enum sc_status sc_comparison_print(const struct sc_comparison *comparison, FILE *stream,
                                   struct sc_error *err);
/* The table by kind (one plan) or by plan (several) as CSV. */
enum sc_status sc_comparison_print_csv(const struct sc_comparison *comparison, FILE *stream,
                                       struct sc_error *err);

#endif
