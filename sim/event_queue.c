/* Indexed binary heap, see event_queue.h. */
#include "sim/event_queue.h"

#include <stdlib.h>
#include <string.h>

enum sc_status sc_event_queue_init(struct sc_event_queue *queue, uint32_t timers,
                                   struct sc_error *err)
{
    memset(queue, 0, sizeof(*queue));
    queue->timers = timers;
    queue->heap = calloc(timers + 1u, sizeof(uint32_t));
    queue->position = calloc(timers + 1u, sizeof(uint32_t));
    queue->time = calloc(timers + 1u, sizeof(double));
    if (!queue->heap || !queue->position || !queue->time) {
        sc_event_queue_free(queue);
        return sc_fail_memory(err, (timers + 1u) * sizeof(double));
    }
    memset(queue->position, 0xFF, (timers + 1u) * sizeof(uint32_t));
    return SC_OK;
}

void sc_event_queue_free(struct sc_event_queue *queue)
{
    free(queue->heap);
    free(queue->position);
    free(queue->time);
    memset(queue, 0, sizeof(*queue));
}

static bool before(const struct sc_event_queue *queue, uint32_t a, uint32_t b)
{
    double ta = queue->time[a], tb = queue->time[b];
    return ta < tb || (ta <= tb && a < b);
}

static void put(struct sc_event_queue *queue, uint32_t at, uint32_t timer)
{
    queue->heap[at] = timer;
    queue->position[timer] = at;
}

static void up(struct sc_event_queue *queue, uint32_t at)
{
    uint32_t timer = queue->heap[at];
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!before(queue, timer, queue->heap[parent]))
            break;
        put(queue, at, queue->heap[parent]);
        at = parent;
    }
    put(queue, at, timer);
}

static void down(struct sc_event_queue *queue, uint32_t at)
{
    uint32_t timer = queue->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= queue->count)
            break;
        if (child + 1 < queue->count && before(queue, queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!before(queue, queue->heap[child], timer))
            break;
        put(queue, at, queue->heap[child]);
        at = child;
    }
    put(queue, at, timer);
}

void sc_event_queue_set(struct sc_event_queue *queue, uint32_t timer, double time)
{
    uint32_t at = queue->position[timer];
    if (at == UINT32_MAX) {
        queue->time[timer] = time;
        at = queue->count++;
        put(queue, at, timer);
        up(queue, at);
        return;
    }
    bool earlier = time < queue->time[timer];
    queue->time[timer] = time;
    if (earlier)
        up(queue, at);
    else
        down(queue, at);
}

void sc_event_queue_cancel(struct sc_event_queue *queue, uint32_t timer)
{
    uint32_t at = queue->position[timer];
    if (at == UINT32_MAX)
        return;
    queue->position[timer] = UINT32_MAX;
    uint32_t last = queue->heap[--queue->count];
    if (last == timer)
        return;
    put(queue, at, last);
    up(queue, at);
    down(queue, queue->position[last]);
}

bool sc_event_queue_first(const struct sc_event_queue *queue, uint32_t *timer, double *time)
{
    if (queue->count == 0)
        return false;
    *timer = queue->heap[0];
    *time = queue->time[*timer];
    return true;
}
