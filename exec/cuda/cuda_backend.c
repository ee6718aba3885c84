/*
 * The CUDA backend: one GPU a rank, the kernels compiled by nvcc, cuBLASLt, NCCL. Element type
 * fp32, attention from products and softmax.
 *
 * Ranks are threads of one process, each with a GPU of its own, or processes. Nothing is allocated
 * while steps run; no call made there waits for a device but `finish`.
 */
#include <cudaTypedefs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/backend_list.h"
#include "exec/cuda/cuda_device.h"
#include "exec/process.h"

/* ---- what it can do -------------------------------------------------------------------------- */

static enum sc_status check_values(const struct sc_class *class, struct sc_error *err)
{
    for (size_t i = 0; i < class->values.count; i++) {
        enum sc_dtype dtype = class->values.items[i].dtype;
        if (dtype == SC_BF16 || dtype == SC_FP16)
            return sc_fail(err, SC_NO,
                           "backend cuda: found %s values in the plan, expected fp32 precision "
                           "everywhere (precision.parameters, activations, gradients, ...)",
                           sc_dtype_name(dtype));
    }
    for (size_t i = 0; i < class->buffers.count; i++)
        if (class->buffers.items[i].place == SC_DISK)
            return sc_fail(err, SC_NO, "backend cuda: it has no place disk yet");
    return SC_OK;
}

/* Collectives work on one run of bytes. */
static bool one_run(const struct sc_value *value)
{
    return !value || value->rows == 1 || value->row_stride == value->cols;
}

/* What a host stream does, and only it; host_wait is nothing anywhere. */
static bool is_misplaced(const struct sc_stream *stream, const struct sc_op *op)
{
    bool device = stream->engine == SC_ENGINE_DEVICE;
    return op->kind != SC_HOST_WAIT && device == (op->kind == SC_NEXT_BATCH);
}

static enum sc_status check_op(const struct sc_program *program, const struct sc_class *class,
                               const struct sc_list *list, size_t index, struct sc_error *err)
{
    const struct sc_op *op = &list->ops.items[index];
    const struct sc_stream *stream = &program->streams.items[op->stream];
    const char *kind = sc_op_kind_name((enum sc_op_kind)op->kind);
    if (op->kind == SC_ATTENTION || op->kind == SC_ATTENTION_BACKWARD)
        return sc_fail(err, SC_NO,
                       "backend cuda: found fused attention, expected attention.kernel "
                       "\"unfused\"");
    if (!sc_cuda_supports((enum sc_op_kind)op->kind))
        return sc_fail(err, SC_NO, "backend cuda: it cannot do operation kind %s yet", kind);
    if (is_misplaced(stream, op))
        return sc_fail(err, SC_NO, "backend cuda: operation %zu: it cannot do %s on stream %s",
                       index, kind, stream->name);
    if (op->group >= 0 && (!one_run(sc_op_value(class, list, op, SC_ROLE_X)) ||
                           !one_run(sc_op_value(class, list, op, SC_ROLE_Y))))
        return sc_fail(err, SC_NO, "backend cuda: operation %zu: %s of rows with gaps", index,
                       kind);
    return SC_OK;
}

static enum sc_status check_list(const struct sc_program *program, const struct sc_class *class,
                                 const struct sc_list *list, struct sc_error *err)
{
    for (size_t i = 0; i < list->ops.count; i++)
        SC_TRY(check_op(program, class, list, i, err));
    return SC_OK;
}

static enum sc_status cuda_check(const struct sc_program *program,
                                 const struct sc_run_options *options, struct sc_error *err)
{
    if (options->chaos || options->poison)
        return sc_fail(err, SC_USAGE, "backend cuda: chaos and poison are the host backend's");
    for (size_t c = 0; c < program->classes.count; c++) {
        const struct sc_class *class = &program->classes.items[c];
        SC_TRY(check_values(class, err));
        SC_TRY(check_list(program, class, &class->init, err));
        SC_TRY(check_list(program, class, &class->step, err));
    }
    return SC_OK;
}

/* ---- the world ------------------------------------------------------------------------------- */

/* One GPU for each rank on this machine: NCCL refuses two ranks of a communicator on one. */
static enum sc_status find_devices(struct sc_world *world, struct sc_error *err)
{
    const struct sc_process *process = world->setup.process;
    int64_t need = process ? process->node_count : world->setup.local_ranks;
    int found = 0;
    cudaError_t code = cudaGetDeviceCount(&found);
    if (code != cudaSuccess)
        return sc_fail(err, SC_MACHINE, "backend cuda: no usable GPU: cudaGetDeviceCount: %s",
                       cudaGetErrorString(code));
    if (found < need)
        return sc_fail(err, SC_MACHINE,
                       "backend cuda: found %d GPUs for %lld ranks here, expected "
                       "one each",
                       found, (long long)need);
    world->first_device = process ? (int)process->node_index : 0;
    return SC_OK;
}

