/* From a plan to a forecast, see simulate.h. */
#include "sim/simulate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "plans/lower.h"
#include "plans/plan_warnings.h"
#include "sim/bound.h"
#include "sim/engine.h"
#include "sim/machine.h"
#include "sim/price.h"
#include "sim/uncertainty.h"

/* Above this part of the host's memory other things on the node begin to suffer. */
#define HOST_MEMORY_FULL 0.7

/* Everything of one forecast while it is made. */
struct forecast {
    const struct sc_plan *plan;
    const struct sc_sim_options *options;
    struct sc_hardware hardware; /* for the plan's ranks */
    struct sc_program *program;
    struct sc_pricing *pricing;
    struct sc_prices prices;
    struct sc_machine machine;
    struct sc_play play;
    struct sc_sim_result result;
};

/* ---- the machine ------------------------------------------------------------------------------
 */

enum sc_status sc_sim_machine_for(const struct sc_hardware *hardware, int64_t ranks, int64_t nodes,
                                  struct sc_hardware *out, struct sc_error *err)
{
    int64_t on_node = (ranks + nodes - 1) / nodes;
    struct sc_hardware copy = *hardware;
    if (hardware->device.kind != SC_CORES && on_node > hardware->node.devices)
        return sc_fail(
            err, SC_NO, "hardware %s: %lld ranks need more than %lld nodes of %lld devices",
            hardware->name, (long long)ranks, (long long)nodes, (long long)hardware->node.devices);
    SC_TRY(sc_hardware_divide(&copy, on_node, err));
    *out = copy;
    return SC_OK;
}

static int64_t ranks_on_node(const struct sc_program *program, const struct sc_hardware *hardware)
{
    int64_t devices = hardware->node.devices;
    return program->mesh.ranks < devices ? program->mesh.ranks : devices;
}

/* Communicators: one a group of several ranks. */
static double reserved_bytes(const struct sc_program *program, const struct sc_hardware *hardware)
{
    double bytes = hardware->reserved.context + hardware->reserved.workspace;
    for (size_t g = 0; g < program->groups.count; g++)
        if (program->groups.items[g].size > 1)
            bytes += hardware->reserved.per_communicator;
    return bytes;
}

static const struct sc_hw_place_info *place_info(const struct sc_hardware *hardware, int place)
{
    static const enum sc_hw_place places[SC_PLACE_COUNT] = {[SC_DEVICE] = SC_HW_DEVICE,
                                                            [SC_PINNED] = SC_HW_PINNED,
                                                            [SC_HOST] = SC_HW_HOST,
                                                            [SC_DISK] = SC_HW_DISK};
    return &hardware->places[places[place]];
}

static int64_t sharing(const struct sc_program *program, const struct sc_hardware *hardware,
                       int place)
{
    return place_info(hardware, place)->per == SC_PER_NODE ? ranks_on_node(program, hardware) : 1;
}

static uint64_t rank_capacity(const struct sc_program *program, const struct sc_hardware *hardware,
                              int place)
{
    const struct sc_hw_place_info *info = place_info(hardware, place);
    if (!info->present)
        return 0;
    return (uint64_t)(info->capacity_bytes / (double)sharing(program, hardware, place));
}

enum sc_status sc_sim_capacity(const struct sc_program *program, const struct sc_hardware *hardware,
                               uint64_t capacity[SC_PLACE_COUNT], struct sc_error *err)
{
    uint64_t reserved = (uint64_t)reserved_bytes(program, hardware);
    uint64_t found[SC_PLACE_COUNT];
    for (int place = 0; place < SC_PLACE_COUNT; place++)
        found[place] = rank_capacity(program, hardware, place);
    if (found[SC_DEVICE] > 0 && found[SC_DEVICE] <= reserved)
        return sc_fail(err, SC_NO,
                       "%s does not fit %s: context, communicators and workspace need %llu bytes "
                       "of the device, it has %llu",
                       program->name, hardware->name, (unsigned long long)reserved,
                       (unsigned long long)found[SC_DEVICE]);
    if (found[SC_DEVICE] > 0)
        found[SC_DEVICE] -= reserved;
    memcpy(capacity, found, sizeof(found));
    return SC_OK;
}

