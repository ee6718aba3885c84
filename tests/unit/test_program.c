/* The builder: names, labels, views, shards, segments, checks of operands, hashes, what ops move.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plans/program.h"
#include "plans/program_dump.h"
#include "tests/support/worked_example.h"

struct fixture {
    struct sc_program *program;
    struct sc_class *class;
    struct sc_list *list;
};

/* Mesh: tensor 2, data 3. One class, one stream, groups over both axes. */
static struct fixture fixture(void)
{
    struct fixture f;
    struct sc_mesh mesh;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(2, 1, 3, 1, &mesh);
    assert_int_equal(sc_program_create(&mesh, &f.program, &err), SC_OK);
    sc_add_stream(f.program, "compute", SC_ENGINE_DEVICE, 0);
    sc_add_group(f.program, "tensor", SC_AXIS_MASK(SC_TENSOR));
    sc_add_group(f.program, "data", SC_AXIS_MASK(SC_DATA));
    f.class = sc_add_class(f.program, "all", 0, NULL);
    f.list = &f.class->step;
    return f;
}

static uint32_t value(const struct fixture *f, const char *name, int64_t rows, int64_t cols)
{
    struct sc_label label = sc_label(f->program, name);
    uint32_t buffer = sc_add_buffer(f->program, f->class, label, SC_DEVICE, SC_STEP, 1,
                                    (uint64_t)(rows * cols * 4));
    return sc_add_value(f->program, f->class, label, buffer, 0, SC_FP32, rows, cols);
}

static struct sc_op *add(const struct fixture *f, enum sc_op_kind kind, int group)
{
    return sc_add_op(f->program, f->list, kind, 0, group, sc_label(f->program, "op"));
}

static void operand(const struct fixture *f, enum sc_role role, enum sc_access access, uint32_t of)
{
    sc_add_operand(f->program, f->list, role, access, of);
}

/* The program is refused with a line that holds `text`. */
static void refused(struct fixture *f, const char *text)
{
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_program_finish(f->program, &err), SC_BUG);
    if (strstr(err.text, text) == NULL) {
        fail_msg("\"%s\" does not mention \"%s\"", err.text, text);
    }
    sc_program_destroy(&f->program);
}

static void accepted(struct fixture *f)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_program_finish(f->program, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    sc_program_destroy(&f->program);
}

/* ---- names ------------------------------------------------------------------------------- */

static void test_kinds(void **state)
{
    (void)state;
    for (int kind = 0; kind < SC_OP_KIND_COUNT; ++kind) {
        assert_int_equal(sc_op_kind_from_name(sc_op_kind_name((enum sc_op_kind)kind)), kind);
    }
    assert_int_equal(sc_op_kind_from_name("gem"), -1);
    assert_string_equal(sc_role_name(SC_ROLE_DWEIGHT), "dweight");
    assert_int_equal(sc_op_kind_work(SC_ALL_TO_ALL), SC_WORK_COLLECTIVE);
}

static void test_intern(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t numbers[3000];
    char name[32];
    for (int i = 0; i < 3000; ++i) { /* more than the first table holds */
        snprintf(name, sizeof(name), "name %d", i);
        numbers[i] = sc_intern(f.program, name);
    }
    for (int i = 0; i < 3000; ++i) {
        snprintf(name, sizeof(name), "name %d", i);
        assert_int_equal(sc_intern(f.program, name), numbers[i]);
        assert_string_equal(f.program->names.items[numbers[i]], name);
    }
    assert_int_equal(sc_intern(f.program, ""), 0);
    sc_program_destroy(&f.program);
    sc_program_destroy(&f.program); /* NULL by now */
}

