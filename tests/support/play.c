/* Builds small programs for the engine, see play.h. */
#include "tests/support/play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void play_begin(struct play_case *c, int stages)
{
    memset(c, 0, sizeof(*c));
    struct sc_mesh mesh;
    sc_mesh_make(2, 1, 1, stages, &mesh);
    assert_int_equal(sc_program_create(&mesh, &c->program, &c->error), SC_OK);
    for (int s = 0; s < stages; s++) {
        const int64_t at[SC_AXIS_COUNT] = {0, 0, 0, s};
        char name[16];
        snprintf(name, sizeof(name), stages > 1 ? "stage%d" : "all", s);
        assert_non_null(
            sc_add_class(c->program, name, stages > 1 ? SC_AXIS_MASK(SC_PIPELINE) : 0, at));
        assert_non_null(sc_array_push(&c->prices.classes));
    }
    assert_int_equal(sc_machine_empty(c->program, &c->machine, &c->error), SC_OK);
}

void play_end(struct play_case *c)
{
    sc_play_free(&c->play);
    sc_prices_free(&c->prices);
    sc_machine_free(&c->machine);
    sc_program_destroy(&c->program);
}

int play_stream(struct play_case *c, const char *name, int priority)
{
    return sc_add_stream(c->program, name, SC_ENGINE_DEVICE, priority);
}

int play_group(struct play_case *c, const char *name, enum sc_axis axis)
{
    return sc_add_group(c->program, name, SC_AXIS_MASK(axis));
}

uint32_t play_op(struct play_case *c, uint32_t class_index, int stream, int group, double us)
{
    struct sc_list *list = &c->program->classes.items[class_index].step;
    struct sc_class_prices *prices = &c->prices.classes.items[class_index];
    enum sc_op_kind kind = group >= 0 ? SC_ALL_REDUCE : SC_ADD;
    char name[32];
    snprintf(name, sizeof(name), "op%zu", list->ops.count);
    sc_add_op(c->program, list, kind, stream, group, sc_label(c->program, name));
    struct sc_price price = sc_price_constant(us, "constant");
    uint32_t *grown = realloc(prices->of_op, (prices->ops + 1) * sizeof(*grown));
    assert_non_null(grown);
    prices->of_op = grown;
    assert_true(sc_prices_add(&c->prices, &price, &grown[prices->ops]));
    return (uint32_t)prices->ops++;
}

void play_wait(struct play_case *c, uint32_t class_index, uint32_t op, uint32_t distance)
{
    struct sc_list *list = &c->program->classes.items[class_index].step;
    struct sc_op *last = &list->ops.items[list->ops.count - 1];
    if (last->waits == 0)
        last->first_wait = (uint32_t)list->waits.count;
    struct sc_wait *wait = sc_array_push(&list->waits);
    assert_non_null(wait);
    *wait = (struct sc_wait){op, distance};
    last->waits++;
}

struct sc_price *play_price(struct play_case *c, uint32_t class_index, uint32_t op)
{
    return &c->prices.table.items[c->prices.classes.items[class_index].of_op[op]];
}

uint32_t play_instance(struct play_case *c, int class_index, uint8_t resource, const char *name,
                       double units)
{
    uint32_t index = 0;
    assert_true(sc_machine_add(&c->machine, name, resource, units, &index));
    for (size_t i = 0; i < c->machine.classes.count; i++)
        if (class_index < 0 || (size_t)class_index == i)
            c->machine.classes.items[i].instance[resource] = index;
    return index;
}

void play_run(struct play_case *c, int steps)
{
    const struct sc_play_options options = {.steps = steps, .path = c->path};
    sc_play_free(&c->play);
    enum sc_status status =
        sc_play(c->program, &c->prices, &c->machine, &options, &c->play, &c->error);
    if (status != SC_OK)
        print_error("%s\n", c->error.text);
    assert_int_equal(status, SC_OK);
}

const struct sc_op_times *play_times(const struct play_case *c, uint32_t class_index, uint32_t op)
{
    return &c->play.classes.items[class_index].times[op];
}
