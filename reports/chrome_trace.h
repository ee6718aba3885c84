/*
 * Traces for a viewer (chrome://tracing, ui.perfetto.dev): the Trace Event Format, JSON object
 * form. A process a trace, a lane (thread) a class and stream, a complete event an operation; a
 * collective that waits for late ranks shows the wait as an event of its own before the transfer.
 */
#ifndef STEPCAST_REPORTS_CHROME_TRACE_H
#define STEPCAST_REPORTS_CHROME_TRACE_H

#include "base/status.h"
#include "plans/trace.h"

/* Writes `count` traces into one file, complete or absent. Both begin at the earliest operation of
 * any of them; time zero of the traces (see plans/trace.h) stays common. */
enum sc_status sc_chrome_trace_write(const struct sc_trace *const *traces, size_t count,
                                     const char *file, struct sc_error *err);

#endif
