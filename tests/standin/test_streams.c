/*
 * The stand-in itself: memory, streams, events, kernels, threads, what it says about wrong use, and
 * what it does on request. Products and collectives: test_products.c, test_collectives.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "exec/kernels/kernels.h"
#include "tests/standin/standin.h"

enum { SEEDS = 40, FLOATS = 16, BYTES = FLOATS * sizeof(float) };

void sc_scale(const struct sc_scale_args a, int64_t begin, int64_t end);

static void good(cudaError_t code)
{
    if (code != cudaSuccess)
        fail_msg("%s: %s", cudaGetErrorName(code), sc_standin_complaint());
}

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;
    good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaEvent_t new_event(void)
{
    cudaEvent_t event;
    good(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static float *new_floats(void)
{
    void *floats;
    good(cudaMalloc(&floats, BYTES));
    return floats;
}

static void begin(uint64_t seed)
{
    const struct sc_standin_setup setup = {.seed = seed, .devices = 2};
    sc_standin_begin(&setup);
}

static void end_clean(void)
{
    assert_string_equal(sc_standin_complaint(), "");
    sc_standin_end();
}

static void end_complaining(const char *line)
{
    assert_string_equal(sc_standin_complaint(), line);
    sc_standin_end();
}

/* Functions and objects have pointers of their own in C; the runtime takes one for the other. */
static const void *symbol_of(void (*kernel)(struct sc_scale_args, int64_t, int64_t))
{
    const void *symbol;
    memcpy(&symbol, &kernel, sizeof symbol);
    return symbol;
}

/* y = factor x, one row. */
static cudaError_t scale(float *y, const float *x, float factor, cudaStream_t stream)
{
    struct sc_scale_args a = {.x = x, .y = y, .columns = FLOATS, .factor = factor};
    int64_t first = 0, last = 1;
    void *arguments[] = {&a, &first, &last};
    a.x_stride = a.y_stride = FLOATS;
    cudaError_t code = cudaLaunchKernel(symbol_of(sc_scale), (dim3){1, 1, 1}, (dim3){32, 1, 1},
                                        arguments, 0, stream);
    memset(&a, 0, sizeof a); /* copied by the launch */
    first = last = -1;
    return code;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_without_a_device(void **state)
{
    (void)state;
    int count = 7;
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    assert_int_equal(count, 0);
}

static void test_new_memory_is_poisoned(void **state)
{
    (void)state;
    begin(1);
    cudaStream_t s = new_stream();
    float *device = new_floats(), *pinned;
    good(cudaMallocHost((void **)&pinned, BYTES));
    assert_true(isnan(pinned[0]) && isnan(pinned[FLOATS - 1]));
    float host[FLOATS] = {0};
    good(cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost, s));
    assert_true(isnan(host[0]) && isnan(host[FLOATS - 1]));
    assert_string_equal(sc_standin_left(), "2 allocations, 1 stream");
    good(cudaFree(device));
    good(cudaFreeHost(pinned));
    good(cudaStreamDestroy(s));
    assert_string_equal(sc_standin_left(), "");
    end_clean();
}

static void test_memory_has_an_end(void **state)
{
    (void)state;
    const struct sc_standin_setup setup = {.device_bytes = 1000};
    void *first, *second;
    size_t left, all;
    sc_standin_begin(&setup);
    good(cudaMalloc(&first, 600));
    assert_int_equal(cudaMalloc(&second, 401), cudaErrorMemoryAllocation);
    good(cudaMemGetInfo(&left, &all)); /* 1000 - 600 */
    assert_true(left == 400 && all == 1000);
    good(cudaFree(first));
    good(cudaMalloc(&second, 1000));
    end_clean();
}

