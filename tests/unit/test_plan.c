/* Plans: defaults, round trips, every shipped file, and the exact line of each refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/data_path.h"
#include "model/shipped.h"
#include "plans/plan.h"
#include "tests/support/random_plan.h"

/* 52 heads: the tensor sizes that divide are not only powers of two. */
static const char base_plan[] =
    "{\"schema\": \"stepcast.plan/1\", \"name\": \"base\","
    " \"model\": {\"schema\": \"stepcast.model/1\", \"name\": \"m\", \"family\": \"gpt2\","
    "   \"layers\": 2, \"hidden_size\": 832, \"attention_heads\": 52, \"ffn_hidden_size\": 3328,"
    "   \"vocab_size\": 50257, \"max_positions\": 1024, \"norm\": \"layer_norm\","
    "   \"activation\": \"gelu_tanh\", \"position\": \"learned\", \"biases\": true,"
    "   \"tied_head\": true},"
    " \"hardware\": {\"profile\": \"dgx-h100\", \"nodes\": 1},"
    " \"batch\": {\"global_batch\": 16, \"micro_batch\": 4, \"sequence_length\": 1024}}";

/* The base plan with "path=value" strings applied (NULL-terminated). */
static enum sc_status parse_with(const char *const *set, struct sc_plan *out, struct sc_error *err)
{
    struct sc_json_doc doc;
    assert_int_equal(sc_json_parse(base_plan, "p.json", &doc, err), SC_OK);
    for (int i = 0; set != NULL && set[i] != NULL; i++) {
        char path[128];
        const char *equals = strchr(set[i], '=');
        snprintf(path, sizeof(path), "%.*s", (int)(equals - set[i]), set[i]);
        assert_int_equal(sc_json_set(&doc, path, equals + 1, err), SC_OK);
    }
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = sc_plan_parse(&root, out, err);
    sc_json_doc_free(&doc);
    return status;
}

