/* Small traces by hand, for tests of what reads traces. */
#ifndef STEPCAST_TESTS_MAKE_TRACE_H
#define STEPCAST_TESTS_MAKE_TRACE_H

#include "plans/trace.h"

/* One class "all" of two ranks, streams "compute" (the anchor) and "comm", no rows. */
void make_trace(struct sc_trace *out, enum sc_trace_kind kind, const char *plan,
                const char *program, double period_us);
/* A row over all ranks; ready = start. transfer_us NAN: not a collective. Its address is valid
 * until the next one. */
struct sc_trace_row *make_row(struct sc_trace *trace, uint32_t operation, enum sc_op_kind kind,
                              double start_us, double transfer_us, double end_us);

#endif
