/* The table of a plan's keys, and access to a struct sc_plan through it. */
#include "plans/plan_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct sc_plan_section_row sc_plan_sections[SC_SECTION_COUNT] = {
    [SC_SECTION_ROOT] = {"", SC_SECTION_ROOT, true},
    [SC_SECTION_HARDWARE] = {"hardware", SC_SECTION_ROOT, true},
    [SC_SECTION_MESH] = {"mesh", SC_SECTION_ROOT, false},
    [SC_SECTION_BATCH] = {"batch", SC_SECTION_ROOT, true},
    [SC_SECTION_PRECISION] = {"precision", SC_SECTION_ROOT, false},
    [SC_SECTION_ZERO] = {"zero", SC_SECTION_ROOT, false},
    [SC_SECTION_OFFLOAD] = {"offload", SC_SECTION_ROOT, false},
    [SC_SECTION_OFFLOAD_OPTIMIZER] = {"optimizer", SC_SECTION_OFFLOAD, false},
    [SC_SECTION_OFFLOAD_PARAMETERS] = {"parameters", SC_SECTION_OFFLOAD, false},
    [SC_SECTION_OFFLOAD_ACTIVATIONS] = {"activations", SC_SECTION_OFFLOAD, false},
    [SC_SECTION_DOMINO] = {"domino", SC_SECTION_ROOT, false},
    [SC_SECTION_PIPELINE] = {"pipeline", SC_SECTION_ROOT, false},
    [SC_SECTION_CONTEXT] = {"context", SC_SECTION_ROOT, false},
    [SC_SECTION_RECOMPUTE] = {"recompute", SC_SECTION_ROOT, false},
    [SC_SECTION_ATTENTION] = {"attention", SC_SECTION_ROOT, false},
    [SC_SECTION_DROPOUT] = {"dropout", SC_SECTION_ROOT, false},
    [SC_SECTION_QUANTIZATION] = {"quantization", SC_SECTION_ROOT, false},
    [SC_SECTION_DISTILLATION] = {"distillation", SC_SECTION_ROOT, false},
    [SC_SECTION_OPTIMIZER] = {"optimizer", SC_SECTION_ROOT, false},
    [SC_SECTION_LOSS] = {"loss", SC_SECTION_ROOT, false},
};

/* The first two element types, in the order of enum sc_dtype; the others wait in sc_plan_later. */
static const char *const dtype_names[] = {"fp32", "bf16", NULL};
_Static_assert(SC_FP32 == 0 && SC_BF16 == 1, "dtype_names follows enum sc_dtype");
static const char *const all_reduce_names[] = {"overlapped", "synchronous", NULL};
static const char *const reduction_names[] = {"all_reduce", "reduce_scatter", NULL};
static const char *const domino_names[] = {"inter_layer", "intra_layer", NULL};
static const char *const recompute_names[] = {"none", "full", NULL};
static const char *const attention_names[] = {"fused", "unfused", NULL};
static const char *const mask_names[] = {"recomputed", "saved", NULL};
static const char *const schedule_names[] = {"constant", "linear", "cosine", NULL};

#define AT(member)                                                                                 \
    .offset = offsetof(struct sc_plan, member), .size = sizeof(((struct sc_plan *)0)->member)
#define INT(in, name, member, low, high)                                                           \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_INT, AT(member), .min = (low),   \
        .max = (high)                                                                              \
    }
#define NEEDED_INT(in, name, member, low, high)                                                    \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_INT, .required = true,           \
        AT(member), .min = (low), .max = (high)                                                    \
    }
#define NUMBER(in, name, member, low, high)                                                        \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_NUMBER, AT(member),              \
        .min = (low), .max = (high)                                                                \
    }
#define SHARE(in, name, member)                                                                    \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_NUMBER, .open = true,            \
        AT(member), .min = 0, .max = 1                                                             \
    }
#define BOOL(in, name, member)                                                                     \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_BOOL, AT(member), .max = 1       \
    }
#define ENUM(in, name, member, list)                                                               \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_ENUM, AT(member), .names = list  \
    }
#define NEUTRAL(in, name, value, why)                                                              \
    {                                                                                              \
        .section = SC_SECTION_##in, .key = name, .kind = SC_FIELD_NEUTRAL, .neutral = value,       \
        .note = why                                                                                \
    }

#define MAX_DEGREE 65536
#define MAX_SEQUENCES 16777216
#define MAX_SEQUENCE 16777216
#define MAX_STEPS 1e12

#define OFFLOADED "offload is not lowered yet"
#define ZEROPP "ZeRO++ is not lowered yet"

