/* Copies of gradients and parameters around `adam`, put together as full tensors. */
#include "exec/snapshot.h"

#include <stdlib.h>
#include <string.h>

static const struct sc_class *class_of(const struct sc_snapshot *snapshot, int64_t rank)
{
    return &snapshot->program->classes.items[sc_program_class_of(snapshot->program, rank)];
}

/* One operand's elements into the flat form. */
static void take(struct sc_snapshot *snapshot, struct sc_device *device, int64_t rank, int64_t step,
                 uint32_t op, enum sc_role role, struct sc_flat *flat)
{
    const struct sc_list *list = &class_of(snapshot, rank)->step;
    const struct sc_operand *operand = sc_op_operand(list, &list->ops.items[op], role);
    int64_t index = rank - snapshot->first_rank, coordinates[SC_AXIS_COUNT];
    float *room = snapshot->room + index * flat->elements;
    struct sc_error err = SC_ERROR_INIT;
    if (!operand)
        return;
    const struct sc_value *value = &class_of(snapshot, rank)->values.items[operand->value];
    int64_t count = value->rows * value->cols;
    sc_mesh_coordinates(&snapshot->program->mesh, rank, coordinates);
    int64_t first = sc_flat_of_value(snapshot->program, operand->value, coordinates);
    if (first < 0 || value->dtype != SC_FP32 || count > flat->elements ||
        snapshot->backend->read(device, operand->value, (enum sc_version)operand->version, step,
                                room, &err) != SC_OK)
        return;
    if (first + count > flat->elements) /* padding behind the last parameter ... */
        count = flat->elements - first;
    if (count <= 0) /* ... and nothing else: a shard of a small bucket on one of many ranks */
        return;
    memcpy(flat->data + first, room, (size_t)count * sizeof *room);
    memset(flat->have + first, 1, (size_t)count);
}

static bool is_adam(const struct sc_snapshot *snapshot, int64_t rank, int64_t step, uint32_t op)
{
    return step == snapshot->step && class_of(snapshot, rank)->step.ops.items[op].kind == SC_ADAM;
}

static void before(void *context, struct sc_device *device, int64_t rank, int64_t step, uint32_t op)
{
    struct sc_snapshot *snapshot = context;
    if (is_adam(snapshot, rank, step, op))
        take(snapshot, device, rank, step, op, SC_ROLE_GRADIENT,
             &snapshot->gradients[rank - snapshot->first_rank]);
    if (snapshot->next.before)
        snapshot->next.before(snapshot->next.context, device, rank, step, op);
}

static void after(void *context, struct sc_device *device, int64_t rank, int64_t step, uint32_t op)
{
    struct sc_snapshot *snapshot = context;
    if (is_adam(snapshot, rank, step, op))
        take(snapshot, device, rank, step, op, SC_ROLE_PARAMETER,
             &snapshot->parameters[rank - snapshot->first_rank]);
    if (snapshot->next.after)
        snapshot->next.after(snapshot->next.context, device, rank, step, op);
}

/* Buckets are padded: a value may be a little longer than the parameters. */
static int64_t room_elements(const struct sc_program *program)
{
    int64_t most = sc_flat_elements(program);
    for (size_t c = 0; c < program->classes.count; c++) {
        const struct sc_list *list = &program->classes.items[c].step;
        for (size_t i = 0; i < list->ops.count; i++) {
            const struct sc_op *op = &list->ops.items[i];
            const struct sc_value *value =
                sc_op_value(&program->classes.items[c], list, op, SC_ROLE_GRADIENT);
            if (op->kind == SC_ADAM && value && value->rows * value->cols > most)
                most = value->rows * value->cols;
        }
    }
    return most;
}

static enum sc_status open_flats(struct sc_snapshot *snapshot, int64_t elements,
                                 struct sc_error *err)
{
    size_t ranks = (size_t)snapshot->ranks;
    snapshot->gradients = calloc(ranks, sizeof *snapshot->gradients);
    snapshot->parameters = calloc(ranks, sizeof *snapshot->parameters);
    snapshot->room = calloc(ranks * (size_t)elements + 1, sizeof *snapshot->room);
    if (!snapshot->gradients || !snapshot->parameters || !snapshot->room)
        return sc_fail_memory(err, ranks * (size_t)elements * sizeof *snapshot->room);
    for (size_t r = 0; r < ranks; r++) {
        SC_TRY(sc_flat_create(elements, &snapshot->gradients[r], err));
        SC_TRY(sc_flat_create(elements, &snapshot->parameters[r], err));
    }
    return SC_OK;
}

