/*
 * JSON with paths. A struct sc_json is a cursor on one item of a parsed document that knows how it
 * was reached, so that every complaint names the file and the path ("mesh.tensor_parallel"). A
 * cursor refers to its parent cursor, which must outlive it (cursors live on the stack).
 *
 * Getters fail with SC_BAD_INPUT and one line: file, path, what was found, what was expected.
 * sc_json_opt_* leave *out alone when the key is absent, so set the default first. A getter's key
 * may be NULL: then it reads the cursor's own item (an item of an array: sc_json_at, then
 * sc_json_int(&item, NULL, ...)). A key that stands twice in one object is refused when parsing.
 */
#ifndef STEPCAST_BASE_JSON_H
#define STEPCAST_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/status.h"

struct sc_json_doc {
    cJSON *root;
    char *file; /* as given; "" for text */
};

struct sc_json {
    const cJSON *item;
    const struct sc_json *parent; /* NULL for the root */
    const char *key;              /* in an object; NULL in an array */
    int index;                    /* in an array */
    const char *file;
};

enum sc_status sc_json_read(const char *file, struct sc_json_doc *out, struct sc_error *err);
enum sc_status sc_json_parse(const char *text, const char *name, struct sc_json_doc *out,
                             struct sc_error *err);
void sc_json_doc_free(struct sc_json_doc *doc);
/* The first byte that is not UTF-8, or NULL. Refused where JSON comes in, for what is read is
 * written again: names into traces and reports. */
const char *sc_json_not_utf8(const char *text);
struct sc_json sc_json_root(const struct sc_json_doc *doc);

/* `--set path=value`: replaces (or adds) one item; value is JSON, or taken as a string when it does
 * not parse. The path is dotted; an array index is a number. */
enum sc_status sc_json_set(struct sc_json_doc *doc, const char *path, const char *value,
                           struct sc_error *err);

/* "FILE: PATH: found FOUND, expected EXPECTED": the format gives what was expected ("a power of
 * two"), what was found is described from the item itself. */
enum sc_status sc_json_fail(const struct sc_json *at, struct sc_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes "a.b[3].c" (at most size bytes, terminated). */
void sc_json_path(const struct sc_json *at, char *out, size_t size);

bool sc_json_has(const struct sc_json *at, const char *key);
/* Every key of the object must be in `allowed` (NULL-terminated); else the nearest is suggested. A
 * key "source" or "notes" needs to be listed like any other. */
enum sc_status sc_json_check_keys(const struct sc_json *at, const char *const *allowed,
                                  struct sc_error *err);
enum sc_status sc_json_object(const struct sc_json *at, const char *key, struct sc_json *out,
                              struct sc_error *err);
enum sc_status sc_json_array(const struct sc_json *at, const char *key, struct sc_json *out,
                             int *count, struct sc_error *err);
enum sc_status sc_json_at(const struct sc_json *array, int index, struct sc_json *out,
                          struct sc_error *err);
/* Whole numbers in [min, max], numbers in [min, max]. */
enum sc_status sc_json_int(const struct sc_json *at, const char *key, int64_t min, int64_t max,
                           int64_t *out, struct sc_error *err);
enum sc_status sc_json_opt_int(const struct sc_json *at, const char *key, int64_t min, int64_t max,
                               int64_t *out, struct sc_error *err);
enum sc_status sc_json_number(const struct sc_json *at, const char *key, double min, double max,
                              double *out, struct sc_error *err);
enum sc_status sc_json_opt_number(const struct sc_json *at, const char *key, double min, double max,
                                  double *out, struct sc_error *err);
enum sc_status sc_json_bool(const struct sc_json *at, const char *key, bool *out,
                            struct sc_error *err);
enum sc_status sc_json_opt_bool(const struct sc_json *at, const char *key, bool *out,
                                struct sc_error *err);
/* The string is copied into the arena. */
enum sc_status sc_json_string(const struct sc_json *at, const char *key, struct sc_arena *arena,
                              const char **out, struct sc_error *err);
enum sc_status sc_json_opt_string(const struct sc_json *at, const char *key, struct sc_arena *arena,
                                  const char **out, struct sc_error *err);
/* One of `names` (NULL-terminated); *out is its index. */
enum sc_status sc_json_enum(const struct sc_json *at, const char *key, const char *const *names,
                            int *out, struct sc_error *err);
enum sc_status sc_json_opt_enum(const struct sc_json *at, const char *key, const char *const *names,
                                int *out, struct sc_error *err);
/* The document's "schema" must equal `schema` ("stepcast.plan/1"). */
enum sc_status sc_json_schema(const struct sc_json *root, const char *schema, struct sc_error *err);

/* Nearest of `names` (NULL-terminated) by edit distance, or NULL when nothing is near. */
const char *sc_nearest(const char *word, const char *const *names);

/* Prints the document, tab-free, two blanks a level, and a newline; errors stay in the stream. */
void sc_json_print(const cJSON *root, FILE *stream);
/* The same into a file, atomically. */
enum sc_status sc_json_write(const cJSON *root, const char *file, struct sc_error *err);

#endif
