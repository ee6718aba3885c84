/* Operations by what they do, see work_kinds.h. */
#include "sim/work_kinds.h"

#include <string.h>

enum family {
    FAMILY_GEMM,
    FAMILY_ATTENTION,
    FAMILY_NORM,
    FAMILY_ACTIVATION,
    FAMILY_DROPOUT,
    FAMILY_ELEMENTWISE,
    FAMILY_EMBEDDING,
    FAMILY_LOSS,
    FAMILY_OPTIMIZER,
    FAMILY_COPY,
    FAMILY_HOST,
    FAMILY_COLLECTIVE, /* one kind for each operation kind and group */
    FAMILY_COUNT
};

static const struct sc_work_kind families[FAMILY_COUNT] = {
    [FAMILY_GEMM] = {"gemm", false},
    [FAMILY_ATTENTION] = {"attention", false},
    [FAMILY_NORM] = {"norm", false},
    [FAMILY_ACTIVATION] = {"activation", false},
    [FAMILY_DROPOUT] = {"dropout", false},
    [FAMILY_ELEMENTWISE] = {"elementwise", false},
    [FAMILY_EMBEDDING] = {"embedding", false},
    [FAMILY_LOSS] = {"loss", false},
    [FAMILY_OPTIMIZER] = {"optimizer", false},
    [FAMILY_COPY] = {"copy", true},
    [FAMILY_HOST] = {"host", true},
    [FAMILY_COLLECTIVE] = {"collective", true},
};

static const uint8_t family_of[] = {
    [SC_GEMM] = FAMILY_GEMM,
    [SC_BATCHED_GEMM] = FAMILY_ATTENTION,
    [SC_ATTENTION] = FAMILY_ATTENTION,
    [SC_ATTENTION_BACKWARD] = FAMILY_ATTENTION,
    [SC_NORM_FORWARD] = FAMILY_NORM,
    [SC_NORM_BACKWARD] = FAMILY_NORM,
    [SC_ACTIVATION_FORWARD] = FAMILY_ACTIVATION,
    [SC_ACTIVATION_BACKWARD] = FAMILY_ACTIVATION,
    [SC_SOFTMAX] = FAMILY_ATTENTION,
    [SC_SOFTMAX_BACKWARD] = FAMILY_ATTENTION,
    [SC_CROSS_ENTROPY_MAX] = FAMILY_LOSS,
    [SC_CROSS_ENTROPY_SUM] = FAMILY_LOSS,
    [SC_CROSS_ENTROPY_LOSS] = FAMILY_LOSS,
    [SC_EMBEDDING] = FAMILY_EMBEDDING,
    [SC_EMBEDDING_BACKWARD] = FAMILY_EMBEDDING,
    [SC_ADD] = FAMILY_ELEMENTWISE,
    [SC_SCALE] = FAMILY_ELEMENTWISE,
    [SC_CAST] = FAMILY_ELEMENTWISE,
    [SC_REDUCE_ROWS] = FAMILY_ELEMENTWISE,
    [SC_ROPE] = FAMILY_ELEMENTWISE,
    [SC_DROPOUT] = FAMILY_DROPOUT,
    [SC_DROPOUT_BACKWARD] = FAMILY_DROPOUT,
    [SC_NORM_SQUARES] = FAMILY_OPTIMIZER,
    [SC_ADAM] = FAMILY_OPTIMIZER,
    [SC_SCALAR] = FAMILY_OPTIMIZER,
    [SC_INITIALIZE] = FAMILY_OPTIMIZER,
    [SC_ALL_REDUCE] = FAMILY_COLLECTIVE,
    [SC_REDUCE_SCATTER] = FAMILY_COLLECTIVE,
    [SC_ALL_GATHER] = FAMILY_COLLECTIVE,
    [SC_ALL_TO_ALL] = FAMILY_COLLECTIVE,
    [SC_BROADCAST] = FAMILY_COLLECTIVE,
    [SC_EXCHANGE] = FAMILY_COLLECTIVE,
    [SC_COPY] = FAMILY_COPY,
    [SC_NEXT_BATCH] = FAMILY_HOST,
    [SC_READ_OUT] = FAMILY_COPY,
    [SC_HOST_WAIT] = FAMILY_HOST,
};
_Static_assert(sizeof(family_of) == SC_OP_KIND_COUNT, "every kind does something");

