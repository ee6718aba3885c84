/*
 * The host backend: the kernels compiled for the processor and a BLAS, threads as streams,
 * three transports. Element type fp32.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/backend_list.h"
#include "exec/clock.h"
#include "exec/cores.h"
#include "exec/host/gemm.h"
#include "exec/host/host_device.h"
#include "exec/kernels/kernels.h"
#include "exec/process.h"

enum { SCRATCH_ALIGNMENT = 64 };

/* ---- what it can do -------------------------------------------------------------------------- */

static enum sc_status check_values(const struct sc_class *class, struct sc_error *err)
{
    for (size_t i = 0; i < class->values.count; i++) {
        const struct sc_value *value = &class->values.items[i];
        if (value->dtype == SC_BF16 || value->dtype == SC_FP16)
            return sc_fail(err, SC_NO,
                           "backend host: found %s values in the plan, expected fp32 precision "
                           "everywhere (precision.parameters, activations, gradients, ...)",
                           sc_dtype_name(value->dtype));
    }
    for (size_t i = 0; i < class->buffers.count; i++)
        if (class->buffers.items[i].place == SC_DISK)
            return sc_fail(err, SC_NO, "backend host: it has no place disk yet");
    return SC_OK;
}

/* Collectives work on one run of bytes. */
static bool one_run(const struct sc_value *value)
{
    return !value || value->rows == 1 || value->row_stride == value->cols;
}

static enum sc_status check_list(const struct sc_class *class, const struct sc_list *list,
                                 struct sc_error *err)
{
    for (size_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        const char *kind = sc_op_kind_name((enum sc_op_kind)op->kind);
        if (!sc_host_supports((enum sc_op_kind)op->kind))
            return sc_fail(err, SC_NO, "backend host: it cannot do operation kind %s yet", kind);
        if (op->group >= 0 && (!one_run(sc_op_value(class, list, op, SC_ROLE_X)) ||
                               !one_run(sc_op_value(class, list, op, SC_ROLE_Y))))
            return sc_fail(err, SC_NO, "backend host: operation %zu: %s of rows with gaps", i,
                           kind);
    }
    return SC_OK;
}

static enum sc_status host_check(const struct sc_program *program,
                                 const struct sc_run_options *options, struct sc_error *err)
{
    for (size_t c = 0; c < program->classes.count; c++) {
        const struct sc_class *class = &program->classes.items[c];
        SC_TRY(check_values(class, err));
        SC_TRY(check_list(class, &class->init, err));
        SC_TRY(check_list(class, &class->step, err));
    }
    if (options->poison && options->transport != SC_TRANSPORT_THREADS)
        return sc_fail(err, SC_USAGE, "backend host: poison needs ranks as threads, not processes");
    return SC_OK;
}

static bool host_serial(const struct sc_run_options *options)
{
    return options->poison || (options->chaos && options->transport == SC_TRANSPORT_THREADS);
}

/* ---- the world ------------------------------------------------------------------------------- */

/* Cores that this process may use; under MPI on one machine, its share of them unless mpirun has
 * already bound it. */
static enum sc_status find_cores(struct sc_world *world, struct sc_error *err)
{
    const struct sc_process *process = world->setup.process;
    cpu_set_t set;
    int count = 0;
    world->cores = calloc(CPU_SETSIZE, sizeof *world->cores);
    if (!world->cores)
        return sc_fail_memory(err, CPU_SETSIZE * sizeof *world->cores);
    if (sc_cores_allowed(world->setup.options->cores, &set) == 0)
        return sc_fail(err, SC_MACHINE, "cannot ask which cores this process may use");
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &set))
            world->cores[count++] = core;
    bool processes = process && process->node_count > 1;
    int64_t ranks = processes ? process->node_count : world->setup.local_ranks;
    world->own_cores = count >= ranks;
    world->pinned = world->own_cores || ranks % count == 0;
    if (processes) {
        int each = count / (int)ranks > 0 ? count / (int)ranks : 1;
        int64_t first = each * process->node_index % count;
        memmove(world->cores, world->cores + first, (size_t)each * sizeof *world->cores);
        count = each;
    }
    world->core_count = count;
    return SC_OK;
}

