/* The subcommands, one file each (cmd_NAME.c), in the order of the help. */
#ifndef STEPCAST_CLI_COMMANDS_H
#define STEPCAST_CLI_COMMANDS_H

#include <cjson/cJSON.h>

#include "cli/options.h"

extern const struct cli_command cli_sim, cli_explain, cli_search, cli_run, cli_calibrate,
    cli_compare, cli_import, cli_list, cli_plot;

/* NULL-terminated. */
extern const struct cli_command *const cli_commands[];

/* Prints one JSON object and a newline on standard output, and deletes it. NULL (out of memory) is
 * an error. */
enum sc_status cli_print_json(cJSON *object, struct sc_error *err);

#endif
