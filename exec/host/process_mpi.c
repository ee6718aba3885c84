/*
 * The processes of MPI_COMM_WORLD. Waits are tests with sleeps between them, since a blocking MPI
 * call spins on the core that another rank may need.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/clock.h"
#include "exec/host/mpi_check.h"
#include "exec/process.h"

enum { TAG_FAILURE = 1, TAG_CLOCK = 2, CLOCK_ROUNDS = 20 };

/* Notes of failures travel on a communicator of their own. */
struct world {
    MPI_Comm control, notes;
    MPI_Request *sends; /* [count]: of this process's own note */
    struct sc_error note;
    bool announced;
    bool *heard; /* [count]: whose note has been received */
};

struct functions {
    struct sc_process_functions base;
    struct world world;
};

static struct world *world_of(struct sc_process *process)
{
    return &((struct functions *)(uintptr_t)process->functions)->world;
}

/* Seldomer the longer it takes: who waits long takes nothing from a rank that is measured. */
static enum sc_status finish(MPI_Request *request, struct sc_error *err)
{
    int done = 0;
    for (long ns = 50000;; ns = ns < 2000000 ? ns + ns / 8 : ns) {
        SC_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE), err);
        if (done)
            return SC_OK;
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    }
}

static enum sc_status mpi_gather(struct sc_process *process, const void *bytes, size_t size,
                                 void *all, struct sc_error *err)
{
    MPI_Request request;
    if (size > (size_t)1 << 30)
        return sc_fail(err, SC_NO, "mpi: %zu bytes to gather from a process, at most 2^30", size);
    SC_MPI(MPI_Igather(bytes, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, 0,
                       world_of(process)->control, &request),
           err);
    return finish(&request, err);
}

static enum sc_status mpi_broadcast(struct sc_process *process, void *bytes, size_t size,
                                    struct sc_error *err)
{
    MPI_Request request;
    for (size_t at = 0; at < size; at += (size_t)1 << 28) {
        size_t piece = size - at < (size_t)1 << 28 ? size - at : (size_t)1 << 28;
        SC_MPI(MPI_Ibcast((char *)bytes + at, (int)piece, MPI_BYTE, 0, world_of(process)->control,
                          &request),
               err);
        SC_TRY(finish(&request, err));
    }
    return SC_OK;
}

/* Process 0 answers with its time; the asker keeps the answer of the shortest round, taken to be
 * of the middle of the round. */
static double ask_clock(struct sc_process *process)
{
    double best = 1e9, offset = 0, theirs = 0;
    MPI_Comm control = world_of(process)->control;
    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        double before = sc_clock();
        MPI_Sendrecv(&before, 1, MPI_DOUBLE, 0, TAG_CLOCK, &theirs, 1, MPI_DOUBLE, 0, TAG_CLOCK,
                     control, MPI_STATUS_IGNORE);
        double after = sc_clock();
        if (after - before < best) {
            best = after - before;
            offset = theirs - (before + after) / 2;
        }
    }
    return offset;
}

static double mpi_clock_offset(struct sc_process *process)
{
    MPI_Comm control = world_of(process)->control;
    double theirs = 0;
    if (process->node_count == process->count) /* one machine, one clock */
        return 0;
    if (process->index > 0)
        return ask_clock(process);
    for (int64_t p = 1; p < process->count; p++)
        for (int i = 0; i < CLOCK_ROUNDS; i++) {
            MPI_Recv(&theirs, 1, MPI_DOUBLE, (int)p, TAG_CLOCK, control, MPI_STATUS_IGNORE);
            double mine = sc_clock();
            MPI_Send(&mine, 1, MPI_DOUBLE, (int)p, TAG_CLOCK, control);
        }
    return 0;
}

static void mpi_announce(struct sc_process *process, const struct sc_error *failure)
{
    struct world *world = world_of(process);
    if (world->announced)
        return;
    world->announced = true;
    world->note = *failure;
    for (int64_t p = 0; p < process->count; p++)
        if (p != process->index)
            MPI_Isend(&world->note, (int)sizeof world->note, MPI_BYTE, (int)p, TAG_FAILURE,
                      world->notes, &world->sends[p]);
}

static void mpi_listen(struct sc_process *process, struct sc_failure *failure)
{
    struct world *world = world_of(process);
    int there = 0;
    MPI_Status from;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILURE, world->notes, &there, &from);
    if (!there)
        return;
    struct sc_error note;
    MPI_Recv(&note, (int)sizeof note, MPI_BYTE, from.MPI_SOURCE, TAG_FAILURE, world->notes,
             MPI_STATUS_IGNORE);
    world->heard[from.MPI_SOURCE] = true;
    sc_failure_set(failure, &note);
}

