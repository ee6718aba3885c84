/*
 * A place to sleep until something may have changed. A sleeper takes a ticket, looks at what it
 * waits for, and sleeps only while no one has called sc_wake_up since the ticket; so no change is
 * missed and no lock is held while looking.
 */
#ifndef STEPCAST_EXEC_HOST_WAKE_H
#define STEPCAST_EXEC_HOST_WAKE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct sc_wake {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    atomic_uint ticket;
    atomic_int sleepers;
    int descriptor; /* of an event that wakes a poll; -1: none */
};

void sc_wake_init(struct sc_wake *wake);
void sc_wake_destroy(struct sc_wake *wake);
/* Take before looking. */
unsigned sc_wake_ticket(const struct sc_wake *wake);
void sc_wake_up(struct sc_wake *wake);
/* Returns when sc_wake_up was called after `ticket` was taken, or after `limit_ns`. Looks for
 * `spin_ns` before it gives the processor away. */
void sc_wake_sleep(struct sc_wake *wake, unsigned ticket, int64_t spin_ns, int64_t limit_ns);

/* Before the first sc_wake_poll. Where the system has no descriptor left, polls are short. */
void sc_wake_make_pollable(struct sc_wake *wake);
/* As sc_wake_sleep, but also returns when one of the descriptors is ready, and then its revents
 * says so. descriptors[count] is room for one more. */
void sc_wake_poll(struct sc_wake *wake, unsigned ticket, struct pollfd *descriptors, size_t count,
                  int64_t limit_ns);

#endif
