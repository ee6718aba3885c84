/* Plays with other prices, see sensitivity.h. */
#include "sim/sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine.h"

/* Gains below this part of the period are rounding. */
#define ROUNDING 1e-9

static enum sc_status play_period(const struct sc_program *program, const struct sc_prices *prices,
                                  const struct sc_machine *machine, double *period_us,
                                  struct sc_error *err)
{
    struct sc_play play;
    memset(&play, 0, sizeof(play));
    SC_TRY(sc_play(program, prices, machine, NULL, &play, err));
    *period_us = play.period_us;
    sc_play_free(&play);
    return SC_OK;
}

/* ---- kinds of work -----------------------------------------------------------------------------
 */

static struct sc_price free_price(struct sc_price price, bool work, bool issue)
{
    if (work) {
        price.latency_us = price.work_us = price.held_units = 0;
        price.uses = 0;
    }
    if (issue)
        price.issue_us = 0;
    price.wait_us = 0;
    return price;
}

/* The table twice: every price as it is, then every price without its work. */
static enum sc_status free_kind(const struct sc_prices *prices, const struct sc_work_kinds *kinds,
                                uint32_t kind, bool issue, struct sc_prices *out,
                                struct sc_error *err)
{
    uint32_t count = (uint32_t)prices->table.count, added;
    for (uint32_t p = 0; p < 2 * count; p++) {
        struct sc_price price = free_price(prices->table.items[p % count], p >= count, issue);
        if (!sc_prices_add(out, &price, &added))
            return sc_fail_memory(err, sizeof(price));
    }
    for (uint32_t c = 0; c < prices->classes.count; c++) {
        const struct sc_class_prices *class = &prices->classes.items[c];
        for (uint32_t i = 0; i < class->ops; i++) {
            bool chosen = kind == SC_EVERY_WORK_KIND || sc_work_kind_of(kinds, c, i) == kind;
            out->classes.items[c].of_op[i] = class->of_op[i] + (chosen ? count : 0);
        }
    }
    return SC_OK;
}

enum sc_status sc_period_if_free(const struct sc_program *program, const struct sc_prices *prices,
                                 const struct sc_machine *machine,
                                 const struct sc_work_kinds *kinds, uint32_t kind, bool issue,
                                 double *period_us, struct sc_error *err)
{
    struct sc_prices changed;
    SC_TRY(sc_prices_begin(program, &changed, err));
    enum sc_status status = free_kind(prices, kinds, kind, issue, &changed, err);
    if (status == SC_OK)
        status = play_period(program, &changed, machine, period_us, err);
    sc_prices_free(&changed);
    return status;
}

/* ---- resources ---------------------------------------------------------------------------------
 */

enum sc_status sc_period_if_faster(const struct sc_program *program,
                                   const struct sc_hardware *hardware,
                                   const struct sc_machine *machine, int resource, double times,
                                   double *period_us, struct sc_error *err)
{
    struct sc_pricing *pricing = NULL;
    struct sc_prices prices;
    memset(&prices, 0, sizeof(prices));
    SC_TRY(sc_pricing_create(program, hardware, &pricing, err));
    sc_pricing_set_speed(pricing, resource, times);
    enum sc_status status = sc_price_program(pricing, &prices, err);
    if (status == SC_OK)
        status = play_period(program, &prices, machine, period_us, err);
    sc_prices_free(&prices);
    sc_pricing_destroy(&pricing);
    return status;
}

static const char *resource_name(const struct sc_hardware *hardware, int resource)
{
    static const char *const names[SC_USE_LINK] = {[SC_USE_COMPUTE] = "compute",
                                                   [SC_USE_MEMORY] = "memory bandwidth",
                                                   [SC_USE_HOST_MEMORY] = "host memory bandwidth",
                                                   [SC_USE_DISK] = "disk bandwidth"};
    if (resource == SC_USE_ISSUE)
        return "issue";
    return resource < SC_USE_LINK ? names[resource] : hardware->links[resource - SC_USE_LINK].name;
}

