/* What calibration measured, for programs and for a figure: the rows behind a profile. */
#ifndef STEPCAST_REPORTS_CALIBRATION_REPORT_H
#define STEPCAST_REPORTS_CALIBRATION_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "base/array.h"
#include "exec/calibrate.h"

/* stepcast.result/1 with command "calibrate": {file, median_abs_error, ..., contention{},
 * storage{}, warnings[], rows[]}. `file` is the profile's. The caller deletes it; NULL when out of
 * memory. */
cJSON *sc_calibration_to_json(const char *file, const struct sc_calibration *calibration);
/* "Warning: ...", a line each, of what makes the numbers doubtful. */
void sc_calibration_print_warnings(const struct sc_calibration *calibration, FILE *stream);

/* Where the rows of a profile lie: "my.json" has "my.rows.json" beside it. */
enum sc_status sc_calibration_rows_file(const char *profile, char *out, size_t size,
                                        struct sc_error *err);

struct sc_calibration_rows {
    SC_ARRAY(struct sc_calibration_row) rows;
};
/* From a file that sc_calibration_to_json filled, or from the one beside a profile. The caller
 * frees with sc_calibration_rows_free, also after a failure. */
enum sc_status sc_calibration_rows_read(const char *file, struct sc_calibration_rows *out,
                                        struct sc_error *err);
void sc_calibration_rows_free(struct sc_calibration_rows *rows); /* a zeroed struct is accepted */

#endif
