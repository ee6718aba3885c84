/* Loading plans and hardware as the options say. */
#include "cli/load.h"

#include "model/shipped.h"

enum sc_status cli_load_plan(const struct cli_settings *settings, struct sc_plan *out,
                             struct sc_error *err)
{
    return sc_plan_load(settings->operands.items[0], settings->set.items, (int)settings->set.count,
                        out, err);
}

/* Cores are divided among any number of ranks; accelerators are so many a node. */
static enum sc_status check_devices(const struct cli_settings *settings, const struct sc_plan *plan,
                                    const struct sc_hardware *hardware, struct sc_error *err)
{
    char file[SC_PATH_SIZE];
    if (hardware->device.kind != SC_ACCELERATOR) {
        return SC_OK;
    }
    SC_TRY(sc_shipped_resolve(SC_SHIPPED_PLANS, "plan", settings->operands.items[0], NULL, file,
                              sizeof(file), err));
    return sc_plan_check_devices(plan, hardware->node.devices, file, err);
}

enum sc_status cli_load_hardware(const struct cli_settings *settings, const struct sc_plan *plan,
                                 struct sc_hardware *out, struct sc_error *err)
{
    const char *name = settings->hardware != NULL ? settings->hardware : plan->hardware.profile;
    struct sc_hardware hardware;
    SC_TRY(sc_hardware_load(name, NULL, settings->set.items, (int)settings->set.count, &hardware,
                            err));
    enum sc_status status = check_devices(settings, plan, &hardware, err);
    if (status != SC_OK) {
        sc_hardware_free(&hardware);
        return status;
    }
    *out = hardware;
    return SC_OK;
}
