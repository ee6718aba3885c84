/*
 * Data of the figure "calibration" (reports/plots/calibration.gp): what was measured beside what
 * the profile says, in blocks parted by two blank lines.
 *
 *   0      products: FLOP, GFLOP/s of a core measured, fitted
 *   1      operations that memory bounds: bytes, GB/s measured, fitted
 *   2      errors: a bin's lower and upper end in percent, then sums over the families so far
 *          (products, attention, memory-bound, optimizer, collectives) of how many fell into it
 *   3 ...  collectives, a kind among so many ranks over one transport each, by size: title, then
 * bytes, microseconds measured, fitted
 */
#ifndef STEPCAST_REPORTS_CALIBRATION_PLOT_H
#define STEPCAST_REPORTS_CALIBRATION_PLOT_H

#include "base/status.h"
#include "reports/calibration_report.h"

/* The rows are sorted. Drawn with sc_plot_draw("calibration", file, ...). */
enum sc_status sc_plot_calibration_data(struct sc_calibration_rows *rows, const char *file,
                                        struct sc_error *err);

#endif
