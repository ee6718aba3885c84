/*
 * The rules of the operation kinds, as op.h words them: which roles a kind takes, how it may access
 * them, and how their shapes agree. One table of roles; shapes are functions of a kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plans/program.h"
#include "plans/program_builder.h"
#include "plans/step_state.h"

/* Whether an operand must be there. */
enum need {
    NEEDED,
    OPTIONAL,
    UNLESS /* needed unless the operand named beside it is inout (in place) */
};

/* Accesses that are allowed, as bits 1 << enum sc_access. */
enum { IN = 1 << SC_IN, OUT = 1 << SC_OUT, INOUT = 1 << SC_INOUT, ANY_OUT = OUT | INOUT };

struct role_rule {
    uint8_t kind, role;
    uint8_t need, access;
    uint8_t place_of; /* UNLESS: the role whose inout replaces this operand */
};

#define ROLE(kind, role, access)                                                                   \
    {                                                                                              \
        kind, SC_ROLE_##role, NEEDED, access, 0                                                    \
    }
#define MAYBE(kind, role, access)                                                                  \
    {                                                                                              \
        kind, SC_ROLE_##role, OPTIONAL, access, 0                                                  \
    }
#define REPLACED(kind, role, access, by)                                                           \
    {                                                                                              \
        kind, SC_ROLE_##role, UNLESS, access, SC_ROLE_##by                                         \
    }

