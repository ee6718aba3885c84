/* Small traces by hand. */
#include "tests/support/make_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void need(const void *pointer)
{
    if (pointer == NULL) {
        abort(); /* a test without memory has nothing to say */
    }
}

void make_trace(struct sc_trace *out, enum sc_trace_kind kind, const char *plan,
                const char *program, double period_us)
{
    sc_trace_init(out);
    out->kind = kind;
    snprintf(out->plan, sizeof(out->plan), "%s", plan);
    snprintf(out->program, sizeof(out->program), "%s", program);
    snprintf(out->memory_mode, sizeof(out->memory_mode), "no_added_waits");
    out->period_us = period_us;
    out->steps_played = 3;
    const char *const names[] = {"compute", "comm"};
    for (int i = 0; i < 2; i++) {
        const char **name = sc_array_push(&out->streams);
        need(name);
        *name = names[i];
    }
    struct sc_trace_class *class = sc_array_push(&out->classes);
    need(class);
    *class = (struct sc_trace_class){"all", 2};
}

struct sc_trace_row *make_row(struct sc_trace *trace, uint32_t operation, enum sc_op_kind kind,
                              double start_us, double transfer_us, double end_us)
{
    struct sc_trace_row *row = sc_array_push(&trace->rows);
    need(row);
    *row = (struct sc_trace_row){.operation = operation,
                                 .rank = -1,
                                 .kind = (uint8_t)kind,
                                 .stream = isnan(transfer_us) ? 0 : 1,
                                 .label = "label",
                                 .ready_us = start_us,
                                 .start_us = start_us,
                                 .transfer_us = transfer_us,
                                 .end_us = end_us,
                                 .p10_us = NAN,
                                 .p90_us = NAN};
    return row;
}
