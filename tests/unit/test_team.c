/* The worker team: every part runs once, order of effects, splits, reuse, refusals. */
/* ctest: labels=threads */
#include "tests/support/numeric.h"

#include <stdatomic.h>
#include <unistd.h>

#include "exec/host/team.h"

enum { PARTS = 5 };

struct tally {
    int calls[PARTS];
    int parts;
    int64_t shared; /* plain memory: the team's hand-over must order it */
};

static void count_part(void *arg, int part, int parts)
{
    struct tally *t = arg;
    t->calls[part]++;
    if (part == 0)
        t->parts = parts;
}

static void each_part_runs_once_per_run(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_team *team = NULL;
    struct tally t = {{0}, 0, 0};
    assert_int_equal(sc_team_create(PARTS, NULL, &team, &err), SC_OK);
    assert_int_equal(sc_team_size(team), PARTS);
    for (int run = 1; run <= 200; run++) {
        sc_team_run(team, count_part, &t);
        if (run % 50 == 0)
            usleep(2000); /* longer than the spin: the members sleep and are woken */
        for (int p = 0; p < PARTS; p++)
            assert_int_equal(t.calls[p], run);
    }
    assert_int_equal(t.parts, PARTS);
    sc_team_destroy(&team);
    assert_null(team);
    sc_team_destroy(&team);
}

/* Member `shared % parts` alone touches the plain counter: each run must see the run before. */
static void pass_on(void *arg, int part, int parts)
{
    struct tally *t = arg;
    if (t->calls[0] % parts == part)
        t->shared = 3 * t->shared + part;
}

static void what_members_wrote_is_visible(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_team *team = NULL;
    struct tally t = {{0}, 0, 0};
    int64_t want = 0;
    assert_int_equal(sc_team_create(3, NULL, &team, &err), SC_OK);
    for (int run = 0; run < 30; run++) {
        t.calls[0] = run;
        sc_team_run(team, pass_on, &t);
        want = 3 * want + run % 3;
        assert_int_equal(t.shared, want);
    }
    sc_team_destroy(&team);
}

static void slow_part(void *arg, int part, int parts)
{
    (void)parts;
    if (part != 0)
        usleep(3000);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void caller_waits_for_slow_members(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_team *team = NULL;
    atomic_int done = 0;
    assert_int_equal(sc_team_create(3, NULL, &team, &err), SC_OK);
    for (int run = 1; run <= 5; run++) {
        sc_team_run(team, slow_part, &done);
        assert_int_equal(atomic_load(&done), 3 * run);
    }
    sc_team_destroy(&team);
}

static void no_team_is_a_team_of_one(void **state)
{
    (void)state;
    struct tally t = {{0}, 0, 0};
    sc_team_run(NULL, count_part, &t);
    assert_int_equal(t.calls[0], 1);
    assert_int_equal(t.parts, 1);
    assert_int_equal(sc_team_size(NULL), 1);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_team *team = NULL;
    const int nowhere[2] = {-1, 1 << 20};
    assert_int_equal(sc_team_create(0, NULL, &team, &err), SC_USAGE);
    assert_non_null(strstr(err.text, "at least one thread"));
    assert_int_equal(sc_team_create(2, nowhere, &team, &err), SC_MACHINE);
    assert_non_null(strstr(err.text, "core 1048576"));
    assert_null(team);
}

/* 10 rows in grains of 4 are 3 grains (4, 4, 2); two parts get 2 and 1 of them. */
static void parts_cover_the_range_in_grains(void **state)
{
    (void)state;
    struct sc_part first = sc_part_of(10, 4, 0, 2), second = sc_part_of(10, 4, 1, 2);
    assert_int_equal(first.begin, 0);
    assert_int_equal(first.end, 8);
    assert_int_equal(second.begin, 8);
    assert_int_equal(second.end, 10);
    for (int64_t count = 0; count < 40; count++)
        for (int parts = 1; parts < 7; parts++) {
            int64_t at = 0;
            for (int part = 0; part < parts; part++) {
                struct sc_part p = sc_part_of(count, 3, part, parts);
                assert_int_equal(p.begin, at);
                assert_true(p.end >= p.begin);
                at = p.end;
            }
            assert_int_equal(at, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_runs_once_per_run),
        cmocka_unit_test(what_members_wrote_is_visible),
        cmocka_unit_test(caller_waits_for_slow_members),
        cmocka_unit_test(no_team_is_a_team_of_one),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(parts_cover_the_range_in_grains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