enum sc_status sc_snapshot_open(struct sc_snapshot *snapshot, const struct sc_backend *backend,
                                const struct sc_program *program, struct sc_run_options *options,
                                int64_t first_rank, int64_t ranks, struct sc_error *err)
{
    *snapshot = (struct sc_snapshot){.backend = backend,
                                     .program = program,
                                     .step = options->snapshot_step,
                                     .first_rank = first_rank,
                                     .ranks = ranks,
                                     .next = options->observer};
    if (options->snapshot_step < 0 && !options->save_file)
        return SC_OK;
    SC_TRY(open_flats(snapshot, room_elements(program), err));
    if (options->snapshot_step >= 0)
        options->observer =
            (struct sc_observer){.before = before, .after = after, .context = snapshot};
    return SC_OK;
}

void sc_snapshot_close(struct sc_snapshot *snapshot)
{
    for (int64_t r = 0; r < snapshot->ranks; r++) {
        if (snapshot->gradients)
            sc_flat_free(&snapshot->gradients[r]);
        if (snapshot->parameters)
            sc_flat_free(&snapshot->parameters[r]);
    }
    free(snapshot->gradients);
    free(snapshot->parameters);
    free(snapshot->room);
    *snapshot = (struct sc_snapshot){.step = -1};
}

enum sc_status sc_snapshot_read_parameters(struct sc_snapshot *snapshot, int64_t index,
                                           struct sc_device *device, int64_t step,
                                           struct sc_error *err)
{
    const struct sc_program *program = snapshot->program;
    struct sc_flat *flat = &snapshot->parameters[index];
    for (size_t i = 0; i < program->parameters.count; i++) {
        const struct sc_parameter *p = &program->parameters.items[i];
        SC_TRY(snapshot->backend->read(device, p->value, SC_NOW, step, flat->data + p->flat, err));
        memset(flat->have + p->flat, 1, (size_t)(p->rows * p->cols));
    }
    return SC_OK;
}

/* ---- gathering ------------------------------------------------------------------------------- */

static void collect(const struct sc_snapshot *snapshot, int64_t rank, const struct sc_flat *flat,
                    struct sc_tensors *tensors)
{
    int64_t coordinates[SC_AXIS_COUNT];
    sc_mesh_coordinates(&snapshot->program->mesh, rank, coordinates);
    sc_tensors_collect(snapshot->program, coordinates, flat, tensors);
}

/* The pieces of all processes, one rank each, arrive at process 0. */
static enum sc_status collect_processes(const struct sc_snapshot *snapshot,
                                        struct sc_process *process, const struct sc_flat *mine,
                                        struct sc_tensors *tensors, struct sc_error *err)
{
    size_t elements = (size_t)mine->elements, count = (size_t)process->count;
    bool root = process->index == 0;
    float *data = root ? malloc(elements * count * sizeof *data + 1) : NULL;
    uint8_t *have = root ? malloc(elements * count + 1) : NULL;
    enum sc_status status = SC_OK;
    if (root && (!data || !have))
        status = sc_fail_memory(err, elements * count * sizeof *data);
    status = sc_process_agree(process, status, err);
    if (status == SC_OK)
        status = sc_process_gather(process, mine->data, elements * sizeof *data, data, err);
    if (status == SC_OK)
        status = sc_process_gather(process, mine->have, elements, have, err);
    for (size_t r = 0; status == SC_OK && root && r < count; r++) {
        const struct sc_flat flat = {mine->elements, data + r * elements, have + r * elements};
        collect(snapshot, (int64_t)r, &flat, tensors);
    }
    free(data);
    free(have);
    return status;
}

static enum sc_status gather(const struct sc_snapshot *snapshot, struct sc_process *process,
                             const struct sc_flat *flats, struct sc_tensors *out,
                             struct sc_error *err)
{
    struct sc_tensors made = {0};
    enum sc_status status = SC_OK;
    if (process->index == 0)
        status = sc_tensors_create(snapshot->program, &made, err);
    status = sc_process_agree(process, status, err);
    if (status == SC_OK && process->count > 1)
        status = collect_processes(snapshot, process, flats, &made, err);
    for (int64_t r = 0; status == SC_OK && process->count == 1 && r < snapshot->ranks; r++)
        collect(snapshot, r, &flats[r], &made);
    if (status != SC_OK) {
        sc_tensors_free(&made);
        return status;
    }
    *out = made;
    return SC_OK;
}

enum sc_status sc_snapshot_gather(const struct sc_snapshot *snapshot, struct sc_process *process,
                                  struct sc_tensors *gradients, struct sc_tensors *parameters,
                                  struct sc_error *err)
{
    if (gradients)
        SC_TRY(gather(snapshot, process, snapshot->gradients, gradients, err));
    return gather(snapshot, process, snapshot->parameters, parameters, err);
}
