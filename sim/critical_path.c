/* The walk back from the end of a play, see critical_path.h. */
#include "sim/critical_path.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine_internal.h"

void sc_path_free(struct sc_path *path)
{
    sc_array_free(&path->pieces);
    memset(path, 0, sizeof(*path));
}

struct walk {
    const struct engine *engine;
    const uint32_t *position; /* [ops] place on its stream */
    double from, to;          /* of the window, absolute */
    struct sc_path *path;
    /* state: the operation up to whose end or beginning everything later is accounted for */
    uint32_t op, step;
    double until;
};

static uint32_t class_of(const struct walk *walk, uint32_t op)
{
    return walk->engine->slots[walk->engine->ops[op].slot].class_index;
}

static struct row *row_of(const struct walk *walk, uint32_t op, uint32_t step)
{
    return sc_engine_row(walk->engine, op, step);
}

static double clamp(const struct walk *walk, double time)
{
    if (time < walk->from)
        return walk->from;
    return time > walk->to ? walk->to : time;
}

/* Accounts for the time from `begin` to walk->until, as far as it lies in the window. */
static enum sc_status book(struct walk *walk, enum sc_path_what what, double begin, double slowed,
                           struct sc_error *err)
{
    double b = clamp(walk, begin), e = clamp(walk, walk->until), whole = walk->until - begin;
    walk->until = begin;
    if (e <= b)
        return SC_OK;
    struct sc_path_piece *piece = sc_array_push(&walk->path->pieces);
    if (piece == NULL)
        return sc_fail_memory(err, sizeof(*piece));
    piece->class_index = class_of(walk, walk->op);
    piece->op = walk->op - walk->engine->classes[piece->class_index].first;
    piece->step = (int32_t)walk->step;
    piece->what = (uint8_t)what;
    piece->begin_us = b - walk->from;
    piece->end_us = e - walk->from;
    piece->slowed_us = slowed * (e - b) / whole;
    return SC_OK;
}

static enum sc_status book_run(struct walk *walk, struct sc_error *err)
{
    const struct row *row = row_of(walk, walk->op, walk->step);
    const struct work *work = &walk->engine->works[walk->engine->ops[walk->op].work];
    double slowed = row->end - row->transfer - work->latency - work->duration;
    return book(walk, SC_PATH_RUN, row->transfer, slowed > 0 ? slowed : 0, err);
}

/* ---- what an operation waited for --------------------------------------------------------------
 */

static bool ended_at(const struct walk *walk, uint32_t op, int64_t step, double time)
{
    if (step < 0 || step >= walk->engine->classes[class_of(walk, op)].issued_steps)
        return false;
    const struct row *row = row_of(walk, op, (uint32_t)step);
    return row->end >= time && row->end <= time;
}

static bool go_on_if(struct walk *walk, uint32_t op, int64_t step)
{
    if (!ended_at(walk, op, step, walk->until))
        return false;
    walk->op = op;
    walk->step = (uint32_t)step;
    return true;
}

/* To the one before on the stream or an awaited one, whichever ended when this became ready. */
static bool go_to_cause(struct walk *walk)
{
    const struct engine *engine = walk->engine;
    const struct engine_op *compiled = &engine->ops[walk->op];
    const struct slot *slot = &engine->slots[compiled->slot];
    const struct engine_class *class = &engine->classes[slot->class_index];
    uint32_t at = walk->position[walk->op];
    uint32_t before = slot->order[at > 0 ? at - 1 : slot->count - 1];
    if (go_on_if(walk, class->first + before, (int64_t)walk->step - (at > 0 ? 0 : 1)))
        return true;
    const struct sc_wait *wait = class->waits + compiled->first_wait;
    for (uint32_t w = 0; w < compiled->waits; w++)
        if (go_on_if(walk, class->first + wait[w].op, (int64_t)walk->step - wait[w].distance))
            return true;
    return false;
}

/* To who gave back the units at this instant, in whatever step it did. */
static bool go_to_holder(struct walk *walk)
{
    uint32_t op = row_of(walk, walk->op, walk->step)->released_by;
    const struct engine *engine = walk->engine;
    for (int64_t d = 0; op != SC_NONE && d < engine->ring; d++)
        if (go_on_if(walk, op, (int64_t)walk->step + engine->drift - d))
            return true;
    return false;
}

/* To the member of a collective of several classes that arrived last. */
static void go_to_last_member(struct walk *walk)
{
    const struct engine *engine = walk->engine;
    const struct engine_op *compiled = &engine->ops[walk->op];
    if (compiled->join == SC_NONE)
        return;
    const struct join *join = &engine->joins[compiled->join];
    double latest = row_of(walk, walk->op, walk->step)->ready;
    uint32_t work = compiled->work;
    for (uint32_t m = 0; m < join->members; m++) {
        const struct slot *slot = &engine->slots[engine->members[join->first_member + m]];
        for (uint32_t i = 0; i < slot->count; i++) {
            uint32_t op = engine->classes[slot->class_index].first + slot->order[i];
            if (engine->ops[op].work != work)
                continue;
            if (row_of(walk, op, walk->step)->ready > latest) {
                latest = row_of(walk, op, walk->step)->ready;
                walk->op = op;
            }
            break;
        }
    }
}

/* To an operation of the class that ended the step just now. */
static bool go_to_end_of(struct walk *walk, uint32_t c, int64_t step)
{
    const struct engine_class *class = &walk->engine->classes[c];
    for (uint32_t i = class->ops; i > 0; i--)
        if (go_on_if(walk, class->first + i - 1, step))
            return true;
    return false;
}

