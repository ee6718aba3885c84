/*
 * Nothing is allocated while steps run: every allocation of the process is counted from the third
 * step on. A matrix-product library may allocate as it likes (oneDNN does, for its packed copies),
 * so the plain loop stands in for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "exec/launch.h"

/* ---- allocations are counted ----------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTED 0
#endif
#endif
#ifndef COUNTED
#define COUNTED 1
#endif

static atomic_bool counting;
static atomic_long allocations;

#if COUNTED
/* The C library's own functions, under the names it keeps for such a case. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void count(void)
{
    if (atomic_load(&counting))
        atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    count();
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    count();
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
#endif

/* ---- nothing is allocated inside a step ------------------------------------------------------ */

enum { FIRST_COUNTED = 2 };

static void count_from(void *context, struct sc_device *device, int64_t rank, int64_t step,
                       uint32_t op)
{
    (void)context;
    (void)device;
    if (rank == 0 && step == FIRST_COUNTED && op == 0)
        atomic_store(&counting, true);
}

/* The last step may end before another rank's worker has: its own teardown is not counted. */
static void count_until(void *context, struct sc_device *device, int64_t rank, int64_t step,
                        uint32_t op)
{
    const int64_t *last = context;
    (void)device;
    (void)rank;
    (void)op;
    if (step == *last)
        atomic_store(&counting, false);
}

static void check(const char *name, const char *const *set, int count)
{
    int64_t last = 4;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan;
    struct sc_run_options options;
    struct sc_run_result result;
    if (sc_plan_load(name, set, count, &plan, &err) != SC_OK)
        fail_msg("%s", err.text);
    sc_run_options_neutral(&options);
    options.warmup = 0;
    options.steps = last + 2;
    options.trace = true;
    options.observer =
        (struct sc_observer){.before = count_from, .after = count_until, .context = &last};
    atomic_store(&allocations, 0);
    if (sc_run_plan(&plan, &options, &result, &err) != SC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(atomic_load(&allocations), 0);
    /* the counter itself works */
    atomic_store(&counting, true);
    void *volatile one = malloc(10);
    atomic_store(&counting, false);
    free(one);
    assert_int_equal(atomic_load(&allocations), 1);
    sc_run_result_free(&result);
}

static void test_no_allocation_inside_a_step(void **state)
{
    (void)state;
    if (!COUNTED)
        skip();
    check("host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1", NULL, 0);
    check("host_tiny-llama_2ranks_tp2", NULL, 0);
}

/* Every kind of operation that a plan can have: two micro-batches, dropout, masks drawn again or
 * saved, attention in parts, recomputation. */
static void test_nor_of_any_technique(void **state)
{
    (void)state;
    static const char *const drawn[] = {"batch.micro_batch=2", "dropout.hidden=0.1",
                                        "dropout.attention=0.1"};
    static const char *const saved[] = {"batch.micro_batch=2", "dropout.hidden=0.1",
                                        "dropout.attention=0.1", "dropout.mask=saved",
                                        "attention.kernel=unfused"};
    static const char *const again[] = {"batch.micro_batch=2", "dropout.hidden=0.1",
                                        "recompute.granularity=full"};
    if (!COUNTED)
        skip();
    check("host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1", drawn, 3);
    check("host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1", saved, 5);
    check("host_tiny-llama_4ranks_tp2_dp2_domino2_zero1", again, 3);
}

int main(void)
{
    setenv("STEPCAST_GEMM", "plain", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_allocation_inside_a_step),
        cmocka_unit_test(test_nor_of_any_technique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
