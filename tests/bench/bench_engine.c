/* Speed of a forecast, by hand: bench_engine [PLAN [REPEATS]]. Prints the time of each pass and the
 * operations that the engine plays a second. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/hardware.h"
#include "plans/lower.h"
#include "plans/plan.h"
#include "sim/engine.h"
#include "sim/price.h"
#include "sim/simulate.h"

enum pass { LOWER, PREPARE, PRICE, PLAY, PASSES };
static const char *const pass_names[PASSES] = {"lower", "prepare", "price", "play"};

struct bench {
    struct sc_plan plan;
    struct sc_hardware hardware;
    double seconds[PASSES];
    double operations, played;
    struct sc_error err;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void book(struct bench *b, enum pass pass, double *since)
{
    double time = now();
    b->seconds[pass] += time - *since;
    *since = time;
}

static enum sc_status once(struct bench *b)
{
    struct sc_program *program = NULL;
    struct sc_pricing *pricing = NULL;
    struct sc_prices prices = {{NULL, 0, 0}, {NULL, 0, 0}};
    struct sc_machine machine;
    struct sc_play play;
    uint64_t capacity[SC_PLACE_COUNT];
    double since = now();
    memset(&machine, 0, sizeof(machine));
    memset(&play, 0, sizeof(play));
    enum sc_status status;
    SC_TRY_GOTO(sc_lower(&b->plan, &program, &b->err), release);
    book(b, LOWER, &since);
    for (size_t c = 0; c < program->classes.count; c++)
        b->operations += (double)program->classes.items[c].step.ops.count;
    SC_TRY_GOTO(sc_sim_capacity(program, &b->hardware, capacity, &b->err), release);
    SC_TRY_GOTO(sc_program_prepare(program, capacity, false, &b->err), release);
    book(b, PREPARE, &since);
    SC_TRY_GOTO(sc_pricing_create(program, &b->hardware, &pricing, &b->err), release);
    SC_TRY_GOTO(sc_price_program(pricing, &prices, &b->err), release);
    SC_TRY_GOTO(sc_machine_from_hardware(program, &b->hardware, &machine, &b->err), release);
    book(b, PRICE, &since);
    SC_TRY_GOTO(sc_play(program, &prices, &machine, NULL, &play, &b->err), release);
    book(b, PLAY, &since);
    b->played += (double)play.events;
release:
    sc_play_free(&play);
    sc_machine_free(&machine);
    sc_prices_free(&prices);
    sc_pricing_destroy(&pricing);
    sc_program_destroy(&program);
    return status;
}

static enum sc_status load(struct bench *b, const char *name)
{
    struct sc_hardware loaded;
    SC_TRY(sc_plan_load(name, NULL, 0, &b->plan, &b->err));
    SC_TRY(sc_hardware_load(b->plan.hardware.profile, name, NULL, 0, &loaded, &b->err));
    return sc_sim_machine_for(&loaded, sc_plan_ranks(&b->plan), b->plan.hardware.nodes,
                              &b->hardware, &b->err);
}

int main(int count, char **arguments)
{
    static struct bench b;
    const char *name = count > 1 ? arguments[1] : "gpt3-13b_1xdgx-h100_tp8_domino2";
    int repeats = count > 2 ? atoi(arguments[2]) : 20;
    /* As a search does: what one round gives back the next one takes. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    enum sc_status status = load(&b, name);
    for (int i = 0; i < repeats && status == SC_OK; i++)
        status = once(&b);
    if (status != SC_OK) {
        fprintf(stderr, "%s\n", b.err.text);
        return sc_status_exit_code(status);
    }
    for (int pass = 0; pass < PASSES; pass++)
        printf("%-8s %8.3f ms\n", pass_names[pass], 1e3 * b.seconds[pass] / repeats);
    printf("lowering %8.3f million operations/s\n", b.operations / b.seconds[LOWER] / 1e6);
    printf("engine   %8.3f million operations/s\n", b.played / b.seconds[PLAY] / 1e6);
    return 0;
}
