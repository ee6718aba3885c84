/*
 * stepcast: forecasts one training step of a transformer on many devices, and runs the same plan
 * for real. The public interface: load a plan, simulate or run it, compare the two traces, search
 * for the fastest plan.
 *
 *     struct stepcast_error error;
 *     struct stepcast_plan *plan = NULL;
 *     struct stepcast_forecast *forecast = NULL;
 *     if (stepcast_plan_load("gpt3-13b_1xdgx-h100_tp8_domino2", NULL, NULL, 0, &plan, &error) ||
 *         stepcast_simulate(plan, &forecast, &error)) {
 *         fprintf(stderr, "%s\n", error.text);
 *     } else {
 *         printf("%g s a step\n", stepcast_forecast_step_time(forecast));
 *     }
 *     stepcast_forecast_destroy(&forecast);
 *     stepcast_plan_destroy(&plan);
 *
 * Conventions. Functions that can fail return a status (STEPCAST_OK is zero) and take, last, an
 * error record of the caller's; on failure it holds one line and every output is untouched. The
 * library prints nothing, ends no process and has no global state: any number of plans may be used
 * at once, from any number of threads, as long as one handle is used by one thread at a time (a
 * loaded plan, forecast, run or trace may be read by several). _destroy accepts NULL and handles
 * that are NULL, and sets the handle NULL. Texts that a function returns as `char **` are freed
 * with stepcast_free; `const char *` belong to the handle they came from. Times are seconds, sizes
 * bytes. Every `set` is an array of `set_count` strings "path=value" that replace single numbers of
 * the plan or, with "hw." before the path, of the hardware profile.
 */
#ifndef STEPCAST_H
#define STEPCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ------------------------------------------------------------------------------ */

enum stepcast_status {
    STEPCAST_OK,
    STEPCAST_NO,        /* the answer is no: it does not fit, this backend cannot do it */
    STEPCAST_USAGE,     /* a wrong argument */
    STEPCAST_BAD_INPUT, /* a wrong file */
    STEPCAST_MACHINE,   /* the machine below failed */
    STEPCAST_NO_MEMORY,
    STEPCAST_BUG /* a rule of a step program is broken: please report it */
};

struct stepcast_error {
    enum stepcast_status status;
    char text[1024]; /* one line, no newline */
};

/* "0.1.0" */
const char *stepcast_version(void);
/* The sentence of a status: "bad input". */
const char *stepcast_status_text(enum stepcast_status status);
/* The exit code that the command line uses for it: 0 to 4. */
int stepcast_exit_code(enum stepcast_status status);
/* Frees a text that the library made; accepts NULL. */
void stepcast_free(char *text);

/* ---- plans ------------------------------------------------------------------------------- */

struct stepcast_plan;

/* Loads a plan (shipped name or file) with its hardware: that of the plan, or `hardware` (shipped
 * name or file) instead where it is not NULL. */
enum stepcast_status stepcast_plan_load(const char *name_or_file, const char *hardware,
                                        const char *const *set, size_t set_count,
                                        struct stepcast_plan **out, struct stepcast_error *error);
void stepcast_plan_destroy(struct stepcast_plan **plan);
const char *stepcast_plan_name(const struct stepcast_plan *plan);
int64_t stepcast_plan_ranks(const struct stepcast_plan *plan);
/* stepcast.plan/1, every section written out. */
enum stepcast_status stepcast_plan_json(const struct stepcast_plan *plan, char **out,
                                        struct stepcast_error *error);

/* ---- traces ------------------------------------------------------------------------------ */

struct stepcast_trace;

enum stepcast_status stepcast_trace_read(const char *file, struct stepcast_trace **out,
                                         struct stepcast_error *error);
void stepcast_trace_destroy(struct stepcast_trace **trace);
/* stepcast.trace/1; complete or absent. */
enum stepcast_status stepcast_trace_write(const struct stepcast_trace *trace, const char *file,
                                          struct stepcast_error *error);
/* Traces one above the other for a viewer (Trace Event Format). */
enum stepcast_status stepcast_trace_write_timeline(const struct stepcast_trace *const *traces,
                                                   size_t count, const char *file,
                                                   struct stepcast_error *error);
double stepcast_trace_step_time(const struct stepcast_trace *trace);
size_t stepcast_trace_operations(const struct stepcast_trace *trace); /* rows */

/* ---- simulation -------------------------------------------------------------------------- */

struct stepcast_forecast;

/* Plays the plan's step program on the modelled machine. STEPCAST_NO when it does not fit. */
enum stepcast_status stepcast_simulate(const struct stepcast_plan *plan,
                                       struct stepcast_forecast **out,
                                       struct stepcast_error *error);
void stepcast_forecast_destroy(struct stepcast_forecast **forecast);
double stepcast_forecast_step_time(const struct stepcast_forecast *forecast);
/* Where the step time of a run lies in four of five cases, in seconds. */
void stepcast_forecast_interval(const struct stepcast_forecast *forecast, double *low,
                                double *high);
double stepcast_forecast_tokens_per_s(const struct stepcast_forecast *forecast);
/* Model and hardware FLOP utilisation, shares of the peak. */
double stepcast_forecast_mfu(const struct stepcast_forecast *forecast);
double stepcast_forecast_hfu(const struct stepcast_forecast *forecast);
/* Of the fullest device: what the plan's arena takes, and all that is used (context, communicators,
 * workspace). */
double stepcast_forecast_device_peak(const struct stepcast_forecast *forecast);
double stepcast_forecast_device_used(const struct stepcast_forecast *forecast);
/* What `stepcast sim --json` prints. */
enum stepcast_status stepcast_forecast_json(const struct stepcast_forecast *forecast, char **out,
                                            struct stepcast_error *error);