static const struct role_rule rules[] = {
    ROLE(SC_GEMM, A, IN),
    ROLE(SC_GEMM, B, IN),
    ROLE(SC_GEMM, C, ANY_OUT),
    MAYBE(SC_GEMM, BIAS, IN),
    MAYBE(SC_GEMM, BIAS_GRADIENT, ANY_OUT),
    ROLE(SC_BATCHED_GEMM, A, IN),
    ROLE(SC_BATCHED_GEMM, B, IN),
    ROLE(SC_BATCHED_GEMM, C, ANY_OUT),
    ROLE(SC_ATTENTION, QKV, IN),
    MAYBE(SC_ATTENTION, STATE, IN),
    ROLE(SC_ATTENTION, O, OUT),
    ROLE(SC_ATTENTION, LSE, OUT),
    ROLE(SC_ATTENTION_BACKWARD, DO, IN),
    ROLE(SC_ATTENTION_BACKWARD, QKV, IN),
    ROLE(SC_ATTENTION_BACKWARD, O, IN),
    ROLE(SC_ATTENTION_BACKWARD, LSE, IN),
    MAYBE(SC_ATTENTION_BACKWARD, STATE, IN),
    ROLE(SC_ATTENTION_BACKWARD, DQKV, OUT),
    ROLE(SC_NORM_FORWARD, X, IN),
    ROLE(SC_NORM_FORWARD, GAMMA, IN),
    MAYBE(SC_NORM_FORWARD, BETA, IN),
    ROLE(SC_NORM_FORWARD, Y, OUT),
    ROLE(SC_NORM_FORWARD, STAT, OUT),
    ROLE(SC_NORM_BACKWARD, DY, IN),
    ROLE(SC_NORM_BACKWARD, X, IN),
    ROLE(SC_NORM_BACKWARD, STAT, IN),
    ROLE(SC_NORM_BACKWARD, GAMMA, IN),
    ROLE(SC_NORM_BACKWARD, DX, ANY_OUT),
    ROLE(SC_NORM_BACKWARD, DGAMMA, ANY_OUT),
    MAYBE(SC_NORM_BACKWARD, DBETA, ANY_OUT),
    ROLE(SC_ACTIVATION_FORWARD, X, IN),
    ROLE(SC_ACTIVATION_FORWARD, Y, OUT),
    ROLE(SC_ACTIVATION_BACKWARD, X, IN),
    REPLACED(SC_ACTIVATION_BACKWARD, DY, IN, DX),
    ROLE(SC_ACTIVATION_BACKWARD, DX, ANY_OUT),
    REPLACED(SC_SOFTMAX, X, IN, Y),
    ROLE(SC_SOFTMAX, Y, ANY_OUT),
    ROLE(SC_SOFTMAX_BACKWARD, Y, IN),
    ROLE(SC_SOFTMAX_BACKWARD, DX, INOUT),
    ROLE(SC_CROSS_ENTROPY_MAX, X, IN),
    ROLE(SC_CROSS_ENTROPY_MAX, MAX, OUT),
    REPLACED(SC_CROSS_ENTROPY_SUM, X, IN, PROBABILITIES),
    ROLE(SC_CROSS_ENTROPY_SUM, MAX, IN),
    ROLE(SC_CROSS_ENTROPY_SUM, INDEX, IN),
    ROLE(SC_CROSS_ENTROPY_SUM, SUM, OUT),
    ROLE(SC_CROSS_ENTROPY_SUM, TARGET_LOGIT, OUT),
    ROLE(SC_CROSS_ENTROPY_SUM, PROBABILITIES, ANY_OUT),
    ROLE(SC_CROSS_ENTROPY_LOSS, SUM, IN),
    ROLE(SC_CROSS_ENTROPY_LOSS, MAX, IN),
    ROLE(SC_CROSS_ENTROPY_LOSS, TARGET_LOGIT, IN),
    ROLE(SC_CROSS_ENTROPY_LOSS, INDEX, IN),
    REPLACED(SC_CROSS_ENTROPY_LOSS, PROBABILITIES, IN, DX),
    ROLE(SC_CROSS_ENTROPY_LOSS, LOSS, OUT),
    ROLE(SC_CROSS_ENTROPY_LOSS, DX, ANY_OUT),
    ROLE(SC_EMBEDDING, INDEX, IN),
    ROLE(SC_EMBEDDING, WEIGHT, IN),
    ROLE(SC_EMBEDDING, Y, OUT),
    ROLE(SC_EMBEDDING_BACKWARD, INDEX, IN),
    ROLE(SC_EMBEDDING_BACKWARD, DY, IN),
    ROLE(SC_EMBEDDING_BACKWARD, DWEIGHT, ANY_OUT),
    ROLE(SC_ADD, A, IN),
    ROLE(SC_ADD, B, IN),
    ROLE(SC_ADD, C, OUT),
    ROLE(SC_SCALE, X, IN),
    ROLE(SC_SCALE, Y, OUT),
    ROLE(SC_CAST, X, IN),
    ROLE(SC_CAST, Y, OUT),
    ROLE(SC_REDUCE_ROWS, X, IN),
    ROLE(SC_REDUCE_ROWS, Y, ANY_OUT),
    ROLE(SC_ROPE, Y, INOUT),
    ROLE(SC_DROPOUT, X, IN),
    MAYBE(SC_DROPOUT, BIAS, IN),
    MAYBE(SC_DROPOUT, RESIDUAL, IN),
    MAYBE(SC_DROPOUT, STATE, IN),
    ROLE(SC_DROPOUT, Y, OUT),
    MAYBE(SC_DROPOUT, MASK, OUT),
    REPLACED(SC_DROPOUT_BACKWARD, DY, IN, DX),
    MAYBE(SC_DROPOUT_BACKWARD, STATE, IN),
    MAYBE(SC_DROPOUT_BACKWARD, MASK, IN),
    ROLE(SC_DROPOUT_BACKWARD, DX, ANY_OUT),
    MAYBE(SC_DROPOUT_BACKWARD, BIAS_GRADIENT, ANY_OUT),
    ROLE(SC_NORM_SQUARES, GRADIENT, IN),
    ROLE(SC_NORM_SQUARES, NORM, ANY_OUT),
    ROLE(SC_ADAM, GRADIENT, IN),
    ROLE(SC_ADAM, STATE, IN),
    ROLE(SC_ADAM, PARAMETER, ANY_OUT),
    REPLACED(SC_ADAM, MASTER, INOUT, PARAMETER),
    ROLE(SC_ADAM, M, INOUT),
    ROLE(SC_ADAM, V, INOUT),
    ROLE(SC_SCALAR, STATE, INOUT),
    MAYBE(SC_SCALAR, NORM, IN),
    ROLE(SC_INITIALIZE, Y, OUT),
    ROLE(SC_ALL_REDUCE, Y, INOUT),
    ROLE(SC_BROADCAST, Y, INOUT),
    ROLE(SC_REDUCE_SCATTER, X, IN | INOUT),
    REPLACED(SC_REDUCE_SCATTER, Y, OUT, X),
    REPLACED(SC_ALL_GATHER, X, IN, Y),
    ROLE(SC_ALL_GATHER, Y, ANY_OUT),
    ROLE(SC_ALL_TO_ALL, X, IN),
    ROLE(SC_ALL_TO_ALL, Y, OUT),
    ROLE(SC_EXCHANGE, X, IN),
    ROLE(SC_EXCHANGE, Y, OUT),
    ROLE(SC_COPY, X, IN),
    ROLE(SC_COPY, Y, OUT),
    ROLE(SC_NEXT_BATCH, INDEX, OUT),
    MAYBE(SC_NEXT_BATCH, TARGET, OUT),
    ROLE(SC_READ_OUT, X, IN),
    ROLE(SC_READ_OUT, Y, OUT),
};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

