/*
 * Status codes and the error record.
 *
 * Every function of stepcast that can fail returns enum sc_status and takes, last, a pointer to a
 * struct sc_error owned by the caller (never NULL). On success the record is left alone. On failure
 * it holds one line that names the file, the JSON path, what was found and what was expected, as
 * far as they apply, and every output argument is untouched unless its comment says otherwise.
 * Nothing in the library exits, aborts or prints.
 */
#ifndef STEPCAST_BASE_STATUS_H
#define STEPCAST_BASE_STATUS_H

#include <stddef.h>

/* X(name, value, exit code of the command line, sentence) */
#define SC_STATUS_LIST(X)                                                                          \
    X(SC_OK, 0, 0, "done")                                                                         \
    X(SC_NO, 1, 1, "the answer is no")                                                             \
    X(SC_USAGE, 2, 2, "wrong usage")                                                               \
    X(SC_BAD_INPUT, 3, 3, "bad input")                                                             \
    X(SC_MACHINE, 4, 4, "failure of the machine below")                                            \
    X(SC_NO_MEMORY, 5, 4, "out of memory")                                                         \
    X(SC_BUG, 6, 4, "a rule of the program is broken")

enum sc_status {
#define SC_STATUS_ENUM(name, value, code, text) name = value,
    SC_STATUS_LIST(SC_STATUS_ENUM)
#undef SC_STATUS_ENUM
};

#define SC_ERROR_TEXT 1024

struct sc_error {
    enum sc_status status;
    char text[SC_ERROR_TEXT]; /* one line, no newline, always terminated */
};

#define SC_ERROR_INIT                                                                              \
    {                                                                                              \
        SC_OK, ""                                                                                  \
    }

/* Name of a status ("SC_OK") and the process exit code that the command line uses for it. */
const char *sc_status_name(enum sc_status status);
const char *sc_status_sentence(enum sc_status status);
int sc_status_exit_code(enum sc_status status);

/* Fills err with a formatted line (cut at SC_ERROR_TEXT) and returns status. */
enum sc_status sc_fail(struct sc_error *err, enum sc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The line for bad input: "FILE: PATH: found FOUND, expected EXPECTED". Any part may be NULL. */
enum sc_status sc_fail_input(struct sc_error *err, const char *file, const char *path,
                             const char *found, const char *expected);

/* SC_NO_MEMORY with the number of bytes that could not be had. */
enum sc_status sc_fail_memory(struct sc_error *err, size_t bytes);

/* Hands a failure on to the caller: for functions that hold nothing to release. */
#define SC_TRY(call)                                                                               \
    do {                                                                                           \
        enum sc_status sc_try_status_ = (call);                                                    \
        if (sc_try_status_ != SC_OK)                                                               \
            return sc_try_status_;                                                                 \
    } while (0)

/* Same for functions that release at one label; needs `enum sc_status status` in scope. */
#define SC_TRY_GOTO(call, label)                                                                   \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != SC_OK)                                                                       \
            goto label;                                                                            \
    } while (0)

#endif
