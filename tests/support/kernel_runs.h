/*
 * Running a test of a kernel on every build of the kernels that this processor can run, once over
 * the whole range and once in uneven pieces out of order: the results must have the same bits.
 */
#ifndef STEPCAST_TESTS_SUPPORT_KERNEL_RUNS_H
#define STEPCAST_TESTS_SUPPORT_KERNEL_RUNS_H

#include "tests/support/numeric.h"

#include "exec/kernels/kernels.h"

struct kernel_run {
    const struct sc_kernels *k;
    int pieces;
    int noted;
    uint64_t hash[32];
};

/* Runs kernel(args) over 0..count in the run's pieces; the last piece first. */
#define RUN(run, kernel, args, count)                                                              \
    do {                                                                                           \
        int64_t cut_[] = {0, (count) / 3 + ((count) > 1), (count)};                                \
        if ((run)->pieces == 1) {                                                                  \
            (run)->k->kernel(args, 0, count);                                                      \
        } else {                                                                                   \
            (run)->k->kernel(args, cut_[1], cut_[2]);                                              \
            (run)->k->kernel(args, cut_[0], cut_[1]);                                              \
        }                                                                                          \
    } while (0)

/* Remembers a result of the whole run (FNV-1a), compares that of the run in pieces. */
static inline void note_bits(struct kernel_run *run, const void *data, size_t bytes)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
    assert_true(run->noted < 32);
    if (run->pieces == 1)
        run->hash[run->noted] = hash;
    else if (run->hash[run->noted] != hash)
        fail_msg("%s: result %d depends on the split", run->k->name, run->noted);
    run->noted++;
}

static inline void for_every_build(void (*body)(struct kernel_run *run))
{
    struct kernel_run run = {0};
    for (int i = 0; (run.k = sc_kernels_at(i)) != NULL; i++)
        for (run.pieces = 1; run.pieces <= 2; run.pieces++) {
            run.noted = 0;
            body(&run);
        }
}

#endif
