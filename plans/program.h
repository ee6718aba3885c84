/*
 * The step program: everything that stepcast knows about one training step.
 *
 * A program is a list of operations in issue order, one list for each class of ranks that does
 * different work. A lowering (lower.h) builds it; passes derive waits (program_deps.c), pack memory
 * (memory.h) and verify (program_verify.c); the simulator prices and plays it, an executor runs it.
 *
 *   buffer   what the planner packs: a place, a size, a lifetime
 *   value    a view of one buffer: offset, [rows, cols], row stride, dtype; of a shard also the
 * mesh axis along which the offset grows with the rank's coordinate token    a value without bytes:
 * an order that carries no data op       a kind, operands (value, role, access), a stream, a group
 * (collectives), a label wait     "this op starts after op X of this step, or of the step before,
 * has ended", derived stream   first in, first out; concurrent with the others
 *
 * The program is a cycle: step k+1 follows step k without a barrier, waits reach back one step (two
 * where a buffer has two versions).
 *
 * A worked example, by hand, is tests/support/worked_example.c: one MLP sub-layer.
 *
 * Building: the sc_add_* functions never fail one by one; when memory runs out or a limit is
 * crossed they remember it, return 0, and sc_program_finish reports it.
 */
#ifndef STEPCAST_PLANS_PROGRAM_H
#define STEPCAST_PLANS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/status.h"
#include "model/dtype.h"
#include "plans/mesh.h"
#include "plans/op.h"

enum { SC_ALIGN = 256 }; /* every buffer and every shard starts at a multiple of this */

enum sc_place { SC_DEVICE, SC_PINNED, SC_HOST, SC_DISK, SC_PLACE_COUNT };
extern const char *const sc_place_names[SC_PLACE_COUNT + 1]; /* "device", "pinned", ... */

enum sc_lifetime { SC_STEP, SC_PERSISTENT };

enum sc_access { SC_IN = 1, SC_OUT = 2, SC_INOUT = 3 };

/* Which of a buffer's two versions an operand means (without versions: SC_NOW). */
enum sc_version { SC_NOW, SC_OTHER };

enum sc_pass {
    SC_PASS_NONE,
    SC_PASS_FORWARD,
    SC_PASS_RECOMPUTE, /* forward again, inside backward */
    SC_PASS_BACKWARD,
    SC_PASS_BACKWARD_DATA,
    SC_PASS_BACKWARD_WEIGHT
};

/* Names an op, a value or a buffer without a string each: "layer 3 / mlp.up / backward-weight /
 * micro-batch 0 / piece 1". -1: does not apply. */
struct sc_label {
    uint32_t name; /* sc_intern */
    int16_t layer;
    int16_t micro_batch;
    int16_t piece;
    uint16_t pass; /* enum sc_pass */
};

/* base + stride * (coordinate of this rank on the axis). axis -1: base alone. */
struct sc_index {
    int64_t base, stride;
    int axis;
};

struct sc_buffer {
    struct sc_label label;
    enum sc_place place;
    enum sc_lifetime lifetime;
    uint8_t versions; /* 1 or 2 */
    bool token;       /* no bytes: never packed */
    uint64_t bytes;   /* of one version */
    uint64_t offset;  /* in the place's arena; version v at offset + v * sc_round_up(bytes, 256) */
};

struct sc_value {
    struct sc_label label;
    uint32_t buffer;
    enum sc_dtype dtype;
    uint64_t offset;                /* bytes in the buffer, at coordinate 0 of the shard axis */
    int64_t rows, cols, row_stride; /* elements; a vector is [rows, 1] or [1, cols] */
    int8_t shard_axis;              /* enum sc_axis, or -1 */
    uint64_t shard_stride;          /* bytes a coordinate */
};

struct sc_operand {
    uint32_t value;
    uint8_t role;    /* enum sc_role */
    uint8_t access;  /* enum sc_access */
    uint8_t version; /* enum sc_version */
};

