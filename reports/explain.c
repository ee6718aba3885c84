/* Collects an explanation, see explain.h. */
#include "reports/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sim/sensitivity.h"
#include "sim/simulate.h"

/* Everything while it is made. */
struct explaining {
    struct sc_sim_made made;
    struct sc_work_kinds kinds;
    struct sc_sensitivity sensitivity;
    struct sc_explanation out;
};

static const char *copy_text(struct explaining *e, const char *text)
{
    return sc_arena_strdup(&e->out.arena, text);
}

/* Microseconds of the whole path to seconds of a step. */
static double step_seconds(const struct explaining *e, double us)
{
    return us / e->made.play->path.periods / SC_US_PER_S;
}

/* ---- the path by kind of work ------------------------------------------------------------ */

static const struct sc_work_kind waits[] = {
    [SC_PATH_ISSUE] = {"issue", true},
    [SC_PATH_SIGNAL] = {"signal", true},
    [SC_PATH_UNITS] = {"units", true},
    [SC_PATH_START] = {"start", true},
};
enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

/* A kind of work, or behind those a reason to wait. */
static size_t part_of(const struct explaining *e, const struct sc_path_piece *piece)
{
    if (piece->what == SC_PATH_RUN) {
        return sc_work_kind_of(&e->kinds, piece->class_index, piece->op);
    }
    return e->kinds.kinds.count + piece->what;
}

static int by_length(const void *a, const void *b)
{
    const struct sc_explained_part *x = a, *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds) {
        return x->seconds < y->seconds ? 1 : -1;
    }
    return strcmp(x->name, y->name);
}

/* sums [kinds + WAITS]: of everything that may be on a path; those that are become parts. */
static enum sc_status keep_parts(struct explaining *e, const struct sc_explained_part *sums,
                                 struct sc_error *err)
{
    size_t kinds = e->kinds.kinds.count;
    for (size_t i = 0; i < kinds + WAITS; i++) {
        if (sums[i].seconds <= 0) {
            continue;
        }
        const struct sc_work_kind *kind = i < kinds ? &e->kinds.kinds.items[i] : &waits[i - kinds];
        struct sc_explained_part *part = sc_array_push(&e->out.parts);
        const char *name = copy_text(e, kind->name);
        if (part == NULL || name == NULL) {
            return sc_fail_memory(err, sizeof(*part));
        }
        *part = (struct sc_explained_part){name, kind->waits, step_seconds(e, sums[i].seconds),
                                           step_seconds(e, sums[i].slowed_s)};
    }
    if (e->out.parts.count > 0) {
        qsort(e->out.parts.items, e->out.parts.count, sizeof(struct sc_explained_part), by_length);
    }
    return SC_OK;
}

static enum sc_status sum_parts(struct explaining *e, struct sc_error *err)
{
    const struct sc_path *path = &e->made.play->path;
    size_t count = e->kinds.kinds.count + WAITS;
    struct sc_explained_part *sums = calloc(count, sizeof(*sums));
    if (sums == NULL) {
        return sc_fail_memory(err, count * sizeof(*sums));
    }
    for (size_t i = 0; i < path->pieces.count; i++) {
        const struct sc_path_piece *piece = &path->pieces.items[i];
        struct sc_explained_part *sum = &sums[part_of(e, piece)];
        sum->seconds += piece->end_us - piece->begin_us;
        sum->slowed_s += piece->slowed_us;
    }
    enum sc_status status = keep_parts(e, sums, err);
    free(sums);
    return status;
}

/* ---- the longest operations -------------------------------------------------------------- */

/* Operations that are one line: of one kind, group, name and pass. */
struct alike {
    const struct sc_op *first;
    bool several; /* layers, micro-batches or pieces */
    double count, us;
};

static bool are_alike(const struct sc_op *a, const struct sc_op *b)
{
    return a->kind == b->kind && a->group == b->group && a->label.name == b->label.name &&
           a->label.pass == b->label.pass;
}

static const struct sc_op *op_of(const struct explaining *e, const struct sc_path_piece *piece)
{
    return &e->made.program->classes.items[piece->class_index].step.ops.items[piece->op];
}