static sc_transport_fn *const transports[SC_TRANSPORT_COUNT] = {
    [SC_TRANSPORT_THREADS] = sc_transport_threads,
    [SC_TRANSPORT_MPI] = sc_transport_mpi,
    [SC_TRANSPORT_SOCKETS] = sc_transport_sockets,
};

static enum sc_status open_transport(struct sc_world *world, struct sc_error *err)
{
    const struct sc_program *program = world->setup.program;
    size_t groups = program->groups.count;
    unsigned *masks = calloc(groups + 1, sizeof *masks);
    if (!masks)
        return sc_fail_memory(err, (groups + 1) * sizeof *masks);
    for (size_t g = 0; g < groups; g++)
        masks[g] = program->groups.items[g].axis_mask;
    const struct sc_transport_setup setup = {
        .mesh = &program->mesh,
        .groups = groups,
        .axis_masks = masks,
        .first_rank = world->setup.first_rank,
        .local_ranks = world->setup.local_ranks,
        .process = world->setup.process,
    };
    enum sc_status status =
        transports[world->setup.options->transport](&setup, &world->transport, err);
    free(masks);
    return status;
}

static void host_close(struct sc_world **world)
{
    if (!*world)
        return;
    sc_transport_close(&(*world)->transport);
    sc_serial_close(*world);
    free((*world)->devices);
    free((*world)->cores);
    free(*world);
    *world = NULL;
}

static enum sc_status host_open(const struct sc_backend_setup *setup, struct sc_world **out,
                                struct sc_error *err)
{
    struct sc_world *world = calloc(1, sizeof *world);
    if (!world)
        return sc_fail_memory(err, sizeof *world);
    world->setup = *setup;
    world->devices = calloc((size_t)setup->local_ranks, sizeof *world->devices);
    enum sc_status status = SC_OK;
    if (!world->devices)
        status = sc_fail_memory(err, (size_t)setup->local_ranks * sizeof *world->devices);
    if (status == SC_OK)
        status = find_cores(world, err);
    if (status == SC_OK)
        status = open_transport(world, err);
    if (status == SC_OK && host_serial(setup->options))
        status = sc_serial_open(world, err);
    if (status != SC_OK) {
        host_close(&world);
        return status;
    }
    *out = world;
    return SC_OK;
}

/* ---- a device: streams, workers, events ------------------------------------------------------ */

struct stream_use {
    bool computes, communicates, used;
};

static void mark_use(const struct sc_list *list, struct stream_use *use)
{
    for (size_t i = 0; i < list->ops.count; i++) {
        enum sc_work work = sc_op_kind_work((enum sc_op_kind)list->ops.items[i].kind);
        struct stream_use *at = &use[list->ops.items[i].stream];
        at->used = true;
        at->computes |= work == SC_WORK_COMPUTE || work == SC_WORK_MEMORY;
        at->communicates |= work == SC_WORK_COLLECTIVE;
    }
}

/* Commands of a step on the busiest stream: its operations, waits and records. */
static size_t commands_of_step(const struct sc_list *list, size_t stream)
{
    size_t commands = 0;
    for (size_t i = 0; i < list->ops.count; i++)
        if (list->ops.items[i].stream == stream)
            commands += 3 + list->ops.items[i].waits;
    return commands;
}

static enum sc_status open_stream(struct sc_device *device, size_t index, struct sc_error *err)
{
    const struct sc_program *program = device->data.program;
    struct sc_host_stream *stream = &device->streams[index];
    size_t steps = (size_t)(program->steps_ahead > 0 ? program->steps_ahead : 2) + 1;
    size_t commands = commands_of_step(&device->data.class->step, index) * steps +
                      commands_of_step(&device->data.class->init, index) + 1;
    size_t size = 1;
    while (size < commands)
        size *= 2;
    stream->device = device;
    stream->mask = size - 1;
    stream->ring = calloc(size, sizeof *stream->ring);
    atomic_init(&stream->head, 0);
    atomic_init(&stream->tail, 0);
    return stream->ring ? SC_OK : sc_fail_memory(err, size * sizeof *stream->ring);
}

static struct sc_host_worker *add_worker(struct sc_device *device, size_t index, int threads)
{
    struct sc_host_worker *worker = &device->workers[device->worker_count++];
    worker->device = device;
    worker->threads = threads;
    worker->streams = calloc(device->stream_count, sizeof *worker->streams);
    worker->delays = device->world->setup.options->chaos_seed * 1000003u +
                     (uint64_t)device->data.rank * 64u + index;
    sc_wake_init(&worker->wake);
    return worker;
}

