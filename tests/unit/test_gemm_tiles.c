/*
 * Products in waves of tiles, by hand, on a machine of round numbers: 10 multiprocessors, 1 TFLOP/s
 * of which half is reached, so 0.05 TFLOP/s a multiprocessor; nothing fixed, memory for nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "model/gemm_tiles.h"

static struct sc_hardware machine(void)
{
    struct sc_hardware h;
    memset(&h, 0, sizeof(h));
    h.device.kind = SC_ACCELERATOR;
    h.device.multiprocessors = 10.0;
    h.device.peak[SC_PEAK_BF16] = 1e12;
    h.device.memory_draw = 1e18;
    h.compute.gemm_peak_share[SC_PEAK_BF16] = 0.5;
    h.compute.memory_bound_share = 1.0;
    h.compute.gemm_tile_count = 1;
    h.compute.gemm_tiles[0][0] = 128;
    h.compute.gemm_tiles[0][1] = 64;
    h.compute.gemm_k_offset = 100.0;
    return h;
}

static double seconds(const struct sc_hardware *h, int64_t batch, int64_t m, int64_t n, int64_t k)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_gemm_work work = {
        .batch = batch, .m = m, .n = n, .k = k, .input = SC_BF16, .output = SC_BF16};
    struct sc_cost cost;
    if (sc_cost_gemm(h, &work, &cost, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return sc_cost_seconds(&cost);
}

static void near_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * expected)) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

/* A tile of 128 x 64 with k = 900: 2 x 128 x 64 x 1000 = 16.384 MFLOP, 327.68 us at 0.05 TFLOP/s.
 */
#define TILE_S 327.68e-6

/* 2 x 5 tiles fill one wave; so does one of them; one row more makes 3 x 5 = 15: two waves, as long
 * as 20 tiles (512 x 320) take. */
static void waves(void **state)
{
    (void)state;
    struct sc_hardware h = machine();
    near_to(seconds(&h, 1, 256, 320, 900), TILE_S);
    near_to(seconds(&h, 1, 1, 1, 900), TILE_S);
    near_to(seconds(&h, 1, 257, 320, 900), 2.0 * TILE_S);
    near_to(seconds(&h, 1, 512, 320, 900), 2.0 * TILE_S);
}

/* What each product of a batch computes are tiles like any: 10 products of one tile, one wave; 11,
 * two. */
static void a_batch_is_more_tiles(void **state)
{
    (void)state;
    struct sc_hardware h = machine();
    near_to(seconds(&h, 10, 128, 64, 900), TILE_S);
    near_to(seconds(&h, 11, 128, 64, 900), 2.0 * TILE_S);
}

/* k = 100: 200 steps of 1000, a fifth of the time for a ninth of the work; k = 9900: ten times. */
static void short_k_pays_for_start_and_end(void **state)
{
    (void)state;
    struct sc_hardware h = machine();
    near_to(seconds(&h, 1, 256, 320, 100), 0.2 * TILE_S);
    near_to(seconds(&h, 1, 256, 320, 9900), 10.0 * TILE_S);
}

/* 640 x 64 is 5 tiles of 128 x 64: one wave of the small tile. With tiles of 256 x 64 beside them
 * it stays so; 1408 x 64 is 11 small tiles, two waves, or 6 large ones, one wave of twice the time.
 * The 64 x 64 tile that 640 x 64 fills ten multiprocessors with takes half the time. */
static void the_best_tile(void **state)
{
    (void)state;
    struct sc_hardware h = machine();
    h.compute.gemm_tiles[1][0] = 256;
    h.compute.gemm_tiles[1][1] = 64;
    h.compute.gemm_tile_count = 2;
    near_to(seconds(&h, 1, 640, 64, 900), TILE_S);
    near_to(seconds(&h, 1, 1408, 64, 900), 2.0 * TILE_S);
    h.compute.gemm_tiles[1][0] = 64;
    near_to(seconds(&h, 1, 640, 64, 900), 0.5 * TILE_S);
}

/* A large square product comes within 1 % of peak x share: n = 40,960 has 320 x 640 tiles, 20,480
 * whole waves; only the offset is left, 100 / 40,960. Never faster than the rate. */
static void large_products_reach_the_rate(void **state)
{
    (void)state;
    struct sc_hardware h = machine();
    double n = 40960.0;
    double share = 2.0 * n * n * n / seconds(&h, 1, 40960, 40960, 40960) / 1e12;
    near_to(share, 0.5 * n / (n + 100.0));
    for (int64_t side = 64; side <= 8192; side += 111) {
        double flops = 2.0 * (double)side * (double)side * (double)side;
        assert_true(flops / seconds(&h, 1, side, side, side) <= 0.5e12);
    }
}

/* No tiles, or cores: 2 m n k at the rate, as ever. */
static void without_structure(void **state)
{
    (void)state;
    struct sc_hardware h = machine();
    h.compute.gemm_tile_count = 0;
    near_to(seconds(&h, 1, 257, 320, 900), 2.0 * 257 * 320 * 900 / 0.5e12);
    h = machine();
    h.device.kind = SC_CORES;
    near_to(seconds(&h, 1, 257, 320, 900), 2.0 * 257 * 320 * 900 / 0.5e12);
}

/* The amount is what keeps all multiprocessors busy for the time, at the rate; memory stays beside
 * it: 256 x 320 x 900 moves 2 (230,400 + 288,000 + 81,920) = 1,200,640 bytes. */
static void amounts(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = machine();
    struct sc_gemm_work work = {
        .batch = 1, .m = 256, .n = 320, .k = 900, .input = SC_BF16, .output = SC_BF16};
    struct sc_cost cost;
    assert_int_equal(sc_cost_gemm(&h, &work, &cost, &err), SC_OK);
    near_to(cost.use[SC_COST_COMPUTE].amount, 163.84e6);
    near_to(cost.use[SC_COST_COMPUTE].rate, 0.5e12);
    near_to(cost.use[SC_COST_MEMORY].amount, 1200640.0);
    near_to(sc_gemm_flops(&work), 2.0 * 256 * 320 * 900);
    h.device.memory_draw = 1e9;
    near_to(seconds(&h, 1, 256, 320, 900), 1.20064e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves),
        cmocka_unit_test(a_batch_is_more_tiles),
        cmocka_unit_test(short_k_pays_for_start_and_end),
        cmocka_unit_test(the_best_tile),
        cmocka_unit_test(large_products_reach_the_rate),
        cmocka_unit_test(without_structure),
        cmocka_unit_test(amounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
