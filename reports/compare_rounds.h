/* Several measurements of one plan as one. */
#ifndef STEPCAST_REPORTS_COMPARE_ROUNDS_H
#define STEPCAST_REPORTS_COMPARE_ROUNDS_H

#include <stddef.h>

#include "base/status.h"
#include "plans/trace.h"

/* A trace whose step time, and of each operation start, wait for others and duration, are medians
 * over `count` >= 1 traces of one program (rows of single ranks are left out). *spread: (longest -
 * shortest step time) / median; 0 where nothing was measured. SC_BAD_INPUT where the programs
 * differ. The caller frees *out with sc_trace_free. */
enum sc_status sc_rounds_merge(const struct sc_trace *const *rounds, size_t count,
                               struct sc_trace *out, double *spread, struct sc_error *err);

#endif