/* First rule of each kind; rules[] has a kind's rows together. `of` is 1 + the rule of a kind and
 * role. */
struct rule_index {
    uint8_t first[SC_OP_KIND_COUNT], count[SC_OP_KIND_COUNT];
    uint8_t of[SC_OP_KIND_COUNT][SC_ROLE_COUNT];
};
_Static_assert(RULES < 255, "rules are counted in bytes");

struct check {
    const struct sc_program *program;
    const struct sc_class *class;
    const struct sc_list *list;
    uint32_t op;
    bool init;
    struct rule_index index;
    const struct sc_operand *of[SC_ROLE_COUNT]; /* operands of the current op by role */
    const struct sc_value *value[SC_ROLE_COUNT];
    struct sc_error *err;
};

static void index_rules(struct rule_index *index)
{
    memset(index, 0, sizeof(*index));
    for (int i = RULES - 1; i >= 0; --i) {
        index->first[rules[i].kind] = (uint8_t)i;
        ++index->count[rules[i].kind];
        index->of[rules[i].kind][rules[i].role] = (uint8_t)(i + 1);
    }
}

static enum sc_status complain(const struct check *check, const char *what)
{
    char op[SC_OP_TEXT];
    return sc_fail(check->err, SC_BUG, "operands: class \"%s\", %s%s: %s", check->class->name,
                   check->init ? "init " : "",
                   sc_op_text(check->program, check->list, check->op, op), what);
}

static enum sc_status complain_role(const struct check *check, enum sc_role role, const char *what)
{
    char text[96];
    snprintf(text, sizeof(text), "%s %s", sc_role_name(role), what);
    return complain(check, text);
}

/* ---- roles ------------------------------------------------------------------------------- */

static const struct role_rule *rule_of(const struct check *check, uint8_t kind, uint8_t role)
{
    uint8_t number = check->index.of[kind][role];
    return number > 0 ? &rules[number - 1] : NULL;
}

static enum sc_status check_operand(struct check *check, const struct sc_op *op,
                                    const struct sc_operand *operand)
{
    uint8_t role = operand->role;
    if (role >= SC_ROLE_COUNT || operand->value >= check->class->values.count) {
        return complain(check, "an operand that does not exist");
    }
    const struct sc_value *value = &check->class->values.items[operand->value];
    bool token = check->class->buffers.items[value->buffer].token;
    if ((role == SC_ROLE_TOKEN) != token) {
        return complain_role(check, role, "found beside a value of the other sort: tokens only");
    }
    if (token) {
        return SC_OK;
    }
    const struct role_rule *rule = rule_of(check, op->kind, role);
    if (rule == NULL || operand->access > SC_INOUT || !(rule->access >> operand->access & 1)) {
        return complain_role(
            check, role, rule == NULL ? "is no operand of this kind" : "may not be accessed so");
    }
    if (check->of[role] != NULL) {
        return complain_role(check, role, "stands twice");
    }
    check->of[role] = operand;
    check->value[role] = value;
    return SC_OK;
}