/* The driver is asked for at run time, so that nothing of it is needed to link. */
static enum sc_status find_driver(struct sc_world *world, struct sc_error *err)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = NULL;
    SC_TRY(sc_cuda_ok(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 11070,
                                                       cudaEnableDefault, &found),
                      err, "cudaGetDriverEntryPointByVersion"));
    if (found != cudaDriverEntryPointSuccess || !function)
        return sc_fail(err, SC_MACHINE, "cuda: the driver has no cuStreamWaitValue32");
    memcpy(&world->wait_value, &function, sizeof world->wait_value);
    return SC_OK;
}

static enum sc_status open_world(struct sc_world *world, struct sc_error *err)
{
    size_t ranks = (size_t)world->setup.local_ranks;
    world->devices = calloc(ranks, sizeof *world->devices);
    enum sc_status mine = world->devices ? find_devices(world, err)
                                         : sc_fail_memory(err, ranks * sizeof *world->devices);
    if (mine == SC_OK)
        mine = find_driver(world, err);
    if (world->setup.process) /* making communicators needs all processes */
        mine = sc_process_agree(world->setup.process, mine, err);
    return mine == SC_OK ? sc_cuda_open_communicators(world, err) : mine;
}

static void cuda_close(struct sc_world **world)
{
    if (!*world)
        return;
    sc_cuda_close_communicators(*world);
    pthread_mutex_destroy(&(*world)->mutex);
    free((*world)->devices);
    free(*world);
    *world = NULL;
}

static enum sc_status cuda_open(const struct sc_backend_setup *setup, struct sc_world **out,
                                struct sc_error *err)
{
    struct sc_world *world = calloc(1, sizeof *world);
    if (!world)
        return sc_fail_memory(err, sizeof *world);
    world->setup = *setup;
    pthread_mutex_init(&world->mutex, NULL);
    enum sc_status status = open_world(world, err);
    if (status != SC_OK) {
        cuda_close(&world);
        return status;
    }
    *out = world;
    return SC_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

static enum sc_status read_rows(struct sc_device *device, const struct sc_value *v,
                                const char *from, void *to, struct sc_error *err)
{
    size_t element = sc_dtype_bytes(v->dtype), row = (size_t)v->cols * element;
    SC_TRY(sc_cuda_ok(cudaSetDevice(device->number), err, "cudaSetDevice %d", device->number));
    SC_TRY(sc_cuda_ok(cudaMemcpy2DAsync(to, row, from, (size_t)v->row_stride * element, row,
                                        (size_t)v->rows, cudaMemcpyDefault, device->reading),
                      err, "cudaMemcpy2DAsync of %lld rows of %zu bytes", (long long)v->rows, row));
    return sc_cuda_ok(cudaStreamSynchronize(device->reading), err, "cudaStreamSynchronize");
}

/* Nothing that changes the value is under way. An observer has no way to hand a failure on, so it
 * is kept here. */
static enum sc_status cuda_read(struct sc_device *device, uint32_t value, enum sc_version version,
                                int64_t step, void *to, struct sc_error *err)
{
    const struct sc_value *v = &device->data.class->values.items[value];
    const char *from = sc_rank_address(&device->data, value, version, step);
    if (!from)
        return SC_OK;
    return sc_cuda_failed(device, read_rows(device, v, from, to, err), err);
}

static const struct sc_stamp *cuda_stamps(const struct sc_device *device)
{
    return device->timing.stamps;
}

static const double *cuda_step_ends(const struct sc_device *device)
{
    return device->data.step_ends;
}

static const double *cuda_read_outs(const struct sc_device *device)
{
    return device->data.read_outs;
}

static void cuda_library(char *out, size_t size)
{
    int nccl = 0;
    if (ncclGetVersion(&nccl) != ncclSuccess)
        nccl = 0;
    snprintf(out, size, "cuBLASLt %zu, NCCL %d", cublasLtGetVersion(), nccl);
}

static void cuda_describe(const struct sc_world *world, char *out, size_t size)
{
    char library[128];
    cuda_library(library, sizeof library);
    snprintf(out, size, "%s, a GPU for each of %lld ranks", library,
             (long long)world->setup.local_ranks);
}

const struct sc_backend sc_backend_cuda = {
    .name = "cuda",
    .check = cuda_check,
    .open = cuda_open,
    .close = cuda_close,
    .create = sc_cuda_create,
    .destroy = sc_cuda_destroy,
    .wait = sc_cuda_wait,
    .dispatch = sc_cuda_dispatch,
    .record = sc_cuda_record,
    .finish = sc_cuda_finish,
    .read = cuda_read,
    .stamps = cuda_stamps,
    .step_ends = cuda_step_ends,
    .read_outs = cuda_read_outs,
    .device_apart = true,
    .describe = cuda_describe,
    .library = cuda_library,
};
