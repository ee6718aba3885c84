/* Streams as queues, and the workers that serve them. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "exec/clock.h"
#include "exec/host/host_device.h"
#include "exec/process.h"

/* How long a worker looks before it sleeps; a compute stream waits for short things often. */
static const int64_t compute_spin_ns = 20000;
static const int64_t idle_ns = 50000000;
/* A team beside which nothing communicates leaves its cores to nobody: it waits out a product whose
 * parts take unequal times. */
static const int64_t patience_ns = 2000000;

/* Between two looks at MPI: soon at first, since small messages take tens of microseconds, then
 * seldom, since every look takes time from the computation beside it. */
enum { SOON = 20 };
static const int64_t soon_ns = 30000, seldom_ns = 150000;

void sc_host_push(struct sc_host_stream *stream, struct sc_command command)
{
    size_t tail = atomic_load_explicit(&stream->tail, memory_order_relaxed);
    stream->ring[tail & stream->mask] = command;
    atomic_store(&stream->tail, tail + 1);
    if (atomic_load(&stream->head) == tail &&
        stream->worker) /* it may sleep: the queue was empty */
        sc_wake_up(&stream->worker->wake);
}

const struct sc_command *sc_host_head(const struct sc_host_stream *stream)
{
    size_t head = atomic_load_explicit(&stream->head, memory_order_relaxed);
    return head == atomic_load(&stream->tail) ? NULL : &stream->ring[head & stream->mask];
}

static void pop(struct sc_host_stream *stream)
{
    size_t head = atomic_load_explicit(&stream->head, memory_order_relaxed);
    stream->begun = false;
    atomic_store(&stream->head, head + 1);
}

bool sc_host_done(const struct sc_device *device, uint32_t event, int64_t step)
{
    return atomic_load(&device->done[event]) > step;
}

static void record(struct sc_device *device, const struct sc_command *command)
{
    atomic_store(&device->done[command->index], command->step + 1);
    uint64_t listeners = device->listeners[command->index];
    for (size_t w = 0; w < device->worker_count; w++)
        if (listeners >> w & 1)
            sc_wake_up(&device->workers[w].wake);
    if (listeners >> SC_LISTENER_ISSUER & 1)
        sc_wake_up(&device->finished);
}

static const struct sc_list *list_of(const struct sc_device *device, uint8_t name)
{
    return name == SC_LIST_STEP ? &device->data.class->step : &device->data.class->init;
}

struct sc_call sc_host_call_of(const struct sc_host_stream *stream,
                               const struct sc_command *command)
{
    const struct sc_device *device = stream->device;
    const struct sc_list *list = list_of(device, command->list);
    return (struct sc_call){
        .rank = &device->data,
        .list = list,
        .op = &list->ops.items[command->index],
        .index = command->index,
        .step = command->step,
        .machine = &sc_host_machine,
        .where = stream->worker->team,
        .scratch = stream->worker->scratch,
    };
}

static struct sc_member *member_of(const struct sc_host_stream *stream, const struct sc_call *call)
{
    return stream->device->members[call->op->group];
}

static void observe(struct sc_host_stream *stream, const struct sc_command *command, bool after)
{
    const struct sc_observer *observer = &stream->device->world->setup.options->observer;
    void (*function)(void *, struct sc_device *, int64_t, int64_t, uint32_t) =
        after ? observer->after : observer->before;
    const struct sc_op *op = &list_of(stream->device, command->list)->ops.items[command->index];
    bool seen = op->group < 0 || observer->collectives;
    if (function && seen && command->list == SC_LIST_STEP)
        function(observer->context, stream->device, stream->device->data.rank, command->step,
                 command->index);
}

static enum sc_status begin(struct sc_host_stream *stream, struct sc_error *err)
{
    struct sc_call call = sc_host_call_of(stream, sc_host_head(stream));
    const struct sc_collective collective = sc_host_collective(&call);
    observe(stream, sc_host_head(stream), false);
    stream->begun = true;
    stream->started = sc_clock();
    enum sc_status status = stream->device->world->transport->functions->begin(
        member_of(stream, &call), &collective, err);
    return sc_call_name_failure(&call, status, err);
}

static enum sc_status check_fault(const struct sc_call *call, struct sc_error *err);

