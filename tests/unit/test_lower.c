/* The lowering against numbers and orders worked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plans/lower.h"
#include "plans/program.h"

static struct sc_program *lower_shipped(const char *name, const char *const *set, int count,
                                        struct sc_plan *plan)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    if (sc_plan_load(name, set, count, plan, &err) != SC_OK)
        fail_msg("%s", err.text);
    if (sc_lower(plan, &program, &err) != SC_OK)
        fail_msg("%s", err.text);
    return program;
}

/* A GPT of two layers on two tensor ranks: b = 2, s = 8 (T = 16), h = 32, 4 heads, f = 128,
 * V = 100 (padded to 256 = 128 x 2), no dropout, clipping. */
static void two_layers(struct sc_plan *plan, int64_t pieces)
{
    sc_plan_neutral(plan);
    strcpy(plan->name, "two-layers");
    plan->model = (struct sc_model){.name = "two",
                                    .family = SC_FAMILY_GPT2,
                                    .layers = 2,
                                    .hidden_size = 32,
                                    .attention_heads = 4,
                                    .key_value_heads = 4,
                                    .head_size = 8,
                                    .ffn_hidden_size = 128,
                                    .vocab_size = 100,
                                    .max_positions = 16,
                                    .norm = SC_LAYER_NORM,
                                    .norm_epsilon = 1e-5,
                                    .activation = SC_GELU_TANH,
                                    .position = SC_POSITION_LEARNED,
                                    .biases = true,
                                    .tied_head = true};
    plan->mesh.size[SC_TENSOR] = 2;
    plan->batch.global_batch = plan->batch.micro_batch = 2;
    plan->batch.sequence_length = 8;
    plan->domino.pieces = pieces;
    plan->optimizer.clip_global_norm = 1;
}

static struct sc_program *lower_two_layers(int64_t pieces, enum sc_domino_schedule schedule)
{
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    two_layers(&plan, pieces);
    plan.domino.schedule = schedule;
    if (sc_lower(&plan, &program, &err) != SC_OK)
        fail_msg("%s", err.text);
    return program;
}

static int count_kind(const struct sc_program *program, enum sc_op_kind kind)
{
    const struct sc_list *list = &program->classes.items[0].step;
    int count = 0;
    for (size_t i = 0; i < list->ops.count; i++)
        count += list->ops.items[i].kind == kind;
    return count;
}

/* Two layers, TP 2. Products: 4 forward and 8 backward a layer, 3 for the head: 2 x 12 + 3 = 27.
 * All-reduces: 4 a layer, embedding, gradient of the head's input, 3 of the loss, 1 of the norm:
 * 8 + 6 = 14. Norms: 2 a layer and the final one, 5 each way. */
static void test_counts(void **state)
{
    (void)state;
    struct sc_program *program = lower_two_layers(1, SC_DOMINO_INTER_LAYER);
    assert_int_equal(count_kind(program, SC_GEMM), 27);
    assert_int_equal(count_kind(program, SC_ALL_REDUCE), 14);
    assert_int_equal(count_kind(program, SC_NORM_FORWARD), 5);
    assert_int_equal(count_kind(program, SC_NORM_BACKWARD), 5);
    assert_int_equal(count_kind(program, SC_ATTENTION), 2);
    assert_int_equal(count_kind(program, SC_ATTENTION_BACKWARD), 2);
    assert_int_equal(count_kind(program, SC_ADAM), 1);
    sc_program_destroy(&program);
}

/* FLOPs of the products on a rank: forward 24 T h^2 / t a layer and 2 T h V / t for the head, three
 * times that with backward. 24 x 16 x 1024 / 2 = 196,608 a layer, 2 x 16 x 32 x 128 = 131,072:
 * 3 x (2 x 196,608 + 131,072) = 1,572,864. Attention, causal half: forward 2 b s^2 h / t = 4,096 a
 * layer, backward 2.5 times that: 2 x 4,096 x 3.5 = 28,672.
 * Bytes in all-reduces, fp32: 4 a layer, embedding and head of T h x 4 = 2,048 each, 3 of T x 4 =
 * 64 and one of 4: 10 x 2,048 + 192 + 4 = 20,676. */
static void test_flops_and_bytes(void **state)
{
    (void)state;
    struct sc_program *program = lower_two_layers(1, SC_DOMINO_INTER_LAYER);
    const struct sc_class *class = &program->classes.items[0];
    double products = 0, attention = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < class->step.ops.count; i++) {
        const struct sc_op *op = &class->step.ops.items[i];
        if (op->kind == SC_GEMM)
            products += sc_op_flops(class, &class->step, op);
        if (op->kind == SC_ATTENTION || op->kind == SC_ATTENTION_BACKWARD)
            attention += sc_op_flops(class, &class->step, op);
        if (op->kind == SC_ALL_REDUCE)
            bytes += sc_op_collective_bytes(program, class, &class->step, op);
    }
    assert_true(products == 1572864);
    assert_true(attention == 28672);
    assert_int_equal(bytes, 20676);
    sc_program_destroy(&program);
}

