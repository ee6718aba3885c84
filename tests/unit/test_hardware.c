/* Hardware profiles: the shipped files, changes by path, cores among ranks, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hardware.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-12 * fabs(b))

static struct sc_hardware load(const char *name, const char *const *set, int count)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware;
    if (sc_hardware_load(name, NULL, set, count, &hardware, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return hardware;
}

static void refuse_set(const char *setting, const char *word, const char *other)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware hardware;
    assert_int_equal(sc_hardware_load("dgx-h100", NULL, &setting, 1, &hardware, &err),
                     SC_BAD_INPUT);
    if (strstr(err.text, word) == NULL || strstr(err.text, other) == NULL) {
        fail_msg("%s", err.text);
    }
    assert_null(strchr(err.text, '\n'));
}

/* ---- shipped files ---- */

static bool named_in(const cJSON *source, const char *key)
{
    return cJSON_IsString(source) || (cJSON_IsObject(source) && key != NULL &&
                                      cJSON_GetObjectItemCaseSensitive(source, key) != NULL);
}

/* Every number below has a source: a string beside it or above it, or its key in such an object. */
static void check_sourced(const cJSON *item, bool covered)
{
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(item, "source");
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        bool has_source = covered || named_in(source, child->string);
        if (cJSON_IsNumber(child) && !has_source) {
            fail_msg("number without a source: %s", child->string ? child->string : "(entry)");
        }
        if (child != source) {
            check_sourced(child, has_source);
        }
    }
}

static void a_number_without_source_is_noticed(void **state)
{
    (void)state;
    cJSON *object = cJSON_Parse("{\"a\":{\"b\":1,\"source\":{\"b\":\"x\"}},\"c\":[{\"d\":2}],"
                                "\"source\":{\"c\":\"y\"}}");
    const cJSON *inner = cJSON_GetObjectItem(object, "a");
    assert_true(named_in(cJSON_GetObjectItem(inner, "source"), "b"));
    assert_false(named_in(cJSON_GetObjectItem(inner, "source"), "c"));
    assert_false(named_in(cJSON_GetObjectItem(object, "source"), "a"));
    assert_false(named_in(NULL, "a"));
    check_sourced(object, false);
    cJSON_Delete(object);
}

