/*
 * The keys of one JSON object as a table: reading, writing and checking all walk it. Numbers carry
 * their unit in the key; `unit` turns them into SI (value in the struct = value in the file *
 * unit). Internal to model/.
 */
#ifndef STEPCAST_MODEL_KEYS_H
#define STEPCAST_MODEL_KEYS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"

enum sc_key_kind {
    SC_KEY_INT,    /* int64_t in [min, max] */
    SC_KEY_NUMBER, /* double in [min, max], in the file's unit */
    SC_KEY_BOOL,
    SC_KEY_TEXT, /* char[size] */
    SC_KEY_ENUM  /* an int-sized enum, one of `names` */
};

struct sc_key {
    const char *name;
    enum sc_key_kind kind;
    size_t offset, size;
    bool required;
    double unit, min, max;
    const char *const *names;
};

#define SC_KEYS_MAX 32
#define SC_LARGEST 1e300 /* "no upper bound" */

/* Every key of the object must be a key of the table (ended by a NULL name), one of `others`
 * (NULL-terminated: what the caller reads itself), or "source". */
enum sc_status sc_keys_check(const struct sc_json *at, const struct sc_key *keys,
                             const char *const *others, struct sc_error *err);
/* Reads the table's keys into `base`; what is absent keeps its value. */
enum sc_status sc_keys_read(const struct sc_json *at, const struct sc_key *keys, void *base,
                            struct sc_error *err);
/* Adds the keys to `object` whose value in `base` differs from that in `neutral`, and the required
 * ones; false when out of memory. */
bool sc_keys_write(cJSON *object, const struct sc_key *keys, const void *base, const void *neutral);

#endif