static void test_ranges(void **state)
{
    (void)state;
    float host[FLOATS];
    begin(1);
    cudaStream_t s = new_stream();
    float *x = new_floats();
    assert_int_equal(cudaMemcpyAsync(x + 1, host, BYTES, cudaMemcpyHostToDevice, s),
                     cudaErrorInvalidValue);
    end_complaining("cudaMemcpyAsync: the destination goes 4 bytes beyond its allocation of 64");
    begin(1);
    s = new_stream();
    x = new_floats();
    assert_int_equal(cudaMemcpyAsync(x, host, BYTES, cudaMemcpyDeviceToDevice, s),
                     cudaErrorInvalidValue);
    end_complaining("cudaMemcpyAsync: the source is no memory of a device");
    begin(1);
    s = new_stream();
    x = new_floats();
    good(cudaFree(x));
    assert_int_equal(cudaMemsetAsync(x, 0, BYTES, s), cudaErrorInvalidValue);
    end_complaining("cudaMemsetAsync: the destination is freed memory");
    begin(1);
    x = new_floats();
    good(cudaFree(x));
    assert_int_equal(cudaFree(x), cudaErrorInvalidValue);
    end_complaining("cudaFree: memory is freed twice");
}

static void test_other_devices_memory(void **state)
{
    (void)state;
    begin(1);
    float *x = new_floats();
    good(cudaSetDevice(1));
    float *y = new_floats();
    cudaStream_t s = new_stream();
    assert_int_equal(scale(y, x, 2, s), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    end_complaining("cudaLaunchKernel: kernel scale: the argument at byte 0 is memory of device 0, "
                    "used on device 1");
}

/* ---- streams and events ---------------------------------------------------------------------- */

/* One stream writes 1, the other 2, to the same place: without an order both happen. */
static float race(uint64_t seed, enum sc_standin_order order, bool ordered)
{
    const struct sc_standin_setup setup = {.seed = seed, .order = order};
    float *pinned, last;
    sc_standin_begin(&setup);
    cudaStream_t s[2] = {new_stream(), new_stream()};
    float *x = new_floats(), *ones = new_floats();
    cudaEvent_t event = new_event(), made = new_event();
    good(cudaMallocHost((void **)&pinned, BYTES));
    for (int i = 0; i < FLOATS; i++)
        pinned[i] = 1;
    good(cudaMemcpyAsync(ones, pinned, BYTES, cudaMemcpyHostToDevice, s[0]));
    good(cudaEventRecord(made, s[0]));
    good(cudaStreamWaitEvent(s[1], made, 0));
    good(scale(x, ones, 1, s[0]));
    good(cudaEventRecord(event, s[0]));
    if (ordered)
        good(cudaStreamWaitEvent(s[1], event, 0));
    good(cudaEventRecord(event, s[1])); /* a later record: the wait is for the one before */
    good(scale(x, ones, 2, s[1]));
    assert_true(isnan(x[0])); /* nothing runs before somebody waits */
    good(cudaDeviceSynchronize());
    last = x[FLOATS - 1];
    end_clean();
    return last;
}

static void test_events_order(void **state)
{
    (void)state;
    const enum sc_standin_order orders[] = {SC_STANDIN_PRIORITIES, SC_STANDIN_UNIFORM};
    for (int o = 0; o < 2; o++) {
        int ones = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            assert_true(race(seed, orders[o], true) == 2);
            float last = race(seed, orders[o], false);
            assert_true(last == 1 || last == 2);
            assert_true(last == race(seed, orders[o], false)); /* a seed repeats */
            ones += last == 1;
        }
        assert_in_range(ones, SEEDS / 5, SEEDS - SEEDS / 5);
    }
    assert_true(race(0, SC_STANDIN_ISSUE, false) == 2);
}

static void test_a_wait_left_out(void **state)
{
    (void)state;
    int wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct sc_standin_setup setup = {.seed = seed, .skip_wait = 1};
        sc_standin_begin(&setup);
        cudaStream_t s[2] = {new_stream(), new_stream()};
        cudaEvent_t event = new_event();
        float *x = new_floats(), *y = new_floats();
        good(cudaMemsetAsync(x, 0, BYTES, s[0]));
        good(cudaEventRecord(event, s[0]));
        good(cudaStreamWaitEvent(s[1], event, 0));
        good(scale(y, x, 1, s[1]));
        good(cudaDeviceSynchronize());
        assert_int_equal(sc_standin_totals().waits[0], 1);
        assert_int_equal(sc_standin_totals().operations, 2);
        wrong += isnan(y[0]);
        end_clean();
    }
    assert_in_range(wrong, SEEDS / 5, SEEDS - SEEDS / 5);
}

