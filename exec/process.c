/* Processes of a run: the trivial group of one; everything else goes to the group's functions. */
#include "exec/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sc_process_alone(struct sc_process *out)
{
    *out = (struct sc_process){.index = 0, .count = 1, .node_index = 0, .node_count = 1};
}

void sc_process_die(void)
{
    kill(getpid(), SIGKILL);
}

bool sc_process_under_mpi(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

bool sc_process_has_mpi(void)
{
#ifdef STEPCAST_HAVE_MPI
    return true;
#else
    return false;
#endif
}

#ifndef STEPCAST_HAVE_MPI
enum sc_status sc_process_mpi(struct sc_process *out, struct sc_error *err)
{
    (void)out;
    return sc_fail(err, SC_NO, "transport mpi: this build has no MPI");
}

void sc_process_end(void)
{
}
#endif

enum sc_status sc_process_gather(struct sc_process *process, const void *bytes, size_t size,
                                 void *all, struct sc_error *err)
{
    if (process->functions)
        return process->functions->gather(process, bytes, size, all, err);
    if (size > 0)
        memcpy(all, bytes, size);
    return SC_OK;
}

enum sc_status sc_process_broadcast(struct sc_process *process, void *bytes, size_t size,
                                    struct sc_error *err)
{
    return process->functions ? process->functions->broadcast(process, bytes, size, err) : SC_OK;
}

/* The first failure among the gathered outcomes; index 0 when all went well. */
static void first_failure(const struct sc_error *all, int64_t count, struct sc_error *out)
{
    *out = all[0];
    for (int64_t i = 0; i < count && out->status == SC_OK; i++)
        *out = all[i];
}

enum sc_status sc_process_agree(struct sc_process *process, enum sc_status mine,
                                struct sc_error *err)
{
    if (!process->functions)
        return mine;
    struct sc_error outcome = mine == SC_OK ? (struct sc_error)SC_ERROR_INIT : *err;
    outcome.status = mine;
    struct sc_error *all = process->index == 0 ? calloc((size_t)process->count, sizeof *all) : NULL;
    if (process->index == 0 && !all)
        return sc_fail_memory(err, (size_t)process->count * sizeof *all);
    enum sc_status status = sc_process_gather(process, &outcome, sizeof outcome, all, err);
    if (status == SC_OK && process->index == 0)
        first_failure(all, process->count, &outcome);
    free(all);
    SC_TRY(status);
    SC_TRY(sc_process_broadcast(process, &outcome, sizeof outcome, err));
    if (outcome.status != SC_OK)
        *err = outcome;
    return outcome.status;
}

double sc_process_clock_offset(struct sc_process *process)
{
    return process->functions ? process->functions->clock_offset(process) : 0;
}

void sc_process_announce(struct sc_process *process, const struct sc_error *failure)
{
    if (process->functions)
        process->functions->announce(process, failure);
}

void sc_process_listen(struct sc_process *process, struct sc_failure *failure)
{
    if (process->functions)
        process->functions->listen(process, failure);
}

void sc_process_quiet(struct sc_process *process)
{
    if (process->functions)
        process->functions->quiet(process);
}
