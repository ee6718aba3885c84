/* Worker teams: a generation counter to start a piece of work, a count of members to end it. */
#include "exec/host/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a member looks for work, or the caller for the end, before it sleeps, if nobody says. */
#define PATIENCE_NS 30000

struct member {
    struct sc_team *team;
    pthread_t thread;
    int part;
};

struct sc_team {
    int size;
    int started; /* threads to join */
    atomic_llong patience_ns;
    struct member *members; /* [size], the first one is the caller */

    /* The work at hand; written before generation moves, read after. */
    sc_team_fn *fn;
    void *arg;

    atomic_uint generation; /* of the work; moves when a piece starts */
    atomic_int working;     /* members other than the caller that are not done */
    atomic_int sleeping;    /* members in pthread_cond_wait on `work` or about to */
    atomic_bool caller_waits;
    atomic_bool closing;

    pthread_mutex_t mutex; /* for sleeping only */
    pthread_cond_t work, done;
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Spins until the generation has left `seen`; false if it did not in time. */
static bool spin_for_work(struct sc_team *team, unsigned seen)
{
    int64_t limit = nanoseconds() + atomic_load(&team->patience_ns);
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&team->generation, memory_order_acquire) != seen)
                return true;
            relax();
        }
    } while (nanoseconds() < limit);
    return false;
}

static void wait_for_work(struct sc_team *team, unsigned seen)
{
    if (spin_for_work(team, seen))
        return;
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleeping, 1);
    while (atomic_load(&team->generation) == seen)
        pthread_cond_wait(&team->work, &team->mutex);
    atomic_fetch_sub(&team->sleeping, 1);
    pthread_mutex_unlock(&team->mutex);
}

/* Moves the generation and wakes whoever sleeps. Either a member sees the new generation before it
 * sleeps, or the caller sees it in `sleeping` (both are sequentially consistent). */
static void announce(struct sc_team *team)
{
    atomic_fetch_add(&team->generation, 1u);
    if (atomic_load(&team->sleeping) > 0) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_broadcast(&team->work);
        pthread_mutex_unlock(&team->mutex);
    }
}

static void report_done(struct sc_team *team)
{
    if (atomic_fetch_sub(&team->working, 1) == 1 && atomic_load(&team->caller_waits)) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->mutex);
    }
}

static void wait_for_members(struct sc_team *team)
{
    int64_t limit = nanoseconds() + atomic_load(&team->patience_ns);
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&team->working, memory_order_acquire) == 0)
                return;
            relax();
        }
    } while (nanoseconds() < limit);
    pthread_mutex_lock(&team->mutex);
    atomic_store(&team->caller_waits, true);
    while (atomic_load(&team->working) > 0)
        pthread_cond_wait(&team->done, &team->mutex);
    atomic_store(&team->caller_waits, false);
    pthread_mutex_unlock(&team->mutex);
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct sc_team *team = member->team;
    for (unsigned seen = 0;; seen++) {
        wait_for_work(team, seen);
        if (atomic_load(&team->closing))
            return NULL;
        team->fn(team->arg, member->part, team->size);
        report_done(team);
    }
}

static enum sc_status pin(pthread_t thread, int core, struct sc_error *err)
{
    if (core < 0)
        return SC_OK;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core < CPU_SETSIZE)
        CPU_SET(core, &set);
    int code = pthread_setaffinity_np(thread, sizeof set, &set);
    if (code != 0)
        return sc_fail(err, SC_MACHINE, "cannot bind a thread to core %d: %s", core,
                       strerror(code));
    return SC_OK;
}

static enum sc_status start_member(struct sc_team *team, int part, const int *cores,
                                   struct sc_error *err)
{
    struct member *member = &team->members[part];
    member->team = team;
    member->part = part;
    if (part == 0)
        return cores ? pin(pthread_self(), cores[0], err) : SC_OK;
    int code = pthread_create(&member->thread, NULL, member_main, member);
    if (code != 0)
        return sc_fail(err, SC_MACHINE, "cannot start a worker thread: %s", strerror(code));
    team->started++;
    return cores ? pin(member->thread, cores[part], err) : SC_OK;
}

enum sc_status sc_team_create(int threads, const int *cores, struct sc_team **team,
                              struct sc_error *err)
{
    if (threads < 1)
        return sc_fail(err, SC_USAGE, "a team needs at least one thread, not %d", threads);
    struct sc_team *made = calloc(1, sizeof *made);
    if (!made)
        return sc_fail_memory(err, sizeof *made);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->done, NULL);
    made->size = threads;
    atomic_init(&made->patience_ns, PATIENCE_NS);
    made->members = calloc((size_t)threads, sizeof *made->members);
    enum sc_status status = SC_OK;
    if (!made->members)
        status = sc_fail_memory(err, (size_t)threads * sizeof *made->members);
    for (int part = 0; part < threads && status == SC_OK; part++)
        status = start_member(made, part, cores, err);
    if (status != SC_OK) {
        sc_team_destroy(&made);
        return status;
    }
    *team = made;
    return SC_OK;
}

void sc_team_destroy(struct sc_team **team)
{
    struct sc_team *gone = *team;
    if (!gone)
        return;
    atomic_store(&gone->closing, true);
    announce(gone);
    for (int part = 1; part <= gone->started; part++)
        pthread_join(gone->members[part].thread, NULL);
    pthread_cond_destroy(&gone->done);
    pthread_cond_destroy(&gone->work);
    pthread_mutex_destroy(&gone->mutex);
    free(gone->members);
    free(gone);
    *team = NULL;
}

void sc_team_set_patience(struct sc_team *team, int64_t nanoseconds)
{
    if (team)
        atomic_store(&team->patience_ns, nanoseconds);
}

int sc_team_size(const struct sc_team *team)
{
    return team ? team->size : 1;
}

void sc_team_run(struct sc_team *team, sc_team_fn *fn, void *arg)
{
    if (sc_team_size(team) == 1) {
        fn(arg, 0, 1);
        return;
    }
    team->fn = fn;
    team->arg = arg;
    atomic_store(&team->working, team->size - 1);
    announce(team);
    fn(arg, 0, team->size);
    wait_for_members(team);
}

struct sc_part sc_part_of(int64_t count, int64_t grain, int part, int parts)
{
    int64_t grains = (count + grain - 1) / grain;
    int64_t share = grains / parts, rest = grains % parts;
    int64_t first = part * share + (part < rest ? part : rest);
    int64_t last = first + share + (part < rest ? 1 : 0);
    struct sc_part range = {first * grain, last * grain};
    if (range.begin > count)
        range.begin = count;
    if (range.end > count)
        range.end = count;
    return range;
}
