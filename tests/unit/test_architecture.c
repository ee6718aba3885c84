/* Models: parameter counts of public configurations, imports, refusals, shipped files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/architecture.h"
#include "plans/lower.h"

#define GOLDEN STEPCAST_SOURCE_DIR "/tests/golden/hf_models.jsonl"

/* Of the tensors that the lowering of one rank makes: the only count there is. */
static int64_t count_parameters(const struct sc_model *model)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    struct sc_plan plan;
    sc_plan_neutral(&plan);
    snprintf(plan.name, sizeof(plan.name), "count");
    snprintf(plan.hardware.profile, sizeof(plan.hardware.profile), "two-cores");
    plan.model = *model;
    plan.batch.global_batch = plan.batch.micro_batch = 1;
    plan.batch.sequence_length = 8;
    if (sc_plan_check(&plan, NULL, &err) != SC_OK || sc_lower(&plan, &program, &err) != SC_OK) {
        fail_msg("%s: %s", model->name, err.text);
    }
    int64_t parameters = sc_program_parameters(program);
    sc_program_destroy(&program);
    return parameters;
}

static enum sc_status import_text(const char *text, struct sc_model *out, struct sc_error *err)
{
    struct sc_json_doc doc;
    assert_int_equal(sc_json_parse(text, "config.json", &doc, err), SC_OK);
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = sc_json_has(&root, "schema") ? sc_model_parse(&root, out, err)
                                                         : sc_model_import_hf(&root, out, err);
    sc_json_doc_free(&doc);
    return status;
}

static struct sc_model import(const char *text)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_model model;
    if (import_text(text, &model, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return model;
}

static void refuse(const char *text, const char *word, const char *other)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_model model;
    assert_int_equal(import_text(text, &model, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, word));
    assert_non_null(strstr(err.text, other));
    assert_null(strchr(err.text, '\n'));
}

/* ---- public configurations ---- */

static const char *const expressible[] = {"gpt2", "opt", "llama", "mistral", "qwen2", NULL};

static bool is_expressible(const char *model_type)
{
    for (int i = 0; expressible[i] != NULL; i++) {
        if (strcmp(expressible[i], model_type) == 0) {
            return true;
        }
    }
    return false;
}

static bool check_line(const char *line)
{
    struct sc_error err = SC_ERROR_INIT;
    cJSON *entry = cJSON_Parse(line);
    assert_non_null(entry);
    cJSON *config = cJSON_GetObjectItem(entry, "config");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(config, "model_type"));
    double expected = cJSON_GetNumberValue(cJSON_GetObjectItem(entry, "parameters"));
    struct sc_json at = {config, NULL, NULL, 0, "config.json"};
    struct sc_model model;
    bool imported = sc_model_import_hf(&at, &model, &err) == SC_OK;
    if (imported != is_expressible(type)) {
        fail_msg("%s: %s", type, err.text);
    }
    if (imported) {
        assert_int_equal(count_parameters(&model), (int64_t)expected);
    } else {
        assert_non_null(strstr(err.text, "model_type"));
        assert_non_null(strstr(err.text, type));
    }
    cJSON_Delete(entry);
    return imported;
}

static void public_configurations_have_exact_counts(void **state)
{
    (void)state;
    char line[8192];
    int imported = 0, lines = 0;
    FILE *stream = fopen(GOLDEN, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof(line), stream) != NULL) {
        imported += check_line(line);
        lines++;
    }
    fclose(stream);
    assert_int_equal(lines, 24);
    assert_int_equal(imported, 14); /* 3 gpt2, 3 opt, 5 llama, 1 mistral, 2 qwen2 */
}

/* 50257 h + 1024 h + 40 (12 h^2 + 13 h) + 2 h with h = 5120:
 * 257,315,840 + 5,242,880 + 40 x 314,639,360 + 10,240 = 12,848,143,360. */
static void worked_count(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_model model;
    assert_int_equal(sc_model_load("gpt3-13b-64-heads", NULL, &model, &err), SC_OK);
    assert_int_equal(count_parameters(&model), INT64_C(12848143360));
    assert_int_equal(model.attention_heads, 64);
    assert_int_equal(model.head_size, 80);
    assert_int_equal(sc_model_qkv_size(&model), 15360);
}

/* ---- Hugging Face: aliases, nulls, neutral values ---- */

static void gpt2_neutral_values(void **state)
{
    (void)state;
    struct sc_model m =
        import("{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,"
               "\"n_ctx\":1024,\"vocab_size\":50257,\"n_inner\":null}");
    assert_int_equal(m.ffn_hidden_size, 3072);
    assert_int_equal(m.max_positions, 1024);
    assert_int_equal(m.activation, SC_GELU_TANH);
    assert_true(m.tied_head && m.biases);
    assert_string_equal(m.name, "gpt2");
}

