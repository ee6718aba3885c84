/* Waves of tiles. */
#include "model/gemm_tiles.h"

#include <math.h>

#define FLOP_PER_ENTRY 2.0 /* a multiplication and an addition */

static double with_tile(const struct sc_hardware *hardware, const struct sc_gemm_work *work,
                        const int64_t tile[2])
{
    double rows = (double)tile[0], columns = (double)tile[1];
    double tiles =
        (double)work->batch * ceil((double)work->m / rows) * ceil((double)work->n / columns);
    double waves = ceil(tiles / hardware->device.multiprocessors);
    double deep = (double)work->k + hardware->compute.gemm_k_offset;
    return waves * hardware->device.multiprocessors * FLOP_PER_ENTRY * rows * columns * deep;
}

double sc_gemm_tiled_flops(const struct sc_hardware *hardware, const struct sc_gemm_work *work)
{
    int count = hardware->device.kind == SC_ACCELERATOR ? hardware->compute.gemm_tile_count : 0;
    double least = sc_gemm_flops(work);
    for (int i = 0; i < count; i++) {
        double flops = with_tile(hardware, work, hardware->compute.gemm_tiles[i]);
        least = i == 0 || flops < least ? flops : least;
    }
    return least;
}