static void mark_used(const struct sc_prices *prices, bool used[SC_USE_SPEEDS])
{
    for (size_t p = 0; p < prices->table.count; p++) {
        const struct sc_price *price = &prices->table.items[p];
        for (uint8_t u = 0; u < price->uses; u++)
            used[price->use[u].resource] = true;
        if (price->issue_us > 0)
            used[SC_USE_ISSUE] = true;
    }
}

/* ---- all of them -------------------------------------------------------------------------------
 */

struct trial {
    const struct sc_program *program;
    const struct sc_hardware *hardware;
    const struct sc_machine *machine;
    const struct sc_prices *prices;
    const struct sc_work_kinds *kinds;
    double period_us;
    struct sc_sensitivity *out;
};

#define ADD(trial, array, what, err)                                                               \
    do {                                                                                           \
        struct sc_what_if *add_slot_ = sc_array_push(&(trial)->out->array);                        \
        if (add_slot_ == NULL)                                                                     \
            return sc_fail_memory((err), sizeof(*add_slot_));                                      \
        (what).gain_us = gain(trial, (what).period_us);                                            \
        *add_slot_ = (what);                                                                       \
    } while (0)

static double gain(const struct trial *trial, double period_us)
{
    double less = trial->period_us - period_us;
    return fabs(less) <= ROUNDING * trial->period_us ? 0 : less;
}

static enum sc_status try_kinds(const struct trial *trial, struct sc_error *err)
{
    for (uint32_t k = 0; k < trial->kinds->kinds.count; k++) {
        struct sc_what_if what = {.name = trial->kinds->kinds.items[k].name, .number = k};
        SC_TRY(sc_period_if_free(trial->program, trial->prices, trial->machine, trial->kinds, k,
                                 false, &what.period_us, err));
        ADD(trial, free, what, err);
    }
    return SC_OK;
}

static enum sc_status try_resources(const struct trial *trial, struct sc_error *err)
{
    bool used[SC_USE_SPEEDS] = {false};
    mark_used(trial->prices, used);
    for (int resource = 0; resource < SC_USE_SPEEDS; resource++) {
        struct sc_what_if what = {.name = resource_name(trial->hardware, resource),
                                  .resource = true,
                                  .number = (uint32_t)resource};
        if (!used[resource])
            continue;
        SC_TRY(sc_period_if_faster(trial->program, trial->hardware, trial->machine, resource,
                                   (double)INFINITY, &what.period_us, err));
        ADD(trial, free, what, err);
        SC_TRY(sc_period_if_faster(trial->program, trial->hardware, trial->machine, resource,
                                   SC_SENSITIVITY_STEP, &what.period_us, err));
        ADD(trial, faster, what, err);
    }
    return SC_OK;
}

static int by_gain(const void *a, const void *b)
{
    const struct sc_what_if *x = a, *y = b;
    if (x->gain_us > y->gain_us)
        return -1;
    if (x->gain_us < y->gain_us)
        return 1;
    if (x->resource != y->resource)
        return x->resource ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

enum sc_status sc_sensitivity_of(const struct sc_program *program,
                                 const struct sc_hardware *hardware,
                                 const struct sc_machine *machine, const struct sc_prices *prices,
                                 const struct sc_work_kinds *kinds, double period_us,
                                 struct sc_sensitivity *out, struct sc_error *err)
{
    struct sc_sensitivity found;
    memset(&found, 0, sizeof(found));
    const struct trial trial = {program, hardware, machine, prices, kinds, period_us, &found};
    enum sc_status status = try_kinds(&trial, err);
    if (status == SC_OK)
        status = try_resources(&trial, err);
    if (status != SC_OK) {
        sc_sensitivity_free(&found);
        return status;
    }
    qsort(found.free.items, found.free.count, sizeof(struct sc_what_if), by_gain);
    if (found.faster.count > 0)
        qsort(found.faster.items, found.faster.count, sizeof(struct sc_what_if), by_gain);
    *out = found;
    return SC_OK;
}

void sc_sensitivity_free(struct sc_sensitivity *sensitivity)
{
    sc_array_free(&sensitivity->free);
    sc_array_free(&sensitivity->faster);
    memset(sensitivity, 0, sizeof(*sensitivity));
}