#define LLAMA                                                                                      \
    "{\"model_type\":\"llama\",\"hidden_size\":3072,\"num_hidden_layers\":2,\"vocab_size\":100,"   \
    "\"num_attention_heads\":16,\"intermediate_size\":64"

/* head_dim wins over hidden / heads (3072 / 16 = 192); null and absent heads mean all heads. */
static void llama_optional_keys(void **state)
{
    (void)state;
    struct sc_model given = import(LLAMA ",\"head_dim\":256,\"num_key_value_heads\":4,"
                                         "\"_name_or_path\":\"org/thing\"}");
    assert_int_equal(given.head_size, 256);
    assert_int_equal(given.key_value_heads, 4);
    assert_string_equal(given.name, "thing");
    struct sc_model derived = import(LLAMA ",\"head_dim\":null,\"num_key_value_heads\":null,"
                                           "\"rope_parameters\":{\"rope_theta\":5e5}}");
    assert_int_equal(derived.head_size, 192);
    assert_int_equal(derived.key_value_heads, 16);
    assert_true(derived.rope_theta == 5e5);
    assert_false(derived.tied_head);
    assert_true(import(LLAMA ",\"attention_bias\":true,\"mlp_bias\":true}").biases);
}

static void import_refusals(void **state)
{
    (void)state;
    refuse("{\"hidden_size\":3}", "model_type", "stepcast.model/1");
    refuse("{\"model_type\":\"gpt_neo\",\"hidden_size\":3}", "model_type", "gpt_neo");
    refuse(LLAMA ",\"attention_bias\":true}", "attention_bias", "mlp_bias");
    refuse(LLAMA ",\"hidden_act\":\"gelu\"}", "hidden_act", "silu");
    refuse(LLAMA ",\"num_key_value_heads\":3}", "key_value_heads",
           "divisor of attention_heads (16)");
    refuse("{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":1,\"n_head\":6,\"vocab_size\":9}",
           "attention_heads: found 6", "hidden_size (64)");
    refuse(LLAMA ",\"partial_rotary_factor\":0.5}", "partial_rotary_factor", "not lowered");
    refuse("{\"model_type\":\"llama\",\"hidden_size\":8}", "num_hidden_layers", "nothing");
    refuse("{\"model_type\":\"opt\",\"hidden_size\":8,\"num_hidden_layers\":1,\"vocab_size\":9,"
           "\"num_attention_heads\":2,\"ffn_dim\":8,\"word_embed_proj_dim\":4}",
           "word_embed_proj_dim", "hidden_size (8)");
    refuse("{\"model_type\":\"opt\",\"do_layer_norm_before\":false}", "do_layer_norm_before",
           "true");
    refuse("{\"model_type\":\"gpt2\",\"scale_attn_by_inverse_layer_idx\":true}",
           "scale_attn_by_inverse_layer_idx", "false");
}

static void import_notes_name_what_is_left_out(void **state)
{
    (void)state;
    char notes[128];
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc doc;
    const char *text = "{\"rope_scaling\":{\"factor\":8},\"sliding_window\":4096,"
                       "\"quantization_config\":null}";
    assert_int_equal(sc_json_parse(text, "x", &doc, &err), SC_OK);
    struct sc_json root = sc_json_root(&doc);
    sc_model_import_notes(&root, notes, sizeof(notes));
    assert_string_equal(notes, "rope_scaling, sliding_window");
    sc_json_doc_free(&doc);
}

/* ---- stepcast.model/1 ---- */

#define MODEL(more)                                                                                \
    "{\"schema\":\"stepcast.model/1\",\"family\":\"gpt2\",\"layers\":2,\"hidden_size\":12,"        \
    "\"attention_heads\":4,\"ffn_hidden_size\":48,\"vocab_size\":100,\"max_positions\":8,"         \
    "\"norm\":\"layer_norm\",\"activation\":\"gelu_erf\",\"biases\":true,\"tied_head\":true" more  \
    "}"

static void own_format_derives_heads(void **state)
{
    (void)state;
    struct sc_model m = import(MODEL(",\"position\":\"learned\""));
    assert_int_equal(m.key_value_heads, 4);
    assert_int_equal(m.head_size, 3);
    assert_true(m.norm_epsilon == 1e-5);
}

static void own_format_refusals(void **state)
{
    (void)state;
    refuse(MODEL(",\"position\":\"rotary\""), "head_size", "even");
    refuse(MODEL(""), "position", "\"learned\"");
    refuse(MODEL(",\"position\":\"leraned\""), "position", "did you mean \"learned\"");
    refuse(MODEL(",\"position\":\"learned\",\"head_sise\":3"), "head_sise", "head_size");
    refuse(MODEL(",\"position\":\"learned\",\"key_value_heads\":0"), "key_value_heads", "1 to");
    refuse(MODEL(",\"position\":\"rotary\",\"head_size\":4,\"position_offset\":2"),
           "position_offset", "0");
    refuse("{\"schema\":\"stepcast.model/2\"}", "schema", "stepcast.model/1");
}

