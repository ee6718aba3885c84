/*
 * What classes do together. Two classes share a group when some rank of the one and some rank of
 * the other are in the same set of ranks: on every axis outside the group's mask they are not fixed
 * to different coordinates.
 */
#include <stdlib.h>

#include "plans/program_verify.h"

static bool can_meet(const struct sc_class *a, const struct sc_class *b, unsigned axis_mask)
{
    unsigned fixed = a->fixed_mask & b->fixed_mask & ~axis_mask;
    for (int axis = 0; axis < SC_AXIS_COUNT; ++axis) {
        if ((fixed & SC_AXIS_MASK(axis)) && a->coordinate[axis] != b->coordinate[axis]) {
            return false;
        }
    }
    return true;
}

static bool share(const struct sc_program *program, size_t a, size_t b, int group)
{
    return can_meet(&program->classes.items[a], &program->classes.items[b],
                    program->groups.items[group].axis_mask);
}

static const struct sc_list *list_of(const struct sc_program *program, size_t class, bool init)
{
    const struct sc_class *item = &program->classes.items[class];
    return init ? &item->init : &item->step;
}

static bool is_collective(const struct sc_op *op)
{
    return sc_op_kind_work(op->kind) == SC_WORK_COLLECTIVE;
}

/* The next collective from `at` on one of two groups; the list's end when there is none. */
static uint32_t next_on(const struct sc_list *list, uint32_t at, int group, int other)
{
    while (at < list->ops.count &&
           !(is_collective(&list->ops.items[at]) &&
             (list->ops.items[at].group == group || list->ops.items[at].group == other))) {
        ++at;
    }
    return at;
}

static struct sc_verify view(const struct sc_program *program, size_t class, bool init,
                             struct sc_error *err)
{
    return (struct sc_verify){.program = program,
                              .class = &program->classes.items[class],
                              .list = list_of(program, class, init),
                              .init = init,
                              .err = err};
}

/* ---- streams ----------------------------------------------------------------------------- */

/* A communicator belongs to one stream, in the init list and in the step. */
static enum sc_status check_streams(const struct sc_program *program, size_t class, bool init,
                                    int *stream_of, struct sc_error *err)
{
    struct sc_verify verify = view(program, class, init, err);
    for (uint32_t i = 0; i < verify.list->ops.count; ++i) {
        const struct sc_op *op = &verify.list->ops.items[i];
        if (!is_collective(op)) {
            continue;
        }
        int *stream = &stream_of[op->group];
        if (*stream >= 0 && *stream != op->stream) {
            return sc_verify_fail(
                &verify, "group-on-two-streams", i, "group \"%s\" is used on \"%s\" and on \"%s\"",
                program->groups.items[op->group].name, program->streams.items[*stream].name,
                program->streams.items[op->stream].name);
        }
        *stream = op->stream;
    }
    return SC_OK;
}

static enum sc_status check_all_streams(const struct sc_program *program, struct sc_error *err)
{
    size_t groups = program->groups.count;
    int *stream_of = malloc((groups + 1) * sizeof(*stream_of));
    enum sc_status status = stream_of != NULL ? SC_OK : sc_fail_memory(err, groups * sizeof(int));
    for (size_t i = 0; status == SC_OK && i < groups; ++i) {
        stream_of[i] = -1;
    }
    for (size_t class = 0; status == SC_OK && class < program->classes.count; ++class) {
        for (int init = 1; status == SC_OK && init >= 0; --init) {
            status = check_streams(program, class, init != 0, stream_of, err);
        }
    }
    free(stream_of);
    return status;
}

/* ---- matching ---------------------------------------------------------------------------- */

/* Bytes that an op takes from and gives to the others of its group. */
static uint64_t role_bytes(const struct sc_verify *verify, const struct sc_op *op,
                           enum sc_role role)
{
    const struct sc_value *value = sc_op_value(verify->class, verify->list, op, role);
    return value != NULL ? sc_value_bytes(value) : 0;
}

