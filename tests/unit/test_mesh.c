/* The mesh: formulas against brute force over all orders of the axes, and one worked example. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plans/mesh.h"

#define RANKS 36 /* 2 x 3 x 2 x 3 */

/* rank = tensor + T (context + C (data + D pipeline)).
 * T 2, C 3, D 2: coordinates (1, 2, 1, 1) are 1 + 2 (2 + 3 (1 + 2 x 1)) = 1 + 2 (2 + 9) = 23. */
static void worked_rank(void **state)
{
    (void)state;
    struct sc_mesh mesh;
    const int64_t at[SC_AXIS_COUNT] = {1, 2, 1, 1};
    sc_mesh_make(2, 3, 2, 3, &mesh);
    assert_int_equal(mesh.ranks, RANKS);
    assert_int_equal(sc_mesh_rank(&mesh, at), 23);
}

static void default_order_is_tensor_innermost(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_mesh mesh;
    int64_t members[4];
    sc_plan_neutral(&plan);
    plan.mesh.size[SC_TENSOR] = 2;
    plan.mesh.size[SC_DATA] = 4;
    sc_mesh_from_plan(&plan, &mesh);
    assert_int_equal(mesh.ranks, 8);
    sc_mesh_group_members(&mesh, SC_AXIS_MASK(SC_TENSOR), 5, members); /* 5 = 1 + 2 x 2 */
    assert_int_equal(members[0], 4);
    assert_int_equal(members[1], 5);
    sc_mesh_group_members(&mesh, SC_AXIS_MASK(SC_DATA), 5, members); /* 1 + 2 d */
    for (int64_t d = 0; d < 4; d++) {
        assert_int_equal(members[d], 1 + 2 * d);
    }
}

/* Ranks are numbered by counting: the innermost axis turns fastest. */
static void count_by_hand(const struct sc_mesh *mesh, int64_t table[RANKS][SC_AXIS_COUNT])
{
    int64_t rank = 0, c[SC_AXIS_COUNT];
    const enum sc_axis *order = mesh->order;
    for (c[order[3]] = 0; c[order[3]] < mesh->size[order[3]]; c[order[3]]++) {
        for (c[order[2]] = 0; c[order[2]] < mesh->size[order[2]]; c[order[2]]++) {
            for (c[order[1]] = 0; c[order[1]] < mesh->size[order[1]]; c[order[1]]++) {
                for (c[order[0]] = 0; c[order[0]] < mesh->size[order[0]]; c[order[0]]++) {
                    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
                        table[rank][axis] = c[axis];
                    }
                    rank++;
                }
            }
        }
    }
    assert_int_equal(rank, RANKS);
}

static int same_group(const int64_t *a, const int64_t *b, unsigned mask)
{
    for (unsigned axis = 0; axis < SC_AXIS_COUNT; axis++) {
        if (!(mask & SC_AXIS_MASK(axis)) && a[axis] != b[axis]) {
            return 0;
        }
    }
    return 1;
}

static void check_groups(const struct sc_mesh *mesh, int64_t table[RANKS][SC_AXIS_COUNT],
                         unsigned mask, int64_t rank)
{
    int64_t members[RANKS], count = 0;
    int64_t size = sc_mesh_group_size(mesh, mask);
    sc_mesh_group_members(mesh, mask, rank, members);
    for (int64_t other = 0; other < RANKS; other++) {
        if (!same_group(table[rank], table[other], mask)) {
            continue;
        }
        assert_true(count < size);
        assert_int_equal(members[count], other); /* ascending, none missing */
        assert_int_equal(sc_mesh_group_index(mesh, mask, other), count);
        count++;
    }
    assert_int_equal(count, size);
}

static void check_mesh(const struct sc_mesh *mesh)
{
    int64_t table[RANKS][SC_AXIS_COUNT];
    count_by_hand(mesh, table);
    for (int64_t rank = 0; rank < RANKS; rank++) {
        int64_t at[SC_AXIS_COUNT];
        sc_mesh_coordinates(mesh, rank, at);
        for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
            assert_int_equal(at[axis], table[rank][axis]);
        }
        assert_int_equal(sc_mesh_rank(mesh, table[rank]), rank);
        for (unsigned mask = 0; mask < 1u << SC_AXIS_COUNT; mask++) {
            check_groups(mesh, table, mask, rank);
        }
    }
}

/* All 24 orders: numbers of four digits in base 4 whose digits differ. */
static void every_order(void **state)
{
    (void)state;
    int orders = 0;
    for (unsigned code = 0; code < 256; code++) {
        struct sc_mesh mesh;
        unsigned seen = 0;
        sc_mesh_make(2, 3, 2, 3, &mesh);
        for (unsigned i = 0; i < SC_AXIS_COUNT; i++) {
            mesh.order[i] = (enum sc_axis)(code >> 2 * i & 3);
            seen |= SC_AXIS_MASK(mesh.order[i]);
        }
        if (seen == 0xF) {
            check_mesh(&mesh);
            orders++;
        }
    }
    assert_int_equal(orders, 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_rank),
        cmocka_unit_test(default_order_is_tensor_innermost),
        cmocka_unit_test(every_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
