/*
 * How processes find each other: all listen, then all connect to all, and while one waits for an
 * answer it lets others in, so that nobody waits for anybody in turn.
 */
#include "exec/host/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/clock.h"

enum { ADDRESSES_MAX = 12, GUESTS_MAX = 64, BUFFER_BYTES = 4 << 20 };

#define PATIENCE_S 30.0 /* for everything */
#define CONNECT_S 3.0   /* to one address */
#define ANSWER_S 10.0   /* by whoever is there: it may be busy starting */

/* What others need to reach a process. */
struct card {
    uint64_t number;  /* drawn for this run */
    char machine[64]; /* its kernel and network: equal where loopback joins two */
    uint16_t port;
    uint32_t count, addresses[ADDRESSES_MAX]; /* network byte order */
};

/* Said first by who connects; the answer is the number again. */
struct hello {
    uint64_t number; /* of whom it wants */
    int64_t from, group;
};

/* Has connected and not said all of its hello. */
struct guest {
    int socket;
    size_t got;
    struct hello hello;
};

struct meeting {
    struct sc_process *process;
    struct card *cards; /* [processes] */
    int listener;
    struct sc_socket_link *links;
    size_t count;
    double deadline;
    struct guest guests[GUESTS_MAX];
    size_t guest_count;
};

/* ---- one's own card -------------------------------------------------------------------------- */

static void name_machine(char *out, size_t size)
{
    char boot[40] = "";
    struct stat network = {0};
    FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (stream) {
        if (!fgets(boot, sizeof boot, stream))
            boot[0] = '\0';
        fclose(stream);
    }
    if (stat("/proc/self/ns/net", &network) != 0)
        network.st_ino = 0;
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(out, size, "%s %llu", boot, (unsigned long long)network.st_ino);
}

static void list_addresses(struct card *card)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return;
    for (struct ifaddrs *at = all; at && card->count < ADDRESSES_MAX; at = at->ifa_next) {
        bool usable = (at->ifa_flags & IFF_UP) && !(at->ifa_flags & IFF_LOOPBACK);
        if (!usable || !at->ifa_addr || at->ifa_addr->sa_family != AF_INET)
            continue;
        struct sockaddr_in address;
        memcpy(&address, at->ifa_addr, sizeof address);
        card->addresses[card->count++] = address.sin_addr.s_addr;
    }
    freeifaddrs(all);
}

/* Best where the system allows: large buffers, so that a sender hands over a tensor at once and
 * sleeps; no delay of small messages; reno, which reaches the rate of a link that is shaped. */
static void tune(int socket)
{
    int one = 1, bytes = BUFFER_BYTES;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
#ifdef TCP_CONGESTION
    setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
#endif
}