static enum sc_status check_match(const struct sc_verify *a, uint32_t i, const struct sc_verify *b,
                                  uint32_t j)
{
    const struct sc_op *x = &a->list->ops.items[i], *y = &b->list->ops.items[j];
    char text[SC_OP_TEXT];
    const char *name = a->program->groups.items[x->group].name;
    sc_op_text(b->program, b->list, j, text);
    if (x->kind != y->kind || x->p.collective.reduction != y->p.collective.reduction) {
        return sc_verify_fail(a, "collective-order", i,
                              "group \"%s\": class \"%s\" issues %s in its place", name,
                              b->class->name, text);
    }
    uint64_t mine = sc_op_collective_bytes(a->program, a->class, a->list, x);
    uint64_t theirs = sc_op_collective_bytes(b->program, b->class, b->list, y);
    if (x->kind == SC_EXCHANGE) {
        /* what the one sends the other receives, or both send alike */
        bool matched = role_bytes(a, x, SC_ROLE_X) == role_bytes(b, y, SC_ROLE_Y) &&
                       role_bytes(a, x, SC_ROLE_Y) == role_bytes(b, y, SC_ROLE_X);
        return matched
                   ? SC_OK
                   : sc_verify_fail(a, "exchange-unmatched", i, "group \"%s\": class \"%s\" has %s",
                                    name, b->class->name, text);
    }
    return mine == theirs ? SC_OK
                          : sc_verify_fail(a, "collective-order", i,
                                           "group \"%s\": %llu bytes, class \"%s\" %llu in %s",
                                           name, (unsigned long long)mine, b->class->name,
                                           (unsigned long long)theirs, text);
}

static enum sc_status check_sequences(const struct sc_program *program, size_t a, size_t b,
                                      int group, bool init, struct sc_error *err)
{
    struct sc_verify left = view(program, a, init, err), right = view(program, b, init, err);
    uint32_t i = next_on(left.list, 0, group, group), j = next_on(right.list, 0, group, group);
    while (i < left.list->ops.count && j < right.list->ops.count) {
        SC_TRY(check_match(&left, i, &right, j));
        i = next_on(left.list, i + 1, group, group);
        j = next_on(right.list, j + 1, group, group);
    }
    bool more_left = i < left.list->ops.count;
    if (!more_left && j >= right.list->ops.count) {
        return SC_OK;
    }
    const struct sc_verify *longer = more_left ? &left : &right;
    uint32_t op = more_left ? i : j;
    bool exchange = longer->list->ops.items[op].kind == SC_EXCHANGE;
    return sc_verify_fail(longer, exchange ? "exchange-unmatched" : "collective-order", op,
                          "group \"%s\": class \"%s\" issues nothing to go with it",
                          program->groups.items[group].name,
                          (more_left ? right : left).class->name);
}

/* An exchange inside one class: what every rank sends some rank receives. */
static enum sc_status check_own_exchanges(const struct sc_program *program, size_t class, bool init,
                                          struct sc_error *err)
{
    struct sc_verify verify = view(program, class, init, err);
    for (uint32_t i = 0; i < verify.list->ops.count; ++i) {
        const struct sc_op *op = &verify.list->ops.items[i];
        bool alone = op->kind == SC_EXCHANGE;
        for (size_t other = 0; alone && other < program->classes.count; ++other) {
            alone = other == class || !share(program, class, other, op->group);
        }
        if (alone && role_bytes(&verify, op, SC_ROLE_X) != role_bytes(&verify, op, SC_ROLE_Y)) {
            return sc_verify_fail(&verify, "exchange-unmatched", i,
                                  "sends and receives differ in size");
        }
    }
    return SC_OK;
}

/* ---- two groups -------------------------------------------------------------------------- */

/* Some rank of a and some rank of b are together in both groups. */
static bool share_both(const struct sc_program *program, size_t a, size_t b, int g, int h)
{
    unsigned common = program->groups.items[g].axis_mask & program->groups.items[h].axis_mask;
    return can_meet(&program->classes.items[a], &program->classes.items[b], common);
}

