/*
 * Three processes over sockets: every kind of collective, in groups of three and of one, against
 * sums written out here in rank order; many in a row, where the fast are ahead of the slow; and a
 * worker's sleep, which ends when something arrives and when another thread says so.
 */
/* ctest: labels=mpi timeout=120 ranks=3 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/host/transport.h"
#include "exec/process.h"

enum { RANKS = 3 };

#define SECOND_NS 1000000000LL

struct fixture {
    struct sc_process process;
    struct sc_mesh mesh;
    struct sc_transport *transport;
    struct sc_wake wake;
    struct sc_member *all, *alone;
};

/* Group 0 is all three, group 1 each one by itself. */
static void open_fixture(struct fixture *f)
{
    const unsigned masks[2] = {SC_AXIS_MASK(SC_DATA), SC_AXIS_MASK(SC_TENSOR)};
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_process_mpi(&f->process, &err), SC_OK);
    sc_mesh_make(1, 1, RANKS, 1, &f->mesh);
    const struct sc_transport_setup setup = {.mesh = &f->mesh,
                                             .groups = 2,
                                             .axis_masks = masks,
                                             .first_rank = f->process.index,
                                             .local_ranks = 1,
                                             .process = &f->process};
    if (sc_transport_sockets(&setup, &f->transport, &err) != SC_OK)
        fail_msg("%s", err.text);
    sc_wake_init(&f->wake);
    f->all = f->transport->functions->member(f->transport, 0, f->process.index, &f->wake);
    f->alone = f->transport->functions->member(f->transport, 1, f->process.index, &f->wake);
}

static void close_fixture(struct fixture *f)
{
    sc_transport_close(&f->transport);
    sc_wake_destroy(&f->wake);
}

/* As a worker does: tests while something moves, then sleeps. */
static void finish(struct fixture *f, struct sc_member *member,
                   const struct sc_collective *collective)
{
    struct sc_error err = SC_ERROR_INIT;
    bool done = false, moved;
    assert_int_equal(f->transport->functions->begin(member, collective, &err), SC_OK);
    while (!done) {
        unsigned ticket = sc_wake_ticket(&f->wake);
        if (f->transport->functions->test(member, &done, &moved, &err) != SC_OK)
            fail_msg("%s", err.text);
        if (!moved && !done)
            f->transport->functions->wait(f->transport, &f->wake, ticket, 20 * SECOND_NS);
    }
}

/* Values whose sums round, so that another order would give other bits. */
static float element(int64_t rank, size_t i)
{
    uint32_t word = (uint32_t)(rank + 1) * 2654435761u + (uint32_t)i * 40503u;
    return (float)((double)(word % 100003u) / 99991.0 - 0.5);
}

static float total(size_t i)
{
    return (element(0, i) + element(1, i)) + element(2, i);
}

static float *vector(int64_t rank, size_t count)
{
    float *x = calloc(count + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++)
        x[i] = element(rank, i);
    return x;
}

static void check_reductions(struct fixture *f, size_t shard, bool in_place)
{
    int64_t rank = f->process.index;
    size_t count = RANKS * shard, first = (size_t)rank * shard;
    float *x = vector(rank, count), *y = vector(rank, count);
    finish(f, f->all,
           &(struct sc_collective){
               .kind = SC_COLLECTIVE_ALL_REDUCE, .y = y, .bytes = count * sizeof(float)});
    for (size_t i = 0; i < count; i++)
        assert_true(y[i] == total(i));
    float *out = in_place ? x + first : y;
    finish(f, f->all,
           &(struct sc_collective){.kind = SC_COLLECTIVE_REDUCE_SCATTER,
                                   .x = x,
                                   .y = out,
                                   .bytes = count * sizeof(float)});
    for (size_t i = 0; i < shard; i++)
        assert_true(out[i] == total(first + i));
    free(x);
    free(y);
}

