/* stepcast run: a plan for real. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "exec/check.h"
#include "exec/data.h"
#include "exec/launch.h"
#include "exec/process.h"
#include "reports/chrome_trace.h"
#include "reports/evaluate.h"
#include "reports/run_report.h"

#define STEPS_MOST 1000000000

static const struct cli_option OPTIONS[] = {
    CLI_ASSIGNMENT("Plan", "--set", "replace a value of the plan"),
    CLI_WHOLE("Training", "--steps", "N", steps, 1, STEPS_MOST, "measured steps (5)"),
    CLI_WHOLE("Training", "--warmup", "N", warmup, 0, STEPS_MOST, "steps before them (2)"),
    CLI_TEXT("Training", "--data", "FILE", data,
             "tokens: a file in llm.c's layout, or any file as bytes; else drawn"),
    CLI_TEXT("Training", "--init", "FILE", init, "first parameters (safetensors); else drawn"),
    CLI_TEXT("Training", "--save", "FILE", save, "parameters after the last step (safetensors)"),
    CLI_FLAG("Training", "--evaluate", evaluate,
             "train nothing: the loss over the last tenth of --data, which training never\n"
             "reads (over --steps batches; all by default)"),
    CLI_TEXT("Machine", "--hw", "FILE", hardware,
             "the profile whose forecasts the run is compared with (the plan's): a warning\n"
             "where it was measured on another machine"),
    CLI_TEXT("Machine", "--backend", "NAME", backend, "what runs it (host)"),
    CLI_TEXT("Machine", "--transport", "NAME", transport,
             "how ranks talk: threads (of one process; the default), mpi, or sockets:\n"
             "processes, which mpirun starts (not needed under mpirun or srun)"),
    CLI_FLAG("Machine", "--mpi", mpi, "short for --transport mpi"),
    CLI_WHOLE("Machine", "--cores", "N", cores, 1, 1 << 16, "cores to use (all there are)"),
    CLI_FLAG("Checks", "--check", check,
             "compare losses and gradients with the same training on one rank; exit\n"
             "code 1 where they differ by more than another order of sums explains"),
    {"Checks", "--chaos", "SEED",
     "another order, by chance, of what the plan leaves open; a seed repeats it", cli_set_whole,
     offsetof(struct cli_settings, chaos_seed), 0, INT64_MAX, offsetof(struct cli_settings, chaos)},
    CLI_FLAG("Checks", "--poison", poison,
             "run serially and poison what an operation does not name"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else"),
    CLI_TEXT("Output", "--trace", "FILE", trace,
             "when every operation started and ended (for compare)"),
    CLI_FLAG("Output", "--trace-ranks", trace_ranks, "with a row for every rank as well"),
    CLI_TEXT("Output", "--timeline", "FILE", timeline,
             "the trace for a viewer (chrome://tracing, ui.perfetto.dev)"),
    CLI_HELP,
    CLI_END,
};

static enum sc_status choose_transport(const struct cli_settings *settings,
                                       enum sc_run_transport *out, struct sc_error *err)
{
    bool processes = settings->mpi || sc_launched_by_mpi();
    *out = processes ? SC_TRANSPORT_MPI : SC_TRANSPORT_THREADS;
    if (settings->transport != NULL) {
        SC_TRY(sc_run_transport_find(settings->transport, "--transport", out, err));
    }
    if (processes && *out == SC_TRANSPORT_THREADS) {
        return sc_fail(err, SC_USAGE, "--transport threads: the ranks are processes of MPI here");
    }
    if (settings->mpi && *out != SC_TRANSPORT_MPI) {
        return sc_fail(err, SC_USAGE, "--mpi: found --transport %s as well, expected one of them",
                       settings->transport);
    }
    return SC_OK;
}

static enum sc_status make_options(const struct cli_settings *settings, struct sc_data *data,
                                   struct sc_run_options *out, struct sc_error *err)
{
    sc_run_options_neutral(out);
    SC_TRY(choose_transport(settings, &out->transport, err));
    out->steps = settings->steps > 0 ? settings->steps : out->steps;
    out->warmup = settings->warmup;
    out->backend = settings->backend;
    out->cores = settings->cores;
    out->chaos = settings->chaos;
    out->chaos_seed = (uint64_t)settings->chaos_seed;
    out->poison = settings->poison;
    out->trace = settings->trace != NULL || settings->timeline != NULL;
    out->trace_ranks = settings->trace_ranks;
    out->initial_file = settings->init;
    out->save_file = settings->save;
    if (data != NULL) {
        out->data = (struct sc_batch_source){sc_data_next, data};
    }
    return SC_OK;
}

static enum sc_status write_traces(const struct cli_settings *settings,
                                   const struct sc_run_result *result, struct sc_error *err)
{
    const struct sc_trace *trace = &result->trace;
    if (settings->trace != NULL) {
        SC_TRY(sc_trace_write(trace, settings->trace, err));
    }
    return settings->timeline != NULL ? sc_chrome_trace_write(&trace, 1, settings->timeline, err)
                                      : SC_OK;
}

static enum sc_status check_losses(const struct sc_plan *plan, const struct sc_run_result *result,
                                   struct sc_error *err)
{
    for (int64_t i = 0; result->has_losses && i < result->warmup + result->steps; i++) {
        if (!isfinite(result->losses[i])) {
            return sc_fail(err, SC_NO, "%s: the loss is not a number from step %" PRId64 " on",
                           plan->name, i + 1);
        }
    }
    return SC_OK;
}

/* A run reads no profile: a setting of one would change nothing. */
static enum sc_status refuse_hardware(const struct cli_settings *settings, struct sc_error *err)
{
    for (size_t i = 0; i < settings->set.count; i++) {
        if (strncmp(settings->set.items[i], "hw.", 3) == 0) {
            return sc_fail(err, SC_USAGE,
                           "--set %s: found a number of a machine, expected one of "
                           "the plan (a run takes the machine as it is)",
                           settings->set.items[i]);
        }
    }
    return SC_OK;
}

