/* Prepares a program for playing: streams with their operations, prices on this machine, meetings
 * of classes. Everything lies in the engine's arena. */
#include <string.h>

#include "sim/engine_internal.h"

static const struct sc_class *class_at(const struct engine *engine, uint32_t c)
{
    return &engine->program->classes.items[c];
}

static enum sc_status out_of_memory(struct sc_error *err)
{
    return sc_fail(err, SC_NO_MEMORY, "out of memory while preparing a program for playing");
}

#define ALLOCATE(engine, pointer, count)                                                           \
    do {                                                                                           \
        (pointer) = sc_arena_alloc(&(engine)->arena, (size_t)(count) + 1, sizeof(*(pointer)));     \
        if ((pointer) == NULL)                                                                     \
            return out_of_memory(err);                                                             \
    } while (0)

static uint32_t power_of_two(uint32_t least)
{
    uint32_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

/* Times of so many steps are kept: those in flight, the last that ended, and those that its waits
 * reach; classes that nothing joins may drift further apart. A path goes back through two cycles of
 * periods and what was in flight before them. */
static void choose_ring(struct engine *engine)
{
    engine->drift = power_of_two(engine->steps_ahead + 2);
    if (engine->class_count > 1)
        engine->drift *= 2;
    engine->ring = engine->drift;
    if (engine->keeps_path)
        engine->ring =
            power_of_two(engine->drift + engine->steps_ahead + 2 * SC_PLAY_CYCLE_MAX + 1);
    engine->ring_mask = engine->ring - 1;
}

/* ---- classes and their streams -------------------------------------------------------------- */

static enum sc_status compile_classes(struct engine *engine, struct sc_error *err)
{
    const struct sc_program *program = engine->program;
    ALLOCATE(engine, engine->classes, engine->class_count);
    uint64_t total = 0;
    for (uint32_t c = 0; c < engine->class_count; c++) {
        const struct sc_list *list = &program->classes.items[c].step;
        struct engine_class *class = &engine->classes[c];
        class->first = (uint32_t)total;
        class->ops = (uint32_t)list->ops.count;
        class->waits = list->waits.items;
        ALLOCATE(engine, class->issue_base, engine->ring);
        ALLOCATE(engine, class->remaining, engine->ring);
        if (class->ops == 0)
            return sc_fail(err, SC_BUG, "%s: class %s has no operations to play", program->name,
                           program->classes.items[c].name);
        total += list->ops.count;
    }
    if (total >= SC_NONE)
        return sc_fail(err, SC_BUG, "%s: more operations than can be played", program->name);
    engine->op_count = (uint32_t)total;
    return SC_OK;
}

static enum sc_status compile_stream(struct engine *engine, uint32_t c, uint32_t stream,
                                     uint32_t count, struct sc_error *err)
{
    const struct sc_list *list = &class_at(engine, c)->step;
    struct slot *slot = &engine->slots[engine->slot_count];
    slot->class_index = c;
    slot->stream = stream;
    slot->priority = engine->program->streams.items[stream].priority;
    slot->count = count;
    slot->next_waiter = SC_NONE;
    uint32_t *order;
    ALLOCATE(engine, order, count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->ops.count; i++)
        if (list->ops.items[i].stream == stream) {
            order[n++] = i;
            engine->ops[engine->classes[c].first + i].slot = engine->slot_count;
        }
    slot->order = order;
    engine->slot_count++;
    engine->classes[c].slots++;
    return SC_OK;
}

static enum sc_status compile_slots(struct engine *engine, struct sc_error *err)
{
    size_t streams = engine->program->streams.count;
    ALLOCATE(engine, engine->slots, streams * engine->class_count);
    uint32_t *count;
    ALLOCATE(engine, count, streams);
    for (uint32_t c = 0; c < engine->class_count; c++) {
        const struct sc_list *list = &class_at(engine, c)->step;
        memset(count, 0, streams * sizeof(*count));
        for (size_t i = 0; i < list->ops.count; i++) {
            if (list->ops.items[i].stream >= streams)
                return sc_fail(err, SC_BUG, "operation %zu is on no stream of the program", i);
            count[list->ops.items[i].stream]++;
        }
        engine->classes[c].first_slot = engine->slot_count;
        for (uint32_t s = 0; s < streams; s++)
            if (count[s] > 0)
                SC_TRY(compile_stream(engine, c, s, count[s], err));
    }
    return SC_OK;
}

static enum sc_status compile_ops(struct engine *engine, struct sc_error *err)
{
    ALLOCATE(engine, engine->ops, engine->op_count);
    for (uint32_t c = 0; c < engine->class_count; c++) {
        const struct sc_list *list = &class_at(engine, c)->step;
        struct engine_class *class = &engine->classes[c];
        double issued = 0;
        for (uint32_t i = 0; i < class->ops; i++) {
            struct engine_op *op = &engine->ops[class->first + i];
            issued += sc_price_of(engine->prices, c, i)->issue_us;
            op->issued = issued;
            op->wait = sc_price_of(engine->prices, c, i)->wait_us;
            op->join = SC_NONE;
            op->first_wait = list->ops.items[i].first_wait;
            op->waits = list->ops.items[i].waits;
        }
        class->issue_total = issued;
    }
    return SC_OK;
}

/* ---- prices on this machine ----------------------------------------------------------------- */

static void add_use(struct sc_share_use *use, uint32_t *count, uint32_t resource, double demand)
{
    for (uint32_t u = 0; u < *count; u++)
        if (use[u].resource == resource) {
            use[u].demand += demand;
            return;
        }
    use[(*count)++] = (struct sc_share_use){resource, demand};
}

/* Adds what one class's price takes, `stretch` times slower than alone. */
static void add_price(struct engine *engine, uint32_t c, const struct sc_price *price,
                      double stretch, struct sc_share_use *use, struct held_use *held,
                      struct work *work)
{
    const struct sc_machine_class *view = &engine->machine->classes.items[c];
    for (uint32_t u = 0; u < price->uses; u++) {
        uint8_t kind = price->use[u].resource;
        double demand = price->use[u].share * view->multiplicity[kind] / stretch;
        if (view->instance[kind] != SC_NO_INSTANCE && demand > 0)
            add_use(use, &work->uses, view->instance[kind], demand);
    }
    uint32_t device = view->instance[SC_USE_COMPUTE];
    if (price->held_units > 0 && device != SC_NO_INSTANCE && engine->units[device] > 0) {
        double units =
            price->held_units < engine->units[device] ? price->held_units : engine->units[device];
        held[work->held_count++] = (struct held_use){device, units};
    }
}

/* One work of the prices of several classes: as long as the longest of each phase. */
static enum sc_status make_work(struct engine *engine, const uint32_t *classes,
                                const struct sc_price *const *prices, uint32_t count,
                                struct work *work, struct sc_error *err)
{
    memset(work, 0, sizeof(*work));
    work->weight = prices[0]->weight;
    work->slowdown = 1;
    uint32_t room = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct sc_price *price = prices[i];
        room += price->uses;
        work->computes |= price->computes;
        if (price->latency_us > work->latency)
            work->latency = price->latency_us;
        if (i == 0 || price->work_us > work->duration) {
            work->duration = price->work_us;
            work->bound = price->bound;
        }
        if (price->slowdown_beside_compute > work->slowdown)
            work->slowdown = price->slowdown_beside_compute;
    }
    struct sc_share_use *use;
    struct held_use *held;
    ALLOCATE(engine, use, room);
    ALLOCATE(engine, held, count);
    for (uint32_t i = 0; i < count; i++) {
        double alone = prices[i]->work_us;
        double stretch = alone > 0 ? work->duration / alone : 1;
        add_price(engine, classes[i], prices[i], stretch, use, held, work);
    }
    work->use = use;
    work->held = held;
    if (work->uses > engine->uses_max)
        engine->uses_max = work->uses;
    engine->has_slowdown |= work->slowdown > 1;
    return SC_OK;
}

