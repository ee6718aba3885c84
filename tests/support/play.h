/* Small programs made by hand for the engine: operations with a duration, waits given outright. */
#ifndef STEPCAST_TESTS_SUPPORT_PLAY_H
#define STEPCAST_TESTS_SUPPORT_PLAY_H

#include "plans/program.h"
#include "sim/engine.h"

struct play_case {
    struct sc_program *program;
    struct sc_prices prices;
    struct sc_machine machine;
    struct sc_play play;
    struct sc_error error;
    bool path; /* play_run keeps the critical path */
};

/* One class "all" of mesh tensor 2 x pipeline `stages`; with stages > 1 one class a stage. */
void play_begin(struct play_case *c, int stages);
void play_end(struct play_case *c);
int play_stream(struct play_case *c, const char *name, int priority);
/* A group along the tensor or the pipeline axis. */
int play_group(struct play_case *c, const char *name, enum sc_axis axis);
/* An operation of constant price; its number in the class. kind SC_ADD unless a group is given (-1:
 * none), then an all-reduce. */
uint32_t play_op(struct play_case *c, uint32_t class_index, int stream, int group, double us);
/* The operation added last in its class waits for `op` of `distance` steps before. */
void play_wait(struct play_case *c, uint32_t class_index, uint32_t op, uint32_t distance);
/* The price of an operation, to be changed before playing; valid until the next play_op. */
struct sc_price *play_price(struct play_case *c, uint32_t class_index, uint32_t op);
/* An instance for the resource of all classes, or of one (class_index >= 0). */
uint32_t play_instance(struct play_case *c, int class_index, uint8_t resource, const char *name,
                       double units);
/* Plays; `steps` 0: until settled. Asserts success. */
void play_run(struct play_case *c, int steps);
const struct sc_op_times *play_times(const struct play_case *c, uint32_t class_index, uint32_t op);

#endif
