/* Whether the numbers of a plan go together; a refusal names valid values nearby. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plans/plan.h"
#include "plans/plan_fields.h"

#define TEXT_BYTES 512
#define NUMBER_BYTES 32
#define LISTED 16
/* Row counts are handed to BLAS as 32-bit integers. */
#define MAX_ROWS INT32_MAX
#define MAX_RANKS 1048576
/* A step is written out operation by operation: this many layers, counted once for each micro-batch
 * and piece, are some three million, take minutes and more than a gigabyte. */
#define MAX_LAYER_PIECES 131072
/* Labels count micro-batches in 16 bits. */
#define MAX_MICRO_BATCHES INT16_MAX

struct check {
    const struct sc_plan *plan;
    const char *name;
    struct sc_error *err;
};

static enum sc_status refuse(const struct check *c, const char *path, const char *found,
                             const char *expected)
{
    return sc_fail_input(c->err, c->name, path, found, expected);
}

static enum sc_status refuse_number(const struct check *c, const char *path, int64_t found,
                                    const char *format, ...) __attribute__((format(printf, 4, 5)));
static enum sc_status refuse_number(const struct check *c, const char *path, int64_t found,
                                    const char *format, ...)
{
    char number[NUMBER_BYTES], expected[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof(expected), format, args);
    va_end(args);
    snprintf(number, sizeof(number), "%" PRId64, found);
    return refuse(c, path, number, expected);
}

/* ---- single values ---- */

static bool in_range(const struct sc_plan_field *field, double value)
{
    if (field->kind == SC_FIELD_ENUM) {
        int count = 0;
        while (field->names[count] != NULL) {
            count++;
        }
        return value >= 0 && value < count;
    }
    if (field->kind == SC_FIELD_BOOL) {
        return true;
    }
    return isfinite(value) && value >= field->min &&
           (field->open ? value < field->max : value <= field->max);
}

/* Plans made in memory (search, tests) come by here too, so the table's ranges are looked at. */
static enum sc_status check_fields(const struct check *c)
{
    for (int i = 0; i < sc_plan_field_count; i++) {
        const struct sc_plan_field *field = &sc_plan_fields[i];
        char path[TEXT_BYTES], found[NUMBER_BYTES], expected[TEXT_BYTES];
        if (field->kind == SC_FIELD_NEUTRAL || in_range(field, sc_plan_field_get(field, c->plan))) {
            continue;
        }
        sc_plan_field_path(field, path, sizeof(path));
        sc_plan_field_expected(field, expected, sizeof(expected));
        sc_plan_print_number(sc_plan_field_get(field, c->plan), found, sizeof(found));
        return refuse(c, path, found, expected);
    }
    return SC_OK;
}

static enum sc_status check_name(const struct check *c)
{
    for (const char *p = c->plan->name; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F || *p == '/') {
            return refuse(c, "name", "a control character or a slash",
                          "a name that can be part of a file's name");
        }
    }
    return c->plan->name[0] != '\0' ? SC_OK : refuse(c, "name", "\"\"", "a name");
}

/* ---- mesh ---- */

static enum sc_status check_mesh(const struct check *c)
{
    const struct sc_plan *plan = c->plan;
    static const struct {
        enum sc_axis axis;
        const char *path, *note;
    } waiting[] = {
        {SC_CONTEXT, "mesh.context_parallel", "context parallelism is not lowered yet"},
        {SC_PIPELINE, "mesh.pipeline_parallel", "pipeline parallelism is not lowered yet"},
    };
    unsigned seen = 0;
    for (int i = 0; i < SC_AXIS_COUNT; i++) {
        seen |= (unsigned)plan->mesh.order[i] < SC_AXIS_COUNT ? 1u << plan->mesh.order[i] : 0;
    }
    if (seen != (1u << SC_AXIS_COUNT) - 1) {
        return refuse(c, "mesh.order", "an axis twice", "each axis once");
    }
    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        int64_t size = plan->mesh.size[waiting[i].axis];
        if (size != 1) {
            return refuse_number(c, waiting[i].path, size, "1 (%s)", waiting[i].note);
        }
    }
    if (plan->mesh.expert_parallel != 1) {
        return refuse_number(c, "mesh.expert_parallel", plan->mesh.expert_parallel,
                             "1 (expert parallelism is not lowered yet)");
    }
    if (plan->mesh.sequence_parallel) {
        return refuse(c, "mesh.sequence_parallel", "true",
                      "false (sequence parallelism is not lowered yet)");
    }
    if (sc_plan_ranks(plan) > MAX_RANKS) {
        return refuse_number(c, "mesh", sc_plan_ranks(plan), "at most %d ranks", MAX_RANKS);
    }
    return SC_OK;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* "1, 2, 4, 8" */
