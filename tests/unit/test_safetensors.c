/* Safetensors: written and read back, rectangles, number formats, names, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "exec/safetensors.h"
#include "tests/support/folder.h"

static int remove_folder(void **state)
{
    (void)state;
    remove("t");
    return folder_remove();
}

static void write_bytes(const void *bytes, size_t size)
{
    FILE *stream = fopen("t", "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* The file with this header and `bytes` bytes of data, byte i being i. */
static void write_file(const char *header, size_t bytes)
{
    unsigned char file[2048];
    uint64_t length = strlen(header);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < bytes; i++) {
        file[8 + length + i] = (unsigned char)i;
    }
    write_bytes(file, 8 + length + bytes);
}

static struct sc_safetensors *open_file(void)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_safetensors *tensors;
    if (sc_safetensors_open("t", &tensors, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    return tensors;
}

/* matrix [3, 4] with element (r, c) = 10 r + c, and a vector [5] of halves. */
static void write_two(void)
{
    struct sc_error err = SC_ERROR_INIT;
    float matrix[12], vector[5];
    for (int i = 0; i < 12; i++) {
        matrix[i] = (float)(10 * (i / 4) + i % 4);
    }
    for (int i = 0; i < 5; i++) {
        vector[i] = 0.5f * (float)i;
    }
    struct sc_tensor_out out[2] = {{"z.vector", 5, 1, true, vector},
                                   {"a.matrix", 3, 4, false, matrix}};
    assert_int_equal(sc_safetensors_write("t", out, 2, &err), SC_OK);
}

static void written_and_read_back(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    float values[12];
    write_two();
    struct sc_safetensors *tensors = open_file();
    assert_int_equal(sc_safetensors_count(tensors), 2);
    const struct sc_stored_tensor *first = sc_safetensors_at(tensors, 0);
    assert_string_equal(first->name, "a.matrix");
    assert_string_equal(first->dtype, "F32");
    assert_int_equal(first->dimensions, 2);
    assert_int_equal(first->rows, 3);
    assert_int_equal(first->cols, 4);
    const struct sc_stored_tensor *vector = sc_safetensors_find(tensors, "z.vector");
    assert_non_null(vector);
    assert_int_equal(vector->dimensions, 1);
    assert_int_equal(vector->rows, 5);
    assert_int_equal(vector->cols, 1);
    struct sc_rectangle all = {0, 0, 3, 4}, whole = {0, 0, 5, 1};
    assert_int_equal(sc_safetensors_read(tensors, first, all, false, values, 4, &err), SC_OK);
    for (int i = 0; i < 12; i++) {
        assert_true(values[i] == (float)(10 * (i / 4) + i % 4));
    }
    assert_int_equal(sc_safetensors_read(tensors, vector, whole, false, values, 1, &err), SC_OK);
    assert_true(values[0] == 0.0f && values[4] == 2.0f);
    assert_null(sc_safetensors_find(tensors, "a.matri"));
    sc_safetensors_close(&tensors);
    assert_null(tensors);
}

/* The layout by hand: 8 bytes of length, JSON padded with blanks to a multiple of 8, data in the
 * order of names: 12 floats of the matrix, then 5. */
static void the_bytes_of_a_file(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    static const char header[] =
        "{\"a.matrix\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48]},"
        "\"z.vector\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[48,68]}}";
    write_two();
    char *file;
    size_t size;
    assert_int_equal(sc_file_read("t", &file, &size, &err), SC_OK);
    size_t padded = (sizeof(header) - 1 + 7) / 8 * 8;
    uint64_t length;
    memcpy(&length, file, 8);
    assert_int_equal(length, padded);
    assert_memory_equal(file + 8, header, sizeof(header) - 1);
    for (size_t i = sizeof(header) - 1; i < padded; i++) {
        assert_int_equal(file[8 + i], ' ');
    }
    assert_int_equal(size, 8 + padded + 68);
    float value;
    memcpy(&value, file + 8 + padded + 48 + 4, 4);
    assert_true(value == 0.5f);
    free(file);
}

/* Rows 1..2, columns 1..3 of the matrix, plain and transposed, into rows of 8 elements. */
static void rectangles(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_rectangle part = {1, 1, 2, 3};
    float plain[16], turned[24];
    for (int i = 0; i < 24; i++) {
        turned[i] = -1.0f;
        plain[i % 16] = -1.0f;
    }
    write_two();
    struct sc_safetensors *tensors = open_file();
    const struct sc_stored_tensor *matrix = sc_safetensors_find(tensors, "a.matrix");
    assert_int_equal(sc_safetensors_read(tensors, matrix, part, false, plain, 8, &err), SC_OK);
    assert_int_equal(sc_safetensors_read(tensors, matrix, part, true, turned, 8, &err), SC_OK);
    for (int r = 0; r < 2; r++) {
        for (int c = 0; c < 3; c++) {
            float expected = (float)(10 * (1 + r) + 1 + c);
            assert_true(plain[r * 8 + c] == expected);
            assert_true(turned[c * 8 + r] == expected);
        }
        assert_true(plain[r * 8 + 3] == -1.0f && turned[r * 8 + 2] == -1.0f);
    }
    struct sc_rectangle outside[] = {{2, 0, 2, 1},  {0, 3, 1, 2}, {-1, 0, 1, 1},
                                     {0, -1, 1, 1}, {4, 0, 0, 1}, {INT64_MAX, 0, 1, 1}};
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        assert_int_equal(sc_safetensors_read(tensors, matrix, outside[i], false, plain, 8, &err),
                         SC_BAD_INPUT);
    }
    sc_safetensors_close(&tensors);
}

