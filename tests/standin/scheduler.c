/*
 * Whose turn it is. Threads and streams are drawn from one pool: a thread that goes on late finds
 * the device far ahead, a stream that goes on late is overtaken by all others; both are what a
 * missing order needs to show.
 */
#include "tests/standin/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { IDLE_POLLS = 20000 };

struct standin standin;
_Thread_local struct standin_thread *standin_me;

static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- lines ----------------------------------------------------------------------------------- */

void standin_complain(const char *format, ...)
{
    va_list list;
    if (standin.complaint[0])
        return;
    va_start(list, format);
    vsnprintf(standin.complaint, sizeof standin.complaint, format, list);
    va_end(list);
}

static void append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list list;
    va_start(list, format);
    vsnprintf(out + used, size - used, format, list);
    va_end(list);
}

/* ---- calls ----------------------------------------------------------------------------------- */

bool standin_enter(const char *call)
{
    if (!standin.on)
        return true;
    if (!standin_me) {
        fprintf(stderr, "stand-in: %s from a thread that was started outside of it\n", call);
        abort();
    }
    const struct sc_standin_setup *setup = &standin.setup;
    uint64_t number = ++standin.totals.calls;
    bool fails = setup->fail_call > 0 &&
                 (number == setup->fail_call || (setup->fail_all && number > setup->fail_call));
    if (fails && !standin.failed[0])
        snprintf(standin.failed, sizeof standin.failed, "%s", call);
    return fails;
}

/* ---- who can go on --------------------------------------------------------------------------- */

uint64_t standin_draw_priority(void)
{
    return (sc_random_next(&standin.random) >> 2) + (UINT64_C(1) << 32);
}

bool standin_lags(int device, int stream)
{
    const struct sc_standin_setup *setup = &standin.setup;
    return setup->lag && device == setup->lag_device && stream == setup->lag_stream;
}

static bool thread_ready(const struct standin_thread *thread)
{
    if (thread->state == STANDIN_READY)
        return true;
    bool waits = thread->state == STANDIN_WAITS || thread->state == STANDIN_POLLS;
    return waits && thread->done && thread->done(thread->what);
}

static bool stream_ready(const struct CUstream_st *stream)
{
    const struct standin_command *head = stream->first;
    return head && (!head->kind->ready || head->kind->ready(head));
}

static void run_head(struct CUstream_st *stream)
{
    struct standin_command *head = stream->first;
    standin.idle_polls = 0;
    if (!head->kind->silent)
        standin.totals.operations++;
    head->kind->run(stream, head);
}

/* What moves no data is done as soon as it can be. */
static void settle(void)
{
    bool again = true;
    while (again) {
        again = false;
        for (struct CUstream_st *s = standin.streams; s; s = s->next)
            while (s->first && s->first->kind->silent && stream_ready(s)) {
                run_head(s);
                again = true;
            }
    }
}

struct choice {
    struct standin_thread *thread;
    struct CUstream_st *stream;
    uint64_t priority, count;
};

static void consider(struct choice *choice, struct standin_thread *thread,
                     struct CUstream_st *stream, uint64_t priority)
{
    uint64_t count = choice->count + 1;
    bool better = count == 1 || priority > choice->priority;
    if (standin.setup.order == SC_STANDIN_UNIFORM)
        better = sc_random_next(&standin.random) % count == 0;
    if (better)
        *choice = (struct choice){thread, stream, priority, count};
    choice->count = count;
}

static struct choice choose(void)
{
    struct choice choice = {NULL, NULL, 0, 0};
    bool issue = standin.setup.order == SC_STANDIN_ISSUE;
    settle();
    for (struct standin_thread *t = standin.threads; t; t = t->next)
        if (thread_ready(t))
            consider(&choice, t, NULL, issue ? UINT64_MAX - t->number : t->priority);
    if (choice.thread && (issue || standin.setup.host_first))
        return choice;
    for (struct CUstream_st *s = standin.streams; s; s = s->next)
        if (stream_ready(s))
            consider(&choice, NULL, s, issue ? UINT64_MAX - s->first->number : s->priority);
    return choice;
}

