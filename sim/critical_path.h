/*
 * The critical path of a settled step: what the end of a step waited for, and that in turn, back
 * through one cycle of periods. Every instant of it belongs to exactly one operation or to issue,
 * so that the pieces add up to the period.
 *
 *   an operation began when      the one before on its stream, or one that it waits for, had ended;
 *                                else when it had been issued
 *   a collective of classes      when the last class arrived: the path goes on there
 *   one that waited for units    when somebody gave them back: the path goes on with that one
 *   issue                        the host thread issues without a pause from the beginning of a
 *                                step, which is the end of the step before on that thread, or the
 *                                end of step k - steps_ahead: the path goes on with its last
 *                                operation
 *
 * Where two things ended at the same instant the one on the operation's own stream counts, then the
 * first of its waits. A play that settled is walked from its end; what is reported is the cycle
 * before the last, since what sets the pace of a cycle is met on the way back from its end, not
 * always at it.
 */
#ifndef STEPCAST_SIM_CRITICAL_PATH_H
#define STEPCAST_SIM_CRITICAL_PATH_H

#include <stdint.h>

#include "base/array.h"

enum sc_path_what {
    SC_PATH_RUN,    /* the operation ran (latency and work) */
    SC_PATH_ISSUE,  /* the host thread issued, up to this operation */
    SC_PATH_SIGNAL, /* the operation noticed that what it stood waiting for had ended */
    SC_PATH_UNITS,  /* the operation waited behind another one that waited for units */
    SC_PATH_START   /* nothing: before the first operation of a play */
};

struct sc_path_piece {
    uint32_t class_index, op; /* of SC_PATH_START: none */
    int32_t step;             /* of the play, from 0 */
    uint8_t what;             /* enum sc_path_what */
    double begin_us, end_us;  /* from the beginning of the path */
    double slowed_us;         /* of it: because resources were shared */
};

struct sc_path {
    SC_ARRAY(struct sc_path_piece) pieces; /* in order of time, without gaps */
    int periods;                           /* so many are covered */
    double span_us;                        /* their sum */
};

/* Zeroed is empty. */
void sc_path_free(struct sc_path *path);

#endif
