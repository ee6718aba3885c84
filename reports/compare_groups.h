/*
 * Which plans compete with each other: a list of names and groups, read from a file. The same file
 * may say how to make the plans ("groups", "base", "set"); what is not needed here is not read.
 *
 *   {"plans": [{"name": "tiny_tp2", "group": "tiny", "transport": "threads"}, ...]}
 */
#ifndef STEPCAST_REPORTS_COMPARE_GROUPS_H
#define STEPCAST_REPORTS_COMPARE_GROUPS_H

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"

struct sc_plan_group_row {
    const char *plan, *group;
    const char *transport; /* NULL: not said */
};

struct sc_plan_groups {
    SC_ARRAY(struct sc_plan_group_row) rows;
    const char *file;
    struct sc_arena arena;
};

/* The caller frees with sc_plan_groups_free (a zeroed struct is accepted). */
enum sc_status sc_plan_groups_read(const char *file, struct sc_plan_groups *out,
                                   struct sc_error *err);
void sc_plan_groups_free(struct sc_plan_groups *groups);
/* The row of a plan's name; SC_BAD_INPUT where there is none. */
enum sc_status sc_plan_groups_find(const struct sc_plan_groups *groups, const char *plan,
                                   const struct sc_plan_group_row **out, struct sc_error *err);

#endif
