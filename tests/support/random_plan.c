/* Random valid plans: sizes are built up from their divisors, so nothing has to be rejected. */
#include "tests/support/random_plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(sc_random_next(state) % (uint64_t)(high - low + 1));
}

static bool one_in(uint64_t *state, int64_t n)
{
    return between(state, 1, n) == 1;
}

/* One of the first `count` items. */
static int64_t pick(uint64_t *state, int64_t count, const int64_t *items)
{
    return items[between(state, 0, count - 1)];
}

static void draw_mesh(uint64_t *state, int max_ranks, struct sc_plan *plan)
{
    static const int64_t sizes[] = {1, 2, 4};
    int64_t *size = plan->mesh.size;
    do {
        size[SC_TENSOR] = pick(state, 3, sizes);
        size[SC_DATA] = pick(state, 3, sizes);
    } while (size[SC_TENSOR] * size[SC_DATA] > (max_ranks > 1 ? max_ranks : 1));
    for (int i = SC_AXIS_COUNT - 1; i > 0 && one_in(state, 2); i--) {
        int64_t j = between(state, 0, i);
        enum sc_axis swapped = plan->mesh.order[i];
        plan->mesh.order[i] = plan->mesh.order[j];
        plan->mesh.order[j] = swapped;
    }
    plan->mesh.synchronous_backward = one_in(state, 3);
}

/* Heads and widths that divide by the tensor size. */
static void draw_shape(uint64_t *state, int64_t tensor, struct sc_model *model)
{
    static const int64_t hidden[] = {32, 48, 64, 96}, head_size[] = {4, 8, 16};
    model->layers = between(state, 1, 4);
    model->hidden_size = pick(state, 4, hidden);
    model->key_value_heads = tensor * between(state, 1, 2);
    model->attention_heads = model->key_value_heads * (one_in(state, 3) ? 2 : 1);
    model->head_size = pick(state, 3, head_size);
    model->ffn_hidden_size = tensor * between(state, 8, 48);
    model->vocab_size = between(state, 60, 300);
}

static void draw_gpt(uint64_t *state, struct sc_model *model)
{
    static const enum sc_activation activations[] = {SC_GELU_TANH, SC_GELU_ERF, SC_RELU};
    model->family = SC_FAMILY_GPT2;
    model->norm = SC_LAYER_NORM;
    model->norm_epsilon = 1e-5;
    model->activation = activations[between(state, 0, 2)];
    model->position = SC_POSITION_LEARNED;
    model->biases = !one_in(state, 4);
    model->tied_head = !one_in(state, 4);
}

static void draw_llama(uint64_t *state, struct sc_model *model)
{
    model->family = SC_FAMILY_LLAMA;
    model->norm = SC_RMS_NORM;
    model->norm_epsilon = 1e-6;
    model->activation = SC_SWIGLU;
    model->position = SC_POSITION_ROTARY;
    model->attention_qkv_bias = one_in(state, 4);
    model->tied_head = one_in(state, 4);
}

static void draw_model(uint64_t *state, struct sc_plan *plan)
{
    struct sc_model *model = &plan->model;
    snprintf(model->name, sizeof(model->name), "random");
    model->rope_theta = 10000;
    draw_shape(state, plan->mesh.size[SC_TENSOR], model);
    if (one_in(state, 2)) {
        draw_gpt(state, model);
    } else {
        draw_llama(state, model);
    }
    model->max_positions = plan->batch.sequence_length + between(state, 0, 8);
}

/* Lengths are mostly even numbers, now and then an odd one: edges of kernels' vector loops. */
static void draw_batch(uint64_t *state, struct sc_plan *plan)
{
    static const int64_t lengths[] = {8, 16, 24, 32, 7, 13};
    int64_t pieces = one_in(state, 2) ? between(state, 2, 4) : 1;
    plan->domino.pieces = pieces;
    plan->domino.schedule = one_in(state, 2) ? SC_DOMINO_INTRA_LAYER : SC_DOMINO_INTER_LAYER;
    plan->batch.micro_batch = pieces * between(state, 1, 2);
    plan->batch.sequence_length = pick(state, 6, lengths);
    plan->batch.global_batch =
        plan->batch.micro_batch * plan->mesh.size[SC_DATA] * between(state, 1, 3);
}

static void draw_techniques(uint64_t *state, struct sc_plan *plan)
{
    plan->zero.stage = between(state, 0, 1);
    if (plan->zero.stage == 1) {
        plan->zero.gradient_reduction =
            one_in(state, 4) ? SC_REDUCE_ALL_REDUCE : SC_REDUCE_REDUCE_SCATTER;
        plan->zero.overlap_parameters = one_in(state, 2);
    }
    plan->zero.overlap_gradients = !one_in(state, 3);
    plan->zero.bucket_elements = between(state, 500, 40000);
    plan->recompute.granularity = one_in(state, 3) ? SC_RECOMPUTE_FULL : SC_RECOMPUTE_NONE;
    plan->attention.kernel = one_in(state, 2) ? SC_ATTENTION_UNFUSED : SC_ATTENTION_FUSED;
}

static void draw_dropout(uint64_t *state, struct sc_plan *plan)
{
    int64_t without = plan->model.family == SC_FAMILY_GPT2 ? 3 : 1; /* Llama trains without */
    if (one_in(state, without) && !one_in(state, 8)) {
        return;
    }
    plan->dropout.hidden = one_in(state, 4) ? 0 : (double)between(state, 1, 30) / 100;
    plan->dropout.attention = one_in(state, 4) ? 0 : (double)between(state, 1, 30) / 100;
    plan->dropout.mask = one_in(state, 2) ? SC_MASK_SAVED : SC_MASK_RECOMPUTED;
}

static void draw_optimizer(uint64_t *state, struct sc_plan *plan)
{
    static const int64_t multiples[] = {1, 2, 8, 128};
    plan->optimizer.learning_rate = 1e-3;
    plan->optimizer.schedule = (enum sc_learning_schedule)between(state, 0, 2);
    plan->optimizer.warmup_steps = between(state, 0, 3);
    plan->optimizer.decay_steps = plan->optimizer.warmup_steps + between(state, 1, 10);
    plan->optimizer.minimum_learning_rate = one_in(state, 2) ? 1e-4 : 0;
    plan->optimizer.weight_decay = one_in(state, 3) ? 0 : 0.01;
    plan->optimizer.clip_global_norm = one_in(state, 2) ? 1 : 0;
    plan->loss.vocab_parallel = true;
    plan->loss.pad_vocab_to_multiple_of = pick(state, 4, multiples);
}

void sc_random_plan(uint64_t seed, int max_ranks, struct sc_plan *out)
{
    uint64_t state = seed;
    sc_plan_neutral(out);
    snprintf(out->name, sizeof(out->name), "random_%" PRIu64, seed);
    snprintf(out->hardware.profile, sizeof(out->hardware.profile), "two-cores");
    draw_mesh(&state, max_ranks, out);
    draw_batch(&state, out);
    draw_model(&state, out);
    draw_techniques(&state, out);
    draw_dropout(&state, out);
    draw_optimizer(&state, out);
    out->seed = sc_random_next(&state) % 1000000;
}