static void list_divisors(int64_t number, int64_t limit, char *out, size_t size)
{
    int listed = 0;
    out[0] = '\0';
    for (int64_t d = 1; d <= number && d <= limit; d++) {
        if (number % d != 0) {
            continue;
        }
        if (listed++ == LISTED) {
            sc_plan_append(out, size, ", ...");
            return;
        }
        sc_plan_append(out, size, "%s%" PRId64, listed > 1 ? ", " : "", d);
    }
}

/* What does not divide would be replicated or padded; neither is lowered, so it is refused. */
static enum sc_status check_tensor_parallel(const struct check *c)
{
    const struct sc_model *model = &c->plan->model;
    const struct {
        const char *name;
        int64_t count;
    } split[] = {
        {"attention_heads", model->attention_heads},
        {"key_value_heads", model->key_value_heads},
        {"ffn_hidden_size", model->ffn_hidden_size},
    };
    int64_t tensor = c->plan->mesh.size[SC_TENSOR], common = 0;
    for (size_t i = 0; i < sizeof(split) / sizeof(split[0]); i++) {
        common = greatest_common_divisor(split[i].count, common);
    }
    for (size_t i = 0; i < sizeof(split) / sizeof(split[0]); i++) {
        if (split[i].count % tensor != 0) {
            char valid[TEXT_BYTES];
            list_divisors(common, MAX_RANKS, valid, sizeof(valid));
            return refuse_number(c, "mesh.tensor_parallel", tensor,
                                 "a divisor of model.%s = %" PRId64 " (valid for this model: %s)",
                                 split[i].name, split[i].count, valid);
        }
    }
    return SC_OK;
}

/* ---- batch ---- */

static enum sc_status check_batch(const struct check *c)
{
    int64_t global = c->plan->batch.global_batch, micro = c->plan->batch.micro_batch;
    int64_t data = c->plan->mesh.size[SC_DATA], unit = micro * data;
    int64_t below = global / unit * unit;
    if (global % unit != 0) {
        char nearest[2 * NUMBER_BYTES] = "";
        if (below > 0) {
            snprintf(nearest, sizeof(nearest), "%" PRId64 ", ", below);
        }
        return refuse_number(c, "batch.global_batch", global,
                             "a multiple of micro_batch x data_parallel = %" PRId64 " x %" PRId64
                             " = %" PRId64 " (nearest: %s%" PRId64 ")",
                             micro, data, unit, nearest, below + unit);
    }
    int64_t length = c->plan->batch.sequence_length;
    if (micro > MAX_ROWS / length) {
        return refuse_number(c, "batch.micro_batch", micro,
                             "at most %" PRId64 " sequences of %" PRId64
                             " tokens (rows are counted in 32 bits)",
                             MAX_ROWS / length, length);
    }
    return SC_OK;
}

static enum sc_status check_sequence(const struct check *c)
{
    const struct sc_model *model = &c->plan->model;
    int64_t length = c->plan->batch.sequence_length;
    if (model->position == SC_POSITION_LEARNED && length > model->max_positions) {
        return refuse_number(c, "batch.sequence_length", length,
                             "at most model.max_positions = %" PRId64
                             " (its positions are learned)",
                             model->max_positions);
    }
    return SC_OK;
}

static enum sc_status check_domino(const struct check *c)
{
    int64_t micro = c->plan->batch.micro_batch, pieces = c->plan->domino.pieces;
    if (micro % pieces != 0) {
        char valid[TEXT_BYTES];
        list_divisors(micro, 64, valid, sizeof(valid));
        return refuse_number(c, "domino.pieces", pieces,
                             "a divisor of batch.micro_batch = %" PRId64 " (%s)", micro, valid);
    }
    if (c->plan->domino.weight_pieces != 1) {
        return refuse_number(c, "domino.weight_pieces", c->plan->domino.weight_pieces,
                             "1 (column splits of weights are not lowered yet)");
    }
    return SC_OK;
}

static enum sc_status check_length(const struct check *c)
{
    int64_t layers = c->plan->model.layers, pieces = c->plan->domino.pieces;
    int64_t micro_batches = sc_plan_micro_batches(c->plan), most = MAX_LAYER_PIECES / layers;
    if (pieces > most) {
        return refuse_number(c, "domino.pieces", pieces,
                             "at most %" PRId64 " with %" PRId64 " layers", most, layers);
    }
    most = most / pieces < MAX_MICRO_BATCHES ? most / pieces : MAX_MICRO_BATCHES;
    if (micro_batches > most) {
        return refuse_number(c, "batch.global_batch", c->plan->batch.global_batch,
                             "at most %" PRId64 " micro-batches a step (here %" PRId64
                             ") with %" PRId64 " layers and %" PRId64 " pieces",
                             most, micro_batches, layers, pieces);
    }
    return SC_OK;
}

/* ---- precision ---- */

struct precision_rule {
    const char *path;
    enum sc_dtype found, expected;
    const char *reason;
};