const struct sc_plan_field sc_plan_fields[] = {
    INT(HARDWARE, "nodes", hardware.nodes, 1, 1048576),
    INT(MESH, "tensor_parallel", mesh.size[SC_TENSOR], 1, MAX_DEGREE),
    NEUTRAL(MESH, "context_parallel", "1", "context parallelism is not lowered yet"),
    INT(MESH, "data_parallel", mesh.size[SC_DATA], 1, MAX_DEGREE),
    NEUTRAL(MESH, "pipeline_parallel", "1", "pipeline parallelism is not lowered yet"),
    NEUTRAL(MESH, "expert_parallel", "1", "expert parallelism is not lowered yet"),
    NEUTRAL(MESH, "sequence_parallel", "false", "sequence parallelism is not lowered yet"),
    ENUM(MESH, "backward_all_reduce", mesh.synchronous_backward, all_reduce_names),
    NEEDED_INT(BATCH, "global_batch", batch.global_batch, 1, MAX_SEQUENCES),
    NEEDED_INT(BATCH, "micro_batch", batch.micro_batch, 1, MAX_SEQUENCES),
    NEEDED_INT(BATCH, "sequence_length", batch.sequence_length, 1, MAX_SEQUENCE),
    ENUM(PRECISION, "parameters", precision.parameters, dtype_names),
    ENUM(PRECISION, "activations", precision.activations, dtype_names),
    ENUM(PRECISION, "gradients", precision.gradients, dtype_names),
    ENUM(PRECISION, "master_parameters", precision.master_parameters, dtype_names),
    ENUM(PRECISION, "optimizer_states", precision.optimizer_states, dtype_names),
    ENUM(PRECISION, "tensor_reduction", precision.tensor_reduction, dtype_names),
    ENUM(PRECISION, "data_reduction", precision.data_reduction, dtype_names),
    NEUTRAL(PRECISION, "loss_scale", "\"none\"", "loss scaling is not lowered yet"),
    INT(ZERO, "stage", zero.stage, 0, 1),
    ENUM(ZERO, "gradient_reduction", zero.gradient_reduction, reduction_names),
    INT(ZERO, "bucket_elements", zero.bucket_elements, 1, 1e15),
    BOOL(ZERO, "overlap_gradients", zero.overlap_gradients),
    BOOL(ZERO, "overlap_parameters", zero.overlap_parameters),
    NEUTRAL(ZERO, "quantized_weights", "false", ZEROPP),
    NEUTRAL(ZERO, "quantized_gradients", "false", ZEROPP),
    NEUTRAL(ZERO, "secondary_partition", "1", ZEROPP),
    NEUTRAL(OFFLOAD_OPTIMIZER, "place", "\"device\"", OFFLOADED),
    NEUTRAL(OFFLOAD_OPTIMIZER, "fraction", "0", OFFLOADED),
    NEUTRAL(OFFLOAD_OPTIMIZER, "delayed_update", "false", "delayed updates are not lowered yet"),
    NEUTRAL(OFFLOAD_PARAMETERS, "place", "\"device\"", OFFLOADED),
    NEUTRAL(OFFLOAD_ACTIVATIONS, "place", "\"device\"", OFFLOADED),
    INT(DOMINO, "pieces", domino.pieces, 1, 64),
    ENUM(DOMINO, "schedule", domino.schedule, domino_names),
    NEUTRAL(DOMINO, "weight_pieces", "1", "column splits of weights are not lowered yet"),
    NEUTRAL(PIPELINE, "schedule", "\"none\"", "pipeline schedules are not lowered yet"),
    NEUTRAL(PIPELINE, "virtual_stages", "1", "pipeline schedules are not lowered yet"),
    NEUTRAL(CONTEXT, "method", "\"none\"", "context parallelism is not lowered yet"),
    ENUM(RECOMPUTE, "granularity", recompute.granularity, recompute_names),
    ENUM(ATTENTION, "kernel", attention.kernel, attention_names),
    SHARE(DROPOUT, "hidden", dropout.hidden),
    SHARE(DROPOUT, "attention", dropout.attention),
    ENUM(DROPOUT, "mask", dropout.mask, mask_names),
    NEUTRAL(QUANTIZATION, "gemm", "\"none\"", "quantized products are not lowered yet"),
    NEUTRAL(QUANTIZATION, "tensor_reduction", "\"none\"",
            "quantized collectives are not lowered yet"),
    NEUTRAL(DISTILLATION, "teacher", "\"none\"", "distillation is not lowered yet"),
    NEUTRAL(OPTIMIZER, "kind", "\"adamw\"", "other optimizers are not lowered yet"),
    NUMBER(OPTIMIZER, "learning_rate", optimizer.learning_rate, 0, 1e6),
    NUMBER(OPTIMIZER, "minimum_learning_rate", optimizer.minimum_learning_rate, 0, 1e6),
    ENUM(OPTIMIZER, "schedule", optimizer.schedule, schedule_names),
    INT(OPTIMIZER, "warmup_steps", optimizer.warmup_steps, 0, MAX_STEPS),
    INT(OPTIMIZER, "decay_steps", optimizer.decay_steps, 0, MAX_STEPS),
    SHARE(OPTIMIZER, "beta1", optimizer.beta1),
    SHARE(OPTIMIZER, "beta2", optimizer.beta2),
    NUMBER(OPTIMIZER, "epsilon", optimizer.epsilon, 0, 1),
    NUMBER(OPTIMIZER, "weight_decay", optimizer.weight_decay, 0, 1e6),
    NUMBER(OPTIMIZER, "clip_global_norm", optimizer.clip_global_norm, 0, 1e30),
    NEUTRAL(LOSS, "kind", "\"cross_entropy\"", "other losses are not lowered yet"),
    BOOL(LOSS, "vocab_parallel", loss.vocab_parallel),
    INT(LOSS, "pad_vocab_to_multiple_of", loss.pad_vocab_to_multiple_of, 1, 1048576),
    INT(ROOT, "seed", seed, 0, SC_PLAN_MAX_SEED),
};
const int sc_plan_field_count = (int)(sizeof(sc_plan_fields) / sizeof(sc_plan_fields[0]));

