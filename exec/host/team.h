/*
 * A team: n threads that do one piece of work together. The caller is one of them; the others sleep
 * between pieces, after a short spin (so that a list of small operations does not pay a wake-up
 * each, and an idle team takes no core from communication).
 *
 * A team serves one caller at a time. Work is split by (part, parts) alone, never by who comes
 * first, so a team of a given size always computes the same.
 */
#ifndef STEPCAST_EXEC_HOST_TEAM_H
#define STEPCAST_EXEC_HOST_TEAM_H

#include <stdint.h>

#include "base/status.h"

struct sc_team;

/* One member's share of the work: part of 0..parts-1. */
typedef void sc_team_fn(void *arg, int part, int parts);

/*
 * Starts threads - 1 threads. cores, if not NULL, names a core for each of the `threads` members
 * (cores[0] pins the caller, who stays there; an entry < 0 leaves that member alone); a core that
 * cannot be had is SC_MACHINE. The team is destroyed with sc_team_destroy.
 */
enum sc_status sc_team_create(int threads, const int *cores, struct sc_team **team,
                              struct sc_error *err);

/* Ends and joins the threads, frees, sets *team to NULL. NULL is accepted. Not during a run. */
void sc_team_destroy(struct sc_team **team);

/* How long a member looks for work before it sleeps (30 us where nobody says). Waking a sleeper
 * takes tens of microseconds, so a team that shares its cores with nobody looks longer. */
void sc_team_set_patience(struct sc_team *team, int64_t nanoseconds);

/* Members, at least 1. A NULL team is a team of one. */
int sc_team_size(const struct sc_team *team);

/*
 * Calls fn(arg, part, parts) once for every part in 0..parts-1 with parts = the size, on all
 * members, and returns when all are done; what they wrote is visible. A NULL team runs it as part 0
 * of 1.
 */
void sc_team_run(struct sc_team *team, sc_team_fn *fn, void *arg);

/*
 * Part `part` of `parts` of 0..count, in multiples of grain (the last may be short): parts differ
 * by one grain at most. May be empty.
 */
struct sc_part {
    int64_t begin, end;
};
struct sc_part sc_part_of(int64_t count, int64_t grain, int part, int parts);

#endif
