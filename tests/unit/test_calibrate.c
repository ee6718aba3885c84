/* ctest: labels=cli timeout=300 serial=1 */
/*
 * Calibration: timings made up from known constants give these constants back, and the smallest
 * grid runs and gives a profile that can be read. No measured time is asserted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "exec/calibrate.h"
#include "exec/calibrate_fit.h"
#include "exec/calibrate_profile.h"
#include "exec/calibrate_transport.h"

/* The made-up machine: two ranks of a core each. */
#define GEMM_RATE 200e9
#define GEMM_FIXED 3e-6
#define TRANSPOSED_A 0.95
#define TRANSPOSED_B 0.88
#define PAGES 0.8
#define COPY_S 0.5e-9 /* an element of a transposed B */
#define QUERY_S 150e-9
#define QUERY_ELEMENT_S 2e-9
#define ATTENTION_RATE 120e9
#define STREAM 30e9
#define ALONE_STREAM 40e9
#define MEMORY_FIXED 2e-6
#define ELEMENT_S 0.3e-9
#define LATENCY 50e-6
#define BUS 5e9
#define WAIT_BEFORE 11e-6
#define WAIT_AFTER 4e-6

static double seconds_of(const struct sc_probe *p, const struct sc_grid *grid)
{
    double moved = sc_collective_moved(p->collective, grid->ranks, p->bytes);
    double queries = (double)p->attention.batch * (double)p->attention.query_heads *
                     (double)p->attention.query_length;
    double share = (p->gemm.transpose_a ? TRANSPOSED_A : 1.0) *
                   (p->gemm.transpose_b ? TRANSPOSED_B : 1.0) * (p->gemm.page_stride ? PAGES : 1.0);
    switch (p->family) {
    case SC_PROBE_GEMM:
        return GEMM_FIXED + p->flops / (GEMM_RATE * share) +
               (p->gemm.transpose_b ? (double)(p->gemm.k * p->gemm.n) * COPY_S : 0.0);
    case SC_PROBE_ATTENTION:
        return queries * (QUERY_S + (double)p->attention.head_size * QUERY_ELEMENT_S) +
               sc_attention_flops(&p->attention) / ATTENTION_RATE;
    case SC_PROBE_MEMORY:
    case SC_PROBE_ADAM:
        return MEMORY_FIXED + p->elements * ELEMENT_S;
    case SC_PROBE_STREAM:
        return p->bytes / (grid->ranks == 1 ? ALONE_STREAM : STREAM);
    case SC_PROBE_COLLECTIVE:
        return LATENCY + moved / BUS;
    case SC_PROBE_BESIDE: /* half of the core for as long as the collective takes */
        return 10e-3 + 0.5 * 2.0 * (LATENCY + moved / BUS);
    default:
        return 10e-3;
    }
}

/* Beside products a collective takes twice as long. */
static double transfer_of(const struct sc_probe *p, const struct sc_grid *grid)
{
    double moved = sc_collective_moved(p->collective, grid->ranks, p->bytes);
    return (p->family == SC_PROBE_BESIDE ? 2.0 : 1.0) * (LATENCY + moved / BUS);
}

static void make_grid(int64_t ranks, int64_t cores, struct sc_grid_parts parts, double speed,
                      struct sc_grid *grid)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_grid_create(ranks, cores, parts, grid, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    assert_true(grid->probes.count > 0);
    for (size_t i = 0; i < grid->probes.count; i++) {
        grid->probes.items[i].seconds = seconds_of(&grid->probes.items[i], grid) / speed;
        grid->probes.items[i].transfer_s = transfer_of(&grid->probes.items[i], grid) / speed;
        grid->probes.items[i].wait_before_s = WAIT_BEFORE;
        grid->probes.items[i].wait_after_s = WAIT_AFTER;
    }
}

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * fabs(expected))) {
        fail_msg("found %.6g, expected %.6g", found, expected);
    }
}

/* Two cores together are 1.9 times as fast: efficiency 0.95 (products have a fixed part that is not
 * divided here, since everything is divided by 1.9). */