static double ran_us(const struct explaining *e, const struct sc_path_piece *piece)
{
    const struct sc_op_times *times =
        &e->made.play->classes.items[piece->class_index].times[piece->op];
    double start = op_of(e, piece)->group >= 0 ? times->transfer_us : times->start_us;
    return times->end_us - start;
}

static bool same_label(const struct sc_label *a, const struct sc_label *b)
{
    return a->layer == b->layer && a->micro_batch == b->micro_batch && a->piece == b->piece;
}

/* Groups [pieces]: as many as come together; returns their number. */
static size_t group_alike(const struct explaining *e, struct alike *groups)
{
    const struct sc_path *path = &e->made.play->path;
    size_t count = 0;
    for (size_t i = 0; i < path->pieces.count; i++) {
        const struct sc_path_piece *piece = &path->pieces.items[i];
        const struct sc_op *op = op_of(e, piece);
        double us = piece->end_us - piece->begin_us, whole = ran_us(e, piece);
        size_t g = 0;
        if (piece->what != SC_PATH_RUN) {
            continue;
        }
        while (g < count && !are_alike(groups[g].first, op)) {
            g++;
        }
        if (g == count) {
            groups[count++] = (struct alike){.first = op};
        }
        groups[g].several = groups[g].several || !same_label(&groups[g].first->label, &op->label);
        groups[g].us += us;
        groups[g].count += us < whole ? us / whole : 1;
    }
    return count;
}

static const char *alike_label(struct explaining *e, const struct alike *group)
{
    char text[256];
    struct sc_label label = group->first->label;
    bool layers = group->several && label.layer >= 0;
    if (group->several) {
        label.layer = label.micro_batch = label.piece = -1;
    }
    sc_label_text(e->made.program, label, text, sizeof(text));
    return sc_arena_printf(&e->out.arena, "%s%s", layers ? "layer * / " : "", text);
}

static int by_time(const void *a, const void *b)
{
    const struct alike *x = a, *y = b;
    if (x->us < y->us || x->us > y->us) {
        return x->us < y->us ? 1 : -1;
    }
    return (x->first > y->first) - (x->first < y->first);
}

static enum sc_status keep_operations(struct explaining *e, struct alike *groups, size_t count,
                                      struct sc_error *err)
{
    if (count > 0) {
        qsort(groups, count, sizeof(*groups), by_time);
    }
    for (size_t g = 0; g < count; g++) {
        struct sc_explained_ops *ops = sc_array_push(&e->out.operations);
        const char *label = alike_label(e, &groups[g]);
        if (ops == NULL || label == NULL) {
            return sc_fail_memory(err, sizeof(*ops));
        }
        ops->kind = sc_op_kind_name((enum sc_op_kind)groups[g].first->kind);
        ops->label = label;
        ops->count = groups[g].count / e->made.play->path.periods;
        ops->seconds = step_seconds(e, groups[g].us);
    }
    return SC_OK;
}

static enum sc_status find_operations(struct explaining *e, struct sc_error *err)
{
    size_t pieces = e->made.play->path.pieces.count;
    struct alike *groups = calloc(pieces + 1, sizeof(*groups));
    if (groups == NULL) {
        return sc_fail_memory(err, pieces * sizeof(*groups));
    }
    enum sc_status status = keep_operations(e, groups, group_alike(e, groups), err);
    free(groups);
    return status;
}

/* ---- what if ----------------------------------------------------------------------------- */

static bool copy_what_if(struct explaining *e, const struct sc_what_if *what,
                         struct sc_explained_what_if *out)
{
    if (out == NULL) {
        return false;
    }
    out->name = copy_text(e, what->name);
    out->resource = what->resource;
    out->step_time_s = what->period_us / SC_US_PER_S;
    out->gain_s = what->gain_us / SC_US_PER_S;
    return out->name != NULL;
}

