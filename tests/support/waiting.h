/* How much processor time a run takes while everything waits for one operation. */
#ifndef STEPCAST_TESTS_WAITING_H
#define STEPCAST_TESTS_WAITING_H

#include "exec/options.h"

/* Runs the worked example on two ranks; rank 0 sleeps for a second before the product whose result
 * is reduced, and rank 1 waits for it there. Returns the processor time of this process, over that
 * second; the run itself takes some milliseconds. Negative where it fails. */
double sc_waiting_share(enum sc_run_transport transport);

#endif
