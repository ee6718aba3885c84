/* The list of plans and groups, see compare_groups.h. */
#include "reports/compare_groups.h"

#include <string.h>

#include "base/json.h"

static const char *const ROOT_KEYS[] = {"plans", "groups", "notes", NULL};
static const char *const PLAN_KEYS[] = {"name", "group", "transport", "set", "notes", NULL};

static enum sc_status read_row(const struct sc_json *at, struct sc_plan_groups *out,
                               struct sc_error *err)
{
    struct sc_plan_group_row *row = sc_array_push(&out->rows);
    if (row == NULL) {
        return sc_fail_memory(err, sizeof(*row));
    }
    SC_TRY(sc_json_check_keys(at, PLAN_KEYS, err));
    SC_TRY(sc_json_string(at, "name", &out->arena, &row->plan, err));
    SC_TRY(sc_json_string(at, "group", &out->arena, &row->group, err));
    return sc_json_opt_string(at, "transport", &out->arena, &row->transport, err);
}

static enum sc_status read_rows(const struct sc_json *root, struct sc_plan_groups *out,
                                struct sc_error *err)
{
    struct sc_json array, item;
    int count = 0;
    SC_TRY(sc_json_check_keys(root, ROOT_KEYS, err));
    SC_TRY(sc_json_array(root, "plans", &array, &count, err));
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&array, i, &item, err));
        SC_TRY(read_row(&item, out, err));
    }
    return SC_OK;
}

enum sc_status sc_plan_groups_read(const char *file, struct sc_plan_groups *out,
                                   struct sc_error *err)
{
    struct sc_json_doc doc;
    struct sc_plan_groups groups;
    memset(&groups, 0, sizeof(groups));
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = read_rows(&root, &groups, err);
    sc_json_doc_free(&doc);
    if (status == SC_OK) {
        groups.file = sc_arena_strdup(&groups.arena, file);
        status = groups.file != NULL ? SC_OK : sc_fail_memory(err, strlen(file));
    }
    if (status != SC_OK) {
        sc_plan_groups_free(&groups);
        return status;
    }
    *out = groups;
    return SC_OK;
}

void sc_plan_groups_free(struct sc_plan_groups *groups)
{
    sc_array_free(&groups->rows);
    sc_arena_free(&groups->arena);
    groups->file = NULL;
}

enum sc_status sc_plan_groups_find(const struct sc_plan_groups *groups, const char *plan,
                                   const struct sc_plan_group_row **out, struct sc_error *err)
{
    for (size_t i = 0; i < groups->rows.count; i++) {
        if (strcmp(groups->rows.items[i].plan, plan) == 0) {
            *out = &groups->rows.items[i];
            return SC_OK;
        }
    }
    return sc_fail(err, SC_BAD_INPUT,
                   "%s: plans: found no plan of the name \"%s\", expected all that are compared",
                   groups->file, plan);
}
