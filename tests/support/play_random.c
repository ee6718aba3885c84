/* Random programs for the engine, see play_random.h. */
#include "tests/support/play_random.h"

#include "base/rng.h"

static uint64_t below(uint64_t *seed, uint64_t limit)
{
    return sc_random_next(seed) % limit;
}

static void add_random_price(struct play_case *c, uint32_t class_index, uint32_t op,
                             const struct play_shape *shape, uint64_t *seed)
{
    struct sc_price *price = play_price(c, class_index, op);
    price->work_us = (double)(1 + below(seed, 40));
    price->latency_us = below(seed, 3) == 0 ? (double)below(seed, 10) : 0;
    if (shape->issue)
        price->issue_us = (double)below(seed, 8);
    if (shape->held && below(seed, 3) == 0)
        price->held_units = (double)(20 + below(seed, 100));
    for (uint8_t kind = SC_USE_COMPUTE; shape->resources && kind <= SC_USE_HOST_MEMORY; kind++)
        if (below(seed, 2) == 0)
            price->use[price->uses++] =
                (struct sc_price_use){kind, (double)(1 + below(seed, 10)) / 10};
}

static const enum sc_op_kind kinds[] = {SC_GEMM, SC_NORM_FORWARD, SC_ADD, SC_COPY};

/* Operations wait for earlier ones of the step and for any of the step before. */
static void add_random_op(struct play_case *c, uint32_t class_index, int stream, int group,
                          const struct play_shape *shape, uint64_t *seed)
{
    uint32_t op = play_op(c, class_index, stream, group, 0);
    add_random_price(c, class_index, op, shape, seed);
    for (uint64_t waits = below(seed, 3); waits > 0 && op > 0; waits--)
        play_wait(c, class_index, (uint32_t)below(seed, op), 0);
    if (below(seed, 4) == 0)
        play_wait(c, class_index, (uint32_t)below(seed, op + 1), 1);
    if (shape->kinds && group < 0)
        c->program->classes.items[class_index].step.ops.items[op].kind =
            (uint8_t)kinds[below(seed, sizeof(kinds) / sizeof(kinds[0]))];
}

/* Between collectives that all stages share, in one order, each stage has operations of its own. */
void play_random(struct play_case *c, const struct play_shape *shape, uint64_t *seed)
{
    static const char *const names[PLAY_STREAMS] = {"a", "b", "c", "d"};
    play_begin(c, shape->stages);
    for (int s = 0; s < PLAY_STREAMS; s++)
        play_stream(c, names[s], (int)below(seed, 3));
    int group = play_group(c, "pipeline", SC_PIPELINE);
    for (int class_index = 0; class_index < shape->stages; class_index++) {
        play_instance(c, class_index, SC_USE_COMPUTE, "compute", 132);
        play_instance(c, class_index, SC_USE_MEMORY, "memory", 0);
    }
    play_instance(c, -1, SC_USE_HOST_MEMORY, "host", 0);
    uint64_t rounds = 1 + below(seed, 6);
    for (uint64_t round = 0; round < rounds; round++)
        for (uint32_t k = 0; k < (uint32_t)shape->stages; k++) {
            for (uint64_t n = 1 + below(seed, 6); n > 0; n--)
                add_random_op(c, k, (int)below(seed, PLAY_STREAMS - 1), -1, shape, seed);
            if (shape->stages > 1)
                add_random_op(c, k, PLAY_STREAMS - 1, group, shape, seed);
        }
}
