/* Parsing the options of a subcommand, and their help. */
#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define HELP_COLUMN 26
#define OPTIONS_MAX 64

void cli_settings_init(struct cli_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    settings->warmup = 2;
    settings->tolerance = -1;
    settings->top = 10;
}

void cli_settings_free(struct cli_settings *settings)
{
    sc_array_free(&settings->operands);
    sc_array_free(&settings->set);
}

/* ---- setters ----------------------------------------------------------------------------- */

static void *field_of(struct cli_settings *settings, size_t offset)
{
    return (char *)settings + offset;
}

enum sc_status cli_set_flag(struct cli_settings *settings, const struct cli_option *option,
                            const char *value, struct sc_error *err)
{
    (void)value;
    (void)err;
    *(bool *)field_of(settings, option->offset) = true;
    return SC_OK;
}

enum sc_status cli_set_text(struct cli_settings *settings, const struct cli_option *option,
                            const char *value, struct sc_error *err)
{
    if (value[0] == '\0') {
        return sc_fail(err, SC_USAGE, "%s: found nothing, expected %s", option->name,
                       option->argument);
    }
    *(const char **)field_of(settings, option->offset) = value;
    return SC_OK;
}

enum sc_status cli_set_whole(struct cli_settings *settings, const struct cli_option *option,
                             const char *value, struct sc_error *err)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (value[0] == '\0' || *end != '\0' || errno != 0 || number < option->least ||
        number > option->most) {
        return sc_fail(err, SC_USAGE,
                       "%s: found \"%s\", expected a whole number from %" PRId64 " to %" PRId64,
                       option->name, value, option->least, option->most);
    }
    *(int64_t *)field_of(settings, option->offset) = number;
    if (option->second != 0) {
        *(bool *)field_of(settings, option->second) = true;
    }
    return SC_OK;
}

enum sc_status cli_set_share(struct cli_settings *settings, const struct cli_option *option,
                             const char *value, struct sc_error *err)
{
    char *end = NULL;
    double number = strtod(value, &end);
    if (value[0] == '\0' || *end != '\0' || !isfinite(number) || number < 0) {
        return sc_fail(err, SC_USAGE, "%s: found \"%s\", expected a share such as 0.1",
                       option->name, value);
    }
    *(double *)field_of(settings, option->offset) = number;
    return SC_OK;
}

enum sc_status cli_set_assignment(struct cli_settings *settings, const struct cli_option *option,
                                  const char *value, struct sc_error *err)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value) {
        return sc_fail(err, SC_USAGE, "%s %s: expected path=value", option->name, value);
    }
    const char **item = sc_array_push(&settings->set);
    if (item == NULL) {
        return sc_fail_memory(err, sizeof(*item));
    }
    *item = value;
    return SC_OK;
}

/* ---- parsing ----------------------------------------------------------------------------- */

static const struct cli_option *find_option(const struct cli_option *options, const char *name,
                                            size_t length)
{
    for (; options->name != NULL; options++) {
        if (strlen(options->name) == length && strncmp(options->name, name, length) == 0) {
            return options;
        }
    }
    return NULL;
}

static enum sc_status fail_unknown(const struct cli_command *command, const char *name,
                                   struct sc_error *err)
{
    const char *names[OPTIONS_MAX + 1] = {NULL};
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name != NULL; i++) {
        names[i] = command->options[i].name;
    }
    const char *nearest = sc_nearest(name, names);
    return sc_fail(err, SC_USAGE, "%s: unknown option of stepcast %s%s%s%s", name, command->name,
                   nearest ? ": did you mean " : " (stepcast ", nearest ? nearest : command->name,
                   nearest ? "?" : " --help lists them)");
}

