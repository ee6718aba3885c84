/* An explanation for people and for programs. */
#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "reports/explain.h"
#include "reports/table.h"

enum { OPERATIONS_SHOWN = 12 };

static enum sc_status finish(struct sc_table *table, FILE *stream, struct sc_error *err)
{
    enum sc_status status = sc_table_print(table, 2, stream, err);
    sc_table_free(table);
    fputc('\n', stream);
    return status;
}

static double percent(const struct sc_explanation *explanation, double seconds)
{
    return explanation->step_time_s > 0 ? 100 * seconds / explanation->step_time_s : 0;
}

/* ---- the path ---------------------------------------------------------------------------- */

static enum sc_status print_parts(const struct sc_explanation *explanation, FILE *stream,
                                  struct sc_error *err)
{
    static const struct sc_table_column columns[] = {{"on the critical path", SC_LEFT},
                                                     {"ms", SC_RIGHT},
                                                     {"%", SC_RIGHT},
                                                     {"ms by sharing", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    struct sc_table table;
    double sum = 0, slowed = 0;
    sc_table_init(&table, columns);
    for (size_t i = 0; i < explanation->parts.count; i++) {
        const struct sc_explained_part *part = &explanation->parts.items[i];
        sum += part->seconds;
        slowed += part->slowed_s;
        sc_table_cell(&table, "%s", part->name);
        sc_table_cell(&table, "%.3f", part->seconds * SC_MS_PER_S);
        sc_table_cell(&table, "%.1f", percent(explanation, part->seconds));
        sc_table_cell(&table, "%.3f", part->slowed_s * SC_MS_PER_S);
    }
    sc_table_cell(&table, "step");
    sc_table_cell(&table, "%.3f", sum * SC_MS_PER_S);
    sc_table_cell(&table, "%.1f", percent(explanation, sum));
    sc_table_cell(&table, "%.3f", slowed * SC_MS_PER_S);
    return finish(&table, stream, err);
}

static enum sc_status print_operations(const struct sc_explanation *explanation, FILE *stream,
                                       struct sc_error *err)
{
    static const struct sc_table_column columns[] = {
        {"longest on it", SC_LEFT}, {"kind", SC_LEFT}, {"times", SC_RIGHT},
        {"ms", SC_RIGHT},           {"%", SC_RIGHT},   {NULL, SC_LEFT}};
    struct sc_table table;
    sc_table_init(&table, columns);
    for (size_t i = 0; i < explanation->operations.count && i < OPERATIONS_SHOWN; i++) {
        const struct sc_explained_ops *ops = &explanation->operations.items[i];
        sc_table_cell(&table, "%s", ops->label);
        sc_table_cell(&table, "%s", ops->kind);
        sc_table_cell(&table, "%.0fx", ceil(ops->count - 1e-6));
        sc_table_cell(&table, "%.3f", ops->seconds * SC_MS_PER_S);
        sc_table_cell(&table, "%.1f", percent(explanation, ops->seconds));
    }
    return finish(&table, stream, err);
}

/* ---- what if ----------------------------------------------------------------------------- */

static void fill_what_if(struct sc_table *table, const struct sc_explanation *explanation,
                         const struct sc_explained_what_if *what)
{
    sc_table_cell(table, "%s", what->name);
    sc_table_cell(table, "%.3f", what->step_time_s * SC_MS_PER_S);
    sc_table_cell(table, "%.3f", what->gain_s * SC_MS_PER_S);
    if (what->step_time_s > 0) {
        sc_table_cell(table, "%.3f", explanation->step_time_s / what->step_time_s);
    } else {
        sc_table_cell(table, "-");
    }
}

static enum sc_status print_free(const struct sc_explanation *explanation, bool resource,
                                 FILE *stream, struct sc_error *err)
{
    static const struct sc_table_column columns[2][5] = {{{"if this were free", SC_LEFT},
                                                          {"step ms", SC_RIGHT},
                                                          {"gain ms", SC_RIGHT},
                                                          {"times as fast", SC_RIGHT},
                                                          {NULL, SC_LEFT}},
                                                         {{"if this were infinitely fast", SC_LEFT},
                                                          {"step ms", SC_RIGHT},
                                                          {"gain ms", SC_RIGHT},
                                                          {"times as fast", SC_RIGHT},
                                                          {NULL, SC_LEFT}}};
    struct sc_table table;
    sc_table_init(&table, columns[resource ? 1 : 0]);
    for (size_t i = 0; i < explanation->free.count; i++) {
        if (explanation->free.items[i].resource == resource) {
            fill_what_if(&table, explanation, &explanation->free.items[i]);
        }
    }
    return finish(&table, stream, err);
}

static enum sc_status print_faster(const struct sc_explanation *explanation, FILE *stream,
                                   struct sc_error *err)
{
    static const struct sc_table_column columns[] = {{"if this were 10 % faster", SC_LEFT},
                                                     {"step ms", SC_RIGHT},
                                                     {"gain ms", SC_RIGHT},
                                                     {"times as fast", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    struct sc_table table;
    sc_table_init(&table, columns);
    for (size_t i = 0; i < explanation->faster.count; i++) {
        fill_what_if(&table, explanation, &explanation->faster.items[i]);
    }
    return finish(&table, stream, err);
}

static bool any_slower(const struct sc_explanation *explanation)
{
    bool slower = false;
    for (size_t i = 0; i < explanation->free.count; i++) {
        slower = slower || explanation->free.items[i].gain_s < 0;
    }
    for (size_t i = 0; i < explanation->faster.count; i++) {
        slower = slower || explanation->faster.items[i].gain_s < 0;
    }
    return slower;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Buffers for one use; the largest of them. */
struct use {
    const struct sc_explained_buffers *largest;
    int64_t buffers;
    double bytes;
};

/* Sums by use into uses [SC_PEAK_USE_COUNT], largest first; returns how many there are. */
static size_t sum_uses(const struct sc_explained_place *place, struct use *uses)
{
    size_t count = 0;
    for (size_t i = 0; i < place->buffers.count; i++) {
        const struct sc_explained_buffers *buffers = &place->buffers.items[i];
        size_t u = 0;
        while (u < count && uses[u].largest->use != buffers->use) {
            u++;
        }
        if (u == count) {
            uses[count++] = (struct use){.largest = buffers};
        }
        uses[u].buffers += buffers->buffers;
        uses[u].bytes += buffers->bytes;
        for (; u > 0 && uses[u].bytes > uses[u - 1].bytes; u--) {
            struct use before = uses[u - 1];
            uses[u - 1] = uses[u];
            uses[u] = before;
        }
    }
    return count;
}

static void fill_place(struct sc_table *table, const struct sc_explained_place *place)
{
    char text[64];
    struct use uses[SC_PEAK_USE_COUNT];
    size_t count = sum_uses(place, uses);
    for (size_t u = 0; u < count; u++) {
        const struct sc_explained_buffers *largest = uses[u].largest;
        sc_table_cell(table, "%s", place->place);
        sc_table_cell(table, "%s", largest->use);
        sc_table_cell(table, "%" PRId64, uses[u].buffers);
        sc_table_cell(table, "%s", sc_print_bytes(uses[u].bytes, text, sizeof(text)));
        sc_table_cell(table, "%.1f", 100 * uses[u].bytes / place->bytes);
        sc_table_cell(table, "%s", largest->name);
        sc_table_cell(table, "%s", sc_print_bytes(largest->bytes, text, sizeof(text)));
    }
}

static enum sc_status print_memory(const struct sc_explanation *explanation, FILE *stream,
                                   struct sc_error *err)
{
    static const struct sc_table_column columns[] = {{"memory at its peak", SC_LEFT},
                                                     {"for", SC_LEFT},
                                                     {"buffers", SC_RIGHT},
                                                     {"size", SC_RIGHT},
                                                     {"%", SC_RIGHT},
                                                     {"most of it", SC_LEFT},
                                                     {"size", SC_RIGHT},
                                                     {NULL, SC_LEFT}};
    struct sc_table table;
    sc_table_init(&table, columns);
    for (size_t i = 0; i < explanation->places.count; i++) {
        fill_place(&table, &explanation->places.items[i]);
    }
    return finish(&table, stream, err);
}

static void print_remarks(const struct sc_explanation *explanation, FILE *stream)
{
    if (explanation->places.count > 0 && explanation->places.items[0].label[0] != '\0') {
        fprintf(stream, "The %s's memory is fullest at: %s.\n", explanation->places.items[0].place,
                explanation->places.items[0].label);
    }
    if (any_slower(explanation)) {
        fprintf(stream, "A negative gain is a scheduling anomaly: something that is done sooner "
                        "takes a shared resource from what matters more.\n");
    }
    if (!explanation->settled) {
        fprintf(stream, "Warning: the time of a step has not settled; the path covers its last "
                        "steps\n");
    }
}

enum sc_status sc_explanation_print(const struct sc_explanation *explanation, FILE *stream,
                                    struct sc_error *err)
{
    char text[64];
    fprintf(stream, "%s\n", explanation->sentence);
    if (explanation->worst_wait != NULL) {
        fprintf(stream, "%s\n", explanation->worst_wait);
    }
    fprintf(stream, "\n%s on %s, %" PRId64 " rank%s: a step of %s\n\n", explanation->plan,
            explanation->hardware, explanation->ranks, explanation->ranks == 1 ? "" : "s",
            sc_print_seconds(explanation->step_time_s, text, sizeof(text)));
    SC_TRY(print_parts(explanation, stream, err));
    SC_TRY(print_operations(explanation, stream, err));
    SC_TRY(print_free(explanation, false, stream, err));
    SC_TRY(print_free(explanation, true, stream, err));
    SC_TRY(print_faster(explanation, stream, err));
    SC_TRY(print_memory(explanation, stream, err));
    print_remarks(explanation, stream);
    return SC_OK;
}
