/* The event loop, see engine.h. One timer a stream: a stream waits, or its one operation is in a
 * phase. What happens at one instant is collected before units are handed out and speeds are worked
 * out, so that the order of simultaneous events does not matter. */
#include "sim/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/bound.h"
#include "sim/engine_internal.h"

/* Two sums of periods are equal up to rounding. */
#define SETTLED 1e-9
/* What holders leave to work at least, so that a holder that works there itself moves on. */
#define CAPACITY_LEFT 0.01

static void set_timer(struct engine *engine, uint32_t s, double time)
{
    sc_event_queue_set(&engine->queue, s, time);
}

static uint32_t current_op(const struct engine *engine, const struct slot *slot)
{
    return engine->classes[slot->class_index].first + slot->order[slot->head];
}

/* ---- members of what runs on a slot ---------------------------------------------------------- */

/* The streams that take part in the operation on slot s. */
static uint32_t members_of(const struct engine *engine, const uint32_t *s, const uint32_t **members)
{
    uint32_t join = engine->ops[current_op(engine, &engine->slots[*s])].join;
    if (join == SC_NONE) {
        *members = s;
        return 1;
    }
    *members = &engine->members[engine->joins[join].first_member];
    return engine->joins[join].members;
}

static void count_computing(struct engine *engine, uint32_t s, bool begins)
{
    struct engine_class *class = &engine->classes[engine->slots[s].class_index];
    if (!engine->has_slowdown)
        return;
    if (begins)
        class->computing++;
    else
        class->computing--;
    class->computing_changed = true;
}

/* The greatest speed of what runs on slot s. */
static double cap_of(const struct engine *engine, uint32_t s)
{
    const struct work *work = &engine->works[engine->slots[s].work];
    if (work->slowdown <= 1)
        return 1;
    const uint32_t *members;
    uint32_t count = members_of(engine, &s, &members);
    for (uint32_t m = 0; m < count; m++)
        if (engine->classes[engine->slots[members[m]].class_index].computing > 0)
            return 1 / work->slowdown;
    return 1;
}

/* ---- held units ------------------------------------------------------------------------------ */

static void units_changed(struct engine *engine, uint32_t resource)
{
    double left = 1 - engine->units_used[resource] / engine->units[resource];
    if (left < CAPACITY_LEFT)
        left = CAPACITY_LEFT;
    sc_share_set_capacity(engine->share, resource, left);
}

static void take_units(struct engine *engine, const struct work *work, double sign)
{
    for (uint32_t h = 0; h < work->held_count; h++) {
        uint32_t resource = work->held[h].resource;
        engine->units_used[resource] += sign * work->held[h].units;
        if (engine->units_used[resource] < 1e-9)
            engine->units_used[resource] = 0;
        units_changed(engine, resource);
    }
}

static void give_back_units(struct engine *engine, const struct work *work, uint32_t op)
{
    take_units(engine, work, -1);
    for (uint32_t h = 0; h < work->held_count; h++)
        engine->released[work->held[h].resource] = (struct release){op, engine->now};
}

/* Who gave back at this instant what the work waited for. */
static uint32_t released_by(const struct engine *engine, const struct work *work)
{
    uint32_t op = SC_NONE;
    for (uint32_t h = 0; h < work->held_count; h++) {
        const struct release *release = &engine->released[work->held[h].resource];
        if (release->time >= engine->now)
            op = release->op;
    }
    return op;
}

/* Whether the units are there and nobody before in the queue waits for the same ones; who does not
 * get them blocks them for those behind, so that a large claim is not passed for ever. */
static bool units_free(struct engine *engine, const struct work *work)
{
    bool free = true;
    for (uint32_t h = 0; h < work->held_count; h++) {
        uint32_t resource = work->held[h].resource;
        if (engine->units_blocked[resource] == engine->blocked_round ||
            engine->units_used[resource] + work->held[h].units > engine->units[resource] + 1e-9)
            free = false;
    }
    for (uint32_t h = 0; h < work->held_count && !free; h++)
        engine->units_blocked[work->held[h].resource] = engine->blocked_round;
    return free;
}