static enum sc_status give(struct sc_host_worker *worker, struct sc_host_stream *stream,
                           struct sc_error *err)
{
    if (!worker->streams)
        return sc_fail_memory(err, worker->device->stream_count * sizeof *worker->streams);
    worker->streams[worker->count++] = stream;
    stream->worker = worker;
    return SC_OK;
}

static int team_size(const struct sc_device *device)
{
    const struct sc_world *world = device->world;
    int each = world->core_count / (int)world->setup.local_ranks;
    return world->serial.on || each < 1 ? 1 : each;
}

/* All streams that only communicate have one worker; others have one each. The whole team goes to
 * the first stream that computes. */
static enum sc_status open_workers(struct sc_device *device, struct sc_error *err)
{
    struct stream_use use[256] = {{0}};
    struct sc_host_worker *communication = NULL;
    int team = team_size(device);
    mark_use(&device->data.class->init, use);
    mark_use(&device->data.class->step, use);
    for (size_t s = 0; s < device->stream_count; s++) {
        struct sc_host_worker *worker = communication;
        bool only = use[s].communicates && !use[s].computes;
        if (!only || !worker)
            worker = add_worker(device, s, use[s].computes ? team : 1);
        if (only)
            communication = worker;
        if (use[s].computes)
            team = 1;
        worker->computes |= use[s].computes;
        worker->communicates |= use[s].communicates;
        SC_TRY(give(worker, &device->streams[s], err));
    }
    return SC_OK;
}