struct sc_wait {
    uint32_t op;       /* in the same list */
    uint32_t distance; /* 0: this step; 1, 2: so many steps before */
};

/* Ranges of a flat buffer that Adam and norm_squares treat alike, in elements from the start of the
 * bucket (not of the shard): [first, first + count). */
struct sc_flat_range {
    int64_t first, count;
    float weight;  /* norm_squares: 1, or 1/n where n ranks of the norm's group hold the same */
    uint8_t decay; /* adam: weight decay applies */
};

enum sc_reduction { SC_SUM, SC_MAX };
enum sc_scalar_work {
    SC_SCALAR_ADVANCE, /* step number, learning rate, bias corrections */
    SC_SCALAR_CLIP     /* NORM (sum of squares) -> the clip factor in the state */
};

/* Parameters of a kind; they never change from step to step. */
union sc_parameters {
    struct {
        bool transpose_a, transpose_b;
        float alpha;
    } gemm;
    struct { /* attention*, batched_gemm, softmax* */
        int64_t batch, sequence;
        int32_t heads, kv_heads, head_size;
        bool transpose_a, transpose_b; /* batched_gemm */
        float scale;                   /* batched_gemm: alpha */
        float probability;             /* attention: dropout inside the kernel */
        uint32_t site;
        struct sc_index batch_index, head_index; /* global number of the first sequence, head */
        int32_t total_heads;
    } attention;
    struct {
        uint8_t kind; /* enum sc_norm */
        float epsilon;
    } norm;
    struct {
        uint8_t kind; /* enum sc_activation */
    } activation;
    struct {
        float probability;
        uint32_t site;       /* differs for every place in the model that drops */
        struct sc_index row; /* global number of the first row */
        int32_t heads;       /* > 0: rows are [batch, heads, sequence] score rows ... */
        int64_t sequence;    /* ... and `row` counts sequences of the batch, not rows */
        struct sc_index head_index;
        int32_t total_heads;
    } dropout;
    struct {
        int64_t vocab_size;     /* unpadded: columns beyond it do not exist */
        struct sc_index column; /* global number of the first column */
        float scale;            /* of the loss and its gradient: 1 / tokens of the global batch */
    } cross_entropy;
    struct {
        struct sc_index row; /* global number of the first row of WEIGHT */
    } embedding;
    struct {
        float factor; /* scale, reduce_rows */
    } scale;
    struct {
        int64_t sequence;
        int32_t heads, kv_heads, head_size;
        float theta;
        bool inverse;
    } rope;
    struct { /* norm_squares, adam */
        double beta1, beta2;
        float epsilon, weight_decay;
        uint32_t first_range, ranges; /* in sc_program.ranges */
        struct sc_index shard;        /* element of the bucket at which GRADIENT begins */
    } flat;
    struct {
        uint8_t work; /* enum sc_scalar_work */
        float clip;   /* global norm to clip to */
        struct {      /* learning rate */
            uint8_t schedule;
            double learning_rate, minimum_learning_rate, beta1, beta2;
            int64_t warmup_steps, decay_steps;
            uint64_t seed; /* written to the state */
        } advance;
    } scalar;
    struct {
        uint8_t reduction; /* enum sc_reduction */
    } collective;
    struct {
        struct sc_index sequence; /* global number of the first sequence of this micro-batch */
        int64_t batch, length;    /* sequences here; global batch is in sc_program.global_batch */
    } next_batch;
    struct {
        bool parameters;       /* initial parameters; else zeros */
        struct sc_index first; /* flat element at which the value begins */
        uint64_t seed;
    } initialize;
};

struct sc_op {
    uint8_t kind; /* enum sc_op_kind */
    uint8_t operands, waits;
    uint8_t stream; /* in sc_program.streams */
    int16_t group;  /* in sc_program.groups; -1: not a collective */
    struct sc_label label;
    uint32_t first_operand; /* in the list's operands */
    uint32_t first_wait;    /* in the list's wait_items */
    union sc_parameters p;
};

