/* Prices of operations: a row a kind says how the kind is turned into work that model/cost_* knows;
 * one function turns the cost into shares of resource instances. */
#include "sim/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/cost_collective.h"
#include "model/cost_compute.h"
#include "model/cost_copy.h"
#include "model/topology.h"
#include "plans/op_cost_name.h"
#include "sim/machine.h"

/* Distinct places that the groups of one class along one mask can have. */
enum { PLACES_MAX = 8, PAGE_BYTES = 4096 };

struct group_places {
    struct sc_group_place place[PLACES_MAX];
    int count;
};

struct sc_pricing {
    const struct sc_program *program;
    const struct sc_hardware *hardware;
    struct sc_machine machine;
    struct group_places *places; /* [classes][groups] */
    double speed[SC_USE_SPEEDS]; /* 1 but for a what-if */
};

/* An operation with what its price needs. */
struct item {
    const struct sc_pricing *pricing;
    uint32_t class_index;
    const struct sc_class *class;
    const struct sc_op *op;
};

/* ---- where groups sit ------------------------------------------------------------------------ */

static bool same_place(const struct sc_group_place *a, const struct sc_group_place *b)
{
    return a->members == b->members && a->nodes == b->nodes &&
           a->members_per_node == b->members_per_node && a->level == b->level;
}

static enum sc_status add_place(struct sc_pricing *pricing, struct group_places *places,
                                const int64_t *members, int64_t count, struct sc_error *err)
{
    struct sc_group_place place;
    SC_TRY(sc_topology_group(pricing->hardware, members, count, &place, err));
    for (int i = 0; i < places->count; i++)
        if (same_place(&places->place[i], &place))
            return SC_OK;
    if (places->count < PLACES_MAX)
        places->place[places->count++] = place;
    return SC_OK;
}

/* Whether the rank stands for its group: first on the axes along which both the group and the class
 * extend. */
static bool stands_for_group(const struct sc_program *program, const struct sc_class *class,
                             unsigned mask, int64_t rank)
{
    int64_t at[SC_AXIS_COUNT];
    sc_mesh_coordinates(&program->mesh, rank, at);
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
        bool fixed = (class->fixed_mask & SC_AXIS_MASK(axis)) != 0;
        if (fixed ? at[axis] != class->coordinate[axis]
                  : (mask & SC_AXIS_MASK(axis)) != 0 && at[axis] != 0)
            return false;
    }
    return true;
}

static enum sc_status place_group(struct sc_pricing *pricing, uint32_t class_index,
                                  const struct sc_group *group, int64_t *members,
                                  struct group_places *places, struct sc_error *err)
{
    const struct sc_program *program = pricing->program;
    const struct sc_class *class = &program->classes.items[class_index];
    int64_t size = sc_mesh_group_size(&program->mesh, group->axis_mask);
    for (int64_t rank = 0; rank < program->mesh.ranks; rank++) {
        if (!stands_for_group(program, class, group->axis_mask, rank))
            continue;
        sc_mesh_group_members(&program->mesh, group->axis_mask, rank, members);
        SC_TRY(add_place(pricing, places, members, size, err));
    }
    return SC_OK;
}

static enum sc_status place_groups(struct sc_pricing *pricing, struct sc_error *err)
{
    const struct sc_program *program = pricing->program;
    size_t groups = program->groups.count;
    int64_t *members = calloc((size_t)program->mesh.ranks + 1, sizeof(*members));
    pricing->places = calloc(program->classes.count * groups + 1, sizeof(*pricing->places));
    enum sc_status status = SC_OK;
    if (members == NULL || pricing->places == NULL)
        status = sc_fail_memory(err, (size_t)program->mesh.ranks * sizeof(*members));
    for (uint32_t c = 0; c < program->classes.count && status == SC_OK; c++)
        for (size_t g = 0; g < groups && status == SC_OK; g++)
            status = place_group(pricing, c, &program->groups.items[g], members,
                                 &pricing->places[c * groups + g], err);
    free(members);
    return status;
}