/* Belongs to the forecast. */
const struct stepcast_trace *stepcast_forecast_trace(const struct stepcast_forecast *forecast);

/* ---- explanation ------------------------------------------------------------------------- */

struct stepcast_explanation;

/* Why a step takes that long: its critical path by kind of work, and what the step would take if a
 * kind of work or a resource were free. STEPCAST_NO when it does not fit. */
enum stepcast_status stepcast_explain(const struct stepcast_plan *plan,
                                      struct stepcast_explanation **out,
                                      struct stepcast_error *error);
void stepcast_explanation_destroy(struct stepcast_explanation **explanation);
double stepcast_explanation_step_time(const struct stepcast_explanation *explanation);
/* One sentence: what would gain most if it were free. */
const char *stepcast_explanation_sentence(const struct stepcast_explanation *explanation);
/* Parts of the critical path ("gemm", "all_reduce of tensor", "issue", ...), longest first; their
 * seconds add up to the step time. Past the count: NULL, NAN. */
size_t stepcast_explanation_parts(const struct stepcast_explanation *explanation);
const char *stepcast_explanation_part_name(const struct stepcast_explanation *explanation,
                                           size_t index);
double stepcast_explanation_part_seconds(const struct stepcast_explanation *explanation,
                                         size_t index);
/* Step time if this kind of work or resource ("memory bandwidth", a link's name, "issue") were
 * free; NAN when the plan has none of that name. */
double stepcast_explanation_step_time_if_free(const struct stepcast_explanation *explanation,
                                              const char *name);
/* What `stepcast explain --json` prints. */
enum stepcast_status stepcast_explanation_json(const struct stepcast_explanation *explanation,
                                               char **out, struct stepcast_error *error);

/* ---- running ----------------------------------------------------------------------------- */

struct stepcast_run_options {
    int64_t steps, warmup;    /* measured steps; steps before them */
    int64_t cores;            /* of this machine; 0: all */
    const char *backend;      /* NULL: "host" */
    const char *data_file;    /* tokens; NULL: drawn from the plan's seed */
    const char *initial_file; /* first parameters (safetensors); NULL: drawn */
    const char *save_file;    /* last parameters; NULL: not saved */
    bool chaos;               /* another order of what the plan leaves open ... */
    uint64_t chaos_seed;      /* ... chosen by this */
    bool trace;               /* keep times of operations */
};

struct stepcast_run;

/* 5 steps after 2 of warm-up on all cores of the host. */
void stepcast_run_options_neutral(struct stepcast_run_options *options);
/* Runs the plan on this machine; its ranks are threads of this process. `options` NULL: neutral. */
enum stepcast_status stepcast_run(const struct stepcast_plan *plan,
                                  const struct stepcast_run_options *options,
                                  struct stepcast_run **out, struct stepcast_error *error);
void stepcast_run_destroy(struct stepcast_run **run);
/* Median of the measured steps. */
double stepcast_run_step_time(const struct stepcast_run *run);
/* Losses of all steps, warm-up first; *count is their number. */
const double *stepcast_run_losses(const struct stepcast_run *run, size_t *count);
/* What `stepcast run --json` prints. */
enum stepcast_status stepcast_run_json(const struct stepcast_run *run, char **out,
                                       struct stepcast_error *error);
/* Belongs to the run; NULL when none was asked for. */
const struct stepcast_trace *stepcast_run_trace(const struct stepcast_run *run);

/* ---- search ------------------------------------------------------------------------------ */

struct stepcast_search_options {
    const char *model, *hardware; /* shipped names or files */
    int64_t devices;              /* ranks */
    int64_t global_batch;         /* sequences of a step */
    int64_t sequence_length;      /* 0: the model's longest */
    size_t top;                   /* plans to keep; 0: all that fit */
    /* Called now and then with a short line, from the calling thread or another; may be NULL. */
    void (*progress)(void *context, const char *line);
    void *context;
};

struct stepcast_search;

/* Finds the fastest plans that fit; none is no failure. */
enum stepcast_status stepcast_search(const struct stepcast_search_options *options,
                                     struct stepcast_search **out, struct stepcast_error *error);
void stepcast_search_destroy(struct stepcast_search **search);
size_t stepcast_search_count(const struct stepcast_search *search);
/* Plan `index`, fastest first; past the count: NAN. */
double stepcast_search_step_time(const struct stepcast_search *search, size_t index);
enum stepcast_status stepcast_search_plan_json(const struct stepcast_search *search, size_t index,
                                               char **out, struct stepcast_error *error);

/* ---- comparison -------------------------------------------------------------------------- */

struct stepcast_comparison;

/* Compares `count` pairs. Operation by operation where a pair comes from one program; else step
 * time and kinds. Errors are predicted / measured - 1. */
enum stepcast_status stepcast_compare(const struct stepcast_trace *const *predicted,
                                      const struct stepcast_trace *const *measured, size_t count,
                                      struct stepcast_comparison **out,
                                      struct stepcast_error *error);
void stepcast_comparison_destroy(struct stepcast_comparison **comparison);
/* Of the step time of pair `index`; NAN when nothing was measured. */
double stepcast_comparison_error(const struct stepcast_comparison *comparison, size_t index);
double stepcast_comparison_median_abs_error(const struct stepcast_comparison *comparison);
double stepcast_comparison_max_abs_error(const struct stepcast_comparison *comparison);
/* Measured time of the plan forecast fastest / measured fastest. */
double stepcast_comparison_regret(const struct stepcast_comparison *comparison);
/* What `stepcast compare --json` prints. */
enum stepcast_status stepcast_comparison_json(const struct stepcast_comparison *comparison,
                                              char **out, struct stepcast_error *error);

#ifdef __cplusplus
}
#endif

#endif