/* A list of operations in issue order with its pools. */
struct sc_list {
    SC_ARRAY(struct sc_op) ops;
    SC_ARRAY(struct sc_operand) operands;
    SC_ARRAY(struct sc_wait) waits;
};

enum sc_engine { SC_ENGINE_DEVICE, SC_ENGINE_HOST, SC_ENGINE_DISK };

struct sc_stream {
    const char *name;
    enum sc_engine engine;
    int priority; /* higher first, where the machine can */
};

/* The ranks that differ only along the axes of the mask. One communicator a group, owned by one
 * stream: all collectives of a group are on one stream. */
struct sc_group {
    const char *name;
    unsigned axis_mask;
    int64_t size;
};

/* Consecutive ops that equal another segment's up to renaming of values and of (layer,
 * micro-batch); equal signature, equal price. */
struct sc_segment {
    uint32_t first_op, ops;
    uint32_t signature; /* small number; equal segments have equal numbers */
};

enum sc_memory_mode {
    SC_MEMORY_UNPLANNED,
    SC_MEMORY_NO_ADDED_WAITS, /* reuse never adds a wait */
    SC_MEMORY_ISSUE_ORDER     /* packed by issue order; waits added */
};

/* What the planner found, a place. */
struct sc_place_memory {
    uint64_t step_bytes;       /* region of step buffers, [0, step_bytes) of the arena */
    uint64_t persistent_bytes; /* region behind it */
    uint64_t arena_bytes;      /* both */
    uint64_t bound_bytes;      /* the step region cannot be smaller in the mode in force */
    uint32_t peak_op;          /* op at which most bytes are alive (step and persistent) */
    uint64_t peak_bytes;       /* alive there, sizes rounded to 256 */
};

/* One class of ranks: equal lists up to mesh-derived numbers. */
struct sc_class {
    const char *name;
    unsigned fixed_mask;               /* axes on which the class is one coordinate ... */
    int64_t coordinate[SC_AXIS_COUNT]; /* ... namely this one */
    int64_t ranks;
    SC_ARRAY(struct sc_buffer) buffers;
    SC_ARRAY(struct sc_value) values;
    struct sc_list init; /* run once, before step 0, in order */
    struct sc_list step;
    SC_ARRAY(struct sc_segment) segments;
    enum sc_memory_mode memory_mode;
    uint32_t added_waits; /* by the planner */
    struct sc_place_memory memory[SC_PLACE_COUNT];
};

/* A tensor of the checkpoint, in the program's orientation [rows = outputs, cols = inputs]. */
enum sc_tensor_init { SC_INIT_ZERO, SC_INIT_ONE, SC_INIT_NORMAL };
struct sc_tensor {
    const char *name; /* as the family's checkpoints call it */
    int64_t rows, cols;
    bool vector;     /* one dimension in the file: [rows] */
    bool transposed; /* the file holds [cols, rows] (GPT-2's Conv1D) */
    enum sc_tensor_init init;
    float deviation; /* SC_INIT_NORMAL */
};

/* Rows of a tensor that a rank holds, and where they lie in its parameter. Rows that lie behind the
 * tensor's end (a padded vocabulary) are padding: zero, and not in any file. */
struct sc_block {
    uint32_t tensor;
    int64_t local_row; /* first row in the parameter's value */
    int64_t rows, cols;
    struct sc_index row, column; /* first row and column in the tensor (tensor axis) */
};

/* A parameter as a rank holds it: a range of the flat buffers, made of blocks. Rows that no block
 * covers are padding: zero. */
struct sc_parameter {
    struct sc_label label;
    int64_t flat; /* first element in the flat buffers */
    int64_t rows, cols;
    uint32_t value, gradient; /* views of the flat buffers, class 0 */
    uint32_t first_block, blocks;
    bool replicated; /* every rank of the tensor group holds the same */
    bool decay;
};