/* ---- names and warnings ------------------------------------------------------------------------
 */

static enum sc_status warn(struct sc_sim_result *result, struct sc_error *err, const char *format,
                           ...) __attribute__((format(printf, 3, 4)));

static enum sc_status warn(struct sc_sim_result *result, struct sc_error *err, const char *format,
                           ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    const char *copy = sc_arena_strdup(&result->arena, line);
    const char **slot = copy != NULL ? sc_array_push(&result->warnings) : NULL;
    if (slot == NULL)
        return sc_fail_memory(err, strlen(line));
    *slot = copy;
    return SC_OK;
}

struct warning_sink {
    struct sc_sim_result *result;
    struct sc_error *err;
    enum sc_status status;
};

static void take_warning(void *context, const char *line)
{
    struct warning_sink *sink = context;
    if (sink->status == SC_OK)
        sink->status = warn(sink->result, sink->err, "%s", line);
}

static enum sc_status warn_about_groups(struct forecast *f, struct sc_error *err)
{
    for (uint32_t c = 0; c < f->program->classes.count; c++)
        for (uint32_t g = 0; g < f->program->groups.count; g++) {
            const struct sc_group *group = &f->program->groups.items[g];
            bool uneven;
            int64_t nodes = sc_pricing_nodes(f->pricing, c, g, &uneven);
            if ((group->axis_mask & SC_AXIS_MASK(SC_TENSOR)) && nodes > 1)
                SC_TRY(warn(&f->result, err, "group %s spans %lld nodes", group->name,
                            (long long)nodes));
            if (uneven)
                SC_TRY(warn(&f->result, err,
                            "group %s of class %s: its groups sit differently, the slowest sets "
                            "the price",
                            group->name, f->program->classes.items[c].name));
        }
    return SC_OK;
}

static enum sc_status warn_about_host(struct forecast *f, struct sc_error *err)
{
    const struct sc_sim_place *host = &f->result.memory[SC_HOST];
    double used = (double)host->arena_bytes + (double)f->result.memory[SC_PINNED].arena_bytes;
    if (host->capacity_bytes == 0 || used <= HOST_MEMORY_FULL * (double)host->capacity_bytes)
        return SC_OK;
    return warn(&f->result, err, "host memory is used to %.0f %%",
                100 * used / (double)host->capacity_bytes);
}

static enum sc_status collect_warnings(struct forecast *f, struct sc_error *err)
{
    struct warning_sink sink = {&f->result, err, SC_OK};
    sc_plan_warnings(f->plan, take_warning, &sink);
    SC_TRY(sink.status);
    SC_TRY(warn_about_groups(f, err));
    SC_TRY(warn_about_host(f, err));
    if (f->result.memory_mode == SC_MEMORY_ISSUE_ORDER)
        SC_TRY(warn(&f->result, err,
                    "memory is packed by issue order to fit: %u waits were added to the program",
                    f->result.added_waits));
    if (!f->result.settled)
        SC_TRY(warn(&f->result, err,
                    "the time of a step has not settled after %d steps: it is the mean of the last "
                    "%d",
                    f->result.steps_played, f->result.cycle));
    return SC_OK;
}

/* ---- where the time goes -----------------------------------------------------------------------
 */

enum busy { BUSY_COMPUTE, BUSY_MEMORY, BUSY_OPTIMIZER, BUSY_COUNT };
static const char *const busy_names[BUSY_COUNT] = {"compute", "memory_bound", "optimizer"};

enum exposed {
    EXPOSED_COPY,
    EXPOSED_HOST,
    EXPOSED_OTHER,
    EXPOSED_HELD,
    EXPOSED_ISSUE,
    EXPOSED_COUNT
};
static const char *const exposed_names[EXPOSED_COUNT] = {"exposed_copy", "exposed_host",
                                                         "exposed_other", "held", "issue"};

static enum busy busy_of(enum sc_op_kind kind)
{
    if (kind == SC_ADAM || kind == SC_NORM_SQUARES || kind == SC_SCALAR)
        return BUSY_OPTIMIZER;
    return sc_op_kind_work(kind) == SC_WORK_COMPUTE ? BUSY_COMPUTE : BUSY_MEMORY;
}

