/* Reads what a play left behind: period, times of the last step, who kept the main stream waiting,
 * how much of each resource was used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_internal.h"

/* Times that rounding makes out of zero. */
#define NOTHING_US 1e-7

static const char *bound_name(const struct engine *engine, const struct row *row,
                              const struct work *work)
{
    if (row->limit == SC_LIMIT_HELD)
        return "held";
    if (row->limit == SC_LIMIT_BESIDE)
        return "beside_compute";
    if (row->limit >= 0)
        return engine->machine->instances.items[row->limit].name;
    return work->bound;
}

static void read_times(const struct engine *engine, uint32_t step, double zero,
                       struct sc_op_times *times)
{
    for (uint32_t c = 0; c < engine->class_count; c++) {
        const struct engine_class *class = &engine->classes[c];
        const struct sc_op *ops = engine->program->classes.items[c].step.ops.items;
        for (uint32_t i = 0; i < class->ops; i++) {
            uint32_t flat = class->first + i;
            const struct row *row = sc_engine_row(engine, flat, step);
            bool collective = ops[i].group >= 0;
            times[flat] = (struct sc_op_times){
                .ready_us = row->ready - zero,
                .start_us = row->start - zero,
                .transfer_us = collective ? row->transfer - zero : (double)NAN,
                .end_us = row->end - zero,
                .bound = bound_name(engine, row, &engine->works[engine->ops[flat].work])};
        }
    }
}

/* ---- exposed time -----------------------------------------------------------------------------
 */

struct instance { /* an operation of a step; op SC_NONE: none */
    uint32_t op, step;
    double end;
};

static void consider(const struct engine *engine, uint32_t op, int64_t step,
                     struct instance *latest)
{
    if (step < 0 || step + engine->ring <= (int64_t)engine->steps_done + 1)
        return; /* before the first, or its times are not kept any more */
    double end = sc_engine_row(engine, op, (uint32_t)step)->end;
    if (latest->op == SC_NONE || end > latest->end)
        *latest = (struct instance){op, (uint32_t)step, end};
}

/* What an operation had to wait for that ended last: an awaited one or the one before on its
 * stream. */
static struct instance latest_cause(const struct engine *engine, uint32_t c, uint32_t op,
                                    uint32_t step, const uint32_t *position)
{
    struct instance latest = {SC_NONE, 0, 0};
    const struct engine_class *class = &engine->classes[c];
    const struct engine_op *compiled = &engine->ops[op];
    const struct sc_wait *wait = class->waits + compiled->first_wait;
    for (uint32_t w = 0; w < compiled->waits; w++)
        consider(engine, class->first + wait[w].op, (int64_t)step - wait[w].distance, &latest);
    const struct slot *slot = &engine->slots[compiled->slot];
    uint32_t at = position[op];
    uint32_t before = slot->order[at > 0 ? at - 1 : slot->count - 1];
    consider(engine, class->first + before, (int64_t)step - (at > 0 ? 0 : 1), &latest);
    return latest;
}

/* Books the time from `from` to the start of an operation of the main stream on those that kept
 * it waiting, going back from cause to cause. */
static void book_gap(const struct engine *engine, uint32_t c, uint32_t op, uint32_t step,
                     double from, const uint32_t *position, struct sc_op_times *times)
{
    uint32_t x = op, k = step;
    const struct row *row = sc_engine_row(engine, x, k);
    if (row->start - row->ready > NOTHING_US)
        times[op].exposed_us += row->start - fmax(row->ready, from);
    double until = row->ready;
    for (uint32_t guard = 0; until - from > NOTHING_US && guard < engine->op_count; guard++) {
        struct instance cause = latest_cause(engine, c, x, k, position);
        double end = cause.op == SC_NONE ? from : fmax(cause.end, from);
        if (until - end > NOTHING_US)
            times[op].issue_wait_us += until - end;
        if (cause.op == SC_NONE || cause.end <= from)
            return;
        double start = sc_engine_row(engine, cause.op, cause.step)->start;
        times[cause.op].exposed_us += fmin(end, until) - fmax(start, from);
        x = cause.op;
        k = cause.step;
        until = start;
        double ready = sc_engine_row(engine, x, k)->ready;
        if (until - ready > NOTHING_US && until > from)
            times[x].exposed_us += until - fmax(ready, from);
        until = ready;
    }
}

