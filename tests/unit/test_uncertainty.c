/* The interval of a forecast: variance from shares by hand, and its direction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sim/uncertainty.h"
#include "tests/support/near.h"
#include "tests/support/play.h"

#define NEAR 1e-12

/* A step of 1000 us: products of 300 us, and two of 100 us and one shape; an all-reduce of 200 us
 * that nothing hides; an addition of 300 us. */
static void build(struct play_case *c)
{
    play_begin(c, 1);
    int compute = play_stream(c, "compute", 0), comm = play_stream(c, "comm", 0);
    int tensor = play_group(c, "tensor", SC_TENSOR);
    struct sc_list *list = &c->program->classes.items[0].step;
    play_op(c, 0, compute, -1, 300);
    uint32_t first = play_op(c, 0, compute, -1, 100), second = play_op(c, 0, compute, -1, 100);
    uint32_t *of_op = c->prices.classes.items[0].of_op;
    of_op[second] = of_op[first];
    uint32_t reduce = play_op(c, 0, comm, tensor, 200);
    play_wait(c, 0, second, 0);
    play_op(c, 0, compute, -1, 300);
    play_wait(c, 0, reduce, 0);
    for (uint32_t i = 0; i <= second; i++) {
        list->ops.items[i].kind = SC_GEMM;
    }
    play_run(c, 0);
    assert_near(c->play.period_us, 1000, 1e-9);
}

static void list_kind(struct sc_hardware *hardware, const char *name, double deviation)
{
    struct sc_hw_deviation *kind = &hardware->uncertainty.kinds[hardware->uncertainty.kind_count++];
    snprintf(kind->name, sizeof(kind->name), "%s", name);
    kind->deviation = deviation;
}

static double deviation_of(const struct play_case *c, const struct sc_hardware *hardware)
{
    struct sc_error err = SC_ERROR_INIT;
    double deviation;
    assert_int_equal(sc_uncertainty(c->program, &c->prices, &c->play, hardware, &deviation, &err),
                     SC_OK);
    return deviation;
}

/* Products: half of the step, two shapes of 300 and 200 us: n = 500^2 / (300^2 + 200^2) = 1.923,
 * and (0.5 x 0.1)^2 (1/2 + 1/2 / n) = 0.0025 x 0.76 = 0.0019. All-reduce, one shape: (0.2 x 0.2)^2
 * = 0.0016. Addition, not listed: (0.3 x 0.4)^2 = 0.0144. With the machine's 0.05^2 = 0.0025:
 * 0.0204.
 */
static void variance_is_that_of_the_shares(void **state)
{
    (void)state;
    struct play_case c;
    struct sc_hardware hardware;
    memset(&hardware, 0, sizeof(hardware));
    build(&c);
    assert_near(deviation_of(&c, &hardware), 0, NEAR);
    hardware.uncertainty.machine = 0.05;
    assert_near(deviation_of(&c, &hardware), 0.05, NEAR);
    list_kind(&hardware, "gemm", 0.1);
    double n = 500.0 * 500 / (300 * 300 + 200 * 200);
    assert_near(deviation_of(&c, &hardware), sqrt(0.0025 + 0.05 * 0.05 * (0.5 + 0.5 / n)), NEAR);
    list_kind(&hardware, "all_reduce", 0.2);
    hardware.uncertainty.neutral = 0.4;
    assert_near(deviation_of(&c, &hardware), sqrt(0.0204), NEAR);
    play_end(&c);
}

/* Whatever becomes less certain, the interval grows. */
static void less_certain_is_wider(void **state)
{
    (void)state;
    struct play_case c;
    struct sc_hardware hardware;
    memset(&hardware, 0, sizeof(hardware));
    build(&c);
    list_kind(&hardware, "gemm", 0.01);
    list_kind(&hardware, "all_reduce", 0.01);
    double *figures[] = {&hardware.uncertainty.machine, &hardware.uncertainty.neutral,
                         &hardware.uncertainty.kinds[0].deviation,
                         &hardware.uncertainty.kinds[1].deviation};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        double before = deviation_of(&c, &hardware);
        *figures[i] += 0.1;
        assert_true(deviation_of(&c, &hardware) > before);
    }
    play_end(&c);
}

/* exp(1.2816 x 0.1) = 1.13674: 1.13674 above, as many times below; no spread, no width. */
static void interval_is_symmetric_in_the_logarithm(void **state)
{
    (void)state;
    double low, high;
    sc_uncertainty_interval(2, 0.1, &low, &high);
    assert_near(high, 2 * 1.13674, 1e-4);
    assert_near(low * high, 4, NEAR);
    sc_uncertainty_interval(2, 0, &low, &high);
    assert_near(low, 2, NEAR);
    assert_near(high, 2, NEAR);
}

/* A variant's own figure, else its kind's, else the neutral one. */
static void variants_fall_back_to_their_kind(void **state)
{
    (void)state;
    struct sc_hardware hardware;
    memset(&hardware, 0, sizeof(hardware));
    hardware.uncertainty.neutral = 0.3;
    list_kind(&hardware, "activation", 0.2);
    assert_near(sc_hardware_deviation(&hardware, "activation_swiglu", "activation"), 0.2, NEAR);
    list_kind(&hardware, "activation_swiglu", 0.1);
    assert_near(sc_hardware_deviation(&hardware, "activation_swiglu", "activation"), 0.1, NEAR);
    assert_near(sc_hardware_deviation(&hardware, "norm", "norm"), 0.3, NEAR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variance_is_that_of_the_shares),
        cmocka_unit_test(less_certain_is_wider),
        cmocka_unit_test(interval_is_symmetric_in_the_logarithm),
        cmocka_unit_test(variants_fall_back_to_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
