/*
 * The program's threads become the stand-in's: the linker sends their calls here (--wrap). A thread
 * that the stand-in does not know, before begin and after end, gets the real function.
 *
 * A thread that waits for a condition variable stands in no queue of the C library: who signals
 * marks it here, and it goes on when its turn comes.
 */
#include "tests/standin/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int __real_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int __real_pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                                  const struct timespec *);
int __real_pthread_cond_broadcast(pthread_cond_t *);
int __real_nanosleep(const struct timespec *, struct timespec *);
int __real_clock_nanosleep(clockid_t, int, const struct timespec *, struct timespec *);
int __real_usleep(useconds_t);
int __real_sched_yield(void);

int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_join(pthread_t, void **);
int __wrap_pthread_mutex_lock(pthread_mutex_t *);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *);
int __wrap_pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int __wrap_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int __wrap_pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                                  const struct timespec *);
int __wrap_pthread_cond_signal(pthread_cond_t *);
int __wrap_pthread_cond_broadcast(pthread_cond_t *);
int __wrap_nanosleep(const struct timespec *, struct timespec *);
int __wrap_clock_nanosleep(clockid_t, int, const struct timespec *, struct timespec *);
int __wrap_usleep(useconds_t);
int __wrap_sched_yield(void);

/* ---- threads --------------------------------------------------------------------------------- */

static void *live(void *argument)
{
    struct standin_thread *thread = argument;
    standin_await_turn(thread);
    standin_me = thread;
    thread->result = thread->body(thread->argument);
    standin_end_thread(thread);
    return thread->result;
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*body)(void *),
                          void *argument)
{
    if (!standin_me)
        return __real_pthread_create(id, attributes, body, argument);
    struct standin_thread *thread = standin_add_thread();
    thread->body = body;
    thread->argument = argument;
    int code = __real_pthread_create(&thread->id, attributes, live, thread);
    if (code != 0)
        thread->state = STANDIN_ENDED;
    *id = thread->id;
    return code;
}

static bool has_ended(const void *what)
{
    return ((const struct standin_thread *)what)->state == STANDIN_ENDED;
}

/* Ids are used again by the C library: the youngest thread of that id is meant. */
static const struct standin_thread *thread_of(pthread_t id)
{
    const struct standin_thread *found = NULL;
    for (const struct standin_thread *t = standin.threads; t; t = t->next)
        if (pthread_equal(t->id, id))
            found = t;
    return found;
}

int __wrap_pthread_join(pthread_t id, void **result)
{
    const struct standin_thread *thread = standin_me ? thread_of(id) : NULL;
    if (thread)
        standin_wait("pthread_join", has_ended, thread, false);
    return __real_pthread_join(id, result);
}

/* ---- mutexes --------------------------------------------------------------------------------- */

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!standin_me)
        return __real_pthread_mutex_lock(mutex);
    int code;
    while ((code = pthread_mutex_trylock(mutex)) == EBUSY)
        standin_poll("pthread_mutex_lock", NULL, NULL);
    return code;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int code = __real_pthread_mutex_unlock(mutex);
    if (standin_me && standin_me->lags)
        standin_give_way();
    return code;
}

/* ---- condition variables --------------------------------------------------------------------- */

struct sleeper {
    struct sleeper *next;
    const pthread_cond_t *cond;
    bool signalled;
};

static struct sleeper *sleepers; /* in the order in which they came */

static bool was_signalled(const void *what)
{
    return ((const struct sleeper *)what)->signalled;
}

static void add_sleeper(struct sleeper *sleeper)
{
    struct sleeper **end = &sleepers;
    while (*end)
        end = &(*end)->next;
    *end = sleeper;
}

static void remove_sleeper(const struct sleeper *sleeper)
{
    for (struct sleeper **at = &sleepers; *at; at = &(*at)->next)
        if (*at == sleeper) {
            *at = sleeper->next;
            return;
        }
}

static int sleep_on(pthread_cond_t *cond, pthread_mutex_t *mutex, bool timed)
{
    struct sleeper sleeper = {NULL, cond, false};
    add_sleeper(&sleeper);
    __real_pthread_mutex_unlock(mutex);
    if (timed)
        standin_poll("pthread_cond_timedwait", was_signalled, &sleeper);
    else
        standin_wait("pthread_cond_wait", was_signalled, &sleeper, false);
    remove_sleeper(&sleeper);
    __wrap_pthread_mutex_lock(mutex);
    return sleeper.signalled ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return standin_me ? sleep_on(cond, mutex, false) : __real_pthread_cond_wait(cond, mutex);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    return standin_me ? sleep_on(cond, mutex, true)
                      : __real_pthread_cond_timedwait(cond, mutex, until);
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
    return standin_me ? sleep_on(cond, mutex, true)
                      : __real_pthread_cond_clockwait(cond, mutex, clock, until);
}

static int wake(const pthread_cond_t *cond, bool all)
{
    for (struct sleeper *s = sleepers; s; s = s->next)
        if (s->cond == cond && !s->signalled) {
            s->signalled = true;
            if (!all)
                break;
        }
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    return standin_me ? wake(cond, false) : __real_pthread_cond_signal(cond);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    return standin_me ? wake(cond, true) : __real_pthread_cond_broadcast(cond);
}

/* ---- time ------------------------------------------------------------------------------------ */

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!standin_me)
        return __real_nanosleep(time, left);
    standin_poll("nanosleep", NULL, NULL);
    return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *left)
{
    if (!standin_me)
        return __real_clock_nanosleep(clock, flags, time, left);
    standin_poll("clock_nanosleep", NULL, NULL);
    return 0;
}

int __wrap_usleep(useconds_t time)
{
    if (!standin_me)
        return __real_usleep(time);
    standin_poll("usleep", NULL, NULL);
    return 0;
}

int __wrap_sched_yield(void)
{
    if (!standin_me)
        return __real_sched_yield();
    standin_poll("sched_yield", NULL, NULL);
    return 0;
}
