/*
 * How quiet the machine was while something was measured: what other programs took of the cores
 * that it used, what the hypervisor took, and how often its threads were pushed aside.
 *
 * From /proc/stat (user, nice, system, irq and softirq of every core are busy time; steal is what
 * a hypervisor gave to others; see proc(5)) less the processor time of the program itself. Where a
 * share s of the cores' time is gone, work that could have used all of it takes 1 / (1 - s) as
 * long: too long by s / (1 - s). A bound, not a correction: what falls into the program's own
 * pauses costs nothing.
 */
#ifndef STEPCAST_EXEC_CONTENTION_H
#define STEPCAST_EXEC_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Below that share nothing is said: clocks of the machine count in hundredths of a second, and a
 * machine at rest is never quite still. */
#define SC_CONTENTION_NOTABLE 0.05

struct sc_contention_start {
    bool known;
    int64_t cores;
    double when, busy_s, steal_s, own_s;
    int64_t pushed_aside;
};

struct sc_contention {
    bool known;            /* false: too short to tell, or the system does not say */
    double seconds, cores; /* watched */
    double own_s;          /* processor time of this program */
    double others_share;   /* by others, the hypervisor included */
    double steal_share;    /* by the hypervisor alone */
    int64_t pushed_aside;  /* involuntary context switches of this process */
    double spread;         /* (90th - 10th percentile) / median of repeats; the caller's */
};

/* Watches the first `cores` cores that the process may run on; 0: all of them. */
void sc_contention_begin(int64_t cores, struct sc_contention_start *out);
void sc_contention_end(const struct sc_contention_start *start, struct sc_contention *out);
/* Seconds of processor time that belong to the program as well: of its other processes here. */
void sc_contention_add_own(struct sc_contention *contention, double seconds);

/* By how much times may be too long: others_share / (1 - others_share); 0 where nothing is known.
 */
double sc_contention_excess(const struct sc_contention *contention);
/* One sentence where others took a notable share: "other programs used 23 % of the cores while
 * measuring: times may be too long by up to 30 %". False, and "", where there is nothing to say. */
bool sc_contention_warning(const struct sc_contention *contention, char *out, size_t size);

#endif
