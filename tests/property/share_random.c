/* Random activities come, go and change: nothing is given twice, and nobody could have more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sim/share.h"
#include "tests/support/near.h"

enum { RESOURCES = 4, ACTIVITIES = 9, USES = 3, ROUNDS = 20000 };
#define TOLERANCE 1e-9

struct world {
    double capacity[RESOURCES];
    bool active[ACTIVITIES];
    double weight[ACTIVITIES], cap[ACTIVITIES];
    struct sc_share_use use[ACTIVITIES][USES];
    uint32_t uses[ACTIVITIES];
};

static double tenths(uint64_t *seed)
{
    return (double)(1 + sc_random_next(seed) % 10) / 10;
}

static void come(struct world *w, struct sc_share *share, uint32_t a, uint64_t *seed)
{
    w->active[a] = true;
    w->weight[a] = (double)(1 + sc_random_next(seed) % 3);
    w->cap[a] = tenths(seed);
    w->uses[a] = 0;
    for (uint32_t r = 0; r < RESOURCES && w->uses[a] < USES; r++)
        if (sc_random_next(seed) % 2 == 0)
            w->use[a][w->uses[a]++] = (struct sc_share_use){r, tenths(seed)};
    sc_share_add(share, a, w->use[a], w->uses[a], w->weight[a], w->cap[a]);
}

static void change(struct world *w, struct sc_share *share, uint64_t *seed)
{
    uint32_t a = (uint32_t)(sc_random_next(seed) % ACTIVITIES);
    uint64_t what = sc_random_next(seed) % 8;
    if (what == 0) {
        uint32_t r = (uint32_t)(sc_random_next(seed) % RESOURCES);
        w->capacity[r] = tenths(seed);
        sc_share_set_capacity(share, r, w->capacity[r]);
    } else if (!w->active[a]) {
        come(w, share, a, seed);
    } else if (what == 1) {
        w->cap[a] = tenths(seed);
        sc_share_set_cap(share, a, w->cap[a]);
    } else {
        w->active[a] = false;
        sc_share_remove(share, a);
    }
}

static double used(const struct world *w, const struct sc_share *share, uint32_t r)
{
    double sum = 0;
    for (uint32_t a = 0; a < ACTIVITIES; a++)
        for (uint32_t u = 0; w->active[a] && u < w->uses[a]; u++)
            if (w->use[a][u].resource == r)
                sum += w->use[a][u].demand * sc_share_speed(share, a);
    return sum;
}

/* Level of an activity: speed x largest demand / weight (capacities were 1 at the beginning). */
static double level(const struct world *w, const struct sc_share *share, uint32_t a)
{
    double most = 0;
    for (uint32_t u = 0; u < w->uses[a]; u++)
        most = w->use[a][u].demand > most ? w->use[a][u].demand : most;
    return sc_share_speed(share, a) * most / w->weight[a];
}

/* At its cap, or a full resource on which nobody has a higher level. */
static bool could_not_have_more(const struct world *w, const struct sc_share *share, uint32_t a)
{
    if (sc_share_speed(share, a) >= w->cap[a] - TOLERANCE)
        return true;
    for (uint32_t u = 0; u < w->uses[a]; u++) {
        uint32_t r = w->use[a][u].resource;
        bool highest = used(w, share, r) >= w->capacity[r] - TOLERANCE;
        for (uint32_t b = 0; b < ACTIVITIES && highest; b++)
            for (uint32_t v = 0; w->active[b] && v < w->uses[b]; v++)
                if (w->use[b][v].resource == r &&
                    level(w, share, b) > level(w, share, a) + TOLERANCE)
                    highest = false;
        if (highest)
            return true;
    }
    return false;
}

static void fair_whatever_happens(void **state)
{
    (void)state;
    struct world w = {.capacity = {1, 1, 1, 1}};
    struct sc_share *share = NULL;
    struct sc_error err = SC_ERROR_INIT;
    uint64_t seed = 5;
    assert_int_equal(sc_share_create(w.capacity, RESOURCES, ACTIVITIES, USES, &share, &err), SC_OK);
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t *changed;
        for (uint64_t n = 1 + sc_random_next(&seed) % 3; n > 0; n--)
            change(&w, share, &seed);
        sc_share_solve(share, &changed);
        for (uint32_t r = 0; r < RESOURCES; r++)
            assert_true(used(&w, share, r) <= w.capacity[r] + TOLERANCE);
        for (uint32_t a = 0; a < ACTIVITIES; a++)
            if (w.active[a]) {
                assert_true(sc_share_speed(share, a) > 0);
                assert_true(sc_share_speed(share, a) <= w.cap[a] + TOLERANCE);
                assert_true(could_not_have_more(&w, share, a));
            }
    }
    sc_share_destroy(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fair_whatever_happens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
