/* One line of an nccl-tests log: labels taken off, words, columns, rows. Internal to model/. */
#ifndef STEPCAST_MODEL_NCCL_TESTS_LINE_H
#define STEPCAST_MODEL_NCCL_TESTS_LINE_H

#include "model/nccl_tests.h"

#define SC_NT_LINE_SIZE 1024
#define SC_NT_WORDS_MAX 64

struct sc_nccl_tests_line {
    char text[SC_NT_LINE_SIZE]; /* without labels and leading '#'; longer lines are cut */
    int64_t number;
    int word_count; /* the words stand zero-terminated in `words` */
    char words[SC_NT_LINE_SIZE];
    int begin[SC_NT_WORDS_MAX], end[SC_NT_WORDS_MAX]; /* offsets: of words, of the line's columns */
};

/* The columns of a table. */
struct sc_nccl_tests_columns {
    bool type, redop, root;
    int block_count, block_columns; /* of out-of-place and in-place figures */
    int check;                      /* column of a block with #wrong or error; -1: none */
    bool check_is_error;
    bool cpu_time;          /* times are the host's, not those of the collective */
    int after;              /* words behind the blocks */
    bool in_place_first;    /* else out-of-place */
    int ends[SC_NT_PLACES]; /* offset at which each block ends */
};

enum sc_nccl_tests_row_kind { SC_NT_NO_ROW, SC_NT_CUT_ROW, SC_NT_ROW };

/* Splits `size` bytes without their newline. */
void sc_nccl_tests_split(const char *text, size_t size, int64_t number,
                         struct sc_nccl_tests_line *out);
const char *sc_nccl_tests_word(const struct sc_nccl_tests_line *line, int index);
/* True where the line is a table's header. */
bool sc_nccl_tests_header(const struct sc_nccl_tests_line *line, bool in_place_first,
                          struct sc_nccl_tests_columns *out);
enum sc_nccl_tests_row_kind sc_nccl_tests_row(const struct sc_nccl_tests_line *line,
                                              const struct sc_nccl_tests_columns *columns,
                                              struct sc_nccl_tests_row *out);

#endif
