/* The loss over held-out tokens. */
#include "reports/evaluate.h"

#include <inttypes.h>
#include <string.h>

struct source {
    const struct sc_data *data;
    int64_t global_batch, windows;
};

/* A sc_batch_source: sequence s of step k is window k * global_batch + s. */
static enum sc_status next_windows(void *context, int64_t step, int64_t sequence, int64_t batch,
                                   int64_t length, int32_t *index, int32_t *target,
                                   struct sc_error *err)
{
    const struct source *source = context;
    for (int64_t i = 0; i < batch; i++) {
        int64_t window = (step * source->global_batch + sequence + i) % source->windows;
        SC_TRY(sc_data_evaluation(source->data, window, length, index + i * length,
                                  target + i * length, err));
    }
    return SC_OK;
}

static void freeze(const struct sc_plan *plan, struct sc_plan *out)
{
    *out = *plan;
    out->optimizer.learning_rate = out->optimizer.minimum_learning_rate = 0;
    out->optimizer.schedule = SC_SCHEDULE_CONSTANT;
    out->optimizer.warmup_steps = out->optimizer.decay_steps = 0;
    out->dropout.hidden = out->dropout.attention = 0;
}

enum sc_status sc_evaluate(const struct sc_plan *plan, const struct sc_run_options *options,
                           const struct sc_data *data, int64_t most_steps,
                           struct sc_evaluation *out, struct sc_error *err)
{
    int64_t windows = sc_data_evaluation_windows(data, plan->batch.sequence_length);
    int64_t steps = windows / plan->batch.global_batch;
    if (steps == 0) {
        return sc_fail(err, SC_BAD_INPUT,
                       "held-out tokens: found %" PRId64 " windows of %" PRId64
                       " tokens, expected at least batch.global_batch = %" PRId64,
                       windows, plan->batch.sequence_length, plan->batch.global_batch);
    }
    struct sc_evaluation found = {0};
    struct sc_plan frozen;
    struct sc_run_options quiet = *options;
    struct sc_run_result result = {0};
    struct source source = {data, plan->batch.global_batch, windows};
    freeze(plan, &frozen);
    quiet.warmup = 0;
    quiet.steps = most_steps > 0 && most_steps < steps ? most_steps : steps;
    quiet.trace = false;
    quiet.save_file = NULL;
    quiet.data = (struct sc_batch_source){next_windows, &source};
    SC_TRY(sc_data_unigram_entropy(data, &found.unigram_entropy, err));
    SC_TRY(sc_run_plan(&frozen, &quiet, &result, err));
    found.root = result.root;
    found.windows = quiet.steps * plan->batch.global_batch;
    for (int64_t i = 0; result.root && result.has_losses && i < quiet.steps; i++) {
        found.loss += result.losses[i] / (double)quiet.steps;
    }
    sc_run_result_free(&result);
    *out = found;
    return SC_OK;
}