enum sc_status sc_pricing_create(const struct sc_program *program,
                                 const struct sc_hardware *hardware, struct sc_pricing **out,
                                 struct sc_error *err)
{
    struct sc_pricing *pricing = calloc(1, sizeof(*pricing));
    if (pricing == NULL)
        return sc_fail_memory(err, sizeof(*pricing));
    pricing->program = program;
    pricing->hardware = hardware;
    for (int resource = 0; resource < SC_USE_SPEEDS; resource++)
        pricing->speed[resource] = 1;
    enum sc_status status = sc_machine_from_hardware(program, hardware, &pricing->machine, err);
    if (status == SC_OK)
        status = place_groups(pricing, err);
    if (status != SC_OK) {
        sc_pricing_destroy(&pricing);
        return status;
    }
    *out = pricing;
    return SC_OK;
}

void sc_pricing_destroy(struct sc_pricing **pricing)
{
    if (*pricing == NULL)
        return;
    sc_machine_free(&(*pricing)->machine);
    free((*pricing)->places);
    free(*pricing);
    *pricing = NULL;
}

void sc_pricing_set_speed(struct sc_pricing *pricing, int resource, double times)
{
    pricing->speed[resource] = times;
}

static const struct group_places *places_of(const struct sc_pricing *pricing, uint32_t class_index,
                                            uint32_t group)
{
    return &pricing->places[class_index * pricing->program->groups.count + group];
}

int64_t sc_pricing_nodes(const struct sc_pricing *pricing, uint32_t class_index, uint32_t group,
                         bool *uneven)
{
    const struct group_places *places = places_of(pricing, class_index, group);
    int64_t nodes = 1;
    for (int i = 0; i < places->count; i++)
        nodes = places->place[i].nodes > nodes ? places->place[i].nodes : nodes;
    *uneven = places->count > 1;
    return nodes;
}

/* ---- operands -------------------------------------------------------------------------------- */

static const struct sc_value *value(const struct item *item, enum sc_role role)
{
    return sc_op_value(item->class, &item->class->step, item->op, role);
}

static enum sc_status need(const struct item *item, enum sc_role role, const struct sc_value **out,
                           struct sc_error *err)
{
    *out = value(item, role);
    if (*out == NULL)
        return sc_fail(err, SC_BUG, "a %s without operand %s has no price",
                       sc_op_kind_name(item->op->kind), sc_role_name(role));
    return SC_OK;
}

static double elements(const struct sc_value *v)
{
    return (double)v->rows * (double)v->cols;
}

/* Of the largest operand: what an element-wise kernel runs over. */
static double most_elements(const struct item *item)
{
    double most = 0;
    for (uint32_t i = 0; i < item->op->operands; i++) {
        const struct sc_operand *operand =
            &item->class->step.operands.items[item->op->first_operand + i];
        const struct sc_value *v = &item->class->values.items[operand->value];
        bool table = (item->op->kind == SC_EMBEDDING && operand->role == SC_ROLE_WEIGHT) ||
                     (item->op->kind == SC_EMBEDDING_BACKWARD && operand->role == SC_ROLE_DWEIGHT);
        if (!table && elements(v) > most)
            most = elements(v);
    }
    return most;
}

static double operand_bytes(const struct item *item)
{
    return sc_op_bytes(item->class, &item->class->step, item->op);
}

static enum sc_hw_place place_of(const struct item *item, const struct sc_value *v)
{
    static const enum sc_hw_place places[SC_PLACE_COUNT] = {[SC_DEVICE] = SC_HW_DEVICE,
                                                            [SC_PINNED] = SC_HW_PINNED,
                                                            [SC_HOST] = SC_HW_HOST,
                                                            [SC_DISK] = SC_HW_DISK};
    return places[item->class->buffers.items[v->buffer].place];
}

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef enum sc_status (*cost_fn)(const struct item *item, struct sc_cost *out,
                                  struct sc_error *err);

/* The distance of two rows. */
static bool whole_pages(const struct sc_value *v)
{
    return v->row_stride * (int64_t)sc_dtype_bytes(v->dtype) % PAGE_BYTES == 0;
}