static enum sc_status try_what_ifs(struct explaining *e, struct sc_error *err)
{
    const struct sc_sim_made *made = &e->made;
    struct sc_sensitivity *found = &e->sensitivity;
    SC_TRY(sc_sensitivity_of(made->program, made->hardware, made->machine, made->prices, &e->kinds,
                             made->play->period_us, found, err));
    bool ok = true;
    for (size_t i = 0; ok && i < found->free.count; i++) {
        ok = copy_what_if(e, &found->free.items[i], sc_array_push(&e->out.free));
    }
    for (size_t i = 0; ok && i < found->faster.count; i++) {
        ok = copy_what_if(e, &found->faster.items[i], sc_array_push(&e->out.faster));
    }
    return ok ? SC_OK : sc_fail_memory(err, sizeof(struct sc_explained_what_if));
}

/* ---- the sentence ------------------------------------------------------------------------ */

static const struct sc_explained_part *part_called(const struct sc_explanation *out,
                                                   const char *name)
{
    for (size_t i = 0; i < out->parts.count; i++) {
        if (strcmp(out->parts.items[i].name, name) == 0) {
            return &out->parts.items[i];
        }
    }
    return NULL;
}

/* Whether a step waits for it: a kind of work that computes nothing, or issue. */
static bool is_wait(const struct explaining *e, const struct sc_explained_what_if *what)
{
    for (size_t k = 0; k < e->kinds.kinds.count; k++) {
        if (!what->resource && strcmp(e->kinds.kinds.items[k].name, what->name) == 0) {
            return e->kinds.kinds.items[k].waits;
        }
    }
    return true;
}

/* What would gain most of all kinds of work and issue, or of those that are waits; NULL: nothing.
 */
#define WORTH_SAYING 0.005 /* of the step */

static const struct sc_explained_what_if *most_gain(const struct explaining *e, bool waits_only)
{
    for (size_t i = 0; i < e->out.free.count; i++) {
        const struct sc_explained_what_if *what = &e->out.free.items[i];
        bool work = !what->resource || strcmp(what->name, waits[SC_PATH_ISSUE].name) == 0;
        if (!work || what->gain_s <= WORTH_SAYING * e->out.step_time_s) {
            continue;
        }
        if (!waits_only || is_wait(e, what)) {
            return what;
        }
    }
    return NULL;
}

/* "41 % of the step waits for all_reduce of tensor" */
static const char *share_text(struct explaining *e, const struct sc_explained_what_if *what)
{
    const struct sc_explained_part *part = part_called(&e->out, what->name);
    double share = part != NULL ? 100 * part->seconds / e->out.step_time_s : 0;
    if (share < 0.5) {
        return sc_arena_printf(&e->out.arena, "The step is slowed by %s", what->name);
    }
    return sc_arena_printf(&e->out.arena, "%.0f %% of the step %s %s", share,
                           is_wait(e, what) ? "waits for" : "is", what->name);
}

static const char *sentence_of(struct explaining *e, const struct sc_explained_what_if *what)
{
    char then[64], now[64];
    const char *share = share_text(e, what);
    if (share == NULL) {
        return NULL;
    }
    if (what->step_time_s <= 0) {
        return sc_arena_printf(&e->out.arena, "%s, and there is nothing else.", share);
    }
    sc_print_seconds(what->step_time_s, then, sizeof(then));
    sc_print_seconds(e->out.step_time_s, now, sizeof(now));
    return sc_arena_printf(&e->out.arena,
                           "%s; if it were free, the step would take %s instead of %s (%.2fx).",
                           share, then, now, e->out.step_time_s / what->step_time_s);
}

static enum sc_status say_why(struct explaining *e, struct sc_error *err)
{
    const struct sc_explained_what_if *most = most_gain(e, false), *wait = most_gain(e, true);
    e->out.sentence = most != NULL
                          ? sentence_of(e, most)
                          : copy_text(e, "No kind of work alone makes the step that long.");
    if (wait != NULL && wait != most) {
        e->out.worst_wait = sentence_of(e, wait);
    }
    bool ok =
        e->out.sentence != NULL && (wait == NULL || wait == most || e->out.worst_wait != NULL);
    return ok ? SC_OK : sc_fail_memory(err, SC_NAME_SIZE);
}