static enum sc_status check_missing(const struct check *check, const struct sc_op *op)
{
    const struct role_rule *rule = &rules[check->index.first[op->kind]];
    for (int i = 0; i < check->index.count[op->kind]; ++i, ++rule) {
        bool there = check->of[rule->role] != NULL;
        bool replaced = rule->need == UNLESS && check->of[rule->place_of] != NULL &&
                        check->of[rule->place_of]->access == SC_INOUT;
        if (!there && rule->need != OPTIONAL && !replaced) {
            return complain_role(check, rule->role, "is missing");
        }
        if (there && replaced) {
            return complain_role(check, rule->role, "stands beside what is updated in place");
        }
    }
    return SC_OK;
}

static enum sc_status check_stream(const struct check *check, const struct sc_op *op)
{
    bool collective = sc_op_kind_work(op->kind) == SC_WORK_COLLECTIVE;
    if (collective != (op->group >= 0)) {
        return complain(check, collective ? "a collective needs a group" : "a group without use");
    }
    if ((op->kind == SC_INITIALIZE) && !check->init) {
        return complain(check, "belongs to the init list only");
    }
    return SC_OK;
}

/* ---- shapes ------------------------------------------------------------------------------ */

static int64_t elements(const struct sc_value *value)
{
    return value->rows * value->cols;
}

/* Values that are there have one shape. */
static bool alike(const struct sc_value *a, const struct sc_value *b)
{
    return a == NULL || b == NULL || (a->rows == b->rows && a->cols == b->cols);
}

/* A vector that is there has n elements. */
static bool long_as(const struct sc_value *vector, int64_t n)
{
    return vector == NULL || elements(vector) == n;
}

#define V(role) check->value[SC_ROLE_##role]

static const char *check_gemm(const struct check *check, const struct sc_op *op)
{
    const struct sc_value *a = V(A), *b = V(B), *c = V(C);
    int64_t m = op->p.gemm.transpose_a ? a->cols : a->rows;
    int64_t k = op->p.gemm.transpose_a ? a->rows : a->cols;
    int64_t kb = op->p.gemm.transpose_b ? b->cols : b->rows;
    int64_t n = op->p.gemm.transpose_b ? b->rows : b->cols;
    if (k != kb || c->rows != m || c->cols != n) {
        return "op(A) [M,K], op(B) [K,N] and C [M,N] do not agree";
    }
    if (!long_as(V(BIAS), n)) {
        return "BIAS has N elements";
    }
    return long_as(V(BIAS_GRADIENT), a->cols) ? NULL
                                              : "BIAS_GRADIENT has a column's sum for each "
                                                "column of A";
}

static const char *check_batched_gemm(const struct check *check, const struct sc_op *op)
{
    int64_t packed = op->p.attention.batch * op->p.attention.sequence;
    int64_t stacked = packed * op->p.attention.heads;
    const struct sc_value *values[] = {V(A), V(B), V(C)};
    for (int i = 0; i < 3; ++i) {
        bool scores = values[i]->rows == stacked && values[i]->cols == op->p.attention.sequence;
        bool heads = values[i]->rows == packed && op->p.attention.head_size > 0 &&
                     values[i]->cols % op->p.attention.head_size == 0;
        if (!scores && !heads) {
            return "an operand is neither stacked score matrices nor packed heads";
        }
    }
    return NULL;
}

static const char *check_attention(const struct check *check, const struct sc_op *op)
{
    int64_t rows = op->p.attention.batch * op->p.attention.sequence;
    int64_t head = op->p.attention.head_size, heads = op->p.attention.heads;
    int64_t packed = (heads + 2 * (int64_t)op->p.attention.kv_heads) * head;
    if (V(QKV)->rows != rows || V(QKV)->cols != packed || !alike(V(QKV), V(DQKV))) {
        return "QKV is [batch sequence, (heads + 2 kv_heads) head_size]";
    }
    if (V(O)->rows != rows || V(O)->cols != heads * head || !alike(V(O), V(DO))) {
        return "O is [batch sequence, heads head_size]";
    }
    return long_as(V(LSE), rows * heads) ? NULL : "LSE has one element a query row and head";
}

