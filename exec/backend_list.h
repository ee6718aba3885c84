/*
 * The backends: X(name, struct or NULL, module or NULL, why this build has it not). A backend that
 * a build leaves out still answers, with its line. One that needs large libraries is a module, a
 * shared object that is opened when it is asked for, so that no other command waits for them; the
 * program's run path says where it lies, and it exports the struct as sc_backend_<name>.
 */
#ifndef STEPCAST_EXEC_BACKEND_LIST_H
#define STEPCAST_EXEC_BACKEND_LIST_H

#include <stddef.h>

#ifdef STEPCAST_BACKEND_CUDA
#define SC_CUDA_BACKEND_POINTER &sc_backend_cuda
#else
#define SC_CUDA_BACKEND_POINTER NULL
#endif
#ifndef STEPCAST_CUDA_MODULE
#define STEPCAST_CUDA_MODULE NULL
#endif

#define SC_BACKEND_LIST(X)                                                                         \
    X("host", &sc_backend_host, NULL, NULL)                                                        \
    X("cuda", SC_CUDA_BACKEND_POINTER, STEPCAST_CUDA_MODULE,                                       \
      "backend cuda: this build has no CUDA executor")

extern const struct sc_backend sc_backend_host;
extern const struct sc_backend sc_backend_cuda;

#endif
