/*
 * Logs of nccl-tests (and programs that print the same table: rccl-tests, mscclpp-test) as rows.
 *
 * A log is what somebody kept of a terminal: tables stand between banners and NCCL's own lines,
 * each line may carry a launcher's label ("[1,0]<stdout>:", "[0] ", "node0: "), rows may be cut.
 * Columns are taken from the header line of each table, because they differ between versions: no
 * redop, no root, an error in place of #wrong, cells left blank, in-place first.
 *
 * What the columns mean (nccl-tests, doc/PERFORMANCE.md): algbw = size / time, busbw = algbw x k
 * with k = 2 (n - 1) / n for all_reduce, (n - 1) / n for collectives that count per rank
 * (all_gather, reduce_scatter, alltoall, gather, scatter, hypercube: size = count x bytes of the
 * type x n), 1 for broadcast, reduce and sendrecv. Bandwidths are computed from size and time here:
 * before 2020 the algbw of per-rank collectives was printed with (n - 1) / n in it.
 */
#ifndef STEPCAST_MODEL_NCCL_TESTS_H
#define STEPCAST_MODEL_NCCL_TESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"

enum sc_nccl_tests_collective {
    SC_NT_ALL_REDUCE,
    SC_NT_ALL_GATHER,
    SC_NT_REDUCE_SCATTER,
    SC_NT_ALL_TO_ALL,
    SC_NT_BROADCAST,
    SC_NT_REDUCE,
    SC_NT_SEND_RECV,
    SC_NT_GATHER,
    SC_NT_SCATTER,
    SC_NT_HYPERCUBE,
    SC_NT_PER_RANK, /* not named; counts per rank, as all_gather does */
    SC_NT_COLLECTIVE_COUNT
};

/* How busbw follows from algbw. */
enum sc_nccl_tests_factor { SC_NT_ONE, SC_NT_SHARE, SC_NT_TWICE_SHARE };

struct sc_nccl_tests_kind {
    const char *name;  /* as stepcast calls it: "all_to_all" */
    const char *spelt; /* as the program is called, without '_': "alltoall"; NULL: it is not */
    enum sc_nccl_tests_factor factor;
    bool per_rank; /* count is that of one rank */
};
extern const struct sc_nccl_tests_kind sc_nccl_tests_kinds[SC_NT_COLLECTIVE_COUNT];

enum sc_nccl_tests_check { SC_NT_UNCHECKED, SC_NT_RIGHT, SC_NT_WRONG };
enum sc_nccl_tests_place { SC_NT_OUT_OF_PLACE, SC_NT_IN_PLACE, SC_NT_PLACES };

struct sc_nccl_tests_time {
    bool present;
    double seconds, seconds_half_digit;
    double printed_algbw, printed_busbw, busbw_half_digit; /* GB/s, as they stand in the row */
    enum sc_nccl_tests_check check;
};

#define SC_NT_WORD 16

struct sc_nccl_tests_row {
    int64_t line;
    int64_t bytes, count;
    char type[SC_NT_WORD], operation[SC_NT_WORD]; /* "": no such column, or blank */
    struct sc_nccl_tests_time times[SC_NT_PLACES];
};

enum sc_nccl_tests_source {
    SC_NT_FROM_NOWHERE,
    SC_NT_FROM_HEADER,  /* collective: "Collective test starting", or its command */
    SC_NT_FROM_DEVICES, /* ranks: the device list */
    SC_NT_FROM_COUNTS,  /* ranks: size / (count x bytes of the type) */
    SC_NT_FROM_BANDWIDTHS
};
extern const char *const sc_nccl_tests_sources[]; /* "header", ..., by the enum; NULL-terminated */

struct sc_nccl_tests_table {
    int64_t line; /* of the header */
    enum sc_nccl_tests_collective collective;
    enum sc_nccl_tests_source collective_from;
    int64_t ranks; /* 0: unknown, and of no consequence (busbw = algbw) */
    enum sc_nccl_tests_source ranks_from;
    int64_t nodes; /* 0: no complete device list */
    SC_ARRAY(struct sc_nccl_tests_row)
    rows;                 /* sizes above zero; a time that is not usable (in place
                             where that is not supported) is not present */
    int64_t wrong_values; /* the footer's "Out of bounds values"; -1: no footer */
    double footer_busbw;  /* "Avg bus bandwidth", GB/s; negative: none. A mean over all sizes: never
                             a bandwidth of the links */
    bool validated;       /* the rows that count were checked */
    const char
        *refused; /* why nothing can be learnt from it ("found ..., expected ..."), or NULL */
    int64_t refused_line;
    SC_ARRAY(const char *) warnings; /* one line each */
};

struct sc_nccl_tests_log {
    SC_ARRAY(struct sc_nccl_tests_table) tables; /* with at least one row each */
    struct sc_arena arena;
};

/* Reads a log. SC_BAD_INPUT, "FILE: line N: found ..., expected ...", where no table of it can be
 * used; tables that cannot, beside others that can, keep their reason in `refused`. */
enum sc_status sc_nccl_tests_read(const char *file, struct sc_nccl_tests_log *out,
                                  struct sc_error *err);
/* The same from `size` bytes of text; `name` stands for the file in complaints. */
enum sc_status sc_nccl_tests_parse(const char *text, size_t size, const char *name,
                                   struct sc_nccl_tests_log *out, struct sc_error *err);
void sc_nccl_tests_free(struct sc_nccl_tests_log *log);

/* k of the convention; 1 where ranks is 0. */
double sc_nccl_tests_bus_factor(enum sc_nccl_tests_collective collective, int64_t ranks);
/* Bytes of one element of a type of nccl-tests ("float": 4); 0: unknown. */
int64_t sc_nccl_tests_type_bytes(const char *type);
/* Adds one line to the table's warnings. */
enum sc_status sc_nccl_tests_warn(struct sc_nccl_tests_log *log, struct sc_nccl_tests_table *table,
                                  struct sc_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