static void known_constants_come_back(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_grid each, whole, alone, crowded;
    struct sc_fits fits;
    make_grid(2, 2, (struct sc_grid_parts){true, true, true, false, 0}, 1.0, &each);
    make_grid(1, 2, (struct sc_grid_parts){true, false, false, false, 0}, 1.9, &whole);
    make_grid(1, 1, (struct sc_grid_parts){false, true, false, false, 0}, 1.0, &alone);
    make_grid(4, 2, (struct sc_grid_parts){false, false, true, false, 0}, 0.5, &crowded);
    if (sc_calibrate_fit(&each, &whole, &alone, &crowded, &fits, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    near_to(fits.peak * fits.gemm_share, GEMM_RATE, 1e-3);
    near_to(fits.gemm_fixed_s, GEMM_FIXED, 1e-2);
    near_to(fits.gemm_transposed_a_share, TRANSPOSED_A, 1e-3);
    near_to(fits.gemm_transposed_b_share, TRANSPOSED_B, 1e-3);
    near_to(fits.gemm_page_stride_share, PAGES, 1e-3);
    near_to(fits.gemm_transposed_b_s, COPY_S, 1e-2);
    for (int i = 0; i < 2; i++) {
        near_to(fits.peak * fits.attention_share[i], ATTENTION_RATE, 1e-3);
        near_to(fits.attention_s_per_query[i], QUERY_S, 1e-3);
        near_to(fits.attention_s_per_element[i], QUERY_ELEMENT_S, 1e-3);
    }
    near_to(fits.efficiency, 0.95, 1e-6);
    assert_true(fabs(fits.gemm_team_s) < 1e-12 && fabs(fits.memory_team_s) < 1e-12);
    for (size_t i = 0; i < whole.probes.count; i++) {
        whole.probes.items[i].seconds += 7e-6; /* on large products it does not show */
    }
    assert_int_equal(sc_calibrate_fit(&each, &whole, &alone, &crowded, &fits, &err), SC_OK);
    near_to(fits.efficiency, 0.95, 0.01);
    near_to(fits.gemm_team_s, 7e-6, 0.3);
    near_to(fits.memory_team_s, 7e-6, 0.05);
    near_to(fits.node_bandwidth, 2.0 * STREAM, 1e-9);
    near_to(fits.core_bandwidth, ALONE_STREAM, 1e-9);
    assert_true(fits.kind_count > 20);
    for (int i = 0; i < fits.kind_count; i++) {
        if (strcmp(fits.kinds[i].name, "scalar") != 0) {
            near_to(fits.kinds[i].s_per_element, ELEMENT_S, 1e-3);
            near_to(fits.kinds[i].fixed_s, MEMORY_FIXED, 1e-2);
        }
    }
    near_to(fits.adam.s_per_element, ELEMENT_S, 1e-3);
    const struct sc_transport_fit *threads = &fits.transport[SC_TRANSPORT_THREADS];
    near_to(threads->level[0].all_reduce.latency_s, LATENCY, 1e-3);
    near_to(threads->level[0].all_reduce.bus_bandwidth, BUS, 1e-3);
    near_to(threads->level[1].other.latency_s, 2.0 * LATENCY, 1e-3);
    near_to(threads->level[1].other.bus_bandwidth, BUS / 2.0, 1e-3);
    assert_true(threads->level[0].small_bytes <= 0.0); /* one line holds for all sizes */
    near_to(threads->wait_before_s, WAIT_BEFORE, 1e-9);
    near_to(threads->wait_after_s, WAIT_AFTER, 1e-9);
    near_to(threads->held_cores, 0.5, 1e-6);
    near_to(threads->slowdown_beside_compute, 2.0, 1e-2);
    sc_grid_free(&each);
    sc_grid_free(&whole);
    sc_grid_free(&alone);
    sc_grid_free(&crowded);
}

/* A link that lets messages of less than 256 KiB pass at once and the others at BUS: two ranks move
 * S bytes for an all-reduce of S. The small ones get figures of their own and leave BUS alone. */
static void small_messages_have_figures_of_their_own(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_grid grid;
    struct sc_transport_fit fit;
    const struct sc_grid_parts parts = {.collectives = true, .chain = 8};
    make_grid(2, 2, parts, 1.0, &grid);
    grid.transport = SC_TRANSPORT_SOCKETS;
    for (size_t i = 0; i < grid.probes.count; i++) {
        struct sc_probe *p = &grid.probes.items[i];
        if (p->family == SC_PROBE_COLLECTIVE && p->bytes < 262144.0) {
            p->seconds = p->transfer_s = LATENCY;
        } else if (p->family == SC_PROBE_COLLECTIVE) {
            p->seconds *= 1e3; /* LATENCY and BUS a thousand times worse */
            p->transfer_s = p->seconds;
        }
    }
    if (sc_calibrate_fit_transport(&grid, NULL, &fit, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    near_to(fit.level[0].all_reduce.bus_bandwidth, BUS / 1e3, 1e-3);
    near_to(fit.level[0].small_bytes, 65536.0, 0.0);
    near_to(fit.level[0].small_all_reduce.latency_s, LATENCY, 1e-3);
    sc_grid_free(&grid);
}

/* Operands beyond a megabyte move at half of the stream's rate, beside their arithmetic. Whatever
 * cache the fit settles on (it tries parts of this machine's), it repeats the times of large
 * operations: without memory they would be off by half. */
static void memory_bounds_what_leaves_the_cache(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_grid each, alone;
    struct sc_fits fits;
    double cache = 1e6;
    make_grid(1, 1, (struct sc_grid_parts){true, true, false, false, 0}, 1.0, &each);
    make_grid(1, 1, (struct sc_grid_parts){false, true, false, false, 0}, 1.0, &alone);
    for (size_t i = 0; i < each.probes.count; i++) {
        struct sc_probe *p = &each.probes.items[i];
        if (p->family == SC_PROBE_MEMORY && p->bytes > cache) {
            p->seconds += (p->bytes - cache) / (0.5 * ALONE_STREAM);
        }
    }
    if (sc_calibrate_fit(&each, NULL, &alone, NULL, &fits, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    assert_false(fits.transport[SC_TRANSPORT_THREADS].has_level[0]);
    assert_false(fits.transport[SC_TRANSPORT_THREADS].has_level[1]);
    near_to(fits.efficiency, 1.0, 0.0);
    size_t large = 0;
    for (size_t i = 0; i < each.probes.count; i++) {
        const struct sc_probe *p = &each.probes.items[i];
        if (p->family != SC_PROBE_MEMORY || p->bytes < 40e6) {
            continue;
        }
        const struct sc_kind_fit *fit = fits.kinds;
        while (strcmp(fit->name, p->kind) != 0) {
            fit++;
        }
        double memory = fmax(p->bytes - fit->cache_bytes, 0.0) / (fits.node_bandwidth * fit->share);
        near_to(fit->fixed_s + p->elements * fit->s_per_element + memory, p->seconds, 0.1);
        large++;
    }
    assert_true(large >= 10);
    sc_grid_free(&each);
    sc_grid_free(&alone);
}

/* What was fitted is what the profile says, read back: signals, spreads, figures by size. An
 * all-reduce of two ranks' 64 KiB moves as much: 5 us + 65536 / 1 GB/s; of 1 MiB 50 us and BUS. */
static void what_was_fitted_is_in_the_profile(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_grid each, alone;
    struct sc_fits fits;
    struct sc_hardware hardware;
    struct sc_cost cost;
    make_grid(2, 2, (struct sc_grid_parts){true, true, true, false, 0}, 1.0, &each);
    make_grid(1, 1, (struct sc_grid_parts){false, true, false, false, 0}, 1.0, &alone);
    if (sc_calibrate_fit(&each, NULL, &alone, NULL, &fits, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    sc_grid_free(&each);
    sc_grid_free(&alone);
    fits.deviation = 0.04;
    fits.gemm.p90 = 0.0329; /* of a normal distribution with a deviation of 0.02 */
    struct sc_level_fit *level = &fits.transport[SC_TRANSPORT_THREADS].level[0];
    level->small_bytes = 65536.0;
    level->small_all_reduce = level->small_other = (struct sc_collective_fit){5e-6, 1e9};
    cJSON *profile = sc_calibrate_profile(&fits, SC_TRANSPORT_THREADS, "made-up", "a machine");
    struct sc_json root = {.item = profile, .file = "made-up"};
    if (sc_hardware_parse(&root, &hardware, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    near_to(hardware.issue.kernel_wait_s, WAIT_AFTER, 1e-3);
    near_to(hardware.issue.collective_wait_s, WAIT_BEFORE, 1e-3);
    near_to(hardware.uncertainty.machine, 0.04, 1e-3);
    near_to(sc_hardware_deviation(&hardware, "gemm", "gemm"), 0.02, 1e-3);
    const struct sc_group_place pair = {
        .members = 2, .nodes = 1, .members_per_node = 2, .level = 0, .share = 1.0};
    sc_cost_collective(&hardware, SC_COLLECTIVE_ALL_REDUCE, 65536.0, &pair, &cost);
    near_to(sc_cost_seconds(&cost), 5e-6 + 65536e-9, 1e-3);
    sc_cost_collective(&hardware, SC_COLLECTIVE_ALL_REDUCE, 1048576.0, &pair, &cost);
    near_to(sc_cost_seconds(&cost), LATENCY + 1048576.0 / BUS, 1e-3);
    sc_hardware_free(&hardware);
    cJSON_Delete(profile);
}

static void the_smallest_grid_runs(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_calibration calibration;
    const struct sc_calibrate_options options = {.name = "tried", .tiny = true};
    if (sc_calibrate(&options, &calibration, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(calibration.hardware.name, "tried");
    assert_int_equal(calibration.hardware.device.kind, SC_CORES);
    assert_true(calibration.rows.count > 50);
    assert_true(calibration.seconds > 0.0);
    for (size_t i = 0; i < calibration.rows.count; i++) {
        const struct sc_calibration_row *row = &calibration.rows.items[i];
        if (!(row->fitted_s >= 0.0 && isfinite(row->fitted_s) && row->measured_s > 0.0)) {
            fail_msg("%s %s: measured %g, fitted %g", row->kind, row->shape, row->measured_s,
                     row->fitted_s);
        }
    }
    /* What was written is read back as the same machine. */
    cJSON *again = sc_hardware_to_json(&calibration.hardware);
    struct sc_json root = {.item = again, .file = "again"};
    struct sc_hardware back;
    assert_int_equal(sc_hardware_parse(&root, &back, &err), SC_OK);
    near_to(back.device.peak[SC_PEAK_FP32], calibration.hardware.device.peak[SC_PEAK_FP32], 1e-9);
    cJSON_Delete(again);
    sc_hardware_free(&back);
    sc_calibration_free(&calibration);
    assert_null(calibration.profile);
}

/* Processes that come once, as many as cores, and not the second time. */
static enum sc_status start_once(void *context, enum sc_run_transport transport, int64_t ranks,
                                 const char *file, struct sc_error *err)
{
    int *times = context;
    struct sc_grid grid;
    if (++*times > 1) {
        return sc_fail(err, SC_MACHINE, "no more of them");
    }
    make_grid(ranks, ranks, (struct sc_grid_parts){.collectives = true, .tiny = true}, 1.0, &grid);
    grid.transport = transport;
    enum sc_status status = sc_calibrate_transport_write(&grid, file, err);
    sc_grid_free(&grid);
    return status;
}

/* The profile has no level for it then, and nothing is compared with the profile. */
static void a_transport_measured_by_half_is_skipped(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_calibration calibration;
    int times = 0;
    struct sc_calibrate_options options = {
        .tiny = true, .start = start_once, .start_context = &times};
    options.optional[SC_TRANSPORT_SOCKETS] = true;
    if (sc_calibrate(&options, &calibration, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    if (times == 0) { /* a machine of one core: no processes at all */
        sc_calibration_free(&calibration);
        skip();
    }
    assert_int_equal(times, 2);
    assert_string_equal(calibration.skipped, "no more of them");
    for (size_t i = 0; i < calibration.rows.count; i++) {
        assert_null(strstr(calibration.rows.items[i].kind, "sockets"));
    }
    sc_calibration_free(&calibration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_constants_come_back),
        cmocka_unit_test(small_messages_have_figures_of_their_own),
        cmocka_unit_test(memory_bounds_what_leaves_the_cache),
        cmocka_unit_test(what_was_fitted_is_in_the_profile),
        cmocka_unit_test(the_smallest_grid_runs),
        cmocka_unit_test(a_transport_measured_by_half_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
