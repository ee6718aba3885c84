/* ctest: labels=threads timeout=600 */
/*
 * Random plans, run for real on 1 to 8 ranks as threads, are equal to the same training on one
 * rank: losses of five steps, gradients tensor by tensor, the optimizer. The same seed gives the
 * same bits, in whatever order the waits leave open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/check.h"
#include "exec/launch.h"
#include "plans/lower.h"
#include "tests/support/random_plan.h"

/* Under a sanitizer, which is some twenty times slower, fewer. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { PLANS = 12, OPTIMIZER_PLANS = 4, CHAOS_SEEDS = 8 };
#else
enum { PLANS = 64, OPTIMIZER_PLANS = 16, CHAOS_SEEDS = 100 };
#endif

static void run(const struct sc_plan *plan, const struct sc_run_options *options,
                struct sc_run_result *result)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_run_plan(plan, options, result, &err) != SC_OK)
        fail_msg("%s", err.text);
}

static void few_steps(struct sc_run_options *options, int64_t steps, int64_t snapshot)
{
    sc_run_options_neutral(options);
    options->warmup = 0;
    options->steps = steps;
    options->snapshot_step = snapshot;
}

static double norm(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * x[i];
    return sqrt(sum);
}

static double distance(const float *x, const float *y, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sqrt(sum);
}

static struct sc_program *lowered(const struct sc_plan *plan)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = NULL;
    if (sc_lower(plan, &program, &err) != SC_OK)
        fail_msg("%s", err.text);
    return program;
}

static int64_t elements(const struct sc_program *program, size_t tensor)
{
    return program->tensors.items[tensor].rows * program->tensors.items[tensor].cols;
}

/* ---- what the plans below have -------------------------------------------------------------- */

#define FEATURES(X)                                                                                \
    X("GPT", plan->model.family == SC_FAMILY_GPT2)                                                 \
    X("Llama", plan->model.family == SC_FAMILY_LLAMA)                                              \
    X("tied head", plan->model.tied_head)                                                          \
    X("untied head", !plan->model.tied_head)                                                       \
    X("grouped queries", plan->model.key_value_heads < plan->model.attention_heads)                \
    X("eight ranks", sc_plan_ranks(plan) == 8)                                                     \
    X("tensor parallel", plan->mesh.size[SC_TENSOR] > 1)                                           \
    X("data parallel", plan->mesh.size[SC_DATA] > 1)                                               \
    X("both", plan->mesh.size[SC_TENSOR] > 1 && plan->mesh.size[SC_DATA] > 1)                      \
    X("synchronous backward", plan->mesh.size[SC_TENSOR] > 1 && plan->mesh.synchronous_backward)   \
    X("ZeRO-1 on several ranks", plan->mesh.size[SC_DATA] > 1 && plan->zero.stage == 1)            \
    X("ZeRO-1, parameters overlapped",                                                             \
      plan->mesh.size[SC_DATA] > 1 && plan->zero.stage == 1 && plan->zero.overlap_parameters)      \
    X("accumulation", sc_plan_micro_batches(plan) > 1)                                             \
    X("recomputation", plan->recompute.granularity == SC_RECOMPUTE_FULL)                           \
    X("unfused attention", plan->attention.kernel == SC_ATTENTION_UNFUSED)                         \
    X("dropout, saved masks", dropout && plan->dropout.mask == SC_MASK_SAVED)                      \
    X("dropout, masks drawn again", dropout && plan->dropout.mask == SC_MASK_RECOMPUTED)           \
    X("dropout, tensor parallel", dropout && plan->mesh.size[SC_TENSOR] > 1)                       \
    X("Domino, inter-layer", pieces > 1 && plan->domino.schedule == SC_DOMINO_INTER_LAYER)         \
    X("Domino, intra-layer", pieces > 1 && plan->domino.schedule == SC_DOMINO_INTRA_LAYER)         \
    X("Domino, tensor parallel", pieces > 1 && plan->mesh.size[SC_TENSOR] > 1)                     \
    X("Domino, three pieces or more", pieces > 2)                                                  \
    X("clipping", plan->optimizer.clip_global_norm > 0)

#define NAME_OF(name, condition) name,
static const char *const features[] = {FEATURES(NAME_OF)};
enum { FEATURE_COUNT = sizeof features / sizeof *features, LEAST = 5 };

static void count_features(const struct sc_plan *plan, int counts[FEATURE_COUNT])
{
    bool dropout = plan->dropout.hidden > 0 || plan->dropout.attention > 0;
    int64_t pieces = plan->domino.pieces;
#define HAS(name, condition) (condition),
    const bool has[] = {FEATURES(HAS)};
    for (int i = 0; i < FEATURE_COUNT; i++)
        counts[i] += has[i];
}

/* Of the 64 plans that the next test runs (without a sanitizer), at least five have each feature.
 */