/* ---- when nothing can ------------------------------------------------------------------------ */

static void describe_streams(char *out, size_t size)
{
    for (const struct CUstream_st *s = standin.streams; s; s = s->next) {
        char detail[128] = "";
        if (!s->first)
            continue;
        if (s->first->kind->describe)
            s->first->kind->describe(s->first, detail, sizeof detail);
        append(out, size, "; stream %llu of device %d: %s%s%s", (unsigned long long)s->number,
               s->device, s->first->kind->name, detail[0] ? " " : "", detail);
    }
}

static void describe_deadlock(void)
{
    char line[STANDIN_LINE] = "nothing can go on";
    for (const struct standin_thread *t = standin.threads; t; t = t->next)
        if (t->state == STANDIN_WAITS || t->state == STANDIN_POLLS)
            append(line, sizeof line, "; thread %llu in %s", (unsigned long long)t->number,
                   t->call);
    describe_streams(line, sizeof line);
    standin_complain("%s", line);
}

/* Who asks again and again goes on when nobody else can, the one that has waited longest. */
static struct standin_thread *next_poll(void)
{
    struct standin_thread *best = NULL;
    for (struct standin_thread *t = standin.threads; t; t = t->next)
        if (t->state == STANDIN_POLLS && (!best || t->polled < best->polled))
            best = t;
    return best;
}

static struct standin_thread *waits_for_device(void)
{
    for (struct standin_thread *t = standin.threads; t; t = t->next)
        if (t->state == STANDIN_WAITS && t->on_device)
            return t;
    return NULL;
}

/* A device that hangs would hang a program: here its waits are given up, one after another. */
static struct standin_thread *give_up(void)
{
    describe_deadlock();
    struct standin_thread *thread = waits_for_device();
    if (!thread) {
        fprintf(stderr, "stand-in: all threads wait for one another: %s\n", standin.complaint);
        abort();
    }
    standin.totals.deadlocks++;
    thread->given_up = true;
    return thread;
}

