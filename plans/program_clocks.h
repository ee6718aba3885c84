/*
 * What is known to have ended before an op of a list starts, from the waits that the list has:
 * vector clocks over three unrolled steps. (The verifier has its own.)
 */
#ifndef STEPCAST_PLANS_PROGRAM_CLOCKS_H
#define STEPCAST_PLANS_PROGRAM_CLOCKS_H

#include "plans/program.h"

/* [ops * streams]: row i, entry s: of stream s, the last op that has ended when op i of a step in
 * the steady state starts. Op j of the same step is j + 1; of the step before j + 1 - ops; and so
 * on; nothing: INT32_MIN / 2. The caller frees it; NULL when out of memory. */
int32_t *sc_clocks(const struct sc_list *list, uint32_t streams);

#endif