struct sc_program {
    char name[SC_NAME_SIZE]; /* of the plan */
    struct sc_mesh mesh;
    int64_t global_batch, sequence_length, vocab_size;
    int steps_ahead; /* step k + steps_ahead is issued after step k has ended: 2 */
    SC_ARRAY(struct sc_class) classes;
    SC_ARRAY(struct sc_stream) streams;
    SC_ARRAY(struct sc_group) groups;
    SC_ARRAY(struct sc_tensor) tensors;
    SC_ARRAY(struct sc_block) blocks;
    SC_ARRAY(struct sc_parameter) parameters;
    SC_ARRAY(struct sc_flat_range) ranges;
    SC_ARRAY(const char *) names; /* interned */
    struct sc_arena arena;        /* strings */
    enum sc_dtype parameter_dtype;
    uint32_t state_value;  /* step_state, class 0; see plans/step_state.h */
    int64_t loss_value;    /* value that read_out fills, -1 without one */
    bool exact;            /* false where the plan changes the mathematics */
    enum sc_status failed; /* sticky, see sc_program_finish */
    void *intern_table;
};

/* ---- building ---------------------------------------------------------------------------- */

enum sc_status sc_program_create(const struct sc_mesh *mesh, struct sc_program **out,
                                 struct sc_error *err);
/* Accepts NULL; sets *program NULL. */
void sc_program_destroy(struct sc_program **program);
/* Reports what the sc_add_* functions could not do. */
enum sc_status sc_program_finish(struct sc_program *program, struct sc_error *err);

/* A number for a text; the same text gives the same number. */
uint32_t sc_intern(struct sc_program *program, const char *text);
/* A label with everything but the name not applying. */
struct sc_label sc_label(struct sc_program *program, const char *name);

/* The class of all ranks with coordinate[a] on every axis a of fixed_mask. */
struct sc_class *sc_add_class(struct sc_program *program, const char *name, unsigned fixed_mask,
                              const int64_t coordinate[SC_AXIS_COUNT]);
int sc_add_stream(struct sc_program *program, const char *name, enum sc_engine engine,
                  int priority);
int sc_add_group(struct sc_program *program, const char *name, unsigned axis_mask);

/* `class` pointers stay valid until the next sc_add_class. */
uint32_t sc_add_buffer(struct sc_program *program, struct sc_class *class, struct sc_label label,
                       enum sc_place place, enum sc_lifetime lifetime, int versions,
                       uint64_t bytes);
/* A dense view at `offset`. */
uint32_t sc_add_value(struct sc_program *program, struct sc_class *class, struct sc_label label,
                      uint32_t buffer, uint64_t offset, enum sc_dtype dtype, int64_t rows,
                      int64_t cols);
/* Rows [first_row, +rows), columns [first_col, +cols) of a value; the row stride stays. */
uint32_t sc_add_view(struct sc_program *program, struct sc_class *class, struct sc_label label,
                     uint32_t of, int64_t first_row, int64_t rows, int64_t first_col, int64_t cols);
/* This rank's piece of a value of one contiguous run, cut along the axis: bytes / size(axis), which
 * must be a multiple of 256 as the run's offset must. The whole value where the axis has one rank.
 */
uint32_t sc_add_shard(struct sc_program *program, struct sc_class *class, struct sc_label label,
                      uint32_t of, enum sc_axis axis);
/* A persistent token. */
uint32_t sc_add_token(struct sc_program *program, struct sc_class *class, struct sc_label label);

/* Appends an op to a list; its address is valid until the next sc_add_op of that list. Operands
 * are then added to the op appended last. */
struct sc_op *sc_add_op(struct sc_program *program, struct sc_list *list, enum sc_op_kind kind,
                        int stream, int group, struct sc_label label);
