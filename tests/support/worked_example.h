/*
 * Programs worked through by hand, built through the builder: one MLP sub-layer with tensor
 * parallelism 2 in two pieces (34 operations), and a delayed optimizer update on the host.
 */
#ifndef STEPCAST_TESTS_WORKED_EXAMPLE_H
#define STEPCAST_TESTS_WORKED_EXAMPLE_H

#include <stdbool.h>

#include "plans/program.h"

/* Batch 2, sequence 4, hidden 8, ffn 32 (16 a rank), fp32; one class of two ranks. No waits are
 * derived and no memory is planned. NULL on failure. The caller destroys it. */
struct sc_program *sc_worked_example(void);

/* Prices to play it with, by kind, in microseconds: period 1590, first step from cold 1670. */
double sc_worked_example_us(enum sc_op_kind kind);

/* Its 12 waits, in issue order. */
struct sc_worked_wait {
    uint32_t op, awaited, distance;
};
enum { SC_WORKED_WAITS = 12 };
extern const struct sc_worked_wait sc_worked_waits[SC_WORKED_WAITS];

/* Adam on the host, one step behind: operations adam, forward, backward, copy out, copy in.
 * With `two_versions` the gradients and parameters on the host alternate. */
struct sc_program *sc_delayed_update_example(bool two_versions);

/* Duration of operation `op` of it in milliseconds; adam as given (250: period 340 either way; 350:
 * 410 with one version, 390 and 360 alternating with two). */
double sc_delayed_update_ms(uint32_t op, double adam_ms);

#endif
