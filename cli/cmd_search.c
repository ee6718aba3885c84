/* stepcast search: the plans that make a step fastest. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "reports/table.h"
#include "sim/search.h"

#define COUNT_MOST (INT64_C(1) << 30)

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("What to train, on what", "--model", "NAME", model,
             "a shipped name or a file (needed)"),
    CLI_TEXT("What to train, on what", "--hw", "NAME", hardware,
             "a shipped profile or a file (needed)"),
    CLI_WHOLE("What to train, on what", "--gpus", "N", devices, 1, COUNT_MOST,
              "devices, or ranks on cores (needed)"),
    CLI_WHOLE("What to train, on what", "--global-batch", "N", global_batch, 1, COUNT_MOST,
              "sequences of a step (needed)"),
    CLI_WHOLE("What to train, on what", "--sequence-length", "N", sequence_length, 1, COUNT_MOST,
              "tokens of a sequence (the model's longest)"),
    CLI_ASSIGNMENT("What to train, on what", "--set",
                   "replace a value of the profile: --set hw.PATH=VALUE"),
    CLI_WHOLE("Output", "--top", "N", top, 1, COUNT_MOST, "how many plans to keep (10)"),
    CLI_TEXT("Output", "--out", "DIR", out, "where plan files go (found-plans)"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else"),
    CLI_HELP,
    CLI_END,
};

static enum sc_status need(bool there, const char *option, struct sc_error *err)
{
    return there ? SC_OK
                 : sc_fail(err, SC_USAGE, "stepcast search: found no %s, expected one", option);
}

static enum sc_status check_settings(const struct cli_settings *settings, struct sc_error *err)
{
    SC_TRY(need(settings->model != NULL, "--model", err));
    SC_TRY(need(settings->hardware != NULL, "--hw", err));
    SC_TRY(need(settings->devices > 0, "--gpus", err));
    SC_TRY(need(settings->global_batch > 0, "--global-batch", err));
    for (size_t i = 0; i < settings->set.count; i++) {
        if (strncmp(settings->set.items[i], "hw.", 3) != 0) {
            return sc_fail(err, SC_USAGE, "--set %s: expected hw.PATH=VALUE (plans are searched)",
                           settings->set.items[i]);
        }
    }
    return SC_OK;
}

/* DIR/RANK_NAME.json, so that a listing shows the fastest first. */
static enum sc_status plan_file(const char *directory, const struct sc_search_result *result,
                                size_t index, char out[PATH_MAX], struct sc_error *err)
{
    const char *name = result->plans.items[index].plan.name;
    int digits = 2;
    for (size_t count = result->plans.count; count > 99; count /= 10) {
        digits++;
    }
    int length = snprintf(out, PATH_MAX, "%s/%0*zu_%s.json", directory, digits, index + 1, name);
    return length > 0 && length < PATH_MAX
               ? SC_OK
               : sc_fail(err, SC_USAGE, "--out: the path of %s.json is too long", name);
}

static enum sc_status write_plans(const char *directory, const struct sc_search_result *result,
                                  struct sc_error *err)
{
    char file[PATH_MAX];
    SC_TRY(sc_make_directory(directory, err));
    for (size_t i = 0; i < result->plans.count; i++) {
        SC_TRY(plan_file(directory, result, i, file, err));
        SC_TRY(sc_plan_write(&result->plans.items[i].plan, file, err));
    }
    return SC_OK;
}

static enum sc_status print_json(const char *directory, const struct sc_search_result *result,
                                 struct sc_error *err)
{
    char file[PATH_MAX];
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "stepcast.result/1");
    cJSON_AddStringToObject(root, "command", "search");
    cJSON_AddNumberToObject(root, "considered", (double)result->considered);
    cJSON_AddNumberToObject(root, "pruned", (double)result->pruned);
    cJSON_AddNumberToObject(root, "simulated", (double)result->simulated);
    cJSON_AddNumberToObject(root, "seconds", result->seconds);
    cJSON *plans = cJSON_AddArrayToObject(root, "plans");
    for (size_t i = 0; i < result->plans.count; i++) {
        const struct sc_found *found = &result->plans.items[i];
        enum sc_status status = plan_file(directory, result, i, file, err);
        if (status != SC_OK) {
            cJSON_Delete(root);
            return status;
        }
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "file", file);
        cJSON_AddNumberToObject(row, "step_time_s", found->step_time_s);
        cJSON_AddNumberToObject(row, "step_time_low_s", found->step_time_low_s);
        cJSON_AddNumberToObject(row, "step_time_high_s", found->step_time_high_s);
        cJSON_AddNumberToObject(row, "tokens_per_s", found->tokens_per_s);
        cJSON_AddNumberToObject(row, "mfu", found->mfu);
        cJSON_AddNumberToObject(row, "peak_bytes", (double)found->peak_bytes);
        cJSON_AddNumberToObject(row, "used_bytes", (double)found->used_bytes);
        cJSON_AddItemToArray(plans, row);
    }
    return cli_print_json(root, err);
}

