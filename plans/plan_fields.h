/*
 * The keys of a plan as a table: what reads, writes and checks a plan walks it, so that the three
 * cannot disagree. A new key is a new row. Internal to plans/plan*.c.
 */
#ifndef STEPCAST_PLANS_PLAN_FIELDS_H
#define STEPCAST_PLANS_PLAN_FIELDS_H

#include "plans/plan.h"

enum sc_plan_section {
    SC_SECTION_ROOT,
    SC_SECTION_HARDWARE,
    SC_SECTION_MESH,
    SC_SECTION_BATCH,
    SC_SECTION_PRECISION,
    SC_SECTION_ZERO,
    SC_SECTION_OFFLOAD,
    SC_SECTION_OFFLOAD_OPTIMIZER,
    SC_SECTION_OFFLOAD_PARAMETERS,
    SC_SECTION_OFFLOAD_ACTIVATIONS,
    SC_SECTION_DOMINO,
    SC_SECTION_PIPELINE,
    SC_SECTION_CONTEXT,
    SC_SECTION_RECOMPUTE,
    SC_SECTION_ATTENTION,
    SC_SECTION_DROPOUT,
    SC_SECTION_QUANTIZATION,
    SC_SECTION_DISTILLATION,
    SC_SECTION_OPTIMIZER,
    SC_SECTION_LOSS,
    SC_SECTION_COUNT
};

struct sc_plan_section_row {
    const char *key;
    enum sc_plan_section parent; /* SC_SECTION_ROOT: a top-level key */
    bool required;
};
extern const struct sc_plan_section_row sc_plan_sections[SC_SECTION_COUNT];

enum sc_plan_field_kind {
    SC_FIELD_INT,    /* int64_t in [min, max] */
    SC_FIELD_NUMBER, /* double in [min, max], or [min, max) with `open` */
    SC_FIELD_BOOL,
    SC_FIELD_ENUM,    /* an enum, or a bool by the names of false and true; `names` */
    SC_FIELD_NEUTRAL, /* not lowered yet: only the value `neutral` (JSON text); no storage */
};

struct sc_plan_field {
    enum sc_plan_section section;
    const char *key;
    enum sc_plan_field_kind kind;
    bool required, open;
    size_t offset, size; /* in struct sc_plan */
    double min, max;
    const char *const *names;
    const char *neutral;
    const char *note; /* why nothing else is accepted */
};
/* In the order in which a plan is written. */
extern const struct sc_plan_field sc_plan_fields[];
extern const int sc_plan_field_count;

/* Values that a key will take one day, with the reason why not now. */
struct sc_plan_later {
    enum sc_plan_section section;
    const char *key; /* NULL: any key of the section */
    const char *value;
    const char *note;
};
extern const struct sc_plan_later sc_plan_later[];
extern const int sc_plan_later_count;

#define SC_PLAN_SCHEMA "stepcast.plan/1"
/* JSON carries whole numbers exactly up to here. */
#define SC_PLAN_MAX_SEED 9007199254740992.0

/* The value of a field, as a number (enums and booleans by their index). */
double sc_plan_field_get(const struct sc_plan_field *field, const struct sc_plan *plan);
void sc_plan_field_set(const struct sc_plan_field *field, struct sc_plan *plan, double value);
/* "mesh.tensor_parallel" into out. */
void sc_plan_field_path(const struct sc_plan_field *field, char *out, size_t size);
/* What the field accepts: "0 or 1", "\"none\" or \"full\"", "a number in [0, 1)". */
void sc_plan_field_expected(const struct sc_plan_field *field, char *out, size_t size);

/* Appends formatted text at the end of the string in out, cut at size. */
void sc_plan_append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A number as a plan would write it: "18", "0.1". */
const char *sc_plan_print_number(double value, char *out, size_t size);

#endif
