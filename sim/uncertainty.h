/*
 * How far the step time of a run may lie from the forecast.
 *
 *   variance of ln T = machine^2 + sum over kinds k of (share_k s_k)^2 (1/2 + 1/2 / n_k)
 *
 * machine: what all operations have in common (another day, another machine of the kind). share_k:
 * the part of a step for which the main stream works on operations of a kind or waits for them;
 * s_k: how far the price of one shape is off (the profile's `uncertainty`, standard deviations of
 * ln(measured / priced)); n_k = (sum w)^2 / (sum w^2) over the times w of its shapes. Half of a
 * kind's variance is taken as common to its shapes (what they find in the caches, how the machine
 * runs that kind), half as independent, so that a kind of many shapes errs less than one shape; the
 * half is an assumption.
 *
 * As share_k^2 / n_k = sum (w / T)^2, the independent part is a sum over shapes. Operations of one
 * kind and one price are one shape. The interval that holds four of five runs is T exp(-z sigma) to
 * T exp(z sigma), z = 1.2816 (the normal distribution's 90th percentile).
 */
#ifndef STEPCAST_SIM_UNCERTAINTY_H
#define STEPCAST_SIM_UNCERTAINTY_H

#include "base/status.h"
#include "model/hardware.h"
#include "plans/program.h"
#include "sim/engine.h"
#include "sim/price.h"

/* The standard deviation of ln T, from the class whose main stream is busiest. */
enum sc_status sc_uncertainty(const struct sc_program *program, const struct sc_prices *prices,
                              const struct sc_play *play, const struct sc_hardware *hardware,
                              double *out, struct sc_error *err);
/* The interval that holds four of five runs, in the unit of `time`. */
void sc_uncertainty_interval(double time, double deviation, double *low, double *high);

#endif
