/* The arena and the growable arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/array.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct sc_arena arena = SC_ARENA_INIT;
    unsigned char *pieces[400];
    for (size_t i = 0; i < 400; i++) {
        size_t bytes = 1 + i * 7 % 300;
        pieces[i] = sc_arena_alloc(&arena, bytes, 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % (bytes >= 64 ? 64 : 16), 0);
        for (size_t b = 0; b < bytes; b++) {
            assert_int_equal(pieces[i][b], 0);
        }
        memset(pieces[i], (int)(i & 0xFF), bytes);
    }
    for (size_t i = 0; i < 400; i++) { /* nobody wrote into another's bytes */
        for (size_t b = 0; b < 1 + i * 7 % 300; b++) {
            assert_int_equal(pieces[i][b], i & 0xFF);
        }
    }
    sc_arena_free(&arena);
}

static void large_and_empty_requests(void **state)
{
    (void)state;
    struct sc_arena arena = SC_ARENA_INIT;
    char *large = sc_arena_alloc(&arena, 1 << 20, 3);
    assert_non_null(large);
    large[(3 << 20) - 1] = 1;
    assert_non_null(sc_arena_alloc(&arena, 0, 8));
    assert_int_equal(arena.bytes, (3 << 20) + 1);
    sc_arena_free(&arena);
    assert_int_equal(arena.bytes, 0);
    assert_non_null(sc_arena_alloc(&arena, 1, 1)); /* usable again */
    sc_arena_free(&arena);
}

static void overflow_is_refused(void **state)
{
    (void)state;
    struct sc_arena arena = SC_ARENA_INIT;
    assert_null(sc_arena_alloc(&arena, SIZE_MAX / 2, 4));
    assert_null(sc_arena_alloc(&arena, SIZE_MAX, 1));
    sc_arena_free(&arena);
}

static void text(void **state)
{
    (void)state;
    struct sc_arena arena = SC_ARENA_INIT;
    assert_string_equal(sc_arena_strdup(&arena, "abc"), "abc");
    assert_string_equal(sc_arena_printf(&arena, "layer %d / %s", 3, "mlp"), "layer 3 / mlp");
    sc_arena_free(&arena);
}

static void arrays_grow_and_push_zeroes(void **state)
{
    (void)state;
    struct pair {
        int a;
        double b;
    };
    SC_ARRAY(struct pair) array = {0};
    for (int i = 0; i < 1000; i++) {
        struct pair *pair = sc_array_push(&array);
        assert_non_null(pair);
        assert_int_equal(pair->a, 0);
        pair->a = i;
    }
    assert_int_equal(array.count, 1000);
    assert_int_equal(array.items[999].a, 999);
    assert_false(sc_array_reserve(&array, SIZE_MAX / 2)); /* unchanged */
    assert_int_equal(array.items[500].a, 500);
    sc_array_free(&array);
    assert_null(array.items);
    assert_int_equal(array.capacity, 0);
}

static void checked_arithmetic(void **state)
{
    (void)state;
    uint64_t out = 7;
    assert_false(sc_mul_u64(UINT64_MAX / 2, 3, &out));
    assert_false(sc_add_u64(UINT64_MAX, 1, &out));
    assert_true(sc_mul_u64(1u << 20, 1u << 20, &out));
    assert_int_equal(out, 1ull << 40);
    assert_int_equal(sc_round_up(257, 256), 512);
    assert_int_equal(sc_round_up(256, 256), 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(large_and_empty_requests),
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(text),
        cmocka_unit_test(arrays_grow_and_push_zeroes),
        cmocka_unit_test(checked_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
