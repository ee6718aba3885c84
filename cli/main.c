/* stepcast: finds the subcommand, runs it, turns its status into an exit code and one line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"

#define COMMANDS_MAX 32

const struct cli_command *const cli_commands[] = {
    &cli_sim,     &cli_explain, &cli_search, &cli_run,  &cli_calibrate,
    &cli_compare, &cli_plot,    &cli_import, &cli_list, NULL};

static void print_overview(FILE *stream)
{
    fputs("Usage: stepcast COMMAND [OPTION]... [OPERAND]...\n\n"
          "Forecasts one training step of a transformer on many devices, finds the plan that\n"
          "makes it fastest within memory, and runs the same plan for real, so that forecast and\n"
          "measurement lie side by side, operation by operation.\n\nCommands:\n",
          stream);
    for (const struct cli_command *const *command = cli_commands; *command != NULL; command++) {
        fprintf(stream, "  %-10s  %s\n", (*command)->name, (*command)->summary);
    }
    fputs("\n`stepcast COMMAND --help` says more; `stepcast --version` names the version.\n\n"
          "Exit codes:\n"
          "  0  done\n"
          "  1  the answer is no: nothing fits, a comparison is outside its tolerance\n"
          "  2  wrong usage\n"
          "  3  bad input file\n"
          "  4  the machine below failed: memory, disk, MPI, gnuplot\n",
          stream);
}

enum sc_status cli_print_json(cJSON *object, struct sc_error *err)
{
    if (object == NULL) {
        return sc_fail(err, SC_NO_MEMORY, "out of memory while writing JSON");
    }
    sc_json_print(object, stdout);
    cJSON_Delete(object);
    return SC_OK;
}

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *const *command = cli_commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0) {
            return *command;
        }
    }
    return NULL;
}

static enum sc_status fail_unknown(const char *name, struct sc_error *err)
{
    const char *names[COMMANDS_MAX + 1] = {NULL};
    for (size_t i = 0; i < COMMANDS_MAX && cli_commands[i] != NULL; i++) {
        names[i] = cli_commands[i]->name;
    }
    const char *nearest = sc_nearest(name, names);
    return sc_fail(err, SC_USAGE, "%s: unknown command%s%s%s", name,
                   nearest ? ": did you mean " : " (stepcast --help lists them)",
                   nearest ? nearest : "", nearest ? "?" : "");
}

/* The command's name is the second of the arguments. */
static enum sc_status run_command(const struct cli_command *command, int count,
                                  char *const *arguments, struct sc_error *err)
{
    struct cli_settings settings;
    cli_settings_init(&settings);
    settings.arguments = arguments;
    enum sc_status status = cli_parse(command, count - 2, arguments + 2, &settings, err);
    if (status == SC_OK && settings.help) {
        cli_print_help(command, stdout);
    } else if (status == SC_OK) {
        status = command->run(&settings, err);
    }
    cli_settings_free(&settings);
    return status;
}

static enum sc_status dispatch(int count, char *const *arguments, struct sc_error *err)
{
    const char *name = count > 1 ? arguments[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_overview(stdout);
        return SC_OK;
    }
    if (strcmp(name, "--version") == 0) {
        puts("stepcast " STEPCAST_VERSION);
        return SC_OK;
    }
    if (name[0] == '\0') {
        return sc_fail(err, SC_USAGE,
                       "found no command, expected one (stepcast --help lists them)");
    }
    const struct cli_command *command = find_command(name);
    return command ? run_command(command, count, arguments, err) : fail_unknown(name, err);
}

/* A full disk shows only now. */
static enum sc_status finish_output(struct sc_error *err)
{
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) != 0 || failed) {
        return sc_fail(err, SC_MACHINE, "standard output: %s", strerror(errno));
    }
    return SC_OK;
}

int main(int count, char **arguments)
{
    struct sc_error err = SC_ERROR_INIT;
    enum sc_status status = dispatch(count, arguments, &err);
    if (status == SC_OK) {
        status = finish_output(&err);
    }
    /* A plain "no" may have said everything on standard output. */
    if (status != SC_OK && err.text[0] != '\0') {
        fprintf(stderr, "%s\n", err.text);
    }
    return sc_status_exit_code(status);
}
