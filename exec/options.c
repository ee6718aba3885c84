/* Options of a run: the neutral values, the names of transports. */
#include "exec/options.h"

#include <string.h>

void sc_run_options_neutral(struct sc_run_options *options)
{
    *options = (struct sc_run_options){
        .steps = 5,
        .warmup = 2,
        .transport = SC_TRANSPORT_THREADS,
        .snapshot_step = -1,
    };
}

static const char *const transport_names[SC_TRANSPORT_COUNT] = {
    [SC_TRANSPORT_THREADS] = "threads",
    [SC_TRANSPORT_MPI] = "mpi",
    [SC_TRANSPORT_SOCKETS] = "sockets",
};

const char *sc_run_transport_name(enum sc_run_transport transport)
{
    return transport_names[transport];
}

enum sc_status sc_run_transport_find(const char *name, const char *option,
                                     enum sc_run_transport *out, struct sc_error *err)
{
    for (int i = 0; i < SC_TRANSPORT_COUNT; i++) {
        if (strcmp(name, transport_names[i]) == 0) {
            *out = (enum sc_run_transport)i;
            return SC_OK;
        }
    }
    return sc_fail(err, SC_USAGE, "%s: found \"%s\", expected threads, mpi or sockets", option,
                   name);
}
