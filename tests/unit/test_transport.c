/* Collectives among threads: naive results, odd sizes, the same bits every time. */
/* ctest: labels=threads timeout=120 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/transport.h"

enum { RANKS_MAX = 6, ELEMENTS_MAX = 5000 };

struct fixture {
    struct sc_mesh mesh;
    struct sc_transport *transport;
};

/* Ranks along the tensor axis, then along the data axis. */
static void open_fixture(struct fixture *f, int64_t tensor, int64_t data)
{
    const unsigned masks[3] = {SC_AXIS_MASK(SC_TENSOR), SC_AXIS_MASK(SC_DATA),
                               SC_AXIS_MASK(SC_TENSOR) | SC_AXIS_MASK(SC_DATA)};
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(tensor, 1, data, 1, &f->mesh);
    const struct sc_transport_setup setup = {
        .mesh = &f->mesh, .groups = 3, .axis_masks = masks, .local_ranks = f->mesh.ranks};
    assert_int_equal(sc_transport_threads(&setup, &f->transport, &err), SC_OK);
}

struct rank {
    struct fixture *f;
    struct sc_wake wake;
    pthread_t thread;
    struct sc_member *member;
    const struct sc_collective *calls; /* one behind the other */
    size_t count;
    enum sc_status status;
};

static void *take_part(void *argument)
{
    struct rank *rank = argument;
    const struct sc_transport_functions *functions = rank->f->transport->functions;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_member *member = rank->member;
    for (size_t i = 0; i < rank->count && rank->status == SC_OK; i++) {
        bool done = false, moved;
        rank->status = functions->begin(member, &rank->calls[i], &err);
        while (rank->status == SC_OK && !done) {
            unsigned ticket = sc_wake_ticket(&rank->wake);
            rank->status = functions->test(member, &done, &moved, &err);
            if (!done)
                sc_wake_sleep(&rank->wake, ticket, 0, 1000000000);
        }
    }
    return NULL;
}

/* Every rank does its `count` collectives calls[rank][...] on the group. */
static void run_all(struct fixture *f, size_t group, const struct sc_collective *const *calls,
                    size_t count)
{
    struct rank ranks[RANKS_MAX] = {{0}};
    for (int64_t r = 0; r < f->mesh.ranks; r++) {
        ranks[r] = (struct rank){.f = f, .calls = calls[r], .count = count};
        sc_wake_init(&ranks[r].wake);
        ranks[r].member = f->transport->functions->member(f->transport, group, r, &ranks[r].wake);
    }
    for (int64_t r = 0; r < f->mesh.ranks; r++)
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, take_part, &ranks[r]), 0);
    for (int64_t r = 0; r < f->mesh.ranks; r++)
        pthread_join(ranks[r].thread, NULL);
    for (int64_t r = 0; r < f->mesh.ranks; r++) {
        assert_int_equal(ranks[r].status, SC_OK);
        sc_wake_destroy(&ranks[r].wake);
    }
}

/* Values whose sums round, so that another order would give other bits. */
static float element(int64_t rank, size_t i)
{
    uint32_t word = (uint32_t)(rank + 1) * 2654435761u + (uint32_t)i * 40503u;
    return (float)((double)(word % 100003u) / 99991.0 - 0.5);
}

static float *vector(int64_t rank, size_t count)
{
    float *x = calloc(count + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++)
        x[i] = element(rank, i);
    return x;
}

/* ((x0 + x1) + x2) + ..., the order that the transport promises. */
static float total(const int64_t *ranks, size_t members, size_t i)
{
    float sum = element(ranks[0], i);
    for (size_t m = 1; m < members; m++)
        sum += element(ranks[m], i);
    return sum;
}

