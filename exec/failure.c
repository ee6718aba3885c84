/* The first failure of a run: kept once, seen by all. */
#include "exec/failure.h"

void sc_failure_init(struct sc_failure *failure)
{
    pthread_mutex_init(&failure->mutex, NULL);
    atomic_init(&failure->set, false);
    failure->error = (struct sc_error)SC_ERROR_INIT;
}

void sc_failure_destroy(struct sc_failure *failure)
{
    pthread_mutex_destroy(&failure->mutex);
}

void sc_failure_set(struct sc_failure *failure, const struct sc_error *err)
{
    pthread_mutex_lock(&failure->mutex);
    if (!atomic_load(&failure->set)) {
        failure->error = *err;
        atomic_store(&failure->set, true);
    }
    pthread_mutex_unlock(&failure->mutex);
}

bool sc_failure_is_set(const struct sc_failure *failure)
{
    return atomic_load_explicit(&failure->set, memory_order_acquire);
}

enum sc_status sc_failure_get(struct sc_failure *failure, struct sc_error *err)
{
    if (!sc_failure_is_set(failure))
        return SC_OK;
    pthread_mutex_lock(&failure->mutex);
    *err = failure->error;
    pthread_mutex_unlock(&failure->mutex);
    return err->status;
}