/* Work of a stream that is no collective, in the last step. */
static double own_work(const struct engine *engine, const struct slot *slot, uint32_t step)
{
    const struct sc_op *ops = engine->program->classes.items[slot->class_index].step.ops.items;
    uint32_t first = engine->classes[slot->class_index].first;
    double sum = 0;
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct row *row = sc_engine_row(engine, first + slot->order[i], step);
        if (ops[slot->order[i]].group < 0)
            sum += row->end - row->start;
    }
    return sum;
}

static bool on_device(const struct engine *engine, const struct slot *slot)
{
    return engine->program->streams.items[slot->stream].engine == SC_ENGINE_DEVICE;
}

static const struct slot *main_slot(const struct engine *engine, uint32_t c, uint32_t step)
{
    const struct engine_class *class = &engine->classes[c];
    const struct slot *best = NULL;
    double most = 0;
    for (uint32_t i = 0; i < class->slots; i++) {
        const struct slot *slot = &engine->slots[class->first_slot + i];
        double work = own_work(engine, slot, step);
        bool better = best == NULL || work > most;
        if (best != NULL && on_device(engine, slot) != on_device(engine, best))
            better = on_device(engine, slot);
        if (better) {
            best = slot;
            most = work;
        }
    }
    return best;
}

static void read_main(const struct engine *engine, uint32_t c, uint32_t step,
                      const uint32_t *position, struct sc_op_times *times,
                      struct sc_play_class *out)
{
    const struct engine_class *class = &engine->classes[c];
    const struct slot *slot = main_slot(engine, c, step);
    double first = 0;
    if (step > 0)
        first = sc_engine_row(engine, class->first + slot->order[slot->count - 1], step - 1)->end;
    double before = first;
    out->busy_us = 0;
    for (uint32_t i = 0; i < slot->count; i++) {
        uint32_t op = class->first + slot->order[i];
        const struct row *row = sc_engine_row(engine, op, step);
        if (row->start - before > NOTHING_US)
            book_gap(engine, c, op, step, before, position, times);
        out->busy_us += row->end - row->start;
        before = row->end;
    }
    out->span_us = before - first;
    out->times = times + class->first;
    out->ops = class->ops;
    out->main = slot->stream;
    out->anchor = engine->slots[engine->ops[class->first + class->ops - 1].slot].stream;
}

