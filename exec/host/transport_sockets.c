/* Collectives among processes, over TCP: not yet. */
#include "exec/host/transport.h"

enum sc_status sc_transport_sockets(const struct sc_transport_setup *setup,
                                    struct sc_transport **out, struct sc_error *err)
{
    (void)setup;
    (void)out;
    return sc_fail(err, SC_NO, "transport sockets: not in this build");
}