static void test_labels(void **state)
{
    (void)state;
    struct fixture f = fixture();
    char text[128];
    struct sc_label label = sc_label(f.program, "mlp.up");
    assert_string_equal(sc_label_text(f.program, label, text, sizeof(text)), "mlp.up");
    label.layer = 3;
    label.pass = SC_PASS_BACKWARD_WEIGHT;
    label.micro_batch = 0;
    label.piece = 1;
    assert_string_equal(sc_label_text(f.program, label, text, sizeof(text)),
                        "layer 3 / mlp.up / backward-weight / micro-batch 0 / piece 1");
    label.name = 0;
    label.pass = SC_PASS_NONE;
    assert_string_equal(sc_label_text(f.program, label, text, sizeof(text)),
                        "layer 3 / micro-batch 0 / piece 1");
    assert_string_equal(sc_label_text(f.program, label, text, 8), "layer 3"); /* cut */
    sc_program_destroy(&f.program);
}

/* ---- values ------------------------------------------------------------------------------ */

static void test_views(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t whole = value(&f, "qkv", 8, 96);
    uint32_t keys = sc_add_view(f.program, f.class, sc_label(f.program, "k"), whole, 4, 2, 32, 16);
    const struct sc_value *view = &f.class->values.items[keys];
    /* row 4, column 32 of 96 columns: (4 x 96 + 32) x 4 B = 1664; two rows end after 96 + 16. */
    assert_int_equal(view->offset, 1664);
    assert_int_equal(view->row_stride, 96);
    assert_int_equal(sc_value_extent(view), (96 + 16) * 4);
    assert_int_equal(sc_value_bytes(view), 2 * 16 * 4);
    accepted(&f);
    f = fixture();
    whole = value(&f, "qkv", 8, 96);
    sc_add_view(f.program, f.class, sc_label(f.program, "k"), whole, 4, 5, 0, 16);
    refused(&f, "\"k\": a view lies inside its value");
}

static void test_shards(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t flat = value(&f, "flat", 1, 768);
    struct sc_label label = sc_label(f.program, "shard");
    const struct sc_value *shard =
        &f.class->values.items[sc_add_shard(f.program, f.class, label, flat, SC_DATA)];
    assert_int_equal(shard->cols, 256);
    assert_int_equal(shard->shard_stride, 1024);
    assert_int_equal(shard->shard_axis, SC_DATA);
    /* An axis of one rank: the whole value. */
    shard = &f.class->values.items[sc_add_shard(f.program, f.class, label, flat, SC_PIPELINE)];
    assert_int_equal(shard->cols, 768);
    assert_int_equal(shard->shard_axis, -1);
    accepted(&f);
    f = fixture(); /* 768 / 2 x 4 B = 1536: fine; 130 / 2 x 4 = 260 is no multiple of 256 */
    sc_add_shard(f.program, f.class, label, value(&f, "odd", 1, 130), SC_TENSOR);
    refused(&f, "multiples of 256");
}

static void test_first_failure_stays(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t none =
        sc_add_value(f.program, f.class, sc_label(f.program, "lost"), 99, 0, SC_FP32, 1, 1);
    assert_int_equal(none, 0);
    sc_add_op(f.program, f.list, SC_SCALE, 7, -1, sc_label(f.program, "no stream"))
        ->p.scale.factor = 1; /* may be written to */
    refused(&f, "\"lost\": a value needs a buffer");
}

static void test_classes(void **state)
{
    (void)state;
    struct sc_mesh mesh;
    struct sc_program *program;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(2, 1, 1, 2, &mesh);
    assert_int_equal(sc_program_create(&mesh, &program, &err), SC_OK);
    for (int64_t stage = 0; stage < 2; ++stage) {
        const int64_t at[SC_AXIS_COUNT] = {[SC_PIPELINE] = stage};
        struct sc_class *class =
            sc_add_class(program, stage ? "last" : "first", SC_AXIS_MASK(SC_PIPELINE), at);
        assert_int_equal(class->ranks, 2);
    }
    const uint32_t expected[] = {0, 0, 1, 1}; /* tensor is innermost */
    for (int64_t rank = 0; rank < 4; ++rank) {
        assert_int_equal(sc_program_class_of(program, rank), expected[rank]);
    }
    sc_program_destroy(&program);
}

