/* Random programs, drawn from one generator. */
#include "tests/support/random_program.h"

#include "base/rng.h"

enum { BUFFERS = 7, VIEWS = 5, PITCH = 16 };

struct draw {
    uint64_t state;
    struct sc_program *program;
    struct sc_class *class;
    struct sc_label label;
    uint32_t value[BUFFERS][VIEWS]; /* the first is whole */
    int written[BUFFERS];           /* first op that writes it; -1: none yet, and needed */
    int buffers, streams, ops;
    bool plain; /* no shards, one row length a buffer */
    bool local; /* an op's operands are near its place in the list: short lifetimes */
};

static int64_t below(struct draw *draw, int64_t n)
{
    return (int64_t)(sc_random_next(&draw->state) % (uint64_t)n);
}

static bool chance(struct draw *draw, int percent)
{
    return below(draw, 100) < percent;
}

static uint32_t any_view(struct draw *draw, uint32_t whole)
{
    const struct sc_value *value = &draw->class->values.items[whole];
    int64_t rows = value->rows, cols = value->cols;
    int64_t row = chance(draw, 50) ? 0 : below(draw, rows);
    int64_t col = chance(draw, 60) ? 0 : below(draw, cols);
    int64_t height = chance(draw, 40) ? rows - row : 1 + below(draw, rows - row);
    int64_t width = chance(draw, 60) ? cols - col : 1 + below(draw, cols - col);
    return sc_add_view(draw->program, draw->class, draw->label, whole, row, height, col, width);
}

static void add_buffer(struct draw *draw, int number)
{
    bool step = chance(draw, 60);
    int versions = !step && chance(draw, 40) ? 2 : 1;
    int64_t rows = 16 * (1 + below(draw, 4));
    uint32_t buffer =
        sc_add_buffer(draw->program, draw->class, draw->label, SC_DEVICE,
                      step ? SC_STEP : SC_PERSISTENT, versions, (uint64_t)(rows * PITCH * 4));
    uint32_t whole =
        sc_add_value(draw->program, draw->class, draw->label, buffer, 0, SC_FP32, rows, PITCH);
    draw->written[number] = step ? -1 : -2;
    draw->value[number][0] = whole;
    for (int i = 1; i < VIEWS; ++i) {
        uint32_t of = whole;
        if (!draw->plain && !step &&
            chance(draw, 20)) { /* 64 or more rows of 64 bytes: pieces of 512 or more */
            of = sc_add_shard(draw->program, draw->class, draw->label, whole,
                              chance(draw, 50) ? SC_TENSOR : SC_DATA);
        } else if (!draw->plain && chance(draw, 15)) { /* the same bytes with another row length */
            of = sc_add_value(draw->program, draw->class, draw->label, buffer, 0, SC_FP32, rows * 2,
                              PITCH / 2);
        }
        draw->value[number][i] = any_view(draw, of);
    }
}

static int any_buffer(struct draw *draw, int op)
{
    if (!draw->local) {
        return (int)below(draw, draw->buffers);
    }
    int buffer = op * draw->buffers / draw->ops + (int)below(draw, 3) - 1;
    return buffer < 0 ? 0 : buffer < draw->buffers ? buffer : draw->buffers - 1;
}

static void add_op(struct draw *draw, int op)
{
    struct sc_list *list = &draw->class->step;
    sc_add_op(draw->program, list, SC_SCALE, (int)below(draw, draw->streams), -1, draw->label);
    int operands = 1 + (int)below(draw, 3);
    for (int i = 0; i < operands; ++i) {
        int buffer = any_buffer(draw, op);
        bool first = draw->written[buffer] == -1;
        draw->written[buffer] = first ? op : draw->written[buffer];
        uint32_t value = draw->value[buffer][first ? 0 : below(draw, VIEWS)];
        enum sc_access access = (enum sc_access)(1 + below(draw, 3));
        access = draw->written[buffer] == op ? SC_OUT : access; /* reads nothing of its own */
        sc_add_operand_version(draw->program, list, SC_ROLE_X, access, value,
                               chance(draw, 30) ? SC_OTHER : SC_NOW);
    }
}

struct sc_program *sc_random_program(uint64_t seed)
{
    struct draw draw = {.state = seed * 0x9e3779b97f4a7c15u + 1};
    struct sc_mesh mesh;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(2, 1, 2, 1, &mesh);
    if (sc_program_create(&mesh, &draw.program, &err) != SC_OK) {
        return NULL;
    }
    draw.plain = chance(&draw, 50);
    draw.local = chance(&draw, 50);
    draw.ops = 2 + (int)below(&draw, SC_RANDOM_OPS - 1);
    draw.streams = 1 + (int)below(&draw, 5);
    for (int i = 0; i < draw.streams; ++i) {
        sc_add_stream(draw.program, "stream", SC_ENGINE_DEVICE, 0);
    }
    draw.class = sc_add_class(draw.program, "all", 0, NULL);
    draw.label = sc_label(draw.program, "x");
    draw.buffers = 2 + (int)below(&draw, BUFFERS - 2);
    for (int i = 0; i < draw.buffers; ++i) {
        add_buffer(&draw, i);
    }
    if (chance(&draw, 30)) { /* a token takes the place of the last buffer */
        uint32_t token = sc_add_token(draw.program, draw.class, draw.label);
        for (int i = 0; i < VIEWS; ++i) {
            draw.value[draw.buffers - 1][i] = token;
        }
        draw.written[draw.buffers - 1] = -2;
    }
    for (int i = 0; i < draw.ops; ++i) {
        add_op(&draw, i);
    }
    if (draw.program->failed != SC_OK) {
        sc_program_destroy(&draw.program);
    }
    return draw.program;
}
