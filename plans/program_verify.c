/* The verifier: structure first, then each list of each class, then what classes share. */
#include "plans/program_verify.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_DISTANCE = 2, WHAT = 512 };

enum sc_status sc_verify_fail(const struct sc_verify *verify, const char *rule, uint32_t op,
                              const char *format, ...)
{
    char what[WHAT], text[SC_OP_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return sc_fail(verify->err, SC_BUG, "%s: class \"%s\", %s%s: %s", rule, verify->class->name,
                   verify->init ? "init " : "", sc_op_text(verify->program, verify->list, op, text),
                   what);
}

static enum sc_status check_operands(const struct sc_verify *verify, uint32_t number)
{
    const struct sc_op *op = &verify->list->ops.items[number];
    if ((uint64_t)op->first_operand + op->operands > verify->list->operands.count) {
        return sc_verify_fail(verify, "structure", number, "operands beyond the list's");
    }
    for (uint32_t i = 0; i < op->operands; ++i) {
        const struct sc_operand *operand = &verify->list->operands.items[op->first_operand + i];
        if (operand->value >= verify->class->values.count ||
            verify->class->values.items[operand->value].buffer >= verify->class->buffers.count) {
            return sc_verify_fail(verify, "structure", number, "operand %u names no value", i);
        }
        if (operand->access < SC_IN || operand->access > SC_INOUT || operand->version > SC_OTHER) {
            return sc_verify_fail(verify, "structure", number, "operand %u: access or version", i);
        }
    }
    return SC_OK;
}

static enum sc_status check_waits(const struct sc_verify *verify, uint32_t number)
{
    const struct sc_op *op = &verify->list->ops.items[number];
    if ((uint64_t)op->first_wait + op->waits > verify->list->waits.count) {
        return sc_verify_fail(verify, "structure", number, "waits beyond the list's");
    }
    for (uint32_t i = 0; i < op->waits; ++i) {
        const struct sc_wait *wait = &verify->list->waits.items[op->first_wait + i];
        if (wait->op >= verify->list->ops.count || wait->distance > MAX_DISTANCE ||
            (verify->init && wait->distance > 0)) {
            return sc_verify_fail(verify, "wait-range", number,
                                  "waits for op %u at distance %u: not there", wait->op,
                                  wait->distance);
        }
        if (wait->distance == 0 && wait->op >= number) {
            return sc_verify_fail(verify, "wait-forward", number,
                                  "waits for op %u of the same step, issued later", wait->op);
        }
    }
    return SC_OK;
}

static enum sc_status check_structure(const struct sc_verify *verify)
{
    for (uint32_t i = 0; i < verify->list->ops.count; ++i) {
        const struct sc_op *op = &verify->list->ops.items[i];
        if (op->kind >= SC_OP_KIND_COUNT || op->stream >= verify->program->streams.count ||
            op->group >= (int64_t)verify->program->groups.count) {
            return sc_verify_fail(verify, "structure", i, "kind, stream or group do not exist");
        }
        if (sc_op_kind_work(op->kind) == SC_WORK_COLLECTIVE && op->group < 0) {
            return sc_verify_fail(verify, "structure", i, "a collective without a group");
        }
        SC_TRY(check_operands(verify, i));
        SC_TRY(check_waits(verify, i));
    }
    return SC_OK;
}

static enum sc_status verify_list(struct sc_verify *verify, const struct sc_list *list, bool init)
{
    verify->list = list;
    verify->init = init;
    SC_TRY(check_structure(verify));
    SC_TRY(sc_verify_bytes(verify));
    SC_TRY(sc_verify_written(verify));
    return sc_verify_order(verify);
}

enum sc_status sc_program_verify(const struct sc_program *program, struct sc_error *err)
{
    for (size_t i = 0; i < program->classes.count; ++i) {
        struct sc_verify verify = {
            .program = program, .class = &program->classes.items[i], .err = err};
        SC_TRY(verify_list(&verify, &verify.class->init, true));
        SC_TRY(verify_list(&verify, &verify.class->step, false));
    }
    return sc_verify_groups(program, err);
}
