/* Weighted max-min sharing, with the numbers worked out beside each case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/share.h"
#include "tests/support/near.h"

#define NEAR 1e-12

static struct sc_share *share_of(const double *capacity, uint32_t resources)
{
    struct sc_share *share = NULL;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_share_create(capacity, resources, 8, 4, &share, &err), SC_OK);
    return share;
}

static void solve(struct sc_share *share)
{
    const uint32_t *changed;
    sc_share_solve(share, &changed);
}

static void speed_is(const struct sc_share *share, uint32_t activity, double expected)
{
    assert_near(sc_share_speed(share, activity), expected, NEAR);
}

/* 30 + 50 of 100: nobody is in the way. */
static void room_for_all(void **state)
{
    (void)state;
    const double capacity = 100;
    struct sc_share *share = share_of(&capacity, 1);
    const struct sc_share_use a = {0, 30}, b = {0, 50};
    sc_share_add(share, 0, &a, 1, 1, 1);
    sc_share_add(share, 1, &b, 1, 1, 1);
    solve(share);
    speed_is(share, 0, 1);
    speed_is(share, 1, 1);
    assert_int_equal(sc_share_limit(share, 0), SC_SHARE_NONE);
    sc_share_destroy(&share);
}

/* 70 and 50 of 100: equal shares are 50 and 50, which is all that b wants. a runs at 50 / 70. */
static void seventy_and_fifty(void **state)
{
    (void)state;
    const double capacity = 100;
    struct sc_share *share = share_of(&capacity, 1);
    const struct sc_share_use a = {0, 70}, b = {0, 50};
    sc_share_add(share, 0, &a, 1, 1, 1);
    sc_share_add(share, 1, &b, 1, 1, 1);
    solve(share);
    speed_is(share, 0, 50.0 / 70);
    speed_is(share, 1, 1);
    assert_int_equal(sc_share_limit(share, 0), 0);
    sc_share_remove(share, 1);
    solve(share);
    speed_is(share, 0, 1);
    sc_share_destroy(&share);
}

/* 70, 50 and 20 of 100: 20 is granted, the others take 40 each: 40/70, 40/50, 1. */
static void the_small_is_granted(void **state)
{
    (void)state;
    const double capacity = 100;
    struct sc_share *share = share_of(&capacity, 1);
    const struct sc_share_use use[3] = {{0, 70}, {0, 50}, {0, 20}};
    for (uint32_t i = 0; i < 3; i++)
        sc_share_add(share, i, &use[i], 1, 1, 1);
    solve(share);
    speed_is(share, 0, 40.0 / 70);
    speed_is(share, 1, 40.0 / 50);
    speed_is(share, 2, 1);
    sc_share_destroy(&share);
}

/* Two of 100 with weights 3 and 1: 75 and 25. */
static void weights_divide(void **state)
{
    (void)state;
    const double capacity = 100;
    struct sc_share *share = share_of(&capacity, 1);
    const struct sc_share_use use = {0, 100};
    sc_share_add(share, 0, &use, 1, 3, 1);
    sc_share_add(share, 1, &use, 1, 1, 1);
    solve(share);
    speed_is(share, 0, 0.75);
    speed_is(share, 1, 0.25);
    sc_share_destroy(&share);
}

/* A chain of two links, 10 and 4, all demands 10: a over both, b over the first, c over the second.
 * Levels rise to 2 / 10 (c's link: a + c = 4): a and c stop at 0.2; b gets what is left of the
 * first: 10 - 2 = 8, so 0.8. */
static void a_bottleneck_frees_the_rest(void **state)
{
    (void)state;
    const double capacity[2] = {10, 4};
    struct sc_share *share = share_of(capacity, 2);
    const struct sc_share_use a[2] = {{0, 10}, {1, 10}}, b = {0, 10}, c = {1, 10};
    /* Levels are measured by the largest demand / capacity: a and c 10/4, b 10/10. With weights 2.5
     * for a and c all three rise at one speed. */
    sc_share_add(share, 0, a, 2, 2.5, 1);
    sc_share_add(share, 1, &b, 1, 1, 1);
    sc_share_add(share, 2, &c, 1, 2.5, 1);
    solve(share);
    speed_is(share, 0, 0.2);
    speed_is(share, 1, 0.8);
    speed_is(share, 2, 0.2);
    assert_int_equal(sc_share_limit(share, 0), 1);
    assert_int_equal(sc_share_limit(share, 1), 0);
    sc_share_destroy(&share);
}

