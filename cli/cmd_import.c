/* stepcast import: other programs' files. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/commands.h"
#include "model/architecture.h"
#include "model/nccl_tests_fit.h"
#include "plans/lower.h"
#include "reports/table.h"

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Output", "--out", "FILE", out,
             "write a file instead of printing: of hf, a model file\n"
             "for plans; of nccl-tests, what --json prints"),
    CLI_FLAG("Output", "--json", json, "of nccl-tests: JSON only"),
    CLI_HELP,
    CLI_END,
};

/* ---- hf ---- */

static enum sc_status read_model(const char *file, struct sc_model *model, struct sc_error *err)
{
    struct sc_json_doc doc;
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = sc_model_import_hf(&root, model, err);
    char left_out[256] = "";
    sc_model_import_notes(&root, left_out, sizeof(left_out));
    if (status == SC_OK && left_out[0] != '\0') {
        fprintf(stderr, "%s: Warning: the model does without %s\n", file, left_out);
    }
    sc_json_doc_free(&doc);
    return status;
}

/* A model's parameters are those of the tensors that its lowering makes. */
static enum sc_status count_parameters(const struct sc_model *model, double *out,
                                       struct sc_error *err)
{
    struct sc_plan plan;
    struct sc_program *program = NULL;
    sc_plan_neutral(&plan);
    plan.model = *model;
    plan.batch.global_batch = plan.batch.micro_batch = plan.batch.sequence_length = 1;
    SC_TRY(sc_lower(&plan, &program, err));
    *out = (double)sc_program_parameters(program);
    sc_program_destroy(&program);
    return SC_OK;
}

/* The model with its parameters, all of them active: no family with experts is lowered. */
static enum sc_status print_model(const struct sc_model *model, cJSON *object, struct sc_error *err)
{
    double parameters = 0;
    enum sc_status status = count_parameters(model, &parameters, err);
    if (status != SC_OK) {
        cJSON_Delete(object);
        return status;
    }
    cJSON_AddNumberToObject(object, "parameters", parameters);
    cJSON_AddNumberToObject(object, "active_parameters", parameters);
    return cli_print_json(object, err);
}

static enum sc_status import_hf(const struct cli_settings *settings, const char *file,
                                struct sc_error *err)
{
    struct sc_model model;
    SC_TRY(read_model(file, &model, err));
    cJSON *object = sc_model_to_json(&model);
    if (settings->out == NULL) {
        return print_model(&model, object, err);
    }
    enum sc_status status = sc_json_write(object, settings->out, err);
    cJSON_Delete(object);
    return status;
}

/* ---- nccl-tests ---- */

static const struct sc_table_column PIECE_COLUMNS[] = {
    {"below", SC_RIGHT}, {"latency", SC_RIGHT}, {"bus bandwidth", SC_RIGHT}, {NULL, SC_LEFT}};

static enum sc_status print_pieces(const struct sc_nccl_tests_figures *figures,
                                   struct sc_error *err)
{
    struct sc_table table;
    sc_table_init(&table, PIECE_COLUMNS);
    for (int i = 0; i < figures->piece_count; i++) {
        const struct sc_nccl_tests_piece *piece = &figures->pieces[i];
        char below[32] = "any size", latency[32];
        if (i + 1 < figures->piece_count) {
            sc_print_bytes(piece->maximum_bytes, below, sizeof(below));
        }
        sc_table_cell(&table, "%s", below);
        sc_table_cell(&table, "%s", sc_print_seconds(piece->latency_s, latency, sizeof(latency)));
        sc_table_cell(&table, "%.2f GB/s", piece->bus_bandwidth / SC_GIGA);
    }
    enum sc_status status = sc_table_print(&table, 2, stdout, err);
    sc_table_free(&table);
    return status;
}

static void print_ranks(const struct sc_nccl_tests_table *table)
{
    if (table->ranks > 0) {
        printf(", %lld ranks", (long long)table->ranks);
    }
    if (table->nodes > 0) {
        printf(" on %lld node%s", (long long)table->nodes, table->nodes == 1 ? "" : "s");
    }
}

static enum sc_status print_figures(const struct sc_nccl_tests_table *table, struct sc_error *err)
{
    struct sc_nccl_tests_figures figures;
    char least[32], most[32], peak[32];
    SC_TRY(sc_nccl_tests_fit(&table, 1, &figures, err));
    printf("%s", sc_nccl_tests_kinds[table->collective].name);
    print_ranks(table);
    printf(": %zu rows, %s to %s\n", table->rows.count,
           sc_print_bytes((double)figures.smallest_bytes, least, sizeof(least)),
           sc_print_bytes((double)figures.largest_bytes, most, sizeof(most)));
    SC_TRY(print_pieces(&figures, err));
    printf("peak bus bandwidth %.2f GB/s at %s\n", figures.peak_bus_bandwidth / SC_GIGA,
           sc_print_bytes((double)figures.peak_bytes, peak, sizeof(peak)));
    printf("off by %.1f %% (median), %.1f %% (nine of ten below), %.1f %% (worst) of %zu times\n",
           1e2 * figures.residuals.median, 1e2 * figures.residuals.p90,
           1e2 * figures.residuals.worst, figures.residuals.count);
    return SC_OK;
}