static struct sc_hardware reread(const struct sc_hardware *hardware)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    struct sc_hardware again;
    cJSON *json = sc_hardware_to_json(hardware);
    char *text = cJSON_Print(json);
    assert_non_null(text);
    assert_int_equal(sc_json_parse(text, "again", &doc, &err), SC_OK);
    struct sc_json root = sc_json_root(&doc);
    if (sc_hardware_parse(&root, &again, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    sc_json_doc_free(&doc);
    free(text);
    cJSON_Delete(json);
    return again;
}

static enum sc_status check_shipped(void *context, const char *name,
                                    const struct sc_hardware *hardware, struct sc_error *err)
{
    int *count = context;
    char file[1024];
    struct sc_json_doc doc;
    snprintf(file, sizeof(file), STEPCAST_SOURCE_DIR "/hw_profiles/%s.json", name);
    SC_TRY(sc_json_read(file, &doc, err));
    check_sourced(doc.root, false);
    sc_json_doc_free(&doc);
    assert_string_equal(hardware->name, name);
    struct sc_hardware again = reread(hardware);
    assert_memory_equal(hardware, &again, sizeof(again));
    ++*count;
    return SC_OK;
}

static void shipped_profiles_are_sourced_and_survive_writing(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    int count = 0;
    assert_int_equal(sc_hardware_list(check_shipped, &count, &err), SC_OK);
    assert_true(count >= 3);
}

static void units_become_si(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100", NULL, 0);
    assert_int_equal(h.node.devices, 8);
    assert_true(h.device.peak[SC_PEAK_BF16] == 989e12);
    assert_true(h.device.memory_bandwidth == 3350e9);
    assert_true(h.device.memory_draw == 3350e9);
    assert_true(h.device.multiprocessors == 132.0);
    assert_true(h.issue.kernel_s == 4.0 / 1e6);
    assert_true(h.places[SC_HW_DEVICE].capacity_bytes == 81559.0 * 1024 * 1024);
    assert_true(h.places[SC_HW_DISK].read_bandwidth == 20e9);
    assert_int_equal(h.layout[SC_LAYOUT_PCIE_SWITCH][5], 2);
    assert_string_equal(h.links[sc_hardware_host_link(&h)].name, "pcie");
    assert_non_null(sc_hardware_link(&h, "rail"));
    assert_null(sc_hardware_link(&h, "railing"));
    sc_hardware_free(&h);
    assert_int_equal(h.node.devices, 0);
}

/* A device has its own memory; a node's 2 TiB are divided among eight. */
/* A profile says where it was measured, and writing it back keeps that; most say nothing. */
static void the_machine_of_a_profile(void **state)
{
    (void)state;
    const char *set[] = {"hw.measured_on.processor=abacus", "hw.measured_on.cores=2"};
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = load("two-cores", set, 2), back;
    assert_string_equal(h.measured_on.processor, "abacus");
    assert_int_equal(h.measured_on.cores, 2);
    assert_string_equal(h.measured_on.library, "");
    cJSON *written = sc_hardware_to_json(&h);
    struct sc_json root = {.item = written, .file = "written"};
    assert_int_equal(sc_hardware_parse(&root, &back, &err), SC_OK);
    assert_memory_equal(&back.measured_on, &h.measured_on, sizeof(h.measured_on));
    cJSON_Delete(written);
    h = load("dgx-h100", NULL, 0);
    assert_true(sc_identity_empty(&h.measured_on));
    written = sc_hardware_to_json(&h);
    assert_null(cJSON_GetObjectItemCaseSensitive(written, "measured_on"));
    cJSON_Delete(written);
    refuse_set("hw.measured_on.cores=0", "measured_on.cores", "1 to");
    refuse_set("hw.measured_on.procesor=x", "procesor", "processor");
}

static void capacity_of_one_device(void **state)
{
    (void)state;
    struct sc_hardware h = load("dgx-h100", NULL, 0);
    assert_true(sc_hardware_capacity(&h, SC_HW_DEVICE) == 85520809984.0);
    assert_true(sc_hardware_capacity(&h, SC_HW_HOST) == 2199023255552.0 / 8.0);
    h.places[SC_HW_HOST].present = false;
    assert_true(sc_hardware_capacity(&h, SC_HW_HOST) == 0.0);
}

/* ---- --set ---- */

static void set_changes_single_numbers(void **state)
{
    (void)state;
    const char *const set[] = {"hw.links.rail.bandwidth_gb_per_s=96", "batch.micro_batch=3",
                               "hw.collectives.levels.rail.nccl.call_us=7.5"};
    struct sc_hardware h = load("dgx-h100", set, 3);
    assert_true(sc_hardware_link(&h, "rail")->bandwidth == 96e9);
    assert_true(h.levels[1].nccl.call_s == 7.5 / 1e6);
    struct sc_hardware again = reread(&h);
    assert_memory_equal(&h, &again, sizeof(again));
}

/* dgx-h100, rails of 48 GB/s: 8 channels of 48, trees of 45, heads of 48. Half as fast: 24 and 24,
 * trees stay 20 as they are set themselves. Twice as fast: heads 96; rings are past the 12 x 30
 * that NVLink reaches inside a node as stated and stay 48, trees come to 360 / 8 = 45 and stay too.
 * NVLink's own figures stay. */
static void collectives_follow_their_link(void **state)
{
    (void)state;
    const char *const slow[] = {"hw.links.rail.bandwidth_gb_per_s=24",
                                "hw.collectives.levels.rail.nccl.tree_bandwidth_gb_per_s=20"};
    struct sc_hardware h = load("dgx-h100", slow, 2);
    NEAR(h.levels[1].nccl.ring_bandwidth, 24e9);
    NEAR(h.levels[1].nccl.nvls_inter_bandwidth, 24e9);
    NEAR(h.levels[1].nccl.network_limit_factor, 1.0);
    NEAR(h.levels[1].nccl.nvls_bandwidth, 40e9);
    NEAR(h.levels[1].nccl.tree_bandwidth, 20e9);
    const char *const fast[] = {"hw.links.rail.bandwidth_gb_per_s=96"};
    h = load("dgx-h100", fast, 1);
    NEAR(h.levels[1].nccl.nvls_inter_bandwidth, 96e9);
    NEAR(h.levels[1].nccl.network_limit_factor, 2.0);
    NEAR(h.levels[1].nccl.ring_bandwidth, 48e9);
    NEAR(h.levels[1].nccl.tree_bandwidth, 45e9);
    NEAR(h.levels[0].nccl.ring_bandwidth, 30e9);
    const char *const node[] = {"hw.links.nvlink.bandwidth_gb_per_s=185.4"};
    h = load("dgx-h100", node, 1);
    NEAR(h.levels[0].nccl.ring_bandwidth, 15e9);
    NEAR(h.levels[0].nccl.nvls_bandwidth, 20e9);
    NEAR(h.levels[1].nccl.ring_bandwidth, 48e9);
}

/* Stated figures follow as well. two-cores, a network of 1.1 GB/s whose all-reduces reach 1.0: at
 * 0.55 they reach 0.5; at 11, carried by MPI, not 10 but the 1.5 that local_mpi reaches. */
static void stated_figures_follow_their_link(void **state)
{
    (void)state;
    const char *const slow[] = {"hw.links.network.bandwidth_gb_per_s=0.55"};
    const char *const fast[] = {"hw.links.network.bandwidth_gb_per_s=11",
                                "hw.links.network.transport=mpi"};
    struct sc_hardware h = load("two-cores", slow, 1);
    const struct sc_hw_level *network = &h.levels[h.level_count - 1];
    assert_string_equal(network->name, "network");
    NEAR(network->all_reduce.bus_bandwidth, 0.5e9);
    h = load("two-cores", fast, 2);
    NEAR(network->all_reduce.bus_bandwidth, 1.5e9);
    NEAR(network->other.bus_bandwidth, 1.5e9);
}

/* Tiles and NCCL's numbers as they should be, one line where they are not. */
static void structure_is_checked(void **state)
{
    (void)state;
    const char *const set[] = {"hw.compute.gemm.tiles=[[64,32]]"};
    struct sc_hardware h = load("dgx-h100", set, 1);
    assert_int_equal(h.compute.gemm_tile_count, 1);
    assert_int_equal(h.compute.gemm_tiles[0][1], 32);
    refuse_set("hw.compute.gemm.tiles=[[64]]", "compute.gemm.tiles[0]", "two numbers");
    refuse_set("hw.compute.gemm.tiles=[[64,0]]", "compute.gemm.tiles[0][1]", "from 1 to");
    refuse_set("hw.collectives.levels.rail.nccl.generation=turing", "nccl.generation", "hopper");
    refuse_set("hw.collectives.levels.rail.nccl={\"generation\":\"ampere\"}", "ring_channels",
               "found nothing");
    refuse_set("hw.collectives.levels.rail.nccl={\"generation\":\"hopper\",\"ring_channels\":8,"
               "\"ring_bandwidth_gb_per_s\":48,\"nvls_heads\":8}",
               "nvls_bandwidth_gb_per_s", "found nothing");
    refuse_set("hw.collectives.levels.nvlink={}", "collectives.levels.nvlink.all_reduce",
               "found nothing");
}

static void wrong_numbers_are_one_line(void **state)
{
    (void)state;
    refuse_set("hw.links.rail.bandwidth_gb_per_s=0", "links.rail.bandwidth_gb_per_s", "at least");
    refuse_set("hw.links.rail.bandwith_gb_per_s=1", "bandwith_gb_per_s", "bandwidth_gb_per_s");
    refuse_set("hw.issue.kernel_us=fast", "issue.kernel_us", "a number");
    refuse_set("hw.node.devices=4", "device_layout", "node.devices is 4");
    refuse_set("hw.links.nvlink.level=0", "collectives.levels.nvlink", "a link that has a level");
    refuse_set("hw.places.disk.per=rack", "places.disk.per", "\"node\"");
    refuse_set("hw.node.source=7", "node.source", "a string");
    refuse_set("hw.device.kind=core", "device.kind", "did you mean \"cores\"");
}

/* Taking out a needed object or number names it. */
static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const char *const paths[][2] = {
        {NULL, "places"},
        {NULL, "issue"},
        {"node", "devices"},
        {"device", "multiprocessors"},
        {"device", "memory_bandwidth_gb_per_s"},
        {"device", "peak_tflop_per_s"},
        {"collectives", "levels"},
        {"compute", "gemm"},
        {"compute", "adam"},
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_json_doc doc;
        struct sc_hardware hardware;
        const char *file = STEPCAST_SOURCE_DIR "/hw_profiles/dgx-h100.json";
        assert_int_equal(sc_json_read(file, &doc, &err), SC_OK);
        cJSON *parent = paths[i][0] ? cJSON_GetObjectItem(doc.root, paths[i][0]) : doc.root;
        cJSON_DeleteItemFromObject(parent, paths[i][1]);
        struct sc_json root = sc_json_root(&doc);
        assert_int_equal(sc_hardware_parse(&root, &hardware, &err), SC_BAD_INPUT);
        assert_non_null(strstr(err.text, paths[i][1]));
        assert_non_null(strstr(err.text, "found nothing"));
        sc_json_doc_free(&doc);
    }
}

