/* When operations began and ended, and what was read out: read once a step has ended. */
#include <stdlib.h>
#include <string.h>

#include "exec/clock.h"
#include "exec/cuda/cuda_device.h"

static size_t ops_of(const struct sc_device *device)
{
    return device->data.class->step.ops.count;
}

static size_t set_of(const struct sc_device *device, int64_t step)
{
    return (size_t)(step % (int64_t)device->sets);
}

/* Stamps are kept of the last so many steps. */
static bool is_traced(const struct sc_device *device, int64_t step)
{
    const struct sc_backend_setup *setup = &device->world->setup;
    return device->timing.stamps && step >= setup->steps - setup->traced_steps;
}

static struct sc_stamp *stamp_of(const struct sc_device *device, uint32_t op, int64_t step)
{
    size_t set = (size_t)(step % device->world->setup.traced_steps);
    return &device->timing.stamps[set * ops_of(device) + op];
}

/* ---- opening and closing --------------------------------------------------------------------- */

static enum sc_status make_event(cudaEvent_t *event, struct sc_error *err)
{
    return sc_cuda_ok(cudaEventCreateWithFlags(event, cudaEventDefault), err,
                      "cudaEventCreateWithFlags");
}

static enum sc_status open_stamps(struct sc_device *device, struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    size_t ops = ops_of(device), events = device->sets * ops;
    size_t stamps = (size_t)device->world->setup.traced_steps * ops + 1;
    timing->stamps = calloc(stamps, sizeof *timing->stamps);
    timing->starts = calloc(events + 1, sizeof *timing->starts);
    timing->ends = calloc(events + 1, sizeof *timing->ends);
    if (!timing->stamps || !timing->starts || !timing->ends)
        return sc_fail_memory(err, stamps * sizeof *timing->stamps);
    for (size_t e = 0; e < events; e++) {
        if (sc_cuda_is_host(device, device->data.class->step.ops.items[e % ops].stream))
            continue;
        SC_TRY(make_event(&timing->starts[e], err));
        SC_TRY(make_event(&timing->ends[e], err));
    }
    return SC_OK;
}

static enum sc_status open_anchors(struct sc_device *device, struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    timing->anchors = calloc(device->sets, sizeof(cudaEvent_t));
    timing->anchor_s = calloc((size_t)device->world->setup.steps + 1, sizeof *timing->anchor_s);
    if (!timing->anchors || !timing->anchor_s)
        return sc_fail_memory(err, (size_t)device->world->setup.steps * sizeof(double));
    for (size_t set = 0; set < device->sets; set++)
        SC_TRY(make_event(&timing->anchors[set], err));
    return make_event(&timing->base, err);
}

/* The device's clock and ours, side by side: as exact as the end of a wait is noticed. */
static enum sc_status set_base(struct sc_device *device, struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    SC_TRY(sc_cuda_ok(cudaEventRecord(timing->base, device->reading), err, "cudaEventRecord"));
    SC_TRY(sc_cuda_ok(cudaEventSynchronize(timing->base), err, "cudaEventSynchronize"));
    timing->base_s = sc_clock();
    return SC_OK;
}

enum sc_status sc_cuda_open_timing(struct sc_device *device, struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    const struct sc_list *list = &device->data.class->step;
    timing->anchor_op = -1;
    timing->finished = calloc(device->stream_count + 1, sizeof *timing->finished);
    if (!timing->finished)
        return sc_fail_memory(err, device->stream_count * sizeof *timing->finished);
    for (size_t s = 0; s < device->stream_count; s++)
        timing->finished[s] = -1;
    for (size_t i = 0; i < list->ops.count; i++) {
        timing->finished[list->ops.items[i].stream] = 0;
        if (!sc_cuda_is_host(device, list->ops.items[i].stream))
            timing->anchor_op = (int64_t)i;
    }
    SC_TRY(open_anchors(device, err));
    if (device->world->setup.traced_steps > 0)
        SC_TRY(open_stamps(device, err));
    return set_base(device, err);
}

static void destroy_events(cudaEvent_t *events, size_t count)
{
    for (size_t e = 0; events && e < count; e++)
        if (events[e])
            cudaEventDestroy(events[e]);
    free(events);
}

void sc_cuda_close_timing(struct sc_device *device)
{
    struct sc_cuda_timing *timing = &device->timing;
    destroy_events(timing->starts, device->sets * ops_of(device));
    destroy_events(timing->ends, device->sets * ops_of(device));
    destroy_events(timing->anchors, device->sets);
    if (timing->base)
        cudaEventDestroy(timing->base);
    free(timing->anchor_s);
    free(timing->stamps);
    free(timing->finished);
    memset(timing, 0, sizeof *timing);
}

