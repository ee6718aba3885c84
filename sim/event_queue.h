/*
 * Timers 0 .. n - 1, each set to a time or not; the earliest first, of equal times the lowest
 * number, so that a run does not depend on the history of the heap.
 */
#ifndef STEPCAST_SIM_EVENT_QUEUE_H
#define STEPCAST_SIM_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct sc_event_queue {
    uint32_t timers, count;
    uint32_t *heap;     /* [timers] numbers, heap order */
    uint32_t *position; /* [timers] where in the heap; UINT32_MAX: not set */
    double *time;       /* [timers] */
};

enum sc_status sc_event_queue_init(struct sc_event_queue *queue, uint32_t timers,
                                   struct sc_error *err);
void sc_event_queue_free(struct sc_event_queue *queue);
/* Sets or moves a timer: O(log n). */
void sc_event_queue_set(struct sc_event_queue *queue, uint32_t timer, double time);
/* Does nothing when it is not set. */
void sc_event_queue_cancel(struct sc_event_queue *queue, uint32_t timer);
/* The earliest timer; false when none is set. */
bool sc_event_queue_first(const struct sc_event_queue *queue, uint32_t *timer, double *time);

#endif
