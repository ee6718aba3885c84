/* Progress of long work: a line on standard error that replaces itself, on a terminal only. */
#ifndef STEPCAST_CLI_PROGRESS_H
#define STEPCAST_CLI_PROGRESS_H

#include <stdbool.h>
#include <time.h>

struct cli_progress {
    bool shown;
    struct timespec last; /* when a line was printed */
};

/* Shown only where standard error is a terminal. */
void cli_progress_begin(struct cli_progress *progress);
/* A sc_progress_fn; context is the struct. Prints at most ten lines a second. */
void cli_progress_line(void *progress, const char *line);
/* Clears the line. */
void cli_progress_end(struct cli_progress *progress);

#endif
