/*
 * Collectives of the stand-in: ranks as threads with a device each, compared with plain sums; what
 * it says when members disagree, are on one device, or one of them is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <string.h>

#include "tests/standin/standin.h"

enum { RANKS = 4, COUNT = 6, SEEDS = 20 };

static void good(int code)
{
    if (code != 0)
        fail_msg("code %d: %s", code, sc_standin_complaint());
}

struct rank {
    int number;
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *x, *y; /* [RANKS COUNT] on the device */
    float host[RANKS * COUNT];
    void (*act)(struct rank *rank);
    ncclResult_t result;
    cudaError_t code;
};

/* Element i of rank r: sums of these are not exact in fp32, so their order shows. */
static float first_value(int rank, int i)
{
    return 0.1f * (float)(rank + 1) + 1e-3f * (float)(i * i) + (rank == 2 ? 1e4f : 0);
}

static void *live(void *argument)
{
    struct rank *rank = argument;
    good(cudaSetDevice(rank->number));
    good(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking));
    good(cudaMalloc((void **)&rank->x, sizeof rank->host));
    good(cudaMalloc((void **)&rank->y, sizeof rank->host));
    for (int i = 0; i < RANKS * COUNT; i++)
        rank->host[i] = first_value(rank->number, i);
    good(cudaMemcpyAsync(rank->x, rank->host, sizeof rank->host, cudaMemcpyHostToDevice,
                         rank->stream));
    if (!rank->comm)
        good(ncclCommInitRank(&rank->comm, RANKS, rank->id, rank->number));
    rank->act(rank);
    return NULL;
}

static void start_all(struct rank ranks[RANKS], pthread_t ids[RANKS], void (*act)(struct rank *))
{
    for (int r = 0; r < RANKS; r++) {
        ranks[r].number = r;
        ranks[r].act = act;
        good(pthread_create(&ids[r], NULL, live, &ranks[r]));
    }
    for (int r = 0; r < RANKS; r++)
        good(pthread_join(ids[r], NULL));
}

static void begin(uint64_t seed, struct rank ranks[RANKS])
{
    const struct sc_standin_setup setup = {.seed = seed, .devices = RANKS};
    ncclUniqueId id;
    sc_standin_begin(&setup);
    good(ncclGetUniqueId(&id));
    memset(ranks, 0, RANKS * sizeof *ranks);
    for (int r = 0; r < RANKS; r++)
        ranks[r].id = id;
}

static void run_all(uint64_t seed, struct rank ranks[RANKS], void (*act)(struct rank *))
{
    pthread_t ids[RANKS];
    begin(seed, ranks);
    start_all(ranks, ids, act);
}

static void end_clean(void)
{
    assert_string_equal(sc_standin_complaint(), "");
    sc_standin_end();
}

static void fetch(struct rank *rank, const float *from)
{
    good(
        cudaMemcpyAsync(rank->host, from, sizeof rank->host, cudaMemcpyDeviceToHost, rank->stream));
    good(cudaStreamSynchronize(rank->stream));
}

/* ((r0 + r1) + r2) + r3 */
static float sum_of(int i)
{
    float sum = first_value(0, i);
    for (int r = 1; r < RANKS; r++)
        sum += first_value(r, i);
    return sum;
}

/* ---- each of them ---------------------------------------------------------------------------- */

static void all_reduce(struct rank *rank)
{
    good(ncclAllReduce(rank->x, rank->x, RANKS * COUNT, ncclFloat32, ncclSum, rank->comm,
                       rank->stream));
    fetch(rank, rank->x);
    good(ncclCommDestroy(rank->comm));
}

static void test_all_reduce(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rank ranks[RANKS];
        run_all(seed, ranks, all_reduce);
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < RANKS * COUNT; i++)
                assert_true(ranks[r].host[i] == sum_of(i));
        end_clean();
    }
}

static void all_reduce_max(struct rank *rank)
{
    good(ncclAllReduce(rank->x, rank->y, COUNT, ncclFloat32, ncclMax, rank->comm, rank->stream));
    fetch(rank, rank->y);
}

/* rank 2 has the largest everywhere */
static void test_all_reduce_max(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(1, ranks, all_reduce_max);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            assert_true(ranks[r].host[i] == first_value(2, i));
    end_clean();
}

static void reduce_scatter(struct rank *rank)
{
    float *mine = rank->x + rank->number * COUNT;
    good(ncclReduceScatter(rank->x, mine, COUNT, ncclFloat32, ncclSum, rank->comm, rank->stream));
    fetch(rank, rank->x);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(2, ranks, reduce_scatter);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * COUNT; i++)
            assert_true(ranks[r].host[i] == (i / COUNT == r ? sum_of(i) : first_value(r, i)));
    end_clean();
}

static void all_gather(struct rank *rank)
{
    good(ncclAllGather(rank->x, rank->y, COUNT, ncclFloat32, rank->comm, rank->stream));
    fetch(rank, rank->y);
}

