/*
 * Tables of nccl-tests to the figures of a profile: time = latency + k size / bus bandwidth, in one
 * to four pieces by size where the protocols of NCCL (LL, LL128, Simple) make the times piecewise.
 *
 * Each piece is a robust line on relative residuals (model/fit.h). Pieces are chosen by dynamic
 * programming over the sizes: least sum of |log(fitted / measured)|, each cut at 0.25 so that a
 * hump that no such line can follow does not bend it; as many pieces as Schwarz's criterion pays
 * for (Laplace residuals; one per cent counts as exact). Fitted times never fall with size by more
 * than 5 %: where measured ones do (a badly tuned switch of protocols), they are not followed, but
 * said.
 */
#ifndef STEPCAST_MODEL_NCCL_TESTS_FIT_H
#define STEPCAST_MODEL_NCCL_TESTS_FIT_H

#include <cjson/cJSON.h>

#include "model/fit.h"
#include "model/nccl_tests.h"

#define SC_NT_PIECES_MAX 4

struct sc_nccl_tests_piece {
    double maximum_bytes;            /* exclusive; infinite for the last */
    double latency_s, bus_bandwidth; /* at least 0; above 0, bytes a second */
};

struct sc_nccl_tests_figures {
    int piece_count; /* ascending in size */
    struct sc_nccl_tests_piece pieces[SC_NT_PIECES_MAX];
    struct sc_fit_residuals residuals;
    double peak_bus_bandwidth; /* best of any size, bytes a second */
    int64_t peak_bytes;
    int64_t smallest_bytes, largest_bytes;
    double smallest_s, largest_s; /* median times at those sizes */
    double largest_bus_bandwidth; /* the best there */
    /* Where times fall most with size: from the slower, smaller size; 0, 0 where they hardly do. */
    int64_t fall_from_bytes, fall_to_bytes;
    double fall_from_s, fall_to_s;
};

/* Fits tables of one collective (or of several with the same k) and number of ranks together. None
 * may be refused. */
enum sc_status sc_nccl_tests_fit(const struct sc_nccl_tests_table *const *tables, size_t count,
                                 struct sc_nccl_tests_figures *out, struct sc_error *err);
/* Adds what has to be said about a fit to its table's warnings. */
enum sc_status sc_nccl_tests_fit_warn(struct sc_nccl_tests_log *log,
                                      struct sc_nccl_tests_table *table,
                                      const struct sc_nccl_tests_figures *figures,
                                      struct sc_error *err);
/* Fitted seconds of a collective of `bytes` whose bus factor is k. */
double sc_nccl_tests_seconds(const struct sc_nccl_tests_figures *figures, double factor,
                             double bytes);

/*
 * Everything as JSON: "tables", each with its figures and warnings, and "levels", one for each
 * number of ranks and nodes. All-reduces give "all_reduce"; all-gathers and reduce-scatters
 * (together), or else the first table of another kind, "other". An entry holds "variants"  (where
 * the nodes are known) for a level that exists: figures by size that hold for this very group, to
 * stand first in its variants; of other groups the level still says what it said; "level"     for a
 * level of its own: the same for every group. Of send_recv, "links" holds entries whose "link" goes
 * to links.NAME. Fits every table and adds its warnings. The caller deletes *out.
 */
enum sc_status sc_nccl_tests_to_json(struct sc_nccl_tests_log *log, const char *file, cJSON **out,
                                     struct sc_error *err);

#endif
