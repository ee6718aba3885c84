/* Status names, exit codes and the one-line error record. */
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct status_row {
    const char *name, *sentence;
    int exit_code;
};

static const struct status_row STATUS_ROWS[] = {
#define STATUS_ROW(name, value, code, text) [value] = {#name, text, code},
    SC_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const struct status_row *status_row(enum sc_status status)
{
    size_t count = sizeof(STATUS_ROWS) / sizeof(STATUS_ROWS[0]);
    return (size_t)status < count ? &STATUS_ROWS[status] : &STATUS_ROWS[SC_BUG];
}

const char *sc_status_name(enum sc_status status)
{
    return status_row(status)->name;
}

const char *sc_status_sentence(enum sc_status status)
{
    return status_row(status)->sentence;
}

int sc_status_exit_code(enum sc_status status)
{
    return status_row(status)->exit_code;
}

/* A cut inside a UTF-8 character would leave half of it: drops the incomplete one at the end. */
static void trim_half_character(char *text)
{
    size_t length = strlen(text), lead = length;
    while (lead > 0 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80) {
        lead--;
    }
    if (lead == 0) {
        return;
    }
    unsigned char first = (unsigned char)text[lead - 1];
    size_t need = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (length - (lead - 1) < need) {
        text[lead - 1] = '\0';
    }
}

/* The record is one line and may hold text from a file: no control characters. */
static void keep_one_line(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7F) {
            *text = ' ';
        }
    }
}

enum sc_status sc_fail(struct sc_error *err, enum sc_status status, const char *format, ...)
{
    /* Built aside: an argument may be the old text of the same record. */
    char text[SC_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (length < 0) {
        text[0] = '\0';
    } else if ((size_t)length >= sizeof(text)) {
        trim_half_character(text);
    }
    keep_one_line(text);
    memcpy(err->text, text, sizeof(text));
    err->status = status;
    return status;
}

enum sc_status sc_fail_input(struct sc_error *err, const char *file, const char *path,
                             const char *found, const char *expected)
{
    bool has_file = file != NULL && file[0] != '\0';
    bool has_path = path != NULL && path[0] != '\0';
    return sc_fail(err, SC_BAD_INPUT, "%s%s%s%s%s%s%s%s%s", has_file ? file : "",
                   has_file ? ": " : "", has_path ? path : "", has_path ? ": " : "",
                   found ? "found " : "", found ? found : "", found && expected ? ", " : "",
                   expected ? "expected " : "", expected ? expected : "");
}

enum sc_status sc_fail_memory(struct sc_error *err, size_t bytes)
{
    return sc_fail(err, SC_NO_MEMORY, "out of memory: %zu bytes could not be had", bytes);
}
