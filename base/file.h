/* Files: read whole, write atomically (temporary file beside the target, fsync, rename). */
#ifndef STEPCAST_BASE_FILE_H
#define STEPCAST_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* The bytes (at most 1 GiB) and a terminating zero, allocated with malloc; the caller frees *out.
 */
enum sc_status sc_file_read(const char *file, char **out, size_t *size, struct sc_error *err);

/* An output file that is complete or absent. */
struct sc_file_writer {
    FILE *stream; /* write here */
    char *target, *temporary;
    int error; /* errno of the first sc_file_put that failed, else 0 */
};
enum sc_status sc_file_open(const char *target, struct sc_file_writer *out, struct sc_error *err);
/* For large pieces: a failure is kept for the commit to name (of the stream itself only that it
 * failed is known later). */
void sc_file_put(struct sc_file_writer *writer, const void *data, size_t bytes);
/* Flushes, checks, renames. On failure the temporary file is gone and the target as it was. */
enum sc_status sc_file_commit(struct sc_file_writer *writer, struct sc_error *err);
/* Drops what was written; does nothing after a commit. */
void sc_file_abandon(struct sc_file_writer *writer);

/* Fails as sc_file_open would and leaves nothing: to know before long work. */
enum sc_status sc_file_check(const char *target, struct sc_error *err);

bool sc_file_exists(const char *file);
/* mkdir -p. */
enum sc_status sc_make_directory(const char *directory, struct sc_error *err);

#endif
