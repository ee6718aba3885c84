/* From the grid's timings to the constants of a profile. */
#ifndef STEPCAST_EXEC_CALIBRATE_FIT_H
#define STEPCAST_EXEC_CALIBRATE_FIT_H

#include "exec/calibrate_grid.h"
#include "exec/options.h"
#include "model/fit.h"

enum { SC_FITTED_KINDS_MAX = SC_HW_KINDS_MAX };

/* t = fixed_s + elements s_per_element + bytes beyond the cache / (share of a rank's bandwidth). */
struct sc_kind_fit {
    const char *name;
    double fixed_s, s_per_element;
    double share; /* 0: nothing to be seen of memory */
    double cache_bytes;
    struct sc_fit_residuals residuals;
};

/* t = latency_s + moved bytes / bus_bandwidth. */
struct sc_collective_fit {
    double latency_s, bus_bandwidth;
};
/* Up to small_bytes one line, beyond another; 0: one line holds for all. */
struct sc_level_fit {
    double small_bytes;
    struct sc_collective_fit small_all_reduce, small_other, all_reduce, other;
    struct sc_fit_residuals residuals[2]; /* all_reduce, other */
};

/* One transport on this machine. */
struct sc_transport_fit {
    int64_t ranks;     /* of level[0] */
    bool has_level[2]; /* as many ranks as cores; twice as many */
    struct sc_level_fit level[2];
    double held_cores, slowdown_beside_compute;
    double wait_before_s, wait_after_s; /* to start it, and to go on after it */
};

struct sc_fits {
    int64_t cores;
    /* As model/cost_cores.h prices products and attention, of one core. */
    double peak, gemm_share, gemm_fixed_s;
    double gemm_transposed_a_share, gemm_transposed_b_share, gemm_page_stride_share;
    double gemm_operand_s, gemm_transposed_b_s;
    struct sc_fit_residuals gemm;
    double attention_share[2], attention_s_per_query[2], attention_s_per_element[2];
    struct sc_fit_residuals attention[2]; /* forward, backward */
    /* Of all cores together, for one rank: of products, of memory-bound kinds; and beside it, an
     * operation. */
    double efficiency, memory_efficiency;
    double gemm_team_s, memory_team_s;
    double node_bandwidth, core_bandwidth; /* bytes a second */
    struct sc_kind_fit kinds[SC_FITTED_KINDS_MAX];
    int kind_count;
    struct sc_kind_fit adam;
    struct sc_transport_fit transport[SC_TRANSPORT_COUNT];
    double issue_s;
    double deviation; /* of an operation's time between repeats, relative; by time */
};

/* `each`: one core a rank, all ranks at once. `whole`: all cores for one rank. `alone`: one rank on
 * one core, nothing beside it. `crowded`: two ranks a core; NULL: not measured.
 * issue_s and transports other than threads are the caller's. */
enum sc_status sc_calibrate_fit(const struct sc_grid *each, const struct sc_grid *whole,
                                const struct sc_grid *alone, const struct sc_grid *crowded,
                                struct sc_fits *out, struct sc_error *err);
/* A transport's constants from the collectives of two grids; `crowded` NULL: not measured. */
enum sc_status sc_calibrate_fit_transport(const struct sc_grid *each, const struct sc_grid *crowded,
                                          struct sc_transport_fit *out, struct sc_error *err);

#endif