static void unknown_profile_suggests(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h;
    assert_int_equal(sc_hardware_load("dgx-h10", NULL, NULL, 0, &h, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "dgx-h100"));
    const char *set = "hw.node.devices";
    assert_int_equal(sc_hardware_load("dgx-h100", NULL, &set, 1, &h, &err), SC_USAGE);
}

/* ---- cores ---- */

/* Two cores of 0.18 TFLOP/s, efficiency 1 and 0.95; node 20 GB/s, one core draws 12.
 * One rank: 2 x 0.95 x 0.18 = 0.342 TFLOP/s, min(24, 20) = 20 GB/s.
 * Two ranks: 0.18 each, 12 GB/s each. Four ranks: half a core each: 0.09, 6. */
static void cores_are_divided_among_ranks(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = load("two-cores", NULL, 0);
    assert_int_equal(h.node.devices, 2);
    NEAR(h.device.peak[SC_PEAK_FP32], 0.18e12);
    NEAR(h.device.memory_draw, 12e9);
    assert_int_equal(sc_hardware_divide(&h, 1, &err), SC_OK);
    NEAR(h.device.peak[SC_PEAK_FP32], 0.342e12);
    NEAR(h.device.memory_draw, 20e9);
    NEAR(h.device.multiprocessors, 2.0);
    NEAR(sc_hardware_capacity(&h, SC_HW_DEVICE), 4294967296.0);
    assert_int_equal(sc_hardware_divide(&h, 4, &err), SC_OK);
    NEAR(h.device.peak[SC_PEAK_FP32], 0.09e12);
    NEAR(h.device.memory_draw, 6e9);
    NEAR(h.device.units_speed, 0.5);
    NEAR(sc_hardware_capacity(&h, SC_HW_DEVICE), 4294967296.0 / 4.0);
}

