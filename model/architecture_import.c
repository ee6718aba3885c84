/*
 * Hugging Face config.json: which key of which family says what. Key names are those of the
 * configuration classes of the transformers library (GPT2Config, OPTConfig, LlamaConfig,
 * MistralConfig, Qwen2Config) with their defaults; shapes that the family's block cannot express
 * are refused by the key that says so.
 */
#include "model/architecture.h"

#include <stdio.h>
#include <string.h>

#include "model/architecture_internal.h"
#include "model/keys.h"

#define LARGEST ((int64_t)1 << 40)

/* What a family does when a key is absent. Each name list ends with NULL; the first present one
 * counts. */
struct family_rule {
    const char *model_type;
    enum sc_family family;
    enum sc_norm norm;
    enum sc_position position;
    int64_t position_offset;
    bool biases, qkv_bias, gated, tied;
    const char *ffn[3], *activation[3];
    const char *neutral_activation;
    const char *epsilon;
    double neutral_epsilon;
    int64_t neutral_max_positions;
};

static const struct family_rule families[] = {
    {"gpt2",
     SC_FAMILY_GPT2,
     SC_LAYER_NORM,
     SC_POSITION_LEARNED,
     0,
     true,
     false,
     false,
     true,
     {"n_inner", "intermediate_size"},
     {"activation_function", "hidden_act"},
     "gelu_new",
     "layer_norm_epsilon",
     1e-5,
     1024},
    {"opt",
     SC_FAMILY_GPT2,
     SC_LAYER_NORM,
     SC_POSITION_LEARNED,
     2,
     true,
     false,
     false,
     true,
     {"ffn_dim", "intermediate_size"},
     {"activation_function", "hidden_act"},
     "relu",
     "layer_norm_eps",
     1e-5,
     2048},
    {"llama",
     SC_FAMILY_LLAMA,
     SC_RMS_NORM,
     SC_POSITION_ROTARY,
     0,
     false,
     false,
     true,
     false,
     {"intermediate_size"},
     {"hidden_act"},
     "silu",
     "rms_norm_eps",
     1e-6,
     2048},
    {"mistral",
     SC_FAMILY_LLAMA,
     SC_RMS_NORM,
     SC_POSITION_ROTARY,
     0,
     false,
     false,
     true,
     false,
     {"intermediate_size"},
     {"hidden_act"},
     "silu",
     "rms_norm_eps",
     1e-6,
     131072},
    {"qwen2",
     SC_FAMILY_LLAMA,
     SC_RMS_NORM,
     SC_POSITION_ROTARY,
     0,
     false,
     true,
     true,
     false,
     {"intermediate_size"},
     {"hidden_act"},
     "silu",
     "rms_norm_eps",
     1e-6,
     32768},
};
#define FAMILY_COUNT (sizeof(families) / sizeof(families[0]))

/* Keys whose other values change the block. `value` is what the import can express. */
struct condition {
    const char *model_type; /* NULL: any */
    const char *key;
    bool value;
};

static const struct condition conditions[] = {
    {NULL, "is_encoder_decoder", false},
    {NULL, "add_cross_attention", false},
    {"gpt2", "scale_attn_weights", true},
    {"gpt2", "scale_attn_by_inverse_layer_idx", false},
    {"opt", "do_layer_norm_before", true},
    {"opt", "enable_bias", true},
    {"opt", "layer_norm_elementwise_affine", true},
    {"opt", "_remove_final_layer_norm", false},
};
#define CONDITION_COUNT (sizeof(conditions) / sizeof(conditions[0]))

/* Keys that no shape depends on but that a run would have to honour. */
static const char *const left_out[] = {"rope_scaling", "sliding_window", "quantization_config"};
#define LEFT_OUT_COUNT (sizeof(left_out) / sizeof(left_out[0]))

static const struct {
    const char *name;
    enum sc_activation activation;
} activations[] = {
    {"gelu_new", SC_GELU_TANH},  {"gelu_pytorch_tanh", SC_GELU_TANH},
    {"gelu_fast", SC_GELU_TANH}, {"gelu", SC_GELU_ERF},
    {"relu", SC_RELU},
};
#define PLAIN_ACTIVATIONS "\"gelu_new\", \"gelu_pytorch_tanh\", \"gelu_fast\", \"gelu\" or \"relu\""

static struct sc_json below(const struct sc_json *at, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(at->item, key);
    return (struct sc_json){item, at, key, 0, at->file};
}

/* Absent and null are the same in these files. */
static bool has(const struct sc_json *at, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(at->item, key);
    return item != NULL && !cJSON_IsNull(item);
}

/* The first of `names` (NULL-terminated) that is present; else the first. */
static const char *present(const struct sc_json *at, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (has(at, names[i])) {
            return names[i];
        }
    }
    return names[0];
}