enum sc_status sc_host_settle(struct sc_host_stream *stream, bool *moved, struct sc_error *err)
{
    *moved = false;
    for (;;) {
        const struct sc_command *command = sc_host_head(stream);
        if (!command)
            return SC_OK;
        if (command->kind == SC_COMMAND_WAIT &&
            !sc_host_done(stream->device, command->index, command->step))
            return SC_OK;
        if (command->kind == SC_COMMAND_RUN) {
            struct sc_call call = sc_host_call_of(stream, command);
            if (call.op->group < 0 || stream->begun)
                return SC_OK;
            *moved = true;
            SC_TRY(sc_call_name_failure(&call, check_fault(&call, err), err));
            return begin(stream, err);
        }
        if (command->kind == SC_COMMAND_RECORD)
            record(stream->device, command);
        pop(stream);
        *moved = true;
    }
}

static void stamp(struct sc_host_stream *stream, const struct sc_command *command, double start,
                  double end)
{
    struct sc_device *device = stream->device;
    const struct sc_backend_setup *setup = &device->world->setup;
    if (command->list != SC_LIST_STEP)
        return;
    if (command->index + 1 == device->data.class->step.ops.count)
        device->data.step_ends[command->step] = end;
    if (!device->stamps)
        return;
    size_t set = (size_t)(command->step % setup->traced_steps);
    struct sc_stamp *at =
        &device->stamps[set * device->data.class->step.ops.count + command->index];
    at->start = start;
    at->end = end;
}

/* Tests only: a rank that fails here, or whose process dies. */
static enum sc_status check_fault(const struct sc_call *call, struct sc_error *err)
{
    const struct sc_fault *fault = &call->rank->setup->options->fault;
    if (!fault->on || fault->rank != call->rank->rank || fault->step != call->step ||
        fault->op != call->index || call->list != &call->rank->class->step)
        return SC_OK;
    if (fault->die)
        sc_process_die();
    return sc_fail(err, SC_MACHINE, "made to fail");
}

static enum sc_status run_alone(struct sc_host_stream *stream, const struct sc_call *call,
                                struct sc_error *err)
{
    SC_TRY(check_fault(call, err));
    bool poison = stream->device->world->setup.options->poison;
    if (poison)
        sc_host_poison_open(call);
    enum sc_status status = sc_host_run(call, err);
    if (poison)
        sc_host_poison_shut(call);
    return status;
}

enum sc_status sc_host_run_head(struct sc_host_stream *stream, bool *ran, bool *moved,
                                struct sc_error *err)
{
    const struct sc_command command = *sc_host_head(stream);
    struct sc_call call = sc_host_call_of(stream, &command);
    double start = stream->started;
    enum sc_status status;
    *ran = *moved = true;
    if (call.op->group >= 0) {
        status = stream->device->world->transport->functions->test(member_of(stream, &call), ran,
                                                                   moved, err);
    } else {
        observe(stream, &command, false);
        start = sc_clock();
        status = run_alone(stream, &call, err);
    }
    if (status != SC_OK)
        return sc_call_name_failure(&call, status, err);
    if (!*ran)
        return SC_OK;
    stamp(stream, &command, start, sc_clock());
    observe(stream, &command, true);
    pop(stream);
    return SC_OK;
}

/* ---- workers --------------------------------------------------------------------------------- */

/* An operation is ready at the head. */
static bool ready(const struct sc_host_stream *stream)
{
    const struct sc_command *command = sc_host_head(stream);
    return command && command->kind == SC_COMMAND_RUN;
}

/* A chaos run over MPI: now and then a pause before an operation. */
static void delay(struct sc_host_worker *worker)
{
    uint64_t draw = sc_random_next(&worker->delays);
    if (draw % 4 == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(draw >> 8) % 2000000}, NULL);
}

static enum sc_status serve(struct sc_host_worker *worker, struct sc_host_stream *stream,
                            bool *moved, struct sc_error *err)
{
    bool settled = false, ran = false;
    SC_TRY(sc_host_settle(stream, &settled, err));
    *moved |= settled;
    if (!ready(stream))
        return SC_OK;
    if (worker->device->world->setup.options->chaos && !stream->begun)
        delay(worker);
    bool tested = false;
    SC_TRY(sc_host_run_head(stream, &ran, &tested, err));
    *moved |= tested;
    return SC_OK;
}

static bool under_way(const struct sc_host_worker *worker)
{
    for (size_t s = 0; s < worker->count; s++)
        if (worker->streams[s]->begun)
            return true;
    return false;
}

