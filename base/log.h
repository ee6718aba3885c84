/*
 * Progress and notes on standard error, for the command line only. The library takes a callback
 * where it has something to say while it works (search, calibrate), never a global.
 */
#ifndef STEPCAST_BASE_LOG_H
#define STEPCAST_BASE_LOG_H

/* Called now and then with a short line; `context` is the caller's. May be NULL. */
typedef void (*sc_progress_fn)(void *context, const char *line);

#endif