static enum sc_status get_size(const struct sc_json *at, const char *const *names, int64_t *out,
                               struct sc_error *err)
{
    return sc_json_int(at, present(at, names), 1, LARGEST, out, err);
}

static enum sc_status opt_size(const struct sc_json *at, const char *const *names, int64_t *out,
                               struct sc_error *err)
{
    return has(at, present(at, names)) ? get_size(at, names, out, err) : SC_OK;
}

static enum sc_status opt_flag(const struct sc_json *at, const char *key, bool *out,
                               struct sc_error *err)
{
    return has(at, key) ? sc_json_bool(at, key, out, err) : SC_OK;
}

static enum sc_status opt_real(const struct sc_json *at, const char *key, double *out,
                               struct sc_error *err)
{
    return has(at, key) ? sc_json_number(at, key, 0.0, SC_LARGEST, out, err) : SC_OK;
}

static enum sc_status find_family(const struct sc_json *at, const struct family_rule **out,
                                  struct sc_error *err)
{
    const struct sc_json type = below(at, "model_type");
    if (!cJSON_IsString(type.item)) {
        return sc_json_fail(&type, err,
                            "a Hugging Face \"model_type\", or \"schema\": \"stepcast.model/1\"");
    }
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        if (strcmp(families[i].model_type, type.item->valuestring) == 0) {
            *out = &families[i];
            return SC_OK;
        }
    }
    return sc_json_fail(&type, err, "a family that is lowered: gpt2, opt, llama, mistral or qwen2");
}

static enum sc_status check_conditions(const struct sc_json *at, const struct family_rule *rule,
                                       struct sc_error *err)
{
    for (size_t i = 0; i < CONDITION_COUNT; i++) {
        const struct condition *condition = &conditions[i];
        bool value = condition->value;
        if (condition->model_type != NULL && strcmp(condition->model_type, rule->model_type) != 0) {
            continue;
        }
        SC_TRY(opt_flag(at, condition->key, &value, err));
        if (value != condition->value) {
            const struct sc_json wrong = below(at, condition->key);
            return sc_json_fail(&wrong, err, "%s (the only form that is lowered)",
                                condition->value ? "true" : "false");
        }
    }
    return SC_OK;
}

static enum sc_status read_sizes(const struct sc_json *at, const struct family_rule *rule,
                                 struct sc_model *model, struct sc_error *err)
{
    static const char *const layers[] = {"num_hidden_layers", "n_layer", NULL};
    static const char *const hidden[] = {"hidden_size", "n_embd", NULL};
    static const char *const heads[] = {"num_attention_heads", "n_head", NULL};
    static const char *const key_value[] = {"num_key_value_heads", NULL};
    static const char *const head_size[] = {"head_dim", NULL};
    static const char *const vocab[] = {"vocab_size", NULL};
    static const char *const positions[] = {"max_position_embeddings", "n_positions", "n_ctx",
                                            NULL};
    SC_TRY(get_size(at, layers, &model->layers, err));
    SC_TRY(get_size(at, hidden, &model->hidden_size, err));
    SC_TRY(get_size(at, heads, &model->attention_heads, err));
    SC_TRY(get_size(at, vocab, &model->vocab_size, err));
    model->max_positions = rule->neutral_max_positions;
    SC_TRY(opt_size(at, positions, &model->max_positions, err));
    if (rule->family == SC_FAMILY_LLAMA) {
        SC_TRY(opt_size(at, key_value, &model->key_value_heads, err));
        SC_TRY(opt_size(at, head_size, &model->head_size, err));
    }
    if (strcmp(rule->model_type, "gpt2") == 0 && !has(at, present(at, rule->ffn))) {
        model->ffn_hidden_size = 4 * model->hidden_size;
        return SC_OK;
    }
    return get_size(at, rule->ffn, &model->ffn_hidden_size, err);
}

static enum sc_status read_activation(const struct sc_json *at, const struct family_rule *rule,
                                      struct sc_model *model, struct sc_error *err)
{
    const struct sc_json found = below(at, present(at, rule->activation));
    const char *name = rule->neutral_activation;
    if (found.item != NULL && !cJSON_IsNull(found.item)) {
        name = cJSON_IsString(found.item) ? found.item->valuestring : "";
    }
    if (rule->gated) {
        model->activation = SC_SWIGLU;
        return strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0
                   ? SC_OK
                   : sc_json_fail(&found, err, "\"silu\"");
    }
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        if (strcmp(activations[i].name, name) == 0) {
            model->activation = activations[i].activation;
            return SC_OK;
        }
    }
    return sc_json_fail(&found, err, PLAIN_ACTIVATIONS);
}