static enum sc_status cost_gemm(const struct item *item, struct sc_cost *out, struct sc_error *err)
{
    const struct sc_value *a, *c;
    SC_TRY(need(item, SC_ROLE_A, &a, err));
    SC_TRY(need(item, SC_ROLE_C, &c, err));
    const struct sc_operand *target = sc_op_operand(&item->class->step, item->op, SC_ROLE_C);
    const struct sc_value *bias = value(item, SC_ROLE_BIAS);
    struct sc_gemm_work work = {
        .batch = 1,
        .m = c->rows,
        .n = c->cols,
        .k = item->op->p.gemm.transpose_a ? a->rows : a->cols,
        .input = a->dtype,
        .output = c->dtype,
        .accumulate = target->access == SC_INOUT,
        .transpose_a = item->op->p.gemm.transpose_a,
        .transpose_b = item->op->p.gemm.transpose_b,
        .page_stride = item->op->p.gemm.transpose_a && whole_pages(a),
        .epilogue_bytes = bias != NULL ? (double)sc_value_bytes(bias) : 0,
    };
    return sc_cost_gemm(item->pricing->hardware, &work, out, err);
}

/* Either the result is a stack of [sequence, sequence] scores, or it packs heads side by side. */
static enum sc_status cost_batched_gemm(const struct item *item, struct sc_cost *out,
                                        struct sc_error *err)
{
    const struct sc_value *a, *c;
    SC_TRY(need(item, SC_ROLE_A, &a, err));
    SC_TRY(need(item, SC_ROLE_C, &c, err));
    const struct sc_operand *target = sc_op_operand(&item->class->step, item->op, SC_ROLE_C);
    int64_t batch = item->op->p.attention.batch, sequence = item->op->p.attention.sequence;
    int64_t heads = item->op->p.attention.heads, head_size = item->op->p.attention.head_size;
    bool scores = c->rows == batch * heads * sequence && c->cols == sequence;
    struct sc_gemm_work work = {
        .batch = batch * heads,
        .m = sequence,
        .n = scores ? sequence : head_size,
        .k = scores ? head_size : sequence,
        .input = a->dtype,
        .output = c->dtype,
        .accumulate = target->access == SC_INOUT,
    };
    return sc_cost_gemm(item->pricing->hardware, &work, out, err);
}

static enum sc_status cost_attention(const struct item *item, struct sc_cost *out,
                                     struct sc_error *err)
{
    const struct sc_value *qkv;
    SC_TRY(need(item, SC_ROLE_QKV, &qkv, err));
    struct sc_attention_work work = {
        .batch = item->op->p.attention.batch,
        .query_heads = item->op->p.attention.heads,
        .key_value_heads = item->op->p.attention.kv_heads,
        .head_size = item->op->p.attention.head_size,
        .query_length = item->op->p.attention.sequence,
        .key_length = item->op->p.attention.sequence,
        .causal = true,
        .backward = item->op->kind == SC_ATTENTION_BACKWARD,
        .dtype = qkv->dtype,
    };
    return sc_cost_attention(item->pricing->hardware, &work, out, err);
}

static enum sc_status cost_memory_bound(const struct item *item, struct sc_cost *out,
                                        struct sc_error *err)
{
    (void)err;
    const struct sc_hardware *hardware = item->pricing->hardware;
    const char *name = sc_op_cost_name(item->op);
    if (sc_hardware_kind(hardware, name) == NULL)
        name = sc_op_kind_name(item->op->kind);
    sc_cost_memory_bound(hardware, name, operand_bytes(item), most_elements(item), out);
    return SC_OK;
}

static enum sc_status cost_adam(const struct item *item, struct sc_cost *out, struct sc_error *err)
{
    const struct sc_value *m;
    SC_TRY(need(item, SC_ROLE_M, &m, err));
    return sc_cost_adam(item->pricing->hardware, place_of(item, m), elements(m),
                        operand_bytes(item), out, err);
}

