/* ctest: labels=threads */
/*
 * Parameters in files: what one layout saves another starts from, bit for bit; files with the names
 * and the extra buffers that Hugging Face's GPT-2 has load; damaged ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "exec/launch.h"
#include "exec/safetensors.h"
#include "tests/support/folder.h"

static int remove_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"first", "again", "foreign", "cut"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        remove(files[i]);
    return folder_remove();
}

/* A vocabulary of 500: padded to 512 on two tensor ranks and not on one. */
static void load(const char *name, struct sc_plan *plan)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_plan_load(name, NULL, 0, plan, &err) != SC_OK)
        fail_msg("%s", err.text);
    plan->model.layers = 2;
    plan->model.vocab_size = 500;
    plan->optimizer.learning_rate = 0.01;
    assert_int_equal(sc_plan_check(plan, NULL, &err), SC_OK);
}

static enum sc_status run(const struct sc_plan *plan, int64_t steps, const char *initial,
                          const char *save, struct sc_error *err)
{
    struct sc_run_options options;
    struct sc_run_result result;
    sc_run_options_neutral(&options);
    options.warmup = 0;
    options.steps = steps;
    options.initial_file = initial;
    options.save_file = save;
    enum sc_status status = sc_run_plan(plan, &options, &result, err);
    if (status == SC_OK)
        sc_run_result_free(&result);
    return status;
}

static void must_run(const struct sc_plan *plan, int64_t steps, const char *initial,
                     const char *save)
{
    struct sc_error err = SC_ERROR_INIT;
    if (run(plan, steps, initial, save, &err) != SC_OK)
        fail_msg("%s", err.text);
}

/* Starts from `file` with a learning rate of zero; what is saved then. */
static void same_again(const char *name, const char *file)
{
    struct sc_plan plan;
    load(name, &plan);
    plan.optimizer.learning_rate = plan.optimizer.minimum_learning_rate = 0;
    must_run(&plan, 1, file, "again");
}

static bool same_bytes(const char *a, const char *b)
{
    struct sc_error err = SC_ERROR_INIT;
    char *one = NULL, *two = NULL;
    size_t size_one = 0, size_two = 0;
    assert_int_equal(sc_file_read(a, &one, &size_one, &err), SC_OK);
    assert_int_equal(sc_file_read(b, &two, &size_two, &err), SC_OK);
    bool same = size_one == size_two && memcmp(one, two, size_one) == 0;
    free(one);
    free(two);
    return same;
}

static void test_another_layout_continues(void **state)
{
    const char *family = *state;
    static const char *const others[] = {"4ranks_tp2_dp2_domino2_zero1", "2ranks_tp2",
                                         "2ranks_dp2_zero1"};
    struct sc_plan plan;
    char name[128];
    snprintf(name, sizeof name, "host_%s_1rank", family);
    load(name, &plan);
    must_run(&plan, 3, NULL, "first");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(name, sizeof name, "host_%s_%s", family, others[i]);
        same_again(name, "first");
        assert_true(same_bytes("first", "again"));
    }
    must_run(&plan, 2, "first", "again"); /* the first step of a warm-up has a rate of zero */
    assert_false(same_bytes("first", "again"));
}

/* ---- a file as Hugging Face writes it -------------------------------------------------------- */

enum { HEADER = 64 * 1024, BUFFER = 4 };

