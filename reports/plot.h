/*
 * Figures: a data file and a gnuplot script (reports/plots/NAME.gp) each, so that a figure can be
 * drawn again by hand: gnuplot -c reports/plots/NAME.gp DATA OUT png|svg. All times in the data are
 * milliseconds.
 *
 *   steps      step times, predicted against measured, and the error of each plan
 *   kinds      time and error by kind of operation
 *   timelines  traces one above the other, a lane a stream, coloured by family of kinds
 */
#ifndef STEPCAST_REPORTS_PLOT_H
#define STEPCAST_REPORTS_PLOT_H

#include "base/status.h"
#include "plans/trace.h"
#include "reports/compare.h"

/* plan, predicted, measured, error in percent; one row a plan. */
enum sc_status sc_plot_steps_data(const struct sc_comparison *comparison, const char *file,
                                  struct sc_error *err);
/* kind, predicted, measured, error and median |error| in percent; the longest first, kinds of less
 * than a thousandth of the time left out. */
enum sc_status sc_plot_kinds_data(const struct sc_comparison *comparison, const char *file,
                                  struct sc_error *err);
/* A stretch of a step; everything where to_us <= from_us. */
struct sc_plot_window {
    double from_us, to_us;
};

/* Three blocks: headings (y, text), lanes (y, name), operations (start, end, bottom, top, family,
 * kind), cut at the window. Rows of single ranks are left out. */
enum sc_status sc_plot_timelines_data(const struct sc_trace *const *traces, size_t count,
                                      struct sc_plot_window window, const char *file,
                                      struct sc_error *err);
/* A stretch in which single operations can be told apart: about forty operations of the anchor
 * stream, early in the step. Everything where a trace has few operations. */
struct sc_plot_window sc_plot_detail(const struct sc_trace *trace);
/* Draws a data file with a script ("steps"); `out` ends in .png or .svg and is complete or absent.
 * SC_MACHINE with one line when gnuplot is missing or complains. */
enum sc_status sc_plot_draw(const char *script, const char *data, const char *out,
                            struct sc_error *err);

#endif
