/*
 * Bandwidths of the places beside the device: a file in a folder, written and read in order, and
 * the machine's memory as all cores together and one alone stream through it.
 *
 * The file goes around the page cache (O_DIRECT) where the file system can, else every piece is
 * forced to the disk and the pages are dropped before it is read. It has no name once it is open,
 * so that it goes with the process whatever happens.
 */
#ifndef STEPCAST_EXEC_CALIBRATE_STORAGE_H
#define STEPCAST_EXEC_CALIBRATE_STORAGE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct sc_storage_options {
    const char *folder; /* where the file is written; NULL: the current one */
    int64_t cores;      /* that stream through memory; at least 1 */
    bool tiny;          /* a few MiB: for tests, the numbers mean nothing */
};

/* Bytes a second: the median over pieces, and how far they differ: (90th - 10th percentile) /
 * median. */
struct sc_storage_rate {
    double rate, spread;
};

struct sc_storage {
    /* ---- the disk ---- */
    bool measured;
    bool direct;           /* around the page cache */
    bool memory_backed;    /* tmpfs, ramfs: no disk at all */
    double capacity_bytes; /* free for this user; 0: not known */
    double file_bytes;
    struct sc_storage_rate write, read;
    char trouble[256]; /* one sentence: not measured, or not a disk; "" */
    /* ---- memory; a copied byte is read once and written once ---- */
    struct sc_storage_rate copy, scan;         /* all cores together; scan only reads */
    struct sc_storage_rate copy_one, scan_one; /* one core */
};

/* Takes less than three seconds for the disk, about one for memory. A folder that cannot be
 * written, or is full, is no failure: `trouble` says it. */
enum sc_status sc_storage_measure(const struct sc_storage_options *options, struct sc_storage *out,
                                  struct sc_error *err);
/* Puts places.disk and places.host.bandwidth_gb_per_s into a profile, each with its source. What
 * was not measured is the neutral value, and its source says so. False when out of memory. */
bool sc_storage_write(const struct sc_storage *storage, cJSON *profile);

#endif
