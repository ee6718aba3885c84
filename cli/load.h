/* What several subcommands load. */
#ifndef STEPCAST_CLI_LOAD_H
#define STEPCAST_CLI_LOAD_H

#include "cli/options.h"
#include "model/hardware.h"
#include "plans/plan.h"

/* The plan named by the first operand, with --set; checked. */
enum sc_status cli_load_plan(const struct cli_settings *settings, struct sc_plan *out,
                             struct sc_error *err);
/* The hardware of --hw, else of the plan, with --set hw.PATH=VALUE; its nodes hold the plan's
 * ranks. Freed with sc_hardware_free. */
enum sc_status cli_load_hardware(const struct cli_settings *settings, const struct sc_plan *plan,
                                 struct sc_hardware *out, struct sc_error *err);

#endif
