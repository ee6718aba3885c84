/* Progress on a terminal. */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#define LEAST_SECONDS 0.1
#define CLEAR_LINE "\r\033[K"

void cli_progress_begin(struct cli_progress *progress)
{
    *progress = (struct cli_progress){.shown = isatty(STDERR_FILENO) == 1};
}

void cli_progress_line(void *context, const char *line)
{
    struct cli_progress *progress = context;
    struct timespec now;
    if (!progress->shown || clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        return;
    }
    double since = (double)(now.tv_sec - progress->last.tv_sec) +
                   (double)(now.tv_nsec - progress->last.tv_nsec) / 1e9;
    if (progress->last.tv_sec != 0 && since < LEAST_SECONDS) {
        return;
    }
    progress->last = now;
    fprintf(stderr, CLEAR_LINE "%.100s", line);
    fflush(stderr);
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown && progress->last.tv_sec != 0) {
        fputs(CLEAR_LINE, stderr);
        fflush(stderr);
    }
}