static enum sc_status check_prices(const struct engine *engine, struct sc_error *err)
{
    const struct sc_prices *prices = engine->prices;
    if (prices->classes.count != engine->class_count || prices->table.count == 0 ||
        engine->machine->classes.count != engine->class_count)
        return sc_fail(err, SC_BUG, "prices or machine are not of the program %s",
                       engine->program->name);
    for (uint32_t c = 0; c < engine->class_count; c++) {
        const struct sc_class_prices *class = &prices->classes.items[c];
        if (class->ops != class_at(engine, c)->step.ops.count)
            return sc_fail(err, SC_BUG, "prices of another program");
        for (size_t i = 0; i < class->ops; i++)
            if (class->of_op[i] >= prices->table.count)
                return sc_fail(err, SC_BUG, "operation %zu has no price", i);
    }
    return SC_OK;
}

/* One work for every price and class; joint ones come behind. */
static enum sc_status compile_works(struct engine *engine, uint32_t joint, struct sc_error *err)
{
    uint32_t prices = (uint32_t)engine->prices->table.count;
    ALLOCATE(engine, engine->works, (size_t)prices * engine->class_count + joint);
    for (uint32_t c = 0; c < engine->class_count; c++) {
        for (uint32_t p = 0; p < prices; p++) {
            const struct sc_price *price = &engine->prices->table.items[p];
            SC_TRY(make_work(engine, &c, &price, 1, &engine->works[engine->work_count], err));
            engine->work_count++;
        }
        for (uint32_t i = 0; i < engine->classes[c].ops; i++)
            engine->ops[engine->classes[c].first + i].work =
                c * prices + engine->prices->classes.items[c].of_op[i];
    }
    return SC_OK;
}

