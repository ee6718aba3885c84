/*
 * Collectives among processes, over TCP: a direct exchange. Each member sends every other its part
 * of the data, reduces its own part in rank order as the others' copies of it arrive, and sends the
 * result to all. What goes over one connection has one order (contributions, then results, then the
 * next collective), so nothing carries a header.
 *
 * A worker that has nothing to do sleeps in poll(); the kernel wakes it when a good piece has
 * arrived, not for every packet. Contributions wait in a small scratch, so that they are still in
 * the cache when they are reduced; the kernel's buffers hold the rest.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exec/host/sockets.h"
#include "exec/host/transport.h"

enum { SCRATCH_BYTES = 256 * 1024, WAKE_BYTES = 128 * 1024 };

/* One direction of the exchange with a peer: first `bytes[0]`, then `bytes[1]`. */
struct lane {
    int socket;
    size_t bytes[2], moved;
    bool ready; /* poll said so, or nobody has asked yet */
};

struct peer {
    struct sc_socket_link *link;
    struct lane out, in;
    const char *send[2];
    char *receive; /* of the second part; the first goes to scratch */
    char *scratch; /* [SCRATCH_BYTES] */
    size_t held;   /* bytes in scratch that are not reduced yet */
    int water;     /* SO_RCVLOWAT as it is set */
};

struct sc_member {
    struct sc_wake *wake;
    size_t index, members;
    struct peer *peers; /* [members]; one's own is unused */
    const float **x;    /* [members] */
    struct pollfd *at;  /* room for all links */
    struct sc_collective call;
    bool busy;
    size_t own_bytes, reduced; /* one's own part: how long, how much is done */
    const char *own;           /* one's own contribution to it */
    char *result;
};

struct sockets {
    struct sc_transport base;
    size_t groups, link_count;
    struct sc_member *members; /* [groups] */
    struct sc_socket_link *links;
};

/* ---- what a collective moves ----------------------------------------------------------------- */

static void plan_peer(const struct sc_member *member, size_t m)
{
    const struct sc_collective *call = &member->call;
    struct peer *peer = &member->peers[m];
    struct sc_transfer first = {0};
    struct sc_transfer second = sc_collective_result(call, member->index, member->members, m);
    if (sc_collective_reduces(call->kind))
        first = sc_collective_contribution(call, member->index, member->members, m);
    peer->out = (struct lane){
        .socket = peer->link->out, .bytes = {first.send_bytes, second.send_bytes}, .ready = true};
    peer->in = (struct lane){.socket = peer->link->in,
                             .bytes = {first.receive_bytes, second.receive_bytes},
                             .ready = true};
    peer->send[0] = first.send;
    peer->send[1] = second.send;
    peer->receive = second.receive;
    peer->held = 0;
}

/* One's own part of a reduction: where it comes from and goes to. */
static void plan_own(struct sc_member *member)
{
    const struct sc_collective *call = &member->call;
    bool whole = call->kind == SC_COLLECTIVE_ALL_REDUCE;
    member->reduced = member->own_bytes = 0;
    if (!sc_collective_reduces(call->kind))
        return;
    size_t begin = sc_collective_part(call, member->index, member->members, &member->own_bytes);
    member->own = (const char *)(whole ? call->y : call->x) + begin;
    member->result = (char *)call->y + (whole ? begin : 0);
}