static struct standin_thread *when_idle(void)
{
    struct standin_thread *poll = next_poll();
    if (poll && standin.idle_polls < IDLE_POLLS) {
        standin.idle_polls++;
        return poll;
    }
    if (!poll || waits_for_device())
        return give_up();
    describe_deadlock();
    fprintf(stderr, "stand-in: threads ask for ever: %s\n", standin.complaint);
    abort();
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void change_priorities(struct CUstream_st *ran)
{
    for (int c = 0; c < 3; c++)
        if (standin.setup.operations > 0 && standin.changes[c] == standin.totals.operations)
            ran->priority = --standin.lowest;
}

/* Runs streams until it is a thread's turn. */
static struct standin_thread *next_thread(void)
{
    for (;;) {
        struct choice choice = choose();
        if (choice.thread)
            return choice.thread;
        if (!choice.stream)
            return when_idle();
        run_head(choice.stream);
        change_priorities(choice.stream);
    }
}

static void take_turn(struct standin_thread *thread)
{
    if (thread_ready(thread))
        standin.idle_polls = 0;
    thread->polled = ++standin.turns;
    thread->state = STANDIN_READY;
}

static void hand_over(struct standin_thread *from)
{
    __real_pthread_mutex_lock(&turn_mutex);
    struct standin_thread *to = next_thread();
    take_turn(to);
    standin.current = to;
    if (to != from)
        __real_pthread_cond_signal(&to->turn);
    while (from->state != STANDIN_ENDED && standin.current != from)
        __real_pthread_cond_wait(&from->turn, &turn_mutex);
    __real_pthread_mutex_unlock(&turn_mutex);
}

void standin_await_turn(struct standin_thread *thread)
{
    __real_pthread_mutex_lock(&turn_mutex);
    while (standin.current != thread)
        __real_pthread_cond_wait(&thread->turn, &turn_mutex);
    __real_pthread_mutex_unlock(&turn_mutex);
}

static void stop(const char *call, enum standin_thread_state state, bool (*done)(const void *),
                 const void *what, bool on_device)
{
    standin_me->call = call;
    standin_me->state = state;
    standin_me->done = done;
    standin_me->what = what;
    standin_me->on_device = on_device;
    standin_me->given_up = false;
    hand_over(standin_me);
}

bool standin_wait(const char *call, bool (*done)(const void *what), const void *what,
                  bool on_device)
{
    stop(call, STANDIN_WAITS, done, what, on_device);
    return !standin_me->given_up;
}

bool standin_poll(const char *call, bool (*done)(const void *what), const void *what)
{
    if (done && done(what))
        return true;
    stop(call, STANDIN_POLLS, done, what, false);
    return done && done(what);
}

void standin_give_way(void)
{
    stop("another thread", STANDIN_READY, NULL, NULL, false);
}

/* ---- threads come and go --------------------------------------------------------------------- */

struct standin_thread *standin_add_thread(void)
{
    struct standin_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        abort();
    pthread_cond_init(&thread->turn, NULL);
    thread->number = ++standin.numbers;
    thread->priority = standin_draw_priority();
    thread->device = standin_me ? standin_me->device : 0;
    thread->lags = standin_me && standin_me != standin.threads && standin_lags(thread->device, 0);
    if (thread->lags)
        thread->priority = 0;
    struct standin_thread **end = &standin.threads;
    while (*end)
        end = &(*end)->next;
    *end = thread;
    return thread;
}

void standin_end_thread(struct standin_thread *thread)
{
    thread->state = STANDIN_ENDED;
    hand_over(thread);
}

/* ---- a run ----------------------------------------------------------------------------------- */

void sc_standin_begin(const struct sc_standin_setup *setup)
{
    if (standin.on)
        abort();
    memset(&standin, 0, sizeof standin);
    standin.setup = *setup;
    if (standin.setup.devices < 1 || standin.setup.devices > SC_STANDIN_DEVICES)
        standin.setup.devices = 1;
    if (standin.setup.device_bytes == 0)
        standin.setup.device_bytes = (size_t)256 << 20;
    standin.random = setup->seed;
    standin.lowest = 1u << 20;
    for (int c = 0; c < 3 && setup->operations > 0; c++)
        standin.changes[c] = 1 + sc_random_next(&standin.random) % setup->operations;
    standin.on = true;
    standin_me = standin_add_thread();
    standin_me->id = pthread_self();
    standin.current = standin_me;
}

void sc_standin_end(void)
{
    standin.on = false;
    standin_me = NULL;
    while (standin.threads) {
        struct standin_thread *next = standin.threads->next;
        pthread_cond_destroy(&standin.threads->turn);
        free(standin.threads);
        standin.threads = next;
    }
    standin_free_streams();
    standin_free_cliques();
    standin_free_objects();
    standin_free_memory();
}

struct sc_standin_totals sc_standin_totals(void)
{
    return standin.totals;
}

const char *sc_standin_complaint(void)
{
    return standin.complaint;
}

const char *sc_standin_failed(void)
{
    return standin.failed;
}

/* ---- what is left ---------------------------------------------------------------------------- */

static void append_count(const char *what, int count)
{
    if (count > 0)
        append(standin.left, sizeof standin.left, "%s%d %s%s", standin.left[0] ? ", " : "", count,
               what, count > 1 ? "s" : "");
}

const char *sc_standin_left(void)
{
    int memory = 0, streams = 0, events = 0;
    standin.left[0] = '\0';
    for (const struct standin_memory *m = standin.memory; m; m = m->next)
        memory += !m->freed;
    for (const struct CUstream_st *s = standin.streams; s; s = s->next)
        streams += !s->destroyed;
    for (const struct CUevent_st *e = standin.events; e; e = e->next)
        events += !e->destroyed;
    append_count("allocation", memory);
    append_count("stream", streams);
    append_count("event", events);
    for (const struct standin_object *o = standin.objects; o; o = o->next)
        if (!o->destroyed)
            append_count(o->what, 1);
    return standin.left;
}