/* A product takes the units whole and 0.3 of the memory, an activation the memory whole. Equal
 * dominant shares l: 0.3 l + l = 1, l = 10/13 for both. */
static void two_resources(void **state)
{
    (void)state;
    const double capacity[2] = {1, 1};
    struct sc_share *share = share_of(capacity, 2);
    const struct sc_share_use gemm[2] = {{0, 1}, {1, 0.3}}, activation = {1, 1};
    sc_share_add(share, 0, gemm, 2, 1, 1);
    sc_share_add(share, 1, &activation, 1, 1, 1);
    solve(share);
    speed_is(share, 0, 10.0 / 13);
    speed_is(share, 1, 10.0 / 13);
    sc_share_destroy(&share);
}

/* One of two equals is capped at 0.2 from elsewhere: the other takes 0.8. */
static void a_cap_leaves_room(void **state)
{
    (void)state;
    const double capacity = 1;
    struct sc_share *share = share_of(&capacity, 1);
    const struct sc_share_use use = {0, 1};
    sc_share_add(share, 0, &use, 1, 1, 1);
    sc_share_add(share, 1, &use, 1, 1, 1);
    solve(share);
    speed_is(share, 0, 0.5);
    sc_share_set_cap(share, 1, 0.2);
    solve(share);
    speed_is(share, 0, 0.8);
    speed_is(share, 1, 0.2);
    assert_int_equal(sc_share_limit(share, 1), SC_SHARE_NONE);
    sc_share_set_cap(share, 1, 1);
    solve(share);
    speed_is(share, 0, 0.5);
    speed_is(share, 1, 0.5);
    sc_share_destroy(&share);
}

/* Held units take from the capacity: 1 - 33/132 = 0.75, and back. */
static void capacity_changes(void **state)
{
    (void)state;
    const double capacity = 1;
    struct sc_share *share = share_of(&capacity, 1);
    const struct sc_share_use use = {0, 1};
    sc_share_add(share, 0, &use, 1, 1, 1);
    sc_share_set_capacity(share, 0, 0.75);
    solve(share);
    speed_is(share, 0, 0.75);
    sc_share_set_capacity(share, 0, 1);
    solve(share);
    speed_is(share, 0, 1);
    sc_share_destroy(&share);
}

/* Only those whose speed changed are reported: the third is on a resource of its own. */
static void reports_changes_only(void **state)
{
    (void)state;
    const double capacity[2] = {1, 1};
    struct sc_share *share = share_of(capacity, 2);
    const struct sc_share_use first = {0, 1}, second = {1, 1};
    const uint32_t *changed;
    sc_share_add(share, 0, &first, 1, 1, 1);
    sc_share_add(share, 2, &second, 1, 1, 1);
    assert_int_equal(sc_share_solve(share, &changed), 2);
    sc_share_add(share, 1, &first, 1, 1, 1);
    assert_int_equal(sc_share_solve(share, &changed), 2);
    assert_int_equal(changed[0] + changed[1], 1); /* 0 and 1 */
    assert_int_equal(sc_share_solve(share, &changed), 0);
    sc_share_destroy(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_for_all),
        cmocka_unit_test(seventy_and_fifty),
        cmocka_unit_test(the_small_is_granted),
        cmocka_unit_test(weights_divide),
        cmocka_unit_test(a_bottleneck_frees_the_rest),
        cmocka_unit_test(two_resources),
        cmocka_unit_test(a_cap_leaves_room),
        cmocka_unit_test(capacity_changes),
        cmocka_unit_test(reports_changes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