/* rope_theta stands at the top or, in newer files, in rope_parameters. */
static enum sc_status read_rotary(const struct sc_json *at, struct sc_model *model,
                                  struct sc_error *err)
{
    double rotated = 1.0;
    const struct sc_json inner = below(at, "rope_parameters");
    model->rope_theta = 10000.0;
    SC_TRY(opt_real(at, "rope_theta", &model->rope_theta, err));
    if (cJSON_IsObject(inner.item)) {
        SC_TRY(opt_real(&inner, "rope_theta", &model->rope_theta, err));
    }
    SC_TRY(opt_real(at, "partial_rotary_factor", &rotated, err));
    if (rotated < 1.0) {
        const struct sc_json wrong = below(at, "partial_rotary_factor");
        return sc_json_fail(&wrong, err, "1 (partly rotated heads are not lowered)");
    }
    return SC_OK;
}

/* Llama's two switches: both set are `biases`; one alone has no lowering. */
static enum sc_status read_biases(const struct sc_json *at, const struct family_rule *rule,
                                  struct sc_model *model, struct sc_error *err)
{
    bool attention = false, mlp = false;
    model->biases = rule->biases;
    model->attention_qkv_bias = rule->qkv_bias;
    if (strcmp(rule->model_type, "llama") != 0) {
        return SC_OK;
    }
    SC_TRY(opt_flag(at, "attention_bias", &attention, err));
    SC_TRY(opt_flag(at, "mlp_bias", &mlp, err));
    if (attention != mlp) {
        const struct sc_json wrong = below(at, attention ? "attention_bias" : "mlp_bias");
        return sc_json_fail(&wrong, err, "attention_bias and mlp_bias both true or both false");
    }
    model->biases = attention;
    return SC_OK;
}

static enum sc_status check_projection(const struct sc_json *at, const struct sc_model *model,
                                       struct sc_error *err)
{
    static const char *const projection[] = {"word_embed_proj_dim", NULL};
    int64_t width = model->hidden_size;
    SC_TRY(opt_size(at, projection, &width, err));
    if (width != model->hidden_size) {
        const struct sc_json wrong = below(at, projection[0]);
        return sc_json_fail(&wrong, err, "hidden_size (%lld): projected embeddings are not lowered",
                            (long long)model->hidden_size);
    }
    return SC_OK;
}

/* "org/name" or a path ends in the name; without one the family names the model. */
static void read_name(const struct sc_json *at, const struct family_rule *rule,
                      struct sc_model *model)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(at->item, "_name_or_path");
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    const char *slash = strrchr(text, '/');
    const char *name = slash != NULL ? slash + 1 : text;
    size_t length = strlen(name);
    bool usable = length > 0 && length < sizeof(model->name);
    snprintf(model->name, sizeof(model->name), "%s", usable ? name : rule->model_type);
}

enum sc_status sc_model_import_hf(const struct sc_json *at, struct sc_model *out,
                                  struct sc_error *err)
{
    const struct family_rule *rule = NULL;
    struct sc_model model = {.rope_theta = 10000.0};
    SC_TRY(find_family(at, &rule, err));
    SC_TRY(check_conditions(at, rule, err));
    read_name(at, rule, &model);
    model.family = rule->family;
    model.norm = rule->norm;
    model.position = rule->position;
    model.position_offset = rule->position_offset;
    model.norm_epsilon = rule->neutral_epsilon;
    model.tied_head = rule->tied;
    SC_TRY(read_sizes(at, rule, &model, err));
    SC_TRY(read_activation(at, rule, &model, err));
    SC_TRY(opt_real(at, rule->epsilon, &model.norm_epsilon, err));
    SC_TRY(opt_flag(at, "tie_word_embeddings", &model.tied_head, err));
    SC_TRY(read_biases(at, rule, &model, err));
    SC_TRY(check_projection(at, &model, err));
    if (rule->position == SC_POSITION_ROTARY) {
        SC_TRY(read_rotary(at, &model, err));
    }
    SC_TRY(sc_model_finish(at, &model, err));
    *out = model;
    return SC_OK;
}

static bool says_something(const struct sc_json *at, const char *key)
{
    const cJSON *on = cJSON_GetObjectItemCaseSensitive(at->item, "use_sliding_window");
    if (strcmp(key, "sliding_window") == 0 && cJSON_IsFalse(on)) {
        return false;
    }
    return has(at, key);
}

void sc_model_import_notes(const struct sc_json *at, char *out, size_t size)
{
    size_t used = 0;
    if (size > 0) {
        out[0] = '\0';
    }
    for (size_t i = 0; i < LEFT_OUT_COUNT; i++) {
        if (says_something(at, left_out[i]) && used < size) {
            int length =
                snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", left_out[i]);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}