/* ---- marking --------------------------------------------------------------------------------- */

void sc_cuda_issued(struct sc_device *device, uint32_t op, int64_t step)
{
    if (is_traced(device, step))
        stamp_of(device, op, step)->issue = sc_clock();
}

enum sc_status sc_cuda_mark(struct sc_device *device, uint32_t op, int64_t step, bool before,
                            struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    size_t set = set_of(device, step);
    cudaStream_t stream = device->streams[device->data.class->step.ops.items[op].stream].stream;
    if (is_traced(device, step)) {
        cudaEvent_t *events = before ? timing->starts : timing->ends;
        SC_TRY(sc_cuda_ok(cudaEventRecord(events[set * ops_of(device) + op], stream), err,
                          "cudaEventRecord"));
    }
    if (before || timing->anchor_op != (int64_t)op)
        return SC_OK;
    return sc_cuda_ok(cudaEventRecord(timing->anchors[set], stream), err, "cudaEventRecord");
}

void sc_cuda_stamp(struct sc_device *device, uint32_t op, int64_t step, double start, double end)
{
    if (op + 1 == ops_of(device))
        device->data.step_ends[step] = end;
    if (!is_traced(device, step))
        return;
    stamp_of(device, op, step)->start = start;
    stamp_of(device, op, step)->end = end;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The time of an event that belongs to the step: so long after the end of the step before. */
static enum sc_status time_of(const struct sc_device *device, cudaEvent_t event, int64_t step,
                              double *out, struct sc_error *err)
{
    const struct sc_cuda_timing *timing = &device->timing;
    cudaEvent_t from = step > 0 ? timing->anchors[set_of(device, step - 1)] : timing->base;
    double from_s = step > 0 ? timing->anchor_s[step - 1] : timing->base_s;
    float ms = 0;
    SC_TRY(sc_cuda_ok(cudaEventElapsedTime(&ms, from, event), err, "cudaEventElapsedTime"));
    *out = from_s + 1e-3 * (double)ms;
    return SC_OK;
}

static enum sc_status read_stamps(struct sc_device *device, int64_t step, struct sc_error *err)
{
    const struct sc_cuda_timing *timing = &device->timing;
    size_t ops = ops_of(device), first = set_of(device, step) * ops;
    for (uint32_t i = 0; i < ops; i++) {
        struct sc_stamp *stamp = stamp_of(device, i, step);
        if (!timing->starts[first + i])
            continue;
        SC_TRY(time_of(device, timing->starts[first + i], step, &stamp->start, err));
        SC_TRY(time_of(device, timing->ends[first + i], step, &stamp->end, err));
    }
    return SC_OK;
}

static void read_sums(struct sc_device *device, int64_t step)
{
    size_t ops = ops_of(device), first = set_of(device, step) * ops;
    for (uint32_t i = 0; i < ops; i++) {
        const float *slot = device->slots[first + i];
        if (!slot)
            continue;
        const struct sc_value *value =
            sc_op_value(device->data.class, &device->data.class->step,
                        &device->data.class->step.ops.items[i], SC_ROLE_X);
        double sum = 0;
        for (int64_t e = 0; e < value->rows * value->cols; e++)
            sum += (double)slot[e];
        device->data.read_outs[step] = sum;
    }
}

static enum sc_status read_step(struct sc_device *device, int64_t step, struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    read_sums(device, step);
    if (timing->anchor_op < 0)
        return SC_OK;
    SC_TRY(
        time_of(device, timing->anchors[set_of(device, step)], step, &timing->anchor_s[step], err));
    if (timing->anchor_op + 1 == (int64_t)ops_of(device))
        device->data.step_ends[step] = timing->anchor_s[step];
    return is_traced(device, step) ? read_stamps(device, step, err) : SC_OK;
}

enum sc_status sc_cuda_step_finished(struct sc_device *device, int stream, int64_t step,
                                     struct sc_error *err)
{
    struct sc_cuda_timing *timing = &device->timing;
    int64_t all = step + 1;
    timing->finished[stream] = step + 1;
    for (size_t s = 0; s < device->stream_count; s++)
        if (timing->finished[s] >= 0 && timing->finished[s] < all)
            all = timing->finished[s];
    for (; timing->read < all; timing->read++)
        SC_TRY(read_step(device, timing->read, err));
    return SC_OK;
}
