/*
 * Waits, packing and verifier on random small programs, against brute force: bytes marked one by
 * one, and the full closure of "has ended before" over four unrolled steps.
 *
 *   sufficient  every pair that touches a common byte, one of them writing, is in the closure
 *   minimal     without any one wait some conflicting pair is not
 *   packing     buffers that share bytes are ordered both ways round the cycle
 *   verifier    accepts the program, and refuses it without any one wait; a step buffer read
 *               where nothing wrote is refused, by bytes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "plans/memory.h"
#include "tests/support/random_program.h"

enum { PROGRAMS = 3000, STEPS = 4, NODES = SC_RANDOM_OPS * STEPS, BYTES = 64 * 16 * 4 };
_Static_assert(NODES <= 64, "a set of nodes is one word");

static const uint64_t unlimited[SC_PLACE_COUNT];

/* ---- the oracle -------------------------------------------------------------------------- */

/* Everything about one operand of one step. */
struct access {
    uint32_t buffer, version;
    const struct sc_value *value;
    bool writes;
};

struct bytes {
    uint8_t touched[BYTES];
};

static void mark(const struct sc_value *value, uint64_t coordinate, struct bytes *out)
{
    uint64_t element = sc_dtype_bytes(value->dtype);
    uint64_t begin = value->offset + coordinate * value->shard_stride;
    for (int64_t row = 0; row < value->rows; ++row) {
        memset(out->touched + begin + (uint64_t)(row * value->row_stride) * element, 1,
               (size_t)((uint64_t)value->cols * element));
    }
}

/* Bytes of a value at coordinate 0 when `piece`, else of every coordinate with all between. */
static void mark_value(const struct sc_value *value, bool piece, struct bytes *out)
{
    memset(out, 0, sizeof(*out));
    mark(value, 0, out);
    if (!piece && value->shard_axis >= 0) { /* both axes have two ranks */
        mark(value, 1, out);
    }
}

static bool meet(const struct sc_value *a, const struct sc_value *b)
{
    static struct bytes left, right;
    bool alike = a->shard_axis == b->shard_axis && a->shard_stride == b->shard_stride;
    if (a->rows == 0 || b->rows == 0) { /* tokens */
        return true;
    }
    mark_value(a, alike, &left);
    mark_value(b, alike, &right);
    for (int i = 0; i < BYTES; ++i) {
        if (left.touched[i] && right.touched[i]) {
            return true;
        }
    }
    return false;
}

struct oracle {
    const struct sc_program *program;
    const struct sc_class *class;
    const struct sc_list *list;
    int ops, nodes;
    int8_t *met;               /* [values * values]: -1 unknown */
    uint64_t conflicts[NODES]; /* earlier nodes that each must come after */
    uint64_t ended[NODES];     /* earlier nodes that have ended when each starts */
};

static bool values_meet(struct oracle *oracle, uint32_t a, uint32_t b)
{
    size_t values = oracle->class->values.count;
    const struct sc_value *x = &oracle->class->values.items[a],
                          *y = &oracle->class->values.items[b];
    if (x->buffer != y->buffer) {
        return false;
    }
    int8_t *known = &oracle->met[a * values + b];
    if (*known < 0) {
        *known = meet(x, y);
    }
    return *known;
}

static uint32_t version_of(const struct oracle *oracle, const struct sc_operand *operand, int step)
{
    uint32_t buffer = oracle->class->values.items[operand->value].buffer;
    return oracle->class->buffers.items[buffer].versions == 2
               ? ((uint32_t)step + operand->version) % 2
               : 0;
}

static bool nodes_conflict(struct oracle *oracle, int a, int b)
{
    const struct sc_op *x = &oracle->list->ops.items[a % oracle->ops];
    const struct sc_op *y = &oracle->list->ops.items[b % oracle->ops];
    for (uint32_t i = 0; i < x->operands; ++i) {
        for (uint32_t j = 0; j < y->operands; ++j) {
            const struct sc_operand *p = &oracle->list->operands.items[x->first_operand + i];
            const struct sc_operand *q = &oracle->list->operands.items[y->first_operand + j];
            if ((p->access != SC_IN || q->access != SC_IN) &&
                version_of(oracle, p, a / oracle->ops) == version_of(oracle, q, b / oracle->ops) &&
                values_meet(oracle, p->value, q->value)) {
                return true;
            }
        }
    }
    return false;
}