/* Bytes, so that a shard need not be whole elements. */
static void check_moves(struct fixture *f, size_t shard, bool in_place)
{
    int rank = (int)f->process.index;
    size_t bytes = RANKS * shard;
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    assert_non_null(x);
    assert_non_null(y);
    memset(x, 10 + rank, bytes);
    memset(y, 20 + rank, bytes);
    char *mine = in_place ? y + (size_t)rank * shard : x;
    memset(mine, 10 + rank, shard);
    finish(f, f->all,
           &(struct sc_collective){
               .kind = SC_COLLECTIVE_ALL_GATHER, .x = mine, .y = y, .bytes = bytes});
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(y[i], 10 + (int)(i / shard));
    for (size_t i = 0; i < bytes; i++) /* piece i / shard goes to that rank */
        x[i] = (char)(30 + 3 * rank + (int)(i / shard));
    finish(
        f, f->all,
        &(struct sc_collective){.kind = SC_COLLECTIVE_ALL_TO_ALL, .x = x, .y = y, .bytes = bytes});
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(y[i], 30 + 3 * (int)(i / shard) + rank);
    memset(y, 50 + rank, bytes);
    finish(f, f->all,
           &(struct sc_collective){.kind = SC_COLLECTIVE_BROADCAST, .y = y, .bytes = bytes});
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(y[i], 50);
    free(x);
    free(y);
}

/* Sizes around the scratch of 256 KiB (65536 elements), and several of it. */
static void test_all_kinds(void **state)
{
    struct fixture *f = *state;
    const size_t shards[] = {0, 1, 7, 16, 333, 65535, 65536, 65537, 400003};
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        check_reductions(f, shards[i], i % 2 == 0);
        check_moves(f, shards[i], i % 2 == 1);
    }
}

/* A group of one gives everybody what it has. */
static void test_alone(void **state)
{
    struct fixture *f = *state;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    finish(f, f->alone,
           &(struct sc_collective){
               .kind = SC_COLLECTIVE_REDUCE_SCATTER, .x = x, .y = y, .bytes = sizeof x});
    assert_memory_equal(x, y, sizeof x);
    finish(f, f->alone,
           &(struct sc_collective){.kind = SC_COLLECTIVE_ALL_REDUCE, .y = y, .bytes = sizeof y});
    assert_memory_equal(x, y, sizeof x);
    memset(y, 0, sizeof y);
    finish(f, f->alone,
           &(struct sc_collective){
               .kind = SC_COLLECTIVE_ALL_GATHER, .x = x, .y = y, .bytes = sizeof y});
    assert_memory_equal(x, y, sizeof x);
}

/* Rank 0 is late every time; the others' next data must wait for it. */
static void test_many_in_a_row(void **state)
{
    struct fixture *f = *state;
    enum { ROUNDS = 200, COUNT = 50 };
    float x[COUNT];
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(f->process.index + k + i);
        if (f->process.index == 0 && k % 50 == 0)
            usleep(20000);
        finish(
            f, f->all,
            &(struct sc_collective){.kind = SC_COLLECTIVE_ALL_REDUCE, .y = x, .bytes = sizeof x});
        for (int i = 0; i < COUNT; i++) /* 0 + 1 + 2 and three times k + i */
            assert_true(x[i] == (float)(3 + 3 * (k + i)));
    }
}

/* ---- the sleep ------------------------------------------------------------------------------- */

static void *wake_up(void *argument)
{
    usleep(10000);
    sc_wake_up(argument);
    return NULL;
}

/* Would time out of the test if nothing ended it. */
static void test_a_poll_ends(void **state)
{
    struct fixture *f = *state;
    int pipes[2];
    char byte = 1;
    pthread_t thread;
    assert_int_equal(pipe(pipes), 0);
    struct pollfd at[2] = {{.fd = pipes[0], .events = POLLIN}};
    unsigned ticket = sc_wake_ticket(&f->wake);
    assert_int_equal(pthread_create(&thread, NULL, wake_up, &f->wake), 0);
    sc_wake_poll(&f->wake, ticket, at, 1, 1000 * SECOND_NS);
    pthread_join(thread, NULL);
    assert_int_equal(at[0].revents, 0);
    assert_int_not_equal(sc_wake_ticket(&f->wake), ticket);
    sc_wake_poll(&f->wake, ticket, at, 1, 1000 * SECOND_NS); /* woken since: no sleep */
    assert_int_equal(write(pipes[1], &byte, 1), 1);
    sc_wake_poll(&f->wake, sc_wake_ticket(&f->wake), at, 1, 1000 * SECOND_NS);
    assert_int_equal(at[0].revents, POLLIN);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    struct fixture f = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_all_kinds, &f),
        cmocka_unit_test_prestate(test_alone, &f),
        cmocka_unit_test_prestate(test_many_in_a_row, &f),
        cmocka_unit_test_prestate(test_a_poll_ends, &f),
    };
    open_fixture(&f);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_fixture(&f);
    sc_process_end();
    return failed;
}