static bool held_before(const struct engine *engine, uint32_t a, uint32_t b)
{
    int pa = engine->slots[a].priority, pb = engine->slots[b].priority;
    if (pa != pb)
        return pa > pb;
    if (engine->held_since[a] < engine->held_since[b])
        return true;
    return engine->held_since[a] <= engine->held_since[b] && a < b;
}

static void queue_held(struct engine *engine, uint32_t s)
{
    engine->slots[s].state = SLOT_HELD;
    engine->held_since[s] = engine->now;
    uint32_t at = engine->held_count++;
    while (at > 0 && held_before(engine, s, engine->held_queue[at - 1])) {
        engine->held_queue[at] = engine->held_queue[at - 1];
        at--;
    }
    engine->held_queue[at] = s;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void begin_work(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    const struct work *work = &engine->works[slot->work];
    slot->state = SLOT_WORK;
    slot->left = work->duration;
    slot->since = engine->now;
    if (work->uses == 0 && work->slowdown <= 1) {
        slot->speed = 1;
        set_timer(engine, s, engine->now + work->duration);
        return;
    }
    slot->speed = 0; /* known when this instant is over */
    sc_share_add(engine->share, s, work->use, work->uses, work->weight, cap_of(engine, s));
}

static void begin(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    const struct work *work = &engine->works[slot->work];
    const uint32_t *members;
    uint32_t count = members_of(engine, &s, &members);
    for (uint32_t m = 0; m < count; m++) {
        struct slot *member = &engine->slots[members[m]];
        struct row *row = sc_engine_row(engine, current_op(engine, member), member->step);
        if (count == 1)
            row->start = engine->now;
        row->transfer = engine->now;
        row->released_by = released_by(engine, work);
        member->state = SLOT_LATENCY;
        if (work->computes)
            count_computing(engine, members[m], true);
    }
    memset(slot->limited, 0, sizeof(slot->limited));
    slot->beside = 0;
    slot->alone = work->latency;
    slot->limit_now = SC_LIMIT_ALONE;
    if (work->latency <= 0) {
        begin_work(engine, s);
    } else if (work->uses == 0 && work->slowdown <= 1) {
        slot->state = SLOT_WORK;
        slot->left = 0;
        set_timer(engine, s, engine->now + work->latency + work->duration);
    } else {
        set_timer(engine, s, engine->now + work->latency);
    }
}

/* Everything that the operation needs but units is there. */
static void reach_start(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    slot->work = engine->ops[current_op(engine, slot)].work;
    if (engine->works[slot->work].held_count > 0)
        queue_held(engine, s);
    else
        begin(engine, s);
}

/* The operation's own class is ready. */
static void arrive(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    uint32_t op = current_op(engine, slot);
    struct row *row = sc_engine_row(engine, op, slot->step);
    row->ready = row->start = engine->now;
    row->signal = slot->noticed >= engine->now ? slot->signal : NAN;
    uint32_t j = engine->ops[op].join;
    if (j == SC_NONE) {
        reach_start(engine, s);
        return;
    }
    struct join *join = &engine->joins[j];
    slot->state = SLOT_MEET;
    if (++join->arrived < join->members)
        return;
    join->arrived = 0;
    reach_start(engine, engine->members[join->first_member]);
}

/* Finds the first wait that has not ended and lines up there. */
static bool waits_ended(struct engine *engine, uint32_t s, uint32_t op)
{
    struct slot *slot = &engine->slots[s];
    const struct engine_class *class = &engine->classes[slot->class_index];
    const struct sc_wait *wait = class->waits + engine->ops[op].first_wait;
    for (uint32_t w = 0; w < engine->ops[op].waits; w++) {
        uint32_t awaited = class->first + wait[w].op;
        if (engine->done[awaited] + wait[w].distance > slot->step)
            continue;
        slot->state = SLOT_WAIT;
        slot->next_waiter = engine->waiter[awaited];
        engine->waiter[awaited] = s;
        return false;
    }
    return true;
}

/* Takes the stream's next operation as far as it goes now. */
static void advance(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    const struct engine_class *class = &engine->classes[slot->class_index];
    if (slot->step >= class->issued_steps) {
        slot->state = SLOT_GATE;
        return;
    }
    uint32_t op = current_op(engine, slot);
    if (!waits_ended(engine, s, op))
        return;
    double issued = class->issue_base[slot->step & engine->ring_mask] + engine->ops[op].issued;
    double earliest = slot->noticed > issued ? slot->noticed : issued;
    if (earliest > engine->now) {
        slot->state = SLOT_ISSUE;
        set_timer(engine, s, earliest);
        return;
    }
    arrive(engine, s);
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static void open_gate(struct engine *engine, struct engine_class *class)
{
    uint32_t step = class->issued_steps++;
    double base = engine->now;
    if (step > 0) {
        double before = class->issue_base[(step - 1) & engine->ring_mask] + class->issue_total;
        base = before > base ? before : base;
    }
    class->issue_base[step & engine->ring_mask] = base;
    class->remaining[step & engine->ring_mask] = class->ops;
}

/* Issues what the class's ended steps allow, as far as times are kept. */
static void issue_steps(struct engine *engine, uint32_t c)
{
    struct engine_class *class = &engine->classes[c];
    uint32_t limit = class->ended_steps + engine->steps_ahead;
    if (limit > engine->steps_done + engine->drift - 2)
        limit = engine->steps_done + engine->drift - 2;
    bool more = class->issued_steps < limit;
    while (class->issued_steps < limit)
        open_gate(engine, class);
    for (uint32_t i = 0; more && i < class->slots; i++)
        if (engine->slots[class->first_slot + i].state == SLOT_GATE)
            advance(engine, class->first_slot + i);
}

static double period(const struct engine *engine, uint32_t step)
{
    return engine->step_end[step] - engine->step_end[step - 1];
}

static bool settled_over(const struct engine *engine, uint32_t c)
{
    uint32_t last = engine->steps_done - 1;
    if (last < 2 * c)
        return false;
    double late = 0, early = 0;
    for (uint32_t i = 0; i < c; i++) {
        late += period(engine, last - i);
        early += period(engine, last - c - i);
    }
    if (fabs(late - early) > SETTLED * late)
        return false;
    if (late < c * engine->bound_us * (1 - SETTLED))
        return false; /* some stream or resource needs longer: it still lives on its lead */
    /* A stream that falls behind further each step will set the pace later. */
    return engine->lag[last] <= engine->lag[last - c] + SETTLED * late;
}

/* All classes have ended a step: the end of the play, or not. */
static void end_step(struct engine *engine)
{
    uint32_t step = engine->steps_done++;
    double end = 0;
    for (uint32_t c = 0; c < engine->class_count; c++) {
        const struct engine_class *class = &engine->classes[c];
        const struct row *row = sc_engine_row(engine, class->first + class->ops - 1, step);
        end = row->end > end ? row->end : end;
    }
    engine->step_end[step] = end;
    engine->lag[step] = engine->now - end;
    engine->cycle = 0;
    for (uint32_t c = 1; c <= SC_PLAY_CYCLE_MAX && engine->cycle == 0; c++)
        if (settled_over(engine, c))
            engine->cycle = (int)c;
    engine->finished =
        engine->steps_done == engine->steps_wanted || (engine->cycle > 0 && !engine->exact_steps);
    for (uint32_t c = 0; c < engine->class_count && !engine->finished; c++)
        issue_steps(engine, c);
}

static void end_class_step(struct engine *engine, uint32_t c, uint32_t step)
{
    engine->classes[c].ended_steps++;
    if (step < engine->steps_wanted && ++engine->classes_done[step] == engine->class_count)
        end_step(engine);
    if (!engine->finished)
        issue_steps(engine, c);
}

static void wake(struct engine *engine, uint32_t op)
{
    uint32_t s = engine->waiter[op];
    engine->waiter[op] = SC_NONE;
    while (s != SC_NONE) {
        uint32_t next = engine->slots[s].next_waiter;
        engine->slots[s].next_waiter = SC_NONE;
        engine->slots[s].signal = engine->now;
        engine->slots[s].noticed =
            engine->now + engine->ops[current_op(engine, &engine->slots[s])].wait;
        advance(engine, s);
        s = next;
    }
}

static void end_member(struct engine *engine, uint32_t s, int32_t limit)
{
    struct slot *slot = &engine->slots[s];
    uint32_t c = slot->class_index, op = current_op(engine, slot), step = slot->step;
    struct engine_class *class = &engine->classes[c];
    struct row *row = sc_engine_row(engine, op, step);
    row->end = engine->now;
    row->limit = limit;
    if (engine->ops[op].join == SC_NONE && row->transfer - row->ready > engine->now - row->transfer)
        row->limit = SC_LIMIT_HELD;
    engine->done[op]++;
    engine->events++;
    slot->state = SLOT_IDLE;
    if (++slot->head == slot->count) {
        slot->head = 0;
        slot->step++;
    }
    if (--class->remaining[step & engine->ring_mask] == 0)
        end_class_step(engine, c, step);
    wake(engine, op);
    if (!engine->finished && slot->state == SLOT_IDLE)
        advance(engine, s);
}

/* Books the time since the speed was set. */
static void book(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    double passed = engine->now - slot->since;
    slot->since = engine->now;
    slot->left -= passed * slot->speed;
    if (slot->left < 0)
        slot->left = 0;
    if (slot->limit_now >= 0)
        slot->limited[slot->limit_now] += passed;
    else if (slot->limit_now == SC_LIMIT_BESIDE)
        slot->beside += passed;
    else
        slot->alone += passed;
}

/* What limited the operation longest: a resource, computation beside it, or its own price. */
static int32_t longest_limit(const struct slot *slot, const struct work *work)
{
    int32_t limit = SC_LIMIT_ALONE;
    double longest = slot->alone;
    if (slot->beside > longest) {
        longest = slot->beside;
        limit = SC_LIMIT_BESIDE;
    }
    for (uint32_t u = 0; u < work->uses && u < SLOT_LIMITS; u++)
        if (slot->limited[u] > longest) {
            longest = slot->limited[u];
            limit = (int32_t)work->use[u].resource;
        }
    return limit;
}

static void end(struct engine *engine, uint32_t s)
{
    struct slot *slot = &engine->slots[s];
    const struct work *work = &engine->works[slot->work];
    int32_t limit = SC_LIMIT_ALONE;
    if (work->uses > 0 || work->slowdown > 1) {
        book(engine, s);
        limit = longest_limit(slot, work);
        sc_share_remove(engine->share, s);
    }
    give_back_units(engine, work, current_op(engine, slot));
    const uint32_t *members;
    uint32_t count = members_of(engine, &s, &members);
    for (uint32_t m = 0; m < count; m++)
        if (work->computes)
            count_computing(engine, members[m], false);
    for (uint32_t m = 0; m < count; m++)
        end_member(engine, members[m], limit);
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

static void handle(struct engine *engine, uint32_t s)
{
    sc_event_queue_cancel(&engine->queue, s);
    switch (engine->slots[s].state) {
    case SLOT_ISSUE:
        arrive(engine, s);
        return;
    case SLOT_LATENCY:
        begin_work(engine, s);
        return;
    case SLOT_WORK:
        end(engine, s);
        return;
    case SLOT_IDLE:
    case SLOT_GATE:
    case SLOT_WAIT:
    case SLOT_MEET:
    case SLOT_HELD:
        return; /* these have no timer */
    }
}

static void hand_out_units(struct engine *engine)
{
    engine->blocked_round++;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < engine->held_count; i++) {
        uint32_t s = engine->held_queue[i];
        const struct work *work = &engine->works[engine->slots[s].work];
        if (!units_free(engine, work)) {
            engine->held_queue[kept++] = s;
            continue;
        }
        take_units(engine, work, 1);
        begin(engine, s);
    }
    engine->held_count = kept;
}

static void update_caps(struct engine *engine)
{
    bool changed = false;
    for (uint32_t c = 0; c < engine->class_count; c++) {
        changed |= engine->classes[c].computing_changed;
        engine->classes[c].computing_changed = false;
    }
    for (uint32_t s = 0; changed && s < engine->slot_count; s++) {
        const struct slot *slot = &engine->slots[s];
        if (slot->state == SLOT_WORK && engine->works[slot->work].slowdown > 1)
            sc_share_set_cap(engine->share, s, cap_of(engine, s));
    }
}

static int32_t limit_index(const struct engine *engine, uint32_t s)
{
    const struct work *work = &engine->works[engine->slots[s].work];
    uint32_t limit = sc_share_limit(engine->share, s);
    if (limit == SC_SHARE_NONE)
        return sc_share_speed(engine->share, s) < 1 ? SC_LIMIT_BESIDE : SC_LIMIT_ALONE;
    for (uint32_t u = 0; u < work->uses && u < SLOT_LIMITS; u++)
        if (work->use[u].resource == limit)
            return (int32_t)u;
    return SC_LIMIT_ALONE;
}

static void update_speeds(struct engine *engine)
{
    const uint32_t *changed;
    uint32_t count = sc_share_solve(engine->share, &changed);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t s = changed[i];
        struct slot *slot = &engine->slots[s];
        book(engine, s);
        slot->speed = sc_share_speed(engine->share, s);
        slot->limit_now = limit_index(engine, s);
        set_timer(engine, s, engine->now + slot->left / slot->speed);
    }
}

static void end_instant(struct engine *engine)
{
    if (engine->held_count > 0)
        hand_out_units(engine);
    if (engine->has_slowdown)
        update_caps(engine);
    update_speeds(engine);
}

static enum sc_status stands_still(const struct engine *engine, struct sc_error *err)
{
    char text[256], label[128];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t s = 0; s < engine->slot_count && used + 1 < sizeof(text); s++) {
        const struct slot *slot = &engine->slots[s];
        if (slot->state != SLOT_WAIT && slot->state != SLOT_MEET && slot->state != SLOT_HELD)
            continue;
        const struct sc_class *class = &engine->program->classes.items[slot->class_index];
        const struct sc_op *op = &class->step.ops.items[slot->order[slot->head]];
        int n =
            snprintf(text + used, sizeof(text) - used, "%s%s: %s", used > 0 ? "; " : "",
                     class->name, sc_label_text(engine->program, op->label, label, sizeof(label)));
        used += n > 0 ? (size_t)n : 0;
    }
    return sc_fail(err, SC_BUG, "%s: the played program stands still at %s", engine->program->name,
                   text);
}

