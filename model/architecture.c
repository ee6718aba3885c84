/* Models: stepcast.model/1 read, checked and written; shipped names. */
#include "model/architecture.h"

#include <stdio.h>
#include <string.h>

#include "model/architecture_internal.h"
#include "model/keys.h"
#include "model/shipped.h"

#define SCHEMA "stepcast.model/1"
#define PLACE_SIZE 512
/* Above this an int64 could overflow somewhere: 2^62 bytes at 16 bytes a parameter. */
#define MOST_PARAMETERS ((int64_t)1 << 58)

const char *const sc_family_names[SC_FAMILY_COUNT + 1] = {"gpt2", "llama", NULL};
const char *const sc_norm_names[SC_NORM_COUNT + 1] = {"layer_norm", "rms_norm", NULL};
const char *const sc_activation_names[SC_ACTIVATION_COUNT + 1] = {"gelu_tanh", "gelu_erf", "relu",
                                                                  "swiglu", NULL};
const char *const sc_position_names[SC_POSITION_COUNT + 1] = {"learned", "rotary", NULL};

#define AT(member) offsetof(struct sc_model, member), sizeof(((struct sc_model *)0)->member)
#define WHOLE(key, required, min, max)                                                             \
    {                                                                                              \
#key, SC_KEY_INT, AT(key), required, 1.0, min, max, NULL                                   \
    }
#define REAL(key, min, max)                                                                        \
    {                                                                                              \
#key, SC_KEY_NUMBER, AT(key), false, 1.0, min, max, NULL                                   \
    }
#define NAMED(key, names)                                                                          \
    {                                                                                              \
#key, SC_KEY_ENUM, AT(key), true, 1.0, 0, 0, names                                         \
    }
#define FLAG(key, required)                                                                        \
    {                                                                                              \
#key, SC_KEY_BOOL, AT(key), required, 1.0, 0, 1, NULL                                      \
    }

/* The order in which a model is written. */
static const struct sc_key keys[] = {
    {"name", SC_KEY_TEXT, AT(name), false, 1.0, 0, 0, NULL},
    NAMED(family, sc_family_names),
    WHOLE(layers, true, 1, 1e4),
    WHOLE(hidden_size, true, 1, 1 << 24),
    WHOLE(attention_heads, true, 1, 1 << 20),
    WHOLE(key_value_heads, false, 1, 1 << 20),
    WHOLE(head_size, false, 1, 1 << 16),
    WHOLE(ffn_hidden_size, true, 1, 1 << 26),
    WHOLE(vocab_size, true, 1, 1 << 28),
    WHOLE(max_positions, true, 1, 1 << 30),
    NAMED(norm, sc_norm_names),
    REAL(norm_epsilon, 0.0, 1.0),
    NAMED(activation, sc_activation_names),
    NAMED(position, sc_position_names),
    REAL(rope_theta, 1.0, 1e15),
    WHOLE(position_offset, false, 0, 1 << 20),
    FLAG(biases, true),
    FLAG(attention_qkv_bias, false),
    FLAG(tied_head, true),
    {NULL, SC_KEY_INT, 0, 0, false, 0, 0, 0, NULL},
};
/* The counts are what `import` says of a model: they follow from the others and are not read. */
static const char *const other_keys[] = {"schema", "notes", "parameters", "active_parameters",
                                         NULL};

int64_t sc_model_qkv_size(const struct sc_model *model)
{
    return (model->attention_heads + 2 * model->key_value_heads) * model->head_size;
}

bool sc_activation_gated(enum sc_activation activation)
{
    return activation == SC_SWIGLU;
}

/* ---- checks ---- */

struct place {
    const char *file, *path;
};

static enum sc_status fail(const struct place *at, const char *key, int64_t found,
                           const char *expected, struct sc_error *err)
{
    char path[PLACE_SIZE], value[32];
    snprintf(path, sizeof(path), "%s%s%s", at->path, at->path[0] != '\0' ? "." : "", key);
    snprintf(value, sizeof(value), "%lld", (long long)found);
    return sc_fail_input(err, at->file, path, value, expected);
}

static enum sc_status check_sizes(const struct sc_model *model, const struct place *at,
                                  struct sc_error *err)
{
    for (const struct sc_key *key = keys; key->name != NULL; key++) {
        int64_t value = 0;
        if (key->kind != SC_KEY_INT) {
            continue;
        }
        memcpy(&value, (const char *)model + key->offset, sizeof(value));
        if ((double)value < key->min || (double)value > key->max) {
            char expected[96];
            snprintf(expected, sizeof(expected), "a whole number from %.0f to %.0f", key->min,
                     key->max);
            return fail(at, key->name, value, expected, err);
        }
    }
    return SC_OK;
}

/* Bounds the parameters from above (the widest MLP, an untied head), with no overflow on the way:
 * the limits of the keys keep a layer below 2^57 and the embeddings below 2^55. */