/* ---- checks ------------------------------------------------------------------------------ */

static void gemm(const struct fixture *f, int64_t inner)
{
    add(f, SC_GEMM, -1)->p.gemm.transpose_b = true;
    operand(f, SC_ROLE_A, SC_IN, value(f, "a", 4, 8));
    operand(f, SC_ROLE_B, SC_IN, value(f, "b", 6, inner));
    operand(f, SC_ROLE_C, SC_OUT, value(f, "c", 4, 6));
}

static void test_gemm_shapes(void **state)
{
    (void)state;
    struct fixture f = fixture();
    gemm(&f, 8);
    assert_float_equal(sc_op_flops(f.class, f.list, &f.list->ops.items[0]), 2.0 * 4 * 6 * 8, 0);
    /* 4x8 + 6x8 + 4x6 elements of 4 bytes */
    assert_float_equal(sc_op_bytes(f.class, f.list, &f.list->ops.items[0]), 4.0 * 104, 0);
    accepted(&f);
    f = fixture();
    gemm(&f, 7);
    refused(&f, "op 0 (gemm, op): op(A) [M,K]");
}

static void test_roles(void **state)
{
    (void)state;
    struct fixture f = fixture();
    add(&f, SC_SCALE, -1);
    operand(&f, SC_ROLE_X, SC_IN, value(&f, "x", 1, 4));
    refused(&f, "y is missing");
    f = fixture();
    gemm(&f, 8);
    operand(&f, SC_ROLE_MASK, SC_IN, 0);
    refused(&f, "mask is no operand");
    f = fixture();
    gemm(&f, 8);
    operand(&f, SC_ROLE_A, SC_IN, 0);
    refused(&f, "a stands twice");
    f = fixture();
    add(&f, SC_ROPE, -1);
    operand(&f, SC_ROLE_Y, SC_OUT, value(&f, "y", 1, 4));
    refused(&f, "may not be accessed so");
    f = fixture();
    add(&f, SC_INITIALIZE, -1);
    operand(&f, SC_ROLE_Y, SC_OUT, value(&f, "y", 1, 4));
    refused(&f, "init list only");
    f = fixture();
    add(&f, SC_HOST_WAIT, -1);
    operand(&f, SC_ROLE_TOKEN, SC_OUT, value(&f, "y", 1, 4));
    refused(&f, "tokens only");
}

/* In-place forms: the operand that is updated replaces the one that is read. */
static void test_in_place(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t y = value(&f, "y", 4, 8), x = value(&f, "x", 4, 8);
    add(&f, SC_SOFTMAX, -1);
    operand(&f, SC_ROLE_Y, SC_INOUT, y);
    add(&f, SC_SOFTMAX, -1);
    operand(&f, SC_ROLE_X, SC_IN, x);
    operand(&f, SC_ROLE_Y, SC_OUT, y);
    accepted(&f);
    f = fixture();
    add(&f, SC_SOFTMAX, -1);
    operand(&f, SC_ROLE_X, SC_IN, value(&f, "x", 4, 8));
    operand(&f, SC_ROLE_Y, SC_INOUT, value(&f, "y", 4, 8));
    refused(&f, "x stands beside");
    f = fixture();
    add(&f, SC_SOFTMAX, -1);
    operand(&f, SC_ROLE_Y, SC_OUT, value(&f, "y", 4, 8));
    refused(&f, "x is missing");
}