static void check_all_reduce(int64_t tensor, int64_t data, size_t group, unsigned mask,
                             size_t count)
{
    struct fixture f;
    float *x[RANKS_MAX];
    struct sc_collective calls[RANKS_MAX];
    const struct sc_collective *each[RANKS_MAX];
    open_fixture(&f, tensor, data);
    for (int64_t r = 0; r < f.mesh.ranks; r++) {
        x[r] = vector(r, count);
        calls[r] = (struct sc_collective){
            .kind = SC_COLLECTIVE_ALL_REDUCE, .y = x[r], .bytes = count * sizeof(float)};
        each[r] = &calls[r];
    }
    run_all(&f, group, each, 1);
    for (int64_t r = 0; r < f.mesh.ranks; r++) {
        int64_t members[RANKS_MAX];
        sc_mesh_group_members(&f.mesh, mask, r, members);
        size_t size = (size_t)sc_mesh_group_size(&f.mesh, mask);
        for (size_t i = 0; i < count; i++) {
            float expected = total(members, size, i);
            assert_memory_equal(&x[r][i], &expected, sizeof expected);
        }
        free(x[r]);
    }
    sc_transport_close(&f.transport);
}

static void test_all_reduce(void **state)
{
    (void)state;
    const size_t counts[] = {1, 3, 16, 17, 513, 1024, ELEMENTS_MAX};
    const unsigned both = SC_AXIS_MASK(SC_TENSOR) | SC_AXIS_MASK(SC_DATA);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_all_reduce(2, 1, 0, SC_AXIS_MASK(SC_TENSOR), counts[i]);
        check_all_reduce(2, 3, 1, SC_AXIS_MASK(SC_DATA), counts[i]);
        check_all_reduce(2, 2, 2, both, counts[i]);
        check_all_reduce(1, 1, 0, SC_AXIS_MASK(SC_TENSOR), counts[i]);
    }
}

/* The maximum of -3, 1, 2 is 2; of equal infinities, themselves; a NaN stays. */
static void test_maximum(void **state)
{
    (void)state;
    const float minus = -1.0f / 0.0f;
    float x0[4] = {-3, minus, 0.0f / 0.0f, 5}, x1[4] = {1, minus, 7, -5}, x2[4] = {2, minus, 1, 6};
    float out[4];
    const float *x[3] = {x0, x1, x2};
    sc_collective_reduce(SC_MAX, x, 3, out, 4);
    assert_true(out[0] == 2 && out[1] == minus && out[2] != out[2] && out[3] == 6);
}

/* Shard q of the whole is elements [q count / n, (q + 1) count / n). */
static void check_scatter(bool in_place)
{
    enum { RANKS = 3, SHARD = 335 };
    struct fixture f;
    float *x[RANKS], *y[RANKS];
    struct sc_collective calls[RANKS];
    const struct sc_collective *each[RANKS];
    open_fixture(&f, RANKS, 1);
    for (int64_t r = 0; r < RANKS; r++) {
        x[r] = vector(r, RANKS * SHARD);
        y[r] = vector(7, SHARD);
        calls[r] = (struct sc_collective){.kind = SC_COLLECTIVE_REDUCE_SCATTER,
                                          .x = x[r],
                                          .y = in_place ? x[r] + r * SHARD : y[r],
                                          .bytes = RANKS * SHARD * sizeof(float)};
        each[r] = &calls[r];
    }
    run_all(&f, 0, each, 1);
    const int64_t members[RANKS] = {0, 1, 2};
    for (int64_t r = 0; r < RANKS; r++) {
        const float *result = calls[r].y;
        for (size_t i = 0; i < SHARD; i++) {
            float expected = total(members, RANKS, (size_t)r * SHARD + i);
            assert_memory_equal(&result[i], &expected, sizeof expected);
        }
        free(x[r]);
        free(y[r]);
    }
    sc_transport_close(&f.transport);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    check_scatter(false);
    check_scatter(true);
}