/* The issue of a step begins when the step steps_ahead before has ended, or, of classes that drift
 * apart, a step of another class. */
static bool go_through_gate(struct walk *walk, uint32_t c, int64_t step)
{
    const struct engine *engine = walk->engine;
    if (go_to_end_of(walk, c, step - engine->steps_ahead))
        return true;
    for (uint32_t other = 0; other < engine->class_count; other++)
        if (go_to_end_of(walk, other, step - engine->drift + 2) ||
            go_to_end_of(walk, other, step - engine->drift + 1))
            return true;
    return false;
}

/* Back through what the host thread issued without a pause. */
static enum sc_status follow_issue(struct walk *walk, bool *found, struct sc_error *err)
{
    const struct engine *engine = walk->engine;
    uint32_t c = class_of(walk, walk->op);
    const struct engine_class *class = &engine->classes[c];
    int64_t step = walk->step;
    *found = true;
    while (true) {
        SC_TRY(book(walk, SC_PATH_ISSUE, class->issue_base[step & engine->ring_mask], 0, err));
        if (walk->until <= walk->from || go_through_gate(walk, c, step))
            return SC_OK;
        if (step == 0)
            break;
        step--;
        walk->step = (uint32_t)step;
        walk->op = class->first + class->ops - 1;
    }
    *found = false;
    return SC_OK;
}

/* ---- the walk ----------------------------------------------------------------------------------
 */

/* One operation back: its own time, then to what it waited for. */
static enum sc_status step_back(struct walk *walk, struct sc_error *err)
{
    SC_TRY(book_run(walk, err));
    go_to_last_member(walk);
    double ready = row_of(walk, walk->op, walk->step)->ready;
    if (ready < walk->until && go_to_holder(walk))
        return SC_OK;
    SC_TRY(book(walk, SC_PATH_UNITS, ready, 0, err));
    double signal = row_of(walk, walk->op, walk->step)->signal;
    bool found = go_to_cause(walk);
    if (!found && signal < ready) {
        SC_TRY(book(walk, SC_PATH_SIGNAL, signal, 0, err));
        found = go_to_cause(walk);
    }
    if (!found)
        SC_TRY(follow_issue(walk, &found, err));
    return found ? SC_OK : book(walk, SC_PATH_START, walk->from, 0, err);
}

static void begin(struct walk *walk, uint32_t step)
{
    const struct engine *engine = walk->engine;
    walk->step = step;
    for (uint32_t c = 0; c < engine->class_count; c++) {
        uint32_t op = engine->classes[c].first + engine->classes[c].ops - 1;
        if (c == 0 || row_of(walk, op, step)->end > walk->until) {
            walk->op = op;
            walk->until = row_of(walk, op, step)->end;
        }
    }
}

/* The cycle before the last of a settled play; else the last periods whose times are kept. */
static void choose_window(struct walk *walk, uint32_t last, struct sc_path *path)
{
    const struct engine *engine = walk->engine;
    int64_t cycle = engine->cycle, end = last;
    if (cycle == 0 || end < 2 * cycle) {
        int64_t room = (int64_t)engine->ring - engine->drift - engine->steps_ahead;
        cycle = end < 1 ? 1 : end / 2 + end % 2;
        cycle = cycle < room ? cycle : room;
    } else {
        end -= cycle;
    }
    walk->to = engine->step_end[end];
    walk->from = end >= cycle ? engine->step_end[end - cycle] : 0;
    path->periods = (int)cycle;
    path->span_us = walk->to - walk->from;
}

static void reverse(struct sc_path *path)
{
    for (size_t i = 0, j = path->pieces.count; i + 1 < j; i++) {
        struct sc_path_piece piece = path->pieces.items[i];
        path->pieces.items[i] = path->pieces.items[--j];
        path->pieces.items[j] = piece;
    }
}

static uint32_t *find_positions(const struct engine *engine)
{
    uint32_t *position = calloc((size_t)engine->op_count + 1, sizeof(*position));
    for (uint32_t s = 0; position != NULL && s < engine->slot_count; s++) {
        const struct slot *slot = &engine->slots[s];
        for (uint32_t i = 0; i < slot->count; i++)
            position[engine->classes[slot->class_index].first + slot->order[i]] = i;
    }
    return position;
}

enum sc_status sc_engine_path(const struct engine *engine, struct sc_path *out,
                              struct sc_error *err)
{
    struct sc_path path;
    memset(&path, 0, sizeof(path));
    uint32_t *position = find_positions(engine), last = engine->steps_done - 1;
    if (position == NULL)
        return sc_fail_memory(err, engine->op_count * sizeof(*position));
    struct walk walk = {.engine = engine, .position = position, .path = &path};
    choose_window(&walk, last, &path);
    begin(&walk, last);
    uint64_t guard = (uint64_t)engine->op_count * engine->ring;
    enum sc_status status = SC_OK;
    while (status == SC_OK && walk.until > walk.from) {
        if (guard-- == 0)
            status = sc_fail(err, SC_BUG, "%s: the critical path goes in a circle",
                             engine->program->name);
        else
            status = step_back(&walk, err);
    }
    free(position);
    reverse(&path);
    if (status == SC_OK)
        *out = path;
    else
        sc_path_free(&path);
    return status;
}
