/*
 * Products on an accelerator: its multiprocessors each compute one tile of the result at a time, so
 * the work comes in waves, and the last one is rarely full:
 *     tiles = batch ceil(m / rows) ceil(n / columns), waves = ceil(tiles / multiprocessors),
 *     time  = waves 2 rows columns (k + k_offset) / (peak share / multiprocessors),
 * the least over the tiles that the profile lists (compute.gemm). k_offset stands for what starting
 * and ending a tile costs. Tile after tile is how vendor libraries and CUTLASS compute a product.
 */
#ifndef STEPCAST_MODEL_GEMM_TILES_H
#define STEPCAST_MODEL_GEMM_TILES_H

#include "model/cost_compute.h"
#include "model/hardware.h"

/* FLOP for which all multiprocessors are taken, idle ones included: that time x the rate. Without
 * tiles, or on cores: the product's own FLOP. */
double sc_gemm_tiled_flops(const struct sc_hardware *hardware, const struct sc_gemm_work *work);

#endif