static enum sc_status cost_collective(const struct item *item, struct sc_cost *out,
                                      struct sc_error *err)
{
    static const enum sc_collective kinds[SC_OP_KIND_COUNT] = {
        [SC_ALL_REDUCE] = SC_COLLECTIVE_ALL_REDUCE,
        [SC_REDUCE_SCATTER] = SC_COLLECTIVE_REDUCE_SCATTER,
        [SC_ALL_GATHER] = SC_COLLECTIVE_ALL_GATHER,
        [SC_ALL_TO_ALL] = SC_COLLECTIVE_ALL_TO_ALL,
        [SC_BROADCAST] = SC_COLLECTIVE_BROADCAST,
        [SC_EXCHANGE] = SC_COLLECTIVE_EXCHANGE};
    const struct sc_pricing *pricing = item->pricing;
    if (item->op->group < 0 || (size_t)item->op->group >= pricing->program->groups.count)
        return sc_fail(err, SC_BUG, "a %s without a group has no price",
                       sc_op_kind_name(item->op->kind));
    double bytes =
        (double)sc_op_collective_bytes(pricing->program, item->class, &item->class->step, item->op);
    const struct group_places *places =
        places_of(pricing, item->class_index, (uint32_t)item->op->group);
    sc_cost_clear(out);
    for (int i = 0; i < places->count; i++) {
        struct sc_cost cost;
        sc_cost_collective(pricing->hardware, kinds[item->op->kind], bytes, &places->place[i],
                           &cost);
        if (i == 0 || sc_cost_seconds(&cost) > sc_cost_seconds(out))
            *out = cost;
    }
    return SC_OK;
}

static enum sc_status cost_copy(const struct item *item, struct sc_cost *out, struct sc_error *err)
{
    const struct sc_value *x, *y;
    SC_TRY(need(item, SC_ROLE_X, &x, err));
    SC_TRY(need(item, SC_ROLE_Y, &y, err));
    return sc_cost_copy(item->pricing->hardware, place_of(item, x), place_of(item, y),
                        (double)sc_value_bytes(x), out, err);
}

/* The host writes what it reads from the data: twice the bytes through its memory. */
static enum sc_status cost_next_batch(const struct item *item, struct sc_cost *out,
                                      struct sc_error *err)
{
    (void)err;
    double bandwidth = item->pricing->hardware->places[SC_HW_HOST].bandwidth;
    sc_cost_clear(out);
    if (bandwidth > 0) {
        out->use[SC_COST_HOST_MEMORY].amount = 2 * operand_bytes(item);
        out->use[SC_COST_HOST_MEMORY].rate = bandwidth;
    }
    out->bound = "host";
    return SC_OK;
}

static enum sc_status cost_nothing(const struct item *item, struct sc_cost *out,
                                   struct sc_error *err)
{
    (void)item;
    (void)err;
    sc_cost_clear(out);
    return SC_OK;
}

/* Which share of the arithmetic that the hardware does belongs to the model: a fused attention's
 * backward computes the scores again (one product of five), whole score matrices are half masked.
 */
