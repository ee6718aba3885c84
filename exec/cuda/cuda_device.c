/* One rank's device: arenas, streams, events, what lies beside the arena. */
#include "exec/cuda/cuda_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* ---- what a device is asked ------------------------------------------------------------------ */

const struct sc_list *sc_cuda_list(const struct sc_device *device, enum sc_list_name name)
{
    return name == SC_LIST_STEP ? &device->data.class->step : &device->data.class->init;
}

int sc_cuda_stream_of(const struct sc_device *device, uint32_t event)
{
    const struct sc_class *class = device->data.class;
    size_t ops = class->step.ops.count;
    return event < ops ? class->step.ops.items[event].stream
                       : class->init.ops.items[event - ops].stream;
}

cudaEvent_t *sc_cuda_event(const struct sc_device *device, uint32_t event, int64_t step)
{
    size_t set = (size_t)(step % (int64_t)device->sets);
    return &device->events[set * device->event_count + event];
}

bool sc_cuda_is_host(const struct sc_device *device, int stream)
{
    return device->data.program->streams.items[stream].engine != SC_ENGINE_DEVICE;
}

/* ---- arenas ---------------------------------------------------------------------------------- */

static enum sc_status allocate_device(void **out, size_t bytes, const char *what,
                                      const struct sc_device *device, struct sc_error *err)
{
    char size[32];
    return sc_cuda_ok(cudaMalloc(out, bytes), err, "device %d: cudaMalloc of %s for %s",
                      device->number, sc_print_bytes((double)bytes, size, sizeof size), what);
}

/* Zeroed. */
static enum sc_status allocate_pinned(void **out, size_t bytes, const char *what,
                                      struct sc_error *err)
{
    char size[32];
    SC_TRY(sc_cuda_ok(cudaMallocHost(out, bytes), err, "cudaMallocHost of %s for %s",
                      sc_print_bytes((double)bytes, size, sizeof size), what));
    memset(*out, 0, bytes);
    return SC_OK;
}

static enum sc_status open_arenas(struct sc_device *device, struct sc_error *err)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        size_t bytes = (size_t)device->data.class->memory[place].arena_bytes;
        void *base = NULL;
        if (bytes == 0)
            continue;
        if (place == SC_DEVICE)
            SC_TRY(allocate_device(&base, bytes, "the arena", device, err));
        else
            SC_TRY(allocate_pinned(&base, bytes, "an arena", err));
        device->data.arenas[place] = (struct sc_rank_arena){base, bytes};
    }
    return SC_OK;
}

static void close_arenas(struct sc_device *device)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        void *base = device->data.arenas[place].base;
        if (base && place == SC_DEVICE)
            cudaFree(base);
        else if (base)
            cudaFreeHost(base);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Ours: higher first; CUDA's: lower first, within what the device has. */
static enum sc_status open_stream(struct sc_device *device, size_t index, struct sc_error *err)
{
    int lowest = 0, highest = 0, priority = device->data.program->streams.items[index].priority;
    device->streams[index].device = device;
    if (sc_cuda_is_host(device, (int)index))
        return SC_OK;
    SC_TRY(sc_cuda_ok(cudaDeviceGetStreamPriorityRange(&lowest, &highest), err,
                      "cudaDeviceGetStreamPriorityRange"));
    priority = lowest - priority > highest ? lowest - priority : highest;
    return sc_cuda_ok(cudaStreamCreateWithPriority(&device->streams[index].stream,
                                                   cudaStreamNonBlocking, priority),
                      err, "cudaStreamCreateWithPriority");
}

static enum sc_status open_streams(struct sc_device *device, struct sc_error *err)
{
    device->stream_count = device->data.program->streams.count;
    device->streams = calloc(device->stream_count + 1, sizeof *device->streams);
    if (!device->streams)
        return sc_fail_memory(err, device->stream_count * sizeof *device->streams);
    for (size_t s = 0; s < device->stream_count; s++)
        SC_TRY(open_stream(device, s, err));
    return sc_cuda_ok(cudaStreamCreateWithPriority(&device->reading, cudaStreamNonBlocking, 0), err,
                      "cudaStreamCreateWithPriority");
}

static void close_streams(struct sc_device *device)
{
    for (size_t s = 0; device->streams && s < device->stream_count; s++)
        if (device->streams[s].stream)
            cudaStreamDestroy(device->streams[s].stream);
    if (device->reading)
        cudaStreamDestroy(device->reading);
    free(device->streams);
}

/* ---- beside the arena: scratch, workspaces, tables ------------------------------------------- */

static void measure_scratch(struct sc_device *device)
{
    const struct sc_list *list = &device->data.class->step;
    for (size_t i = 0; i < list->ops.count; i++) {
        struct sc_cuda_stream *stream = &device->streams[list->ops.items[i].stream];
        size_t bytes = sc_op_scratch(device->data.class, list, &list->ops.items[i]);
        stream->scratch_bytes = bytes > stream->scratch_bytes ? bytes : stream->scratch_bytes;
    }
}

