/* From the grid's timings to the constants of a profile. */
#ifndef STEPCAST_EXEC_CALIBRATE_FIT_H
#define STEPCAST_EXEC_CALIBRATE_FIT_H

#include "exec/calibrate_grid.h"
#include "exec/options.h"
#include "model/fit.h"

enum { SC_FITTED_KINDS_MAX = SC_HW_KINDS_MAX };

/* t = fixed_s + max(elements s_per_element, bytes beyond the cache / (share of bandwidth)). */
struct sc_kind_fit {
    const char *name;
    double fixed_s, s_per_element;
    double share; /* 0: no operand was larger than the cache */
    struct sc_fit_residuals residuals;
};

/* t = latency_s + moved bytes / bus_bandwidth. */
struct sc_collective_fit {
    double latency_s, bus_bandwidth;
    struct sc_fit_residuals residuals;
};
struct sc_level_fit {
    struct sc_collective_fit all_reduce, other;
};

/* One transport on this machine. */
struct sc_transport_fit {
    int64_t ranks;     /* of level[0] */
    bool has_level[2]; /* as many ranks as cores; twice as many */
    struct sc_level_fit level[2];
    /* Tensors below so many bytes have figures of their own; 0: all follow one line. */
    double small_bytes;
    struct sc_level_fit small;
    double held_cores, slowdown_beside_compute;
};

struct sc_fits {
    int64_t cores;
    /* products: fixed_s + (FLOP + flop_per_byte bytes) / (share peak), of one core */
    double peak, gemm_share, gemm_fixed_s, gemm_flop_per_byte, gemm_transposed_b_share;
    struct sc_fit_residuals gemm;
    double attention_share[2], attention_s_per_query[2]; /* forward, backward */
    struct sc_fit_residuals attention[2];
    double efficiency;                     /* of all cores together, for one rank */
    double gemm_team_s, memory_team_s;     /* beside it, an operation */
    double node_bandwidth, core_bandwidth; /* bytes a second */
    double cache_bytes;                    /* of one core */
    struct sc_kind_fit kinds[SC_FITTED_KINDS_MAX];
    int kind_count;
    struct sc_kind_fit adam;
    struct sc_transport_fit transport[SC_TRANSPORT_COUNT];
    double issue_s;
};

/* `each`: one core a rank, all ranks at once. `whole`: all cores for one rank. `alone`: one rank on
 * one core, nothing beside it. `crowded`: two ranks a core (its collectives); NULL: not measured.
 * issue_s and transports other than threads are the caller's. */
enum sc_status sc_calibrate_fit(const struct sc_grid *each, const struct sc_grid *whole,
                                const struct sc_grid *alone, const struct sc_grid *crowded,
                                struct sc_fits *out, struct sc_error *err);
/* A transport's constants from the collectives of two grids; `crowded` NULL: not measured. */
enum sc_status sc_calibrate_fit_transport(const struct sc_grid *each, const struct sc_grid *crowded,
                                          struct sc_transport_fit *out, struct sc_error *err);

#endif
