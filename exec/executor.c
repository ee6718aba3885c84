/* The executor: waits, dispatch, record, in issue order; steps_ahead steps under way at most. */
#include "exec/executor.h"

#include <stdlib.h>

enum { STREAMS_MAX = 256 };

struct sc_executor {
    const struct sc_backend *backend;
    struct sc_device *device;
    const struct sc_class *class;
    int64_t steps, next, steps_ahead;
    bool *awaited;             /* by operation of the step list: somebody waits for its event */
    int64_t last[STREAMS_MAX]; /* last operation of each stream, -1: none */
};

/* Operations that end a stream's step are awaited by the throttle. */
static void mark_awaited(struct sc_executor *executor)
{
    const struct sc_list *list = &executor->class->step;
    for (size_t i = 0; i < list->waits.count; i++)
        executor->awaited[list->waits.items[i].op] = true;
    for (int s = 0; s < STREAMS_MAX; s++)
        executor->last[s] = -1;
    for (size_t i = 0; i < list->ops.count; i++)
        executor->last[list->ops.items[i].stream] = (int64_t)i;
    for (int s = 0; s < STREAMS_MAX; s++)
        if (executor->last[s] >= 0)
            executor->awaited[executor->last[s]] = true;
}

enum sc_status sc_executor_create(const struct sc_backend *backend, struct sc_device *device,
                                  const struct sc_program *program, int64_t rank, int64_t steps,
                                  struct sc_executor **out, struct sc_error *err)
{
    struct sc_executor *executor = calloc(1, sizeof *executor);
    if (!executor)
        return sc_fail_memory(err, sizeof *executor);
    executor->backend = backend;
    executor->device = device;
    executor->class = &program->classes.items[sc_program_class_of(program, rank)];
    executor->steps = steps;
    executor->steps_ahead = program->steps_ahead > 0 ? program->steps_ahead : 2;
    size_t ops = executor->class->step.ops.count;
    executor->awaited = calloc(ops + 1, sizeof *executor->awaited);
    if (!executor->awaited) {
        free(executor);
        return sc_fail_memory(err, ops + 1);
    }
    mark_awaited(executor);
    *out = executor;
    return SC_OK;
}

void sc_executor_destroy(struct sc_executor **executor)
{
    if (*executor)
        free((*executor)->awaited);
    free(*executor);
    *executor = NULL;
}

static uint32_t init_event(const struct sc_executor *executor, size_t op)
{
    return (uint32_t)(executor->class->step.ops.count + op);
}

enum sc_status sc_executor_issue_init(struct sc_executor *executor, struct sc_error *err)
{
    const struct sc_backend *backend = executor->backend;
    const struct sc_list *list = &executor->class->init;
    for (size_t i = 0; i < list->ops.count; i++) {
        int stream = list->ops.items[i].stream;
        if (i > 0)
            SC_TRY(backend->wait(executor->device, stream, init_event(executor, i - 1), 0, err));
        SC_TRY(backend->dispatch(executor->device, SC_LIST_INIT, (uint32_t)i, 0, err));
        SC_TRY(backend->record(executor->device, stream, init_event(executor, i), 0, err));
    }
    return SC_OK;
}

enum sc_status sc_executor_finish_init(struct sc_executor *executor, struct sc_error *err)
{
    size_t ops = executor->class->init.ops.count;
    if (ops == 0)
        return SC_OK;
    return executor->backend->finish(executor->device, init_event(executor, ops - 1), 0, err);
}

bool sc_executor_init_done(const struct sc_executor *executor)
{
    size_t ops = executor->class->init.ops.count;
    return ops == 0 || executor->backend->done(executor->device, init_event(executor, ops - 1), 0);
}

static enum sc_status issue_op(struct sc_executor *executor, uint32_t index, struct sc_error *err)
{
    const struct sc_list *list = &executor->class->step;
    const struct sc_op *op = &list->ops.items[index];
    for (uint32_t i = 0; i < op->waits; i++) {
        const struct sc_wait *wait = &list->waits.items[op->first_wait + i];
        int64_t step = executor->next - wait->distance;
        if (step >= 0) /* before the first step there is nothing to wait for */
            SC_TRY(executor->backend->wait(executor->device, op->stream, wait->op, step, err));
    }
    SC_TRY(executor->backend->dispatch(executor->device, SC_LIST_STEP, index, executor->next, err));
    if (!executor->awaited[index])
        return SC_OK;
    return executor->backend->record(executor->device, op->stream, index, executor->next, err);
}

static enum sc_status issue_step(struct sc_executor *executor, struct sc_error *err)
{
    for (uint32_t i = 0; i < executor->class->step.ops.count; i++)
        SC_TRY(issue_op(executor, i, err));
    executor->next++;
    return SC_OK;
}

static bool step_ended(const struct sc_executor *executor, int64_t step)
{
    for (int s = 0; step >= 0 && s < STREAMS_MAX; s++) {
        int64_t last = executor->last[s];
        if (last >= 0 && !executor->backend->done(executor->device, (uint32_t)last, step))
            return false;
    }
    return true;
}

static enum sc_status finish_step(struct sc_executor *executor, int64_t step, struct sc_error *err)
{
    for (int s = 0; step >= 0 && s < STREAMS_MAX; s++) {
        int64_t last = executor->last[s];
        if (last >= 0)
            SC_TRY(executor->backend->finish(executor->device, (uint32_t)last, step, err));
    }
    return SC_OK;
}

enum sc_status sc_executor_try_step(struct sc_executor *executor, bool *issued,
                                    struct sc_error *err)
{
    *issued = false;
    if (executor->next >= executor->steps ||
        !step_ended(executor, executor->next - executor->steps_ahead))
        return SC_OK;
    *issued = true;
    return issue_step(executor, err);
}

enum sc_status sc_executor_run(struct sc_executor *executor, struct sc_error *err)
{
    while (executor->next < executor->steps) {
        SC_TRY(finish_step(executor, executor->next - executor->steps_ahead, err));
        SC_TRY(issue_step(executor, err));
    }
    return finish_step(executor, executor->steps - 1, err);
}

bool sc_executor_steps_done(const struct sc_executor *executor)
{
    return executor->next >= executor->steps && step_ended(executor, executor->steps - 1);
}
