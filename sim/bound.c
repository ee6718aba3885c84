/* Sums by stream, by resource and of issue; the largest bounds the period. */
#include "sim/bound.h"

#include <stdlib.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* A collective of several classes counts in each: the resources of one are never asked more than
 * once for it. */
static double class_bound(const struct sc_class *class, uint32_t c, const struct sc_prices *prices,
                          const struct sc_machine *machine, double *by_stream, double *by_resource)
{
    const struct sc_machine_class *view = &machine->classes.items[c];
    double most = 0, issue = 0;
    for (uint32_t i = 0; i < class->step.ops.count; i++) {
        const struct sc_price *price = sc_price_of(prices, c, i);
        double *stream = &by_stream[class->step.ops.items[i].stream];
        *stream += price->latency_us + price->work_us;
        most = larger(most, *stream);
        issue += price->issue_us;
        for (uint8_t u = 0; u < price->uses; u++) {
            uint8_t kind = price->use[u].resource;
            if (view->instance[kind] == SC_NO_INSTANCE)
                continue;
            double *resource = &by_resource[view->instance[kind]];
            *resource += price->work_us * price->use[u].share * view->multiplicity[kind];
            most = larger(most, *resource);
        }
    }
    return larger(most, issue);
}

enum sc_status sc_bound_period(const struct sc_program *program, const struct sc_prices *prices,
                               const struct sc_machine *machine, double *period_us,
                               struct sc_error *err)
{
    size_t streams = program->streams.count, instances = machine->instances.count;
    double *sums = calloc(streams + instances + 1, sizeof(*sums));
    double most = 0;
    if (sums == NULL)
        return sc_fail_memory(err, (streams + instances) * sizeof(*sums));
    for (uint32_t c = 0; c < program->classes.count; c++) {
        for (size_t s = 0; s < streams; s++)
            sums[s] = 0;
        most = larger(most, class_bound(&program->classes.items[c], c, prices, machine, sums,
                                        sums + streams));
    }
    free(sums);
    *period_us = most;
    return SC_OK;
}