/* What the run may be compared with. A profile that was asked for must be there; the one that the
 * plan names need not be: the run itself takes the machine as it is. */
static enum sc_status load_hardware(const struct cli_settings *settings, const struct sc_plan *plan,
                                    struct sc_hardware *out, bool *have, struct sc_error *err)
{
    struct sc_error ignored = SC_ERROR_INIT;
    const char *name = settings->hardware != NULL ? settings->hardware : plan->hardware.profile;
    enum sc_status status =
        sc_hardware_load(name, NULL, NULL, 0, out, settings->hardware != NULL ? err : &ignored);
    *have = status == SC_OK;
    return settings->hardware != NULL ? status : SC_OK;
}

static enum sc_status print(const struct cli_settings *settings, const struct sc_plan *plan,
                            const struct sc_run_result *result, const struct sc_check_result *check,
                            struct sc_error *err)
{
    struct sc_hardware hardware;
    bool have = false;
    SC_TRY(load_hardware(settings, plan, &hardware, &have, err));
    const struct sc_run_context context = {plan, check, have ? &hardware : NULL};
    enum sc_status status = SC_OK;
    if (settings->json) {
        status = cli_print_json(sc_run_result_to_json(&context, result), err);
    } else {
        sc_run_result_print(&context, result, stdout);
    }
    if (have) {
        sc_hardware_free(&hardware);
    }
    return status;
}

/* The one process that has the result says what was found. */
static enum sc_status report(const struct cli_settings *settings, const struct sc_plan *plan,
                             const struct sc_run_result *result,
                             const struct sc_check_result *check, struct sc_error *err)
{
    if (result->has_trace) {
        SC_TRY(write_traces(settings, result, err));
    }
    SC_TRY(print(settings, plan, result, check, err));
    if (check != NULL && !check->equal) {
        return sc_fail(err, SC_NO, "%s: gradients or losses differ from those of one rank",
                       plan->name);
    }
    return check_losses(plan, result, err);
}

/* The check is a run of its own, beside that of one rank: all processes take part. */
static enum sc_status check_plan(const struct sc_plan *plan, const struct sc_run_options *options,
                                 struct sc_check_result *out, struct sc_error *err)
{
    struct sc_run_options quiet = *options;
    quiet.trace = false;
    quiet.save_file = NULL;
    return sc_check(plan, &quiet, out, err);
}

/* ---- evaluation -------------------------------------------------------------------------- */

static enum sc_status print_evaluation(const struct cli_settings *settings,
                                       const struct sc_plan *plan,
                                       const struct sc_evaluation *found, struct sc_error *err)
{
    if (!settings->json) {
        printf("%s: loss %.4f over %" PRId64 " held-out windows of %" PRId64
               " tokens (perplexity %.2f); single tokens' entropy %.4f\n",
               plan->name, found->loss, found->windows, plan->batch.sequence_length,
               exp(found->loss), found->unigram_entropy);
        return SC_OK;
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "stepcast.result/1");
    cJSON_AddStringToObject(root, "command", "evaluate");
    cJSON_AddStringToObject(root, "plan", plan->name);
    cJSON_AddNumberToObject(root, "loss", found->loss);
    cJSON_AddNumberToObject(root, "windows", (double)found->windows);
    cJSON_AddNumberToObject(root, "unigram_entropy", found->unigram_entropy);
    return cli_print_json(root, err);
}