static enum sc_status listen_here(struct meeting *meeting, struct card *mine, struct sc_error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    meeting->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (meeting->listener < 0)
        return sc_fail(err, SC_MACHINE, "sockets: cannot make one: %s", strerror(errno));
    tune(meeting->listener);
    if (bind(meeting->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(meeting->listener, SOMAXCONN) != 0 ||
        getsockname(meeting->listener, (struct sockaddr *)&address, &size) != 0)
        return sc_fail(err, SC_MACHINE, "sockets: cannot listen: %s", strerror(errno));
    if (getrandom(&mine->number, sizeof mine->number, 0) != sizeof mine->number)
        return sc_fail(err, SC_MACHINE, "sockets: no random number: %s", strerror(errno));
    mine->port = address.sin_port;
    name_machine(mine->machine, sizeof mine->machine);
    list_addresses(mine);
    return SC_OK;
}

static enum sc_status exchange_cards(struct meeting *meeting, struct sc_error *err)
{
    struct card mine;
    size_t count = (size_t)meeting->process->count;
    memset(&mine, 0, sizeof mine);
    enum sc_status status = listen_here(meeting, &mine, err);
    meeting->cards = calloc(count, sizeof *meeting->cards);
    if (status == SC_OK && !meeting->cards)
        status = sc_fail_memory(err, count * sizeof *meeting->cards);
    SC_TRY(sc_process_agree(meeting->process, status, err));
    SC_TRY(sc_process_gather(meeting->process, &mine, sizeof mine, meeting->cards, err));
    return sc_process_broadcast(meeting->process, meeting->cards, count * sizeof *meeting->cards,
                                err);
}

/* ---- letting in ------------------------------------------------------------------------------ */

static int remaining_ms(double until)
{
    double left = until - sc_clock();
    return left > 0 ? (int)(left * 1e3) + 1 : 0;
}

static struct sc_socket_link *find_link(const struct meeting *meeting, const struct hello *hello)
{
    if (hello->number != meeting->cards[meeting->process->index].number)
        return NULL;
    for (size_t i = 0; i < meeting->count; i++)
        if (meeting->links[i].peer == hello->from &&
            meeting->links[i].group == (size_t)hello->group && meeting->links[i].in < 0)
            return &meeting->links[i];
    return NULL;
}

static void let_in(struct meeting *meeting)
{
    int socket = accept4(meeting->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0)
        meeting->guests[meeting->guest_count++] = (struct guest){.socket = socket};
}

/* The guest is a link's other end, or a stranger and sent away. */
static void seat(struct meeting *meeting, const struct guest *guest)
{
    struct sc_socket_link *link = find_link(meeting, &guest->hello);
    const uint64_t number = guest->hello.number;
    if (link && send(guest->socket, &number, sizeof number, MSG_NOSIGNAL) == sizeof number) {
        tune(guest->socket);
        link->in = guest->socket;
    } else {
        close(guest->socket);
    }
}

/* Who has said all it has to say is no guest any more. */
static void listen_to(struct meeting *meeting, size_t index)
{
    struct guest *guest = &meeting->guests[index];
    ssize_t got = recv(guest->socket, (char *)&guest->hello + guest->got,
                       sizeof guest->hello - guest->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    guest->got += got > 0 ? (size_t)got : 0;
    if (got > 0 && guest->got < sizeof guest->hello)
        return;
    if (got > 0)
        seat(meeting, guest);
    else
        close(guest->socket);
    *guest = meeting->guests[--meeting->guest_count];
}

/* Until something happens; true when the socket (-1: none) is ready. Nobody is waited for in
 * particular: two that connect to each other are each other's guests. */
static bool wait_hospitably(struct meeting *meeting, int socket, short events, double until)
{
    struct pollfd at[GUESTS_MAX + 2];
    size_t guests = meeting->guest_count;
    at[0] = (struct pollfd){socket, events, 0};
    at[1] = (struct pollfd){guests < GUESTS_MAX ? meeting->listener : -1, POLLIN, 0};
    for (size_t g = 0; g < guests; g++)
        at[g + 2] = (struct pollfd){meeting->guests[g].socket, POLLIN, 0};
    if (poll(at, guests + 2, remaining_ms(until)) <= 0)
        return false;
    for (size_t g = guests; g-- > 0;)
        if (at[g + 2].revents)
            listen_to(meeting, g);
    if (at[1].revents)
        let_in(meeting);
    return at[0].revents != 0;
}

static bool wait_until_ready(struct meeting *meeting, int socket, short events, double until)
{
    while (!wait_hospitably(meeting, socket, events, until))
        if (sc_clock() >= until)
            return false;
    return true;
}

/* ---- going out ------------------------------------------------------------------------------- */

static double earlier(double a, double b)
{
    return a < b ? a : b;
}

/* The peer has said the number that only it knows. */
static bool introduce(struct meeting *meeting, const struct sc_socket_link *link, int socket)
{
    uint64_t number = meeting->cards[link->peer].number, answer = 0;
    const struct hello hello = {number, meeting->process->index, (int64_t)link->group};
    double until = earlier(sc_clock() + ANSWER_S, meeting->deadline);
    if (send(socket, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        return false;
    return wait_until_ready(meeting, socket, POLLIN, until) &&
           recv(socket, &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer && answer == number;
}

static int try_address(struct meeting *meeting, const struct sc_socket_link *link, uint32_t where)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = meeting->cards[link->peer].port};
    address.sin_addr.s_addr = where;
    int code = 0, made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof code;
    if (made < 0)
        return -1;
    tune(made);
    double until = earlier(sc_clock() + CONNECT_S, meeting->deadline);
    bool there = connect(made, (struct sockaddr *)&address, sizeof address) == 0 ||
                 (errno == EINPROGRESS && wait_until_ready(meeting, made, POLLOUT, until) &&
                  getsockopt(made, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0);
    if (there && introduce(meeting, link, made))
        return made;
    close(made);
    return -1;
}

/* Loopback where both are on one network stack, then the peer's addresses. */
static enum sc_status reach(struct meeting *meeting, struct sc_socket_link *link,
                            struct sc_error *err)
{
    const struct card *mine = &meeting->cards[meeting->process->index];
    const struct card *theirs = &meeting->cards[link->peer];
    char tried[200] = "";
    size_t used = 0;
    if (strcmp(mine->machine, theirs->machine) == 0)
        link->out = try_address(meeting, link, htonl(INADDR_LOOPBACK));
    for (uint32_t i = 0; link->out < 0 && i < theirs->count; i++) {
        char text[INET_ADDRSTRLEN] = "";
        inet_ntop(AF_INET, &theirs->addresses[i], text, sizeof text);
        if (used + sizeof text + 2 < sizeof tried)
            used += (size_t)snprintf(tried + used, sizeof tried - used, " %s", text);
        link->out = try_address(meeting, link, theirs->addresses[i]);
    }
    if (link->out >= 0)
        return SC_OK;
    return sc_fail(err, SC_MACHINE, "sockets: process %lld cannot reach process %lld (tried:%s)",
                   (long long)meeting->process->index, (long long)link->peer,
                   used > 0 ? tried : " no address but loopback");
}

static enum sc_status await_guests(struct meeting *meeting, struct sc_error *err)
{
    for (size_t i = 0; i < meeting->count; i++)
        while (meeting->links[i].in < 0) {
            wait_hospitably(meeting, -1, 0, meeting->deadline);
            if (meeting->links[i].in < 0 && sc_clock() >= meeting->deadline)
                return sc_fail(err, SC_MACHINE,
                               "sockets: process %lld has not come to process %lld in %.0f s",
                               (long long)meeting->links[i].peer,
                               (long long)meeting->process->index, PATIENCE_S);
        }
    return SC_OK;
}

static enum sc_status meet(struct meeting *meeting, struct sc_error *err)
{
    SC_TRY(exchange_cards(meeting, err));
    meeting->deadline = sc_clock() + PATIENCE_S;
    for (size_t i = 0; i < meeting->count; i++)
        SC_TRY(reach(meeting, &meeting->links[i], err));
    return await_guests(meeting, err);
}

enum sc_status sc_sockets_connect(struct sc_process *process, struct sc_socket_link *links,
                                  size_t count, struct sc_error *err)
{
    struct meeting meeting = {.process = process, .listener = -1, .links = links, .count = count};
    for (size_t i = 0; i < count; i++)
        links[i].out = links[i].in = -1;
    enum sc_status status = meet(&meeting, err);
    if (meeting.listener >= 0)
        close(meeting.listener);
    for (size_t g = 0; g < meeting.guest_count; g++)
        close(meeting.guests[g].socket);
    free(meeting.cards);
    if (status != SC_OK)
        sc_sockets_disconnect(links, count);
    return status;
}

void sc_sockets_disconnect(struct sc_socket_link *links, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (links[i].out >= 0)
            close(links[i].out);
        if (links[i].in >= 0)
            close(links[i].in);
        links[i].out = links[i].in = -1;
    }
}