/* `from` with "transformer." before every name, and a causal mask [1, 1, 2, 2] in every layer. */
static void write_foreign(const char *from, const char *to)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_safetensors *tensors = NULL;
    char *header = malloc(HEADER);
    assert_non_null(header);
    assert_int_equal(sc_safetensors_open(from, &tensors, &err), SC_OK);
    uint64_t end = 0, length = 0;
    for (int layer = 0; layer < 2; layer++, end += 4 * BUFFER)
        length +=
            (uint64_t)snprintf(header + length, HEADER - length,
                               "%c\"transformer.h.%d.attn.bias\":{\"dtype\":\"F32\","
                               "\"shape\":[1,1,2,2],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                               layer == 0 ? '{' : ',', layer, end, end + 4 * BUFFER);
    for (int64_t i = 0; i < sc_safetensors_count(tensors); i++) {
        const struct sc_stored_tensor *t = sc_safetensors_at(tensors, i);
        uint64_t bytes = 4 * (uint64_t)(t->rows * t->cols);
        char shape[64];
        assert_null(strstr(t->name, "transformer."));
        snprintf(shape, sizeof shape, t->dimensions == 1 ? "%" PRId64 : "%" PRId64 ",%" PRId64,
                 t->rows, t->cols);
        length += (uint64_t)snprintf(header + length, HEADER - length,
                                     ",\"transformer.%s\":{\"dtype\":\"F32\",\"shape\":[%s],"
                                     "\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                                     t->name, shape, end, end + bytes);
        end += bytes;
    }
    header[length++] = '}';
    FILE *stream = fopen(to, "wb");
    assert_non_null(stream);
    fwrite(&length, 8, 1, stream);
    fwrite(header, 1, length, stream);
    const float masks[2 * BUFFER] = {1, 0, 1, 1, 1, 0, 1, 1};
    fwrite(masks, sizeof masks, 1, stream);
    for (int64_t i = 0; i < sc_safetensors_count(tensors); i++) {
        const struct sc_stored_tensor *t = sc_safetensors_at(tensors, i);
        size_t count = (size_t)(t->rows * t->cols);
        float *data = malloc(count * sizeof *data);
        assert_non_null(data);
        assert_int_equal(sc_safetensors_read(tensors, t,
                                             (struct sc_rectangle){0, 0, t->rows, t->cols}, false,
                                             data, t->cols, &err),
                         SC_OK);
        fwrite(data, sizeof *data, count, stream);
        free(data);
    }
    assert_int_equal(fclose(stream), 0);
    sc_safetensors_close(&tensors);
    free(header);
}

static void test_names_of_hugging_face(void **state)
{
    (void)state;
    struct sc_plan plan;
    load("host_tiny-gpt_1rank", &plan);
    must_run(&plan, 2, NULL, "first");
    write_foreign("first", "foreign");
    same_again("host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1", "foreign");
    assert_true(same_bytes("first", "again"));
}

/* ---- damaged files --------------------------------------------------------------------------- */

static void refuse(const char *file, const char *word)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_plan plan;
    load("host_tiny-gpt_2ranks_tp2", &plan);
    assert_int_equal(run(&plan, 1, file, "again", &err), SC_BAD_INPUT);
    assert_int_equal(strncmp(err.text, file, strlen(file)), 0);
    if (strstr(err.text, word) == NULL)
        fail_msg("found no \"%s\" in: %s", word, err.text);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(access("again", F_OK), -1); /* no output of a run that failed */
}

static void test_damaged_files_are_refused(void **state)
{
    (void)state;
    struct sc_plan plan;
    load("host_tiny-gpt_1rank", &plan);
    must_run(&plan, 1, NULL, "first");
    remove("again");
    refuse("nowhere", "nowhere");
    assert_int_equal(truncate("first", 1000), 0); /* inside the header */
    refuse("first", "header");
    must_run(&plan, 1, NULL, "first");
    assert_int_equal(truncate("first", 100000), 0); /* inside the data */
    refuse("first", "data_offsets");
    must_run(&plan, 1, NULL, "first");
    plan.model.layers = 3; /* a tensor is missing */
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(run(&plan, 1, "first", NULL, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "h.2."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"tiny-gpt", test_another_layout_continues, NULL, NULL, (void *)"tiny-gpt"},
        {"tiny-llama", test_another_layout_continues, NULL, NULL, (void *)"tiny-llama"},
        cmocka_unit_test(test_names_of_hugging_face),
        cmocka_unit_test(test_damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