static enum exposed exposed_of(enum sc_op_kind kind)
{
    switch (sc_op_kind_work(kind)) {
    case SC_WORK_COPY:
        return EXPOSED_COPY;
    case SC_WORK_HOST:
        return EXPOSED_HOST;
    case SC_WORK_COMPUTE:
    case SC_WORK_MEMORY:
    case SC_WORK_COLLECTIVE:
        break;
    }
    return EXPOSED_OTHER;
}

static enum sc_status add_part(struct sc_sim_result *result, const char *prefix, const char *name,
                               double us, struct sc_error *err)
{
    if (us == 0)
        return SC_OK;
    struct sc_sim_part *part = sc_array_push(&result->breakdown);
    if (part == NULL)
        return sc_fail_memory(err, sizeof(*part));
    part->name = sc_arena_printf(&result->arena, "%s%s", prefix, name);
    part->seconds = us / SC_US_PER_S;
    return part->name != NULL ? SC_OK : sc_fail_memory(err, strlen(name));
}

struct parts {
    double busy[BUSY_COUNT], exposed[EXPOSED_COUNT];
    double *group; /* [groups] */
};

static void sum_parts(const struct sc_class *class, const struct sc_play_class *play,
                      struct parts *parts)
{
    for (uint32_t i = 0; i < play->ops; i++) {
        const struct sc_op *op = &class->step.ops.items[i];
        const struct sc_op_times *times = &play->times[i];
        bool on_main = op->stream == play->main;
        enum sc_op_kind kind = (enum sc_op_kind)op->kind;
        double busy = on_main ? times->end_us - times->start_us : 0;
        parts->exposed[EXPOSED_ISSUE] += times->issue_wait_us;
        if (op->group >= 0)
            parts->group[op->group] += times->exposed_us + busy;
        else if (on_main)
            parts->exposed[EXPOSED_HELD] += times->exposed_us;
        else
            parts->exposed[exposed_of(kind)] += times->exposed_us;
        if (op->group < 0)
            parts->busy[busy_of(kind)] += busy;
    }
}

static enum sc_status add_parts(struct forecast *f, const struct parts *parts, struct sc_error *err)
{
    struct sc_sim_result *result = &f->result;
    double rest = f->play.period_us;
    for (int i = 0; i < BUSY_COUNT; i++) {
        SC_TRY(add_part(result, "", busy_names[i], parts->busy[i], err));
        rest -= parts->busy[i];
    }
    for (size_t g = 0; g < f->program->groups.count; g++) {
        SC_TRY(
            add_part(result, "exposed_", f->program->groups.items[g].name, parts->group[g], err));
        rest -= parts->group[g];
    }
    for (int i = 0; i < EXPOSED_COUNT; i++) {
        SC_TRY(add_part(result, "", exposed_names[i], parts->exposed[i], err));
        rest -= parts->exposed[i];
    }
    bool rounding = fabs(rest) < 1e-6 * f->play.period_us;
    return add_part(result, "", "rest", rounding ? 0 : rest, err);
}

static enum sc_status break_down(struct forecast *f, struct sc_error *err)
{
    uint32_t busiest = 0;
    for (uint32_t c = 1; c < f->play.classes.count; c++)
        if (f->play.classes.items[c].busy_us > f->play.classes.items[busiest].busy_us)
            busiest = c;
    struct parts parts;
    memset(&parts, 0, sizeof(parts));
    parts.group = calloc(f->program->groups.count + 1, sizeof(double));
    if (parts.group == NULL)
        return sc_fail_memory(err, f->program->groups.count * sizeof(double));
    sum_parts(&f->program->classes.items[busiest], &f->play.classes.items[busiest], &parts);
    enum sc_status status = add_parts(f, &parts, err);
    free(parts.group);
    return status;
}