/* Three of four cores with efficiencies 1, 0.9, 0.6, 0.4 (ranks: 4/3 cores -> 1 - 0.1/3). */
static void efficiency_between_whole_cores(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    const char *const set[] = {"hw.device.parallel_efficiency=[1.0,0.9,0.6,0.4]",
                               "hw.node.cores=4"};
    struct sc_hardware h = load("two-cores", set, 2);
    assert_int_equal(sc_hardware_divide(&h, 3, &err), SC_OK);
    NEAR(h.device.units_speed, 4.0 / 3.0 * (1.0 - 0.1 / 3.0));
    const char *const more[] = {"hw.node.cores=64", "hw.node.devices=1"};
    struct sc_hardware wide = load("two-cores", more, 2); /* beyond the list: its last entry */
    NEAR(wide.device.units_speed, 64.0 * 0.95);
}

static void too_many_ranks_are_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = load("dgx-h100", NULL, 0);
    assert_int_equal(sc_hardware_divide(&h, 9, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "1 to 8"));
    assert_int_equal(sc_hardware_divide(&h, 2, &err), SC_OK);
    assert_int_equal(h.node.devices, 8);
}

static void transports(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_hardware h = load("two-cores", NULL, 0);
    assert_string_equal(h.transport, "threads");
    assert_int_equal(sc_hardware_use_transport(&h, "mpi", &err), SC_OK);
    assert_string_equal(h.transport, "mpi");
    struct sc_hardware one = load("two-cores", (const char *[]){"hw.links.network.level=1"}, 1);
    one.links[2].level = 0; /* else the untied network serves any transport */
    assert_int_equal(sc_hardware_use_transport(&one, "pigeons", &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "threads, mpi"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_without_source_is_noticed),
        cmocka_unit_test(shipped_profiles_are_sourced_and_survive_writing),
        cmocka_unit_test(units_become_si),
        cmocka_unit_test(the_machine_of_a_profile),
        cmocka_unit_test(capacity_of_one_device),
        cmocka_unit_test(set_changes_single_numbers),
        cmocka_unit_test(collectives_follow_their_link),
        cmocka_unit_test(stated_figures_follow_their_link),
        cmocka_unit_test(structure_is_checked),
        cmocka_unit_test(wrong_numbers_are_one_line),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(unknown_profile_suggests),
        cmocka_unit_test(cores_are_divided_among_ranks),
        cmocka_unit_test(efficiency_between_whole_cores),
        cmocka_unit_test(too_many_ranks_are_refused),
        cmocka_unit_test(transports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