static enum sc_status check_interleaving(const struct sc_program *program, size_t a, size_t b,
                                         int g, int h, bool init, struct sc_error *err)
{
    struct sc_verify left = view(program, a, init, err), right = view(program, b, init, err);
    uint32_t i = next_on(left.list, 0, g, h), j = next_on(right.list, 0, g, h);
    while (i < left.list->ops.count && j < right.list->ops.count) {
        if (left.list->ops.items[i].group != right.list->ops.items[j].group) {
            char text[SC_OP_TEXT];
            return sc_verify_fail(&left, "group-order", i,
                                  "class \"%s\" issues %s in its place, on the other of the "
                                  "groups \"%s\" and \"%s\" that both share",
                                  right.class->name, sc_op_text(program, right.list, j, text),
                                  program->groups.items[g].name, program->groups.items[h].name);
        }
        i = next_on(left.list, i + 1, g, h);
        j = next_on(right.list, j + 1, g, h);
    }
    return SC_OK;
}

static enum sc_status check_classes(const struct sc_program *program, size_t a, size_t b, bool init,
                                    struct sc_error *err)
{
    int groups = (int)program->groups.count;
    for (int g = 0; g < groups; ++g) {
        if (share(program, a, b, g)) {
            SC_TRY(check_sequences(program, a, b, g, init, err));
        }
    }
    for (int g = 0; g < groups; ++g) {
        for (int h = g + 1; h < groups; ++h) {
            if (share_both(program, a, b, g, h)) {
                SC_TRY(check_interleaving(program, a, b, g, h, init, err));
            }
        }
    }
    return SC_OK;
}

/* ---- serial play ------------------------------------------------------------------------- */

/* Every class that shares the group with `class` stands at a collective on it. */
static bool all_arrived(const struct sc_program *program, const uint32_t *at, size_t class,
                        int group, bool init)
{
    for (size_t other = 0; other < program->classes.count; ++other) {
        const struct sc_list *list = list_of(program, other, init);
        if (share(program, class, other, group) &&
            (at[other] >= list->ops.count || !is_collective(&list->ops.items[at[other]]) ||
             list->ops.items[at[other]].group != group)) {
            return false;
        }
    }
    return true;
}

/* Moves every class as far as it comes alone; true when one moved. */
static bool run_alone(const struct sc_program *program, uint32_t *at, bool init)
{
    bool moved = false;
    for (size_t class = 0; class < program->classes.count; ++class) {
        const struct sc_list *list = list_of(program, class, init);
        for (; at[class] < list->ops.count && !is_collective(&list->ops.items[at[class]]);
             ++at[class]) {
            moved = true;
        }
    }
    return moved;
}

/* Completes one collective whose members have all arrived; false when there is none. */
static bool complete_one(const struct sc_program *program, uint32_t *at, bool init)
{
    for (size_t class = 0; class < program->classes.count; ++class) {
        const struct sc_list *list = list_of(program, class, init);
        if (at[class] >= list->ops.count) {
            continue;
        }
        int group = list->ops.items[at[class]].group;
        if (!all_arrived(program, at, class, group, init)) {
            continue;
        }
        for (size_t other = 0; other < program->classes.count; ++other) {
            at[other] += share(program, class, other, group);
        }
        return true;
    }
    return false;
}

static enum sc_status check_deadlock(const struct sc_program *program, bool init,
                                     struct sc_error *err)
{
    size_t classes = program->classes.count;
    uint32_t *at = calloc(classes + 1, sizeof(*at));
    enum sc_status status = at != NULL ? SC_OK : sc_fail_memory(err, classes * sizeof(*at));
    if (status == SC_OK) {
        bool moved = true;
        while (moved) {
            moved = run_alone(program, at, init);
            moved = complete_one(program, at, init) || moved;
        }
    }
    for (size_t class = 0; status == SC_OK && class < classes; ++class) {
        struct sc_verify verify = view(program, class, init, err);
        if (at[class] < verify.list->ops.count) {
            status = sc_verify_fail(&verify, "deadlock", at[class],
                                    "played serially, not all of its group ever arrive");
        }
    }
    free(at);
    return status;
}

enum sc_status sc_verify_groups(const struct sc_program *program, struct sc_error *err)
{
    SC_TRY(check_all_streams(program, err));
    for (int init = 1; init >= 0; --init) {
        for (size_t a = 0; a < program->classes.count; ++a) {
            SC_TRY(check_own_exchanges(program, a, init != 0, err));
            for (size_t b = a + 1; b < program->classes.count; ++b) {
                SC_TRY(check_classes(program, a, b, init != 0, err));
            }
        }
        SC_TRY(check_deadlock(program, init != 0, err));
    }
    return SC_OK;
}