static enum sc_status fill_resources(struct forecast *f, struct sc_error *err)
{
    for (uint32_t r = 0; r < f->machine.instances.count; r++) {
        if (f->play.utilisation.items[r] <= 0)
            continue;
        const struct sc_instance *instance = &f->machine.instances.items[r];
        uint32_t c = 0;
        while (c + 1 < f->machine.classes.count &&
               f->machine.classes.items[c].instance[instance->resource] != r)
            c++;
        struct sc_sim_resource *out = sc_array_push(&f->result.resources);
        if (out == NULL)
            return sc_fail_memory(err, sizeof(*out));
        out->name = sc_arena_strdup(&f->result.arena, instance->name);
        out->class_name = sc_arena_strdup(&f->result.arena, f->program->classes.items[c].name);
        out->utilisation = f->play.utilisation.items[r];
        if (out->name == NULL || out->class_name == NULL)
            return sc_fail_memory(err, strlen(instance->name));
    }
    return SC_OK;
}

/* ---- totals ------------------------------------------------------------------------------------
 */

/* FLOP of a step on all ranks, as the hardware does them and as the model needs them. */
static void count_flops(const struct forecast *f, double *hardware, double *model)
{
    *hardware = *model = 0;
    for (uint32_t c = 0; c < f->program->classes.count; c++) {
        const struct sc_class *class = &f->program->classes.items[c];
        for (uint32_t i = 0; i < class->step.ops.count; i++) {
            const struct sc_op *op = &class->step.ops.items[i];
            double flops = sc_price_of(&f->prices, c, i)->flops * (double)class->ranks;
            *hardware += flops;
            if (op->label.pass != SC_PASS_RECOMPUTE)
                *model += flops * sc_price_model_share((enum sc_op_kind)op->kind);
        }
    }
}

static void fill_rates(struct forecast *f)
{
    struct sc_sim_result *result = &f->result;
    double hardware, model;
    count_flops(f, &hardware, &model);
    enum sc_hw_peak peak = sc_hardware_peak_of(f->plan->precision.activations);
    double available = f->hardware.device.peak[peak] * (double)result->ranks * result->step_time_s;
    result->mfu = available > 0 ? model / available : (double)NAN;
    result->hfu = available > 0 ? hardware / available : (double)NAN;
    result->tokens_per_s = (double)f->program->global_batch * (double)f->program->sequence_length /
                           result->step_time_s;
}

static void fill_memory(struct forecast *f)
{
    struct sc_sim_result *result = &f->result;
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        struct sc_sim_place *out = &result->memory[place];
        for (size_t c = 0; c < f->program->classes.count; c++) {
            uint64_t bytes = f->program->classes.items[c].memory[place].arena_bytes;
            out->arena_bytes = bytes > out->arena_bytes ? bytes : out->arena_bytes;
        }
        out->used_bytes = out->arena_bytes;
        out->capacity_bytes = rank_capacity(f->program, &f->hardware, place);
        out->sharing = sharing(f->program, &f->hardware, place);
    }
    result->memory[SC_DEVICE].used_bytes += (uint64_t)reserved_bytes(f->program, &f->hardware);
    for (size_t c = 0; c < f->program->classes.count; c++) {
        const struct sc_class *class = &f->program->classes.items[c];
        if (class->memory_mode > result->memory_mode)
            result->memory_mode = class->memory_mode;
        result->added_waits += class->added_waits;
        result->operations += (int64_t) class->step.ops.count;
    }
}

static enum sc_status fill_interval(struct forecast *f, struct sc_error *err)
{
    struct sc_sim_result *result = &f->result;
    double deviation;
    SC_TRY(sc_uncertainty(f->program, &f->prices, &f->play, &f->hardware, &deviation, err));
    sc_uncertainty_interval(result->step_time_s, deviation, &result->step_time_low_s,
                            &result->step_time_high_s);
    return SC_OK;
}

static enum sc_status fill_trace(struct forecast *f, struct sc_error *err)
{
    struct sc_trace *trace = &f->result.trace;
    sc_trace_init(trace);
    SC_TRY(sc_trace_begin(trace, SC_PREDICTED, f->program, err));
    f->result.has_trace = true;
    snprintf(trace->hardware, sizeof(trace->hardware), "%s", f->hardware.name);
    trace->measured_on = f->hardware.measured_on;
    trace->period_low_us = f->result.step_time_low_s * SC_US_PER_S;
    trace->period_high_us = f->result.step_time_high_s * SC_US_PER_S;
    return sc_play_trace(f->program, &f->play, trace, err);
}