static void print_warnings(const struct sc_nccl_tests_table *table, const char *before,
                           FILE *stream)
{
    for (size_t i = 0; i < table->warnings.count; i++) {
        fprintf(stream, "%sWarning: %s\n", before, table->warnings.items[i]);
    }
}

static enum sc_status print_table(const struct sc_nccl_tests_table *table, const char *file,
                                  struct sc_error *err)
{
    printf("%s: line %lld: ", file, (long long)table->line);
    if (table->refused != NULL) {
        printf("%s\n\n", table->refused);
        return SC_OK;
    }
    SC_TRY(print_figures(table, err));
    print_warnings(table, "", stdout);
    printf("\n");
    return SC_OK;
}

static void print_fragment(const cJSON *fragment, const char *place)
{
    printf("for %s of a profile:\n", place);
    sc_json_print(fragment, stdout);
}

/* What a log says of one group goes beside what its level says of the others. */
static enum sc_status print_log(const struct sc_nccl_tests_log *log, const char *file,
                                const cJSON *root, struct sc_error *err)
{
    const cJSON *entry = NULL;
    for (size_t i = 0; i < log->tables.count; i++) {
        SC_TRY(print_table(&log->tables.items[i], file, err));
    }
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(root, "levels"))
    {
        const cJSON *variants = cJSON_GetObjectItemCaseSensitive(entry, "variants");
        const cJSON *level = cJSON_GetObjectItemCaseSensitive(entry, "level");
        print_fragment(variants != NULL ? variants : level, variants != NULL
                                                                ? "collectives.levels.NAME.variants"
                                                                : "collectives.levels.NAME");
    }
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(root, "links"))
    {
        print_fragment(cJSON_GetObjectItemCaseSensitive(entry, "link"), "links.NAME");
    }
    return SC_OK;
}

static enum sc_status write_log(const struct sc_nccl_tests_log *log, const char *file,
                                const cJSON *root, const char *out, struct sc_error *err)
{
    SC_TRY(sc_json_write(root, out, err));
    for (size_t i = 0; i < log->tables.count; i++) {
        char before[SC_ERROR_TEXT];
        snprintf(before, sizeof(before), "%s: line %lld: ", file,
                 (long long)log->tables.items[i].line);
        print_warnings(&log->tables.items[i], before, stderr);
    }
    return SC_OK;
}

static enum sc_status import_nccl_tests(const struct cli_settings *settings, const char *file,
                                        struct sc_error *err)
{
    struct sc_nccl_tests_log log;
    cJSON *root = NULL;
    SC_TRY(sc_nccl_tests_read(file, &log, err));
    enum sc_status status = sc_nccl_tests_to_json(&log, file, &root, err);
    if (status == SC_OK && settings->out != NULL) {
        status = write_log(&log, file, root, settings->out, err);
    } else if (status == SC_OK && settings->json) {
        sc_json_print(root, stdout);
    } else if (status == SC_OK) {
        status = print_log(&log, file, root, err);
    }
    cJSON_Delete(root);
    sc_nccl_tests_free(&log);
    return status;
}

/* ---- the command ---- */

static const struct {
    const char *from;
    enum sc_status (*import)(const struct cli_settings *settings, const char *file,
                             struct sc_error *err);
} IMPORTERS[] = {{"hf", import_hf}, {"nccl-tests", import_nccl_tests}};

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    const char *from = settings->operands.items[0];
    for (size_t i = 0; i < sizeof(IMPORTERS) / sizeof(IMPORTERS[0]); i++) {
        if (strcmp(from, IMPORTERS[i].from) == 0) {
            return IMPORTERS[i].import(settings, settings->operands.items[1], err);
        }
    }
    return sc_fail(err, SC_USAGE, "stepcast import: found \"%s\", expected hf or nccl-tests", from);
}

const struct cli_command cli_import = {
    .name = "import",
    .operands = "hf | nccl-tests FILE",
    .summary = "other programs' files: a Hugging Face config.json, a log of nccl-tests",
    .description =
        "hf: reads the configuration of a model and prints it as stepcast.model/1, with the number "
        "of its\nparameters. Families that are not lowered are refused by their model_type.\n"
        "nccl-tests: reads what all_reduce_perf and its siblings printed, with whatever stands "
        "around it, and\nprints the latencies and bus bandwidths that a hardware profile takes "
        "(collectives.levels), with\nwhat the log leaves open.",
    .examples = "  stepcast import hf config.json --out my-model.json\n"
                "  stepcast import nccl-tests all_reduce_8gpus.log\n",
    .operands_least = 2,
    .operands_most = 2,
    .options = OPTIONS,
    .run = run,
};
