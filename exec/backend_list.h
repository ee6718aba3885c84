/*
 * The backends: X(name, struct or NULL, why this build has it not). A backend that a build leaves
 * out still answers, with its line.
 */
#ifndef STEPCAST_EXEC_BACKEND_LIST_H
#define STEPCAST_EXEC_BACKEND_LIST_H

#ifdef STEPCAST_BACKEND_CUDA
#define SC_CUDA_BACKEND_POINTER &sc_backend_cuda
#else
#define SC_CUDA_BACKEND_POINTER NULL
#endif

#define SC_BACKEND_LIST(X)                                                                         \
    X("host", &sc_backend_host, NULL)                                                              \
    X("cuda", SC_CUDA_BACKEND_POINTER, "backend cuda: this build has no CUDA executor")

extern const struct sc_backend sc_backend_host;
#ifdef STEPCAST_BACKEND_CUDA
extern const struct sc_backend sc_backend_cuda;
#endif

#endif
