/* ctest: labels=threads */
/* Where the host backend's threads run: ranks that are more than the cores take turns on one core
 * each, and what communicates comes first there, where the system allows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "exec/launch.h"
#include "tests/support/run_example.h"

/* Over the operations that computed and that communicated: how many, and the most cores that their
 * thread could have used; the priority (lower comes first) of the last. */
struct seen {
    const struct sc_list *list;
    atomic_int operations[2], cores[2], priority[2];
};

static void look(void *context, struct sc_device *device, int64_t rank, int64_t step, uint32_t op)
{
    struct seen *seen = context;
    int communicates = seen->list->ops.items[op].group >= 0;
    cpu_set_t set;
    (void)device;
    (void)rank;
    (void)step;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        int cores = CPU_COUNT(&set), most = atomic_load(&seen->cores[communicates]);
        while (cores > most &&
               !atomic_compare_exchange_weak(&seen->cores[communicates], &most, cores)) {
        }
    }
    atomic_store(&seen->priority[communicates], getpriority(PRIO_PROCESS, 0));
    atomic_fetch_add(&seen->operations[communicates], 1);
}

static void run_and_look(int64_t cores, struct seen *seen)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result result;
    struct sc_program *program = sc_run_example();
    assert_non_null(program);
    *seen = (struct seen){.list = &program->classes.items[0].step};
    sc_run_example_options(&options, 2);
    options.cores = cores;
    options.observer = (struct sc_observer){.before = look, .context = seen, .collectives = true};
    if (sc_run(program, &options, &result, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    sc_run_result_free(&result);
    sc_program_destroy(&program);
    assert_true(atomic_load(&seen->operations[0]) > 10);
    assert_true(atomic_load(&seen->operations[1]) > 2);
}

/* Two ranks on one core: none of their threads may go to another, be there as many as will. */
static void ranks_that_share_a_core_stay_on_it(void **state)
{
    (void)state;
    struct seen seen;
    run_and_look(1, &seen);
    assert_int_equal(atomic_load(&seen.cores[0]), 1);
    assert_int_equal(atomic_load(&seen.cores[1]), 1);
}

/* Whether this process may raise a priority is tried on a thread of its own. */
static void *raise_priority(void *allowed)
{
    *(int *)allowed = setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1) == 0;
    return NULL;
}

static void communication_comes_first(void **state)
{
    (void)state;
    struct seen seen;
    pthread_t thread;
    int allowed = 0;
    assert_int_equal(pthread_create(&thread, NULL, raise_priority, &allowed), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    run_and_look(0, &seen);
    int computation = atomic_load(&seen.priority[0]), first = atomic_load(&seen.priority[1]);
    assert_int_equal(computation, getpriority(PRIO_PROCESS, 0));
    assert_true(allowed ? first < computation : first == computation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_share_a_core_stay_on_it),
        cmocka_unit_test(communication_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
