/* The executor's calls: wait, dispatch, record, finish. */
#include <time.h>

#include "exec/clock.h"
#include "exec/cuda/cuda_device.h"
#include "exec/process.h"

/* ---- failures -------------------------------------------------------------------------------- */

/* So far ahead that every wait ends: cuStreamWaitValue32 compares as signed numbers. */
#define FLAG_END 0x40000000u

static void set_flags(struct sc_device *device)
{
    pthread_mutex_lock(&device->mutex);
    for (size_t e = 0; device->flags && e < device->event_count; e++)
        atomic_store(&device->flags[e], FLAG_END);
    pthread_cond_broadcast(&device->moved);
    pthread_mutex_unlock(&device->mutex);
}

void sc_cuda_abort(struct sc_world *world)
{
    pthread_mutex_lock(&world->mutex);
    if (!world->aborted) {
        world->aborted = true;
        sc_cuda_abort_communicators(world);
        for (int64_t r = 0; r < world->setup.local_ranks; r++)
            if (world->devices[r])
                set_flags(world->devices[r]);
    }
    pthread_mutex_unlock(&world->mutex);
}

enum sc_status sc_cuda_failed(struct sc_device *device, enum sc_status status, struct sc_error *err)
{
    if (status == SC_OK)
        return SC_OK;
    sc_failure_set(device->world->setup.failure, err);
    sc_cuda_abort(device->world);
    return status;
}

static enum sc_status look(struct sc_device *device, struct sc_error *err)
{
    return sc_failure_get(device->world->setup.failure, err);
}

/* ---- wait ------------------------------------------------------------------------------------ */

static enum sc_status wait_for_flag(struct sc_device *device, int stream, uint32_t event,
                                    int64_t step, struct sc_error *err)
{
    CUdeviceptr flag = (CUdeviceptr)(uintptr_t)&device->flags[event];
    return sc_driver_ok(device->world->wait_value(device->streams[stream].stream, flag,
                                                  (cuuint32_t)step + 1, CU_STREAM_WAIT_VALUE_GEQ),
                        err, "cuStreamWaitValue32");
}

static enum sc_status append_wait(struct sc_device *device, int stream, uint32_t event,
                                  int64_t step, struct sc_error *err)
{
    SC_TRY(look(device, err));
    if (sc_cuda_is_host(device, stream)) {
        sc_cuda_push(device, stream,
                     (struct sc_cuda_command){.kind = SC_CUDA_WAIT, .index = event, .step = step});
        return SC_OK;
    }
    if (sc_cuda_is_host(device, sc_cuda_stream_of(device, event)))
        return wait_for_flag(device, stream, event, step, err);
    return sc_cuda_ok(
        cudaStreamWaitEvent(device->streams[stream].stream, *sc_cuda_event(device, event, step), 0),
        err, "cudaStreamWaitEvent");
}

/* Steps that ended before this one was issued need no wait; a worker would look too late at an
 * event that is recorded again by then. */
enum sc_status sc_cuda_wait(struct sc_device *device, int stream, uint32_t event, int64_t step,
                            struct sc_error *err)
{
    if (event < device->data.class->step.ops.count &&
        step + (int64_t)device->sets <= device->issued + 1)
        return look(device, err);
    return sc_cuda_failed(device, append_wait(device, stream, event, step, err), err);
}

/* ---- dispatch -------------------------------------------------------------------------------- */

/* Tests only: a rank that fails here, or whose process dies. */
static enum sc_status check_fault(const struct sc_call *call, struct sc_error *err)
{
    const struct sc_fault *fault = &call->rank->setup->options->fault;
    if (!fault->on || fault->rank != call->rank->rank || fault->step != call->step ||
        fault->op != call->index || call->list != &call->rank->class->step)
        return SC_OK;
    if (fault->die)
        sc_process_die();
    return sc_fail(err, SC_MACHINE, "made to fail");
}

/* An observer sees the operation alone: all before it on its stream has ended, nothing behind it
 * has begun. */
static enum sc_status observe(struct sc_device *device, const struct sc_call *call, bool before,
                              struct sc_error *err)
{
    const struct sc_observer *observer = &device->world->setup.options->observer;
    void (*function)(void *, struct sc_device *, int64_t, int64_t, uint32_t) =
        before ? observer->before : observer->after;
    if (!function || call->op->group >= 0)
        return SC_OK;
    SC_TRY(sc_cuda_ok(cudaStreamSynchronize(device->streams[call->op->stream].stream), err,
                      "cudaStreamSynchronize"));
    SC_TRY(look(device, err));
    function(observer->context, device, device->data.rank, call->step, call->index);
    return look(device, err);
}