static enum sc_status play(struct engine *engine, struct sc_error *err)
{
    for (uint32_t c = 0; c < engine->class_count; c++)
        issue_steps(engine, c);
    for (uint32_t s = 0; s < engine->slot_count; s++)
        if (engine->slots[s].state == SLOT_IDLE)
            advance(engine, s);
    end_instant(engine);
    while (!engine->finished) {
        uint32_t s;
        double time;
        if (!sc_event_queue_first(&engine->queue, &s, &time))
            return stands_still(engine, err);
        engine->now = time;
        do {
            handle(engine, s);
        } while (!engine->finished && sc_event_queue_first(&engine->queue, &s, &time) &&
                 time <= engine->now);
        end_instant(engine);
    }
    return SC_OK;
}

enum sc_status sc_play(const struct sc_program *program, const struct sc_prices *prices,
                       const struct sc_machine *machine, const struct sc_play_options *options,
                       struct sc_play *out, struct sc_error *err)
{
    struct engine engine;
    memset(&engine, 0, sizeof(engine));
    engine.program = program;
    engine.prices = prices;
    engine.machine = machine;
    engine.class_count = (uint32_t)program->classes.count;
    engine.steps_ahead = program->steps_ahead > 0 ? (uint32_t)program->steps_ahead : 1;
    engine.exact_steps = options != NULL && options->steps > 0;
    engine.keeps_path = options != NULL && options->path;
    engine.steps_wanted = SC_PLAY_STEPS_MAX;
    if (engine.exact_steps && options->steps < SC_PLAY_STEPS_MAX)
        engine.steps_wanted = (uint32_t)options->steps;
    enum sc_status status;
    SC_TRY_GOTO(sc_engine_compile(&engine, err), release);
    SC_TRY_GOTO(sc_bound_period(program, prices, machine, &engine.bound_us, err), release);
    SC_TRY_GOTO(play(&engine, err), release);
    status = sc_engine_result(&engine, out, err);
release:
    sc_event_queue_free(&engine.queue);
    sc_share_destroy(&engine.share);
    sc_arena_free(&engine.arena);
    return status;
}