#define LARGE(layers)                                                                              \
    "{\"schema\":\"stepcast.model/1\",\"family\":\"gpt2\",\"layers\":" layers                      \
    ",\"hidden_size\":16777216,\"attention_heads\":4,\"ffn_hidden_size\":67108864,"                \
    "\"vocab_size\":100,\"max_positions\":8,\"norm\":\"layer_norm\",\"position\":\"learned\","     \
    "\"activation\":\"relu\",\"biases\":true,\"tied_head\":true,\"head_size\":2}"

/* A layer of hidden 2^24 and ffn 2^26 counts 3 x 2^50 at most: 10,000 of them overflow an int64,
 * 1,000 of them are 2^61.5, 64 of them 2^57.6. */
static void sizes_beyond_int64_are_refused(void **state)
{
    (void)state;
    refuse(LARGE("10000"), "layers", "2^58");
    refuse(LARGE("1000"), "layers", "2^58");
    assert_int_equal(import(LARGE("64")).layers, 64);
}

static void shapes_made_by_hand_are_checked(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_model m = import(MODEL(",\"position\":\"learned\""));
    assert_int_equal(sc_model_check(&m, &err), SC_OK);
    m.layers = 0;
    assert_int_equal(sc_model_check(&m, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "model.layers: found 0, expected a whole number from 1 to 10000");
}

/* ---- shipped files ---- */

/* What is written equals the file but for its notes. */
static enum sc_status check_shipped(void *context, const char *name, const struct sc_model *model,
                                    struct sc_error *err)
{
    int *count = context;
    char file[1024];
    struct sc_json_doc doc;
    snprintf(file, sizeof(file), STEPCAST_SOURCE_DIR "/model/shipped/%s.json", name);
    SC_TRY(sc_json_read(file, &doc, err));
    cJSON *json = sc_model_to_json(model);
    assert_non_null(json);
    assert_string_equal(model->name, name);
    assert_non_null(cJSON_GetObjectItem(doc.root, "notes"));
    cJSON_DeleteItemFromObject(doc.root, "notes");
    assert_true(cJSON_Compare(doc.root, json, true));
    cJSON_Delete(json);
    sc_json_doc_free(&doc);
    ++*count;
    return SC_OK;
}

static void shipped_models_read_and_write(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    int count = 0;
    assert_int_equal(sc_model_list(check_shipped, &count, &err), SC_OK);
    assert_true(count >= 12);
}

/*
 * Totals of the shipped families that public sources state to the digit, and llama-124m: embedding
 * and head 2 * 32000 * 768 = 49152000; a layer 2 * 768 * 768 (q, o) + 2 * 768 * 256 (k, v)
 * + 3 * 768 * 2048 (gate, up, down) + 2 * 768 = 6292992, twelve of them 75515904; last norm 768.
 */
static void shipped_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
    } rows[] = {
        {"gpt2", 124439808},
        {"gpt2-medium", 354823168},
        {"gpt2-xl", 1557611200},
        {"llama-124m", 124668672},
        {"llama2-7b", INT64_C(6738415616)},
        {"llama2-70b", INT64_C(68976648192)},
        {"llama3-8b", INT64_C(8030261248)},
        {"mistral-7b", INT64_C(7241732096)},
        {"qwen2.5-7b", INT64_C(7615616512)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_model model;
        assert_int_equal(sc_model_load(rows[i].name, NULL, &model, &err), SC_OK);
        assert_int_equal(count_parameters(&model), rows[i].parameters);
    }
}

static void unknown_names_suggest(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_model model;
    assert_int_equal(sc_model_load("gpt3-13", NULL, &model, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "\"gpt3-13b\""));
    assert_int_equal(sc_model_load("", NULL, &model, &err), SC_BAD_INPUT);
    assert_int_equal(sc_model_load("nowhere/x.json", "plans/p.json", &model, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "plans/nowhere/x.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_configurations_have_exact_counts),
        cmocka_unit_test(worked_count),
        cmocka_unit_test(gpt2_neutral_values),
        cmocka_unit_test(llama_optional_keys),
        cmocka_unit_test(import_refusals),
        cmocka_unit_test(import_notes_name_what_is_left_out),
        cmocka_unit_test(own_format_derives_heads),
        cmocka_unit_test(own_format_refusals),
        cmocka_unit_test(sizes_beyond_int64_are_refused),
        cmocka_unit_test(shapes_made_by_hand_are_checked),
        cmocka_unit_test(shipped_models_read_and_write),
        cmocka_unit_test(shipped_counts),
        cmocka_unit_test(unknown_names_suggest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