/* ---- memory ------------------------------------------------------------------------------ */

static enum sc_status keep_buffers(struct explaining *e, const struct sc_peak *peak,
                                   struct sc_explained_place *place, struct sc_error *err)
{
    for (size_t i = 0; i < peak->buffers.count; i++) {
        const struct sc_peak_buffers *from = &peak->buffers.items[i];
        struct sc_explained_buffers *to = sc_array_push(&place->buffers);
        const char *name = copy_text(e, from->name);
        if (to == NULL || name == NULL) {
            return sc_fail_memory(err, sizeof(*to));
        }
        *to = (struct sc_explained_buffers){name, sc_peak_use_names[from->use],
                                            (int64_t)from->buffers, (double)from->bytes};
    }
    return SC_OK;
}

static enum sc_status keep_place(struct explaining *e, enum sc_place which,
                                 const struct sc_peak *peak, struct sc_error *err)
{
    char text[256] = "";
    struct sc_explained_place *place = sc_array_push(&e->out.places);
    if (place == NULL) {
        return sc_fail_memory(err, sizeof(*place));
    }
    if (peak->op < peak->class->step.ops.count) {
        sc_label_text(e->made.program, peak->class->step.ops.items[peak->op].label, text,
                      sizeof(text));
    }
    place->place = sc_place_names[which];
    place->bytes = (double)peak->bytes;
    place->label = copy_text(e, text);
    return place->label != NULL ? keep_buffers(e, peak, place, err)
                                : sc_fail_memory(err, sizeof(text));
}

static enum sc_status find_memory(struct explaining *e, struct sc_error *err)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        struct sc_peak peak = {0};
        SC_TRY(sc_peak_of(e->made.program, (enum sc_place)place, &peak, err));
        enum sc_status status =
            peak.bytes > 0 ? keep_place(e, (enum sc_place)place, &peak, err) : SC_OK;
        sc_peak_free(&peak);
        SC_TRY(status);
    }
    return SC_OK;
}

/* ---- all of it --------------------------------------------------------------------------- */

static void take_totals(struct explaining *e, const struct sc_sim_result *result)
{
    memcpy(e->out.plan, result->plan, sizeof(e->out.plan));
    memcpy(e->out.hardware, result->hardware, sizeof(e->out.hardware));
    e->out.ranks = result->ranks;
    e->out.step_time_s = result->step_time_s;
    e->out.settled = result->settled;
}

static enum sc_status collect(struct explaining *e, struct sc_error *err)
{
    SC_TRY(sc_work_kinds_of(e->made.program, &e->kinds, err));
    SC_TRY(sum_parts(e, err));
    SC_TRY(find_operations(e, err));
    SC_TRY(try_what_ifs(e, err));
    SC_TRY(find_memory(e, err));
    return say_why(e, err);
}

enum sc_status sc_explain(const struct sc_plan *plan, const struct sc_hardware *hardware,
                          struct sc_explanation *out, struct sc_error *err)
{
    const struct sc_sim_options options = {.path = true};
    struct sc_sim_result result;
    struct explaining e;
    memset(&e, 0, sizeof(e));
    SC_TRY(sc_simulate_keep(plan, hardware, &options, &result, &e.made, err));
    take_totals(&e, &result);
    enum sc_status status = collect(&e, err);
    sc_sensitivity_free(&e.sensitivity);
    sc_work_kinds_free(&e.kinds);
    sc_sim_made_free(&e.made);
    sc_sim_result_free(&result);
    if (status == SC_OK) {
        *out = e.out;
    } else {
        sc_explanation_free(&e.out);
    }
    return status;
}

void sc_explanation_free(struct sc_explanation *explanation)
{
    for (size_t i = 0; i < explanation->places.count; i++) {
        sc_array_free(&explanation->places.items[i].buffers);
    }
    sc_array_free(&explanation->parts);
    sc_array_free(&explanation->operations);
    sc_array_free(&explanation->free);
    sc_array_free(&explanation->faster);
    sc_array_free(&explanation->places);
    sc_arena_free(&explanation->arena);
    memset(explanation, 0, sizeof(*explanation));
}
