/*
 * The executor: walks the list of one rank and tells a backend, operation by operation, to wait for
 * the events named, to do the operation and to record its event. No operation is special and no
 * technique is known here.
 */
#ifndef STEPCAST_EXEC_EXECUTOR_H
#define STEPCAST_EXEC_EXECUTOR_H

#include "exec/backend.h"

struct sc_executor;

/* Borrows everything. The device belongs to `rank`, whose class is looked up. */
enum sc_status sc_executor_create(const struct sc_backend *backend, struct sc_device *device,
                                  const struct sc_program *program, int64_t rank, int64_t steps,
                                  struct sc_executor **out, struct sc_error *err);
void sc_executor_destroy(struct sc_executor **executor); /* accepts NULL; sets NULL */

/* Appends the init list, each operation behind the one before it. */
enum sc_status sc_executor_issue_init(struct sc_executor *executor, struct sc_error *err);
/* Blocks until the init list has ended. */
enum sc_status sc_executor_finish_init(struct sc_executor *executor, struct sc_error *err);
bool sc_executor_init_done(const struct sc_executor *executor);

/* Appends the next step if step - steps_ahead has ended (asks, never blocks); *issued says so. */
enum sc_status sc_executor_try_step(struct sc_executor *executor, bool *issued,
                                    struct sc_error *err);
/* Appends all steps, blocking where steps_ahead says so, then waits for the last one. */
enum sc_status sc_executor_run(struct sc_executor *executor, struct sc_error *err);
/* All steps are appended and have ended. */
bool sc_executor_steps_done(const struct sc_executor *executor);

#endif
