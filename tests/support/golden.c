/* Loads the golden cases. */
#include "tests/support/golden.h"

#include <stdio.h>

#include "base/json.h"

#define FOLDER STEPCAST_SOURCE_DIR "/tests/golden/"

const char *const golden_cases[] = {"gpt2-tied", "gpt2-untied", "llama-tied", "llama-untied", NULL};

static enum sc_status numbers(const struct sc_json *root, const char *key, double out[GOLDEN_STEPS],
                              struct sc_error *err)
{
    struct sc_json array, item;
    int count;
    SC_TRY(sc_json_array(root, key, &array, &count, err));
    if (count != GOLDEN_STEPS) {
        return sc_json_fail(&array, err, "%d steps", GOLDEN_STEPS);
    }
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&array, i, &item, err));
        SC_TRY(sc_json_number(&item, NULL, -1e300, 1e300, &out[i], err));
    }
    return SC_OK;
}

static enum sc_status read_case(const char *name, struct golden *out, struct sc_error *err)
{
    char file[PATH_MAX];
    struct sc_json_doc doc;
    snprintf(file, sizeof(file), FOLDER "%s.json", name);
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = numbers(&root, "losses", out->losses, err);
    if (status == SC_OK) {
        status = numbers(&root, "losses_fp32", out->losses_fp32, err);
    }
    if (status == SC_OK) {
        status = numbers(&root, "gradient_norms", out->gradient_norms, err);
    }
    sc_json_doc_free(&doc);
    return status;
}

enum sc_status golden_open(const char *name, const char *const *set, struct golden *out,
                           struct sc_error *err)
{
    char plan[PATH_MAX];
    int set_count = 0;
    while (set != NULL && set[set_count] != NULL) {
        set_count++;
    }
    out->data = NULL;
    snprintf(plan, sizeof(plan), FOLDER "%s.plan.json", name);
    snprintf(out->initial, sizeof(out->initial), FOLDER "%s.initial.safetensors", name);
    snprintf(out->gradients, sizeof(out->gradients), FOLDER "%s.gradients.safetensors", name);
    SC_TRY(read_case(name, out, err));
    SC_TRY(sc_plan_load(plan, set, set_count, &out->plan, err));
    return sc_data_open(FOLDER "tokens.bin", out->plan.model.vocab_size, out->plan.seed, &out->data,
                        err);
}

void golden_close(struct golden *golden)
{
    sc_data_close(&golden->data);
}

void golden_options(const struct golden *golden, struct sc_run_options *out)
{
    sc_run_options_neutral(out);
    out->warmup = 0;
    out->steps = GOLDEN_STEPS;
    out->data = (struct sc_batch_source){sc_data_next, golden->data};
    out->initial_file = golden->initial;
    out->snapshot_step = 0;
}