/* 200000 elements: more than one chunk, plain and transposed. */
static void large_tensors(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    float *values = malloc(200000 * sizeof(*values)), *back = calloc(200000, sizeof(*values));
    for (int i = 0; i < 200000; i++) {
        values[i] = (float)i;
    }
    struct sc_tensor_out out = {"big", 2, 100000, false, values};
    assert_int_equal(sc_safetensors_write("t", &out, 1, &err), SC_OK);
    struct sc_safetensors *tensors = open_file();
    const struct sc_stored_tensor *big = sc_safetensors_find(tensors, "big");
    struct sc_rectangle all = {0, 0, 2, 100000};
    assert_int_equal(sc_safetensors_read(tensors, big, all, false, back, 100000, &err), SC_OK);
    assert_memory_equal(back, values, 200000 * sizeof(*values));
    assert_int_equal(sc_safetensors_read(tensors, big, all, true, back, 2, &err), SC_OK);
    for (int i = 0; i < 200000; i++) {
        assert_true(back[i] == (float)(i / 2 + 100000 * (i % 2)));
    }
    sc_safetensors_close(&tensors);
    free(values);
    free(back);
}

static const struct sc_stored_tensor *one_value(const char *dtype, uint32_t bits, int bytes,
                                                struct sc_safetensors **tensors)
{
    char header[128];
    unsigned char file[256];
    int length =
        snprintf(header, sizeof(header),
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[],\"data_offsets\":[0,%d]}}", dtype, bytes);
    uint64_t size = (uint64_t)length;
    memcpy(file, &size, 8);
    memcpy(file + 8, header, size);
    memcpy(file + 8 + size, &bits, (size_t)bytes);
    write_bytes(file, 8 + size + (size_t)bytes);
    *tensors = open_file();
    return sc_safetensors_find(*tensors, "x");
}

static float widened(const char *dtype, uint32_t bits, int bytes)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_rectangle one = {0, 0, 1, 1};
    struct sc_safetensors *tensors;
    float value = -7.0f;
    const struct sc_stored_tensor *x = one_value(dtype, bits, bytes, &tensors);
    assert_int_equal(sc_safetensors_read(tensors, x, one, false, &value, 1, &err), SC_OK);
    sc_safetensors_close(&tensors);
    return value;
}

/* IEEE binary16: 1 is 0x3C00; the smallest 0x0001 is 2^-24, the largest 0x7BFF is 65504;
 * 0x3555 is (1 + 341/1024) / 4. bfloat16 is the upper half of a float: 0x3F80 is 1. */