static const char *check_norm(const struct check *check, const struct sc_op *op)
{
    (void)op;
    int64_t cols = V(X)->cols;
    if (!alike(V(X), V(Y)) || !alike(V(X), V(DY)) || !alike(V(X), V(DX))) {
        return "X, Y and their gradients have one shape";
    }
    if (!long_as(V(GAMMA), cols) || !long_as(V(BETA), cols) || !long_as(V(DGAMMA), cols) ||
        !long_as(V(DBETA), cols)) {
        return "gamma and beta have an element a column";
    }
    return long_as(V(STAT), 2 * V(X)->rows) ? NULL : "STAT is [rows, 2]";
}

static const char *check_activation(const struct check *check, const struct sc_op *op)
{
    (void)op;
    const struct sc_value *x = V(X), *y = V(Y) != NULL ? V(Y) : V(DY);
    if (y != NULL && (x->rows != y->rows || (x->cols != y->cols && x->cols != 2 * y->cols))) {
        return "X is [rows, f], or [rows, 2f] when gated";
    }
    return alike(x, V(DX)) ? NULL : "DX has the shape of X";
}

static const char *check_same(const struct check *check, const struct sc_op *op)
{
    (void)op;
    bool same = alike(V(X), V(Y)) && alike(V(Y), V(DX)) && alike(V(DX), V(DY)) &&
                alike(V(X), V(RESIDUAL)) && alike(V(Y), V(MASK)) && alike(V(DX), V(MASK));
    return same ? NULL : "operands differ in shape";
}

static const char *check_cross_entropy(const struct check *check, const struct sc_op *op)
{
    (void)op;
    const struct sc_value *wide = V(X) != NULL ? V(X) : V(PROBABILITIES);
    wide = wide != NULL ? wide : V(DX);
    bool rows = long_as(V(MAX), wide->rows) && long_as(V(SUM), wide->rows) &&
                long_as(V(TARGET_LOGIT), wide->rows) && long_as(V(INDEX), wide->rows) &&
                long_as(V(LOSS), wide->rows);
    if (!rows) {
        return "MAX, SUM, TARGET_LOGIT, INDEX and LOSS have an element a row";
    }
    return alike(V(PROBABILITIES), wide) && alike(V(DX), wide) ? NULL
                                                               : "logits and gradient differ";
}

static const char *check_embedding(const struct check *check, const struct sc_op *op)
{
    (void)op;
    const struct sc_value *rows = V(Y) != NULL ? V(Y) : V(DY);
    const struct sc_value *table = V(WEIGHT) != NULL ? V(WEIGHT) : V(DWEIGHT);
    return rows->cols == table->cols && long_as(V(INDEX), rows->rows)
               ? NULL
               : "one row of the table an index";
}

static const char *check_add(const struct check *check, const struct sc_op *op)
{
    (void)op;
    return alike(V(A), V(C)) && V(A)->cols == V(B)->cols && V(A)->rows % V(B)->rows == 0
               ? NULL
               : "A and C have one shape, B's rows repeat";
}

static const char *check_reduce_rows(const struct check *check, const struct sc_op *op)
{
    (void)op;
    return V(X)->cols == V(Y)->cols && V(X)->rows % V(Y)->rows == 0
               ? NULL
               : "X has a multiple of Y's rows";
}

static const char *check_dropout(const struct check *check, const struct sc_op *op)
{
    const struct sc_value *y = V(Y) != NULL ? V(Y) : V(DX);
    if (!long_as(V(BIAS), y->cols) || !long_as(V(BIAS_GRADIENT), y->cols)) {
        return "the bias has an element a column";
    }
    if (op->p.dropout.probability > 0 && V(STATE) == NULL &&
        (op->kind == SC_DROPOUT || V(MASK) == NULL)) {
        return "drawing a mask needs STATE";
    }
    return check_same(check, op);
}

