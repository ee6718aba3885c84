/* stepcast explain: why a step takes that long. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/load.h"
#include "reports/explain.h"

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Plan and machine", "--hw", "FILE", hardware,
             "another hardware profile than the plan's (a shipped name or a file)"),
    CLI_ASSIGNMENT("Plan and machine", "--set",
                   "replace a value of the plan, or of the profile with hw. before its\n"
                   "path: --set hw.links.rail.bandwidth_gb_per_s=100"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else"),
    CLI_HELP,
    CLI_END,
};

static enum sc_status explain(const struct cli_settings *settings, const struct sc_plan *plan,
                              const struct sc_hardware *hardware, struct sc_error *err)
{
    struct sc_explanation explanation = {0};
    SC_TRY(sc_explain(plan, hardware, &explanation, err));
    enum sc_status status = settings->json
                                ? cli_print_json(sc_explanation_to_json(&explanation), err)
                                : sc_explanation_print(&explanation, stdout, err);
    sc_explanation_free(&explanation);
    return status;
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    struct sc_plan plan;
    struct sc_hardware hardware;
    SC_TRY(cli_load_plan(settings, &plan, err));
    SC_TRY(cli_load_hardware(settings, &plan, &hardware, err));
    enum sc_status status = explain(settings, &plan, &hardware, err);
    sc_hardware_free(&hardware);
    return status;
}

const struct cli_command cli_explain = {
    .name = "explain",
    .operands = "PLAN",
    .summary = "why a step takes that long, and what would make it shorter",
    .description =
        "Forecasts one training step of a plan (a shipped name or a file) and says why it takes "
        "that long:\nwhat its end waited for (the critical path: its parts add up to the step), "
        "how "
        "long the step would\ntake if a kind of work or a resource were free, or a resource 10 % "
        "faster, and who holds the memory\nwhen it is fullest.",
    .examples = "  stepcast explain gpt3-13b_1xdgx-h100_tp8_megatron\n"
                "  stepcast explain plan.json --hw this-machine.json\n"
                "  stepcast explain plan.json --json | jq .sentence\n",
    .operands_least = 1,
    .operands_most = 1,
    .options = OPTIONS,
    .run = run,
};
