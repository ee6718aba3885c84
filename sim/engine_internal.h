/* What the parts of the engine share: the program as compiled for playing, and the state of a play.
 * engine_compile.c fills the first half, engine.c works on the second, engine_result.c reads. */
#ifndef STEPCAST_SIM_ENGINE_INTERNAL_H
#define STEPCAST_SIM_ENGINE_INTERNAL_H

#include "base/arena.h"
#include "sim/engine.h"
#include "sim/event_queue.h"
#include "sim/share.h"

#define SC_NONE UINT32_MAX

/* What limited an operation longest, beside a number of a resource. */
enum { SC_LIMIT_ALONE = -1, SC_LIMIT_HELD = -2, SC_LIMIT_BESIDE = -3 };

struct held_use {
    uint32_t resource;
    double units;
};

/* A price on this machine, for an operation of one class or a collective of several. */
struct work {
    double latency, duration, weight, slowdown;
    const struct sc_share_use *use;
    const struct held_use *held;
    uint32_t uses, held_count;
    bool computes;
    const char *bound;
};

/* A group's collectives where its members are of several classes. */
struct join {
    uint32_t first_member, members; /* in engine.members */
    uint32_t arrived;
};

struct engine_op {
    uint32_t work, slot;
    uint32_t join; /* SC_NONE: no other class takes part */
    uint32_t first_wait, waits;
    double issued; /* after the host thread began with the step */
    double wait;   /* from the end of what it stood waiting for to its start */
};

struct row { /* absolute times */
    double ready, start, transfer, end;
    int32_t limit;
    uint32_t released_by; /* of one that waited for units: the operation that gave them back */
    double signal; /* when what it stood waiting for ended, if it started on noticing that; NAN */
};

struct release { /* who gave back units of a resource last, and when */
    uint32_t op;
    double time;
};

struct engine_class {
    uint32_t first, ops; /* flat numbers of its operations */
    const struct sc_wait *waits;
    uint32_t first_slot, slots;
    double issue_total;
    /* state */
    uint32_t issued_steps; /* steps whose issue time is known */
    uint32_t ended_steps;
    uint32_t computing; /* operations running that slow others down */
    bool computing_changed;
    double *issue_base;  /* [ring] */
    uint32_t *remaining; /* [ring] operations of the step that have not ended */
};

enum slot_state {
    SLOT_IDLE,  /* nothing to do, to be advanced */
    SLOT_GATE,  /* the step is not issued yet */
    SLOT_WAIT,  /* for an operation */
    SLOT_ISSUE, /* the operation is being issued, or it notices that its wait is over */
    SLOT_MEET,  /* a collective, for other classes */
    SLOT_HELD,  /* for units */
    SLOT_LATENCY,
    SLOT_WORK
};

enum { SLOT_LIMITS = 6 };

/* A stream of a class: at most one operation at a time. */
struct slot {
    uint32_t class_index, stream;
    int priority;
    const uint32_t *order; /* operations of the class on this stream, in issue order */
    uint32_t count;
    /* state */
    uint32_t head, step;
    enum slot_state state;
    uint32_t work; /* running */
    uint32_t next_waiter;
    double signal;  /* when what it waited for ended, */
    double noticed; /* and when that is known to it */
    double left;    /* of the work phase, in time alone */
    double speed;   /* since `since` */
    double since;
    double limited[SLOT_LIMITS]; /* time limited by use u of its work */
    double alone, beside;        /* at full speed; at the speed beside computation */
    int32_t limit_now;
};

struct engine {
    const struct sc_program *program;
    const struct sc_prices *prices;
    const struct sc_machine *machine;
    struct sc_arena arena; /* everything compiled, and arrays below */
    uint32_t op_count, slot_count, class_count, ring, ring_mask;
    uint32_t drift; /* no class is issued further ahead of steps_done, less 2 */
    uint32_t steps_ahead, steps_wanted;
    bool exact_steps, keeps_path;
    struct engine_op *ops;
    struct engine_class *classes;
    struct slot *slots;
    struct work *works;
    uint32_t work_count;
    struct join *joins;
    uint32_t join_count;
    uint32_t *members; /* slots */
    double *capacity, *units;
    uint32_t uses_max;
    bool has_slowdown;
    /* state */
    double now;
    struct sc_event_queue queue;
    struct sc_share *share;
    uint32_t *done;   /* [ops] steps in which it has ended */
    uint32_t *waiter; /* [ops] first slot of the list that waits for it */
    struct row *rows; /* [ring][ops] */
    double *units_used;
    struct release *released; /* [resources] */
    uint32_t *held_queue, held_count;
    double *held_since; /* [slots] */
    uint32_t *units_blocked, blocked_round;
    bool finished;
    uint32_t steps_done; /* in all classes */
    double step_end[SC_PLAY_STEPS_MAX], lag[SC_PLAY_STEPS_MAX];
    uint32_t classes_done[SC_PLAY_STEPS_MAX + 8];
    int cycle;
    double bound_us; /* no period is shorter for long */
    uint64_t events;
};

enum sc_status sc_engine_compile(struct engine *engine, struct sc_error *err);
/* The critical path of a play that keeps it (critical_path.c); sc_path_free. */
enum sc_status sc_engine_path(const struct engine *engine, struct sc_path *out,
                              struct sc_error *err);
enum sc_status sc_engine_result(const struct engine *engine, struct sc_play *out,
                                struct sc_error *err);

static inline struct row *sc_engine_row(const struct engine *engine, uint32_t op, uint32_t step)
{
    return &engine->rows[(size_t)(step & engine->ring_mask) * engine->op_count + op];
}

#endif