void sc_add_operand(struct sc_program *program, struct sc_list *list, enum sc_role role,
                    enum sc_access access, uint32_t value);
void sc_add_operand_version(struct sc_program *program, struct sc_list *list, enum sc_role role,
                            enum sc_access access, uint32_t value, enum sc_version version);
/* Marks ops [first, end) of the class's step list as a segment; finds its signature. */
void sc_mark_segment(struct sc_program *program, struct sc_class *class, uint32_t first,
                     uint32_t end);

/* ---- reading ----------------------------------------------------------------------------- */

/* The operand with this role, NULL when the op has none. */
const struct sc_operand *sc_op_operand(const struct sc_list *list, const struct sc_op *op,
                                       enum sc_role role);
const struct sc_value *sc_op_value(const struct sc_class *class, const struct sc_list *list,
                                   const struct sc_op *op, enum sc_role role);
/* Bytes from the first to behind the last element (rows may have gaps). */
uint64_t sc_value_extent(const struct sc_value *value);
/* rows * cols * bytes of an element: what is really there. */
uint64_t sc_value_bytes(const struct sc_value *value);
int64_t sc_index_at(const struct sc_index *index, const int64_t coordinates[SC_AXIS_COUNT]);
/* Writes the label's text; returns out. */
const char *sc_label_text(const struct sc_program *program, struct sc_label label, char *out,
                          size_t size);
/* The class a rank belongs to. */
uint32_t sc_program_class_of(const struct sc_program *program, int64_t rank);
/* Multiply-adds counted twice: gemm 2MNK, attention with the causal half; 0 for other kinds. */
double sc_op_flops(const struct sc_class *class, const struct sc_list *list,
                   const struct sc_op *op);
/* Bytes that an op must move when every operand is touched once: sum over operands (inout twice).
 */
double sc_op_bytes(const struct sc_class *class, const struct sc_list *list,
                   const struct sc_op *op);
/* Bytes of a collective by the usual convention: the whole tensor S (all_gather: N shards). */
uint64_t sc_op_collective_bytes(const struct sc_program *program, const struct sc_class *class,
                                const struct sc_list *list, const struct sc_op *op);
/* Elements of the model's tensors, unpadded. */
int64_t sc_program_parameters(const struct sc_program *program);

/* ---- passes ------------------------------------------------------------------------------ */

/* Derives the waits of every class from operand overlaps, within the step and to the steps before
 * (program_deps.c). Idempotent: earlier waits are dropped. */
enum sc_status sc_program_derive_waits(struct sc_program *program, struct sc_error *err);

/* Number of conflicting pairs (an op of this step, an op before it by no more than three whole
 * steps in issue order), before reduction: for the worked example and reports; quadratic. */
uint64_t sc_program_conflicts(const struct sc_program *program, const struct sc_class *class);

/* Checks every rule, independently of the passes above. On failure SC_BUG and one line that begins
 * with the rule's name: structure, wait-range, wait-forward, outside-buffer, outside-arena,
 * shared-bytes (two buffers alive in the same bytes), read-before-write (of a step buffer),
 * unordered-access, group-on-two-streams, collective-order, exchange-unmatched, group-order,
 * deadlock. */
enum sc_status sc_program_verify(const struct sc_program *program, struct sc_error *err);

/* All passes in their order: waits, memory (capacity of a place in bytes, 0: unlimited), waits by
 * shared bytes, verify when `verify`. */
enum sc_status sc_program_prepare(struct sc_program *program,
                                  const uint64_t capacity[SC_PLACE_COUNT], bool verify,
                                  struct sc_error *err);

/* "sha256:<64 hex digits>" of kinds, operands, values, streams, groups and labels; addresses and
 * waits are not in it. */
enum { SC_HASH_SIZE = 72 };
enum sc_status sc_program_hash(const struct sc_program *program, char out[SC_HASH_SIZE],
                               struct sc_error *err);

#endif