/* What every rank gives at its place, in bytes that are no whole floats. */
static void check_gather(bool in_place)
{
    enum { RANKS = 4, SHARD = 333 };
    struct fixture f;
    unsigned char shard[RANKS][SHARD], whole[RANKS][RANKS * SHARD];
    struct sc_collective calls[RANKS];
    const struct sc_collective *each[RANKS];
    open_fixture(&f, 2, 2);
    for (int r = 0; r < RANKS; r++) {
        memset(shard[r], 10 + r, SHARD);
        memset(whole[r], 0, sizeof whole[r]);
        if (in_place)
            memset(whole[r] + r * SHARD, 10 + r, SHARD);
        calls[r] = (struct sc_collective){.kind = SC_COLLECTIVE_ALL_GATHER,
                                          .x = in_place ? whole[r] + r * SHARD : shard[r],
                                          .y = whole[r],
                                          .bytes = sizeof whole[r]};
        each[r] = &calls[r];
    }
    run_all(&f, 2, each, 1);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * SHARD; i++)
            assert_int_equal(whole[r][i], 10 + i / SHARD);
    sc_transport_close(&f.transport);
}

static void test_all_gather(void **state)
{
    (void)state;
    check_gather(false);
    check_gather(true);
}

/* Piece p of member q's x becomes piece q of member p's y; a broadcast copies member 0's. */
static void test_all_to_all_and_broadcast(void **state)
{
    (void)state;
    enum { RANKS = 3, PIECE = 100 };
    struct fixture f;
    int32_t x[RANKS][RANKS * PIECE], y[RANKS][RANKS * PIECE];
    struct sc_collective calls[RANKS][2];
    const struct sc_collective *each[RANKS];
    open_fixture(&f, 1, RANKS);
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < RANKS * PIECE; i++)
            x[r][i] = r * 1000 + i / PIECE;
        calls[r][0] = (struct sc_collective){
            .kind = SC_COLLECTIVE_ALL_TO_ALL, .x = x[r], .y = y[r], .bytes = sizeof y[r]};
        calls[r][1] = (struct sc_collective){
            .kind = SC_COLLECTIVE_BROADCAST, .y = x[r], .bytes = sizeof x[r]};
        each[r] = calls[r];
    }
    run_all(&f, 1, each, 2);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * PIECE; i++) {
            assert_int_equal(y[r][i], i / PIECE * 1000 + r);
            assert_int_equal(x[r][i], i / PIECE); /* rank 0's */
        }
    sc_transport_close(&f.transport);
}

/* Many in a row on one group: a fast member is at most one barrier ahead of a slow one. */
static void test_many_in_a_row(void **state)
{
    (void)state;
    enum { RANKS = 4, ROUNDS = 300, COUNT = 70 };
    struct fixture f;
    static float x[RANKS][ROUNDS][COUNT];
    static struct sc_collective calls[RANKS][ROUNDS];
    const struct sc_collective *each[RANKS];
    open_fixture(&f, RANKS, 1);
    for (int r = 0; r < RANKS; r++) {
        for (int k = 0; k < ROUNDS; k++) {
            for (int i = 0; i < COUNT; i++)
                x[r][k][i] = (float)(r + k + i);
            calls[r][k] = (struct sc_collective){
                .kind = SC_COLLECTIVE_ALL_REDUCE, .y = x[r][k], .bytes = COUNT * sizeof(float)};
        }
        each[r] = calls[r];
    }
    run_all(&f, 0, each, ROUNDS);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < ROUNDS; k++)
            for (int i = 0; i < COUNT; i++) /* 0 + 1 + 2 + 3 and four times k + i */
                assert_true(x[r][k][i] == (float)(6 + 4 * (k + i)));
    sc_transport_close(&f.transport);
}

/* Slices cover every element once, whatever the numbers. */
static void test_slices(void **state)
{
    (void)state;
    for (size_t members = 1; members <= 7; members++)
        for (size_t count = 0; count < 200; count += 13) {
            size_t at = 0;
            for (size_t m = 0; m < members; m++) {
                size_t begin, end;
                sc_collective_slice(count, m, members, &begin, &end);
                assert_int_equal(begin, at);
                assert_true(end >= begin);
                at = end;
            }
            assert_int_equal(at, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_maximum),       cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_all_gather),    cmocka_unit_test(test_all_to_all_and_broadcast),
        cmocka_unit_test(test_many_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