static void find_conflicts(struct oracle *oracle)
{
    for (int b = 0; b < oracle->nodes; ++b) {
        oracle->conflicts[b] = 0;
        for (int a = 0; a < b; ++a) {
            oracle->conflicts[b] |= (uint64_t)nodes_conflict(oracle, a, b) << a;
        }
    }
}

/* `op` is left without its wait number `wait` (op -1: none left out). */
static void find_ended(struct oracle *oracle, int op, int wait)
{
    for (int b = 0; b < oracle->nodes; ++b) {
        const struct sc_op *item = &oracle->list->ops.items[b % oracle->ops];
        uint64_t before = 0;
        for (int a = 0; a < b; ++a) {
            if (oracle->list->ops.items[a % oracle->ops].stream == item->stream) {
                before |= oracle->ended[a] | (uint64_t)1 << a;
            }
        }
        for (int i = 0; i < item->waits; ++i) {
            const struct sc_wait *w = &oracle->list->waits.items[item->first_wait + (uint32_t)i];
            int a = (b / oracle->ops - (int)w->distance) * oracle->ops + (int)w->op;
            if (a >= 0 && !(b % oracle->ops == op && i == wait)) {
                before |= oracle->ended[a] | (uint64_t)1 << a;
            }
        }
        oracle->ended[b] = before;
    }
}

static bool all_ordered(const struct oracle *oracle)
{
    for (int b = 0; b < oracle->nodes; ++b) {
        if (oracle->conflicts[b] & ~oracle->ended[b]) {
            return false;
        }
    }
    return true;
}

static struct oracle oracle_of(const struct sc_program *program)
{
    struct oracle oracle = {.program = program, .class = &program->classes.items[0]};
    size_t values = oracle.class->values.count;
    oracle.list = &oracle.class->step;
    oracle.ops = (int)oracle.list->ops.count;
    oracle.nodes = oracle.ops * STEPS;
    oracle.met = malloc(values * values);
    assert_non_null(oracle.met);
    memset(oracle.met, -1, values * values);
    find_conflicts(&oracle);
    find_ended(&oracle, -1, -1);
    return oracle;
}

/* ---- waits ------------------------------------------------------------------------------- */

/* Two views with different row lengths are compared by extents, a shard beside another value by its
 * whole run: the pass may then order what no byte demands. */
static bool exact(const struct sc_program *program)
{
    const struct sc_class *class = &program->classes.items[0];
    for (size_t i = 0; i < class->values.count; ++i) {
        const struct sc_value *value = &class->values.items[i];
        if (value->shard_axis >= 0 || (value->rows > 0 && value->row_stride != 16)) {
            return false;
        }
    }
    return true;
}

static void remove_wait(struct sc_list *list, uint32_t op, uint32_t wait, struct sc_wait *kept)
{
    struct sc_op *item = &list->ops.items[op];
    struct sc_wait *waits = &list->waits.items[item->first_wait];
    *kept = waits[wait];
    waits[wait] = waits[item->waits - 1];
    waits[item->waits - 1] = *kept;
    --item->waits;
}

static void restore_wait(struct sc_list *list, uint32_t op, uint32_t wait)
{
    struct sc_op *item = &list->ops.items[op];
    struct sc_wait *waits = &list->waits.items[item->first_wait];
    struct sc_wait kept = waits[item->waits];
    waits[item->waits] = waits[wait];
    waits[wait] = kept;
    ++item->waits;
}

static void check_waits(struct sc_program *program, uint64_t seed, bool minimal)
{
    struct oracle oracle = oracle_of(program);
    struct sc_error err = SC_ERROR_INIT;
    struct sc_list *list = &program->classes.items[0].step;
    if (!all_ordered(&oracle)) {
        fail_msg("seed %llu: a conflict without order", (unsigned long long)seed);
    }
    if (sc_program_verify(program, &err) != SC_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    }
    for (uint32_t op = 0; op < list->ops.count; ++op) {
        for (uint32_t wait = 0; wait < list->ops.items[op].waits; ++wait) {
            struct sc_wait kept;
            find_ended(&oracle, (int)op, (int)wait);
            if (minimal && all_ordered(&oracle)) {
                fail_msg("seed %llu: op %u, wait %u is not needed", (unsigned long long)seed, op,
                         wait);
            }
            remove_wait(list, op, wait, &kept);
            assert_int_equal(sc_program_verify(program, &err), SC_BUG);
            assert_int_equal(strncmp(err.text, "unordered-access:", 17), 0);
            restore_wait(list, op, wait);
        }
    }
    free(oracle.met);
}

