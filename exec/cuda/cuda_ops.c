/* Operations on a device stream: how kernels, copies and clearing start; which kinds there are. */
#include "exec/cuda/cuda_device.h"
#include "exec/cuda/cuda_kernels.h"

/* ---- the machine: a stream ------------------------------------------------------------------- */

static enum sc_status start_kernel(const struct sc_call *call, enum sc_kernel_id kernel,
                                   const void *args, int64_t count, int64_t columns,
                                   struct sc_error *err)
{
    const struct sc_cuda_stream *at = call->where;
    return sc_cuda_launch(kernel, args, count, columns, at->device->processors, at->stream, err);
}

/* Addresses say which place they are in. */
static enum sc_status copy_rows(const struct sc_call *call, const struct sc_row_copy *copy,
                                struct sc_error *err)
{
    const struct sc_cuda_stream *at = call->where;
    if (copy->rows == 1)
        return sc_cuda_ok(
            cudaMemcpyAsync(copy->to, copy->from, copy->bytes, cudaMemcpyDefault, at->stream), err,
            "cudaMemcpyAsync of %zu bytes", copy->bytes);
    return sc_cuda_ok(
        cudaMemcpy2DAsync(copy->to, copy->to_pitch, copy->from, copy->from_pitch, copy->bytes,
                          (size_t)copy->rows, cudaMemcpyDefault, at->stream),
        err, "cudaMemcpy2DAsync of %lld rows of %zu bytes", (long long)copy->rows, copy->bytes);
}

static enum sc_status clear(const struct sc_call *call, void *to, size_t bytes,
                            struct sc_error *err)
{
    const struct sc_cuda_stream *at = call->where;
    return sc_cuda_ok(cudaMemsetAsync(to, 0, bytes, at->stream), err,
                      "cudaMemsetAsync of %zu bytes", bytes);
}

static const struct sc_call_machine machine = {start_kernel, copy_rows, clear};

/* ---- operations ------------------------------------------------------------------------------ */

/* Besides its value, read_out leaves the elements in a slot of the step, since the value may be
 * overwritten before anybody looks. */
static enum sc_status read_out(const struct sc_call *call, struct sc_error *err)
{
    const struct sc_cuda_stream *at = call->where;
    const struct sc_device *device = at->device;
    struct sc_view x = sc_call_view(call, SC_ROLE_X), y = sc_call_view(call, SC_ROLE_Y);
    size_t set = (size_t)call->step % device->sets, ops = device->data.class->step.ops.count;
    size_t element = sizeof(float), row = (size_t)x.value->cols * element;
    const struct sc_row_copy copy = {
        .from = x.data,
        .to = device->slots[set * ops + call->index],
        .bytes = row,
        .from_pitch = (size_t)x.value->row_stride * element,
        .to_pitch = row,
        .rows = x.value->rows,
    };
    SC_TRY(call->machine->copy(call, &copy, err));
    return sc_call_copy(call, &x, &y, err);
}

static enum sc_status host_wait(const struct sc_call *call, struct sc_error *err)
{
    (void)call;
    (void)err;
    return SC_OK;
}

/* Kinds that are more than kernels, copies and clearing. */
static sc_op_fn *const functions[SC_OP_KIND_COUNT] = {
    [SC_GEMM] = sc_cuda_gemm,
    [SC_BATCHED_GEMM] = sc_cuda_batched_gemm,
    [SC_READ_OUT] = read_out,
    [SC_HOST_WAIT] = host_wait,
    [SC_NEXT_BATCH] = sc_op_next_batch, /* a worker's */
    [SC_ALL_REDUCE] = sc_cuda_collective,
    [SC_REDUCE_SCATTER] = sc_cuda_collective,
    [SC_ALL_GATHER] = sc_cuda_collective,
    [SC_BROADCAST] = sc_cuda_collective,
};

/* A new kind needs a row above or in op_functions.c, or to be refused on purpose. */
_Static_assert(SC_OP_KIND_COUNT == 36, "a kind was added: give the CUDA backend a function for it");

bool sc_cuda_supports(enum sc_op_kind kind)
{
    return functions[kind] || sc_op_function(kind);
}

struct sc_call sc_cuda_call(struct sc_device *device, enum sc_list_name list, uint32_t op,
                            int64_t step)
{
    const struct sc_list *ops = sc_cuda_list(device, list);
    struct sc_cuda_stream *stream = &device->streams[ops->ops.items[op].stream];
    return (struct sc_call){
        .rank = &device->data,
        .list = ops,
        .op = &ops->ops.items[op],
        .index = op,
        .step = step,
        .machine = &machine,
        .where = stream,
        .scratch = stream->scratch,
    };
}

enum sc_status sc_cuda_start(const struct sc_call *call, struct sc_error *err)
{
    enum sc_op_kind kind = (enum sc_op_kind)call->op->kind;
    sc_op_fn *function = functions[kind] ? functions[kind] : sc_op_function(kind);
    if (!function)
        return sc_fail(err, SC_BUG, "cuda: operation kind %s has no function",
                       sc_op_kind_name(kind));
    return function(call, err);
}