/* Everyone learns who sent notes and receives those that it has not heard. */
static void mpi_quiet(struct sc_process *process)
{
    struct world *world = world_of(process);
    int mine = world->announced;
    int *all = calloc((size_t)process->count, sizeof *all);
    struct sc_error note, err = SC_ERROR_INIT;
    MPI_Request request;
    if (!all || MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, world->control, &request) ||
        finish(&request, &err) != SC_OK) {
        free(all);
        return;
    }
    for (int64_t p = 0; p < process->count; p++)
        if (p != process->index && all[p] && !world->heard[p])
            MPI_Recv(&note, (int)sizeof note, MPI_BYTE, (int)p, TAG_FAILURE, world->notes,
                     MPI_STATUS_IGNORE);
    if (world->announced)
        MPI_Waitall((int)process->count, world->sends, MPI_STATUSES_IGNORE);
    world->announced = false;
    memset(world->heard, 0, (size_t)process->count * sizeof *world->heard);
    free(all);
}

static int free_world(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    struct functions *functions = value;
    MPI_Comm_free(&functions->world.control);
    MPI_Comm_free(&functions->world.notes);
    free(functions->world.sends);
    free(functions->world.heard);
    free(functions);
    return MPI_SUCCESS;
}

static enum sc_status make_world(int count, struct functions *functions, struct sc_error *err)
{
    struct world *world = &functions->world;
    functions->base = (struct sc_process_functions){
        .gather = mpi_gather,
        .broadcast = mpi_broadcast,
        .clock_offset = mpi_clock_offset,
        .announce = mpi_announce,
        .listen = mpi_listen,
        .quiet = mpi_quiet,
    };
    world->sends = calloc((size_t)count, sizeof(MPI_Request));
    world->heard = calloc((size_t)count, sizeof *world->heard);
    if (!world->sends || !world->heard)
        return sc_fail_memory(err, (size_t)count * sizeof(MPI_Request));
    for (int p = 0; p < count; p++)
        world->sends[p] = MPI_REQUEST_NULL;
    SC_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world->control), err);
    SC_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world->notes), err);
    return SC_OK;
}

static enum sc_status start(struct sc_error *err)
{
    int started = 0, provided = 0;
    SC_MPI(MPI_Initialized(&started), err);
    if (!started)
        SC_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided), err);
    else
        SC_MPI(MPI_Query_thread(&provided), err);
    if (provided < MPI_THREAD_MULTIPLE)
        return sc_fail(err, SC_MACHINE, "mpi: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return SC_OK;
}

/* The functions are an attribute of MPI_COMM_SELF: MPI_Finalize frees attributes first, while its
 * functions still work. */
static enum sc_status attach(struct sc_process *out, struct sc_error *err)
{
    int count = 0, key = MPI_KEYVAL_INVALID;
    SC_MPI(MPI_Comm_size(MPI_COMM_WORLD, &count), err);
    struct functions *functions = calloc(1, sizeof *functions);
    if (!functions)
        return sc_fail_memory(err, sizeof *functions);
    enum sc_status status = make_world(count, functions, err);
    if (status != SC_OK) {
        free(functions->world.sends);
        free(functions->world.heard);
        free(functions);
        return status;
    }
    SC_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_world, &key, NULL), err);
    SC_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, key, functions), err);
    out->functions = &functions->base;
    return SC_OK;
}

static enum sc_status place_on_node(struct sc_process *out, struct sc_error *err)
{
    MPI_Comm node;
    int index = 0, count = 0;
    SC_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), err);
    SC_MPI(MPI_Comm_rank(node, &index), err);
    SC_MPI(MPI_Comm_size(node, &count), err);
    SC_MPI(MPI_Comm_free(&node), err);
    out->node_index = index;
    out->node_count = count;
    return SC_OK;
}

enum sc_status sc_process_mpi(struct sc_process *out, struct sc_error *err)
{
    int index = 0, count = 0;
    SC_TRY(start(err));
    SC_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &index), err);
    SC_MPI(MPI_Comm_size(MPI_COMM_WORLD, &count), err);
    *out = (struct sc_process){.index = index, .count = count};
    SC_TRY(place_on_node(out, err));
    return attach(out, err);
}

void sc_process_end(void)
{
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (started && !ended)
        MPI_Finalize();
}
