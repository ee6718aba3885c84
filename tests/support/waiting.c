/* One rank sleeps, the other has to wait. */
#include "tests/support/waiting.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "tests/support/run_example.h"

enum { PRODUCT = 7, STEP = 1 }; /* rank 1 waits in the all-reduce that follows */

static void sleep_once(void *context, struct sc_device *device, int64_t rank, int64_t step,
                       uint32_t op)
{
    const struct timespec second = {.tv_sec = 1};
    (void)device;
    if (rank == 0 && step == STEP && op == PRODUCT && nanosleep(&second, NULL) == 0)
        atomic_store((atomic_bool *)context, true);
}

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double sc_waiting_share(enum sc_run_transport transport)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result result;
    atomic_bool slept = false;
    struct sc_program *program = sc_run_example();
    if (program == NULL)
        return -1;
    sc_run_example_options(&options, STEP + 1);
    options.transport = transport;
    options.observer = (struct sc_observer){.before = sleep_once, .context = &slept};
    double before = processor_time();
    enum sc_status status = sc_run(program, &options, &result, &err);
    double used = processor_time() - before;
    if (status == SC_OK)
        sc_run_result_free(&result);
    else
        fprintf(stderr, "%s\n", err.text);
    sc_program_destroy(&program);
    if (transport == SC_TRANSPORT_THREADS && !atomic_load(&slept))
        return -1;
    return status == SC_OK ? used : -1;
}