static void test_plans_have_everything(void **state)
{
    (void)state;
    int counts[FEATURE_COUNT] = {0};
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct sc_plan plan;
        sc_random_plan(seed, 8, &plan);
        count_features(&plan, counts);
    }
    for (int i = 0; i < FEATURE_COUNT; i++) {
        print_message("%3d %s\n", counts[i], features[i]);
        assert_true(counts[i] >= LEAST);
    }
}

/* ---- equality -------------------------------------------------------------------------------- */

/* Losses within 1e-5 over 5 steps; |dg| / |g| <= 1e-5 a tensor (floor 1e-7 of the global norm). */
static void test_losses_and_gradients(void **state)
{
    (void)state;
    double gradient = 0, loss = 0;
    for (uint64_t seed = 0; seed < PLANS; seed++) {
        struct sc_plan plan;
        struct sc_error err = SC_ERROR_INIT;
        struct sc_run_options options;
        struct sc_check_result result;
        sc_random_plan(seed, 8, &plan);
        few_steps(&options, 5, -1);
        if (sc_check(&plan, &options, &result, &err) != SC_OK)
            fail_msg("plan %llu: %s", (unsigned long long)seed, err.text);
        if (!result.equal)
            fail_msg("plan %llu (%lld ranks): loss differs by %g, gradient of %s by %g",
                     (unsigned long long)seed, (long long)sc_plan_ranks(&plan), result.loss,
                     result.gradient_tensor, result.gradient);
        gradient = fmax(gradient, result.gradient);
        loss = fmax(loss, result.loss);
    }
    print_message("largest difference: loss %.2g, gradient %.2g\n", loss, gradient);
}

/* Parameters before the first step: those after it with a learning rate of zero. */
static void initial_parameters(const struct sc_plan *plan, struct sc_run_result *result)
{
    struct sc_plan still = *plan;
    struct sc_run_options options;
    still.optimizer.learning_rate = still.optimizer.minimum_learning_rate = 0;
    few_steps(&options, 1, 0);
    run(&still, &options, result);
}

/* AdamW in double, fed with the plan's own gradients of steps 0 and 1:
 *   g' = g min(1, clip / |g|)   m = b1 m + (1 - b1) g'   v = b2 v + (1 - b2) g'^2
 *   p = p (1 - lr decay) - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 * with decay on matrices only. |dp| <= 1e-6 |p - p0| a tensor; the learning rate is large so that
 * the rounding of p itself (6e-8 of it) stays below that. */
static void check_optimizer(struct sc_plan *plan)
{
    plan->optimizer.learning_rate = plan->optimizer.minimum_learning_rate = 0.25;
    plan->optimizer.schedule = SC_SCHEDULE_CONSTANT;
    plan->optimizer.warmup_steps = 0;
    struct sc_program *program = lowered(plan);
    struct sc_run_result start = {0}, step[2] = {{0}, {0}};
    struct sc_run_options options;
    initial_parameters(plan, &start);
    for (int i = 0; i < 2; i++) {
        few_steps(&options, i + 1, i);
        run(plan, &options, &step[i]);
    }
    double factor[2] = {1, 1};
    for (int i = 0; i < 2; i++) {
        double squares = 0;
        for (size_t t = 0; t < program->tensors.count; t++)
            squares += pow(norm(step[i].gradients.data[t], elements(program, t)), 2);
        if (plan->optimizer.clip_global_norm > 0)
            factor[i] = fmin(1, plan->optimizer.clip_global_norm / sqrt(squares));
    }
    double b1 = plan->optimizer.beta1, b2 = plan->optimizer.beta2;
    double rate = plan->optimizer.learning_rate;
    for (size_t t = 0; t < program->tensors.count; t++) {
        int64_t count = elements(program, t);
        double decay = program->tensors.items[t].vector ? 0 : plan->optimizer.weight_decay;
        double apart = 0, moved = 0;
        for (int64_t j = 0; j < count; j++) {
            double p = start.parameters.data[t][j], m = 0, v = 0;
            for (int i = 0; i < 2; i++) {
                double g = step[i].gradients.data[t][j] * factor[i];
                m = b1 * m + (1 - b1) * g;
                v = b2 * v + (1 - b2) * g * g;
                p = p * (1 - rate * decay) -
                    rate * (m / (1 - pow(b1, i + 1))) /
                        (sqrt(v / (1 - pow(b2, i + 1))) + plan->optimizer.epsilon);
            }
            apart += pow(p - step[1].parameters.data[t][j], 2);
            moved += pow(p - start.parameters.data[t][j], 2);
        }
        if (sqrt(apart) > 1e-6 * sqrt(moved))
            fail_msg("%s, %s: parameters differ by %g of what they moved", plan->name,
                     program->tensors.items[t].name, sqrt(apart / moved));
    }
    sc_run_result_free(&start);
    sc_run_result_free(&step[0]);
    sc_run_result_free(&step[1]);
    sc_program_destroy(&program);
}

