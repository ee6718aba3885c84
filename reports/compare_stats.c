/* What a comparison says of all its plans: errors, groups, the order within them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/fit.h"
#include "reports/compare.h"

bool sc_compared_inside(const struct sc_compared_plan *plan)
{
    return plan->low_s <= plan->measured_s && plan->measured_s <= plan->high_s;
}

static bool measured(const struct sc_compared_plan *plan)
{
    return !isnan(plan->error);
}

static double quantile(double *values, size_t count, double q)
{
    return count > 0 ? sc_fit_quantile(values, count, q) : NAN;
}

/* ---- errors ------------------------------------------------------------------------------ */

static enum sc_status fill_errors(struct sc_comparison *comparison, struct sc_error *err)
{
    size_t count = 0;
    double *errors = calloc(comparison->plans.count + 1, sizeof(*errors));
    if (errors == NULL) {
        return sc_fail_memory(err, (comparison->plans.count + 1) * sizeof(*errors));
    }
    for (size_t i = 0; i < comparison->plans.count; i++) {
        if (measured(&comparison->plans.items[i])) {
            errors[count++] = fabs(comparison->plans.items[i].error);
        }
    }
    comparison->median_abs_error = quantile(errors, count, 0.5);
    comparison->p90_abs_error = quantile(errors, count, 0.9);
    comparison->max_abs_error = quantile(errors, count, 1);
    free(errors);
    return SC_OK;
}

static void fill_coverage(struct sc_comparison *comparison)
{
    size_t known = 0, inside = 0;
    for (size_t i = 0; i < comparison->plans.count; i++) {
        const struct sc_compared_plan *plan = &comparison->plans.items[i];
        if (measured(plan) && !isnan(plan->low_s)) {
            known++;
            inside += sc_compared_inside(plan);
        }
    }
    comparison->coverage = known > 0 ? (double)inside / (double)known : NAN;
}

static void fill_kinds(struct sc_comparison *comparison)
{
    for (size_t i = 0; i < SC_OP_KIND_COUNT; i++) {
        struct sc_compared_kind *kind = &comparison->kinds[i];
        kind->error = kind->measured_s > 0 ? kind->predicted_s / kind->measured_s - 1 : (double)NAN;
        kind->median_abs_error = quantile(kind->abs_errors.items, kind->abs_errors.count, 0.5);
    }
}

/* ---- groups ------------------------------------------------------------------------------ */

static bool same_group(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The group of a plan; a new one at its first plan. NULL when out of memory. */
static struct sc_compared_group *group_of(struct sc_comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->groups.count; i++) {
        if (same_group(comparison->groups.items[i].name, name)) {
            return &comparison->groups.items[i];
        }
    }
    struct sc_compared_group *group = sc_array_push(&comparison->groups);
    if (group != NULL) {
        group->name = name;
    }
    return group;
}

/* More than SC_GAP between a pair is a difference that the forecast has to see. */
static enum sc_status judge_pair(struct sc_comparison *comparison, struct sc_compared_group *group,
                                 const struct sc_compared_plan *a, const struct sc_compared_plan *b,
                                 struct sc_error *err)
{
    const struct sc_compared_plan *faster = a->measured_s <= b->measured_s ? a : b;
    const struct sc_compared_plan *slower = faster == a ? b : a;
    double gap = slower->measured_s / faster->measured_s - 1;
    if (gap <= SC_GAP) {
        return SC_OK;
    }
    group->gaps++;
    if (slower->predicted_s > faster->predicted_s) {
        return SC_OK;
    }
    group->wrong++;
    struct sc_wrong_gap *wrong = sc_array_push(&comparison->wrong_gaps);
    if (wrong == NULL) {
        return sc_fail_memory(err, sizeof(*wrong));
    }
    *wrong = (struct sc_wrong_gap){group->name, faster->plan, slower->plan, gap,
                                   slower->predicted_s / faster->predicted_s - 1};
    return SC_OK;
}

static enum sc_status judge_pairs(struct sc_comparison *comparison, struct sc_compared_group *group,
                                  struct sc_error *err)
{
    const struct sc_compared_plan *plans = comparison->plans.items;
    for (size_t i = 0; i < comparison->plans.count; i++) {
        if (!measured(&plans[i]) || !same_group(plans[i].group, group->name)) {
            continue;
        }
        for (size_t k = i + 1; k < comparison->plans.count; k++) {
            if (measured(&plans[k]) && same_group(plans[k].group, group->name)) {
                SC_TRY(judge_pair(comparison, group, &plans[i], &plans[k], err));
            }
        }
    }
    return SC_OK;
}

static void find_regret(const struct sc_comparison *comparison, struct sc_compared_group *group)
{
    const struct sc_compared_plan *forecast = NULL, *fastest = NULL;
    for (size_t i = 0; i < comparison->plans.count; i++) {
        const struct sc_compared_plan *plan = &comparison->plans.items[i];
        if (!measured(plan) || !same_group(plan->group, group->name)) {
            continue;
        }
        group->plans++;
        forecast = !forecast || plan->predicted_s < forecast->predicted_s ? plan : forecast;
        fastest = !fastest || plan->measured_s < fastest->measured_s ? plan : fastest;
    }
    group->forecast = forecast ? forecast->plan : NULL;
    group->fastest = fastest ? fastest->plan : NULL;
    group->regret = forecast ? forecast->measured_s / fastest->measured_s : (double)NAN;
}

static enum sc_status fill_groups(struct sc_comparison *comparison, struct sc_error *err)
{
    for (size_t i = 0; i < comparison->plans.count; i++) {
        if (group_of(comparison, comparison->plans.items[i].group) == NULL) {
            return sc_fail_memory(err, sizeof(struct sc_compared_group));
        }
    }
    comparison->regret = NAN;
    for (size_t i = 0; i < comparison->groups.count; i++) {
        struct sc_compared_group *group = &comparison->groups.items[i];
        find_regret(comparison, group);
        comparison->regret = fmax(comparison->regret, group->regret);
        SC_TRY(judge_pairs(comparison, group, err));
    }
    return SC_OK;
}

enum sc_status sc_comparison_finish(struct sc_comparison *comparison, struct sc_error *err)
{
    fill_kinds(comparison);
    fill_coverage(comparison);
    SC_TRY(fill_errors(comparison, err));
    return fill_groups(comparison, err);
}
