/* Sleeping without missing a change: a ticket that moves, a condition variable behind it. */
#include "exec/host/wake.h"

#include <stdbool.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* A poll that nothing can end looks again so soon. */
static const int64_t blind_ns = 1000000;

void sc_wake_init(struct sc_wake *wake)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&wake->mutex, NULL);
    pthread_cond_init(&wake->cond, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_init(&wake->ticket, 0);
    atomic_init(&wake->sleepers, 0);
    wake->descriptor = -1;
}

void sc_wake_destroy(struct sc_wake *wake)
{
    if (wake->descriptor >= 0)
        close(wake->descriptor);
    pthread_cond_destroy(&wake->cond);
    pthread_mutex_destroy(&wake->mutex);
}

unsigned sc_wake_ticket(const struct sc_wake *wake)
{
    return atomic_load(&wake->ticket);
}

/* Either the sleeper sees the moved ticket, or this sees the sleeper (both sequentially
 * consistent). */
void sc_wake_up(struct sc_wake *wake)
{
    atomic_fetch_add(&wake->ticket, 1u);
    if (atomic_load(&wake->sleepers) == 0)
        return;
    pthread_mutex_lock(&wake->mutex);
    pthread_cond_broadcast(&wake->cond);
    pthread_mutex_unlock(&wake->mutex);
    if (wake->descriptor >= 0)
        eventfd_write(wake->descriptor, 1);
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static bool spin(const struct sc_wake *wake, unsigned ticket, int64_t until)
{
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load(&wake->ticket) != ticket)
                return true;
            relax();
        }
    } while (nanoseconds() < until);
    return false;
}

void sc_wake_sleep(struct sc_wake *wake, unsigned ticket, int64_t spin_ns, int64_t limit_ns)
{
    int64_t now = nanoseconds();
    if (spin_ns > 0 && spin(wake, ticket, now + spin_ns))
        return;
    int64_t until = now + limit_ns;
    struct timespec deadline = {.tv_sec = (time_t)(until / 1000000000),
                                .tv_nsec = (long)(until % 1000000000)};
    pthread_mutex_lock(&wake->mutex);
    atomic_fetch_add(&wake->sleepers, 1);
    int code = 0;
    while (atomic_load(&wake->ticket) == ticket && code == 0)
        code = pthread_cond_timedwait(&wake->cond, &wake->mutex, &deadline);
    atomic_fetch_sub(&wake->sleepers, 1);
    pthread_mutex_unlock(&wake->mutex);
}

void sc_wake_make_pollable(struct sc_wake *wake)
{
    if (wake->descriptor < 0)
        wake->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void sc_wake_poll(struct sc_wake *wake, unsigned ticket, struct pollfd *descriptors, size_t count,
                  int64_t limit_ns)
{
    eventfd_t events = 0;
    bool blind = wake->descriptor < 0;
    int64_t limit = blind && limit_ns > blind_ns ? blind_ns : limit_ns;
    struct timespec patience = {.tv_sec = (time_t)(limit / 1000000000),
                                .tv_nsec = (long)(limit % 1000000000)};
    descriptors[count] = (struct pollfd){wake->descriptor, POLLIN, 0};
    atomic_fetch_add(&wake->sleepers, 1);
    if (atomic_load(&wake->ticket) == ticket &&
        ppoll(descriptors, (nfds_t)count + 1, &patience, NULL) > 0 && descriptors[count].revents)
        eventfd_read(wake->descriptor, &events);
    atomic_fetch_sub(&wake->sleepers, 1);
}
