/* stepcast sim: the forecast of a step. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/load.h"
#include "plans/program_dump.h"
#include "reports/chrome_trace.h"
#include "reports/forecast.h"
#include "sim/simulate.h"

static const struct cli_option OPTIONS[] = {
    CLI_TEXT("Plan and machine", "--hw", "FILE", hardware,
             "another hardware profile than the plan's (a shipped name or a file)"),
    CLI_ASSIGNMENT("Plan and machine", "--set",
                   "replace a value of the plan, or of the profile with hw. before its\n"
                   "path: --set hw.links.rail.bandwidth_gb_per_s=100"),
    CLI_TEXT("Plan and machine", "--transport", "NAME", transport,
             "how ranks talk, where the profile knows several ways: threads, mpi, sockets"),
    CLI_FLAG("Output", "--json", json, "one object and nothing else"),
    CLI_TEXT("Output", "--trace", "FILE", trace,
             "when every operation starts and ends (for compare)"),
    CLI_TEXT("Output", "--timeline", "FILE", timeline,
             "the same for a viewer (chrome://tracing, ui.perfetto.dev)"),
    CLI_FLAG("Output", "--dump", dump, "print the step program instead of the forecast"),
    CLI_HELP,
    CLI_END,
};

static enum sc_status dump(const struct sc_plan *plan, const struct sc_hardware *hardware,
                           struct sc_error *err)
{
    struct sc_program *program = NULL;
    SC_TRY(sc_forecast_program(plan, hardware, true, &program, err));
    enum sc_status status = sc_program_dump(program, stdout, err);
    sc_program_destroy(&program);
    return status;
}

static enum sc_status write_traces(const struct cli_settings *settings,
                                   const struct sc_trace *trace, struct sc_error *err)
{
    if (settings->trace != NULL) {
        SC_TRY(sc_trace_write(trace, settings->trace, err));
    }
    return settings->timeline != NULL ? sc_chrome_trace_write(&trace, 1, settings->timeline, err)
                                      : SC_OK;
}

static enum sc_status simulate(const struct cli_settings *settings, const struct sc_plan *plan,
                               const struct sc_hardware *hardware, struct sc_error *err)
{
    struct sc_sim_options options = {.verify = true};
    options.trace = settings->trace != NULL || settings->timeline != NULL;
    struct sc_sim_result result = {0};
    struct sc_sim_made made = {0};
    SC_TRY(sc_simulate_keep(plan, hardware, &options, &result, &made, err));
    enum sc_status status = options.trace ? write_traces(settings, &result.trace, err) : SC_OK;
    if (status == SC_OK) {
        status = settings->json ? cli_print_json(sc_sim_result_to_json(&result), err)
                                : sc_forecast_print(&result, made.program, stdout, err);
    }
    sc_sim_made_free(&made);
    sc_sim_result_free(&result);
    return status;
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    struct sc_plan plan;
    struct sc_hardware hardware;
    if (settings->dump && settings->json) {
        return sc_fail(err, SC_USAGE, "--dump: found --json as well, expected one of the two");
    }
    SC_TRY(cli_load_plan(settings, &plan, err));
    SC_TRY(cli_load_hardware(settings, &plan, &hardware, err));
    enum sc_status status = settings->transport != NULL
                                ? sc_hardware_use_transport(&hardware, settings->transport, err)
                                : SC_OK;
    if (status == SC_OK) {
        status = settings->dump ? dump(&plan, &hardware, err)
                                : simulate(settings, &plan, &hardware, err);
    }
    sc_hardware_free(&hardware);
    return status;
}

const struct cli_command cli_sim = {
    .name = "sim",
    .operands = "PLAN",
    .summary = "forecast a step: time, where it goes, memory",
    .description =
        "Forecasts one training step of a plan (a shipped name or a file) without running it: how "
        "long it\ntakes, where the time goes, how much memory it needs and for what.",
    .examples = "  stepcast sim gpt3-13b_1xdgx-h100_tp8_domino2\n"
                "  stepcast sim plan.json --hw dgx-a100-80g --set mesh.tensor_parallel=4\n"
                "  stepcast sim plan.json --json | jq .step_time_s\n",
    .operands_least = 1,
    .operands_most = 1,
    .options = OPTIONS,
    .run = run,
};