static size_t scratch_of_list(const struct sc_host_worker *worker, const struct sc_list *list)
{
    size_t most = 0;
    for (size_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        if (worker->device->streams[op->stream].worker != worker)
            continue;
        size_t bytes = sc_host_scratch(&worker->device->data, list, op, worker->threads);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static enum sc_status open_scratch(struct sc_device *device, struct sc_error *err)
{
    for (size_t w = 0; w < device->worker_count; w++) {
        struct sc_host_worker *worker = &device->workers[w];
        size_t bytes = scratch_of_list(worker, &device->data.class->step);
        void *scratch = NULL;
        if (bytes > 0 && posix_memalign(&scratch, SCRATCH_ALIGNMENT, bytes) != 0)
            return sc_fail_memory(err, bytes);
        if (bytes > 0)
            memset(scratch, 0, bytes);
        worker->scratch = scratch;
    }
    return SC_OK;
}

static uint64_t worker_bit(const struct sc_device *device, int stream)
{
    return (uint64_t)1 << (device->streams[stream].worker - device->workers);
}

/* The issuer waits for the last operation of every stream, and for that of the init list. */
static void mark_ends(struct sc_device *device)
{
    const struct sc_list *step = &device->data.class->step;
    bool seen[256] = {false};
    for (size_t i = step->ops.count; i-- > 0;) {
        if (!seen[step->ops.items[i].stream])
            device->listeners[i] |= (uint64_t)1 << SC_LISTENER_ISSUER;
        seen[step->ops.items[i].stream] = true;
    }
    if (device->events > step->ops.count)
        device->listeners[device->events - 1] |= (uint64_t)1 << SC_LISTENER_ISSUER;
}

/* Who waits for an event is known from the lists. */
static void mark_listeners(struct sc_device *device)
{
    const struct sc_list *step = &device->data.class->step, *init = &device->data.class->init;
    for (size_t i = 0; i < step->ops.count; i++) {
        const struct sc_op *op = &step->ops.items[i];
        for (uint32_t w = 0; w < op->waits; w++)
            device->listeners[step->waits.items[op->first_wait + w].op] |=
                worker_bit(device, op->stream);
    }
    for (size_t i = 0; i + 1 < init->ops.count; i++)
        device->listeners[step->ops.count + i] = worker_bit(device, init->ops.items[i + 1].stream);
    mark_ends(device);
}

static enum sc_status open_events(struct sc_device *device, struct sc_error *err)
{
    size_t ops = device->data.class->step.ops.count;
    const struct sc_backend_setup *setup = &device->world->setup;
    device->events = ops + device->data.class->init.ops.count;
    device->done = calloc(device->events + 1, sizeof *device->done);
    device->listeners = calloc(device->events + 1, sizeof *device->listeners);
    if (!device->done || !device->listeners)
        return sc_fail_memory(err, device->events * sizeof *device->done);
    for (size_t e = 0; e < device->events; e++)
        atomic_init(&device->done[e], 0);
    mark_listeners(device);
    if (setup->traced_steps <= 0)
        return SC_OK;
    size_t stamps = (size_t)setup->traced_steps * ops + 1;
    device->stamps = calloc(stamps, sizeof *device->stamps);
    if (!device->stamps)
        return sc_fail_memory(err, stamps * sizeof *device->stamps);
    memset(device->stamps, 0, stamps * sizeof *device->stamps);
    return SC_OK;
}

/* The worker that serves the streams of a group's collectives is the one to wake. */
static enum sc_status open_members(struct sc_device *device, struct sc_error *err)
{
    const struct sc_program *program = device->data.program;
    const struct sc_list *list = &device->data.class->step;
    struct sc_transport *transport = device->world->transport;
    device->members = calloc(program->groups.count + 1, sizeof *device->members);
    if (!device->members)
        return sc_fail_memory(err, program->groups.count * sizeof *device->members);
    for (size_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        if (op->group >= 0 && !device->members[op->group])
            device->members[op->group] =
                transport->functions->member(transport, (size_t)op->group, device->data.rank,
                                             &device->streams[op->stream].worker->wake);
    }
    return SC_OK;
}

static enum sc_status open_device(struct sc_device *device, struct sc_error *err)
{
    device->stream_count = device->data.program->streams.count;
    device->streams = calloc(device->stream_count + 1, sizeof *device->streams);
    device->workers = calloc(SC_WORKERS_MAX, sizeof *device->workers);
    if (!device->streams || !device->workers)
        return sc_fail_memory(err, device->stream_count * sizeof *device->streams);
    if (device->stream_count > SC_WORKERS_MAX)
        return sc_fail(err, SC_NO, "backend host: %zu streams, at most %d", device->stream_count,
                       SC_WORKERS_MAX);
    for (size_t s = 0; s < device->stream_count; s++)
        SC_TRY(open_stream(device, s, err));
    SC_TRY(open_workers(device, err));
    SC_TRY(open_scratch(device, err));
    SC_TRY(open_events(device, err));
    SC_TRY(open_members(device, err));
    if (device->world->setup.options->poison)
        sc_host_poison_all(&device->data);
    return device->world->serial.on ? SC_OK : sc_host_start(device, err);
}

static void close_workers(struct sc_device *device)
{
    for (size_t w = 0; w < device->worker_count; w++) {
        free(device->workers[w].streams);
        free(device->workers[w].scratch);
        sc_wake_destroy(&device->workers[w].wake);
    }
    free(device->workers);
}

static void host_destroy(struct sc_device **device)
{
    struct sc_device *gone = *device;
    if (!gone)
        return;
    sc_host_stop(gone);
    sc_host_poison_none(&gone->data);
    gone->world->devices[gone->data.rank - gone->world->setup.first_rank] = NULL;
    close_workers(gone);
    for (size_t s = 0; gone->streams && s < gone->stream_count; s++)
        free(gone->streams[s].ring);
    free(gone->streams);
    free(gone->done);
    free(gone->listeners);
    free(gone->members);
    free(gone->stamps);
    sc_wake_destroy(&gone->finished);
    sc_host_rank_close(&gone->data);
    free(gone);
    *device = NULL;
}

static enum sc_status host_create(struct sc_world *world, int64_t rank, struct sc_device **out,
                                  struct sc_error *err)
{
    struct sc_device *device = calloc(1, sizeof *device);
    if (!device)
        return sc_fail_memory(err, sizeof *device);
    device->world = world;
    enum sc_status status = sc_host_rank_open(&device->data, &world->setup, rank, err);
    if (status != SC_OK) {
        free(device);
        return status;
    }
    sc_wake_init(&device->finished);
    atomic_init(&device->closing, false);
    world->devices[rank - world->setup.first_rank] = device;
    status = open_device(device, err);
    if (status != SC_OK) {
        host_destroy(&device);
        return status;
    }
    *out = device;
    return SC_OK;
}

/* ---- issuing --------------------------------------------------------------------------------- */

static enum sc_status push(struct sc_device *device, int stream, struct sc_command command,
                           struct sc_error *err)
{
    SC_TRY(sc_failure_get(device->world->setup.failure, err));
    sc_host_push(&device->streams[stream], command);
    return SC_OK;
}

static enum sc_status host_wait(struct sc_device *device, int stream, uint32_t event, int64_t step,
                                struct sc_error *err)
{
    return push(device, stream,
                (struct sc_command){.kind = SC_COMMAND_WAIT, .index = event, .step = step}, err);
}

static enum sc_status host_dispatch(struct sc_device *device, enum sc_list_name list, uint32_t op,
                                    int64_t step, struct sc_error *err)
{
    const struct sc_class *class = device->data.class;
    const struct sc_list *ops = list == SC_LIST_STEP ? &class->step : &class->init;
    if (device->stamps && list == SC_LIST_STEP) {
        size_t set = (size_t)(step % device->world->setup.traced_steps);
        device->stamps[set * class->step.ops.count + op].issue = sc_clock();
    }
    return push(device, ops->ops.items[op].stream,
                (struct sc_command){
                    .kind = SC_COMMAND_RUN, .list = (uint8_t)list, .index = op, .step = step},
                err);
}

static enum sc_status host_record(struct sc_device *device, int stream, uint32_t event,
                                  int64_t step, struct sc_error *err)
{
    return push(device, stream,
                (struct sc_command){.kind = SC_COMMAND_RECORD, .index = event, .step = step}, err);
}

static bool host_done(const struct sc_device *device, uint32_t event, int64_t step)
{
    return sc_host_done(device, event, step);
}

static enum sc_status host_finish(struct sc_device *device, uint32_t event, int64_t step,
                                  struct sc_error *err)
{
    struct sc_failure *failure = device->world->setup.failure;
    for (;;) {
        unsigned ticket = sc_wake_ticket(&device->finished);
        SC_TRY(sc_failure_get(failure, err));
        if (sc_host_done(device, event, step))
            return SC_OK;
        sc_wake_sleep(&device->finished, ticket, 0, 50000000);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

static enum sc_status host_read(struct sc_device *device, uint32_t value, enum sc_version version,
                                int64_t step, void *to, struct sc_error *err)
{
    (void)err;
    const struct sc_value *v = &device->data.class->values.items[value];
    const char *from = sc_rank_address(&device->data, value, version, step);
    size_t element = sc_dtype_bytes(v->dtype), row = (size_t)v->cols * element;
    if (device->world->setup.options->poison)
        sc_host_poison_none(&device->data);
    for (int64_t r = 0; from && r < v->rows; r++)
        memcpy((char *)to + (size_t)r * row, from + (size_t)(r * v->row_stride) * element, row);
    if (device->world->setup.options->poison)
        sc_host_poison_all(&device->data);
    return SC_OK;
}

static const struct sc_stamp *host_stamps(const struct sc_device *device)
{
    return device->stamps;
}

static const double *host_step_ends(const struct sc_device *device)
{
    return device->data.step_ends;
}

static const double *host_read_outs(const struct sc_device *device)
{
    return device->data.read_outs;
}

static void host_library(char *out, size_t size)
{
    snprintf(out, size, "%s, kernels %s", sc_gemm_library(), sc_kernels_select()->name);
}

static void host_describe(const struct sc_world *world, char *out, size_t size)
{
    char library[SC_NAME_SIZE];
    host_library(library, sizeof library);
    snprintf(out, size, "%s, %s", library,
             world->serial.on ? "one thread for all ranks" : world->transport->name);
}

const struct sc_backend sc_backend_host = {
    .name = "host",
    .check = host_check,
    .open = host_open,
    .close = host_close,
    .create = host_create,
    .destroy = host_destroy,
    .wait = host_wait,
    .dispatch = host_dispatch,
    .record = host_record,
    .finish = host_finish,
    .read = host_read,
    .stamps = host_stamps,
    .step_ends = host_step_ends,
    .read_outs = host_read_outs,
    .serial = host_serial,
    .advance = sc_serial_advance,
    .done = host_done,
    .describe = host_describe,
    .library = host_library,
};