static enum sc_status sockets_begin(struct sc_member *member,
                                    const struct sc_collective *collective, struct sc_error *err)
{
    (void)err;
    member->call = *collective;
    member->busy = true;
    sc_collective_keep_own(collective, member->index, member->members);
    plan_own(member);
    if (member->members == 1)
        member->reduced = member->own_bytes;
    for (size_t m = 0; m < member->members; m++)
        if (m != member->index)
            plan_peer(member, m);
    return SC_OK;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static enum sc_status lost(const struct sc_member *member, size_t m, const char *why,
                           struct sc_error *err)
{
    return sc_fail(err, SC_MACHINE, "sockets: lost process %lld: %s",
                   (long long)member->peers[m].link->peer, why);
}

/* How far a peer may be sent to now: results as far as they are there. */
static size_t sendable(const struct sc_member *member, const struct peer *peer)
{
    bool waits = sc_collective_reduces(member->call.kind) && peer->out.bytes[1] > 0;
    return peer->out.bytes[0] + (waits ? member->reduced : peer->out.bytes[1]);
}

static enum sc_status send_some(struct sc_member *member, size_t m, bool *moved,
                                struct sc_error *err)
{
    struct peer *peer = &member->peers[m];
    struct lane *out = &peer->out;
    size_t limit = sendable(member, peer);
    while (out->ready && out->moved < limit) {
        bool second = out->moved >= out->bytes[0];
        size_t at = second ? out->moved - out->bytes[0] : out->moved;
        size_t end = second ? limit - out->bytes[0] : out->bytes[0];
        ssize_t sent =
            send(out->socket, peer->send[second] + at, end - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return lost(member, m, strerror(errno), err);
        out->ready = sent == (ssize_t)(end - at);
        out->moved += sent > 0 ? (size_t)sent : 0;
        *moved |= sent > 0;
    }
    return SC_OK;
}

/* Where the next bytes of a peer go, and how many there is room for. */
static char *landing(const struct peer *peer, size_t *room)
{
    const struct lane *in = &peer->in;
    if (in->moved >= in->bytes[0]) {
        *room = in->bytes[0] + in->bytes[1] - in->moved;
        return peer->receive + (in->moved - in->bytes[0]);
    }
    size_t left = in->bytes[0] - in->moved;
    *room = SCRATCH_BYTES - peer->held;
    *room = left < *room ? left : *room;
    return peer->scratch + peer->held;
}

static bool wants(const struct peer *peer)
{
    size_t room = 0;
    if (peer->in.moved == peer->in.bytes[0] + peer->in.bytes[1])
        return false;
    landing(peer, &room);
    return room > 0;
}

static enum sc_status receive_some(struct sc_member *member, size_t m, bool *moved,
                                   struct sc_error *err)
{
    struct peer *peer = &member->peers[m];
    struct lane *in = &peer->in;
    while (in->ready && wants(peer)) {
        bool first = in->moved < in->bytes[0];
        size_t room = 0;
        char *to = landing(peer, &room);
        ssize_t got = recv(in->socket, to, room, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return lost(member, m, "it has closed the connection", err);
        if (got < 0 && errno != EAGAIN)
            return lost(member, m, strerror(errno), err);
        in->ready = got == (ssize_t)room;
        in->moved += got > 0 ? (size_t)got : 0;
        peer->held += got > 0 && first ? (size_t)got : 0;
        *moved |= got > 0;
    }
    return SC_OK;
}

/* ---- reducing -------------------------------------------------------------------------------- */

/* What all have contributed: whole elements, and not a few of them unless they are the last. */
static size_t contributed(const struct sc_member *member)
{
    size_t left = member->own_bytes - member->reduced, least = left;
    for (size_t m = 0; m < member->members; m++)
        if (m != member->index && member->peers[m].held < least)
            least = member->peers[m].held;
    least -= least % sizeof(float);
    return least == left || least >= WAKE_BYTES / 2 ? least : 0;
}

static void reduce(struct sc_member *member, size_t bytes)
{
    for (size_t m = 0; m < member->members; m++)
        member->x[m] =
            (const float *)(const void *)(m == member->index ? member->own + member->reduced
                                                             : member->peers[m].scratch);
    sc_collective_reduce(member->call.reduction, member->x, member->members,
                         (float *)(void *)(member->result + member->reduced),
                         bytes / sizeof(float));
    member->reduced += bytes;
    for (size_t m = 0; m < member->members; m++) {
        struct peer *peer = &member->peers[m];
        if (m == member->index)
            continue;
        peer->held -= bytes;
        memmove(peer->scratch, peer->scratch + bytes, peer->held);
    }
}

static enum sc_status advance(struct sc_member *member, bool *moved, struct sc_error *err)
{
    for (size_t m = 0; m < member->members; m++)
        if (m != member->index)
            SC_TRY(send_some(member, m, moved, err));
    for (size_t m = 0; m < member->members; m++)
        if (m != member->index)
            SC_TRY(receive_some(member, m, moved, err));
    size_t bytes = member->reduced < member->own_bytes ? contributed(member) : 0;
    if (bytes > 0) {
        reduce(member, bytes);
        *moved = true;
    }
    return SC_OK;
}

static bool ended(const struct sc_member *member)
{
    bool all = member->reduced == member->own_bytes;
    for (size_t m = 0; m < member->members; m++) {
        const struct lane *out = &member->peers[m].out, *in = &member->peers[m].in;
        if (m != member->index)
            all &= out->moved == out->bytes[0] + out->bytes[1] &&
                   in->moved == in->bytes[0] + in->bytes[1];
    }
    return all;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* The kernel says that there is something to read when so much is there. */
static void set_water(struct peer *peer)
{
    size_t room = 0, left = peer->in.bytes[0] - peer->in.moved;
    landing(peer, &room);
    if (peer->in.moved < peer->in.bytes[0] && left < room)
        room = left;
    int water = room < WAKE_BYTES ? (int)room : WAKE_BYTES;
    if (water != peer->water &&
        setsockopt(peer->in.socket, SOL_SOCKET, SO_RCVLOWAT, &water, sizeof water) == 0)
        peer->water = water;
}

/* What a busy member waits for; returns how many. */
static size_t list(const struct sc_member *member, struct pollfd *out)
{
    size_t count = 0;
    for (size_t m = 0; member->busy && m < member->members; m++) {
        struct peer *peer = &member->peers[m];
        if (m == member->index)
            continue;
        if (peer->out.moved < sendable(member, peer))
            out[count++] = (struct pollfd){peer->out.socket, POLLOUT, 0};
        if (wants(peer)) {
            set_water(peer);
            out[count++] = (struct pollfd){peer->in.socket, POLLIN, 0};
        }
    }
    return count;
}

static void note_ready(const struct sc_member *member, const struct pollfd *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t m = 0; at[i].revents && m < member->members; m++) {
            struct peer *peer = &member->peers[m];
            if (m != member->index && at[i].fd == peer->out.socket)
                peer->out.ready = true;
            if (m != member->index && at[i].fd == peer->in.socket)
                peer->in.ready = true;
        }
}

/* All that the worker of `wake` waits for; the array is its own. */
static struct pollfd *list_all(struct sockets *sockets, const struct sc_wake *wake, size_t *count)
{
    struct pollfd *at = NULL;
    *count = 0;
    for (size_t g = 0; g < sockets->groups; g++) {
        struct sc_member *member = &sockets->members[g];
        if (member->wake != wake)
            continue;
        at = at ? at : member->at;
        *count += list(member, at + *count);
    }
    return at;
}

static void sockets_wait(struct sc_transport *transport, struct sc_wake *wake, unsigned ticket,
                         int64_t limit_ns)
{
    struct sockets *sockets = (struct sockets *)transport;
    size_t count = 0;
    struct pollfd *at = list_all(sockets, wake, &count);
    if (!at) {
        sc_wake_sleep(wake, ticket, 0, limit_ns);
        return;
    }
    sc_wake_poll(wake, ticket, at, count, limit_ns);
    for (size_t g = 0; g < sockets->groups; g++)
        if (sockets->members[g].wake == wake && sockets->members[g].busy)
            note_ready(&sockets->members[g], at, count);
}

/* Who tests without sleeping asks the kernel here. */
static enum sc_status look_and_advance(struct sc_member *member, bool *moved, struct sc_error *err)
{
    size_t count = list(member, member->at);
    if (poll(member->at, count, 0) <= 0)
        return SC_OK;
    note_ready(member, member->at, count);
    return advance(member, moved, err);
}

static enum sc_status sockets_test(struct sc_member *member, bool *done, bool *moved,
                                   struct sc_error *err)
{
    *done = *moved = false;
    SC_TRY(advance(member, moved, err));
    if (!*moved && !ended(member))
        SC_TRY(look_and_advance(member, moved, err));
    *done = ended(member);
    member->busy = !*done;
    return SC_OK;
}

/* ---- the transport --------------------------------------------------------------------------- */

static struct sc_member *sockets_member(struct sc_transport *transport, size_t group, int64_t rank,
                                        struct sc_wake *wake)
{
    struct sc_member *member = &((struct sockets *)transport)->members[group];
    (void)rank;
    member->wake = wake;
    if (wake)
        sc_wake_make_pollable(wake);
    return member;
}

static void close_member(struct sc_member *member)
{
    for (size_t m = 0; member->peers && m < member->members; m++)
        free(member->peers[m].scratch);
    free(member->peers);
    free(member->x);
    free(member->at);
}

static void sockets_close(struct sc_transport *transport)
{
    struct sockets *sockets = (struct sockets *)transport;
    for (size_t g = 0; sockets->members && g < sockets->groups; g++)
        close_member(&sockets->members[g]);
    if (sockets->links)
        sc_sockets_disconnect(sockets->links, sockets->link_count);
    free(sockets->members);
    free(sockets->links);
    free(sockets);
}

static const struct sc_transport_functions functions = {
    .member = sockets_member,
    .begin = sockets_begin,
    .test = sockets_test,
    .wait = sockets_wait,
    .gathered = sc_member_always_gathered,
    .group = sc_member_as_group,
    .close = sockets_close,
};

static size_t group_size(const struct sc_transport_setup *setup, size_t group)
{
    return (size_t)sc_mesh_group_size(setup->mesh, setup->axis_masks[group]);
}

static enum sc_status open_member(const struct sc_transport_setup *setup, size_t group,
                                  size_t links, struct sc_member *member, struct sc_error *err)
{
    member->members = group_size(setup, group);
    member->index =
        (size_t)sc_mesh_group_index(setup->mesh, setup->axis_masks[group], setup->first_rank);
    member->peers = calloc(member->members, sizeof *member->peers);
    member->x = calloc(member->members, sizeof *member->x);
    member->at = calloc(2 * links + 1, sizeof *member->at);
    if (!member->peers || !member->x || !member->at)
        return sc_fail_memory(err, (member->members + links) * sizeof *member->peers);
    for (size_t m = 0; m < member->members; m++)
        if (m != member->index && !(member->peers[m].scratch = malloc(SCRATCH_BYTES)))
            return sc_fail_memory(err, SCRATCH_BYTES);
    return SC_OK;
}

/* The member's peers get the links that begin at `links`, in group order. */
static enum sc_status give_links(const struct sc_transport_setup *setup, size_t group,
                                 struct sc_member *member, struct sc_socket_link *links,
                                 struct sc_error *err)
{
    int64_t *ranks = calloc(member->members, sizeof *ranks);
    if (!ranks)
        return sc_fail_memory(err, member->members * sizeof *ranks);
    sc_mesh_group_members(setup->mesh, setup->axis_masks[group], setup->first_rank, ranks);
    for (size_t m = 0; m < member->members; m++) {
        if (m == member->index)
            continue;
        *links = (struct sc_socket_link){.group = group, .peer = ranks[m], .out = -1, .in = -1};
        member->peers[m].link = links++;
    }
    free(ranks);
    return SC_OK;
}

static enum sc_status open_members(const struct sc_transport_setup *setup, struct sockets *sockets,
                                   struct sc_error *err)
{
    size_t links = 0;
    for (size_t g = 0; g < setup->groups; g++)
        links += group_size(setup, g) - 1;
    sockets->members = calloc(setup->groups + 1, sizeof *sockets->members);
    sockets->links = calloc(links + 1, sizeof *sockets->links);
    if (!sockets->members || !sockets->links)
        return sc_fail_memory(err, (links + 1) * sizeof *sockets->links);
    sockets->groups = setup->groups;
    for (size_t g = 0; g < setup->groups; g++) {
        struct sc_member *member = &sockets->members[g];
        SC_TRY(open_member(setup, g, links, member, err));
        SC_TRY(give_links(setup, g, member, &sockets->links[sockets->link_count], err));
        sockets->link_count += member->members - 1;
    }
    return SC_OK;
}

enum sc_status sc_transport_sockets(const struct sc_transport_setup *setup,
                                    struct sc_transport **out, struct sc_error *err)
{
    struct sockets *sockets = calloc(1, sizeof *sockets);
    struct sc_process alone, *process = setup->process;
    sc_process_alone(&alone);
    process = process ? process : &alone;
    enum sc_status status = sockets ? SC_OK : sc_fail_memory(err, sizeof *sockets);
    if (sockets) {
        sockets->base = (struct sc_transport){&functions, "sockets", false};
        status = open_members(setup, sockets, err);
    }
    status = sc_process_agree(process, status, err);
    if (status == SC_OK)
        status = sc_sockets_connect(process, sockets->links, sockets->link_count, err);
    if (status != SC_OK) {
        if (sockets)
            sockets_close(&sockets->base);
        return status;
    }
    *out = &sockets->base;
    return SC_OK;
}
