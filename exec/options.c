/* Options of a run: the neutral values. */
#include "exec/options.h"

void sc_run_options_neutral(struct sc_run_options *options)
{
    *options = (struct sc_run_options){
        .steps = 5,
        .warmup = 2,
        .transport = SC_TRANSPORT_THREADS,
        .snapshot_step = -1,
    };
}
