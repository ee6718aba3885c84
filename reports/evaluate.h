/*
 * How well parameters predict text they were not trained on: the loss over the held-out part of a
 * token file. It is a run of the plan's own step program on those tokens, with a learning rate of
 * zero and without dropout, so that nothing changes.
 */
#ifndef STEPCAST_REPORTS_EVALUATE_H
#define STEPCAST_REPORTS_EVALUATE_H

#include "base/status.h"
#include "exec/data.h"
#include "exec/launch.h"
#include "plans/plan.h"

struct sc_evaluation {
    bool root;              /* false on processes other than 0: nothing else is set */
    int64_t windows;        /* of sequence_length tokens, side by side in the held-out part */
    double loss;            /* mean over their tokens, nats */
    double unigram_entropy; /* of a model that knows how often each token occurs and nothing else */
};

/* Evaluates options->initial_file (drawn parameters without one) on as many whole global batches as
 * the held-out part has, at most `most_steps` (0: all). SC_BAD_INPUT when it has not one. With MPI,
 * called by all processes. */
enum sc_status sc_evaluate(const struct sc_plan *plan, const struct sc_run_options *options,
                           const struct sc_data *data, int64_t most_steps,
                           struct sc_evaluation *out, struct sc_error *err);

#endif
