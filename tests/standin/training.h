/*
 * Small plans trained on the host backend, and on the CUDA backend over the stand-in: what the test
 * programs of this folder compare.
 */
#ifndef STEPCAST_TESTS_STANDIN_TRAINING_H
#define STEPCAST_TESTS_STANDIN_TRAINING_H

#include "base/status.h"
#include "plans/program.h"
#include "tests/standin/standin.h"

/* Every plan of the tests: a shipped one, made small; attention unfused. */
enum sc_training_plan {
    SC_TRAINING_GPT_TENSOR, /* GPT, tensor parallel 2 */
    SC_TRAINING_LLAMA_DATA, /* Llama, data parallel 2 */
    SC_TRAINING_GPT_DOMINO, /* GPT, tensor parallel 2, Domino in 2 pieces */
    SC_TRAINING_GPT_ALL,    /* and data parallel 2, ZeRO-1 */
    SC_TRAINING_PLANS
};
const char *sc_training_name(enum sc_training_plan plan);
/* Prepared to run. NULL with a printed line on failure. */
struct sc_program *sc_training_program(enum sc_training_plan plan, int layers);

/* What a run came to: losses of all steps, then the parameters after the last as a file has them.
 * Runs are in a folder where that file may be (tests/support/folder.h). */
struct sc_training {
    enum sc_status status;
    struct sc_error error;
    float *numbers; /* [count]; NULL where it failed */
    size_t count, losses;
    struct sc_standin_totals totals;
    char complaint[1024], left[1024], failed[64];
};

/* On the host backend; no stand-in. */
void sc_training_on_host(const struct sc_program *program, int64_t steps, struct sc_training *out);
/* On the CUDA backend, within a run of the stand-in of its own (devices: 8). */
void sc_training_on_standin(const struct sc_program *program, int64_t steps,
                            const struct sc_standin_setup *setup, struct sc_training *out);
void sc_training_free(struct sc_training *training);
/* It ended, and well: the same bits as `expected`, nothing wrong and nothing left. */
bool sc_training_equal(const struct sc_training *training, const struct sc_training *expected);
/* One line that says how it differs. */
void sc_training_print(const struct sc_training *training, const struct sc_training *expected);

/* Allocations of the program that are not freed yet (heap.c). */
long sc_standin_heap(void);

#endif
