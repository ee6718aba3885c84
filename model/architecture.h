/*
 * What is trained: a decoder-only transformer of the GPT-2/GPT-3 family (LayerNorm, GELU, biases,
 * learned positions) or the Llama family (RMSNorm, SwiGLU, rotary positions, grouped-query
 * attention), or a mixture of their traits. Only shapes and names live here; parameters, FLOPs and
 * bytes are sums over the operations that a lowering emits.
 */
#ifndef STEPCAST_MODEL_ARCHITECTURE_H
#define STEPCAST_MODEL_ARCHITECTURE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

enum sc_family { SC_FAMILY_GPT2, SC_FAMILY_LLAMA, SC_FAMILY_COUNT };
enum sc_norm { SC_LAYER_NORM, SC_RMS_NORM, SC_NORM_COUNT };
enum sc_activation {
    SC_GELU_TANH,
    SC_GELU_ERF,
    SC_RELU,
    SC_SWIGLU, /* silu(gate) * up: gate and up come from one packed product */
    SC_ACTIVATION_COUNT
};
enum sc_position { SC_POSITION_LEARNED, SC_POSITION_ROTARY, SC_POSITION_COUNT };

/* Names in enum order, NULL-terminated. */
extern const char *const sc_family_names[SC_FAMILY_COUNT + 1];
extern const char *const sc_norm_names[SC_NORM_COUNT + 1];
extern const char *const sc_activation_names[SC_ACTIVATION_COUNT + 1];
extern const char *const sc_position_names[SC_POSITION_COUNT + 1];

#define SC_NAME_SIZE 128

struct sc_model {
    char name[SC_NAME_SIZE];
    enum sc_family family; /* the names that checkpoints use; nothing else follows from it */
    int64_t layers;
    int64_t hidden_size;
    int64_t attention_heads;
    int64_t key_value_heads; /* = attention_heads: multi-head attention */
    int64_t head_size;       /* attention_heads * head_size need not equal hidden_size */
    int64_t ffn_hidden_size;
    int64_t vocab_size; /* unpadded */
    int64_t max_positions;
    enum sc_norm norm;
    double norm_epsilon;
    enum sc_activation activation;
    enum sc_position position;
    double rope_theta;       /* rotary only */
    int64_t position_offset; /* learned only: extra rows before position 0 (OPT: 2), else 0 */
    bool biases;             /* on every linear of the block and, with LayerNorm, in the norms */
    bool attention_qkv_bias; /* bias on q, k, v alone where `biases` is false (Qwen2) */
    bool tied_head;          /* the LM head is the embedding */
};

/* Width of the packed q, k, v projection: (attention_heads + 2 key_value_heads) head_size. */
int64_t sc_model_qkv_size(const struct sc_model *model);
bool sc_activation_gated(enum sc_activation activation);

/* Reads stepcast.model/1 from a cursor. Unknown keys are errors. */
enum sc_status sc_model_parse(const struct sc_json *at, struct sc_model *out, struct sc_error *err);
/* A shipped name ("gpt2"), or a file: stepcast.model/1 or a Hugging Face config.json (told apart by
 * the "schema" key). `relative_to` is the file that names it (NULL: the current folder). */
enum sc_status sc_model_load(const char *name_or_file, const char *relative_to,
                             struct sc_model *out, struct sc_error *err);
/* A Hugging Face configuration; families that are not lowered are refused by their model_type. */
enum sc_status sc_model_import_hf(const struct sc_json *at, struct sc_model *out,
                                  struct sc_error *err);
/* What of a Hugging Face configuration the import leaves out because no shape depends on it, as
 * "rope_scaling, sliding_window"; empty when nothing is. */
void sc_model_import_notes(const struct sc_json *at, char *out, size_t size);
/* Checks that the shape makes sense (heads divide, sizes positive, products do not overflow). */
enum sc_status sc_model_check(const struct sc_model *model, struct sc_error *err);
/* Calls `each` with every shipped model, sorted by name (`stepcast list`); stops at its first
 * failure. The model lives until `each` returns. */
typedef enum sc_status (*sc_model_fn)(void *context, const char *name, const struct sc_model *model,
                                      struct sc_error *err);
enum sc_status sc_model_list(sc_model_fn each, void *context, struct sc_error *err);
/* stepcast.model/1; the caller deletes it with cJSON_Delete. NULL when out of memory. */
cJSON *sc_model_to_json(const struct sc_model *model);

#endif
