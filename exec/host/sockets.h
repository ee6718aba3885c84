/*
 * TCP connections between the processes of a run, one a direction (a connection that carries data
 * both ways at once reaches half of a link). Addresses go through the process layer: every process
 * lists its IPv4 addresses, and the one that connects takes the first that reaches the peer, which
 * proves by a number drawn for this run that it is the one meant.
 */
#ifndef STEPCAST_EXEC_HOST_SOCKETS_H
#define STEPCAST_EXEC_HOST_SOCKETS_H

#include "exec/process.h"

struct sc_socket_link {
    size_t group; /* links of different groups have connections of their own */
    int64_t peer; /* process */
    int out, in;  /* non-blocking; closed by sc_sockets_disconnect */
};

/* Called by all processes at once; each link of one process is one of its peer as well. On failure
 * (after 30 s at most, naming the peer) nothing stays open. */
enum sc_status sc_sockets_connect(struct sc_process *process, struct sc_socket_link *links,
                                  size_t count, struct sc_error *err);
void sc_sockets_disconnect(struct sc_socket_link *links, size_t count);

#endif