static const struct kind {
    cost_fn cost;
    double model_share;
} kinds[] = {
    [SC_GEMM] = {cost_gemm, 1},
    [SC_BATCHED_GEMM] = {cost_batched_gemm, 0.5},
    [SC_ATTENTION] = {cost_attention, 1},
    [SC_ATTENTION_BACKWARD] = {cost_attention, 0.8},
    [SC_NORM_FORWARD] = {cost_memory_bound, 0},
    [SC_NORM_BACKWARD] = {cost_memory_bound, 0},
    [SC_ACTIVATION_FORWARD] = {cost_memory_bound, 0},
    [SC_ACTIVATION_BACKWARD] = {cost_memory_bound, 0},
    [SC_SOFTMAX] = {cost_memory_bound, 0},
    [SC_SOFTMAX_BACKWARD] = {cost_memory_bound, 0},
    [SC_CROSS_ENTROPY_MAX] = {cost_memory_bound, 0},
    [SC_CROSS_ENTROPY_SUM] = {cost_memory_bound, 0},
    [SC_CROSS_ENTROPY_LOSS] = {cost_memory_bound, 0},
    [SC_EMBEDDING] = {cost_memory_bound, 0},
    [SC_EMBEDDING_BACKWARD] = {cost_memory_bound, 0},
    [SC_ADD] = {cost_memory_bound, 0},
    [SC_SCALE] = {cost_memory_bound, 0},
    [SC_CAST] = {cost_memory_bound, 0},
    [SC_REDUCE_ROWS] = {cost_memory_bound, 0},
    [SC_ROPE] = {cost_memory_bound, 0},
    [SC_DROPOUT] = {cost_memory_bound, 0},
    [SC_DROPOUT_BACKWARD] = {cost_memory_bound, 0},
    [SC_NORM_SQUARES] = {cost_memory_bound, 0},
    [SC_ADAM] = {cost_adam, 0},
    [SC_SCALAR] = {cost_memory_bound, 0},
    [SC_INITIALIZE] = {cost_memory_bound, 0},
    [SC_ALL_REDUCE] = {cost_collective, 0},
    [SC_REDUCE_SCATTER] = {cost_collective, 0},
    [SC_ALL_GATHER] = {cost_collective, 0},
    [SC_ALL_TO_ALL] = {cost_collective, 0},
    [SC_BROADCAST] = {cost_collective, 0},
    [SC_EXCHANGE] = {cost_collective, 0},
    [SC_COPY] = {cost_copy, 0},
    [SC_NEXT_BATCH] = {cost_next_batch, 0},
    [SC_READ_OUT] = {cost_copy, 0},
    [SC_HOST_WAIT] = {cost_nothing, 0},
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == SC_OP_KIND_COUNT, "a kind without a price");

double sc_price_model_share(enum sc_op_kind kind)
{
    return kinds[kind].model_share;
}

/* ---- from a cost to a price ------------------------------------------------------------------ */

static uint8_t resource_of(const struct sc_cost *cost, int use)
{
    static const uint8_t table[SC_COST_RESOURCE_COUNT] = {[SC_COST_COMPUTE] = SC_USE_COMPUTE,
                                                          [SC_COST_MEMORY] = SC_USE_MEMORY,
                                                          [SC_COST_LINK] = SC_USE_LINK,
                                                          [SC_COST_HOST_MEMORY] =
                                                              SC_USE_HOST_MEMORY,
                                                          [SC_COST_DISK] = SC_USE_DISK};
    return (uint8_t)(table[use] + (use == SC_COST_LINK ? cost->link : 0));
}

static double use_us(const struct item *item, const struct sc_cost *cost, int use)
{
    const struct sc_cost_use *on = &cost->use[use];
    double speed = 1;
    if (on->amount <= 0)
        return 0;
    if (use != SC_COST_LINK || cost->link >= 0)
        speed = item->pricing->speed[resource_of(cost, use)];
    return on->amount / on->rate * SC_US_PER_S / speed;
}

static double latency_us(const struct item *item, const struct sc_cost *cost)
{
    bool free = cost->link >= 0 && isinf(item->pricing->speed[SC_USE_LINK + cost->link]);
    return free ? 0 : cost->latency_s * SC_US_PER_S;
}

/* The part of one instance that one rank takes at full speed. A rate reached alone counts as the
 * whole instance, but for two: a core may draw less than the memory gives, and a collective of all
 * a node's ranks takes the node's link once, not once a rank. */
static double share_of(const struct item *item, uint8_t resource, double part)
{
    const struct sc_hardware *hardware = item->pricing->hardware;
    const struct sc_machine_class *view = &item->pricing->machine.classes.items[item->class_index];
    if (resource == SC_USE_MEMORY && hardware->device.memory_bandwidth > 0)
        return part * hardware->device.memory_draw / hardware->device.memory_bandwidth;
    if (resource >= SC_USE_LINK && sc_op_kind_work(item->op->kind) == SC_WORK_COLLECTIVE)
        return part / view->multiplicity[resource];
    return part;
}