static const char *check_rope(const struct check *check, const struct sc_op *op)
{
    int64_t heads = op->p.rope.heads + 2 * (int64_t)op->p.rope.kv_heads;
    return V(Y)->cols == heads * op->p.rope.head_size && op->p.rope.sequence > 0 &&
                   V(Y)->rows % op->p.rope.sequence == 0
               ? NULL
               : "Y is [batch sequence, (heads + 2 kv_heads) head_size]";
}

static const char *check_norm_squares(const struct check *check, const struct sc_op *op)
{
    if ((uint64_t)op->p.flat.first_range + op->p.flat.ranges > check->program->ranges.count) {
        return "ranges that do not exist";
    }
    return long_as(V(NORM), 1) ? NULL : "NORM has one element";
}

static const char *check_adam(const struct check *check, const struct sc_op *op)
{
    int64_t n = elements(V(PARAMETER));
    if ((uint64_t)op->p.flat.first_range + op->p.flat.ranges > check->program->ranges.count) {
        return "ranges that do not exist";
    }
    return long_as(V(GRADIENT), n) && long_as(V(MASTER), n) && long_as(V(M), n) && long_as(V(V), n)
               ? NULL
               : "parameter, gradient, master and moments have equally many elements";
}

static const char *check_state(const struct check *check, const struct sc_op *op)
{
    (void)op;
    return sc_value_bytes(V(STATE)) >= sizeof(struct sc_step_state) ? NULL
                                                                    : "STATE is a step_state";
}

static const char *check_collective(const struct check *check, const struct sc_op *op)
{
    const struct sc_value *x = V(X), *y = V(Y);
    int64_t n = check->program->groups.items[op->group].size;
    switch (op->kind) {
    case SC_REDUCE_SCATTER:
        return elements(x) % n == 0 && long_as(y, elements(x) / n) ? NULL
                                                                   : "Y is a member's share of X";
    case SC_ALL_GATHER:
        return elements(y) % n == 0 && long_as(x, elements(y) / n) ? NULL
                                                                   : "X is a member's share of Y";
    case SC_ALL_TO_ALL:
        return elements(x) == elements(y) && elements(x) % n == 0 ? NULL : "X and Y split evenly";
    default:
        return NULL;
    }
}

static const char *check_copy(const struct check *check, const struct sc_op *op)
{
    const struct sc_value *x = V(X), *y = V(Y);
    if (op->kind == SC_COPY && x->dtype != y->dtype) {
        return "X and Y have one dtype";
    }
    if (op->kind == SC_READ_OUT && (check->class->buffers.items[x->buffer].place != SC_DEVICE ||
                                    check->class->buffers.items[y->buffer].place == SC_DEVICE)) {
        return "X is on the device, Y on the host";
    }
    return elements(x) == elements(y) ? NULL : "X and Y have equally many elements";
}

typedef const char *(*shape_rule)(const struct check *check, const struct sc_op *op);

