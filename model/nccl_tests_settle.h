/* What the rows of a table measured: which collective, how many ranks, which of the two figures of
 * a row count. Internal to model/. */
#ifndef STEPCAST_MODEL_NCCL_TESTS_SETTLE_H
#define STEPCAST_MODEL_NCCL_TESTS_SETTLE_H

#include "model/nccl_tests.h"

/* The device list before a table. */
struct sc_nccl_tests_devices {
    int64_t listed, highest; /* lines, and the highest rank among them */
    int64_t hosts;           /* different names */
};

/* What was seen around the rows. */
struct sc_nccl_tests_left_out {
    int64_t cut, first_cut; /* rows that are not whole, and the line of the first */
    int64_t empty;          /* rows of size 0 */
    struct sc_nccl_tests_devices devices;
};

/* Completes a table with rows. table->collective: SC_NT_COLLECTIVE_COUNT where nothing named it. */
enum sc_status sc_nccl_tests_settle(struct sc_nccl_tests_log *log,
                                    struct sc_nccl_tests_table *table,
                                    const struct sc_nccl_tests_left_out *left_out, bool cpu_time,
                                    struct sc_error *err);

#endif