/* ---- collectives of several classes --------------------------------------------------------- */

/* Whether some rank of a and some of b differ along the mask's axes only. */
static bool joined(const struct sc_class *a, const struct sc_class *b, unsigned mask)
{
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
        unsigned bit = SC_AXIS_MASK(axis);
        if (mask & bit)
            continue;
        if ((a->fixed_mask & bit) && (b->fixed_mask & bit) &&
            a->coordinate[axis] != b->coordinate[axis])
            return false;
    }
    return true;
}

static uint32_t next_of_group(const struct engine *engine, uint32_t c, int16_t group, uint32_t from)
{
    const struct sc_list *list = &class_at(engine, c)->step;
    for (uint32_t i = from; i < list->ops.count; i++)
        if (list->ops.items[i].group == group)
            return i;
    return SC_NONE;
}

/* The k-th collectives of the classes become one joint work each. */
static enum sc_status join_classes(struct engine *engine, int16_t group, const uint32_t *classes,
                                   uint32_t count, struct sc_error *err)
{
    struct join *join = &engine->joins[engine->join_count];
    uint32_t *at;
    const struct sc_price **prices;
    ALLOCATE(engine, at, count);
    ALLOCATE(engine, prices, count);
    for (uint32_t i = 0; i < count; i++) {
        at[i] = next_of_group(engine, classes[i], group, 0);
        uint32_t slot = engine->ops[engine->classes[classes[i]].first + at[i]].slot;
        engine->members[join->first_member + i] = slot;
    }
    join->members = count;
    while (at[0] != SC_NONE) {
        for (uint32_t i = 0; i < count; i++) {
            if (at[i] == SC_NONE)
                return sc_fail(err, SC_BUG, "group %s: classes have unequal numbers of collectives",
                               engine->program->groups.items[group].name);
            struct engine_op *op = &engine->ops[engine->classes[classes[i]].first + at[i]];
            prices[i] = sc_price_of(engine->prices, classes[i], at[i]);
            op->work = engine->work_count;
            op->join = engine->join_count;
        }
        SC_TRY(make_work(engine, classes, prices, count, &engine->works[engine->work_count], err));
        engine->work_count++;
        for (uint32_t i = 0; i < count; i++)
            at[i] = next_of_group(engine, classes[i], group, at[i] + 1);
    }
    engine->join_count++;
    return SC_OK;
}

