/* Token sources: the sampling rule by hand, both llm.c layouts, bytes, the held-out part, damage.
 */
/* ctest: labels=threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "exec/data.h"
#include "tests/support/folder.h"

static int remove_folder(void **state)
{
    (void)state;
    remove("tokens");
    return folder_remove();
}

static void write_bytes(const void *bytes, size_t size)
{
    FILE *stream = fopen("tokens", "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* A token file whose token i is i. `claimed` is what its header says, `count` what it holds. */
static void write_llmc(uint32_t magic, uint32_t version, uint32_t claimed, uint32_t count,
                       size_t token_bytes)
{
    size_t size = 1024 + count * token_bytes;
    unsigned char *file = calloc(1, size);
    uint32_t header[3] = {magic, version, claimed};
    memcpy(file, header, sizeof(header));
    for (uint32_t i = 0; i < count; i++) {
        for (size_t b = 0; b < token_bytes; b++) {
            file[1024 + i * token_bytes + b] = (unsigned char)(i >> (8 * b));
        }
    }
    write_bytes(file, size);
    free(file);
}

static struct sc_data *open_tokens(int64_t vocab_size, uint64_t seed)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_data *data;
    if (sc_data_open("tokens", vocab_size, seed, &data, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return data;
}

static void refuse(int64_t vocab_size, const char *line)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_data *data;
    assert_int_equal(sc_data_open("tokens", vocab_size, 0, &data, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, line);
    assert_null(data);
}

/* 1000 tokens, token i = i: the window's first token is where it begins. 900 are for training;
 * a window of 16 with its last target begins in [0, 900 - 16). */
static void check_windows(enum sc_data_kind kind)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_data *data = open_tokens(1000, 77);
    assert_int_equal(sc_data_kind(data), kind);
    assert_int_equal(sc_data_tokens(data), 1000);
    assert_int_equal(sc_data_training_tokens(data), 900);
    int64_t least = 1000, most = 0;
    for (int64_t step = 0; step < 20; step++) {
        for (int64_t sequence = 0; sequence < 20; sequence++) {
            int32_t tokens[16], targets[16];
            assert_int_equal(sc_data_sequence(data, step, sequence, 16, tokens, targets, &err),
                             SC_OK);
            uint32_t words[4];
            sc_philox(77, (uint64_t)sequence, 0xDA7A0001u, (uint32_t)step, words);
            uint64_t start = ((uint64_t)words[1] << 32 | words[0]) % (900 - 16);
            for (int64_t i = 0; i < 16; i++) {
                assert_int_equal(tokens[i], start + (uint64_t)i);
                assert_int_equal(targets[i], start + (uint64_t)i + 1);
            }
            least = tokens[0] < least ? tokens[0] : least;
            most = targets[15] > most ? targets[15] : most;
        }
    }
    /* 400 windows over 884 places: the ends are near both ends of the training part. */
    assert_in_range(least, 0, 30);
    assert_in_range(most, 870, 899);
    sc_data_close(&data);
    assert_null(data);
}

static void windows_of_16_bit_tokens(void **state)
{
    (void)state;
    write_llmc(20240520, 1, 1000, 1000, 2);
    check_windows(SC_DATA_LLMC16);
}

static void windows_of_32_bit_tokens(void **state)
{
    (void)state;
    write_llmc(20240801, 7, 1000, 1000, 4);
    check_windows(SC_DATA_LLMC32);
}

/* A batch is its sequences one behind the other: what a rank reads does not depend on how many it
 * reads at once. */
static void batches_are_sequences(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    int32_t all[4 * 8], all_targets[4 * 8], half[2 * 8], half_targets[2 * 8];
    write_llmc(20240520, 1, 1000, 1000, 2);
    struct sc_data *data = open_tokens(1000, 5);
    assert_int_equal(sc_data_next(data, 3, 0, 4, 8, all, all_targets, &err), SC_OK);
    assert_int_equal(sc_data_next(data, 3, 2, 2, 8, half, half_targets, &err), SC_OK);
    assert_memory_equal(half, all + 2 * 8, sizeof(half));
    assert_memory_equal(half_targets, all_targets + 2 * 8, sizeof(half));
    /* Another step has other windows. */
    assert_int_equal(sc_data_next(data, 4, 2, 2, 8, half, half_targets, &err), SC_OK);
    assert_memory_not_equal(half, all + 2 * 8, sizeof(half));
    sc_data_close(&data);
}

/* The held-out part of 1000 tokens is 900..999. Windows of 33: (100 - 1) / 33 = 3 of them, the
 * last with targets up to 900 + 99 = 999. */