static void set_uses(const struct item *item, const struct sc_cost *cost, struct sc_price *out)
{
    for (int i = 0; i < SC_COST_RESOURCE_COUNT; i++)
        if (use_us(item, cost, i) > out->work_us)
            out->work_us = use_us(item, cost, i);
    for (int i = 0; i < SC_COST_RESOURCE_COUNT; i++) {
        double us = use_us(item, cost, i);
        if (us <= 0 || (i == SC_COST_LINK && cost->link < 0))
            continue;
        uint8_t resource = resource_of(cost, i);
        out->use[out->uses].resource = resource;
        out->use[out->uses].share = share_of(item, resource, us / out->work_us);
        out->uses++;
    }
}

static double issue_s(const struct item *item)
{
    const struct sc_hardware *hardware = item->pricing->hardware;
    switch (sc_op_kind_work(item->op->kind)) {
    case SC_WORK_COMPUTE:
    case SC_WORK_MEMORY:
        return hardware->issue.kernel_s;
    case SC_WORK_COLLECTIVE:
        return hardware->issue.collective_s;
    case SC_WORK_COPY:
        return hardware->issue.copy_s;
    case SC_WORK_HOST:
        break;
    }
    return 0;
}

static double wait_s(const struct item *item)
{
    bool collective = sc_op_kind_work(item->op->kind) == SC_WORK_COLLECTIVE;
    return collective ? item->pricing->hardware->issue.collective_wait_s
                      : item->pricing->hardware->issue.kernel_wait_s;
}

static bool computes(const struct item *item)
{
    enum sc_work work = sc_op_kind_work(item->op->kind);
    const struct sc_stream *stream = &item->pricing->program->streams.items[item->op->stream];
    return stream->engine == SC_ENGINE_DEVICE &&
           (work == SC_WORK_COMPUTE || work == SC_WORK_MEMORY);
}

enum sc_status sc_price_op(const struct sc_pricing *pricing, uint32_t class_index,
                           const struct sc_op *op, struct sc_price *out, struct sc_error *err)
{
    const struct sc_class *class = &pricing->program->classes.items[class_index];
    const struct item item = {pricing, class_index, class, op};
    struct sc_cost cost;
    if (op->kind >= SC_OP_KIND_COUNT)
        return sc_fail(err, SC_BUG, "kind %d has no price", op->kind);
    SC_TRY(kinds[op->kind].cost(&item, &cost, err));
    struct sc_price price = sc_price_constant(latency_us(&item, &cost), cost.bound);
    set_uses(&item, &cost, &price);
    price.held_units = cost.held_units;
    price.slowdown_beside_compute =
        cost.slowdown_beside_compute > 1 ? cost.slowdown_beside_compute : 1;
    price.computes = computes(&item);
    price.issue_us = issue_s(&item) * SC_US_PER_S / pricing->speed[SC_USE_ISSUE];
    price.wait_us = wait_s(&item) * SC_US_PER_S / pricing->speed[SC_USE_ISSUE];
    price.flops = sc_op_flops(class, &class->step, op);
    *out = price;
    return SC_OK;
}

/* ---- programs -------------------------------------------------------------------------------- */

struct table {
    struct sc_prices *prices;
    uint32_t *slots, mask; /* open addressing: index + 1, 0 free */
};

static uint64_t hash_price(const struct sc_price *price)
{
    const double numbers[4] = {price->latency_us, price->work_us, price->held_units, price->flops};
    uint64_t hash = 14695981039346656037u, bits[4];
    memcpy(bits, numbers, sizeof(bits));
    for (int i = 0; i < 4; i++)
        hash = (hash ^ bits[i]) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 31;
}

static bool same_price(const struct sc_price *a, const struct sc_price *b)
{
    bool same = a->latency_us == b->latency_us && a->work_us == b->work_us && a->uses == b->uses &&
                a->held_units == b->held_units && a->weight == b->weight &&
                a->slowdown_beside_compute == b->slowdown_beside_compute &&
                a->computes == b->computes && a->issue_us == b->issue_us &&
                a->wait_us == b->wait_us && a->flops == b->flops && a->bound == b->bound;
    for (uint8_t u = 0; same && u < a->uses; u++)
        same = a->use[u].resource == b->use[u].resource && a->use[u].share == b->use[u].share;
    return same;
}

