/*
 * Small random programs for the passes: 1 to 5 streams, 2 to 16 ops whose operands are random views
 * (row and column ranges, shards, two versions, tokens). Step buffers are written whole by the
 * first op that touches them. Kinds and roles mean nothing here.
 */
#ifndef STEPCAST_TESTS_RANDOM_PROGRAM_H
#define STEPCAST_TESTS_RANDOM_PROGRAM_H

#include "plans/program.h"

enum { SC_RANDOM_OPS = 16 };

/* The same seed gives the same program; NULL when out of memory. The caller destroys it. */
struct sc_program *sc_random_program(uint64_t seed);

#endif
