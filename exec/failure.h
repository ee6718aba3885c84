/* The first failure of a run. Ranks, workers and transports look at it while they wait, so that one
 * of them that fails ends all. */
#ifndef STEPCAST_EXEC_FAILURE_H
#define STEPCAST_EXEC_FAILURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"

struct sc_failure {
    pthread_mutex_t mutex;
    atomic_bool set;
    struct sc_error error;
};

void sc_failure_init(struct sc_failure *failure);
void sc_failure_destroy(struct sc_failure *failure);
/* Keeps `err` unless one was kept before. */
void sc_failure_set(struct sc_failure *failure, const struct sc_error *err);
bool sc_failure_is_set(const struct sc_failure *failure);
/* SC_OK, or the kept failure copied into err. */
enum sc_status sc_failure_get(struct sc_failure *failure, struct sc_error *err);

#endif