static void test_waits(void **state)
{
    (void)state;
    int exactly = 0;
    size_t waits = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; ++seed) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_program *program = sc_random_program(seed);
        assert_non_null(program);
        assert_int_equal(sc_program_prepare(program, unlimited, false, &err), SC_OK);
        check_waits(program, seed, exact(program));
        exactly += exact(program);
        waits += program->classes.items[0].step.waits.count;
        sc_program_destroy(&program);
    }
    print_message("%d programs, %zu waits; minimal by bytes in %d\n", PROGRAMS, waits, exactly);
    assert_true(exactly > PROGRAMS / 10);
    assert_true(waits > PROGRAMS);
}

/* ---- packing ----------------------------------------------------------------------------- */

/* Nodes of one step that touch a buffer, as bits over its ops. */
static uint64_t users(const struct oracle *oracle, uint32_t buffer)
{
    uint64_t set = 0;
    for (int i = 0; i < oracle->ops; ++i) {
        const struct sc_op *op = &oracle->list->ops.items[i];
        for (uint32_t j = 0; j < op->operands; ++j) {
            uint32_t value = oracle->list->operands.items[op->first_operand + j].value;
            set |= (uint64_t)(oracle->class->values.items[value].buffer == buffer) << i;
        }
    }
    return set;
}

/* Every op of `a` in step `step_a` has ended before any of `b` in `step_b` starts. */
static bool precede(const struct oracle *oracle, uint64_t a, int step_a, uint64_t b, int step_b)
{
    uint64_t needed = a << (step_a * oracle->ops);
    for (int i = 0; i < oracle->ops; ++i) {
        if ((b >> i & 1) && (needed & ~oracle->ended[step_b * oracle->ops + i])) {
            return false;
        }
    }
    return true;
}

static bool may_share(const struct oracle *oracle, uint64_t a, uint64_t b)
{
    return (precede(oracle, a, 3, b, 3) && precede(oracle, b, 2, a, 3)) ||
           (precede(oracle, b, 3, a, 3) && precede(oracle, a, 2, b, 3));
}

static int check_sharing(const struct oracle *oracle, uint64_t seed)
{
    int shared = 0;
    const struct sc_buffer *buffers = oracle->class->buffers.items;
    for (uint32_t i = 0; i < oracle->class->buffers.count; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            uint64_t a = users(oracle, i), b = users(oracle, j);
            uint64_t end_i = buffers[i].offset + buffers[i].versions * buffers[i].bytes;
            uint64_t end_j = buffers[j].offset + buffers[j].versions * buffers[j].bytes;
            bool meets = buffers[i].offset < end_j && buffers[j].offset < end_i;
            if (!meets || buffers[i].token || buffers[j].token || a == 0 || b == 0) {
                continue;
            }
            ++shared;
            assert_int_equal(buffers[i].lifetime, SC_STEP);
            assert_int_equal(buffers[j].lifetime, SC_STEP);
            if (!may_share(oracle, a, b)) {
                fail_msg("seed %llu: buffers %u and %u share bytes", (unsigned long long)seed, i,
                         j);
            }
        }
    }
    return shared;
}

