/*
 * A stand-in for the CUDA runtime, cuBLASLt and NCCL on the processor: what exec/cuda/ uses of
 * them, behind the real headers, so that the same source runs where no device is.
 *
 * Threads and streams. Between sc_standin_begin and sc_standin_end every thread of the process is
 * one of the stand-in's own and exactly one of them, or one operation of one stream, runs at a
 * time. A thread gives way only where it waits: for a condition variable, another thread, a held
 * mutex, some time, or the device. Who goes on is drawn from a seed, so a run can be repeated
 * exactly, host threads included. What is enqueued does not run before some thread waits.
 *
 * Errors. Wrong use (memory that is not there, a destroyed handle, members of a collective that
 * disagree, a workspace of two streams, everybody waiting for ever) makes the call fail as the
 * library would and leaves one line, the first of a run: sc_standin_complaint.
 */
#ifndef STEPCAST_TESTS_STANDIN_STANDIN_H
#define STEPCAST_TESTS_STANDIN_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SC_STANDIN_DEVICES = 16 }; /* at most */

enum sc_standin_order {
    /* Drawn priorities; a few times a run what just ran goes behind all others (Burckhardt et al.,
     * "A randomized scheduler with probabilistic guarantees of finding bugs", 2010). */
    SC_STANDIN_PRIORITIES,
    SC_STANDIN_UNIFORM, /* any that can run, each as likely */
    SC_STANDIN_ISSUE    /* what was issued first: the order of a device without concurrency */
};

/* Neutral when all zero but seed and devices. */
struct sc_standin_setup {
    uint64_t seed;
    enum sc_standin_order order;
    bool host_first; /* threads go on before streams do */
    bool lag;        /* of SC_STANDIN_PRIORITIES: one goes on only when nobody else can, ... */
    int lag_device;  /* ... of what belongs to this device ... */
    int lag_stream;  /* ... the stream made as the so-maniest, from 1; 0: threads that were started
                        by others than the first one */
    int devices;     /* 0: 1 */
    size_t device_bytes; /* memory of each; 0: 256 MiB */
    uint64_t operations; /* that the run is expected to have (an earlier run's): where the changes
                            of priorities are drawn; 0: no changes */
    uint64_t fail_call;  /* number of the call that fails, from 1; 0: none */
    bool fail_all;       /* and all calls after it: a device that is gone */
    int skip_device;     /* of whose waits ... */
    uint64_t skip_wait;  /* ... the one of this number, from 1, is left out; 0: none */
};

/* What a run came to. */
struct sc_standin_totals {
    uint64_t calls, operations;         /* of the API; run by streams */
    uint64_t waits[SC_STANDIN_DEVICES]; /* of each device's streams: calls of cudaStreamWaitEvent
                                           and cuStreamWaitValue32 that can matter, not for what the
                                           same stream has recorded */
    int streams[SC_STANDIN_DEVICES];    /* made on each device */
    uint64_t deadlocks;                 /* waits that were given up */
};

/* The calling thread becomes the first of the stand-in's. Without it every call answers as a
 * machine without a device would. */
void sc_standin_begin(const struct sc_standin_setup *setup);
/* All other threads have ended. Everything is given back, also what the program under test left. */
void sc_standin_end(void);

/* Between begin and end, or after end about the run before. */
struct sc_standin_totals sc_standin_totals(void);
/* The first line about wrong use, or "". */
const char *sc_standin_complaint(void);
/* "" or what is not given back: "2 allocations, 1 event"; what was on the whole, call it before
 * end. */
const char *sc_standin_left(void);
/* Name of the call that was made to fail, or "". */
const char *sc_standin_failed(void);

#endif