static void test_collectives(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t whole = value(&f, "whole", 1, 768);
    uint32_t shard = sc_add_shard(f.program, f.class, sc_label(f.program, "shard"), whole, SC_DATA);
    add(&f, SC_REDUCE_SCATTER, 1);
    operand(&f, SC_ROLE_X, SC_IN, whole);
    operand(&f, SC_ROLE_Y, SC_OUT, shard);
    add(&f, SC_ALL_GATHER, 1);
    operand(&f, SC_ROLE_X, SC_IN, shard);
    operand(&f, SC_ROLE_Y, SC_OUT, whole);
    add(&f, SC_ALL_REDUCE, 0);
    operand(&f, SC_ROLE_Y, SC_INOUT, shard);
    const uint64_t bytes[] = {3072, 3072, 1024};
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(sc_op_collective_bytes(f.program, f.class, f.list, &f.list->ops.items[i]),
                         bytes[i]);
    }
    accepted(&f);
    f = fixture();
    add(&f, SC_ALL_REDUCE, -1);
    operand(&f, SC_ROLE_Y, SC_INOUT, value(&f, "y", 1, 4));
    refused(&f, "a collective needs a group");
    f = fixture(); /* a third of 768 is 256, not 384 */
    add(&f, SC_ALL_GATHER, 1);
    operand(&f, SC_ROLE_X, SC_IN, value(&f, "x", 1, 384));
    operand(&f, SC_ROLE_Y, SC_OUT, value(&f, "y", 1, 768));
    refused(&f, "X is a member's share of Y");
}

/* An embedding touches one row of its table an index. */
static void test_embedding_bytes(void **state)
{
    (void)state;
    struct fixture f = fixture();
    add(&f, SC_EMBEDDING, -1);
    operand(&f, SC_ROLE_INDEX, SC_IN, value(&f, "index", 4, 1));
    operand(&f, SC_ROLE_WEIGHT, SC_IN, value(&f, "table", 1000, 8));
    operand(&f, SC_ROLE_Y, SC_OUT, value(&f, "y", 4, 8));
    /* 4 indices, 4 x 8 read, 4 x 8 written, 4 bytes each */
    assert_float_equal(sc_op_bytes(f.class, f.list, &f.list->ops.items[0]), 4.0 * (4 + 32 + 32), 0);
    accepted(&f);
}

/* ---- segments ---------------------------------------------------------------------------- */

/* x -> scale -> y -> dropout -> z; returns the index behind the last op. */
static uint32_t part(const struct fixture *f, int layer, int64_t cols, uint32_t site, float factor)
{
    struct sc_label label = sc_label(f->program, "part");
    label.layer = (int16_t)layer;
    uint32_t x = value(f, "x", 4, cols), y = value(f, "y", 4, cols), z = value(f, "z", 4, cols);
    sc_add_op(f->program, f->list, SC_SCALE, 0, -1, label)->p.scale.factor = factor;
    operand(f, SC_ROLE_X, SC_IN, x);
    operand(f, SC_ROLE_Y, SC_OUT, y);
    sc_add_op(f->program, f->list, SC_DROPOUT, 0, -1, label)->p.dropout.site = site;
    operand(f, SC_ROLE_X, SC_IN, y);
    operand(f, SC_ROLE_Y, SC_OUT, z);
    return (uint32_t)f->list->ops.count;
}

static void test_segments(void **state)
{
    (void)state;
    struct fixture f = fixture();
    const struct {
        int64_t cols;
        float factor;
        uint32_t signature;
    } parts[] = {{8, 1, 0}, {8, 1, 0}, {16, 1, 1}, {8, 2, 2}, {8, 1, 0}, {16, 1, 1}};
    uint32_t first = 0;
    for (int i = 0; i < 6; ++i) { /* layer and site differ, and are not in the signature */
        uint32_t end = part(&f, i, parts[i].cols, 10 + (uint32_t)i, parts[i].factor);
        sc_mark_segment(f.program, f.class, first, end);
        first = end;
    }
    assert_int_equal(f.class->segments.count, 6);
    for (int i = 0; i < 6; ++i) {
        assert_int_equal(f.class->segments.items[i].first_op, 2 * i);
        assert_int_equal(f.class->segments.items[i].ops, 2);
        assert_int_equal(f.class->segments.items[i].signature, parts[i].signature);
    }
    /* The same two ops, but of one layer and the next: not the same up to one renaming. */
    sc_mark_segment(f.program, f.class, 1, 3);
    assert_int_equal(f.class->segments.items[6].signature, 3);
    accepted(&f);
}

