/*
 * Text that was JSON before a few of its bytes were changed: it is either refused with one line
 * that names the file, or read; what was read can be written and read back as the same document.
 * The seeds are fixed, so a failure repeats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"

#define ROUNDS 4000

static const char SAMPLE[] =
    "{\"schema\": \"stepcast.plan/1\", \"mesh\": {\"tensor_parallel\": 8, \"order\": [\"tensor\", "
    "\"data\"], \"sequence_parallel\": false}, \"rate\": 1.5e-4, \"text\": "
    "\"a\\u00e9\\n\\\"b\\\"\", "
    "\"none\": null, \"nested\": [[1, [2, {\"x\": -3}]], {}]}";
static const char INTERESTING[] = "{}[]\",:\\u0e9-.+tfn \n\x01\xC3\xFF";

static void mutate(char *text, size_t length, uint64_t *random)
{
    size_t changes = 1 + sc_random_next(random) % 4;
    for (size_t i = 0; i < changes; i++) {
        size_t at = sc_random_next(random) % length;
        text[at] = INTERESTING[sc_random_next(random) % (sizeof(INTERESTING) - 1)];
    }
    if (sc_random_next(random) % 4 == 0) {
        text[sc_random_next(random) % length] = '\0';
    }
}

static void assert_one_line_about(const char *file, const struct sc_error *err)
{
    assert_int_equal(err->status, SC_BAD_INPUT);
    assert_memory_equal(err->text, file, strlen(file));
    for (const char *p = err->text; *p != '\0'; p++) {
        assert_true((unsigned char)*p >= 0x20);
    }
}

/* Equal up to infinities: JSON has none, "1e999" is written as null. */
static void assert_round_trip(const struct sc_json_doc *doc, const char *file, uint64_t round)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_json_doc again;
    assert_int_equal(sc_json_write(doc->root, file, &err), SC_OK);
    if (sc_json_read(file, &again, &err) != SC_OK) {
        fail_msg("round %llu: %s", (unsigned long long)round, err.text);
    }
    char *first = cJSON_PrintUnformatted(doc->root), *second = cJSON_PrintUnformatted(again.root);
    assert_string_equal(first, second);
    cJSON_free(first);
    cJSON_free(second);
    sc_json_doc_free(&again);
}

static void changed_text_is_refused_or_read(void **state)
{
    (void)state;
    char file[] = P_tmpdir "/stepcast-json-XXXXXX";
    int refused = 0, read = 0;
    close(mkstemp(file));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_json_doc doc;
        char text[sizeof(SAMPLE)];
        uint64_t random = round;
        memcpy(text, SAMPLE, sizeof(SAMPLE));
        mutate(text, sizeof(SAMPLE) - 1, &random);
        if (sc_json_parse(text, "p.json", &doc, &err) != SC_OK) {
            assert_one_line_about("p.json: ", &err);
            refused++;
            continue;
        }
        read++;
        if (round % 8 == 0) { /* every write is an fsync */
            assert_round_trip(&doc, file, round);
        }
        sc_json_doc_free(&doc);
    }
    unlink(file);
    assert_true(refused > ROUNDS / 10 && read > ROUNDS / 10); /* both ways were tried */
}

static void any_path_may_be_set(void **state)
{
    (void)state;
    static const char letters[] = "..[]01mesh.ordx";
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_json_doc doc;
        char path[24] = "";
        uint64_t random = round;
        size_t length = sc_random_next(&random) % (sizeof(path) - 1);
        for (size_t i = 0; i < length; i++) {
            path[i] = letters[sc_random_next(&random) % (sizeof(letters) - 1)];
        }
        assert_int_equal(sc_json_parse(SAMPLE, "p.json", &doc, &err), SC_OK);
        enum sc_status status = sc_json_set(&doc, path, "7", &err);
        assert_true(status == SC_OK || status == SC_USAGE || status == SC_BAD_INPUT);
        assert_true(status == SC_OK || err.text[0] != '\0');
        sc_json_doc_free(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_text_is_refused_or_read),
        cmocka_unit_test(any_path_may_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