static bool grow(struct table *table)
{
    uint32_t size = table->slots == NULL ? 256 : 2 * (table->mask + 1);
    uint32_t *slots = calloc(size, sizeof(*slots));
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < table->prices->table.count; i++) {
        uint64_t at = hash_price(&table->prices->table.items[i]);
        while (slots[at & (size - 1)] != 0)
            at++;
        slots[at & (size - 1)] = (uint32_t)i + 1;
    }
    free(table->slots);
    table->slots = slots;
    table->mask = size - 1;
    return true;
}

static bool find_or_add(struct table *table, const struct sc_price *price, uint32_t *index)
{
    size_t room = table->slots == NULL ? 0 : (table->mask + 1) / 2;
    if (table->prices->table.count >= room && !grow(table))
        return false;
    uint64_t at = hash_price(price);
    for (; table->slots[at & table->mask] != 0; at++) {
        *index = table->slots[at & table->mask] - 1;
        if (same_price(&table->prices->table.items[*index], price))
            return true;
    }
    if (!sc_prices_add(table->prices, price, index))
        return false;
    table->slots[at & table->mask] = *index + 1;
    return true;
}

static enum sc_status price_range(const struct sc_pricing *pricing, struct table *table, uint32_t c,
                                  uint32_t first, uint32_t end, struct sc_error *err)
{
    const struct sc_list *list = &pricing->program->classes.items[c].step;
    uint32_t *of_op = table->prices->classes.items[c].of_op;
    for (uint32_t i = first; i < end; i++) {
        struct sc_price price;
        SC_TRY(sc_price_op(pricing, c, &list->ops.items[i], &price, err));
        if (!find_or_add(table, &price, &of_op[i]))
            return sc_fail_memory(err, sizeof(price));
    }
    return SC_OK;
}

/* `seen` maps a signature to 1 + the number of the first segment that has it. */
static enum sc_status price_class(const struct sc_pricing *pricing, struct table *table, uint32_t c,
                                  uint32_t *seen, uint32_t seen_size, struct sc_error *err)
{
    const struct sc_class *class = &pricing->program->classes.items[c];
    uint32_t *of_op = table->prices->classes.items[c].of_op;
    uint32_t next = 0;
    for (uint32_t s = 0; s < class->segments.count; s++) {
        const struct sc_segment *segment = &class->segments.items[s];
        if (segment->first_op < next || segment->signature >= seen_size)
            continue;
        SC_TRY(price_range(pricing, table, c, next, segment->first_op, err));
        next = segment->first_op + segment->ops;
        const struct sc_segment *known = seen[segment->signature] > 0
                                             ? &class->segments.items[seen[segment->signature] - 1]
                                             : NULL;
        if (known != NULL && known->ops == segment->ops) {
            memcpy(of_op + segment->first_op, of_op + known->first_op,
                   segment->ops * sizeof(*of_op));
            continue;
        }
        seen[segment->signature] = s + 1;
        SC_TRY(price_range(pricing, table, c, segment->first_op, next, err));
    }
    return price_range(pricing, table, c, next, (uint32_t) class->step.ops.count, err);
}

static uint32_t most_signatures(const struct sc_class *class)
{
    uint32_t most = 0;
    for (size_t s = 0; s < class->segments.count; s++)
        if (class->segments.items[s].signature >= most)
            most = class->segments.items[s].signature + 1;
    return most;
}

enum sc_status sc_price_program(const struct sc_pricing *pricing, struct sc_prices *out,
                                struct sc_error *err)
{
    struct sc_prices prices;
    SC_TRY(sc_prices_begin(pricing->program, &prices, err));
    struct table table = {.prices = &prices};
    enum sc_status status = SC_OK;
    for (uint32_t c = 0; c < pricing->program->classes.count && status == SC_OK; c++) {
        uint32_t size = most_signatures(&pricing->program->classes.items[c]);
        uint32_t *seen = calloc(size + 1u, sizeof(*seen));
        status = seen == NULL ? sc_fail_memory(err, size * sizeof(*seen))
                              : price_class(pricing, &table, c, seen, size, err);
        free(seen);
    }
    free(table.slots);
    if (status == SC_OK)
        *out = prices;
    else
        sc_prices_free(&prices);
    return status;
}