static void number_formats(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_true(widened("F16", 0x3C00, 2) == 1.0f);
    assert_true(widened("F16", 0xC000, 2) == -2.0f);
    assert_true(widened("F16", 0x0001, 2) == ldexpf(1.0f, -24));
    assert_true(widened("F16", 0x83FF, 2) == -1023.0f * ldexpf(1.0f, -24));
    assert_true(widened("F16", 0x7BFF, 2) == 65504.0f);
    assert_true(widened("F16", 0x3555, 2) == (1.0f + 341.0f / 1024.0f) / 4.0f);
    assert_true(isinf(widened("F16", 0xFC00, 2)) && widened("F16", 0xFC00, 2) < 0);
    assert_true(isnan(widened("F16", 0x7E00, 2)));
    assert_true(signbit(widened("F16", 0x8000, 2)));
    assert_true(widened("BF16", 0x3F80, 2) == 1.0f);
    assert_true(widened("BF16", 0xC049, 2) == -3.140625f);
    assert_true(widened("F32", 0x3FC00000, 4) == 1.5f);
    struct sc_safetensors *tensors;
    struct sc_rectangle one = {0, 0, 1, 1};
    float value;
    const struct sc_stored_tensor *x = one_value("I32", 3, 4, &tensors);
    assert_int_equal(sc_safetensors_read(tensors, x, one, false, &value, 1, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "t: x: found I32, expected F32, BF16 or F16");
    sc_safetensors_close(&tensors);
}

/* As Hugging Face writes GPT-2: a prefix or none, masks beside the parameters. */
static void names_of_gpt2(void **state)
{
    (void)state;
    write_file("{\"__metadata__\":{\"format\":\"pt\"},"
               "\"transformer.h.0.attn.bias\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1],"
               "\"data_offsets\":[0,4]},"
               "\"transformer.h.11.attn.masked_bias\":{\"dtype\":\"F32\",\"shape\":[],"
               "\"data_offsets\":[4,8]},"
               "\"transformer.h.0.attn.c_attn.bias\":{\"dtype\":\"F32\",\"shape\":[1],"
               "\"data_offsets\":[8,12]},"
               "\"h.0.ln_1.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}  ",
               16);
    struct sc_safetensors *tensors = open_file();
    assert_int_equal(sc_safetensors_count(tensors), 2);
    assert_string_equal(sc_safetensors_find(tensors, "h.0.attn.c_attn.bias")->name,
                        "transformer.h.0.attn.c_attn.bias");
    assert_string_equal(sc_safetensors_find(tensors, "transformer.h.0.ln_1.bias")->name,
                        "h.0.ln_1.bias");
    assert_null(sc_safetensors_find(tensors, "h.0.attn.bias"));
    assert_null(sc_safetensors_find(tensors, "h.1.ln_1.bias"));
    sc_safetensors_close(&tensors);
}

static void nothing_in_it(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_safetensors_write("t", NULL, 0, &err), SC_OK);
    struct sc_safetensors *tensors = open_file();
    assert_int_equal(sc_safetensors_count(tensors), 0);
    assert_null(sc_safetensors_find(tensors, "x"));
    sc_safetensors_close(&tensors);
}

static void names_twice_are_not_written(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    float value = 1.0f;
    struct sc_tensor_out out[2] = {{"x", 1, 1, true, &value}, {"x", 1, 1, true, &value}};
    remove("t");
    assert_int_equal(sc_safetensors_write("t", out, 2, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "t: x: found the name twice, expected it once");
    assert_false(sc_file_exists("t"));
}

struct damage {
    const char *header;
    size_t bytes;
    const char *line;
};

#define X8 "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

static const struct damage damages[] = {
    {"{" X8 "}", 7,
     "t: x.data_offsets[1]: found the number 8, expected a whole number from 0 to 7"},
    {"{" X8 "}", 9, "t: found 9 bytes of data, expected 8 from the header"},
    {"{" X8 ",\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
     "t: y: found data at 4, expected it at 8, where x ends"},
    {"{" X8 ",\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}", 16,
     "t: y: found data at 12, expected it at 8, where x ends"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
     "t: x.data_offsets: found an array with 2 items, expected 3 elements of 4 bytes"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,1],\"data_offsets\":[0,0]}}", 0,
     "t: x.shape: found an array with 3 items, expected fewer elements than 2^64"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,1073741824],\"data_offsets\":[0,0]}}", 0,
     "t: x.data_offsets: found an array with 2 items, expected 4611686018427387904 elements of 4 "
     "bytes"},
    {"{\"x\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "t: x.dtype: found the string \"F33\", expected a number format of safetensors (F32, BF16, "
     "F16, ...)"},
    {"{" X8 "," X8 "}", 8, "t: x: found the key twice, expected it once"},
    {"[]", 0, NULL},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, NULL},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, NULL},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[0.5],\"data_offsets\":[0,8]}}", 8, NULL},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, NULL},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, NULL},
    {"{\"x\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL},
    {"{\"x\":3}", 8, NULL},
    {"{\"x\":", 8, NULL},
    {"", 8, NULL},
};

