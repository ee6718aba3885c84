/* Loading plans and hardware as the options say. */
#include "cli/load.h"

enum sc_status cli_load_plan(const struct cli_settings *settings, struct sc_plan *out,
                             struct sc_error *err)
{
    return sc_plan_load(settings->operands.items[0], settings->set.items, (int)settings->set.count,
                        out, err);
}

enum sc_status cli_load_hardware(const struct cli_settings *settings, const struct sc_plan *plan,
                                 struct sc_hardware *out, struct sc_error *err)
{
    const char *name = settings->hardware != NULL ? settings->hardware : plan->hardware.profile;
    return sc_hardware_load(name, NULL, settings->set.items, (int)settings->set.count, out, err);
}