/* The heaviest set of step buffers of which no two may share, by trying all. */
static uint64_t heaviest(const struct oracle *oracle)
{
    uint64_t sets[8], bytes[8], best = 0;
    int count = 0;
    for (uint32_t i = 0; i < oracle->class->buffers.count; ++i) {
        const struct sc_buffer *buffer = &oracle->class->buffers.items[i];
        if (buffer->lifetime == SC_STEP && !buffer->token && users(oracle, i) != 0) {
            sets[count] = users(oracle, i);
            bytes[count++] = sc_round_up(buffer->bytes, SC_ALIGN);
        }
    }
    for (unsigned chosen = 0; chosen < 1u << count; ++chosen) {
        uint64_t sum = 0;
        bool apart = true;
        for (int i = 0; i < count && apart; ++i) {
            sum += chosen >> i & 1 ? bytes[i] : 0;
            for (int j = 0; j < i; ++j) {
                apart = apart && !((chosen >> i & 1) && (chosen >> j & 1) &&
                                   may_share(oracle, sets[i], sets[j]));
            }
        }
        best = apart && sum > best ? sum : best;
    }
    return best;
}

static void test_packing(void **state)
{
    (void)state;
    int shared = 0, tight = 0, exactly = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; ++seed) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_program *program = sc_random_program(seed);
        assert_int_equal(sc_program_prepare(program, unlimited, true, &err), SC_OK);
        struct oracle oracle = oracle_of(program);
        const struct sc_place_memory *memory = &oracle.class->memory[SC_DEVICE];
        shared += check_sharing(&oracle, seed);
        uint64_t clique = heaviest(&oracle);
        assert_true(memory->bound_bytes <= clique && clique <= memory->step_bytes);
        exactly += memory->bound_bytes == clique;
        tight += memory->step_bytes == clique;
        free(oracle.met);
        sc_program_destroy(&program);
    }
    print_message(
        "%d shared; of %d programs the bound is the heaviest set in %d, the arena in %d\n", shared,
        PROGRAMS, exactly, tight);
    assert_true(shared > PROGRAMS / 10);
    assert_true(exactly > PROGRAMS * 9 / 10 && tight > PROGRAMS * 9 / 10);
}

/* ---- packing by issue order -------------------------------------------------------------- */

/* Ops of different buffers whose bytes meet, one of them writing, are ordered by the added waits;
 * buffers alive together in issue order stay apart. */
static void check_issue_order(const struct sc_program *program, uint64_t seed)
{
    struct oracle oracle = oracle_of(program);
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(oracle.class->memory_mode, SC_MEMORY_ISSUE_ORDER);
    if (!all_ordered(&oracle)) {
        fail_msg("seed %llu: a conflict without order", (unsigned long long)seed);
    }
    for (uint32_t i = 0; i < oracle.class->buffers.count; ++i) {
        for (uint32_t j = 0; j < oracle.class->buffers.count; ++j) {
            const struct sc_buffer *x = &oracle.class->buffers.items[i];
            const struct sc_buffer *y = &oracle.class->buffers.items[j];
            uint64_t a = users(&oracle, i), b = users(&oracle, j);
            bool meets = i != j && !x->token && !y->token && x->offset < y->offset + y->bytes &&
                         y->offset < x->offset + x->bytes && x->lifetime == SC_STEP;
            if (meets && a != 0 && b != 0) { /* one wholly before the other */
                assert_true((a & -a) > b || (b & -b) > a);
            }
        }
    }
    if (sc_program_verify(program, &err) != SC_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    }
    free(oracle.met);
}

static void test_issue_order(void **state)
{
    (void)state;
    int packed = 0;
    uint32_t added = 0, refused = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; ++seed) {
        struct sc_error err = SC_ERROR_INIT;
        struct sc_program *program = sc_random_program(seed);
        assert_int_equal(sc_program_prepare(program, unlimited, false, &err), SC_OK);
        struct sc_class *class = &program->classes.items[0];
        uint64_t capacity[SC_PLACE_COUNT] = {class->memory[SC_DEVICE].arena_bytes};
        capacity[SC_DEVICE] -= capacity[SC_DEVICE] > SC_ALIGN ? SC_ALIGN : 0;
        enum sc_status status = sc_program_prepare(program, capacity, false, &err);
        if (status == SC_OK && class->memory_mode == SC_MEMORY_ISSUE_ORDER) {
            check_issue_order(program, seed);
            ++packed;
            added += class->added_waits;
            /* every added wait is needed, by address */
            for (uint32_t op = 0; op < class->step.ops.count; ++op) {
                for (uint32_t wait = 0; wait < class->step.ops.items[op].waits; ++wait) {
                    struct sc_wait kept;
                    remove_wait(&class->step, op, wait, &kept);
                    refused += sc_program_verify(program, &err) == SC_BUG;
                    restore_wait(&class->step, op, wait);
                }
            }
            refused -= (uint32_t) class->step.waits.count;
        }
        sc_program_destroy(&program);
    }
    print_message("%d programs packed by issue order, %u waits added\n", packed, added);
    assert_int_equal(refused, 0);
    assert_true(packed > 50 && added > 50);
}