/* The next `bytes` of the block; an offset while the block is not there. */
static char *cut(char *block, size_t *at, size_t bytes)
{
    char *piece = block ? block + *at : NULL;
    *at += (size_t)sc_round_up(bytes, SC_ALIGN);
    return bytes > 0 ? piece : NULL;
}

/* Hands out pieces of the block; called twice, first for its size. */
static size_t cut_beside(struct sc_device *device)
{
    size_t at = 0;
    for (size_t s = 0; s < device->stream_count; s++) {
        struct sc_cuda_stream *stream = &device->streams[s];
        stream->scratch = cut(device->beside, &at, stream->scratch_bytes);
        stream->workspace = cut(device->beside, &at, stream->workspace_bytes);
    }
    size_t bytes = (size_t)device->data.range_count * sizeof(struct sc_kernel_range);
    device->ranges = (struct sc_kernel_range *)cut(device->beside, &at, bytes);
    return at;
}

static enum sc_status open_beside(struct sc_device *device, struct sc_error *err)
{
    void *block = NULL;
    measure_scratch(device);
    size_t bytes = cut_beside(device);
    if (bytes == 0)
        return SC_OK;
    SC_TRY(allocate_device(&block, bytes, "scratch and workspaces", device, err));
    device->beside = block;
    cut_beside(device);
    bytes = (size_t)device->data.range_count * sizeof(struct sc_kernel_range);
    if (bytes == 0)
        return SC_OK;
    device->data.kernel_ranges = device->ranges;
    SC_TRY(sc_cuda_ok(cudaMemcpyAsync(device->ranges, device->data.ranges, bytes, cudaMemcpyDefault,
                                      device->reading),
                      err, "cudaMemcpyAsync of tables"));
    return sc_cuda_ok(cudaStreamSynchronize(device->reading), err, "cudaStreamSynchronize");
}

/* ---- events and flags ------------------------------------------------------------------------ */

/* What is waited for: by operations, by the issuer at the ends of streams, all of the init list. */
static void mark_awaited(const struct sc_class *class, bool *awaited)
{
    const struct sc_list *step = &class->step;
    bool seen[256] = {false};
    for (size_t i = 0; i < step->waits.count; i++)
        awaited[step->waits.items[i].op] = true;
    for (size_t i = step->ops.count; i-- > 0;) {
        awaited[i] |= !seen[step->ops.items[i].stream];
        seen[step->ops.items[i].stream] = true;
    }
    for (size_t i = 0; i < class->init.ops.count; i++)
        awaited[step->ops.count + i] = true;
}

/* A thread that waits for one sleeps. */
static enum sc_status create_events(struct sc_device *device, const bool *awaited,
                                    struct sc_error *err)
{
    for (size_t i = 0; i < device->sets * device->event_count; i++) {
        size_t event = i % device->event_count;
        if (!awaited[event] || sc_cuda_is_host(device, sc_cuda_stream_of(device, (uint32_t)event)))
            continue;
        SC_TRY(sc_cuda_ok(cudaEventCreateWithFlags(&device->events[i],
                                                   cudaEventDisableTiming | cudaEventBlockingSync),
                          err, "cudaEventCreateWithFlags"));
    }
    return SC_OK;
}

static enum sc_status open_events(struct sc_device *device, struct sc_error *err)
{
    const struct sc_class *class = device->data.class;
    void *flags = NULL;
    device->event_count = class->step.ops.count + class->init.ops.count;
    size_t events = device->sets * device->event_count;
    bool *awaited = calloc(device->event_count + 1, sizeof *awaited);
    device->events = calloc(events + 1, sizeof(cudaEvent_t));
    enum sc_status status = SC_OK;
    if (!awaited || !device->events)
        status = sc_fail_memory(err, events * sizeof(cudaEvent_t));
    if (status == SC_OK) {
        mark_awaited(class, awaited);
        status = create_events(device, awaited, err);
    }
    free(awaited);
    if (status == SC_OK)
        status = allocate_pinned(&flags, (device->event_count + 1) * sizeof *device->flags, "flags",
                                 err);
    device->flags = flags;
    return status;
}

static void close_events(struct sc_device *device)
{
    for (size_t i = 0; device->events && i < device->sets * device->event_count; i++)
        if (device->events[i])
            cudaEventDestroy(device->events[i]);
    free(device->events);
    if (device->flags)
        cudaFreeHost((void *)device->flags);
}

/* ---- what read_out leaves -------------------------------------------------------------------- */

static size_t slot_elements(const struct sc_device *device, size_t op)
{
    const struct sc_list *list = &device->data.class->step;
    const struct sc_op *at = &list->ops.items[op];
    if (at->kind != SC_READ_OUT)
        return 0;
    const struct sc_value *value = sc_op_value(device->data.class, list, at, SC_ROLE_X);
    return (size_t)(value->rows * value->cols);
}

