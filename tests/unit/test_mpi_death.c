/*
 * A process that dies in the middle of a run ends it within ten seconds; what mpirun prints names
 * its rank, and no process stays. This program starts itself under mpirun; one of the two kills
 * itself in step 2.
 */
/* ctest: labels=mpi timeout=60 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec/launch.h"
#include "tests/support/run_example.h"

enum { SKIPPED = 77 };

/* Tells its process number on the pipe that it inherits, then runs until rank 1 dies. */
static int be_a_rank(void)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result result;
    struct sc_program *program = sc_run_example();
    if (!program)
        return 1;
    printf("process %ld\n", (long)getpid());
    fflush(stdout);
    sc_run_example_options(&options, 50);
    options.transport = getenv("TEST_SOCKETS") ? SC_TRANSPORT_SOCKETS : SC_TRANSPORT_MPI;
    options.fault = (struct sc_fault){.on = true, .die = true, .rank = 1, .step = 2, .op = 8};
    return sc_run(program, &options, &result, &err) == SC_OK ? 0 : 1;
}

static void become_mpirun(int output)
{
    struct sc_error err = SC_ERROR_INIT;
    char *arguments[] = {"test", NULL};
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setpgid(0, 0);
    sc_launch_mpirun(2, arguments, &err);
    _exit(SKIPPED);
}

static size_t read_all(int from, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got;
    while (length + 1 < size && (got = read(from, text + length, size - 1 - length)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        length += got > 0 ? (size_t)got : 0;
    }
    text[length] = '\0';
    return length;
}

/* Processes of the run that are still there (the kernel removes them a moment after). */
static int left_over(const char *text)
{
    int left = 0;
    for (const char *at = text; (at = strstr(at, "process ")) != NULL; at++) {
        long number = strtol(at + 8, NULL, 10);
        if (number <= 1)
            continue;
        for (int i = 0; i < 100 && kill((pid_t)number, 0) == 0; i++)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        left += kill((pid_t)number, 0) == 0;
    }
    return left;
}

static void check_a_dying_process(void)
{
    static char text[65536];
    int pipes[2], status = 0;
    assert_int_equal(pipe(pipes), 0);
    time_t before = time(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        become_mpirun(pipes[1]);
    close(pipes[1]);
    read_all(pipes[0], text, sizeof text);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_true(time(NULL) - before < 10);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!strstr(text, "rank 1"))
        fail_msg("no word of rank 1 in: %s", text);
    assert_non_null(strstr(text, "process "));
    assert_int_equal(left_over(text), 0);
}

static void test_a_dying_process_ends_the_run(void **state)
{
    (void)state;
    unsetenv("TEST_SOCKETS");
    check_a_dying_process();
}

static void test_the_same_over_sockets(void **state)
{
    (void)state;
    setenv("TEST_SOCKETS", "1", 1);
    check_a_dying_process();
}

int main(void)
{
    if (sc_launched_by_mpi())
        return be_a_rank();
#ifndef STEPCAST_HAVE_MPI
    return SKIPPED;
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_dying_process_ends_the_run),
                                       cmocka_unit_test(test_the_same_over_sockets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
