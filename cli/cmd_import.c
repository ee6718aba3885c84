/* stepcast import: other programs' files. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "model/architecture.h"
#include "plans/lower.h"

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Output", "--out", "FILE", out, "write a model file for plans instead of printing"),
    CLI_HELP,
    CLI_END,
};

static enum sc_status import_hf(const char *file, struct sc_model *model, struct sc_error *err)
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

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    const char *from = settings->operands.items[0];
    if (strcmp(from, "hf") != 0) {
        return sc_fail(err, SC_USAGE, "stepcast import: found \"%s\", expected hf", from);
    }
    struct sc_model model;
    SC_TRY(import_hf(settings->operands.items[1], &model, err));
    cJSON *object = sc_model_to_json(&model);
    if (settings->out == NULL) {
        return print_model(&model, object, err);
    }
    enum sc_status status = sc_json_write(object, settings->out, err);
    cJSON_Delete(object);
    return status;
}

const struct cli_command cli_import = {
    .name = "import",
    .operands = "hf FILE",
    .summary = "a Hugging Face config.json as a model file",
    .description = "Reads the configuration of a model and prints it as stepcast.model/1, with the "
                   "number of its\nparameters. Families that are not lowered are refused by their "
                   "model_type.",
    .examples = "  stepcast import hf config.json --out my-model.json\n",
    .operands_least = 2,
    .operands_most = 2,
    .options = OPTIONS,
    .run = run,
};