static enum sc_status open_slots(struct sc_device *device, struct sc_error *err)
{
    size_t ops = device->data.class->step.ops.count, elements = 0, at = 0;
    void *memory = NULL;
    device->slots = calloc(device->sets * ops + 1, sizeof *device->slots);
    if (!device->slots)
        return sc_fail_memory(err, device->sets * ops * sizeof *device->slots);
    for (size_t i = 0; i < ops; i++)
        elements += slot_elements(device, i) * device->sets;
    if (elements == 0)
        return SC_OK;
    SC_TRY(allocate_pinned(&memory, elements * sizeof(float), "what is read out", err));
    device->slot_memory = memory;
    for (size_t i = 0; i < device->sets * ops; i++)
        if (slot_elements(device, i % ops) > 0) {
            device->slots[i] = device->slot_memory + at;
            at += slot_elements(device, i % ops);
        }
    return SC_OK;
}

static void close_slots(struct sc_device *device)
{
    if (device->slot_memory)
        cudaFreeHost(device->slot_memory);
    free(device->slots);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum sc_status select_device(struct sc_device *device, struct sc_error *err)
{
    return sc_cuda_ok(cudaSetDevice(device->number), err, "cudaSetDevice %d", device->number);
}

/* From here on an abort reaches the device. */
static void enlist(struct sc_device *device)
{
    struct sc_world *world = device->world;
    pthread_mutex_lock(&world->mutex);
    world->devices[device->data.rank - world->setup.first_rank] = device;
    pthread_mutex_unlock(&world->mutex);
}

static void delist(struct sc_device *device)
{
    struct sc_world *world = device->world;
    struct sc_device **at = &world->devices[device->data.rank - world->setup.first_rank];
    pthread_mutex_lock(&world->mutex);
    if (*at == device)
        *at = NULL;
    pthread_mutex_unlock(&world->mutex);
}

static enum sc_status open_device(struct sc_device *device, struct sc_error *err)
{
    int steps = device->data.program->steps_ahead;
    device->sets = (size_t)(steps > 0 ? steps : 2) + 1;
    SC_TRY(select_device(device, err));
    SC_TRY(sc_cuda_ok(
        cudaDeviceGetAttribute(&device->processors, cudaDevAttrMultiProcessorCount, device->number),
        err, "cudaDeviceGetAttribute"));
    SC_TRY(open_arenas(device, err));
    SC_TRY(open_streams(device, err));
    SC_TRY(sc_cuda_open_products(device, err));
    SC_TRY(open_beside(device, err));
    SC_TRY(open_events(device, err));
    SC_TRY(open_slots(device, err));
    SC_TRY(sc_cuda_open_timing(device, err));
    enlist(device);
    SC_TRY(sc_failure_get(device->world->setup.failure, err));
    return sc_cuda_open_workers(device, err);
}

/* After a failure streams still hold work, which ends since communicators and flags let it. */
static void drain(struct sc_device *device)
{
    for (size_t s = 0; device->streams && s < device->stream_count; s++)
        if (device->streams[s].stream)
            cudaStreamSynchronize(device->streams[s].stream);
}

void sc_cuda_destroy(struct sc_device **device)
{
    struct sc_device *gone = *device;
    if (!gone)
        return;
    bool failed = sc_failure_is_set(gone->world->setup.failure);
    if (failed)
        sc_cuda_abort(gone->world);
    sc_cuda_close_workers(gone);
    if (failed)
        drain(gone);
    delist(gone);
    sc_cuda_close_timing(gone);
    close_slots(gone);
    close_events(gone);
    if (gone->beside)
        cudaFree(gone->beside);
    sc_cuda_close_products(gone);
    close_streams(gone);
    close_arenas(gone);
    sc_rank_data_close(&gone->data);
    pthread_cond_destroy(&gone->moved);
    pthread_mutex_destroy(&gone->mutex);
    free(gone);
    *device = NULL;
}

static void init_locks(struct sc_device *device)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&device->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&device->moved, &attributes);
    pthread_condattr_destroy(&attributes);
}

enum sc_status sc_cuda_create(struct sc_world *world, int64_t rank, struct sc_device **out,
                              struct sc_error *err)
{
    struct sc_device *device = calloc(1, sizeof *device);
    if (!device)
        return sc_fail_memory(err, sizeof *device);
    device->world = world;
    device->number = world->first_device + (int)(rank - world->setup.first_rank);
    enum sc_status status = sc_rank_data_open(&device->data, &world->setup, rank, err);
    if (status != SC_OK) {
        free(device);
        return status;
    }
    init_locks(device);
    status = open_device(device, err);
    if (status != SC_OK) {
        sc_cuda_failed(device, status, err);
        sc_cuda_destroy(&device);
        return status;
    }
    *out = device;
    return SC_OK;
}