static void evaluation_reads_the_last_tenth(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    int32_t tokens[33], targets[33];
    write_llmc(20240520, 1, 1000, 1000, 2);
    struct sc_data *data = open_tokens(1000, 5);
    assert_int_equal(sc_data_evaluation_windows(data, 33), 3);
    assert_int_equal(sc_data_evaluation_windows(data, 99), 1);
    assert_int_equal(sc_data_evaluation_windows(data, 100), 0);
    assert_int_equal(sc_data_evaluation(data, 2, 33, tokens, targets, &err), SC_OK);
    assert_int_equal(tokens[0], 966);
    assert_int_equal(targets[32], 999);
    assert_int_equal(sc_data_evaluation(data, 3, 33, tokens, targets, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "tokens: evaluation window 3, expected one of 3");
    sc_data_close(&data);
}

/* 100 bytes: 90 times 'x' and then a a a a a b b b b c. Held out: p = 0.5, 0.4, 0.1. */
static void bytes_and_their_entropy(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char bytes[100];
    int32_t tokens[10], targets[10];
    double entropy, expected = -0.5 * log(0.5) - 0.4 * log(0.4) - 0.1 * log(0.1);
    memset(bytes, 'x', 90);
    memcpy(bytes + 90, "aaaaabbbbc", 10);
    write_bytes(bytes, sizeof(bytes));
    struct sc_data *data = open_tokens(256, 1);
    assert_int_equal(sc_data_kind(data), SC_DATA_BYTES);
    assert_int_equal(sc_data_unigram_entropy(data, &entropy, &err), SC_OK);
    assert_true(fabs(entropy - expected) < 1e-12);
    for (int64_t step = 0; step < 50; step++) {
        assert_int_equal(sc_data_sequence(data, step, 0, 10, tokens, targets, &err), SC_OK);
        for (int i = 0; i < 10; i++) {
            assert_int_equal(tokens[i], 'x');
            assert_int_equal(targets[i], 'x');
        }
    }
    /* 90 tokens hold one window of 89 and its last target, none of 90. */
    int32_t long_tokens[90], long_targets[90];
    assert_int_equal(sc_data_sequence(data, 0, 0, 89, long_tokens, long_targets, &err), SC_OK);
    assert_int_equal(sc_data_sequence(data, 0, 0, 90, long_tokens, long_targets, &err),
                     SC_BAD_INPUT);
    assert_string_equal(err.text, "tokens: found 90 tokens to train on (nine tenths), expected at "
                                  "least 91, one more than a sequence");
    sc_data_close(&data);
    refuse(255, "tokens: found bytes, expected tokens below 255: a vocabulary of 256 or more, or a "
                "token file");
}

/* Targets are the tokens one later; all in range; every token of a small vocabulary occurs. */
static void synthetic_tokens(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_data *data, *other;
    double entropy;
    int32_t tokens[30], targets[30], again[30], again_targets[30];
    int seen[7] = {0};
    assert_int_equal(sc_data_synthetic(7, 9, &data, &err), SC_OK);
    assert_int_equal(sc_data_synthetic(7, 10, &other, &err), SC_OK);
    for (int64_t step = 0; step < 10; step++) {
        assert_int_equal(sc_data_sequence(data, step, 3, 30, tokens, targets, &err), SC_OK);
        for (int i = 0; i < 30; i++) {
            assert_in_range(tokens[i], 0, 6);
            seen[tokens[i]]++;
            assert_true(i == 29 || targets[i] == tokens[i + 1]);
        }
        /* A shorter sequence is the beginning of a longer one, its last target included. */
        assert_int_equal(sc_data_sequence(data, step, 3, 13, again, again_targets, &err), SC_OK);
        assert_memory_equal(again, tokens, 13 * sizeof(*tokens));
        assert_memory_equal(again_targets, targets, 13 * sizeof(*targets));
        assert_int_equal(sc_data_sequence(other, step, 3, 30, again, again_targets, &err), SC_OK);
        assert_memory_not_equal(again, tokens, sizeof(tokens));
        assert_int_equal(sc_data_sequence(data, step, 4, 30, again, again_targets, &err), SC_OK);
        assert_memory_not_equal(again, tokens, sizeof(tokens));
    }
    for (int i = 0; i < 7; i++) {
        assert_true(seen[i] > 0);
    }
    /* Token 5 of sequence 3 in step 2 is word 5 % 4 of the draw for 5 / 4, modulo 7. */
    uint32_t words[4];
    sc_philox(9 ^ (uint64_t)1 << 32, 3, 0xDA7A0002u, 2, words);
    assert_int_equal(sc_data_sequence(data, 2, 3, 30, tokens, targets, &err), SC_OK);
    assert_int_equal(tokens[5], words[1] % 7);
    assert_int_equal(sc_data_unigram_entropy(data, &entropy, &err), SC_OK);
    assert_true(fabs(entropy - log(7.0)) < 1e-12);
    assert_int_equal(sc_data_evaluation_windows(data, 5), 0);
    sc_data_close(&data);
    sc_data_close(&other);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_data *data;
    int32_t tokens[16], targets[16];
    /* 1024 + 2 x 1000 = 3024 bytes promised, 1024 + 2 x 999 = 3022 there. */
    write_llmc(20240520, 1, 1000, 999, 2);
    refuse(1000, "tokens: found 3022 bytes, expected 3024 for the 1000 tokens of its header");
    write_llmc(20240520, 2, 1000, 1000, 2);
    refuse(1000, "tokens: header: found version 2, expected 1");
    write_llmc(20240801, 1, 1000, 1000, 4);
    refuse(1000, "tokens: header: found version 1, expected 7");
    /* A count of 4 billion: no overflow on the way to the line. */
    write_llmc(20240801, 7, 0xFFFFFFFFu, 10, 4);
    refuse(1000, "tokens: found 1064 bytes, expected 17179870204 for the 4294967295 tokens of its "
                 "header");
    remove("tokens");
    refuse(1000, "tokens: cannot be read: No such file or directory");
    assert_int_equal(sc_data_open(".", 1000, 0, &data, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, ".: found no plain file, expected a file of tokens");
    /* Token 899 of the training part is not in a vocabulary of 500. */
    write_llmc(20240520, 1, 1000, 1000, 2);
    data = open_tokens(500, 1);
    enum sc_status status = SC_OK;
    for (int64_t step = 0; status == SC_OK && step < 100; step++) {
        status = sc_data_sequence(data, step, 0, 16, tokens, targets, &err);
    }
    assert_int_equal(status, SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "expected less than the vocabulary's 500"));
    sc_data_close(&data);
    /* A file that is cut while it is open. */
    data = open_tokens(1000, 1);
    assert_int_equal(truncate("tokens", 1024), 0);
    assert_int_equal(sc_data_sequence(data, 0, 0, 16, tokens, targets, &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "tokens: ends at byte "));
    sc_data_close(&data);
}

/* Three bytes are a file of three tokens; an empty file has no window. */
static void tiny_files(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    int32_t tokens[4], targets[4];
    write_bytes("abc", 3);
    struct sc_data *data = open_tokens(256, 1);
    /* 3 x 9 / 10 = 2 training tokens: one window of 1. */
    assert_int_equal(sc_data_training_tokens(data), 2);
    assert_int_equal(sc_data_sequence(data, 0, 0, 1, tokens, targets, &err), SC_OK);
    assert_int_equal(tokens[0], 'a');
    assert_int_equal(targets[0], 'b');
    sc_data_close(&data);
    write_bytes("", 0);
    data = open_tokens(256, 1);
    assert_int_equal(sc_data_sequence(data, 0, 0, 1, tokens, targets, &err), SC_BAD_INPUT);
    assert_int_equal(sc_data_evaluation_windows(data, 1), 0);
    sc_data_close(&data);
}

struct reader {
    const struct sc_data *data;
    int failures;
};

static void *read_many(void *argument)
{
    struct reader *reader = argument;
    struct sc_error err = SC_ERROR_INIT;
    for (int64_t step = 0; step < 300; step++) {
        int32_t tokens[16], targets[16];
        enum sc_status status =
            sc_data_sequence(reader->data, step, step % 7, 16, tokens, targets, &err);
        for (int i = 0; i < 16; i++) {
            reader->failures += status != SC_OK || targets[i] != tokens[i] + 1;
        }
    }
    return NULL;
}

static void threads_read_at_once(void **state)
{
    (void)state;
    write_llmc(20240520, 1, 1000, 1000, 2);
    struct sc_data *data = open_tokens(1000, 3);
    struct reader readers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct reader){data, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].failures, 0);
    }
    sc_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_16_bit_tokens),
        cmocka_unit_test(windows_of_32_bit_tokens),
        cmocka_unit_test(batches_are_sequences),
        cmocka_unit_test(evaluation_reads_the_last_tenth),
        cmocka_unit_test(bytes_and_their_entropy),
        cmocka_unit_test(synthetic_tokens),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(tiny_files),
        cmocka_unit_test(threads_read_at_once),
    };
    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
