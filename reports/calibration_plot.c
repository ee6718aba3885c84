/* Data of the calibration's figure. */
#include "reports/calibration_plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "plans/op.h"

enum { BINS = 22 }; /* of BIN_WIDTH percent; the outermost hold what is beyond */
#define BIN_WIDTH 5.0
#define BIN_FIRST (-55.0)

enum family { PRODUCT, ATTENTION, MEMORY, OPTIMIZER, COLLECTIVE, FAMILIES };

static enum family family_of(const struct sc_calibration_row *row)
{
    int kind = sc_op_kind_from_name(row->kind);
    if (kind >= 0 && sc_op_kind_work((enum sc_op_kind)kind) == SC_WORK_COLLECTIVE) {
        return COLLECTIVE;
    }
    if (strncmp(row->kind, "attention", strlen("attention")) == 0) {
        return ATTENTION;
    }
    return strcmp(row->kind, "gemm") == 0   ? PRODUCT
           : strcmp(row->kind, "adam") == 0 ? OPTIMIZER
                                            : MEMORY;
}

/* Logarithmic axes have no room for nothing. */
static bool shown(const struct sc_calibration_row *row, enum family family)
{
    return family_of(row) == family && row->measured_s > 0 && row->fitted_s > 0;
}

/* ", mpi" of a collective's "65536 bytes, mpi": what it went over where that is not threads. */
static const char *transport_of(const struct sc_calibration_row *row)
{
    const char *comma = family_of(row) == COLLECTIVE ? strstr(row->shape, ", ") : NULL;
    return comma != NULL ? comma : "";
}

/* Of one line of the figure. */
static int compare_lines(const struct sc_calibration_row *left,
                         const struct sc_calibration_row *right)
{
    int order = strcmp(transport_of(left), transport_of(right));
    order = order != 0 ? order : strcmp(left->kind, right->kind);
    return order != 0 ? order : (left->ranks > right->ranks) - (left->ranks < right->ranks);
}

static int compare_rows(const void *a, const void *b)
{
    const struct sc_calibration_row *left = a, *right = b;
    int order = compare_lines(left, right);
    return order != 0 ? order : (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

/* A block without rows would be no block, and the next one would take its number. */
static void write_rates(FILE *stream, const struct sc_calibration_rows *rows, enum family family)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->rows.count; i++) {
        const struct sc_calibration_row *row = &rows->rows.items[i];
        double work = family == PRODUCT ? row->flops : row->bytes;
        double cores = family == PRODUCT && row->cores > 1 ? (double)row->cores : 1;
        if (shown(row, family) && work > 0) {
            count++;
            fprintf(stream, "%.6g %.6g %.6g\n", work, work / row->measured_s / cores / SC_GIGA,
                    work / row->fitted_s / cores / SC_GIGA);
        }
    }
    if (count == 0) {
        fputs("NaN NaN NaN\n", stream);
    }
}

static size_t bin_of(const struct sc_calibration_row *row)
{
    double percent = (row->fitted_s / row->measured_s - 1) * 100;
    double bin = floor((percent - BIN_FIRST) / BIN_WIDTH);
    return (size_t)fmin(fmax(bin, 0), BINS - 1);
}

static void write_errors(FILE *stream, const struct sc_calibration_rows *rows)
{
    size_t counts[BINS][FAMILIES] = {{0}};
    for (size_t i = 0; i < rows->rows.count; i++) {
        const struct sc_calibration_row *row = &rows->rows.items[i];
        if (row->measured_s > 0) {
            counts[bin_of(row)][family_of(row)]++;
        }
    }
    for (size_t bin = 0; bin < BINS; bin++) {
        double low = BIN_FIRST + (double)bin * BIN_WIDTH;
        size_t sum = 0;
        fprintf(stream, "%g %g", low, low + BIN_WIDTH);
        for (size_t family = 0; family < FAMILIES; family++) {
            sum += counts[bin][family];
            fprintf(stream, " %zu", sum);
        }
        fputc('\n', stream);
    }
}

/* The rows are sorted: those of one line stand together. Names of kinds have no quotes. */
static void write_collectives(FILE *stream, const struct sc_calibration_rows *rows)
{
    const struct sc_calibration_row *before = NULL;
    for (size_t i = 0; i < rows->rows.count; i++) {
        const struct sc_calibration_row *row = &rows->rows.items[i];
        if (!shown(row, COLLECTIVE)) {
            continue;
        }
        if (before == NULL || compare_lines(before, row) != 0) {
            fprintf(stream, "\n\n\"%s, %" PRId64 " ranks%.20s\"\n", row->kind, row->ranks,
                    transport_of(row));
        }
        fprintf(stream, "%.6g %.6g %.6g\n", row->bytes, row->measured_s * SC_US_PER_S,
                row->fitted_s * SC_US_PER_S);
        before = row;
    }
}

enum sc_status sc_plot_calibration_data(struct sc_calibration_rows *rows, const char *file,
                                        struct sc_error *err)
{
    struct sc_file_writer writer;
    SC_TRY(sc_file_open(file, &writer, err));
    qsort(rows->rows.items, rows->rows.count, sizeof(*rows->rows.items), compare_rows);
    fputs("# FLOP measured_gflop_per_s fitted_gflop_per_s (of a core)\n", writer.stream);
    write_rates(writer.stream, rows, PRODUCT);
    fputs("\n\n# bytes measured_gb_per_s fitted_gb_per_s\n", writer.stream);
    write_rates(writer.stream, rows, MEMORY);
    fputs("\n\n# error_from_percent to product attention memory optimizer collective (sums)\n",
          writer.stream);
    write_errors(writer.stream, rows);
    write_collectives(writer.stream, rows);
    return sc_file_commit(&writer, err);
}
