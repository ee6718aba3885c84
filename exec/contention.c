/* What other programs took of the cores, from /proc/stat and the process's own clocks. */
#include "exec/contention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exec/clock.h"
#include "exec/cores.h"

/* A core's time is counted in ticks of 10 ms mostly; over less than half a second they are more
 * than a fiftieth of it. */
#define LEAST_SECONDS 0.5

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static double own_seconds(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(children.ru_utime) +
           seconds_of(children.ru_stime);
}

static int64_t pushed_aside(void)
{
    struct rusage self;
    getrusage(RUSAGE_SELF, &self);
    return (int64_t)self.ru_nivcsw;
}

/* "cpu3 user nice system idle iowait irq softirq steal ...": guest time is part of user. */
static bool read_core(const char *line, int *core, double *busy, double *steal)
{
    double user, nice, system, idle, iowait, irq, softirq;
    if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", core, &user, &nice, &system, &idle,
               &iowait, &irq, &softirq, steal) != 9) {
        return false;
    }
    *busy = user + nice + system + irq + softirq;
    return true;
}

static bool read_stat(const cpu_set_t *cores, int64_t count, double *busy_s, double *steal_s)
{
    char line[512];
    double ticks = (double)sysconf(_SC_CLK_TCK), busy = 0, steal = 0;
    int64_t found = 0;
    FILE *stream = fopen("/proc/stat", "r");
    if (stream == NULL || !(ticks > 0)) {
        return false;
    }
    while (fgets(line, sizeof(line), stream) != NULL && strncmp(line, "cpu", 3) == 0) {
        int core = 0;
        double core_busy = 0, core_steal = 0;
        if (read_core(line, &core, &core_busy, &core_steal) && core >= 0 && core < CPU_SETSIZE &&
            CPU_ISSET(core, cores)) {
            busy += core_busy / ticks;
            steal += core_steal / ticks;
            found++;
        }
    }
    fclose(stream);
    *busy_s = busy;
    *steal_s = steal;
    return found == count && busy > 0;
}

void sc_contention_begin(int64_t cores, struct sc_contention_start *out)
{
    cpu_set_t set;
    memset(out, 0, sizeof(*out));
    out->cores = sc_cores_allowed(cores, &set);
    out->known = out->cores > 0 && read_stat(&set, out->cores, &out->busy_s, &out->steal_s);
    out->own_s = own_seconds();
    out->pushed_aside = pushed_aside();
    out->when = sc_clock();
}

static double share(const struct sc_contention *contention, double seconds)
{
    return fmin(fmax(seconds / (contention->seconds * contention->cores), 0), 1);
}

void sc_contention_end(const struct sc_contention_start *start, struct sc_contention *out)
{
    cpu_set_t set;
    double busy = 0, steal = 0;
    memset(out, 0, sizeof(*out));
    out->seconds = sc_clock() - start->when;
    out->cores = (double)start->cores;
    out->own_s = own_seconds() - start->own_s;
    out->pushed_aside = pushed_aside() - start->pushed_aside;
    bool read = start->known && sc_cores_allowed(start->cores, &set) == start->cores &&
                read_stat(&set, start->cores, &busy, &steal);
    out->known = read && out->seconds >= LEAST_SECONDS;
    if (out->known) {
        double stolen = steal - start->steal_s, others = busy - start->busy_s - out->own_s;
        out->steal_share = share(out, stolen);
        out->others_share = share(out, stolen + fmax(others, 0));
    }
}

void sc_contention_add_own(struct sc_contention *contention, double seconds)
{
    contention->own_s += seconds;
    if (contention->known) {
        double others = contention->others_share - share(contention, seconds);
        contention->others_share = fmax(others, contention->steal_share);
    }
}

double sc_contention_excess(const struct sc_contention *contention)
{
    double taken = contention->others_share;
    return contention->known && taken < 1 ? taken / (1 - taken) : 0;
}

bool sc_contention_warning(const struct sc_contention *contention, char *out, size_t size)
{
    out[0] = '\0';
    if (!contention->known || contention->others_share < SC_CONTENTION_NOTABLE) {
        return false;
    }
    bool stolen = contention->steal_share > contention->others_share / 2;
    snprintf(out, size,
             "other %s used %.0f %% of the cores while measuring: times may be too long by up to "
             "%.0f %%",
             stolen ? "virtual machines" : "programs", contention->others_share * 100,
             sc_contention_excess(contention) * 100);
    return true;
}
