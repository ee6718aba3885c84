/*
 * One thread runs the streams of all ranks. Among the streams whose head can run, the one of the
 * highest priority goes next. In a chaos run priorities are drawn, and three times a run the stream
 * that just ran goes behind all others (Burckhardt et al., "A randomized scheduler with
 * probabilistic guarantees of finding bugs", 2010): a stream far ahead of another is what a missing
 * wait needs to show. Without chaos the order is that of ranks and streams.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "exec/host/host_device.h"

static size_t streams_of(const struct sc_world *world)
{
    return world->setup.program->streams.count;
}

static int64_t all_operations(const struct sc_world *world)
{
    const struct sc_program *program = world->setup.program;
    int64_t total = 0;
    for (int64_t r = 0; r < world->setup.local_ranks; r++) {
        uint32_t class = sc_program_class_of(program, world->setup.first_rank + r);
        total += (int64_t)program->classes.items[class].step.ops.count;
    }
    return total * world->setup.steps;
}

static int64_t draw_below(struct sc_serial *serial, int64_t limit)
{
    return (int64_t)(sc_random_next(&serial->random) % (uint64_t)(limit > 0 ? limit : 1));
}

/* A random permutation of 1..count. */
static void draw_priorities(struct sc_serial *serial, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = draw_below(serial, i + 1), kept = serial->priority[i];
        serial->priority[i] = serial->priority[j];
        serial->priority[j] = kept;
    }
    for (int c = 0; c < 3; c++)
        serial->changes[c] = -1;
}

enum sc_status sc_serial_open(struct sc_world *world, struct sc_error *err)
{
    const struct sc_run_options *options = world->setup.options;
    struct sc_serial *serial = &world->serial;
    int64_t count = world->setup.local_ranks * (int64_t)streams_of(world);
    serial->priority = calloc((size_t)count + 1, sizeof *serial->priority);
    if (!serial->priority)
        return sc_fail_memory(err, (size_t)count * sizeof *serial->priority);
    serial->on = true;
    serial->random = options->chaos_seed;
    for (int64_t i = 0; i < count; i++)
        serial->priority[i] = count - i;
    for (int c = 0; c < 3; c++)
        serial->changes[c] = -1;
    if (!options->chaos)
        return SC_OK;
    draw_priorities(serial, count);
    for (int c = 0; c < 3; c++)
        serial->changes[c] = draw_below(serial, all_operations(world));
    return SC_OK;
}

void sc_serial_close(struct sc_world *world)
{
    free(world->serial.priority);
}

static struct sc_host_stream *stream_at(const struct sc_world *world, size_t index)
{
    size_t streams = streams_of(world);
    struct sc_device *device = world->devices[index / streams];
    return device ? &device->streams[index % streams] : NULL;
}

/* Waits, records and begins of collectives, as long as any stream moves. */
static enum sc_status settle_all(struct sc_world *world, bool *progress, struct sc_error *err)
{
    size_t count = (size_t)world->setup.local_ranks * streams_of(world);
    bool again = true;
    while (again) {
        again = false;
        for (size_t i = 0; i < count; i++) {
            struct sc_host_stream *stream = stream_at(world, i);
            bool moved = false;
            if (stream)
                SC_TRY(sc_host_settle(stream, &moved, err));
            again |= moved;
        }
        *progress |= again;
    }
    return SC_OK;
}

static struct sc_member *member_at(const struct sc_host_stream *stream)
{
    struct sc_call call = sc_host_call_of(stream, sc_host_head(stream));
    return stream->device->members[call.op->group];
}

static bool can_run(const struct sc_world *world, const struct sc_host_stream *stream)
{
    const struct sc_command *command = stream ? sc_host_head(stream) : NULL;
    if (!command || command->kind != SC_COMMAND_RUN)
        return false;
    return !stream->begun || world->transport->functions->gathered(member_at(stream));
}

/* Index of the stream to run, or the number of streams when none can. */
static size_t choose(const struct sc_world *world)
{
    size_t count = (size_t)world->setup.local_ranks * streams_of(world), best = count;
    for (size_t i = 0; i < count; i++) {
        if (!can_run(world, stream_at(world, i)))
            continue;
        if (best == count || world->serial.priority[i] > world->serial.priority[best])
            best = i;
    }
    return best;
}

static bool shares(const struct sc_world *world, const struct sc_host_stream *stream,
                   const void *group)
{
    return stream && stream->begun &&
           world->transport->functions->group(member_at(stream)) == group;
}

static void poison_members(struct sc_world *world, const void *group, bool open)
{
    size_t count = (size_t)world->setup.local_ranks * streams_of(world);
    for (size_t i = 0; world->setup.options->poison && i < count; i++) {
        struct sc_host_stream *stream = stream_at(world, i);
        if (!shares(world, stream, group))
            continue;
        struct sc_call call = sc_host_call_of(stream, sc_host_head(stream));
        if (open)
            sc_host_poison_open(&call);
        else
            sc_host_poison_shut(&call);
    }
}

/* One round over the members: *left says how many have not ended. */
static enum sc_status test_members(struct sc_world *world, const void *group, size_t *left,
                                   struct sc_error *err)
{
    size_t count = (size_t)world->setup.local_ranks * streams_of(world);
    *left = 0;
    for (size_t i = 0; i < count; i++) {
        struct sc_host_stream *stream = stream_at(world, i);
        bool done, moved;
        if (!shares(world, stream, group))
            continue;
        struct sc_call call = sc_host_call_of(stream, sc_host_head(stream));
        SC_TRY(world->transport->functions->test(stream->device->members[call.op->group], &done,
                                                 &moved, err));
        *left += !done;
    }
    return SC_OK;
}

/* The heads of all members are done: they leave their queues. */
static enum sc_status end_members(struct sc_world *world, const void *group, struct sc_error *err)
{
    size_t count = (size_t)world->setup.local_ranks * streams_of(world);
    for (size_t i = 0; i < count; i++) {
        struct sc_host_stream *stream = stream_at(world, i);
        bool ran, moved;
        if (shares(world, stream, group))
            SC_TRY(sc_host_run_head(stream, &ran, &moved, err));
    }
    return SC_OK;
}

/* A collective of all its members at once. */
static enum sc_status run_collective(struct sc_world *world, const struct sc_host_stream *chosen,
                                     struct sc_error *err)
{
    const void *group = world->transport->functions->group(member_at(chosen));
    size_t left;
    poison_members(world, group, true);
    do {
        SC_TRY(test_members(world, group, &left, err));
    } while (left > 0);
    poison_members(world, group, false);
    return end_members(world, group, err);
}

/* The stream that just ran goes behind all others where the run changes. */
static void change_order(struct sc_serial *serial, size_t ran)
{
    serial->ran++;
    for (int c = 0; c < 3; c++)
        if (serial->changes[c] == serial->ran)
            serial->priority[ran] = --serial->lowest;
}

enum sc_status sc_serial_advance(struct sc_world *world, bool *progress, struct sc_error *err)
{
    size_t count = (size_t)world->setup.local_ranks * streams_of(world);
    *progress = false;
    SC_TRY(settle_all(world, progress, err));
    size_t next = choose(world);
    if (next == count)
        return SC_OK;
    *progress = true;
    struct sc_host_stream *stream = stream_at(world, next);
    bool ran, moved;
    if (stream->begun)
        SC_TRY(run_collective(world, stream, err));
    else
        SC_TRY(sc_host_run_head(stream, &ran, &moved, err));
    change_order(&world->serial, next);
    return SC_OK;
}
