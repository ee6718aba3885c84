/* The spread of a forecast, see uncertainty.h. */
#include "sim/uncertainty.h"

#include <math.h>
#include <stdlib.h>

#include "plans/op_cost_name.h"

#define FOUR_OF_FIVE 1.2816

/* Time of one shape on the main stream, or waited for there. */
struct shape {
    double us, deviation;
};

static double main_time(const struct sc_op *op, const struct sc_op_times *times, uint32_t main)
{
    double busy = op->stream == main ? times->end_us - times->start_us : 0;
    return busy + times->exposed_us;
}

static uint32_t busiest_class(const struct sc_play *play)
{
    uint32_t busiest = 0;
    for (uint32_t c = 1; c < play->classes.count; c++) {
        if (play->classes.items[c].busy_us > play->classes.items[busiest].busy_us) {
            busiest = c;
        }
    }
    return busiest;
}

/* Of a kind's variance, the part that all its shapes have in common. */
#define COMMON 0.5

/* `shapes` is [prices][kinds]. */
static double variance_of(const struct shape *shapes, size_t prices, double period_us)
{
    double independent = 0, common = 0;
    for (size_t kind = 0; kind < SC_OP_KIND_COUNT; kind++) {
        double sum = 0;
        for (size_t i = 0; i < prices; i++) {
            const struct shape *shape = &shapes[i * SC_OP_KIND_COUNT + kind];
            double part = shape->us / period_us * shape->deviation;
            independent += part * part;
            sum += part;
        }
        common += sum * sum;
    }
    return COMMON * common + (1 - COMMON) * independent;
}

enum sc_status sc_uncertainty(const struct sc_program *program, const struct sc_prices *prices,
                              const struct sc_play *play, const struct sc_hardware *hardware,
                              double *out, struct sc_error *err)
{
    uint32_t c = busiest_class(play);
    const struct sc_play_class *class = &play->classes.items[c];
    size_t count = prices->table.count * SC_OP_KIND_COUNT;
    struct shape *shapes = calloc(count + 1, sizeof(*shapes)); /* [prices][kinds] */
    if (shapes == NULL) {
        return sc_fail_memory(err, (count + 1) * sizeof(*shapes));
    }
    for (size_t i = 0; i < class->ops; i++) {
        const struct sc_op *op = &program->classes.items[c].step.ops.items[i];
        size_t price = prices->classes.items[c].of_op[i];
        struct shape *shape = &shapes[price * SC_OP_KIND_COUNT + op->kind];
        shape->us += main_time(op, &class->times[i], class->main);
        shape->deviation = sc_hardware_deviation(hardware, sc_op_cost_name(op),
                                                 sc_op_kind_name((enum sc_op_kind)op->kind));
    }
    double machine = hardware->uncertainty.machine;
    double kinds =
        play->period_us > 0 ? variance_of(shapes, prices->table.count, play->period_us) : 0;
    *out = sqrt(machine * machine + kinds);
    free(shapes);
    return SC_OK;
}

void sc_uncertainty_interval(double time, double deviation, double *low, double *high)
{
    *low = time * exp(-FOUR_OF_FIVE * deviation);
    *high = time * exp(FOUR_OF_FIVE * deviation);
}
