/*
 * The engine plays a program: one rank of every class, its streams, the thread that issues, and
 * the resources that operations share. Time is continuous; speeds change only at events.
 *
 *   issue     one host thread a rank walks the list in issue order, step after step; each
 *             operation costs it issue_us and cannot start before it was issued; step
 *             k + steps_ahead is issued after step k has ended on that rank
 *   ready     issued, first on its stream, its waits ended (waits on steps before the first hold)
 *   noticing  an operation that stood waiting for one on another stream starts wait_us after that
 *             has ended
 *   meeting   a collective whose group spans classes starts when the last class has arrived, and
 *             runs at the speed of its slowest member
 *   latency   a phase that uses no shared resource
 *   work      a phase whose speed follows from sharing (share.h)
 *   held      units of the device taken from start to end; what is left is what others' work gets;
 *             an operation that finds too few waits, by the priority of its stream
 *
 * Step k ends where the last operation in issue order ends (of the classes, the last); the period
 * is the distance of two ends. The engine stops when for some c of 1 to 4 the last c periods (the
 * first step, which is cold, not among them) and the c before them have the same sum, and reports
 * their mean. Sums that would be undone later do not count: while a stream falls behind further
 * each step, or while the mean is below the bound of sim/bound.h. After 16 steps that have not
 * settled the mean of the later half is reported, but no less than that bound.
 */
#ifndef STEPCAST_SIM_ENGINE_H
#define STEPCAST_SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plans/program.h"
#include "plans/trace.h"
#include "sim/critical_path.h"
#include "sim/machine.h"
#include "sim/price.h"

enum { SC_PLAY_STEPS_MAX = 16, SC_PLAY_CYCLE_MAX = 4 };

struct sc_play_options {
    int steps; /* 0: until the periods settle; else exactly so many (at most SC_PLAY_STEPS_MAX) */
    bool path; /* sc_play.path is filled: times of more steps are kept meanwhile */
};

/* Microseconds, from the end of the step before. */
struct sc_op_times {
    double ready_us, start_us;
    double transfer_us; /* collectives: when the last member had arrived; others NAN */
    double end_us;
    const char *bound;
    /* Time for which the class's main stream stood still because of this operation: because it had
     * to end first, or (of one on the main stream) because units were held. */
    double exposed_us;
    double issue_wait_us; /* likewise, because it was not issued yet */
};

struct sc_play_class {
    const struct sc_op_times *times; /* [ops] of the last step */
    size_t ops;
    uint32_t anchor; /* the stream of the last operation in issue order */
    /* The device's stream that computes most: where the time of a step goes is told by what it does
     * and what it waits for. */
    uint32_t main;
    double busy_us; /* operations on the main stream, in the last step */
    double span_us; /* from its last end in the step before to its last end in the last step */
};

struct sc_play {
    double period_us;
    double first_step_us;
    int steps; /* played */
    double periods_us[SC_PLAY_STEPS_MAX];
    int cycle; /* periods over which period_us is the mean */
    bool settled;
    uint64_t events;
    SC_ARRAY(struct sc_play_class) classes;
    SC_ARRAY(double) utilisation; /* a machine instance: part of its capacity used over a period */
    struct sc_path path;          /* empty unless asked for */
    struct sc_op_times *times;    /* owned; classes point into it */
};

/* Plays the step lists with the waits they carry. SC_BUG when the program stands still (with the
 * operations it stands at). `out` is freed with sc_play_free. */
enum sc_status sc_play(const struct sc_program *program, const struct sc_prices *prices,
                       const struct sc_machine *machine, const struct sc_play_options *options,
                       struct sc_play *out, struct sc_error *err);
/* Zeroed is empty. */
void sc_play_free(struct sc_play *play);

/* Fills a trace that sc_trace_begin has prepared from the same program. */
enum sc_status sc_play_trace(const struct sc_program *program, const struct sc_play *play,
                             struct sc_trace *trace, struct sc_error *err);

#endif