static enum sc_status read_classes(const struct engine *engine, struct sc_play *out,
                                   struct sc_error *err)
{
    uint32_t *position = calloc(engine->op_count, sizeof(*position));
    if (position == NULL)
        return sc_fail_memory(err, engine->op_count * sizeof(*position));
    for (uint32_t s = 0; s < engine->slot_count; s++) {
        const struct slot *slot = &engine->slots[s];
        for (uint32_t i = 0; i < slot->count; i++)
            position[engine->classes[slot->class_index].first + slot->order[i]] = i;
    }
    enum sc_status status = SC_OK;
    for (uint32_t c = 0; c < engine->class_count && status == SC_OK; c++) {
        struct sc_play_class *class = sc_array_push(&out->classes);
        if (class == NULL)
            status = sc_fail_memory(err, sizeof(*class));
        else
            read_main(engine, c, engine->steps_done - 1, position, out->times, class);
    }
    free(position);
    return status;
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static enum sc_status read_utilisation(const struct engine *engine, struct sc_play *out,
                                       struct sc_error *err)
{
    for (size_t r = 0; r < engine->machine->instances.count; r++)
        if (sc_array_push(&out->utilisation) == NULL)
            return sc_fail_memory(err, sizeof(double));
    for (uint32_t op = 0; op < engine->op_count; op++) {
        const struct engine_op *compiled = &engine->ops[op];
        const struct work *work = &engine->works[compiled->work];
        if (compiled->join != SC_NONE &&
            engine->members[engine->joins[compiled->join].first_member] != compiled->slot)
            continue; /* counted at the first member */
        for (uint32_t u = 0; u < work->uses; u++)
            out->utilisation.items[work->use[u].resource] += work->use[u].demand * work->duration;
    }
    for (size_t r = 0; r < out->utilisation.count && out->period_us > 0; r++)
        out->utilisation.items[r] /= out->period_us;
    return SC_OK;
}

static void read_periods(const struct engine *engine, struct sc_play *out)
{
    out->steps = (int)engine->steps_done;
    out->first_step_us = engine->step_end[0];
    out->settled = engine->cycle > 0;
    for (int i = 0; i < out->steps; i++)
        out->periods_us[i] = engine->step_end[i] - (i > 0 ? engine->step_end[i - 1] : 0);
    out->cycle = engine->cycle;
    if (!out->settled) /* the later half, without the cold step */
        out->cycle = out->steps > 2 ? out->steps / 2 : 1;
    double sum = 0;
    for (int i = 0; i < out->cycle; i++)
        sum += out->periods_us[out->steps - 1 - i];
    out->period_us = sum / out->cycle;
    if (!out->settled && !engine->exact_steps && out->period_us < engine->bound_us)
        out->period_us = engine->bound_us;
    out->events = engine->events;
}

enum sc_status sc_engine_result(const struct engine *engine, struct sc_play *out,
                                struct sc_error *err)
{
    struct sc_play play;
    memset(&play, 0, sizeof(play));
    enum sc_status status = SC_OK;
    play.times = calloc(engine->op_count, sizeof(*play.times));
    if (play.times == NULL)
        return sc_fail_memory(err, engine->op_count * sizeof(*play.times));
    read_periods(engine, &play);
    uint32_t last = engine->steps_done - 1;
    read_times(engine, last, last > 0 ? engine->step_end[last - 1] : 0, play.times);
    SC_TRY_GOTO(read_classes(engine, &play, err), release);
    SC_TRY_GOTO(read_utilisation(engine, &play, err), release);
    if (engine->keeps_path)
        SC_TRY_GOTO(sc_engine_path(engine, &play.path, err), release);
    *out = play;
    return SC_OK;
release:
    sc_play_free(&play);
    return status;
}

void sc_play_free(struct sc_play *play)
{
    free(play->times);
    sc_array_free(&play->classes);
    sc_array_free(&play->utilisation);
    sc_path_free(&play->path);
    memset(play, 0, sizeof(*play));
}

/* The trace's own copy of a name; bounds are few, so the copies made are looked through. */
struct copies {
    const char *from[64], *copy[64];
    int count;
};

static const char *copy_name(struct sc_trace *trace, struct copies *copies, const char *name)
{
    for (int i = 0; i < copies->count; i++)
        if (copies->from[i] == name)
            return copies->copy[i];
    const char *copy = sc_arena_strdup(&trace->arena, name);
    if (copy != NULL && copies->count < 64) {
        copies->from[copies->count] = name;
        copies->copy[copies->count++] = copy;
    }
    return copy;
}

enum sc_status sc_play_trace(const struct sc_program *program, const struct sc_play *play,
                             struct sc_trace *trace, struct sc_error *err)
{
    size_t row = 0;
    struct copies copies = {.count = 0};
    for (size_t c = 0; c < play->classes.count; c++)
        row += play->classes.items[c].ops;
    if (row != trace->rows.count || program->classes.count != play->classes.count)
        return sc_fail(err, SC_BUG, "the trace is not of the program %s", program->name);
    for (size_t i = 0; i < row; i++) {
        struct sc_trace_row *out = &trace->rows.items[i];
        if (out->class_index >= play->classes.count ||
            out->operation >= play->classes.items[out->class_index].ops)
            return sc_fail(err, SC_BUG, "the trace is not of the program %s", program->name);
        const struct sc_op_times *times =
            &play->classes.items[out->class_index].times[out->operation];
        out->ready_us = times->ready_us;
        out->start_us = times->start_us;
        out->transfer_us = times->transfer_us;
        out->end_us = times->end_us;
        out->bound = copy_name(trace, &copies, times->bound);
        if (out->bound == NULL)
            return sc_fail_memory(err, strlen(times->bound));
        out->p10_us = out->p90_us = (double)NAN;
    }
    trace->steps_played = play->steps;
    trace->period_us = play->period_us;
    return SC_OK;
}