static enum sc_status fill_result(struct forecast *f, struct sc_error *err)
{
    struct sc_sim_result *result = &f->result;
    snprintf(result->plan, sizeof(result->plan), "%s", f->plan->name);
    snprintf(result->hardware, sizeof(result->hardware), "%s", f->hardware.name);
    result->ranks = f->program->mesh.ranks;
    result->step_time_s = f->play.period_us / SC_US_PER_S;
    result->first_step_s = f->play.first_step_us / SC_US_PER_S;
    result->steps_played = f->play.steps;
    result->cycle = f->play.cycle;
    result->settled = f->play.settled;
    result->exact = f->program->exact;
    fill_rates(f);
    fill_memory(f);
    SC_TRY(fill_interval(f, err));
    SC_TRY(break_down(f, err));
    SC_TRY(fill_resources(f, err));
    SC_TRY(collect_warnings(f, err));
    double bound_us;
    SC_TRY(sc_bound_period(f->program, &f->prices, &f->machine, &bound_us, err));
    result->bound_s = bound_us / SC_US_PER_S;
    if (f->options == NULL || !f->options->trace)
        return SC_OK;
    SC_TRY(fill_trace(f, err));
    memcpy(result->program, result->trace.program, sizeof(result->program));
    return SC_OK;
}

/* ---- the way -----------------------------------------------------------------------------------
 */

static enum sc_status make(struct forecast *f, struct sc_error *err)
{
    uint64_t capacity[SC_PLACE_COUNT];
    bool verify = f->options != NULL && f->options->verify;
    SC_TRY(sc_lower(f->plan, &f->program, err));
    SC_TRY(sc_sim_capacity(f->program, &f->hardware, capacity, err));
    SC_TRY(sc_program_prepare(f->program, capacity, verify, err));
    SC_TRY(sc_pricing_create(f->program, &f->hardware, &f->pricing, err));
    SC_TRY(sc_price_program(f->pricing, &f->prices, err));
    SC_TRY(sc_machine_from_hardware(f->program, &f->hardware, &f->machine, err));
    const struct sc_play_options options = {.path = f->options != NULL && f->options->path};
    SC_TRY(sc_play(f->program, &f->prices, &f->machine, &options, &f->play, err));
    return fill_result(f, err);
}

static void free_forecast(struct forecast *f)
{
    sc_play_free(&f->play);
    sc_machine_free(&f->machine);
    sc_prices_free(&f->prices);
    sc_pricing_destroy(&f->pricing);
    sc_program_destroy(&f->program);
    free(f);
}

enum sc_status sc_simulate_keep(const struct sc_plan *plan, const struct sc_hardware *hardware,
                                const struct sc_sim_options *options, struct sc_sim_result *out,
                                struct sc_sim_made *made, struct sc_error *err)
{
    struct forecast *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return sc_fail_memory(err, sizeof(*f));
    f->plan = plan;
    f->options = options;
    enum sc_status status =
        sc_sim_machine_for(hardware, sc_plan_ranks(plan), plan->hardware.nodes, &f->hardware, err);
    if (status == SC_OK)
        status = make(f, err);
    if (status != SC_OK) {
        sc_sim_result_free(&f->result);
        free_forecast(f);
        return status;
    }
    *out = f->result;
    *made = (struct sc_sim_made){&f->hardware, f->program, &f->prices, &f->machine, &f->play, f};
    return SC_OK;
}

void sc_sim_made_free(struct sc_sim_made *made)
{
    if (made->owner != NULL)
        free_forecast(made->owner);
    memset(made, 0, sizeof(*made));
}

enum sc_status sc_simulate(const struct sc_plan *plan, const struct sc_hardware *hardware,
                           const struct sc_sim_options *options, struct sc_sim_result *out,
                           struct sc_error *err)
{
    struct sc_sim_made made;
    SC_TRY(sc_simulate_keep(plan, hardware, options, out, &made, err));
    sc_sim_made_free(&made);
    return SC_OK;
}

void sc_sim_result_free(struct sc_sim_result *result)
{
    sc_array_free(&result->breakdown);
    sc_array_free(&result->resources);
    sc_array_free(&result->warnings);
    if (result->has_trace)
        sc_trace_free(&result->trace);
    sc_arena_free(&result->arena);
    memset(result, 0, sizeof(*result));
}
