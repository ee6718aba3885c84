/* From time stamps of ranks to step times and trace rows. */
#ifndef STEPCAST_EXEC_MEASURE_H
#define STEPCAST_EXEC_MEASURE_H

#include "exec/backend.h"
#include "plans/trace.h"

/* What every rank recorded, clocks aligned. */
struct sc_measured {
    const struct sc_program *program;
    int64_t first_step, steps; /* measured: [first_step, first_step + steps) */
    int64_t traced_steps;      /* stamps of step s at (s % traced_steps) * ops of the class */
    double begin;              /* when the run began */
    double **step_ends;        /* [rank][step], from step 0 */
    struct sc_stamp **stamps;  /* [rank], NULL without a trace */
};

/* period_s [steps]: between the ends (mean over ranks) of the last operation in issue order. */
void sc_measure_periods(const struct sc_measured *measured, double *period_s);
/* Fills a trace that sc_trace_begin made: the traced step of median period, means over the ranks of
 * a class, p10 and p90 over ranks and traced steps. With `ranks` a row a rank behind them. */
enum sc_status sc_measure_trace(const struct sc_measured *measured, const double *period_s,
                                bool ranks, struct sc_trace *trace, struct sc_error *err);

#endif