static void assert_accepted(const char *const *set, struct sc_plan *out)
{
    struct sc_error err = SC_ERROR_INIT;
    if (parse_with(set, out, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
}

static void assert_refused(const char *const *set, const char *line)
{
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    memset(&plan, 0x5A, sizeof(plan));
    assert_int_equal(parse_with(set, &plan, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, line);
    assert_int_equal(plan.name[0], 0x5A); /* the output is untouched */
}

#define REFUSED(line, ...) assert_refused((const char *const[]){__VA_ARGS__, NULL}, line)

/* Equal as far as a file can tell: byte for byte after one trip. */
static void assert_same(const struct sc_plan *a, const struct sc_plan *b)
{
    cJSON *first = sc_plan_to_json(a), *second = sc_plan_to_json(b);
    assert_non_null(first);
    assert_true(cJSON_Compare(first, second, 1));
    cJSON_Delete(first);
    cJSON_Delete(second);
    assert_string_equal(a->name, b->name);
    assert_memory_equal(&a->model, &b->model, sizeof(a->model));
    assert_memory_equal(&a->mesh.order, &b->mesh.order, sizeof(a->mesh.order));
    assert_memory_equal(&a->mesh.size, &b->mesh.size, sizeof(a->mesh.size));
    assert_int_equal(a->mesh.synchronous_backward, b->mesh.synchronous_backward);
    assert_memory_equal(&a->batch, &b->batch, sizeof(a->batch));
    assert_memory_equal(&a->precision, &b->precision, sizeof(a->precision));
    assert_int_equal(a->zero.stage, b->zero.stage);
    assert_int_equal(a->zero.bucket_elements, b->zero.bucket_elements);
    assert_memory_equal(&a->dropout.hidden, &b->dropout.hidden, 2 * sizeof(double));
    assert_memory_equal(&a->optimizer.beta1, &b->optimizer.beta1, sizeof(double));
    assert_int_equal(a->seed, b->seed);
}

static void assert_round_trip(const struct sc_plan *plan)
{
    struct sc_plan again;
    struct sc_error err = SC_ERROR_INIT;
    cJSON *json = sc_plan_to_json(plan);
    assert_non_null(json);
    struct sc_json_doc doc = {json, NULL};
    struct sc_json root = sc_json_root(&doc);
    if (sc_plan_parse(&root, &again, &err) != SC_OK) {
        fail_msg("%s: %s", plan->name, err.text);
    }
    cJSON_Delete(json);
    assert_same(plan, &again);
}

static void neutral_values(void **state)
{
    (void)state;
    struct sc_plan plan;
    assert_accepted(NULL, &plan);
    assert_int_equal(sc_plan_ranks(&plan), 1);
    assert_int_equal(plan.hardware.nodes, 1);
    assert_int_equal(plan.precision.parameters, SC_FP32);
    assert_int_equal(plan.precision.data_reduction, SC_FP32);
    assert_int_equal(plan.zero.stage, 0);
    assert_int_equal(plan.domino.pieces, 1);
    assert_int_equal(plan.mesh.synchronous_backward, false);
    assert_true(plan.dropout.hidden == 0 && plan.dropout.attention == 0);
    assert_true(plan.optimizer.clip_global_norm == 0);
    assert_int_equal(sc_plan_micro_batches(&plan), 4); /* 16 / (4 x 1) */
    assert_int_equal(plan.loss.vocab_parallel, true);
}

/* 50257 rounded up to a multiple of 128 x TP: 393 x 128 = 50304, 197 x 256 = 50432,
 * 99 x 512 = 50688, 50 x 1024 = 51200. */
static void padded_vocabulary(void **state)
{
    (void)state;
    static const int64_t padded[][2] = {{1, 50304}, {2, 50432}, {4, 50688}, {8, 51200}};
    struct sc_plan plan;
    assert_accepted(NULL, &plan);
    for (size_t i = 0; i < sizeof(padded) / sizeof(padded[0]); i++) {
        plan.mesh.size[SC_TENSOR] = padded[i][0];
        assert_int_equal(sc_plan_padded_vocab(&plan), padded[i][1]);
    }
    plan.loss.vocab_parallel = false;
    assert_int_equal(sc_plan_padded_vocab(&plan), 50304);
}

static void precision_follows(void **state)
{
    (void)state;
    struct sc_plan plan;
    const char *const set[] = {"precision.parameters=bf16", NULL};
    assert_accepted(set, &plan);
    assert_int_equal(plan.precision.activations, SC_BF16);
    assert_int_equal(plan.precision.tensor_reduction, SC_BF16);
    assert_int_equal(plan.precision.gradients, SC_FP32);
    assert_int_equal(plan.precision.data_reduction, SC_FP32);
    const char *const bf16[] = {"precision.parameters=bf16", "precision.gradients=bf16", NULL};
    assert_accepted(bf16, &plan);
    assert_int_equal(plan.precision.data_reduction, SC_BF16);
}

static void neutral_sections_are_accepted(void **state)
{
    (void)state;
    struct sc_plan plan;
    const char *const set[] = {
        "offload.optimizer={\"place\":\"device\",\"fraction\":0.0,\"delayed_update\":false}",
        "offload.parameters.place=device",
        "pipeline={\"schedule\":\"none\",\"virtual_stages\":1}",
        "context.method=none",
        "quantization={\"gemm\":\"none\",\"tensor_reduction\":\"none\"}",
        "distillation.teacher=none",
        "zero.secondary_partition=1",
        "precision.loss_scale=none",
        "mesh.sequence_parallel=false",
        "notes=[1,2]",
        NULL};
    assert_accepted(set, &plan);
}

static void what_is_not_lowered_is_refused_by_name(void **state)
{
    (void)state;
    REFUSED("p.json: zero.stage: found 3, expected 0 or 1 (ZeRO-3 is not lowered yet)",
            "zero.stage=3");
    REFUSED("p.json: zero.stage: found 2, expected 0 or 1 (ZeRO-2 is not lowered yet)",
            "zero.stage=2");
    REFUSED("p.json: offload.optimizer.place: found \"host\", expected \"device\" (offload is not "
            "lowered yet)",
            "offload.optimizer.place=host");
    REFUSED("p.json: pipeline.schedule: found \"1f1b\", expected \"none\" (pipeline schedules are "
            "not lowered yet)",
            "pipeline.schedule=1f1b");
    REFUSED("p.json: mesh.pipeline_parallel: found 4, expected 1 (pipeline parallelism is not "
            "lowered yet)",
            "mesh.pipeline_parallel=4");
    REFUSED("p.json: mesh.context_parallel: found 2, expected 1 (context parallelism is not "
            "lowered yet)",
            "mesh.context_parallel=2");
    REFUSED("p.json: mesh.expert_parallel: found 8, expected 1 (expert parallelism is not lowered "
            "yet)",
            "mesh.expert_parallel=8");
    REFUSED("p.json: mesh.sequence_parallel: found true, expected false (sequence parallelism is "
            "not lowered yet)",
            "mesh.sequence_parallel=true");
    REFUSED("p.json: recompute.granularity: found \"selective\", expected \"none\" or \"full\" "
            "(selective recomputation is not lowered yet)",
            "recompute.granularity=selective");
    REFUSED("p.json: precision.parameters: found \"fp16\", expected \"fp32\" or \"bf16\" (fp16 is "
            "not lowered yet)",
            "precision.parameters=fp16");
    REFUSED("p.json: zero.quantized_weights: found true, expected false (ZeRO++ is not lowered "
            "yet)",
            "zero.quantized_weights=true");
    REFUSED("p.json: domino.weight_pieces: found 2, expected 1 (column splits of weights are not "
            "lowered yet)",
            "domino.weight_pieces=2");
}

static void keys_and_types(void **state)
{
    (void)state;
    REFUSED("p.json: zero.stag: found an unknown key, expected a known key: did you mean "
            "\"stage\"?",
            "zero.stag=1");
    REFUSED("p.json: domnio: found an unknown key, expected a known key: did you mean "
            "\"domino\"?",
            "domnio.pieces=2");
    REFUSED("p.json: mesh.tensor_parallel: found the string \"two\", expected a whole number from "
            "1 to 65536",
            "mesh.tensor_parallel=two");
    REFUSED("p.json: batch.micro_batch: found the number 0, expected a whole number from 1 to "
            "16777216",
            "batch.micro_batch=0");
    REFUSED("p.json: schema: found the string \"stepcast.plan/2\", expected \"stepcast.plan/1\"",
            "schema=stepcast.plan/2");
    REFUSED("p.json: mesh.order: found [\"tensor\",\"tensor\",\"data\",\"pipeline\"], expected "
            "each of \"tensor\", \"context\", \"data\" and \"pipeline\" once, innermost first",
            "mesh.order=[\"tensor\",\"tensor\",\"data\",\"pipeline\"]");
    REFUSED("p.json: batch: found the number 3, expected an object", "batch=3");
    REFUSED("p.json: name: found a control character or a slash, expected a name that can be part "
            "of a file's name",
            "name=a/b");
    REFUSED("p.json: model: found the number 7, expected a shipped model's name, a file or an "
            "object",
            "model=7");
}

static void inconsistent_plans_name_valid_values(void **state)
{
    (void)state;
    /* 18 is between 2 x 8 and 3 x 8 */
    REFUSED("p.json: batch.global_batch: found 18, expected a multiple of micro_batch x "
            "data_parallel = 4 x 2 = 8 (nearest: 16, 24)",
            "batch.global_batch=18", "mesh.data_parallel=2");
    REFUSED("p.json: batch.global_batch: found 16, expected a multiple of micro_batch x "
            "data_parallel = 4 x 8 = 32 (nearest: 32)",
            "mesh.data_parallel=8");
    REFUSED("p.json: domino.pieces: found 3, expected a divisor of batch.micro_batch = 4 (1, 2, 4)",
            "domino.pieces=3");
    /* 52 = 4 x 13 heads, 3328 = 52 x 64 */
    REFUSED("p.json: mesh.tensor_parallel: found 8, expected a divisor of model.attention_heads = "
            "52 (valid for this model: 1, 2, 4, 13, 26, 52)",
            "mesh.tensor_parallel=8");
    /* 4 key-value heads: gcd(52, 4, 3328) = 4 */
    REFUSED("p.json: mesh.tensor_parallel: found 13, expected a divisor of model.key_value_heads = "
            "4 (valid for this model: 1, 2, 4)",
            "mesh.tensor_parallel=13", "model.key_value_heads=4");
    REFUSED("p.json: mesh.tensor_parallel: found 4, expected a divisor of model.ffn_hidden_size = "
            "3330 (valid for this model: 1, 2)",
            "mesh.tensor_parallel=4", "model.ffn_hidden_size=3330");
    REFUSED("p.json: batch.sequence_length: found 2048, expected at most model.max_positions = "
            "1024 (its positions are learned)",
            "batch.sequence_length=2048");
    REFUSED("p.json: dropout.hidden: found 1, expected a number in [0, 1)", "dropout.hidden=1");
    REFUSED("p.json: dropout.attention: found -0.1, expected a number in [0, 1)",
            "dropout.attention=-0.1");
    REFUSED("p.json: optimizer.decay_steps: found 5, expected more than optimizer.warmup_steps = 5",
            "optimizer.schedule=cosine", "optimizer.warmup_steps=5", "optimizer.decay_steps=5");
    REFUSED("p.json: zero.gradient_reduction: found \"reduce_scatter\", expected \"all_reduce\" "
            "(zero.stage 0 keeps whole gradients; or zero.stage 1)",
            "zero.gradient_reduction=reduce_scatter");
}

static void precisions_that_are_not_lowered(void **state)
{
    (void)state;
    REFUSED("p.json: precision.activations: found \"bf16\", expected \"fp32\" (as "
            "precision.parameters)",
            "precision.activations=bf16");
    REFUSED("p.json: precision.gradients: found \"bf16\", expected \"fp32\" (bf16 gradients go "
            "with bf16 parameters)",
            "precision.gradients=bf16");
    REFUSED("p.json: precision.master_parameters: found \"bf16\", expected \"fp32\" (bf16 master "
            "parameters are not lowered yet)",
            "precision.parameters=bf16", "precision.master_parameters=bf16");
    REFUSED("p.json: precision.tensor_reduction: found \"fp32\", expected \"bf16\" (as "
            "precision.activations)",
            "precision.parameters=bf16", "precision.tensor_reduction=fp32");
    REFUSED("p.json: precision.data_reduction: found \"bf16\", expected \"fp32\" (as "
            "precision.gradients)",
            "precision.parameters=bf16", "precision.data_reduction=bf16");
}

/* 16 ranks need two nodes of eight. */
static void more_ranks_than_devices(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    const char *const set[] = {"mesh.data_parallel=4", "mesh.tensor_parallel=4", NULL};
    assert_accepted(set, &plan);
    assert_int_equal(sc_plan_check_devices(&plan, 8, "p.json", &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "p.json: hardware.nodes: found 1, expected at least 2 (16 ranks, "
                                  "8 devices a node of dgx-h100)");
    plan.hardware.nodes = 2;
    assert_int_equal(sc_plan_check_devices(&plan, 8, "p.json", &err), SC_OK);
}

/* What search makes in memory goes by the same checks, ranges included. */
static void plans_made_in_memory(void **state)
{
    (void)state;
    struct sc_plan plan, broken;
    struct sc_error err = SC_ERROR_INIT;
    assert_accepted(NULL, &plan);
    assert_int_equal(sc_plan_check(&plan, NULL, &err), SC_OK);
    broken = plan;
    broken.mesh.size[SC_DATA] = 0;
    assert_int_equal(sc_plan_check(&broken, NULL, &err), SC_BAD_INPUT);
    assert_string_equal(err.text,
                        "mesh.data_parallel: found 0, expected a whole number in [1, 65536]");
    broken = plan;
    broken.mesh.size[SC_PIPELINE] = 2;
    assert_int_equal(sc_plan_check(&broken, NULL, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "mesh.pipeline_parallel: found 2, expected 1 (pipeline "
                                  "parallelism is not lowered yet)");
    broken = plan;
    broken.model.layers = 0;
    assert_int_equal(sc_plan_check(&broken, "search", &err), SC_BAD_INPUT);
    assert_int_equal(strncmp(err.text, "search: model.layers: found 0", 29), 0);
}

static void set_reaches_plan_and_model(void **state)
{
    (void)state;
    static const char *const set[] = {"hw.links.rail.bandwidth_gb_per_s=1", "seed=5",
                                      "model.layers=3", "zero.bucket_elements=77"};
    static const char *const wrong[] = {"seed"};
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    if (sc_plan_load("gpt3-13b_1xdgx-h100_tp8_domino2", set, 4, &plan, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(plan.seed, 5);
    assert_int_equal(plan.model.layers, 3);
    assert_int_equal(plan.model.hidden_size, 5120);
    assert_int_equal(plan.zero.bucket_elements, 77);
    assert_int_equal(plan.domino.pieces, 2);
    assert_int_equal(sc_plan_load("gpt3-13b_1xdgx-h100_tp8_domino2", wrong, 1, &plan, &err),
                     SC_USAGE);
    assert_string_equal(err.text, "--set seed: expected path=value");
}

/* A profile that is a path is relative to the plan's folder; what sc_plan_write writes holds from
 * anywhere. */
static void paths_are_relative_to_the_plan(void **state)
{
    (void)state;
    char folder[] = "stepcast-plan-XXXXXX", file[64], other[64], profile[64], *absolute;
    struct sc_plan plan, again;
    struct sc_error err = SC_ERROR_INIT;
    const char *const set[] = {"hardware.profile=mine.json", NULL};
    assert_accepted(set, &plan); /* "p.json" lies in the current folder */
    assert_string_equal(plan.hardware.profile, "mine.json");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/p.json", folder);
    snprintf(other, sizeof(other), "%s/q.json", folder);
    snprintf(profile, sizeof(profile), "%s/mine.json", folder);

    cJSON *json = sc_plan_to_json(&plan);
    assert_int_equal(sc_json_write(json, file, &err), SC_OK);
    assert_int_equal(sc_json_write(json, profile, &err), SC_OK); /* any file will do */
    cJSON_Delete(json);
    assert_int_equal(sc_plan_load(file, NULL, 0, &again, &err), SC_OK);
    assert_string_equal(again.hardware.profile, profile);
    assert_int_equal(sc_plan_write(&again, other, &err), SC_OK);
    assert_int_equal(sc_plan_load(other, NULL, 0, &plan, &err), SC_OK);
    absolute = realpath(profile, NULL);
    remove(file);
    remove(other);
    remove(profile);
    remove(folder);
    assert_non_null(absolute);
    assert_string_equal(plan.hardware.profile, absolute);
    free(absolute);
}

static enum sc_status check_shipped(void *context, const char *name, const char *file,
                                    struct sc_error *err)
{
    struct sc_plan plan;
    int *count = context;
    (void)file;
    SC_TRY(sc_plan_load(name, NULL, 0, &plan, err));
    assert_string_equal(plan.name, name);
    assert_round_trip(&plan);
    ++*count;
    return SC_OK;
}

static void every_shipped_plan_loads(void **state)
{
    (void)state;
    int count = 0;
    struct sc_error err = SC_ERROR_INIT;
    if (sc_shipped_list(SC_SHIPPED_PLANS, check_shipped, &count, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    assert_true(count >= 40);
}

/* Every key that is written stands in the schema, and the other way round ("notes" is only read,
 * the model has a schema of its own). */
static void assert_same_keys(const cJSON *schema, const cJSON *written, const char *where)
{
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties");
    for (const cJSON *item = written->child; item != NULL; item = item->next) {
        const cJSON *below = cJSON_GetObjectItemCaseSensitive(properties, item->string);
        if (below == NULL) {
            fail_msg("%s: \"%s\" is not in the schema", where, item->string);
        }
        if (cJSON_IsObject(item) && strcmp(item->string, "model") != 0) {
            assert_same_keys(below, item, item->string);
        }
    }
    for (const cJSON *item = properties->child; item != NULL; item = item->next) {
        if (strcmp(item->string, "notes") != 0 && !cJSON_HasObjectItem(written, item->string)) {
            fail_msg("%s: \"%s\" is only in the schema", where, item->string);
        }
    }
}

static void schema_has_the_same_keys(void **state)
{
    (void)state;
    char file[SC_PATH_SIZE];
    struct sc_plan plan;
    struct sc_json_doc schema;
    struct sc_error err = SC_ERROR_INIT;
    assert_accepted(NULL, &plan);
    assert_int_equal(
        sc_data_path("plans/schema", "stepcast.plan-1.schema.json", file, sizeof(file), &err),
        SC_OK);
    assert_int_equal(sc_json_read(file, &schema, &err), SC_OK);
    cJSON *written = sc_plan_to_json(&plan);
    assert_same_keys(schema.root, written, "plan");
    cJSON_Delete(written);
    sc_json_doc_free(&schema);
}

static void random_plans_are_valid(void **state)
{
    (void)state;
    int ranks[17] = {0}, stages[2] = {0}, families[SC_FAMILY_COUNT] = {0}, pieces[5] = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct sc_plan plan;
        struct sc_error err = SC_ERROR_INIT;
        sc_random_plan(seed, seed % 2 ? 16 : 4, &plan);
        if (sc_plan_check(&plan, plan.name, &err) != SC_OK) {
            fail_msg("%s", err.text);
        }
        assert_true(sc_plan_ranks(&plan) <= (seed % 2 ? 16 : 4));
        assert_round_trip(&plan);
        ranks[sc_plan_ranks(&plan)]++;
        stages[plan.zero.stage]++;
        families[plan.model.family]++;
        pieces[plan.domino.pieces]++;
    }
    /* A generator that never draws a case tests nothing. */
    assert_true(ranks[1] && ranks[2] && ranks[4] && ranks[8] && ranks[16]);
    assert_true(stages[0] && stages[1] && families[SC_FAMILY_GPT2] && families[SC_FAMILY_LLAMA]);
    assert_true(pieces[1] && pieces[2] && pieces[3] && pieces[4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neutral_values),
        cmocka_unit_test(padded_vocabulary),
        cmocka_unit_test(precision_follows),
        cmocka_unit_test(neutral_sections_are_accepted),
        cmocka_unit_test(what_is_not_lowered_is_refused_by_name),
        cmocka_unit_test(keys_and_types),
        cmocka_unit_test(inconsistent_plans_name_valid_values),
        cmocka_unit_test(precisions_that_are_not_lowered),
        cmocka_unit_test(more_ranks_than_devices),
        cmocka_unit_test(plans_made_in_memory),
        cmocka_unit_test(set_reaches_plan_and_model),
        cmocka_unit_test(paths_are_relative_to_the_plan),
        cmocka_unit_test(every_shipped_plan_loads),
        cmocka_unit_test(schema_has_the_same_keys),
        cmocka_unit_test(random_plans_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