/* "0.qkv.1": layer, part, piece; all-reduces end with "*". Only ops of layers and the final norm
 * ("2.n1"); backward-data and backward-weight are "<" and "'". */
static void short_name(const struct sc_program *program, const struct sc_op *op, char out[32])
{
    static const char *const names[][2] = {{"attention.norm", "n1"},
                                           {"attention.qkv", "qkv"},
                                           {"attention.core", "att"},
                                           {"attention.projection", "proj"},
                                           {"attention.residual", "r1"},
                                           {"mlp.norm", "n2"},
                                           {"mlp.up", "up"},
                                           {"mlp.activation", "act"},
                                           {"mlp.down", "down"},
                                           {"mlp.residual", "r2"},
                                           {"final_norm", "fn"}};
    const char *name = program->names.items[op->label.name], *brief = "?";
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i][0]) == 0)
            brief = names[i][1];
    const char *pass = op->kind == SC_ALL_REDUCE                   ? "*"
                       : op->label.pass == SC_PASS_BACKWARD_DATA   ? "<"
                       : op->label.pass == SC_PASS_BACKWARD_WEIGHT ? "'"
                                                                   : "";
    snprintf(out, 32, "%d%s%d%s", op->label.layer, brief, op->label.piece, pass);
}

static void assert_order(const struct sc_program *program, bool backward, const char *expected)
{
    const struct sc_list *list = &program->classes.items[0].step;
    char got[4096] = "";
    for (size_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        bool is_backward = op->label.pass >= SC_PASS_BACKWARD;
        bool final = strcmp(program->names.items[op->label.name], "final_norm") == 0;
        if ((op->label.layer < 0 && !final) || is_backward != backward)
            continue;
        char name[32];
        short_name(program, op, name);
        strcat(got, name);
        strcat(got, " ");
    }
    assert_string_equal(got, expected);
}

/* techniques 5.2, steps 1 to 12, twice. Residual and norm of an item follow the next item's "in".
 */
static void test_domino_forward_order(void **state)
{
    (void)state;
    struct sc_program *program = lower_two_layers(2, SC_DOMINO_INTER_LAYER);
    assert_order(program, false,
                 "0n10 "
                 "0qkv0 0att0 0n11 0proj0 0proj0* "
                 "0qkv1 0att1 0r10 0n20 0proj1 0proj1* "
                 "0up0 0act0 0r11 0n21 0down0 0down0* "
                 "0up1 0act1 0r20 1n10 0down1 0down1* "
                 "1qkv0 1att0 0r21 1n11 1proj0 1proj0* "
                 "1qkv1 1att1 1r10 1n20 1proj1 1proj1* "
                 "1up0 1act0 1r11 1n21 1down0 1down0* "
                 "1up1 1act1 1r20 -1fn0 1down1 1down1* "
                 "1r21 -1fn1 ");
    sc_program_destroy(&program);
}

/* techniques 5.4, B12 to B1. Without dropout the residual has no op of its own in backward: the
 * gradient of z is the residual's. */
static void test_domino_backward_order(void **state)
{
    (void)state;
    struct sc_program *program = lower_two_layers(2, SC_DOMINO_INTER_LAYER);
    assert_order(program, true,
                 "-1fn1 "
                 "1down1< 1down1' -1fn0 1act1 1up1< 1up1* 1up1' "
                 "1down0< 1down0' 1n21 1act0 1up0< 1up0* 1up0' "
                 "1proj1< 1proj1' 1n20 1att1 1qkv1< 1qkv1* 1qkv1' "
                 "1proj0< 1proj0' 1n11 1att0 1qkv0< 1qkv0* 1qkv0' "
                 "0down1< 0down1' 1n10 0act1 0up1< 0up1* 0up1' "
                 "0down0< 0down0' 0n21 0act0 0up0< 0up0* 0up0' "
                 "0proj1< 0proj1' 0n20 0att1 0qkv1< 0qkv1* 0qkv1' "
                 "0proj0< 0proj0' 0n11 0att0 0qkv0< 0qkv0* 0qkv0' "
                 "0n10 ");
    sc_program_destroy(&program);
}