/* One option; *used says how many arguments it took. */
static enum sc_status parse_option(const struct cli_command *command, int count,
                                   char *const *arguments, int *used, struct cli_settings *settings,
                                   struct sc_error *err)
{
    const char *equals = strchr(arguments[0], '=');
    size_t length = equals ? (size_t)(equals - arguments[0]) : strlen(arguments[0]);
    const struct cli_option *option = find_option(command->options, arguments[0], length);
    *used = 1;
    if (option == NULL) {
        return fail_unknown(command, arguments[0], err);
    }
    if (option->argument == NULL) {
        return equals ? sc_fail(err, SC_USAGE, "%s: takes no value", option->name)
                      : option->set(settings, option, NULL, err);
    }
    if (equals == NULL && count < 2) {
        return sc_fail(err, SC_USAGE, "%s: found nothing, expected %s", option->name,
                       option->argument);
    }
    *used = equals ? 1 : 2;
    return option->set(settings, option, equals ? equals + 1 : arguments[1], err);
}

static enum sc_status add_operand(struct cli_settings *settings, const char *text,
                                  struct sc_error *err)
{
    const char **item = sc_array_push(&settings->operands);
    if (item == NULL) {
        return sc_fail_memory(err, sizeof(*item));
    }
    *item = text;
    return SC_OK;
}

static enum sc_status check_operands(const struct cli_command *command,
                                     const struct cli_settings *settings, struct sc_error *err)
{
    size_t count = settings->operands.count;
    if (count < command->operands_least) {
        return sc_fail(err, SC_USAGE, "stepcast %s: found %zu operands, expected %s", command->name,
                       count, command->operands);
    }
    if (count > command->operands_most) {
        return sc_fail(err, SC_USAGE, "stepcast %s: found the operand \"%s\", expected %s",
                       command->name, settings->operands.items[command->operands_most],
                       command->operands[0] != '\0' ? command->operands : "none");
    }
    return SC_OK;
}

static bool asks_for_help(int count, char *const *arguments)
{
    for (int i = 0; i < count && strcmp(arguments[i], "--") != 0; i++) {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

enum sc_status cli_parse(const struct cli_command *command, int count, char *const *arguments,
                         struct cli_settings *settings, struct sc_error *err)
{
    settings->help = asks_for_help(count, arguments);
    if (settings->help) {
        return SC_OK;
    }
    bool options = true;
    for (int i = 0, used = 1; i < count; i += used) {
        used = 1;
        if (options && strcmp(arguments[i], "--") == 0) {
            options = false;
        } else if (options && arguments[i][0] == '-' && arguments[i][1] != '\0') {
            SC_TRY(parse_option(command, count - i, arguments + i, &used, settings, err));
        } else {
            SC_TRY(add_operand(settings, arguments[i], err));
        }
    }
    return check_operands(command, settings, err);
}

/* ---- help -------------------------------------------------------------------------------- */

static void print_option(const struct cli_option *option, FILE *stream)
{
    int used = fprintf(stream, "  %s%s%s", option->name, option->argument ? " " : "",
                       option->argument ? option->argument : "");
    if (used > HELP_COLUMN - 2) {
        fputc('\n', stream);
        used = 0;
    }
    fprintf(stream, "%*s", HELP_COLUMN - used, "");
    for (const char *c = option->help; *c != '\0'; c++) {
        fputc(*c, stream);
        if (*c == '\n') {
            fprintf(stream, "%*s", HELP_COLUMN, "");
        }
    }
    fputc('\n', stream);
}

void cli_print_help(const struct cli_command *command, FILE *stream)
{
    fprintf(stream, "Usage: stepcast %s [OPTION]...%s%s\n\n%s\n", command->name,
            command->operands[0] != '\0' ? " " : "", command->operands, command->description);
    const char *heading = NULL;
    for (const struct cli_option *option = command->options; option->name != NULL; option++) {
        if (option->help == NULL) {
            continue;
        }
        if (heading == NULL || strcmp(heading, option->heading) != 0) {
            heading = option->heading;
            fprintf(stream, "\n%s:\n", heading);
        }
        print_option(option, stream);
    }
    if (command->examples != NULL) {
        fprintf(stream, "\nExamples:\n%s", command->examples);
    }
}
