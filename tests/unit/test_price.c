/* Prices of the worked example's operations on a machine with round numbers: 1 GFLOP/s fp32 at half
 * of peak, 1 GB/s of memory at 0.8, collectives at 1 MB/s after 10 us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/price.h"
#include "tests/support/near.h"
#include "tests/support/worked_example.h"

#define NEAR 1e-9

static struct sc_hardware round_numbers(void)
{
    struct sc_hardware hw;
    memset(&hw, 0, sizeof(hw));
    strcpy(hw.name, "round");
    hw.node.devices = 2;
    hw.device.kind = SC_ACCELERATOR;
    hw.device.multiprocessors = 100;
    hw.device.peak[SC_PEAK_FP32] = 1e9;
    hw.device.memory_bandwidth = hw.device.memory_draw = 1e9;
    hw.device.units_speed = 1;
    for (int place = 0; place < SC_HW_DISK; place++)
        hw.places[place] =
            (struct sc_hw_place_info){.present = true,
                                      .per = place == SC_HW_DEVICE ? SC_PER_DEVICE : SC_PER_NODE,
                                      .capacity_bytes = 1e9};
    hw.places[SC_HW_HOST].bandwidth = 4e9;
    hw.compute.gemm_peak_share[SC_PEAK_FP32] = 0.5;
    hw.compute.cores.gemm_transposed_b_share = 1;
    hw.compute.gemm_fixed_s = 4e-6;
    hw.compute.attention_fixed_s = -1;
    hw.compute.memory_bound_share = 0.8;
    hw.compute.memory_bound_fixed_s = 3e-6;
    hw.compute.adam_share = 0.8;
    hw.compute.adam_fixed_s = 2e-6;
    hw.issue.kernel_s = 4e-6;
    hw.issue.collective_s = 6e-6;
    hw.issue.copy_s = 5e-6;
    hw.link_count = 2;
    hw.links[0] = (struct sc_hw_link){.name = "near",
                                      .level = 1,
                                      .per = SC_PER_NODE,
                                      .count = 1,
                                      .bandwidth = 1e6,
                                      .pageable_share = 1};
    hw.links[1] = (struct sc_hw_link){.name = "pcie",
                                      .per = SC_PER_NODE,
                                      .count = 1,
                                      .bandwidth = 1e6,
                                      .latency_s = 8e-6,
                                      .to_host = true,
                                      .pageable_share = 1};
    hw.level_count = 1;
    strcpy(hw.levels[0].name, "near");
    hw.levels[0].all_reduce = (struct sc_hw_alpha_beta){.latency_s = 10e-6, .bus_bandwidth = 1e6};
    hw.levels[0].other = hw.levels[0].all_reduce;
    hw.levels[0].held_multiprocessors = 16;
    hw.levels[0].slowdown_beside_compute = 1;
    return hw;
}

struct fixture {
    struct sc_hardware hardware;
    struct sc_program *program;
    struct sc_pricing *pricing;
    struct sc_error err;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){.hardware = round_numbers(), .program = sc_worked_example()};
    assert_non_null(f->program);
    enum sc_status status = sc_pricing_create(f->program, &f->hardware, &f->pricing, &f->err);
    if (status != SC_OK)
        fail_msg("%s", f->err.text);
}

static void teardown(struct fixture *f)
{
    sc_pricing_destroy(&f->pricing);
    sc_program_destroy(&f->program);
}

static struct sc_price price_of(struct fixture *f, uint32_t op)
{
    struct sc_price price;
    enum sc_status status = sc_price_op(
        f->pricing, 0, &f->program->classes.items[0].step.ops.items[op], &price, &f->err);
    if (status != SC_OK)
        fail_msg("operation %u: %s", op, f->err.text);
    return price;
}

static double share(const struct sc_price *price, uint8_t resource)
{
    for (uint8_t u = 0; u < price->uses; u++)
        if (price->use[u].resource == resource)
            return price->use[u].share;
    return 0;
}

/* Operation 4: u.0 [4,16] = n.0 [4,8] W1 [16,8] + b1: 2 x 4 x 16 x 8 = 1024 FLOP at 0.5 GFLOP/s:
 * 2.048 us. Bytes (4 x 8 + 8 x 16 + 4 x 16) x 4 + 64 of bias = 960 at 0.8 GB/s: 1.2 us. So compute
 * bounds and 1.2 / 2.048 of the memory is taken meanwhile. */
static void a_product(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct sc_price price = price_of(&f, 4);
    assert_near(price.latency_us, 4, NEAR);
    assert_near(price.work_us, 2.048, NEAR);
    assert_near(share(&price, SC_USE_COMPUTE), 1, NEAR);
    assert_near(share(&price, SC_USE_MEMORY), 1.2 / 2.048, NEAR);
    assert_near(price.flops, 1024, NEAR);
    assert_near(price.issue_us, 4, NEAR);
    assert_true(price.computes);
    assert_string_equal(price.bound, "latency"); /* 4 us of it, 2 of work */
    teardown(&f);
}

/* On cores, a weight gradient that reads its first operand transposed runs at half the rate where
 * that operand's rows are whole pages of 4 KiB apart. */
