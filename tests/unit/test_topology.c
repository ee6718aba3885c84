/* Ranks to nodes, groups to levels and shares, on an 8-device node and on two cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "model/topology.h"

static struct sc_hardware load(const char *name)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware;
    assert_int_equal(sc_hardware_load(name, NULL, NULL, 0, &hardware, &err), SC_OK);
    return hardware;
}

static struct sc_group_place place(const struct sc_hardware *hardware, const int64_t *ranks,
                                   int64_t count)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_group_place out;
    assert_int_equal(sc_topology_group(hardware, ranks, count, &out, &err), SC_OK);
    return out;
}

/* Every stride-th rank, from first. */
static struct sc_group_place place_stride(const struct sc_hardware *hardware, int64_t first,
                                          int64_t stride, int64_t count)
{
    int64_t ranks[64];
    for (int64_t i = 0; i < count; i++) {
        ranks[i] = first + stride * i;
    }
    return place(hardware, ranks, count);
}

static void ranks_fill_nodes_in_order(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    assert_int_equal(sc_topology_node(&h, 7), 0);
    assert_int_equal(sc_topology_node(&h, 8), 1);
    assert_int_equal(sc_topology_device(&h, 19), 3);
    assert_int_equal(sc_topology_nodes(&h, 8), 1);
    assert_int_equal(sc_topology_nodes(&h, 9), 2);
    assert_int_equal(sc_topology_instance(&h, SC_LAYOUT_SOCKET, 12), 1); /* device 4 */
    assert_int_equal(sc_topology_instance(&h, SC_LAYOUT_PCIE_SWITCH, 11), 1);
    h.has_layout[SC_LAYOUT_RAIL] = false;
    assert_int_equal(sc_topology_instance(&h, SC_LAYOUT_RAIL, 11), 0);
}

static void groups_inside_a_node(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_group_place one = place_stride(&h, 5, 1, 1);
    assert_int_equal(one.level, -1);
    assert_int_equal(one.nodes, 1);
    struct sc_group_place four = place_stride(&h, 8, 2, 4); /* 8, 10, 12, 14: all on node 1 */
    assert_string_equal(h.levels[four.level].name, "nvlink");
    assert_int_equal(four.members_per_node, 4);
    assert_true(four.share == 1.0);
}

/* One rank a node on four nodes: an eighth of the rails. All eight on two nodes: all of them. */
static void groups_across_nodes(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    struct sc_group_place thin = place_stride(&h, 3, 8, 4);
    assert_string_equal(h.levels[thin.level].name, "rail");
    assert_int_equal(thin.nodes, 4);
    assert_int_equal(thin.members_per_node, 1);
    assert_true(thin.share == 0.125);
    struct sc_group_place full = place_stride(&h, 0, 1, 16);
    assert_int_equal(full.nodes, 2);
    assert_int_equal(full.members_per_node, 8);
    assert_true(full.share == 1.0);
}

/* 6, 7 on node 0 and 8 on node 1, in any order: two nodes, the thinner one counts. */
static void uneven_groups_count_their_thinnest_node(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100");
    const int64_t ranks[] = {8, 6, 7};
    struct sc_group_place uneven = place(&h, ranks, 3);
    assert_int_equal(uneven.nodes, 2);
    assert_int_equal(uneven.members_per_node, 1);
    assert_true(uneven.share == 0.125);
}

static void transport_chooses_the_level(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = load("two-cores");
    assert_string_equal(h.levels[place_stride(&h, 0, 1, 2).level].name, "shared_memory");
    assert_int_equal(sc_hardware_use_transport(&h, "mpi", &err), SC_OK);
    assert_string_equal(h.levels[place_stride(&h, 0, 1, 2).level].name, "local_mpi");
    assert_string_equal(h.levels[place_stride(&h, 0, 2, 2).level].name, "network");
}

/* Without anything nearer, the links between nodes join one node's ranks too; the reverse fails. */
static void a_missing_level(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_group_place out;
    const int64_t across[] = {0, 8};
    struct sc_hardware far = load("dgx-h100");
    far.levels[0] = far.levels[1];
    far.level_count = 1;
    assert_string_equal(far.levels[place_stride(&far, 0, 1, 2).level].name, "rail");
    assert_true(place_stride(&far, 0, 1, 2).share == 1.0);
    struct sc_hardware near = load("dgx-h100");
    near.level_count = 1;
    assert_int_equal(sc_topology_group(&near, across, 2, &out, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "collectives.levels"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_fill_nodes_in_order),
        cmocka_unit_test(groups_inside_a_node),
        cmocka_unit_test(groups_across_nodes),
        cmocka_unit_test(uneven_groups_count_their_thinnest_node),
        cmocka_unit_test(transport_chooses_the_level),
        cmocka_unit_test(a_missing_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