/* techniques 5.3: nothing crosses the end of a layer. */
static void test_domino_intra_layer_order(void **state)
{
    (void)state;
    struct sc_program *program = lower_two_layers(2, SC_DOMINO_INTRA_LAYER);
    assert_order(program, false,
                 "0n10 0qkv0 0att0 0proj0 0proj0* 0n11 0qkv1 0att1 0proj1 0proj1* "
                 "0r10 0n20 0up0 0act0 0r11 0n21 0down0 0down0* 0up1 0act1 0down1 0down1* "
                 "0r20 0r21 "
                 "1n10 1qkv0 1att0 1proj0 1proj0* 1n11 1qkv1 1att1 1proj1 1proj1* "
                 "1r10 1n20 1up0 1act0 1r11 1n21 1down0 1down0* 1up1 1act1 1down1 1down1* "
                 "1r20 1r21 "
                 "-1fn0 -1fn1 ");
    sc_program_destroy(&program);
}

/* Bytes of step buffers that a forward op of a layer touches and a backward op of a layer as well:
 * what a layer saves. `statistics`: norm statistics (fp32, two a row) included. */
static uint64_t saved_bytes(const struct sc_program *program, bool statistics)
{
    const struct sc_class *class = &program->classes.items[0];
    const struct sc_list *list = &class->step;
    uint64_t total = 0;
    uint8_t *seen = test_calloc(class->buffers.count, 1);
    for (size_t i = 0; i < list->ops.count; i++) {
        const struct sc_op *op = &list->ops.items[i];
        if (op->label.layer < 0)
            continue;
        for (int j = 0; j < op->operands; j++) {
            const struct sc_value *value =
                &class->values.items[list->operands.items[op->first_operand + j].value];
            bool stat = value->dtype == SC_FP32 && value->cols == 2;
            if (!stat || statistics)
                seen[value->buffer] |= op->label.pass >= SC_PASS_BACKWARD ? 2 : 1;
        }
    }
    for (size_t i = 0; i < class->buffers.count; i++)
        if (seen[i] == 3 && class->buffers.items[i].lifetime == SC_STEP)
            total += class->buffers.items[i].bytes;
    test_free(seen);
    return total;
}

/* 22B (h 6144, 64 heads, 48 layers, s 2048), micro-batch 4, TP 8, unfused attention, masks saved:
 * s b h (10 + 24/8 + 5 a s / (8 h)) = 50,331,648 x 26.3333 = 1,325,400,064 B a layer, 48 of them
 * 63,619,203,072 B = 59.25 GiB (Korthikanti et al., table of activation memory). */
static void test_22b_saved_activations(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_program *program = lower_shipped("gpt3-22b_1xdgx-a100_tp8", NULL, 0, &plan);
    assert_int_equal(saved_bytes(program, false), 63619203072);
    sc_program_destroy(&program);
}

/* GPT-3 13B, Domino, one DGX-H100: T = 16 x 1024, h 5120, 40 layers, 64 heads, TP 8.
 * Parameters of the model 12,848,143,360; on a rank, padded: 1,612,293,120, 18 B each.
 * Saved a layer: (8 + 24/8) T h + 4 a b s / 8 + 2 x 8 T = 922,746,880 + 524,288 + 262,144.
 * Layers' all-reduces: 8 x 40 of T/2 x h x 2 B. Logits and exponentials: (2 + 4) T x 6400 B. */
static void test_13b_arithmetic(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_program *program = lower_shipped("gpt3-13b_1xdgx-h100_tp8_domino2", NULL, 0, &plan);
    const struct sc_class *class = &program->classes.items[0];
    assert_int_equal(sc_program_parameters(program), 12848143360);
    int64_t held = 0;
    for (size_t i = 0; i < program->parameters.count; i++)
        held += program->parameters.items[i].rows * program->parameters.items[i].cols;
    assert_int_equal(held, 1612293120);
    uint64_t states = 0, logits = 0;
    for (size_t i = 0; i < class->buffers.count; i++) {
        const struct sc_buffer *buffer = &class->buffers.items[i];
        const char *name = program->names.items[buffer->label.name];
        if (buffer->lifetime == SC_PERSISTENT && buffer->place == SC_DEVICE && !buffer->token &&
            strcmp(name, "state") != 0)
            states += buffer->bytes;
        if (strcmp(name, "head") == 0 || (strcmp(name, "loss.sum") == 0 && buffer->bytes > 65536))
            logits += buffer->bytes;
    }
    /* Every tensor of this model is a multiple of the alignment: no holes. */
    assert_int_equal(states, 29021276160);
    assert_int_equal(logits, 6ull * 16384 * 6400);
    assert_int_equal(saved_bytes(program, true), 36941332480);
    int reductions = 0;
    for (size_t i = 0; i < class->step.ops.count; i++) {
        const struct sc_op *op = &class->step.ops.items[i];
        if (op->kind == SC_ALL_REDUCE && op->label.layer >= 0) {
            reductions++;
            assert_int_equal(sc_op_collective_bytes(program, class, &class->step, op), 83886080);
        }
    }
    assert_int_equal(reductions, 320);
    sc_program_destroy(&program);
}