/* Finds for a group the sets of classes that meet in it. */
static enum sc_status join_group(struct engine *engine, int16_t group, struct sc_error *err)
{
    unsigned mask = engine->program->groups.items[group].axis_mask;
    uint32_t *set;
    bool *taken;
    ALLOCATE(engine, set, engine->class_count);
    ALLOCATE(engine, taken, engine->class_count);
    for (uint32_t c = 0; c < engine->class_count; c++)
        taken[c] = next_of_group(engine, c, group, 0) == SC_NONE;
    for (uint32_t c = 0; c < engine->class_count; c++) {
        if (taken[c])
            continue;
        uint32_t count = 0;
        set[count++] = c;
        taken[c] = true;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t d = 0; d < engine->class_count; d++)
                if (!taken[d] && joined(class_at(engine, set[i]), class_at(engine, d), mask)) {
                    set[count++] = d;
                    taken[d] = true;
                }
        if (count == 1)
            continue;
        engine->joins[engine->join_count].first_member =
            engine->join_count == 0 ? 0
                                    : engine->joins[engine->join_count - 1].first_member +
                                          engine->joins[engine->join_count - 1].members;
        SC_TRY(join_classes(engine, group, set, count, err));
    }
    return SC_OK;
}

static enum sc_status compile_joins(struct engine *engine, struct sc_error *err)
{
    if (engine->class_count < 2)
        return SC_OK;
    size_t groups = engine->program->groups.count;
    ALLOCATE(engine, engine->joins, groups * engine->class_count);
    ALLOCATE(engine, engine->members, groups * engine->class_count);
    for (size_t g = 0; g < groups; g++)
        SC_TRY(join_group(engine, (int16_t)g, err));
    return SC_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum sc_status compile_resources(struct engine *engine, struct sc_error *err)
{
    size_t count = engine->machine->instances.count;
    ALLOCATE(engine, engine->capacity, count);
    ALLOCATE(engine, engine->units, count);
    ALLOCATE(engine, engine->units_used, count);
    ALLOCATE(engine, engine->released, count);
    ALLOCATE(engine, engine->units_blocked, count);
    for (size_t r = 0; r < count; r++) {
        engine->capacity[r] = 1;
        engine->units[r] = engine->machine->instances.items[r].units;
    }
    return SC_OK;
}

static enum sc_status allocate_state(struct engine *engine, struct sc_error *err)
{
    ALLOCATE(engine, engine->done, engine->op_count);
    ALLOCATE(engine, engine->waiter, engine->op_count);
    ALLOCATE(engine, engine->rows, (size_t)engine->op_count * engine->ring);
    ALLOCATE(engine, engine->held_queue, engine->slot_count);
    ALLOCATE(engine, engine->held_since, engine->slot_count);
    memset(engine->waiter, 0xFF, (engine->op_count + 1u) * sizeof(*engine->waiter));
    SC_TRY(sc_event_queue_init(&engine->queue, engine->slot_count, err));
    return sc_share_create(engine->capacity, (uint32_t)engine->machine->instances.count,
                           engine->slot_count, engine->uses_max, &engine->share, err);
}

enum sc_status sc_engine_compile(struct engine *engine, struct sc_error *err)
{
    if (engine->class_count == 0)
        return sc_fail(err, SC_BUG, "%s: a program without classes", engine->program->name);
    SC_TRY(check_prices(engine, err));
    choose_ring(engine);
    SC_TRY(compile_classes(engine, err));
    SC_TRY(compile_ops(engine, err));
    SC_TRY(compile_slots(engine, err));
    SC_TRY(compile_resources(engine, err));
    SC_TRY(compile_works(engine, engine->class_count > 1 ? engine->op_count : 0, err));
    SC_TRY(compile_joins(engine, err));
    return allocate_state(engine, err);
}