const struct sc_plan_later sc_plan_later[] = {
    {SC_SECTION_ZERO, "stage", "2", "ZeRO-2 is not lowered yet"},
    {SC_SECTION_ZERO, "stage", "3", "ZeRO-3 is not lowered yet"},
    {SC_SECTION_RECOMPUTE, "granularity", "\"selective\"",
     "selective recomputation is not lowered yet"},
    {SC_SECTION_PRECISION, NULL, "\"fp16\"", "fp16 is not lowered yet"},
    {SC_SECTION_PRECISION, NULL, "\"fp8\"", "fp8 is not lowered yet"},
    {SC_SECTION_PRECISION, NULL, "\"int8\"", "int8 is not lowered yet"},
};
const int sc_plan_later_count = (int)(sizeof(sc_plan_later) / sizeof(sc_plan_later[0]));

/* An enum has the size of int with every compiler that builds this; a bool is one byte. */
_Static_assert(sizeof(enum sc_dtype) == sizeof(int), "enums are stored as int");

static bool field_is_bool(const struct sc_plan_field *field)
{
    return field->size == sizeof(bool);
}

double sc_plan_field_get(const struct sc_plan_field *field, const struct sc_plan *plan)
{
    const char *at = (const char *)plan + field->offset;
    if (field->kind == SC_FIELD_NUMBER) {
        double value;
        memcpy(&value, at, sizeof(value));
        return value;
    }
    if (field->kind == SC_FIELD_INT) {
        int64_t value;
        memcpy(&value, at, sizeof(value));
        return (double)value;
    }
    if (field_is_bool(field)) {
        return *at != 0;
    }
    int value;
    memcpy(&value, at, sizeof(value));
    return value;
}

void sc_plan_field_set(const struct sc_plan_field *field, struct sc_plan *plan, double value)
{
    char *at = (char *)plan + field->offset;
    if (field->kind == SC_FIELD_NUMBER) {
        memcpy(at, &value, sizeof(value));
    } else if (field->kind == SC_FIELD_INT) {
        int64_t whole = (int64_t)value;
        memcpy(at, &whole, sizeof(whole));
    } else if (field_is_bool(field)) {
        bool truth = value != 0;
        memcpy(at, &truth, sizeof(truth));
    } else {
        int index = (int)value;
        memcpy(at, &index, sizeof(index));
    }
}

void sc_plan_append(char *out, size_t size, const char *format, ...)
{
    size_t length = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + length, size - length, format, args);
    va_end(args);
}

const char *sc_plan_print_number(double value, char *out, size_t size)
{
    snprintf(out, size, "%.15g", value);
    return out;
}

static void append_section(enum sc_plan_section section, char *out, size_t size)
{
    if (section == SC_SECTION_ROOT) {
        return;
    }
    append_section(sc_plan_sections[section].parent, out, size);
    sc_plan_append(out, size, "%s.", sc_plan_sections[section].key);
}

void sc_plan_field_path(const struct sc_plan_field *field, char *out, size_t size)
{
    out[0] = '\0';
    append_section(field->section, out, size);
    sc_plan_append(out, size, "%s", field->key);
}

static void append_names(const char *const *names, char *out, size_t size)
{
    for (int i = 0; names[i] != NULL; i++) {
        const char *before = i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ";
        sc_plan_append(out, size, "%s\"%s\"", before, names[i]);
    }
}

static void append_range(const struct sc_plan_field *field, char *out, size_t size)
{
    char low[32], high[32];
    sc_plan_print_number(field->min, low, sizeof(low));
    sc_plan_print_number(field->max, high, sizeof(high));
    if (field->kind == SC_FIELD_INT && field->max - field->min == 1) {
        sc_plan_append(out, size, "%s or %s", low, high);
    } else {
        sc_plan_append(out, size, "%s in [%s, %s%c",
                       field->kind == SC_FIELD_INT ? "a whole number" : "a number", low, high,
                       field->open ? ')' : ']');
    }
}

void sc_plan_field_expected(const struct sc_plan_field *field, char *out, size_t size)
{
    out[0] = '\0';
    switch (field->kind) {
    case SC_FIELD_INT:
    case SC_FIELD_NUMBER:
        append_range(field, out, size);
        break;
    case SC_FIELD_BOOL:
        sc_plan_append(out, size, "true or false");
        break;
    case SC_FIELD_ENUM:
        append_names(field->names, out, size);
        break;
    case SC_FIELD_NEUTRAL:
        sc_plan_append(out, size, "%s (%s)", field->neutral, field->note);
        break;
    }
}