/* Masks saved: + 2 T h a layer = 6.25 GiB; unfused, masks saved: + 25 GiB more (5 a s / (8 h) T h a
 * layer = 8 x 83,886,080), less the log-sum-exp that only the fused kernel writes. */
static void test_13b_variants(void **state)
{
    (void)state;
    struct sc_plan plan;
    const char *saved[] = {"dropout.mask=saved"};
    const char *unfused[] = {"dropout.mask=saved", "attention.kernel=unfused"};
    struct sc_program *program = lower_shipped("gpt3-13b_1xdgx-h100_tp8_domino2", saved, 1, &plan);
    assert_int_equal(saved_bytes(program, true) - 36941332480, 40ull * 2 * 83886080);
    sc_program_destroy(&program);
    program = lower_shipped("gpt3-13b_1xdgx-h100_tp8_domino2", unfused, 2, &plan);
    assert_int_equal(saved_bytes(program, true) - 36941332480, 40ull * (10 * 83886080 - 524288));
    sc_program_destroy(&program);
}

/* ZeRO-1: bf16 parameters and gradients stay whole (4 bytes), fp32 master, m and v are cut over the
 * data group (12 / D bytes a parameter), up to the padding of a bucket to D shards of 256 bytes. */
static void test_zero1_memory(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_program *program =
        lower_shipped("gpt3-175b_64xdgx-h100_tp16_dp32_zero1", NULL, 0, &plan);
    const struct sc_class *class = &program->classes.items[0];
    uint64_t bytes = 0, held = 0;
    for (size_t i = 0; i < class->buffers.count; i++) {
        const struct sc_buffer *buffer = &class->buffers.items[i];
        if (buffer->lifetime == SC_PERSISTENT && buffer->place == SC_DEVICE && !buffer->token)
            bytes += buffer->bytes;
    }
    for (size_t i = 0; i < program->parameters.count; i++)
        held += (uint64_t)(program->parameters.items[i].rows * program->parameters.items[i].cols);
    double expected = (double)held * (4 + 12.0 / 32);
    assert_true((double)bytes >= expected);
    assert_true((double)bytes <= expected * 1.001 + 4096);
    sc_program_destroy(&program);
}

/* Accumulation: gradients are written by the first contribution and added to by all later ones, and
 * every bucket is reduced exactly once, behind the last. */
static void test_gradients_are_written_once(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    two_layers(&plan, 2);
    plan.mesh.size[SC_DATA] = 2;
    plan.batch.global_batch = 12;
    plan.zero.bucket_elements = 4096;
    plan.zero.stage = 1;
    plan.zero.gradient_reduction = SC_REDUCE_REDUCE_SCATTER;
    assert_int_equal(sc_lower(&plan, &program, &err), SC_OK);
    const struct sc_class *class = &program->classes.items[0];
    const struct sc_list *list = &class->step;
    for (size_t p = 0; p < program->parameters.count; p++) {
        uint32_t gradient = program->parameters.items[p].gradient;
        int writes = 0, first = -1;
        for (size_t i = 0; i < list->ops.count; i++) {
            const struct sc_op *op = &list->ops.items[i];
            for (int j = 0; j < op->operands; j++) {
                const struct sc_operand *operand = &list->operands.items[op->first_operand + j];
                if (operand->value != gradient || operand->access == SC_IN)
                    continue;
                if (writes++ == 0)
                    first = operand->access;
                else
                    assert_int_equal(operand->access, SC_INOUT);
            }
        }
        if (writes > 0) /* the position table is written through a view */
            assert_int_equal(first, SC_OUT);
    }
    int reductions = 0, adams = 0;
    for (size_t i = 0; i < list->ops.count; i++) {
        reductions += list->ops.items[i].kind == SC_REDUCE_SCATTER;
        adams += list->ops.items[i].kind == SC_ADAM;
    }
    assert_true(adams > 2);
    assert_int_equal(reductions + count_kind(program, SC_ALL_GATHER), 2 * adams);
    sc_program_destroy(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_flops_and_bytes),
        cmocka_unit_test(test_domino_forward_order),
        cmocka_unit_test(test_domino_backward_order),
        cmocka_unit_test(test_domino_intra_layer_order),
        cmocka_unit_test(test_22b_saved_activations),
        cmocka_unit_test(test_13b_arithmetic),
        cmocka_unit_test(test_13b_variants),
        cmocka_unit_test(test_zero1_memory),
        cmocka_unit_test(test_gradients_are_written_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