static enum sc_status start_step_op(struct sc_device *device, const struct sc_call *call,
                                    struct sc_error *err)
{
    SC_TRY(check_fault(call, err));
    SC_TRY(observe(device, call, true, err));
    SC_TRY(sc_cuda_mark(device, call->index, call->step, true, err));
    SC_TRY(sc_cuda_start(call, err));
    SC_TRY(sc_cuda_mark(device, call->index, call->step, false, err));
    return observe(device, call, false, err);
}

static enum sc_status dispatch(struct sc_device *device, enum sc_list_name list, uint32_t op,
                               int64_t step, struct sc_error *err)
{
    SC_TRY(look(device, err));
    const struct sc_call call = sc_cuda_call(device, list, op, step);
    if (sc_cuda_is_host(device, call.op->stream)) {
        SC_TRY(sc_call_name_failure(&call, check_fault(&call, err), err));
        sc_cuda_push(device, call.op->stream,
                     (struct sc_cuda_command){
                         .kind = SC_CUDA_RUN, .list = (uint8_t)list, .index = op, .step = step});
        return SC_OK;
    }
    enum sc_status status =
        list == SC_LIST_STEP ? start_step_op(device, &call, err) : sc_cuda_start(&call, err);
    return sc_call_name_failure(&call, status, err);
}

enum sc_status sc_cuda_dispatch(struct sc_device *device, enum sc_list_name list, uint32_t op,
                                int64_t step, struct sc_error *err)
{
    if (list == SC_LIST_STEP) {
        device->issued = step;
        sc_cuda_issued(device, op, step);
    }
    SC_TRY(sc_cuda_failed(device, dispatch(device, list, op, step, err), err));
    /* Waits come before their operation: those of a step's first one are that step's already. */
    if (list == SC_LIST_STEP && op + 1 == device->data.class->step.ops.count)
        device->issued = step + 1;
    return SC_OK;
}

/* ---- record and finish ----------------------------------------------------------------------- */

static enum sc_status append_record(struct sc_device *device, int stream, uint32_t event,
                                    int64_t step, struct sc_error *err)
{
    SC_TRY(look(device, err));
    if (sc_cuda_is_host(device, stream)) {
        sc_cuda_push(
            device, stream,
            (struct sc_cuda_command){.kind = SC_CUDA_RECORD, .index = event, .step = step});
        return SC_OK;
    }
    return sc_cuda_ok(
        cudaEventRecord(*sc_cuda_event(device, event, step), device->streams[stream].stream), err,
        "cudaEventRecord");
}

enum sc_status sc_cuda_record(struct sc_device *device, int stream, uint32_t event, int64_t step,
                              struct sc_error *err)
{
    return sc_cuda_failed(device, append_record(device, stream, event, step, err), err);
}

/* Other processes that fail are heard of only by asking. */
static enum sc_status poll_event(struct sc_device *device, cudaEvent_t event, struct sc_error *err)
{
    const struct sc_backend_setup *setup = &device->world->setup;
    const struct timespec pause = {.tv_nsec = 50000};
    for (;;) {
        cudaError_t code = cudaEventQuery(event);
        if (code != cudaErrorNotReady)
            return sc_cuda_ok(code, err, "cudaEventQuery");
        sc_process_listen(setup->process, setup->failure);
        SC_TRY(look(device, err));
        nanosleep(&pause, NULL);
    }
}

static enum sc_status finish(struct sc_device *device, uint32_t event, int64_t step,
                             struct sc_error *err)
{
    int stream = sc_cuda_stream_of(device, event);
    SC_TRY(look(device, err));
    if (sc_cuda_is_host(device, stream)) {
        sc_cuda_await_flag(device, event, step);
    } else {
        cudaEvent_t at = *sc_cuda_event(device, event, step);
        if (device->world->setup.process)
            SC_TRY(poll_event(device, at, err));
        else
            SC_TRY(sc_cuda_ok(cudaEventSynchronize(at), err, "cudaEventSynchronize"));
    }
    SC_TRY(look(device, err));
    if (event < device->data.class->step.ops.count)
        return sc_cuda_step_finished(device, stream, step, err);
    return SC_OK;
}

enum sc_status sc_cuda_finish(struct sc_device *device, uint32_t event, int64_t step,
                              struct sc_error *err)
{
    return sc_cuda_failed(device, finish(device, event, step, err), err);
}