static void test_destroyed_handles(void **state)
{
    (void)state;
    begin(1);
    cudaStream_t s = new_stream();
    good(cudaStreamDestroy(s));
    assert_int_equal(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    end_complaining("cudaStreamSynchronize: this stream is destroyed, or never was");
    begin(1);
    cudaEvent_t event = new_event();
    good(cudaEventDestroy(event));
    assert_int_equal(cudaEventSynchronize(event), cudaErrorInvalidResourceHandle);
    end_complaining("cudaEventSynchronize: this event is destroyed, or never was");
    begin(1);
    float *x = new_floats();
    assert_int_equal(cudaMemsetAsync(x, 0, BYTES, NULL), cudaErrorInvalidResourceHandle);
    end_complaining("cudaMemsetAsync: the default stream");
}

static void test_launches(void **state)
{
    (void)state;
    void *arguments[] = {NULL, NULL, NULL};
    begin(1);
    cudaStream_t s = new_stream();
    assert_int_equal(cudaLaunchKernel((const void *)&arguments, (dim3){1, 1, 1}, (dim3){32, 1, 1},
                                      arguments, 0, s),
                     cudaErrorInvalidDeviceFunction);
    end_complaining("cudaLaunchKernel: the symbol is no kernel");
    begin(1);
    s = new_stream();
    assert_int_equal(
        cudaLaunchKernel(symbol_of(sc_scale), (dim3){1, 1, 1}, (dim3){40, 1, 1}, arguments, 0, s),
        cudaErrorInvalidConfiguration);
    end_complaining("cudaLaunchKernel: kernel scale: a grid of 1 x 1 x 1 blocks of 40 x 1 x 1 "
                    "threads");
}

/* Rows of 8 bytes out of rows of 16. */
static void test_copies_of_rows(void **state)
{
    (void)state;
    float host[FLOATS], back[FLOATS / 2];
    begin(3);
    cudaStream_t s = new_stream();
    float *x = new_floats();
    for (int i = 0; i < FLOATS; i++)
        host[i] = (float)i;
    good(cudaMemcpyAsync(x, host, BYTES, cudaMemcpyHostToDevice, s));
    memset(host, 0, sizeof host); /* other memory of the host is read at the call */
    good(cudaMemcpy2DAsync(back, 8, x, 16, 8, FLOATS / 4, cudaMemcpyDeviceToHost, s));
    for (int i = 0; i < FLOATS / 2; i++)
        assert_true(back[i] == (float)(i / 2 * 4 + i % 2));
    end_clean();
}

/* ---- waiting for ever ------------------------------------------------------------------------ */

static void test_deadlock(void **state)
{
    (void)state;
    uint32_t *flag;
    begin(1);
    good(cudaMallocHost((void **)&flag, sizeof *flag));
    *flag = 3;
    cudaStream_t s = new_stream();
    assert_int_equal(cuStreamWaitValue32(s, (CUdeviceptr)flag, 4, CU_STREAM_WAIT_VALUE_GEQ),
                     CUDA_SUCCESS);
    assert_int_equal(cudaStreamSynchronize(s), cudaErrorLaunchFailure);
    assert_int_equal(sc_standin_totals().deadlocks, 1);
    end_complaining("nothing can go on; thread 1 in cudaStreamSynchronize; stream 2 of device 0: "
                    "waits for the word 4, found 3");
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool asked;
    cudaEvent_t event;
    float *pinned;
    _Atomic uint32_t *flag;
};

/* Sleeps until asked, waits for the device, writes, and lets the device go on. */
static void *work(void *argument)
{
    struct worker *w = argument;
    pthread_mutex_lock(&w->mutex);
    while (!w->asked)
        pthread_cond_wait(&w->cond, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    good(cudaEventSynchronize(w->event));
    for (int i = 0; i < FLOATS; i++)
        w->pinned[i] += 1;
    atomic_store(w->flag, 1);
    return NULL;
}

/* x = 5 -> pinned, + 1 by the worker, -> y, y = 2 y: 12. */
static void test_host_worker(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct worker w = {.asked = false};
        pthread_t id;
        void *flag;
        begin(seed);
        cudaStream_t s = new_stream();
        float *x = new_floats(), *y = new_floats();
        pthread_mutex_init(&w.mutex, NULL);
        pthread_cond_init(&w.cond, NULL);
        w.event = new_event();
        good(cudaMallocHost((void **)&w.pinned, BYTES));
        good(cudaMallocHost(&flag, sizeof(uint32_t)));
        w.flag = flag;
        atomic_store(w.flag, 0);
        for (int i = 0; i < FLOATS; i++)
            w.pinned[i] = 5;
        assert_int_equal(pthread_create(&id, NULL, work, &w), 0);
        good(cudaMemcpyAsync(x, w.pinned, BYTES, cudaMemcpyHostToDevice, s));
        good(cudaMemcpyAsync(w.pinned, x, BYTES, cudaMemcpyDeviceToHost, s));
        good(cudaEventRecord(w.event, s));
        assert_int_equal(cuStreamWaitValue32(s, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_GEQ),
                         CUDA_SUCCESS);
        good(cudaMemcpyAsync(y, w.pinned, BYTES, cudaMemcpyHostToDevice, s));
        good(scale(y, y, 2, s));
        pthread_mutex_lock(&w.mutex);
        w.asked = true;
        pthread_cond_signal(&w.cond);
        pthread_mutex_unlock(&w.mutex);
        while (cudaStreamQuery(s) == cudaErrorNotReady)
            ;
        assert_true(y[0] == 12 && y[FLOATS - 1] == 12);
        assert_int_equal(pthread_join(id, NULL), 0);
        pthread_mutex_destroy(&w.mutex);
        pthread_cond_destroy(&w.cond);
        end_clean();
    }
}

struct late {
    cudaStream_t stream;
    cudaEvent_t event;
};

/* Another record of the event, which nothing ever reaches. */
static void *record_again(void *argument)
{
    const struct late *late = argument;
    void *flag;
    good(cudaMallocHost(&flag, sizeof(uint32_t)));
    *(uint32_t *)flag = 0;
    assert_int_equal(
        cuStreamWaitValue32(late->stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ),
        CUDA_SUCCESS);
    good(cudaEventRecord(late->event, late->stream));
    return NULL;
}

/* A thread that waits for an event does not wait for a record that comes later. */
static void test_a_later_record(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        pthread_t id;
        begin(seed);
        struct late late = {new_stream(), new_event()};
        float *x = new_floats();
        good(cudaMemsetAsync(x, 0, BYTES, late.stream));
        good(cudaEventRecord(late.event, late.stream));
        assert_int_equal(pthread_create(&id, NULL, record_again, &late), 0);
        good(cudaEventSynchronize(late.event));
        assert_true(x[0] == 0);
        assert_int_equal(pthread_join(id, NULL), 0);
        end_clean();
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void test_a_call_fails(void **state)
{
    (void)state;
    const struct sc_standin_setup setup = {.fail_call = 2};
    cudaStream_t s;
    void *x;
    sc_standin_begin(&setup);
    good(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    assert_int_equal(cudaMalloc(&x, 8), cudaErrorMemoryAllocation);
    assert_string_equal(sc_standin_failed(), "cudaMalloc");
    good(cudaMalloc(&x, 8));
    assert_int_equal(sc_standin_totals().calls, 3);
    end_clean();
}

static void test_all_calls_fail(void **state)
{
    (void)state;
    const struct sc_standin_setup setup = {.fail_call = 2, .fail_all = true};
    void *x, *y;
    sc_standin_begin(&setup);
    good(cudaMalloc(&x, 8));
    assert_int_equal(cudaMalloc(&y, 8), cudaErrorMemoryAllocation);
    assert_int_equal(cudaFree(x), cudaErrorUnknown); /* and yet it is free */
    assert_string_equal(sc_standin_left(), "");
    end_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_device),
        cmocka_unit_test(test_new_memory_is_poisoned),
        cmocka_unit_test(test_memory_has_an_end),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_other_devices_memory),
        cmocka_unit_test(test_events_order),
        cmocka_unit_test(test_a_wait_left_out),
        cmocka_unit_test(test_destroyed_handles),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_copies_of_rows),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_host_worker),
        cmocka_unit_test(test_a_later_record),
        cmocka_unit_test(test_a_call_fails),
        cmocka_unit_test(test_all_calls_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