/* Which operand is which matters: y scaled into itself is another segment than y into z. */
static void test_segments_keep_identity(void **state)
{
    (void)state;
    struct fixture f = fixture();
    uint32_t a = value(&f, "a", 4, 4), b = value(&f, "b", 4, 4);
    const uint32_t into[] = {b, a};
    for (uint32_t i = 0; i < 2; ++i) {
        add(&f, SC_SCALE, -1);
        operand(&f, SC_ROLE_X, SC_IN, a);
        operand(&f, SC_ROLE_Y, SC_OUT, into[i]);
        sc_mark_segment(f.program, f.class, i, i + 1);
    }
    assert_int_equal(f.class->segments.items[0].signature, 0);
    assert_int_equal(f.class->segments.items[1].signature, 1);
    accepted(&f);
}

/* ---- hash and dump ----------------------------------------------------------------------- */

static void test_hash(void **state)
{
    (void)state;
    char one[SC_HASH_SIZE], two[SC_HASH_SIZE], three[SC_HASH_SIZE];
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    assert_int_equal(sc_program_hash(program, one, &err), SC_OK);
    assert_int_equal(strlen(one), strlen("sha256:") + 64);
    assert_int_equal(sc_program_prepare(program, (const uint64_t[SC_PLACE_COUNT]){0}, true, &err),
                     SC_OK);
    assert_int_equal(sc_program_hash(program, two, &err), SC_OK);
    assert_string_equal(one, two); /* addresses and waits are not in it */
    sc_intern(program, "a name that no label uses");
    assert_int_equal(sc_program_hash(program, two, &err), SC_OK);
    assert_string_equal(one, two);
    program->classes.items[0].step.ops.items[5].label.piece = 1;
    assert_int_equal(sc_program_hash(program, three, &err), SC_OK);
    assert_string_not_equal(one, three);
    sc_program_destroy(&program);
}

static void test_dump(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    assert_int_equal(sc_program_derive_waits(program, &err), SC_OK);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(sc_program_dump(program, out, &err), SC_OK);
    assert_int_equal(sc_program_dump_dot(program, 0, out, &err), SC_OK);
    fclose(out);
    assert_non_null(strstr(text, "copy pinned>device"));
    assert_non_null(strstr(text, "0, 32 (k-1)\n"));
    assert_non_null(strstr(text, "gemm +bias_gradient +accumulate"));
    assert_non_null(strstr(text, "dn.0 x.0 stat.0 gamma"));
    assert_non_null(strstr(text, "o7 -> o8;"));
    free(text);
    sc_program_destroy(&program);
}

/* Equal segments are checked once; one that differs, and what stands between, are not let through.
 */
static void test_segments_checked(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 4; ++wrong) { /* 3: none */
        struct fixture f = fixture();
        uint32_t x = value(&f, "x", 4, 8), y = value(&f, "y", 4, 8), z = value(&f, "z", 4, 9);
        for (int i = 0; i < 3; ++i) { /* a segment, the same again, one op in none */
            add(&f, SC_SCALE, -1);
            operand(&f, SC_ROLE_X, SC_IN, x);
            operand(&f, SC_ROLE_Y, SC_OUT, i == wrong ? z : y);
            if (i < 2) {
                sc_mark_segment(f.program, f.class, (uint32_t)i, (uint32_t)i + 1);
            }
        }
        if (wrong < 3) {
            char text[16];
            snprintf(text, sizeof(text), "op %d ", wrong);
            refused(&f, text);
        } else {
            assert_int_equal(f.class->segments.items[0].signature,
                             f.class->segments.items[1].signature);
            accepted(&f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_intern),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_first_failure_stays),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_gemm_shapes),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_embedding_bytes),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_segments_keep_identity),
        cmocka_unit_test(test_segments_checked),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