static enum sc_status check_rule(const struct check *c, const struct precision_rule *rule)
{
    char found[NUMBER_BYTES], expected[TEXT_BYTES];
    if (rule->found == rule->expected) {
        return SC_OK;
    }
    snprintf(found, sizeof(found), "\"%s\"", sc_dtype_name(rule->found));
    snprintf(expected, sizeof(expected), "\"%s\" (%s)", sc_dtype_name(rule->expected),
             rule->reason);
    return refuse(c, rule->path, found, expected);
}

/* Lowered now: everything in fp32; or bf16 parameters and activations with fp32 master parameters
 * and states and gradients of either type. */
static enum sc_status check_precision(const struct check *c)
{
    enum sc_dtype parameters = c->plan->precision.parameters;
    enum sc_dtype gradients = c->plan->precision.gradients;
    bool mixed = parameters == SC_BF16;
    const struct precision_rule rules[] = {
        {"precision.activations", c->plan->precision.activations, parameters,
         "as precision.parameters"},
        {"precision.gradients", gradients, mixed ? gradients : SC_FP32,
         "bf16 gradients go with bf16 parameters"},
        {"precision.master_parameters", c->plan->precision.master_parameters, SC_FP32,
         "bf16 master parameters are not lowered yet"},
        {"precision.optimizer_states", c->plan->precision.optimizer_states, SC_FP32,
         "bf16 optimizer states are not lowered yet"},
        {"precision.tensor_reduction", c->plan->precision.tensor_reduction, parameters,
         "as precision.activations"},
        {"precision.data_reduction", c->plan->precision.data_reduction, gradients,
         "as precision.gradients"},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        SC_TRY(check_rule(c, &rules[i]));
    }
    return SC_OK;
}

/* ---- optimizer ---- */

static enum sc_status check_zero(const struct check *c)
{
    if (c->plan->zero.stage > 0) {
        return SC_OK;
    }
    if (c->plan->zero.gradient_reduction != SC_REDUCE_ALL_REDUCE) {
        return refuse(c, "zero.gradient_reduction", "\"reduce_scatter\"",
                      "\"all_reduce\" (zero.stage 0 keeps whole gradients; or zero.stage 1)");
    }
    if (c->plan->zero.overlap_parameters) {
        return refuse(c, "zero.overlap_parameters", "true",
                      "false (zero.stage 0 gathers no parameters; or zero.stage 1)");
    }
    return SC_OK;
}

static enum sc_status check_schedule(const struct check *c)
{
    const struct sc_plan *plan = c->plan;
    char found[NUMBER_BYTES], expected[TEXT_BYTES];
    if (plan->optimizer.schedule == SC_SCHEDULE_CONSTANT) {
        return SC_OK;
    }
    if (plan->optimizer.decay_steps <= plan->optimizer.warmup_steps) {
        return refuse_number(c, "optimizer.decay_steps", plan->optimizer.decay_steps,
                             "more than optimizer.warmup_steps = %" PRId64,
                             plan->optimizer.warmup_steps);
    }
    if (plan->optimizer.minimum_learning_rate > plan->optimizer.learning_rate) {
        sc_plan_print_number(plan->optimizer.minimum_learning_rate, found, sizeof(found));
        snprintf(expected, sizeof(expected), "at most optimizer.learning_rate = %g",
                 plan->optimizer.learning_rate);
        return refuse(c, "optimizer.minimum_learning_rate", found, expected);
    }
    return SC_OK;
}

static enum sc_status check_model(const struct check *c)
{
    enum sc_status status = sc_model_check(&c->plan->model, c->err);
    if (status != SC_OK && c->name != NULL && c->name[0] != '\0') {
        return sc_fail(c->err, status, "%s: %s", c->name, c->err->text);
    }
    return status;
}

enum sc_status sc_plan_check(const struct sc_plan *plan, const char *name, struct sc_error *err)
{
    static enum sc_status (*const checks[])(const struct check *) = {
        check_name,  check_fields,   check_model,  check_mesh,     check_tensor_parallel,
        check_batch, check_domino,   check_length, check_sequence, check_precision,
        check_zero,  check_schedule,
    };
    struct check c = {plan, name, err};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        SC_TRY(checks[i](&c));
    }
    return SC_OK;
}

enum sc_status sc_plan_check_devices(const struct sc_plan *plan, int64_t devices_per_node,
                                     const char *name, struct sc_error *err)
{
    struct check c = {plan, name, err};
    int64_t ranks = sc_plan_ranks(plan), nodes = plan->hardware.nodes;
    if (nodes >= (ranks + devices_per_node - 1) / devices_per_node) {
        return SC_OK;
    }
    return refuse_number(&c, "hardware.nodes", nodes,
                         "at least %" PRId64 " (%" PRId64 " ranks, %" PRId64
                         " devices a node of %s)",
                         (ranks + devices_per_node - 1) / devices_per_node, ranks, devices_per_node,
                         plan->hardware.profile);
}