static void rows_whole_pages_apart(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    f.hardware.device.kind = SC_CORES;
    f.hardware.device.multiprocessors = 1;
    f.hardware.device.stated_peak[SC_PEAK_FP32] = 1e9;
    f.hardware.compute.cores.gemm_transposed_a_share = 1;
    f.hardware.compute.cores.gemm_page_stride_share = 0.5;
    struct sc_class *class = &f.program->classes.items[0];
    uint32_t op = 0;
    while (class->step.ops.items[op].kind != SC_GEMM ||
           !class->step.ops.items[op].p.gemm.transpose_a)
        op++;
    const struct sc_operand *a = sc_op_operand(&class->step, &class->step.ops.items[op], SC_ROLE_A);
    double before = price_of(&f, op).work_us;
    class->values.items[a->value].row_stride = 2048;
    assert_near(price_of(&f, op).work_us, 2 * before, NEAR);
    class->values.items[a->value].row_stride = 2048 + 16;
    assert_near(price_of(&f, op).work_us, before, NEAR);
    teardown(&f);
}

/* Operation 5: u.0 [4,16] read, a.0 written: 512 bytes at 0.8 GB/s: 0.64 us after 3. */
static void an_activation(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct sc_price price = price_of(&f, 5);
    assert_near(price.latency_us, 3, NEAR);
    assert_near(price.work_us, 0.64, NEAR);
    assert_near(share(&price, SC_USE_MEMORY), 1, NEAR);
    assert_near(price.flops, 0, NEAR);
    teardown(&f);
}

/* Operation 8: z.0 [4,8] fp32, 128 bytes; two members: 128 x 2 x 1/2 = 128 bytes at 1 MB/s: 128 us
 * after 10. The link is the node's, and the two ranks of the group take it together once: one
 * rank's part is 1/2. */
static void an_all_reduce(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct sc_price price = price_of(&f, 8);
    assert_near(price.latency_us, 10, NEAR);
    assert_near(price.work_us, 128, NEAR);
    assert_near(share(&price, SC_USE_LINK), 0.5, NEAR);
    assert_near(price.held_units, 16, NEAR);
    assert_near(price.issue_us, 6, NEAR);
    assert_false(price.computes);
    assert_string_equal(price.bound, "near");
    teardown(&f);
}

/* Operation 1: x [8,8] fp32, 256 bytes from pinned memory at 1 MB/s: 256 us after 8. Every rank
 * copies for itself: the whole link each. The host's memory gives 4 GB/s: 1/4000 of it. */
static void a_copy(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct sc_price price = price_of(&f, 1);
    assert_near(price.latency_us, 8, NEAR);
    assert_near(price.work_us, 256, NEAR);
    assert_near(share(&price, SC_USE_LINK + 1), 1, NEAR);
    assert_near(share(&price, SC_USE_HOST_MEMORY), 1.0 / 4000, NEAR);
    assert_string_equal(price.bound, "pcie");
    teardown(&f);
}

/* Operation 33: param, m, v read and written, grad and step_state read: 7 x 2048 + 256 = 14592
 * bytes at 0.8 GB/s: 18.24 us after 2. */
static void adam(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct sc_price price = price_of(&f, 33);
    assert_near(price.latency_us, 2, NEAR);
    assert_near(price.work_us, 18.24, NEAR);
    teardown(&f);
}

/* The price of every operation in the table is the one that the function gives, equal ones stand
 * once: 4 and 9 (up, both pieces). */
static void the_table(void **state)
{
    (void)state;
    struct fixture f;
    struct sc_prices prices;
    setup(&f);
    assert_int_equal(sc_price_program(f.pricing, &prices, &f.err), SC_OK);
    size_t ops = f.program->classes.items[0].step.ops.count;
    assert_int_equal(prices.classes.items[0].ops, ops);
    for (uint32_t op = 0; op < ops; op++) {
        struct sc_price price = price_of(&f, op);
        assert_near(sc_price_of(&prices, 0, op)->work_us, price.work_us, 0);
        assert_near(sc_price_of(&prices, 0, op)->latency_us, price.latency_us, 0);
        assert_near(sc_price_of(&prices, 0, op)->flops, price.flops, 0);
    }
    assert_int_equal(prices.classes.items[0].of_op[4], prices.classes.items[0].of_op[9]);
    assert_true(prices.table.count < ops);
    sc_prices_free(&prices);
    teardown(&f);
}

/* Two nodes of one device each: the group spans both, and the profile has no link between. */
static void a_group_that_nothing_joins(void **state)
{
    (void)state;
    struct fixture f = {.hardware = round_numbers(), .program = sc_worked_example()};
    f.hardware.node.devices = 1;
    assert_int_equal(sc_pricing_create(f.program, &f.hardware, &f.pricing, &f.err), SC_BAD_INPUT);
    assert_null(f.pricing);
    /* With one it does, and the group spans two nodes. */
    f.hardware.links[0].level = 2;
    assert_int_equal(sc_pricing_create(f.program, &f.hardware, &f.pricing, &f.err), SC_OK);
    bool uneven = true;
    assert_int_equal(sc_pricing_nodes(f.pricing, 0, 0, &uneven), 2);
    assert_false(uneven);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product),     cmocka_unit_test(rows_whole_pages_apart),
        cmocka_unit_test(an_activation), cmocka_unit_test(an_all_reduce),
        cmocka_unit_test(a_copy),        cmocka_unit_test(adam),
        cmocka_unit_test(the_table),     cmocka_unit_test(a_group_that_nothing_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
