/* Names of operation kinds and roles, from the tables in op.h. */
#include "plans/op.h"

#include <string.h>

struct kind_row {
    const char *name;
    enum sc_work work;
};

static const struct kind_row kinds[SC_OP_KIND_COUNT] = {
#define KIND_ROW(kind, text, work) [kind] = {text, work},
    SC_OP_KIND_LIST(KIND_ROW)
#undef KIND_ROW
};

static const char *const roles[SC_ROLE_COUNT] = {
#define ROLE_ROW(role, text) [role] = text,
    SC_ROLE_LIST(ROLE_ROW)
#undef ROLE_ROW
};

const char *sc_op_kind_name(enum sc_op_kind kind)
{
    return (unsigned)kind < SC_OP_KIND_COUNT ? kinds[kind].name : "?";
}

enum sc_work sc_op_kind_work(enum sc_op_kind kind)
{
    return (unsigned)kind < SC_OP_KIND_COUNT ? kinds[kind].work : SC_WORK_HOST;
}

int sc_op_kind_from_name(const char *name)
{
    for (int kind = 0; kind < SC_OP_KIND_COUNT; ++kind) {
        if (strcmp(kinds[kind].name, name) == 0) {
            return kind;
        }
    }
    return -1;
}

const char *sc_role_name(enum sc_role role)
{
    return (unsigned)role < SC_ROLE_COUNT ? roles[role] : "?";
}
