/* Random programs: what must hold of every critical path and every what-if. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/sensitivity.h"
#include "tests/support/near.h"
#include "tests/support/play_random.h"

enum { PROGRAMS = 300 };
#define ROUNDING 1e-7

/* Pieces follow one another without a gap from the beginning to the end, and that is so many
 * periods of the play. */
static void the_parts_add_up(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct play_shape shape = {
            .stages = 1 + i % 3, .resources = i % 2 == 0, .held = i % 4 < 2, .issue = i % 3 > 0};
        struct play_case c;
        play_random(&c, &shape, &seed);
        c.path = true;
        c.program->steps_ahead = 1 + i % 4;
        play_run(&c, i % 7 == 0 ? 1 + i % 16 : 0);
        const struct sc_path *path = &c.play.path;
        double at = 0;
        assert_true(path->pieces.count > 0);
        for (size_t p = 0; p < path->pieces.count; p++) {
            const struct sc_path_piece *piece = &path->pieces.items[p];
            assert_near(piece->begin_us, at, ROUNDING);
            assert_true(piece->end_us > piece->begin_us);
            assert_true(piece->slowed_us <= piece->end_us - piece->begin_us + ROUNDING);
            assert_int_not_equal(piece->what, SC_PATH_START);
            at = piece->end_us;
        }
        assert_near(at, path->span_us, ROUNDING);
        if (c.play.settled)
            assert_near(path->span_us / path->periods / c.play.period_us, 1, 1e-8);
        play_end(&c);
    }
}

/* Keeping the path changes nothing else. */
static void the_play_is_the_same(void **state)
{
    (void)state;
    uint64_t seed = 12;
    for (int i = 0; i < PROGRAMS; i++) {
        const struct play_shape shape = {
            .stages = 1 + i % 3, .resources = true, .held = true, .issue = i % 2 == 0};
        struct play_case c;
        play_random(&c, &shape, &seed);
        play_run(&c, 0);
        double period = c.play.period_us;
        int steps = c.play.steps;
        c.path = true;
        play_run(&c, 0);
        assert_true(period >= c.play.period_us && period <= c.play.period_us);
        assert_int_equal(steps, c.play.steps);
        play_end(&c);
    }
}

/* The longest period of many steps: a short play may be taken for settled on a lead that a stream
 * uses up slowly. */
static double longest_period(struct play_case *c)
{
    double longest = 0;
    play_run(c, SC_PLAY_STEPS_MAX);
    for (int step = 1; step < c->play.steps; step++)
        if (c->play.periods_us[step] > longest)
            longest = c->play.periods_us[step];
    return longest;
}

/* Each kind free, and all of them: `longer` counts results above the period. */
static void free_each_kind(struct play_case *c, int *tried, int *longer)
{
    struct sc_work_kinds kinds;
    double limit = longest_period(c) * (1 + 1e-8);
    assert_int_equal(sc_work_kinds_of(c->program, &kinds, &c->error), SC_OK);
    for (uint32_t k = 0; k < kinds.kinds.count; k++) {
        double period = -1;
        assert_int_equal(sc_period_if_free(c->program, &c->prices, &c->machine, &kinds, k, false,
                                           &period, &c->error),
                         SC_OK);
        assert_true(period >= 0);
        (*tried)++;
        if (period > limit)
            (*longer)++;
    }
    double nothing = -1;
    assert_int_equal(sc_period_if_free(c->program, &c->prices, &c->machine, &kinds,
                                       SC_EVERY_WORK_KIND, true, &nothing, &c->error),
                     SC_OK);
    assert_near(nothing, 0, ROUNDING);
    sc_work_kinds_free(&kinds);
}

static void free_kinds(const struct play_shape *shape, uint64_t seed, int *tried, int *longer)
{
    *tried = *longer = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        struct play_case c;
        play_random(&c, shape, &seed);
        play_run(&c, 0);
        if (c.play.settled)
            free_each_kind(&c, tried, longer);
        play_end(&c);
    }
    assert_true(*tried > PROGRAMS);
}

/* Waits, stream order and issue alone are monotone: a free kind never makes a step longer. */
static void free_is_never_longer_without_sharing(void **state)
{
    (void)state;
    for (int stages = 1; stages <= 2; stages++) {
        const struct play_shape shape = {.stages = stages, .issue = true, .kinds = true};
        int tried, longer;
        free_kinds(&shape, (uint64_t)(20 + stages), &tried, &longer);
        assert_int_equal(longer, 0);
    }
}

/* With shared resources and held units there are scheduling anomalies, and few. */
static void free_is_seldom_longer_with_sharing(void **state)
{
    (void)state;
    const struct play_shape shape = {
        .stages = 1, .resources = true, .held = true, .issue = true, .kinds = true};
    int tried, longer;
    free_kinds(&shape, 31, &tried, &longer);
    print_message("%d of %d are scheduling anomalies\n", longer, tried);
    assert_true(longer * 10 <= tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_add_up),
        cmocka_unit_test(the_play_is_the_same),
        cmocka_unit_test(free_is_never_longer_without_sharing),
        cmocka_unit_test(free_is_seldom_longer_with_sharing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