/* Numbers by family, then by operation kind and group; first whether it occurs, then which. */
static size_t number_of(const struct sc_op *op)
{
    if (op->group < 0)
        return family_of[op->kind];
    return FAMILY_COUNT + (size_t)op->group * SC_OP_KIND_COUNT + op->kind;
}

static enum sc_status add_kind(const struct sc_program *program, size_t number,
                               struct sc_work_kinds *out, struct sc_error *err)
{
    struct sc_work_kind *kind = sc_array_push(&out->kinds);
    if (kind == NULL)
        return sc_fail_memory(err, sizeof(*kind));
    if (number < FAMILY_COUNT) {
        *kind = families[number];
        return SC_OK;
    }
    size_t group = (number - FAMILY_COUNT) / SC_OP_KIND_COUNT;
    size_t op_kind = (number - FAMILY_COUNT) % SC_OP_KIND_COUNT;
    *kind = families[FAMILY_COLLECTIVE];
    kind->name = sc_arena_printf(&out->arena, "%s of %s", sc_op_kind_name((enum sc_op_kind)op_kind),
                                 program->groups.items[group].name);
    return kind->name != NULL ? SC_OK : sc_fail_memory(err, SC_NAME_SIZE);
}

/* numbers [FAMILY_COUNT + groups x kinds]: 1 + the kind's place among those that occur. */
static enum sc_status number_kinds(const struct sc_program *program, uint32_t *numbers,
                                   size_t count, struct sc_work_kinds *out, struct sc_error *err)
{
    for (size_t c = 0; c < program->classes.count; c++) {
        const struct sc_list *list = &program->classes.items[c].step;
        for (size_t i = 0; i < list->ops.count; i++)
            numbers[number_of(&list->ops.items[i])] = 1;
    }
    for (size_t n = 0; n < count; n++)
        if (numbers[n] > 0) {
            SC_TRY(add_kind(program, n, out, err));
            numbers[n] = (uint32_t)out->kinds.count;
        }
    return SC_OK;
}

static enum sc_status fill(const struct sc_program *program, struct sc_work_kinds *out,
                           struct sc_error *err)
{
    size_t ops = 0, count = FAMILY_COUNT + program->groups.count * SC_OP_KIND_COUNT;
    for (size_t c = 0; c < program->classes.count; c++)
        ops += program->classes.items[c].step.ops.count;
    uint32_t *numbers = sc_arena_alloc(&out->arena, count, sizeof(*numbers));
    out->first = sc_arena_alloc(&out->arena, program->classes.count + 1, sizeof(*out->first));
    out->of_op = sc_arena_alloc(&out->arena, ops + 1, sizeof(*out->of_op));
    if (numbers == NULL || out->first == NULL || out->of_op == NULL)
        return sc_fail_memory(err, (ops + count) * sizeof(*numbers));
    SC_TRY(number_kinds(program, numbers, count, out, err));
    uint32_t next = 0;
    for (size_t c = 0; c < program->classes.count; c++) {
        const struct sc_list *list = &program->classes.items[c].step;
        out->first[c] = next;
        for (size_t i = 0; i < list->ops.count; i++)
            out->of_op[next++] = numbers[number_of(&list->ops.items[i])] - 1;
    }
    return SC_OK;
}

enum sc_status sc_work_kinds_of(const struct sc_program *program, struct sc_work_kinds *out,
                                struct sc_error *err)
{
    struct sc_work_kinds kinds;
    memset(&kinds, 0, sizeof(kinds));
    enum sc_status status = fill(program, &kinds, err);
    if (status == SC_OK)
        *out = kinds;
    else
        sc_work_kinds_free(&kinds);
    return status;
}

void sc_work_kinds_free(struct sc_work_kinds *kinds)
{
    sc_array_free(&kinds->kinds);
    sc_arena_free(&kinds->arena);
    memset(kinds, 0, sizeof(*kinds));
}