static void rest(struct sc_host_worker *worker, unsigned ticket)
{
    const struct sc_world *world = worker->device->world;
    bool way = world->transport && under_way(worker);
    bool poll = way && world->transport->polled;
    if (way && world->transport->functions->wait) {
        world->transport->functions->wait(world->transport, &worker->wake, ticket, idle_ns);
        return;
    }
    int64_t spin = worker->computes && world->own_cores ? compute_spin_ns : 0;
    int64_t limit = worker->looks++ < SOON ? soon_ns : seldom_ns;
    sc_wake_sleep(&worker->wake, ticket, spin, poll ? limit : idle_ns);
}

static enum sc_status serve_all(struct sc_host_worker *worker, struct sc_error *err)
{
    struct sc_world *world = worker->device->world;
    unsigned ticket = sc_wake_ticket(&worker->wake);
    bool moved = false;
    for (size_t s = 0; s < worker->count; s++)
        SC_TRY(serve(worker, worker->streams[s], &moved, err));
    if (moved) {
        worker->looks = 0;
        return SC_OK;
    }
    if (worker->communicates && world->setup.process)
        sc_process_listen(world->setup.process, world->setup.failure);
    rest(worker, ticket);
    return SC_OK;
}

/* The cores of this worker's rank: a slice of the process's, or one that several ranks share. */
static void rank_cores(const struct sc_host_worker *worker, const int **first, int *count)
{
    const struct sc_world *world = worker->device->world;
    int64_t rank = worker->device->data.rank - world->setup.first_rank;
    int each = world->core_count / (int)world->setup.local_ranks;
    *count = each > 0 ? each : 1;
    *first = world->cores + rank * *count % world->core_count;
}

static bool communicates(const struct sc_device *device)
{
    for (size_t w = 0; w < device->worker_count; w++)
        if (device->workers[w].communicates)
            return true;
    return false;
}

/* What communicates works little and often: where the system allows it, it need not wait for the
 * computation on its core to use up its turn. */
static void come_first(void)
{
    enum { AHEAD = -10 };
    pid_t thread = (pid_t)syscall(SYS_gettid);
    if (setpriority(PRIO_PROCESS, (id_t)thread, AHEAD) != 0)
        errno = 0; /* not allowed: it takes its turn */
}

/* The threads of a rank stay on its cores, so that what overlaps within it costs it alone. */
static enum sc_status settle_down(struct sc_host_worker *worker, struct sc_error *err)
{
    const int *cores = NULL;
    int count = 0;
#ifdef PR_SET_TIMERSLACK
    if (worker->communicates) /* short sleeps are short: 1 us instead of 50 */
        prctl(PR_SET_TIMERSLACK, 1000L, 0L, 0L, 0L);
#endif
    if (worker->communicates && !worker->computes)
        come_first();
    if (worker->device->world->pinned) {
        rank_cores(worker, &cores, &count);
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int c = 0; c < count; c++)
            CPU_SET(cores[c], &set);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    if (worker->threads < 2)
        return SC_OK;
    SC_TRY(sc_team_create(worker->threads, cores, &worker->team, err));
    if (worker->device->world->own_cores && !communicates(worker->device))
        sc_team_set_patience(worker->team, patience_ns);
    return SC_OK;
}

/* One more look at what is left is not needed: a device is destroyed after its last step. */
static void *work(void *argument)
{
    struct sc_host_worker *worker = argument;
    struct sc_failure *failure = worker->device->world->setup.failure;
    struct sc_error err = SC_ERROR_INIT;
    enum sc_status status = settle_down(worker, &err);
    while (status == SC_OK && !sc_failure_is_set(failure) && !atomic_load(&worker->device->closing))
        status = serve_all(worker, &err);
    if (status != SC_OK)
        sc_failure_set(failure, &err);
    sc_wake_up(&worker->device->finished);
    return NULL;
}

enum sc_status sc_host_start(struct sc_device *device, struct sc_error *err)
{
    for (size_t w = 0; w < device->worker_count; w++) {
        struct sc_host_worker *worker = &device->workers[w];
        int code = pthread_create(&worker->thread, NULL, work, worker);
        if (code != 0)
            return sc_fail(err, SC_MACHINE, "rank %lld: cannot start a worker thread: %s",
                           (long long)device->data.rank, strerror(code));
        worker->started = true;
    }
    return SC_OK;
}

void sc_host_stop(struct sc_device *device)
{
    atomic_store(&device->closing, true);
    for (size_t w = 0; w < device->worker_count; w++)
        sc_wake_up(&device->workers[w].wake);
    for (size_t w = 0; w < device->worker_count; w++) {
        if (device->workers[w].started)
            pthread_join(device->workers[w].thread, NULL);
        device->workers[w].started = false;
        sc_team_destroy(&device->workers[w].team);
    }
}
