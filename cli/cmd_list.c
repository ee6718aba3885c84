/* stepcast list: what ships. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "model/architecture.h"
#include "model/shipped.h"

static const struct cli_option OPTIONS[] = {
    CLI_FLAG("Output", "--json", json, "one object with the arrays models, hardware, plans"),
    CLI_HELP,
    CLI_END,
};

struct listing {
    const char *word, *title, *folder;
};

static const struct listing LISTINGS[] = {
    {"models", "Models", SC_SHIPPED_MODELS},
    {"hardware", "Hardware profiles", SC_SHIPPED_HARDWARE},
    {"plans", "Plans", SC_SHIPPED_PLANS},
};
enum { LISTING_COUNT = sizeof(LISTINGS) / sizeof(LISTINGS[0]) };

static enum sc_status print_name(void *context, const char *name, const char *file,
                                 struct sc_error *err)
{
    (void)context;
    (void)file;
    (void)err;
    printf("  %s\n", name);
    return SC_OK;
}

static enum sc_status add_name(void *context, const char *name, const char *file,
                               struct sc_error *err)
{
    (void)file;
    cJSON *item = cJSON_CreateString(name);
    if (item == NULL || !cJSON_AddItemToArray(context, item)) {
        cJSON_Delete(item);
        return sc_fail_memory(err, strlen(name));
    }
    return SC_OK;
}

static bool wanted(const struct cli_settings *settings, const struct listing *listing)
{
    return settings->operands.count == 0 || strcmp(settings->operands.items[0], listing->word) == 0;
}

static enum sc_status list_text(const struct cli_settings *settings, struct sc_error *err)
{
    bool first = true;
    for (size_t i = 0; i < LISTING_COUNT; i++) {
        if (wanted(settings, &LISTINGS[i])) {
            printf("%s%s:\n", first ? "" : "\n", LISTINGS[i].title);
            SC_TRY(sc_shipped_list(LISTINGS[i].folder, print_name, NULL, err));
            first = false;
        }
    }
    return SC_OK;
}

static enum sc_status list_json(const struct cli_settings *settings, struct sc_error *err)
{
    cJSON *root = cJSON_CreateObject();
    enum sc_status status = SC_OK;
    for (size_t i = 0; i < LISTING_COUNT && status == SC_OK; i++) {
        if (wanted(settings, &LISTINGS[i])) {
            cJSON *names = cJSON_AddArrayToObject(root, LISTINGS[i].word);
            status = sc_shipped_list(LISTINGS[i].folder, add_name, names, err);
        }
    }
    if (status != SC_OK) {
        cJSON_Delete(root);
        return status;
    }
    return cli_print_json(root, err);
}

static enum sc_status run(const struct cli_settings *settings, struct sc_error *err)
{
    bool known = false;
    for (size_t i = 0; i < LISTING_COUNT; i++) {
        known = known || wanted(settings, &LISTINGS[i]);
    }
    if (!known) {
        return sc_fail(err, SC_USAGE,
                       "stepcast list: found \"%s\", expected models, hardware or "
                       "plans",
                       settings->operands.items[0]);
    }
    return settings->json ? list_json(settings, err) : list_text(settings, err);
}

const struct cli_command cli_list = {
    .name = "list",
    .operands = "[models | hardware | plans]",
    .summary = "shipped models, hardware profiles and plans",
    .description = "Lists what comes with stepcast. Wherever a model, profile or plan is asked "
                   "for, such a name\nstands for its file.",
    .operands_most = 1,
    .options = OPTIONS,
    .run = run,
};
