/* Random numbers: the generator's published answers, the uniform numbers, the sequential one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"

struct answer {
    uint32_t counter[4], key[2], out[4];
};

/* Known answers of Philox 4x32-10 as the authors publish them (Random123, kat_vectors). Here the
 * 64-bit counter is words 0 and 1, stream word 2, step word 3; the low half of a pair comes first.
 */
static const struct answer ANSWERS[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox_gives_the_published_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ANSWERS) / sizeof(ANSWERS[0]); i++) {
        const struct answer *a = &ANSWERS[i];
        uint64_t key = a->key[0] | (uint64_t)a->key[1] << 32;
        uint64_t counter = a->counter[0] | (uint64_t)a->counter[1] << 32;
        uint32_t out[4];
        sc_philox(key, counter, a->counter[2], a->counter[3], out);
        for (int w = 0; w < 4; w++) {
            assert_int_equal(out[w], a->out[w]);
        }
    }
}

static void uniform_stays_below_one(void **state)
{
    (void)state;
    assert_true(sc_uniform(0) == 0.0f);
    assert_true(sc_uniform(UINT32_MAX) < 1.0f);
    assert_true(sc_uniform(0x80000000u) == 0.5f);
}

/* Mean of 40,000 uniform numbers: 1/2, standard deviation 1/sqrt(12 x 40000) = 0.00144. */
static void uniform_has_the_right_mean(void **state)
{
    (void)state;
    double sum = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        uint32_t out[4];
        sc_philox(3407, i, 1, 2, out);
        for (int w = 0; w < 4; w++) {
            sum += sc_uniform(out[w]);
        }
    }
    assert_true(sum / 40000 > 0.49 && sum / 40000 < 0.51);
}

/* First numbers of splitmix64 from state 0, as its author's program prints them. */
static void splitmix_gives_the_published_answers(void **state)
{
    (void)state;
    uint64_t random = 0;
    assert_true(sc_random_next(&random) == 0xe220a8397b1dcdafull);
    assert_true(sc_random_next(&random) == 0x6e789e6aa1b965f4ull);
    assert_true(sc_random_next(&random) == 0x06c45d188009454full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(uniform_stays_below_one),
        cmocka_unit_test(uniform_has_the_right_mean),
        cmocka_unit_test(splitmix_gives_the_published_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