/* ---- read before written ----------------------------------------------------------------- */

/* A view of a random kind: of the matrix, of the same bytes with half or a third the row length. */
static uint32_t random_view(struct sc_program *program, struct sc_class *class, uint64_t *state,
                            uint32_t buffer, const int64_t shape[2])
{
    static const int64_t cuts[] = {1, 1, 1, 2, 3};
    int64_t cut = cuts[sc_random_next(state) % 5], rows = shape[0] * cut, cols = shape[1] / cut;
    struct sc_label label = sc_label(program, "x");
    uint32_t whole = sc_add_value(program, class, label, buffer, 0, SC_FP32, rows, cols);
    int64_t row = (int64_t)(sc_random_next(state) % (uint64_t)rows);
    int64_t col = (int64_t)(sc_random_next(state) % (uint64_t)cols);
    row = sc_random_next(state) % 2 ? 0 : row;
    col = sc_random_next(state) % 2 ? 0 : col;
    int64_t height = 1 + (int64_t)(sc_random_next(state) % (uint64_t)(rows - row));
    int64_t width = 1 + (int64_t)(sc_random_next(state) % (uint64_t)(cols - col));
    height = sc_random_next(state) % 2 ? rows - row : height;
    width = sc_random_next(state) % 2 ? cols - col : width;
    return sc_add_view(program, class, label, whole, row, height, col, width);
}

/* Up to six writes and a read of one step buffer: refused exactly when a byte of the read is in no
 * write. */
static void test_read_before_write(void **state)
{
    (void)state;
    int refused = 0;
    for (uint64_t seed = 0; seed < 4 * PROGRAMS; ++seed) {
        struct sc_mesh mesh;
        struct sc_program *program;
        struct sc_error err = SC_ERROR_INIT;
        uint64_t draws = seed * 77 + 5;
        const int64_t shape[2] = {1 + (int64_t)(seed % 9), 6 * (1 + (int64_t)(seed % 2))};
        static struct bytes written, one;
        memset(&written, 0, sizeof(written));
        sc_mesh_make(1, 1, 1, 1, &mesh);
        assert_int_equal(sc_program_create(&mesh, &program, &err), SC_OK);
        sc_add_stream(program, "only", SC_ENGINE_DEVICE, 0);
        struct sc_class *class = sc_add_class(program, "all", 0, NULL);
        struct sc_label label = sc_label(program, "x");
        uint32_t buffer = sc_add_buffer(program, class, label, SC_DEVICE, SC_STEP, 1,
                                        (uint64_t)(shape[0] * shape[1] * 4));
        uint64_t writes = 1 + sc_random_next(&draws) % 6;
        for (uint64_t i = 0; i <= writes; ++i) {
            uint32_t view = random_view(program, class, &draws, buffer, shape);
            sc_add_op(program, &class->step, SC_SCALE, 0, -1, label);
            sc_add_operand(program, &class->step, SC_ROLE_X, i < writes ? SC_OUT : SC_IN, view);
            mark_value(&class->values.items[view], true, &one);
            for (int b = 0; b < BYTES && i < writes; ++b) {
                written.touched[b] |= one.touched[b];
            }
        }
        bool fine = true;
        for (int b = 0; b < BYTES; ++b) {
            fine = fine && (!one.touched[b] || written.touched[b]);
        }
        assert_int_equal(sc_program_prepare(program, unlimited, false, &err), SC_OK);
        enum sc_status status = sc_program_verify(program, &err);
        if ((status == SC_OK) != fine) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, fine ? err.text : "accepted");
        }
        refused += !fine;
        sc_program_destroy(&program);
    }
    print_message("%d of %d refused\n", refused, 4 * PROGRAMS);
    assert_true(refused > PROGRAMS && refused < 3 * PROGRAMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_before_write),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_issue_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