static enum sc_status print_text(const char *directory, const struct sc_search_result *result,
                                 struct sc_error *err)
{
    static const struct sc_table_column columns[] = {
        {"plan", SC_LEFT},   {"step time", SC_RIGHT}, {"tokens/s", SC_RIGHT},
        {"MFU %", SC_RIGHT}, {"memory", SC_RIGHT},    {NULL, SC_LEFT}};
    struct sc_table table;
    char text[64];
    sc_table_init(&table, columns);
    for (size_t i = 0; i < result->plans.count; i++) {
        const struct sc_found *found = &result->plans.items[i];
        sc_table_cell(&table, "%s", found->plan.name);
        sc_table_cell(&table, "%s", sc_print_seconds(found->step_time_s, text, sizeof(text)));
        sc_table_cell(&table, "%.0f", found->tokens_per_s);
        sc_table_cell(&table, "%.1f", found->mfu * 100);
        sc_table_cell(&table, "%s", sc_print_bytes((double)found->used_bytes, text, sizeof(text)));
    }
    enum sc_status status = sc_table_print(&table, 0, stdout, err);
    sc_table_free(&table);
    printf("\n%" PRId64 " plans considered, %" PRId64 " invalid or too large, %" PRId64
           " simulated in %.1f s; files in %s\n",
           result->considered, result->pruned, result->simulated, result->seconds, directory);
    return status;
}

static enum sc_status report(const struct cli_settings *settings,
                             const struct sc_search_result *result, struct sc_error *err)
{
    const char *directory = settings->out != NULL ? settings->out : "found-plans";
    if (result->plans.count > 0) {
        SC_TRY(write_plans(directory, result, err));
    }
    if (settings->json) {
        SC_TRY(print_json(directory, result, err));
    } else if (result->plans.count > 0) {
        SC_TRY(print_text(directory, result, err));
    }
    return result->plans.count > 0
               ? SC_OK
               : sc_fail(err, SC_NO, "no plan fits (%" PRId64 " considered); the first refusal: %s",
                         result->considered, result->refusal);
}

static enum sc_status search(const struct cli_settings *settings, const struct sc_model *model,
                             const struct sc_hardware *hardware, struct sc_error *err)
{
    struct sc_plan base;
    struct sc_search_result result = {0};
    struct cli_progress progress;
    int64_t length =
        settings->sequence_length > 0 ? settings->sequence_length : model->max_positions;
    sc_search_base(model, hardware, settings->global_batch, length, &base);
    snprintf(base.hardware.profile, sizeof(base.hardware.profile), "%s", settings->hardware);
    struct sc_search_options options = {.base = &base,
                                        .hardware = hardware,
                                        .devices = settings->devices,
                                        .top = settings->top,
                                        .progress = cli_progress_line,
                                        .context = &progress};
    cli_progress_begin(&progress);
    enum sc_status status = sc_search(&options, &result, err);
    cli_progress_end(&progress);
    if (status == SC_OK) {
        status = report(settings, &result, err);
        sc_search_result_free(&result);
    }
    return status;
}

/* What one plan's program gives back the next one takes, instead of fresh pages each time: a tenth
 * of a search. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    struct sc_model model;
    struct sc_hardware hardware;
    keep_memory();
    SC_TRY(check_settings(settings, err));
    SC_TRY(sc_model_load(settings->model, NULL, &model, err));
    SC_TRY(sc_hardware_load(settings->hardware, NULL, settings->set.items, (int)settings->set.count,
                            &hardware, err));
    enum sc_status status = search(settings, &model, &hardware, err);
    sc_hardware_free(&hardware);
    return status;
}

const struct cli_command cli_search = {
    .name = "search",
    .operands = "",
    .summary = "the fastest plans that fit, as plan files",
    .description =
        "Tries every combination of tensor and data parallelism, micro-batch, ZeRO stage, Domino,\n"
        "recomputation and attention kernel, and ranks those that fit by the forecast step time. "
        "The best\nare written as plan files. Exit code 1 when nothing fits.",
    .examples = "  stepcast search --model gpt3-13b --hw dgx-h100 --gpus 16 --global-batch 64\n",
    .options = OPTIONS,
    .run = run,
};
