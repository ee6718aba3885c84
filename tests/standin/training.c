#include "tests/standin/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "exec/launch.h"
#include "plans/lower.h"

enum { DEVICES = 8, MOST_SETS = 6 };

static const struct {
    const char *name, *plan, *set[MOST_SETS];
} plans[SC_TRAINING_PLANS] = {
    [SC_TRAINING_GPT_TENSOR] = {"GPT, tensor parallel 2",
                                "host_tiny-gpt_2ranks_tp2",
                                {"dropout.hidden=0.1", "batch.global_batch=2"}},
    [SC_TRAINING_LLAMA_DATA] = {"Llama, data parallel 2",
                                "host_tiny-llama_2ranks_dp2",
                                {"batch.global_batch=4"}},
    [SC_TRAINING_GPT_DOMINO] = {"GPT, Domino on tensor parallel 2",
                                "host_tiny-gpt_2ranks_tp2_domino2",
                                {"batch.global_batch=4"}},
    [SC_TRAINING_GPT_ALL] = {"GPT, Domino, tensor parallel 2, data parallel 2, ZeRO-1",
                             "host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1",
                             {"zero.bucket_elements=4000", "batch.global_batch=8"}},
};

const char *sc_training_name(enum sc_training_plan plan)
{
    return plans[plan].name;
}

static void shrink(struct sc_model *model, int layers)
{
    bool grouped = model->key_value_heads < model->attention_heads;
    model->layers = layers;
    model->hidden_size = 32;
    model->attention_heads = 4;
    model->key_value_heads = grouped ? 2 : 4;
    model->head_size = 8;
    model->ffn_hidden_size = 64;
    model->vocab_size = 200; /* padded to 256: not all of it on the first of two ranks */
}

static enum sc_status make(enum sc_training_plan number, int layers, struct sc_program **out,
                           struct sc_error *err)
{
    static const uint64_t unlimited[SC_PLACE_COUNT];
    const char *set[MOST_SETS + 3] = {"attention.kernel=unfused", "batch.sequence_length=8",
                                      "batch.micro_batch=2"};
    int sets = 3;
    struct sc_plan plan;
    for (int i = 0; i < MOST_SETS && plans[number].set[i]; i++)
        set[sets++] = plans[number].set[i];
    SC_TRY(sc_plan_load(plans[number].plan, set, sets, &plan, err));
    shrink(&plan.model, layers);
    SC_TRY(sc_lower(&plan, out, err));
    return sc_program_prepare(*out, unlimited, true, err);
}

struct sc_program *sc_training_program(enum sc_training_plan plan, int layers)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    if (make(plan, layers, &program, &err) == SC_OK)
        return program;
    fprintf(stderr, "%s: %s\n", plans[plan].name, err.text);
    sc_program_destroy(&program);
    return NULL;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static const char saved[] = "parameters.safetensors";

/* Losses as they are and the file of parameters, byte for byte. */
static enum sc_status keep(const struct sc_run_result *result, struct sc_training *out,
                           struct sc_error *err)
{
    size_t steps = (size_t)result->steps, size = 0;
    char *file = NULL;
    SC_TRY(sc_file_read(saved, &file, &size, err));
    out->losses = steps;
    out->count = steps + size / sizeof(float);
    out->numbers = malloc(out->count * sizeof *out->numbers);
    if (!out->numbers)
        abort();
    for (size_t i = 0; i < steps; i++)
        out->numbers[i] = (float)result->losses[i];
    memcpy(out->numbers + steps, file, size / sizeof(float) * sizeof(float));
    free(file);
    return SC_OK;
}

/* Parameters are saved rather than kept by options.snapshot_step: that one watches every operation,
 * and so would make a device run them one by one. */
static void run(const struct sc_program *program, int64_t steps, const char *backend,
                struct sc_training *out)
{
    struct sc_run_options options;
    struct sc_run_result result;
    sc_run_options_neutral(&options);
    options.backend = backend;
    options.warmup = 0;
    options.steps = steps;
    options.save_file = saved;
    options.cores = program->mesh.ranks; /* one thread a rank: products in one piece */
    out->error = (struct sc_error)SC_ERROR_INIT;
    out->status = sc_run(program, &options, &result, &out->error);
    if (out->status != SC_OK)
        return;
    out->status = keep(&result, out, &out->error);
    sc_run_result_free(&result);
    remove(saved);
}

void sc_training_on_host(const struct sc_program *program, int64_t steps, struct sc_training *out)
{
    memset(out, 0, sizeof *out);
    run(program, steps, "host", out);
}

void sc_training_on_standin(const struct sc_program *program, int64_t steps,
                            const struct sc_standin_setup *setup, struct sc_training *out)
{
    struct sc_standin_setup mine = *setup;
    mine.devices = DEVICES;
    memset(out, 0, sizeof *out);
    sc_standin_begin(&mine);
    run(program, steps, "cuda", out);
    out->totals = sc_standin_totals();
    snprintf(out->complaint, sizeof out->complaint, "%s", sc_standin_complaint());
    snprintf(out->left, sizeof out->left, "%s", sc_standin_left());
    snprintf(out->failed, sizeof out->failed, "%s", sc_standin_failed());
    sc_standin_end();
}

void sc_training_free(struct sc_training *training)
{
    free(training->numbers);
    training->numbers = NULL;
}

/* ---- comparing ------------------------------------------------------------------------------- */

bool sc_training_equal(const struct sc_training *training, const struct sc_training *expected)
{
    return training->status == SC_OK && !training->complaint[0] && !training->left[0] &&
           training->totals.deadlocks == 0 && training->count == expected->count &&
           memcmp(training->numbers, expected->numbers, training->count * sizeof(float)) == 0;
}

static void print_difference(const struct sc_training *training, const struct sc_training *expected)
{
    size_t first = training->count;
    double largest = 0;
    for (size_t i = 0; i < training->count; i++) {
        double x = (double)training->numbers[i], y = (double)expected->numbers[i];
        if (!(x == y) && first == training->count)
            first = i;
        double apart = fabs(x - y);
        largest = apart > largest || isnan(apart) ? apart : largest;
    }
    fprintf(stderr, "from number %zu of %zu on (%.9g, expected %.9g), by at most %g\n", first,
            training->count, first < training->count ? (double)training->numbers[first] : 0,
            first < training->count ? (double)expected->numbers[first] : 0, largest);
}

void sc_training_print(const struct sc_training *training, const struct sc_training *expected)
{
    if (training->status != SC_OK)
        fprintf(stderr, "failed: %s\n", training->error.text);
    if (training->complaint[0])
        fprintf(stderr, "wrong use: %s\n", training->complaint);
    if (training->left[0])
        fprintf(stderr, "left: %s\n", training->left);
    if (training->status == SC_OK && training->count == expected->count)
        print_difference(training, expected);
}
