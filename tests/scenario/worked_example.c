/* The worked example (one MLP sub-layer, two pieces) and the delayed update, played with constant
 * prices. Work on `compute` 1441; exposed: reduction 13 whole (120), 30 by 120 - 100 = 20, and 9 of
 * the input copy, which waits for operation 32 while only adam (30) and scalar (1) run: 40 - 31. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/near.h"
#include "tests/support/worked_example.h"

#include "sim/engine.h"

#define NEAR 1e-6

struct fixture {
    struct sc_program *program;
    struct sc_prices prices;
    struct sc_machine machine;
    struct sc_play play;
    struct sc_error err;
};

/* us of an operation: by kind in the sub-layer, by number in the delayed update. */
typedef double (*duration_fn)(const struct sc_op *op, uint32_t number, double adam_ms);

static double sub_layer_us(const struct sc_op *op, uint32_t number, double adam_ms)
{
    (void)number;
    (void)adam_ms;
    return sc_worked_example_us((enum sc_op_kind)op->kind);
}

static double delayed_us(const struct sc_op *op, uint32_t number, double adam_ms)
{
    (void)op;
    return 1000 * sc_delayed_update_ms(number, adam_ms);
}

static void play(struct fixture *f, struct sc_program *program, duration_fn duration, double adam,
                 int steps)
{
    const struct sc_play_options options = {.steps = steps};
    *f = (struct fixture){.program = program};
    assert_non_null(program);
    assert_int_equal(sc_program_derive_waits(program, &f->err), SC_OK);
    assert_int_equal(sc_prices_begin(program, &f->prices, &f->err), SC_OK);
    const struct sc_list *list = &program->classes.items[0].step;
    for (uint32_t i = 0; i < list->ops.count; i++) {
        struct sc_price price =
            sc_price_constant(duration(&list->ops.items[i], i, adam), "constant");
        assert_true(sc_prices_add(&f->prices, &price, &f->prices.classes.items[0].of_op[i]));
    }
    assert_int_equal(sc_machine_empty(program, &f->machine, &f->err), SC_OK);
    assert_int_equal(sc_play(program, &f->prices, &f->machine, &options, &f->play, &f->err), SC_OK);
}

static void release(struct fixture *f)
{
    sc_play_free(&f->play);
    sc_prices_free(&f->prices);
    sc_machine_free(&f->machine);
    sc_program_destroy(&f->program);
}

static void sub_layer_periods(void **state)
{
    (void)state;
    struct fixture f;
    play(&f, sc_worked_example(), sub_layer_us, 0, 6);
    assert_near(f.play.periods_us[0], 1670, NEAR);
    for (int step = 1; step < 6; step++)
        assert_near(f.play.periods_us[step], 1590, NEAR);
    release(&f);
    play(&f, sc_worked_example(), sub_layer_us, 0, 0);
    assert_int_equal(f.play.steps, 3);
    assert_near(f.play.period_us, 1590, NEAR);
    release(&f);
}

static void sub_layer_exposed(void **state)
{
    (void)state;
    struct fixture f;
    play(&f, sc_worked_example(), sub_layer_us, 0, 0);
    const struct sc_op_times *times = f.play.classes.items[0].times;
    double exposed = 0;
    for (size_t i = 0; i < f.play.classes.items[0].ops; i++)
        exposed += times[i].exposed_us;
    assert_near(times[1].exposed_us, 9, NEAR);
    assert_near(times[8].exposed_us, 0, NEAR);
    assert_near(times[13].exposed_us, 120, NEAR);
    assert_near(times[23].exposed_us, 0, NEAR);
    assert_near(times[30].exposed_us, 20, NEAR);
    assert_near(exposed, 149, NEAR);
    assert_near(f.play.classes.items[0].busy_us, 1441, NEAR);
    release(&f);
}

/* The rows that the design's trace prints. */
static void sub_layer_rows(void **state)
{
    (void)state;
    static const struct {
        uint32_t op;
        double ready, start, end;
    } rows[] = {{1, -30, -30, 10},     {3, 10, 10, 20},     {8, 250, 250, 370},
                {9, 250, 250, 350},    {10, 350, 350, 370}, {11, 370, 370, 385},
                {12, 385, 385, 485},   {13, 485, 485, 605}, {14, 605, 605, 620},
                {33, 1560, 1560, 1590}};
    struct fixture f;
    play(&f, sc_worked_example(), sub_layer_us, 0, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sc_op_times *times = &f.play.classes.items[0].times[rows[i].op];
        assert_near(times->ready_us, rows[i].ready, NEAR);
        assert_near(times->start_us, rows[i].start, NEAR);
        assert_near(times->end_us, rows[i].end, NEAR);
    }
    /* next_batch of step 2 is issued when step 0 has ended: one period before zero. */
    assert_near(f.play.classes.items[0].times[0].ready_us, -1590, NEAR);
    assert_near(f.play.classes.items[0].times[8].transfer_us, 250, NEAR);
    assert_true(isnan(f.play.classes.items[0].times[9].transfer_us));
    release(&f);
}

static void delayed(bool versions, double adam_ms, double period_ms, int cycle)
{
    struct fixture f;
    play(&f, sc_delayed_update_example(versions), delayed_us, adam_ms, 0);
    assert_true(f.play.settled);
    assert_near(f.play.period_us, 1000 * period_ms, NEAR);
    assert_int_equal(f.play.cycle, cycle);
    release(&f);
}

/* Forward 100, backward 200, copy out 60, copy in 40 ms. Adam 250: 300 and the parameter copy, with
 * one version or two. Adam 350 with one version: adam, then the copy of the gradients that waits
 * for it: 350 + 60. */
static void delayed_update(void **state)
{
    (void)state;
    delayed(false, 250, 340, 1);
    delayed(true, 250, 340, 1);
    delayed(false, 350, 410, 1);
}

/* Two versions, Adam 350: periods 390, 360, 390, 360: mean 375. */
static void delayed_update_alternates(void **state)
{
    (void)state;
    struct fixture f;
    delayed(true, 350, 375, 2);
    play(&f, sc_delayed_update_example(true), delayed_us, 350, 12);
    for (int step = 6; step < 12; step++) {
        double here = f.play.periods_us[step], before = f.play.periods_us[step - 1];
        assert_near(here + before, 750e3, NEAR);
        assert_near(fabs(here - before), 30e3, NEAR);
    }
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sub_layer_periods),
        cmocka_unit_test(sub_layer_exposed),
        cmocka_unit_test(sub_layer_rows),
        cmocka_unit_test(delayed_update),
        cmocka_unit_test(delayed_update_alternates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
