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
/* kind, predicted, measured, error and median |error| in percent; the longest first. */
enum sc_status sc_plot_kinds_data(const struct sc_comparison *comparison, const char *file,
                                  struct sc_error *err);
/* Three blocks: headings (y, text), lanes (y, name), operations (start, end, bottom, top, family,
 * kind). Rows of single ranks are left out. */
enum sc_status sc_plot_timelines_data(const struct sc_trace *const *traces, size_t count,
                                      const char *file, struct sc_error *err);
/* Draws a data file with a script ("steps"); `out` ends in .png or .svg and is complete or absent.
 * SC_MACHINE with one line when gnuplot is missing or complains. */
enum sc_status sc_plot_draw(const char *script, const char *data, const char *out,
                            struct sc_error *err);

#endif