static void test_optimizer(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 100 + OPTIMIZER_PLANS; seed++) {
        struct sc_plan plan;
        sc_random_plan(seed, 4, &plan);
        check_optimizer(&plan);
    }
}

/* Five steps end to end with eps = 1e-5 (Adam normalises rounding noise where a true gradient is
 * zero, as in GPT's key bias): |dp| <= 1e-3 |p - p0|. */
static void test_end_to_end(void **state)
{
    (void)state;
    double worst = 0;
    for (uint64_t seed = 200; seed < 200 + OPTIMIZER_PLANS; seed++) {
        struct sc_plan plan, reference;
        struct sc_run_options options;
        struct sc_run_result start = {0}, mine = {0}, theirs = {0};
        sc_random_plan(seed, 8, &plan);
        plan.optimizer.epsilon = 1e-5;
        sc_plan_reference(&plan, &reference);
        initial_parameters(&reference, &start);
        few_steps(&options, 5, 4);
        run(&plan, &options, &mine);
        run(&reference, &options, &theirs);
        struct sc_program *program = lowered(&plan);
        for (size_t t = 0; t < program->tensors.count; t++) {
            int64_t count = elements(program, t);
            double apart = distance(mine.parameters.data[t], theirs.parameters.data[t], count);
            double moved = distance(theirs.parameters.data[t], start.parameters.data[t], count);
            worst = fmax(worst, apart / moved);
            if (apart > 1e-3 * moved)
                fail_msg("plan %llu, %s: differs by %g of what it moved", (unsigned long long)seed,
                         program->tensors.items[t].name, apart / moved);
        }
        sc_program_destroy(&program);
        sc_run_result_free(&start);
        sc_run_result_free(&mine);
        sc_run_result_free(&theirs);
    }
    print_message("largest difference of parameters: %.2g of what they moved\n", worst);
}

static void assert_same_bits(const struct sc_plan *plan, const struct sc_run_result *a,
                             const struct sc_run_result *b)
{
    struct sc_program *program = lowered(plan);
    assert_memory_equal(a->losses, b->losses, (size_t)(a->warmup + a->steps) * sizeof(*a->losses));
    for (size_t t = 0; t < program->tensors.count; t++)
        assert_memory_equal(a->parameters.data[t], b->parameters.data[t],
                            (size_t)elements(program, t) * sizeof(float));
    sc_program_destroy(&program);
}

static void test_same_seed_same_bits(void **state)
{
    (void)state;
    for (uint64_t seed = 300; seed < 300 + OPTIMIZER_PLANS; seed++) {
        struct sc_plan plan;
        struct sc_run_options options;
        struct sc_run_result first = {0}, second = {0};
        sc_random_plan(seed, 8, &plan);
        few_steps(&options, 3, 2);
        run(&plan, &options, &first);
        run(&plan, &options, &second);
        assert_same_bits(&plan, &first, &second);
        sc_run_result_free(&first);
        sc_run_result_free(&second);
    }
}

/* A plan with everything in it: TP 2 x DP 2, Domino, ZeRO-1 in several buckets, accumulation. */
static void rich_plan(struct sc_plan *plan)
{
    sc_random_plan(7, 1, plan);
    plan->mesh.size[SC_TENSOR] = plan->mesh.size[SC_DATA] = 2;
    plan->model.attention_heads = plan->model.key_value_heads = 4;
    plan->model.head_size = 8;
    plan->model.hidden_size = 32;
    plan->model.ffn_hidden_size = 64;
    plan->model.layers = 2;
    plan->batch.global_batch = 8;
    plan->batch.micro_batch = 2;
    plan->domino.pieces = 2;
    plan->zero.stage = 1;
    plan->zero.gradient_reduction = SC_REDUCE_REDUCE_SCATTER;
    plan->zero.bucket_elements = 4000;
    plan->zero.overlap_gradients = plan->zero.overlap_parameters = true;
}

static void test_any_order_same_bits(void **state)
{
    (void)state;
    struct sc_plan plan;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_run_options options;
    struct sc_run_result plain = {0};
    rich_plan(&plan);
    if (sc_plan_check(&plan, NULL, &err) != SC_OK)
        fail_msg("%s", err.text);
    few_steps(&options, 3, 2);
    run(&plan, &options, &plain);
    for (uint64_t seed = 0; seed < CHAOS_SEEDS; seed++) {
        struct sc_run_result other = {0};
        options.chaos = true;
        options.chaos_seed = seed;
        run(&plan, &options, &other);
        assert_same_bits(&plan, &plain, &other);
        sc_run_result_free(&other);
    }
    sc_run_result_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_have_everything),
        cmocka_unit_test(test_losses_and_gradients),
        cmocka_unit_test(test_optimizer),
        cmocka_unit_test(test_end_to_end),
        cmocka_unit_test(test_same_seed_same_bits),
        cmocka_unit_test(test_any_order_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