static void damaged_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_safetensors *tensors;
        write_file(damages[i].header, damages[i].bytes);
        assert_int_equal(sc_safetensors_open("t", &tensors, &err), SC_BAD_INPUT);
        assert_null(tensors);
        assert_memory_equal(err.text, "t: ", 3);
        if (damages[i].line != NULL) {
            assert_string_equal(err.text, damages[i].line);
        }
    }
}

/* Every cut of a whole file is refused, and so is a length that leads out of it. */
static void truncated_files(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_safetensors *tensors;
    char *file;
    size_t size;
    write_two();
    assert_int_equal(sc_file_read("t", &file, &size, &err), SC_OK);
    for (size_t cut = 0; cut < size; cut++) {
        write_bytes(file, cut);
        assert_int_equal(sc_safetensors_open("t", &tensors, &err), SC_BAD_INPUT);
    }
    for (int byte = 0; byte < 8; byte++) {
        char saved = file[byte];
        file[byte] = (char)0xFF;
        write_bytes(file, size);
        assert_int_equal(sc_safetensors_open("t", &tensors, &err), SC_BAD_INPUT);
        file[byte] = saved;
    }
    free(file);
    remove("t");
    assert_int_equal(sc_safetensors_open("t", &tensors, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "t: cannot be read: No such file or directory");
}

/* Random bytes of the header changed: refused with one line, or opened and every listed element
 * readable without leaving the file. */
static void mutated_files(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char *file;
    size_t size;
    uint64_t random = 20;
    int opened = 0, refused = 0;
    write_two();
    assert_int_equal(sc_file_read("t", &file, &size, &err), SC_OK);
    for (int round = 0; round < 2000; round++) {
        char *copy = malloc(size);
        memcpy(copy, file, size);
        for (uint64_t i = 0; i <= sc_random_next(&random) % 3; i++) {
            static const char likely[] = "0123456789,:[]{}\"-F";
            uint64_t at = 8 + sc_random_next(&random) % (size - 68 - 8);
            copy[at] = likely[sc_random_next(&random) % (sizeof(likely) - 1)];
        }
        write_bytes(copy, size);
        free(copy);
        struct sc_safetensors *tensors;
        if (sc_safetensors_open("t", &tensors, &err) != SC_OK) {
            assert_int_equal(err.status, SC_BAD_INPUT);
            assert_null(strchr(err.text, '\n'));
            refused++;
            continue;
        }
        opened++;
        for (int64_t i = 0; i < sc_safetensors_count(tensors); i++) {
            const struct sc_stored_tensor *x = sc_safetensors_at(tensors, i);
            struct sc_rectangle all = {0, 0, x->rows, x->cols};
            float values[64];
            if (x->dimensions <= 2) {
                assert_true(x->rows * x->cols <= 64);
                sc_safetensors_read(tensors, x, all, true, values, x->rows, &err);
            }
        }
        sc_safetensors_close(&tensors);
    }
    free(file);
    assert_true(opened > 50 && refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read_back),
        cmocka_unit_test(the_bytes_of_a_file),
        cmocka_unit_test(rectangles),
        cmocka_unit_test(large_tensors),
        cmocka_unit_test(number_formats),
        cmocka_unit_test(names_of_gpt2),
        cmocka_unit_test(nothing_in_it),
        cmocka_unit_test(names_twice_are_not_written),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(truncated_files),
        cmocka_unit_test(mutated_files),
    };
    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
