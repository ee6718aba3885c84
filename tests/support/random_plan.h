/* Random valid plans of small models, for property tests. */
#ifndef STEPCAST_TESTS_SUPPORT_RANDOM_PLAN_H
#define STEPCAST_TESTS_SUPPORT_RANDOM_PLAN_H

#include <stdint.h>

#include "plans/plan.h"

/*
 * The same seed gives the same plan. Both families, hidden
 * sizes of 32 to 96, 1 to 4 layers, grouped-query attention, tied and untied heads; tensor and data
 * parallelism of 1, 2 or 4 on at most max_ranks ranks, axes in any order; ZeRO 0 and 1 with several
 * buckets, accumulation, recomputation, Domino, dropout, clipping. Everything in fp32. Always valid
 * under sc_plan_check, with at most 256 tokens a rank and micro-batch.
 */
void sc_random_plan(uint64_t seed, int max_ranks, struct sc_plan *out);

#endif
