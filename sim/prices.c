/* The table of distinct prices and each operation's place in it. */
#include <stdlib.h>
#include <string.h>

#include "sim/price.h"

struct sc_price sc_price_constant(double latency_us, const char *bound)
{
    struct sc_price price;
    memset(&price, 0, sizeof(price));
    price.latency_us = latency_us;
    price.weight = 1;
    price.slowdown_beside_compute = 1;
    price.bound = bound;
    return price;
}

void sc_prices_free(struct sc_prices *prices)
{
    for (size_t c = 0; c < prices->classes.count; c++)
        free(prices->classes.items[c].of_op);
    sc_array_free(&prices->classes);
    sc_array_free(&prices->table);
    memset(prices, 0, sizeof(*prices));
}

bool sc_prices_add(struct sc_prices *prices, const struct sc_price *price, uint32_t *index)
{
    struct sc_price *added = sc_array_push(&prices->table);
    if (added == NULL)
        return false;
    *added = *price;
    *index = (uint32_t)(prices->table.count - 1);
    return true;
}

enum sc_status sc_prices_begin(const struct sc_program *program, struct sc_prices *out,
                               struct sc_error *err)
{
    struct sc_prices prices;
    memset(&prices, 0, sizeof(prices));
    for (size_t c = 0; c < program->classes.count; c++) {
        size_t ops = program->classes.items[c].step.ops.count;
        struct sc_class_prices *class = sc_array_push(&prices.classes);
        if (class != NULL) {
            class->ops = ops;
            class->of_op = calloc(ops + 1, sizeof(*class->of_op));
        }
        if (class == NULL || class->of_op == NULL) {
            sc_prices_free(&prices);
            return sc_fail_memory(err, ops * sizeof(uint32_t));
        }
    }
    *out = prices;
    return SC_OK;
}
