/* Step times and trace rows out of stamps. */
#include "exec/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/fit.h"

static double mean_end(const struct sc_measured *m, int64_t step)
{
    double sum = 0;
    if (step < 0)
        return m->begin;
    for (int64_t r = 0; r < m->program->mesh.ranks; r++)
        sum += m->step_ends[r][step];
    return sum / (double)m->program->mesh.ranks;
}

void sc_measure_periods(const struct sc_measured *measured, double *period_s)
{
    for (int64_t i = 0; i < measured->steps; i++) {
        int64_t step = measured->first_step + i;
        period_s[i] = mean_end(measured, step) - mean_end(measured, step - 1);
    }
}

/* ---- one traced step ------------------------------------------------------------------------- */

struct reading {
    const struct sc_measured *m;
    int64_t step;   /* shown */
    double zero;    /* end of the step before */
    double *spread; /* room for durations of an operation over ranks and steps */
    double *ends;   /* [streams]: end of the last operation of each, while walking a list */
};

static const struct sc_stamp *stamp_of(const struct sc_measured *m, int64_t rank, size_t ops,
                                       int64_t step, uint32_t op)
{
    return &m->stamps[rank][(size_t)(step % m->traced_steps) * ops + op];
}

static const struct sc_class *class_of(const struct sc_measured *m, int64_t rank)
{
    return &m->program->classes.items[sc_program_class_of(m->program, rank)];
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Inputs done, first on its stream, and issued; what lies outside the stamps that are kept does not
 * count. */
static double ready_at(const struct reading *reading, const struct sc_class *class, int64_t rank,
                       uint32_t index)
{
    const struct sc_measured *m = reading->m;
    const struct sc_list *list = &class->step;
    const struct sc_op *op = &list->ops.items[index];
    int64_t oldest = m->first_step + m->steps - m->traced_steps;
    double ready = stamp_of(m, rank, list->ops.count, reading->step, index)->issue;
    ready = later(ready, reading->ends[op->stream]);
    for (uint32_t w = 0; w < op->waits; w++) {
        const struct sc_wait *wait = &list->waits.items[op->first_wait + w];
        int64_t step = reading->step - wait->distance;
        if (step >= oldest && step >= 0)
            ready = later(ready, stamp_of(m, rank, list->ops.count, step, wait->op)->end);
    }
    return ready;
}

/* A collective's latest start over the members of the rank's group. Its number in each class is
 * found by its place among the group's collectives. */
static uint32_t same_collective(const struct sc_class *from, uint32_t index,
                                const struct sc_class *to)
{
    int16_t group = from->step.ops.items[index].group;
    size_t nth = 0;
    for (uint32_t i = 0; i < index; i++)
        nth += from->step.ops.items[i].group == group;
    for (uint32_t i = 0; i < to->step.ops.count; i++)
        if (to->step.ops.items[i].group == group && nth-- == 0)
            return i;
    return index;
}

static double transfer_at(const struct reading *reading, const struct sc_class *class, int64_t rank,
                          uint32_t index)
{
    const struct sc_program *program = reading->m->program;
    const struct sc_op *op = &class->step.ops.items[index];
    double latest = -INFINITY;
    if (op->group < 0)
        return NAN;
    unsigned mask = program->groups.items[op->group].axis_mask;
    int64_t first = rank, member;
    int64_t coordinates[SC_AXIS_COUNT], mine[SC_AXIS_COUNT];
    sc_mesh_coordinates(&program->mesh, first, mine);
    for (member = 0; member < program->mesh.ranks; member++) {
        bool inside = true;
        sc_mesh_coordinates(&program->mesh, member, coordinates);
        for (int a = 0; a < SC_AXIS_COUNT; a++)
            inside &= (mask >> a & 1) || coordinates[a] == mine[a];
        if (!inside)
            continue;
        const struct sc_class *theirs = class_of(reading->m, member);
        uint32_t there = theirs == class ? index : same_collective(class, index, theirs);
        latest = later(
            latest,
            stamp_of(reading->m, member, theirs->step.ops.count, reading->step, there)->start);
    }
    return latest;
}

/* p10 and p90 of end - start over the given ranks and all traced steps. */
static void spread(const struct reading *reading, const struct sc_class *class, int64_t only,
                   uint32_t index, struct sc_trace_row *row)
{
    const struct sc_measured *m = reading->m;
    size_t count = 0, ops = class->step.ops.count;
    for (int64_t r = 0; r < m->program->mesh.ranks; r++) {
        if (class_of(m, r) != class || (only >= 0 && r != only))
            continue;
        for (int64_t s = 0; s < m->traced_steps; s++) {
            const struct sc_stamp *at = &m->stamps[r][(size_t)s * ops + index];
            reading->spread[count++] = (at->end - at->start) * SC_US_PER_S;
        }
    }
    row->p10_us = sc_fit_quantile(reading->spread, count, 0.1);
    row->p90_us = sc_fit_quantile(reading->spread, count, 0.9);
}

/* Adds a rank's times to a row; the caller divides. */
static void add_times(const struct reading *reading, const struct sc_class *class, int64_t rank,
                      uint32_t index, struct sc_trace_row *row)
{
    const struct sc_stamp *at =
        stamp_of(reading->m, rank, class->step.ops.count, reading->step, index);
    row->ready_us += (ready_at(reading, class, rank, index) - reading->zero) * SC_US_PER_S;
    row->start_us += (at->start - reading->zero) * SC_US_PER_S;
    row->end_us += (at->end - reading->zero) * SC_US_PER_S;
    row->transfer_us += (transfer_at(reading, class, rank, index) - reading->zero) * SC_US_PER_S;
}

static void begin_walk(const struct reading *reading)
{
    for (size_t s = 0; s < reading->m->program->streams.count; s++)
        reading->ends[s] = -INFINITY;
}

static void end_op(const struct reading *reading, const struct sc_class *class, int64_t rank,
                   uint32_t index)
{
    reading->ends[class->step.ops.items[index].stream] =
        stamp_of(reading->m, rank, class->step.ops.count, reading->step, index)->end;
}

/* rows: those of the class, one an operation, with zero times. */
static void fill_class(const struct reading *reading, const struct sc_class *class,
                       struct sc_trace_row *rows)
{
    const struct sc_measured *m = reading->m;
    uint32_t ops = (uint32_t) class->step.ops.count;
    for (int64_t r = 0; r < m->program->mesh.ranks; r++) {
        if (class_of(m, r) != class)
            continue;
        begin_walk(reading);
        for (uint32_t i = 0; i < ops; i++) {
            add_times(reading, class, r, i, &rows[i]);
            end_op(reading, class, r, i);
        }
    }
    for (uint32_t i = 0; i < ops; i++) {
        rows[i].ready_us /= (double)class->ranks;
        rows[i].start_us /= (double)class->ranks;
        rows[i].transfer_us /= (double)class->ranks;
        rows[i].end_us /= (double)class->ranks;
        spread(reading, class, -1, i, &rows[i]);
    }
}

static enum sc_status append_rank(const struct reading *reading, int64_t rank, size_t first,
                                  struct sc_trace *trace, struct sc_error *err)
{
    const struct sc_class *class = class_of(reading->m, rank);
    uint32_t ops = (uint32_t) class->step.ops.count;
    if (!sc_array_reserve(&trace->rows, ops))
        return sc_fail_memory(err, ops * sizeof(struct sc_trace_row));
    begin_walk(reading);
    for (uint32_t i = 0; i < ops; i++) {
        struct sc_trace_row row = trace->rows.items[first + i];
        row.rank = rank;
        row.ready_us = row.start_us = row.transfer_us = row.end_us = 0;
        add_times(reading, class, rank, i, &row);
        end_op(reading, class, rank, i);
        spread(reading, class, rank, i, &row);
        trace->rows.items[trace->rows.count++] = row;
    }
    return SC_OK;
}

/* The traced step whose period is nearest to the median; not the oldest, whose waits reach back
 * behind the stamps, unless there is no other. */
static int64_t shown_step(const struct sc_measured *m, const double *period_s, double median)
{
    int64_t last = m->first_step + m->steps - 1, first = last - m->traced_steps + 1, best = last;
    for (int64_t s = last; s > first || s == last; s--)
        if (fabs(period_s[s - m->first_step] - median) <
            fabs(period_s[best - m->first_step] - median))
            best = s;
    return best;
}

/* Where the rows of a class begin in the trace. */
static size_t rows_before(const struct sc_program *program, uint32_t class)
{
    size_t rows = 0;
    for (uint32_t c = 0; c < class; c++)
        rows += program->classes.items[c].step.ops.count;
    return rows;
}

static enum sc_status fill(const struct reading *reading, bool ranks, struct sc_trace *trace,
                           struct sc_error *err)
{
    const struct sc_program *program = reading->m->program;
    for (uint32_t c = 0; c < program->classes.count; c++)
        fill_class(reading, &program->classes.items[c],
                   &trace->rows.items[rows_before(program, c)]);
    for (int64_t r = 0; ranks && r < program->mesh.ranks; r++)
        SC_TRY(append_rank(reading, r, rows_before(program, sc_program_class_of(program, r)), trace,
                           err));
    return SC_OK;
}

enum sc_status sc_measure_trace(const struct sc_measured *measured, const double *period_s,
                                bool ranks, struct sc_trace *trace, struct sc_error *err)
{
    const struct sc_program *program = measured->program;
    size_t samples = (size_t)(program->mesh.ranks * measured->traced_steps);
    size_t most = samples > (size_t)measured->steps ? samples : (size_t)measured->steps;
    struct reading reading = {.m = measured};
    reading.spread = calloc(most + 1, sizeof *reading.spread);
    reading.ends = calloc(program->streams.count + 1, sizeof *reading.ends);
    enum sc_status status = SC_OK;
    if (!reading.spread || !reading.ends) {
        status = sc_fail_memory(err, most * sizeof *reading.spread);
    } else {
        memcpy(reading.spread, period_s, (size_t)measured->steps * sizeof *period_s);
        double median = sc_fit_quantile(reading.spread, (size_t)measured->steps, 0.5);
        reading.step = shown_step(measured, period_s, median);
        reading.zero = mean_end(measured, reading.step - 1);
        trace->period_us = median * SC_US_PER_S;
        trace->steps_played = measured->steps;
        status = fill(&reading, ranks, trace, err);
    }
    free(reading.spread);
    free(reading.ends);
    return status;
}