static void test_all_gather(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(3, ranks, all_gather);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * COUNT; i++)
            assert_true(ranks[r].host[i] == first_value(i / COUNT, i % COUNT));
    end_clean();
}

static void broadcast(struct rank *rank)
{
    good(ncclBroadcast(rank->x, rank->x, COUNT, ncclFloat32, 1, rank->comm, rank->stream));
    fetch(rank, rank->x);
}

static void test_broadcast(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(4, ranks, broadcast);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * COUNT; i++)
            assert_true(ranks[r].host[i] == first_value(i < COUNT ? 1 : r, i));
    end_clean();
}

/* A ring: to the next rank, from the one before; without a group it would wait for ever. */
static void shift(struct rank *rank)
{
    int next = (rank->number + 1) % RANKS, before = (rank->number + RANKS - 1) % RANKS;
    good(ncclGroupStart());
    good(ncclSend(rank->x, COUNT, ncclFloat32, next, rank->comm, rank->stream));
    good(ncclRecv(rank->y, COUNT, ncclFloat32, before, rank->comm, rank->stream));
    good(ncclGroupEnd());
    fetch(rank, rank->y);
}

static void test_exchange(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rank ranks[RANKS];
        run_all(seed, ranks, shift);
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < COUNT; i++)
                assert_true(ranks[r].host[i] == first_value((r + RANKS - 1) % RANKS, i));
        end_clean();
    }
}

/* One thread makes all communicators, in a group: none of them waits before its end. */
static void test_group_of_communicators(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    pthread_t ids[RANKS];
    begin(5, ranks);
    good(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        good(cudaSetDevice(r));
        good(ncclCommInitRank(&ranks[r].comm, RANKS, ranks[r].id, r));
    }
    good(ncclGroupEnd());
    start_all(ranks, ids, all_reduce);
    assert_true(ranks[3].host[0] == sum_of(0));
    end_clean();
}

/* ---- wrong use ------------------------------------------------------------------------------- */

static void unequal(struct rank *rank)
{
    size_t count = rank->number == 1 ? COUNT - 1 : COUNT;
    good(ncclAllReduce(rank->x, rank->x, count, ncclFloat32, ncclSum, rank->comm, rank->stream));
    rank->code = cudaStreamSynchronize(rank->stream);
}

static void test_members_disagree(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(6, ranks, unequal);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ranks[r].code, cudaErrorLaunchFailure);
    assert_string_equal(sc_standin_complaint(),
                        "members disagree: rank 0: ncclAllReduce of 24 bytes, rank 1: "
                        "ncclAllReduce of 20 bytes");
    sc_standin_end();
}

static void test_two_ranks_on_a_device(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    begin(7, ranks);
    good(ncclGroupStart());
    good(ncclCommInitRank(&ranks[0].comm, RANKS, ranks[0].id, 0));
    assert_int_equal(ncclCommInitRank(&ranks[1].comm, RANKS, ranks[0].id, 1), ncclInvalidUsage);
    assert_string_equal(sc_standin_complaint(),
                        "ncclCommInitRank: ranks 0 and 1 are both on device 0");
    sc_standin_end();
}

static void overlapping(struct rank *rank)
{
    rank->result =
        ncclAllReduce(rank->x, rank->x + 1, COUNT, ncclFloat32, ncclSum, rank->comm, rank->stream);
}

static void test_buffers_overlap(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(8, ranks, overlapping);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ranks[r].result, ncclInvalidArgument);
    assert_string_equal(sc_standin_complaint(),
                        "ncclAllReduce: the buffers overlap, but not as in place");
    sc_standin_end();
}

/* Rank 3 never comes. The others' wait is given up, and an abort lets the stream end. */
static void without_the_last(struct rank *rank)
{
    if (rank->number == RANKS - 1)
        return;
    good(ncclAllReduce(rank->x, rank->x, COUNT, ncclFloat32, ncclSum, rank->comm, rank->stream));
    rank->code = cudaStreamSynchronize(rank->stream);
    good(ncclCommAbort(rank->comm));
    good(cudaFree(rank->x));
}

static void test_a_member_is_missing(void **state)
{
    (void)state;
    struct rank ranks[RANKS];
    run_all(9, ranks, without_the_last);
    for (int r = 0; r < RANKS - 1; r++)
        assert_int_equal(ranks[r].code, cudaErrorLaunchFailure);
    assert_int_equal(sc_standin_totals().deadlocks, RANKS - 1);
    assert_non_null(
        strstr(sc_standin_complaint(), "in a collective: ncclAllReduce of rank 0 of 4"));
    sc_standin_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_all_reduce_max),
        cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_all_gather),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_group_of_communicators),
        cmocka_unit_test(test_members_disagree),
        cmocka_unit_test(test_two_ranks_on_a_device),
        cmocka_unit_test(test_buffers_overlap),
        cmocka_unit_test(test_a_member_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
