/*
 * Options of the command line as data: a subcommand lists its options, each with the setter of one
 * field of struct cli_settings. Parsing and help read the same rows.
 */
#ifndef STEPCAST_CLI_OPTIONS_H
#define STEPCAST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/status.h"

/* What the options of all subcommands set. Neutral values: cli_settings_init. */
struct cli_settings {
    char *const *arguments;          /* of the program, its name first; NULL-terminated */
    SC_ARRAY(const char *) operands; /* PLAN, ... */
    bool help;
    /* plan and machine */
    const char *hardware;
    SC_ARRAY(const char *) set; /* "path=value" */
    /* output */
    bool json, csv, dump;
    const char *trace, *timeline, *figures, *out;
    double tolerance; /* negative: none */
    const char *groups;
    /* run */
    int64_t steps; /* 0: not given */
    int64_t warmup, cores;
    const char *backend, *transport, *data, *init, *save;
    bool mpi, check, evaluate, chaos, poison, trace_ranks;
    int64_t chaos_seed;
    /* search */
    const char *model;
    int64_t devices, global_batch, sequence_length, top;
    /* calibrate */
    const char *name, *measurements, *storage;
    int64_t seconds, ranks;
    bool tiny;
};

struct cli_option;
typedef enum sc_status (*cli_setter)(struct cli_settings *settings, const struct cli_option *option,
                                     const char *value, struct sc_error *err);

struct cli_option {
    const char *heading;  /* group in the help; rows of a group stand together */
    const char *name;     /* "--json" */
    const char *argument; /* "FILE"; NULL: a flag */
    const char *help;     /* '\n' breaks the line; NULL: not for people, not shown */
    cli_setter set;
    size_t offset;       /* of the field */
    int64_t least, most; /* whole numbers */
    size_t second;       /* offset of a bool set as well; 0: none */
};

/* Setters by type of the field. */
enum sc_status cli_set_flag(struct cli_settings *settings, const struct cli_option *option,
                            const char *value, struct sc_error *err);
enum sc_status cli_set_text(struct cli_settings *settings, const struct cli_option *option,
                            const char *value, struct sc_error *err);
enum sc_status cli_set_whole(struct cli_settings *settings, const struct cli_option *option,
                             const char *value, struct sc_error *err);
enum sc_status cli_set_share(struct cli_settings *settings, const struct cli_option *option,
                             const char *value, struct sc_error *err);
/* Appends "path=value". */
enum sc_status cli_set_assignment(struct cli_settings *settings, const struct cli_option *option,
                                  const char *value, struct sc_error *err);

/* Rows for the tables. */
#define CLI_FLAG(heading, name, field, help)                                                       \
    {                                                                                              \
        heading, name, NULL, help, cli_set_flag, offsetof(struct cli_settings, field), 0, 0, 0     \
    }
#define CLI_TEXT(heading, name, argument, field, help)                                             \
    {                                                                                              \
        heading, name, argument, help, cli_set_text, offsetof(struct cli_settings, field), 0, 0, 0 \
    }
#define CLI_WHOLE(heading, name, argument, field, least, most, help)                               \
    {                                                                                              \
        heading, name, argument, help, cli_set_whole, offsetof(struct cli_settings, field), least, \
            most, 0                                                                                \
    }
#define CLI_SHARE(heading, name, argument, field, help)                                            \
    {                                                                                              \
        heading, name, argument, help, cli_set_share, offsetof(struct cli_settings, field), 0, 0,  \
            0                                                                                      \
    }
#define CLI_ASSIGNMENT(heading, name, help)                                                        \
    {                                                                                              \
        heading, name, "PATH=VALUE", help, cli_set_assignment, 0, 0, 0, 0                          \
    }
#define CLI_HELP CLI_FLAG("Help", "--help", help, "this text")
#define CLI_END                                                                                    \
    {                                                                                              \
        NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0                                                   \
    }

struct cli_command {
    const char *name;
    const char *operands; /* "PLAN"; "" for none */
    const char *summary;  /* one line, for the list of commands */
    const char *description;
    const char *examples; /* NULL: none */
    size_t operands_least, operands_most;
    const struct cli_option *options; /* ends with CLI_END */
    enum sc_status (*run)(const struct cli_settings *settings, struct sc_error *err);
};

void cli_settings_init(struct cli_settings *settings);
void cli_settings_free(struct cli_settings *settings);
/* Reads what stands behind the command's name. SC_USAGE with one line. --help anywhere: the rest is
 * not checked. Strings stay the caller's. */
enum sc_status cli_parse(const struct cli_command *command, int count, char *const *arguments,
                         struct cli_settings *settings, struct sc_error *err);
void cli_print_help(const struct cli_command *command, FILE *stream);

#endif