static enum sc_status check_total(const struct sc_model *model, const struct place *at,
                                  struct sc_error *err)
{
    int64_t h = model->hidden_size;
    int64_t width = sc_model_qkv_size(model) + model->attention_heads * model->head_size +
                    3 * model->ffn_hidden_size + 16;
    int64_t layer = 0, blocks = 0, total = 0;
    int64_t ends = h * (2 * model->vocab_size + model->max_positions + model->position_offset);
    if (__builtin_mul_overflow(h, width, &layer) ||
        __builtin_mul_overflow(model->layers, layer, &blocks) ||
        __builtin_add_overflow(blocks, ends, &total) || total > MOST_PARAMETERS) {
        return fail(at, "layers", model->layers,
                    "a model of fewer than 2^58 parameters, so that byte counts fit", err);
    }
    return SC_OK;
}

static enum sc_status check_traits(const struct sc_model *model, const struct place *at,
                                   struct sc_error *err)
{
    if (model->attention_heads % model->key_value_heads != 0) {
        char expected[64];
        snprintf(expected, sizeof(expected), "a divisor of attention_heads (%lld)",
                 (long long)model->attention_heads);
        return fail(at, "key_value_heads", model->key_value_heads, expected, err);
    }
    if (model->position == SC_POSITION_ROTARY && model->head_size % 2 != 0) {
        return fail(at, "head_size", model->head_size, "an even number (rotary positions)", err);
    }
    if (model->position != SC_POSITION_LEARNED && model->position_offset != 0) {
        return fail(at, "position_offset", model->position_offset, "0 (positions are not learned)",
                    err);
    }
    return SC_OK;
}

static enum sc_status check_at(const struct sc_model *model, const struct place *at,
                               struct sc_error *err)
{
    SC_TRY(check_sizes(model, at, err));
    SC_TRY(check_traits(model, at, err));
    return check_total(model, at, err);
}

enum sc_status sc_model_check(const struct sc_model *model, struct sc_error *err)
{
    const struct place at = {NULL, "model"};
    return check_at(model, &at, err);
}

/* ---- reading and writing ---- */

static const struct sc_model neutral = {
    .norm_epsilon = 1e-5,
    .rope_theta = 10000.0,
};

/* Width of a head where the file does not say: only where it is a whole number. */
static enum sc_status derive_head_size(struct sc_model *model, const struct place *at,
                                       struct sc_error *err)
{
    if (model->head_size != 0) {
        return SC_OK;
    }
    if (model->hidden_size % model->attention_heads != 0) {
        char expected[96];
        snprintf(expected, sizeof(expected),
                 "a divisor of hidden_size (%lld) where no head size is given",
                 (long long)model->hidden_size);
        return fail(at, "attention_heads", model->attention_heads, expected, err);
    }
    model->head_size = model->hidden_size / model->attention_heads;
    return SC_OK;
}

enum sc_status sc_model_finish(const struct sc_json *at, struct sc_model *model,
                               struct sc_error *err)
{
    char path[PLACE_SIZE / 2];
    sc_json_path(at, path, sizeof(path));
    const struct place place = {at->file, path};
    if (model->key_value_heads == 0) {
        model->key_value_heads = model->attention_heads;
    }
    SC_TRY(derive_head_size(model, &place, err));
    return check_at(model, &place, err);
}

enum sc_status sc_model_parse(const struct sc_json *at, struct sc_model *out, struct sc_error *err)
{
    struct sc_model model = neutral;
    SC_TRY(sc_json_schema(at, SCHEMA, err));
    SC_TRY(sc_keys_check(at, keys, other_keys, err));
    SC_TRY(sc_keys_read(at, keys, &model, err));
    SC_TRY(sc_model_finish(at, &model, err));
    *out = model;
    return SC_OK;
}

static enum sc_status load_file(const char *file, struct sc_model *out, struct sc_error *err)
{
    struct sc_json_doc doc;
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = sc_json_has(&root, "schema") ? sc_model_parse(&root, out, err)
                                                         : sc_model_import_hf(&root, out, err);
    sc_json_doc_free(&doc);
    return status;
}

enum sc_status sc_model_load(const char *name_or_file, const char *relative_to,
                             struct sc_model *out, struct sc_error *err)
{
    char file[SC_PATH_SIZE];
    SC_TRY(sc_shipped_resolve(SC_SHIPPED_MODELS, "model", name_or_file, relative_to, file,
                              sizeof(file), err));
    return load_file(file, out, err);
}

struct list_call {
    sc_model_fn each;
    void *context;
};

static enum sc_status list_one(void *context, const char *name, const char *file,
                               struct sc_error *err)
{
    const struct list_call *call = context;
    struct sc_model model;
    SC_TRY(load_file(file, &model, err));
    return call->each(call->context, name, &model, err);
}

enum sc_status sc_model_list(sc_model_fn each, void *context, struct sc_error *err)
{
    struct list_call call = {each, context};
    return sc_shipped_list(SC_SHIPPED_MODELS, list_one, &call, err);
}

cJSON *sc_model_to_json(const struct sc_model *model)
{
    struct sc_model omitted = neutral;
    omitted.rope_theta = model->position == SC_POSITION_ROTARY ? 0.0 : model->rope_theta;
    omitted.norm_epsilon = 0.0;
    cJSON *object = cJSON_CreateObject();
    if (object == NULL || !cJSON_AddStringToObject(object, "schema", SCHEMA) ||
        !sc_keys_write(object, keys, model, &omitted)) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}