static const shape_rule shapes[SC_OP_KIND_COUNT] = {
    [SC_GEMM] = check_gemm,
    [SC_BATCHED_GEMM] = check_batched_gemm,
    [SC_ATTENTION] = check_attention,
    [SC_ATTENTION_BACKWARD] = check_attention,
    [SC_NORM_FORWARD] = check_norm,
    [SC_NORM_BACKWARD] = check_norm,
    [SC_ACTIVATION_FORWARD] = check_activation,
    [SC_ACTIVATION_BACKWARD] = check_activation,
    [SC_SOFTMAX] = check_same,
    [SC_SOFTMAX_BACKWARD] = check_same,
    [SC_CROSS_ENTROPY_MAX] = check_cross_entropy,
    [SC_CROSS_ENTROPY_SUM] = check_cross_entropy,
    [SC_CROSS_ENTROPY_LOSS] = check_cross_entropy,
    [SC_EMBEDDING] = check_embedding,
    [SC_EMBEDDING_BACKWARD] = check_embedding,
    [SC_ADD] = check_add,
    [SC_SCALE] = check_copy,
    [SC_CAST] = check_copy,
    [SC_REDUCE_ROWS] = check_reduce_rows,
    [SC_ROPE] = check_rope,
    [SC_DROPOUT] = check_dropout,
    [SC_DROPOUT_BACKWARD] = check_dropout,
    [SC_NORM_SQUARES] = check_norm_squares,
    [SC_ADAM] = check_adam,
    [SC_SCALAR] = check_state,
    [SC_ALL_REDUCE] = check_collective,
    [SC_REDUCE_SCATTER] = check_collective,
    [SC_ALL_GATHER] = check_collective,
    [SC_ALL_TO_ALL] = check_collective,
    [SC_BROADCAST] = check_collective,
    [SC_EXCHANGE] = check_collective,
    [SC_COPY] = check_copy,
    [SC_READ_OUT] = check_copy,
};
_Static_assert(SC_OP_KIND_COUNT == 36, "a new kind needs its roles and its shape rule here");

/* ---- the walk ---------------------------------------------------------------------------- */

static enum sc_status check_op(struct check *check)
{
    const struct sc_op *op = &check->list->ops.items[check->op];
    if (op->kind >= SC_OP_KIND_COUNT) {
        return complain(check, "a kind that does not exist");
    }
    const struct sc_operand *operands = &check->list->operands.items[op->first_operand];
    for (uint32_t i = 0; i < op->operands; ++i) {
        SC_TRY(check_operand(check, op, &operands[i]));
    }
    SC_TRY(check_missing(check, op));
    SC_TRY(check_stream(check, op));
    const char *wrong = shapes[op->kind] != NULL ? shapes[op->kind](check, op) : NULL;
    for (uint32_t i = 0; i < op->operands; ++i) { /* as the next one needs them */
        check->of[operands[i].role] = NULL;
        check->value[operands[i].role] = NULL;
    }
    return wrong == NULL ? SC_OK : complain(check, wrong);
}

static enum sc_status check_ops(struct check *check, uint32_t first, size_t end)
{
    for (check->op = first; check->op < end; ++check->op) {
        SC_TRY(check_op(check));
    }
    return SC_OK;
}

static enum sc_status check_init(struct check *check)
{
    check->list = &check->class->init;
    check->init = true;
    return check_ops(check, 0, check->list->ops.count);
}

/* Of segments with one signature the first is checked: the others have the same kinds, accesses and
 * shapes. `seen` is a mark for each signature. */
static enum sc_status check_step(struct check *check, bool *seen)
{
    uint32_t next = 0;
    check->list = &check->class->step;
    check->init = false;
    for (size_t s = 0; s < check->class->segments.count; ++s) {
        const struct sc_segment *segment = &check->class->segments.items[s];
        if (segment->first_op < next) {
            continue;
        }
        if (!seen[segment->signature]) {
            seen[segment->signature] = true;
            continue; /* its ops are checked with those before the next one that is known */
        }
        SC_TRY(check_ops(check, next, segment->first_op));
        next = segment->first_op + segment->ops;
    }
    return check_ops(check, next, check->list->ops.count);
}

enum sc_status sc_program_check(const struct sc_program *program, struct sc_error *err)
{
    struct check check = {.program = program, .err = err};
    const struct sc_builder *builder = program->intern_table;
    enum sc_status status = SC_OK;
    bool *seen = calloc(builder->forms.count + 1, sizeof(*seen));
    if (seen == NULL) {
        return sc_fail_memory(err, builder->forms.count + 1);
    }
    index_rules(&check.index);
    for (size_t i = 0; i < program->classes.count && status == SC_OK; ++i) {
        check.class = &program->classes.items[i];
        status = check_init(&check);
        if (status == SC_OK) {
            status = check_step(&check, seen);
        }
    }
    free(seen);
    return status;
}