static enum sc_status evaluate(const struct cli_settings *settings, const struct sc_plan *plan,
                               struct sc_data *data, struct sc_error *err)
{
    struct sc_run_options options;
    struct sc_evaluation found;
    if (data == NULL) {
        return sc_fail(err, SC_USAGE, "--evaluate: found no --data, expected a file of tokens");
    }
    SC_TRY(make_options(settings, data, &options, err));
    SC_TRY(sc_evaluate(plan, &options, data, settings->steps, &found, err));
    return found.root ? print_evaluation(settings, plan, &found, err) : SC_OK;
}

/* ---- the command ------------------------------------------------------------------------- */

static enum sc_status train(const struct cli_settings *settings, const struct sc_plan *plan,
                            struct sc_data *data, struct sc_error *err)
{
    struct sc_run_options options;
    struct sc_run_result result = {0};
    struct sc_check_result check = {0};
    SC_TRY(make_options(settings, data, &options, err));
    SC_TRY(sc_run_plan(plan, &options, &result, err));
    enum sc_status status = settings->check ? check_plan(plan, &options, &check, err) : SC_OK;
    if (status == SC_OK && result.root) {
        status = report(settings, plan, &result, settings->check ? &check : NULL, err);
    }
    sc_run_result_free(&result);
    return status;
}

/* What cannot be read or written is said before the training, not after it. */
static enum sc_status check_files(const struct cli_settings *settings, const struct sc_plan *plan,
                                  struct sc_error *err)
{
    struct sc_hardware hardware;
    bool have = false;
    const char *const files[] = {settings->save, settings->trace, settings->timeline};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        if (files[i] != NULL) {
            SC_TRY(sc_file_check(files[i], err));
        }
    }
    SC_TRY(load_hardware(settings, plan, &hardware, &have, err));
    if (have) {
        sc_hardware_free(&hardware);
    }
    return SC_OK;
}

static enum sc_status load_and_train(const struct cli_settings *settings,
                                     struct sc_process *process, struct sc_error *err)
{
    struct sc_plan plan;
    struct sc_data *data = NULL;
    enum sc_run_transport transport = SC_TRANSPORT_THREADS;
    enum sc_status status = refuse_hardware(settings, err);
    if (status == SC_OK) {
        status = choose_transport(settings, &transport, err);
    }
    if (status == SC_OK) {
        status = cli_load_plan(settings, &plan, err);
    }
    if (status == SC_OK && settings->data != NULL) {
        status = sc_data_open(settings->data, plan.model.vocab_size, plan.seed, &data, err);
    }
    if (status == SC_OK && process->index == 0) {
        status = check_files(settings, &plan, err);
    }
    /* A file that one machine lacks ends the run on all. */
    status = sc_process_agree(process, status, err);
    if (status == SC_OK && transport != SC_TRANSPORT_THREADS && !sc_launched_by_mpi()) {
        status = sc_launch_mpirun(sc_plan_ranks(&plan), settings->arguments, err);
    } else if (status == SC_OK) {
        status = (settings->evaluate ? evaluate : train)(settings, &plan, data, err);
    }
    sc_data_close(&data);
    return status;
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    struct sc_process process;
    sc_process_alone(&process);
    if (sc_launched_by_mpi()) {
        SC_TRY(sc_process_mpi(&process, err));
    }
    enum sc_status status = load_and_train(settings, &process, err);
    /* All processes know of a failure, one says it: before the end, where they wait for each other,
     * since mpirun kills the rest when the first has gone. */
    if (status != SC_OK && sc_launched_by_mpi()) {
        if (process.index == 0) {
            fprintf(stderr, "%s\n", err->text);
        }
        err->text[0] = '\0';
    }
    sc_launch_end();
    return status;
}

const struct cli_command cli_run = {
    .name = "run",
    .operands = "PLAN",
    .summary = "run a plan for real and measure it",
    .description =
        "Runs the same step program that `sim` forecasts, on this machine: every rank a thread of "
        "this\nprocess, or a process under mpirun or srun. Step time is the median of the measured "
        "steps.",
    .examples = "  stepcast run host_tiny-gpt_2ranks_tp2 --steps 20 --trace measured.json\n"
                "  stepcast run plan.json --data input.txt --steps 200 --save model.safetensors\n"
                "  stepcast run plan.json --data input.txt --init model.safetensors --evaluate\n"
                "  mpirun -n 4 stepcast run host_tiny-gpt_4ranks_tp2_dp2 --check\n",
    .operands_least = 1,
    .operands_most = 1,
    .options = OPTIONS,
    .run = run,
};
