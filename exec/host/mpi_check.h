/* MPI's codes to ours, at one place: SC_MACHINE with MPI's own text. */
#ifndef STEPCAST_EXEC_HOST_MPI_CHECK_H
#define STEPCAST_EXEC_HOST_MPI_CHECK_H

#include <mpi.h>

#include "base/status.h"

static inline enum sc_status sc_mpi_status(int code, const char *call, struct sc_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return SC_OK;
    MPI_Error_string(code, text, &length);
    return sc_fail(err, SC_MACHINE, "mpi: %.40s: %s", call, text);
}

/* Returns from the calling function when the call fails. */
#define SC_MPI(call, err) SC_TRY(sc_mpi_status((call), #call, (err)))

#endif
