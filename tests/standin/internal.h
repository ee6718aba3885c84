/* What the parts of the stand-in share. Only the thread whose turn it is touches any of it. */
#ifndef STEPCAST_TESTS_STANDIN_INTERNAL_H
#define STEPCAST_TESTS_STANDIN_INTERNAL_H

#include <pthread.h>

#include <cuda_runtime_api.h>

#include "tests/standin/standin.h"

enum { STANDIN_LINE = 1024 };

struct standin_command;
struct standin_clique;
struct ncclComm;

/* ---- threads: scheduler.c, threads.c --------------------------------------------------------- */

enum standin_thread_state {
    STANDIN_READY,
    STANDIN_WAITS, /* until `done` */
    STANDIN_POLLS, /* goes on when `done` (NULL: never), or when nothing else can */
    STANDIN_ENDED
};

struct standin_thread {
    struct standin_thread *next;
    uint64_t number, priority;
    enum standin_thread_state state;
    bool (*done)(const void *what);
    const void *what;
    const char *call; /* where it waits, for lines */
    bool on_device;   /* what it waits for is the device: given up rather than for ever */
    bool given_up;
    bool lags;       /* gives way at every chance */
    uint64_t polled; /* turn in which it last went on from a poll */
    pthread_t id;
    pthread_cond_t turn;
    void *(*body)(void *);
    void *argument, *result;
    /* What the libraries keep for each thread. */
    int device;
    cudaError_t last_error;
    int group_depth;
    struct standin_command *group_first; /* exchanges of the group that is open */
    struct ncclComm *group_joined;
    bool group_failed; /* a call in it has */
};

/* ---- streams: stream.c ----------------------------------------------------------------------- */

struct CUstream_st {
    struct CUstream_st *next;
    uint64_t number, priority;
    int device;
    bool destroyed;
    struct standin_command *first, *last;
    uint64_t enqueued, ended;
};

struct CUevent_st {
    struct CUevent_st *next;
    uint64_t number;
    int device;
    bool destroyed, timed;
    const struct CUstream_st *recorder; /* of the last record */
    uint64_t recorded, reached;         /* records enqueued, and the last one that was passed */
    double time;
};

/* What a stream does, one after another. Every kind is a struct that begins with this one. */
struct standin_kind {
    const char *name;
    bool silent; /* moves no data: done as soon as it can be, whatever the order */
    bool (*ready)(const struct standin_command *command); /* NULL: always */
    void (*run)(struct CUstream_st *stream, struct standin_command *command);
    void (*describe)(const struct standin_command *command, char *out, size_t size); /* optional */
};

struct standin_command {
    const struct standin_kind *kind;
    struct standin_command *next;
    struct CUstream_st *stream;
    uint64_t number; /* in order of issue */
};

/* ---- memory: memory.c ------------------------------------------------------------------------ */

/* A stream that works in a part of some memory all by itself. */
struct standin_user {
    struct standin_user *next;
    const struct CUstream_st *stream;
    const char *from;
    size_t bytes;
};

struct standin_memory {
    struct standin_memory *next;
    struct standin_user *users;
    char *base;
    size_t bytes;
    int device; /* of the thread that asked for it */
    bool pinned, freed;
};

/* ---- everything ------------------------------------------------------------------------------ */

struct standin {
    bool on;
    struct sc_standin_setup setup;
    struct sc_standin_totals totals;
    uint64_t random, numbers, lowest, changes[3], turns, idle_polls;
    struct standin_thread *threads, *current;
    struct CUstream_st *streams;
    struct CUevent_st *events;
    struct standin_memory *memory;
    struct standin_clique *cliques;
    struct standin_object *objects;
    size_t used[SC_STANDIN_DEVICES];
    cudaError_t device_error[SC_STANDIN_DEVICES]; /* stays */
    char complaint[STANDIN_LINE], left[STANDIN_LINE], failed[64];
};

extern struct standin standin;
extern _Thread_local struct standin_thread *standin_me;

/* scheduler.c */
/* Every call begins with this: counts it; true when it is made to fail. */
bool standin_enter(const char *call);
/* The first line about wrong use is kept. Returns nothing: the caller gives its library's code. */
void standin_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Lets others run until done(what); false when that can never be. `call` names where it waits. */
bool standin_wait(const char *call, bool (*done)(const void *what), const void *what,
                  bool on_device);
/* Lets others run until done(what) (NULL: never), or until nothing else can; says whether done. */
bool standin_poll(const char *call, bool (*done)(const void *what), const void *what);
uint64_t standin_draw_priority(void);
/* Whether what is made now for this device is what goes on last. */
bool standin_lags(int device, int stream);
/* Lets others run, if they come first. */
void standin_give_way(void);
struct standin_thread *standin_add_thread(void);
void standin_end_thread(struct standin_thread *thread); /* the turn goes to another */
void standin_await_turn(struct standin_thread *thread);

/* stream.c */
/* The stream if it is one that lives (NULL complains as well: the default stream is not provided).
 */
bool standin_stream_ok(const char *call, struct CUstream_st *stream);
/* A zeroed command of this size, NULL without memory. */
void *standin_command(const struct standin_kind *kind, size_t size);
void standin_enqueue(struct CUstream_st *stream, struct standin_command *command);
void standin_pop(struct CUstream_st *stream); /* its head has ended; frees it */
/* Sets the calling thread's last error where the code is one. */
cudaError_t standin_cuda(cudaError_t code);
bool standin_drained(const void *stream);
bool standin_device_drained(const void *device); /* const int * */
/* True when this wait of a stream is to be left out. */
bool standin_skips_wait(const struct CUstream_st *stream);
void standin_free_streams(void);

/* memory.c */
/* Whether [start, start + bytes) lies in memory that the device can reach; complains if not. */
bool standin_range_ok(const char *call, const char *what, int device, const void *start,
                      size_t bytes);
struct standin_memory *standin_memory_at(const void *address);
bool standin_add_user(struct standin_memory *memory, const struct CUstream_st *stream,
                      const char *from, size_t bytes);
void standin_free_memory(void);

/* products.c, collectives.c */

/* A handle of a library: lives in a list so that use after its end is noticed. */
struct standin_object {
    struct standin_object *next;
    const char *what;
    bool destroyed;
};
void *standin_object(const char *what, size_t size);
/* Complains unless `handle` is a living one of this kind. */
bool standin_object_ok(const char *call, const char *what, const void *handle);
void standin_free_objects(void);
void standin_free_cliques(void);

/* The real functions behind those that threads.c replaces. */
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __real_pthread_join(pthread_t, void **);
int __real_pthread_mutex_lock(pthread_mutex_t *);
int __real_pthread_mutex_unlock(pthread_mutex_t *);
int __real_pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int __real_pthread_cond_signal(pthread_cond_t *);

#endif
