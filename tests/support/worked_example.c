/* The worked examples, written out by hand. */
#include "tests/support/worked_example.h"

#include <string.h>

#include "model/architecture.h"

enum { ROWS = 8, PIECE = 4, HIDDEN = 8, FFN = 16, FLAT = 512 };

enum stream { DATA, COPY_IN, COMPUTE, TENSOR_COMM };

const struct sc_worked_wait sc_worked_waits[SC_WORKED_WAITS] = {
    {0, 1, 2},   {1, 0, 0},   {1, 32, 1},  {3, 1, 0},   {8, 7, 0},   {11, 8, 0},
    {13, 12, 0}, {14, 13, 0}, {23, 22, 0}, {27, 23, 0}, {30, 29, 0}, {32, 30, 0},
};

/* A whole value and its two pieces of rows. */
struct rows {
    uint32_t whole, piece[2];
};

struct mlp {
    struct sc_program *program;
    struct sc_class *class;
    struct sc_list *list;
    int group;
    uint32_t xin, state, parameter, gradient, m, v;
    uint32_t w1, b1, w2, b2, gamma, beta;
    uint32_t gw1, gb1, gw2, gb2, ggamma, gbeta;
    struct rows x, n, z, y, dy, dz, dn, u, a, da, stat;
};

/* ---- values ------------------------------------------------------------------------------ */

static struct sc_label name(struct mlp *mlp, const char *text)
{
    return sc_label(mlp->program, text);
}

static struct rows step_rows(struct mlp *mlp, const char *text, int64_t cols)
{
    struct rows rows;
    struct sc_label label = name(mlp, text);
    uint32_t buffer = sc_add_buffer(mlp->program, mlp->class, label, SC_DEVICE, SC_STEP, 1,
                                    (uint64_t)(ROWS * cols * 4));
    rows.whole = sc_add_value(mlp->program, mlp->class, label, buffer, 0, SC_FP32, ROWS, cols);
    for (int piece = 0; piece < 2; ++piece) {
        label.piece = (int16_t)piece;
        rows.piece[piece] =
            sc_add_view(mlp->program, mlp->class, label, rows.whole, piece * PIECE, PIECE, 0, cols);
    }
    return rows;
}

static uint32_t persistent(struct mlp *mlp, const char *text, enum sc_place place, int versions,
                           uint64_t bytes)
{
    return sc_add_buffer(mlp->program, mlp->class, name(mlp, text), place, SC_PERSISTENT, versions,
                         bytes);
}

static uint32_t value(struct mlp *mlp, const char *text, uint32_t buffer, uint64_t offset,
                      int64_t rows, int64_t cols)
{
    return sc_add_value(mlp->program, mlp->class, name(mlp, text), buffer, offset, SC_FP32, rows,
                        cols);
}

static void add_parameters(struct mlp *mlp)
{
    uint32_t parameter = persistent(mlp, "param", SC_DEVICE, 1, FLAT * 4);
    uint32_t gradient = persistent(mlp, "grad", SC_DEVICE, 1, FLAT * 4);
    uint32_t m = persistent(mlp, "m", SC_DEVICE, 1, FLAT * 4);
    uint32_t v = persistent(mlp, "v", SC_DEVICE, 1, FLAT * 4);
    mlp->parameter = value(mlp, "param", parameter, 0, 1, FLAT);
    mlp->gradient = value(mlp, "grad", gradient, 0, 1, FLAT);
    mlp->m = value(mlp, "m", m, 0, 1, FLAT);
    mlp->v = value(mlp, "v", v, 0, 1, FLAT);
    mlp->w1 = value(mlp, "W1", parameter, 0, FFN, HIDDEN);
    mlp->b1 = value(mlp, "b1", parameter, 512, 1, FFN);
    mlp->w2 = value(mlp, "W2", parameter, 768, HIDDEN, FFN);
    mlp->b2 = value(mlp, "b2", parameter, 1280, 1, HIDDEN);
    mlp->gamma = value(mlp, "gamma", parameter, 1536, 1, HIDDEN);
    mlp->beta = value(mlp, "beta", parameter, 1792, 1, HIDDEN);
    mlp->gw1 = value(mlp, "gW1", gradient, 0, FFN, HIDDEN);
    mlp->gb1 = value(mlp, "gb1", gradient, 512, 1, FFN);
    mlp->gw2 = value(mlp, "gW2", gradient, 768, HIDDEN, FFN);
    mlp->gb2 = value(mlp, "gb2", gradient, 1280, 1, HIDDEN);
    mlp->ggamma = value(mlp, "ggamma", gradient, 1536, 1, HIDDEN);
    mlp->gbeta = value(mlp, "gbeta", gradient, 1792, 1, HIDDEN);
}

static void add_values(struct mlp *mlp)
{
    uint32_t xin = persistent(mlp, "xin", SC_PINNED, 2, 256);
    mlp->xin = value(mlp, "xin", xin, 0, ROWS, HIDDEN);
    mlp->x = step_rows(mlp, "x", HIDDEN);
    mlp->n = step_rows(mlp, "n", HIDDEN);
    mlp->z = step_rows(mlp, "z", HIDDEN);
    mlp->y = step_rows(mlp, "y", HIDDEN);
    mlp->dy = step_rows(mlp, "dy", HIDDEN);
    mlp->dz = step_rows(mlp, "dz", HIDDEN);
    mlp->dn = step_rows(mlp, "dn", HIDDEN);
    mlp->u = step_rows(mlp, "u", FFN);
    mlp->a = step_rows(mlp, "a", FFN);
    mlp->da = step_rows(mlp, "da", FFN);
    mlp->stat = step_rows(mlp, "stat", 2);
    add_parameters(mlp);
    uint32_t state = persistent(mlp, "step_state", SC_DEVICE, 1, 256);
    mlp->state = value(mlp, "step_state", state, 0, 1, 64);
    mlp->program->state_value = mlp->state;
}

/* ---- operations -------------------------------------------------------------------------- */

static struct sc_op *op(struct mlp *mlp, enum sc_op_kind kind, const char *text, enum sc_pass pass,
                        int piece)
{
    bool collective = sc_op_kind_work(kind) == SC_WORK_COLLECTIVE;
    struct sc_label label = name(mlp, text);
    label.pass = (uint16_t)pass;
    label.piece = (int16_t)piece;
    return sc_add_op(mlp->program, mlp->list, kind, collective ? TENSOR_COMM : COMPUTE,
                     collective ? mlp->group : -1, label);
}

static void operand(struct mlp *mlp, enum sc_role role, enum sc_access access, uint32_t of)
{
    sc_add_operand(mlp->program, mlp->list, role, access, of);
}

/* The second piece in backward order adds to what the first wrote. */
static enum sc_access gradient_access(int piece)
{
    return piece == 1 ? SC_OUT : SC_INOUT;
}

static void input(struct mlp *mlp)
{
    sc_add_op(mlp->program, mlp->list, SC_NEXT_BATCH, DATA, -1, name(mlp, "input"));
    operand(mlp, SC_ROLE_INDEX, SC_OUT, mlp->xin);
    sc_add_op(mlp->program, mlp->list, SC_COPY, COPY_IN, -1, name(mlp, "input"));
    operand(mlp, SC_ROLE_X, SC_IN, mlp->xin);
    operand(mlp, SC_ROLE_Y, SC_OUT, mlp->x.whole);
    op(mlp, SC_SCALAR, "state", SC_PASS_NONE, -1)->p.scalar.work = SC_SCALAR_ADVANCE;
    operand(mlp, SC_ROLE_STATE, SC_INOUT, mlp->state);
}

static void norm(struct mlp *mlp, int piece)
{
    struct sc_op *item = op(mlp, SC_NORM_FORWARD, "norm", SC_PASS_FORWARD, piece);
    item->p.norm.kind = SC_LAYER_NORM;
    item->p.norm.epsilon = 1e-5f;
    operand(mlp, SC_ROLE_X, SC_IN, mlp->x.piece[piece]);
    operand(mlp, SC_ROLE_GAMMA, SC_IN, mlp->gamma);
    operand(mlp, SC_ROLE_BETA, SC_IN, mlp->beta);
    operand(mlp, SC_ROLE_Y, SC_OUT, mlp->n.piece[piece]);
    operand(mlp, SC_ROLE_STAT, SC_OUT, mlp->stat.piece[piece]);
}

static struct sc_op *gemm(struct mlp *mlp, const char *text, enum sc_pass pass, int piece,
                          uint32_t a, uint32_t b)
{
    struct sc_op *item = op(mlp, SC_GEMM, text, pass, piece);
    item->p.gemm.alpha = 1;
    operand(mlp, SC_ROLE_A, SC_IN, a);
    operand(mlp, SC_ROLE_B, SC_IN, b);
    return item;
}

static void up(struct mlp *mlp, int piece)
{
    gemm(mlp, "up", SC_PASS_FORWARD, piece, mlp->n.piece[piece], mlp->w1)->p.gemm.transpose_b =
        true;
    operand(mlp, SC_ROLE_BIAS, SC_IN, mlp->b1);
    operand(mlp, SC_ROLE_C, SC_OUT, mlp->u.piece[piece]);
}

static void gelu(struct mlp *mlp, int piece)
{
    op(mlp, SC_ACTIVATION_FORWARD, "gelu", SC_PASS_FORWARD, piece)->p.activation.kind =
        SC_GELU_TANH;
    operand(mlp, SC_ROLE_X, SC_IN, mlp->u.piece[piece]);
    operand(mlp, SC_ROLE_Y, SC_OUT, mlp->a.piece[piece]);
}

static void down(struct mlp *mlp, int piece)
{
    gemm(mlp, "down", SC_PASS_FORWARD, piece, mlp->a.piece[piece], mlp->w2)->p.gemm.transpose_b =
        true;
    operand(mlp, SC_ROLE_C, SC_OUT, mlp->z.piece[piece]);
    op(mlp, SC_ALL_REDUCE, "down", SC_PASS_FORWARD, piece);
    operand(mlp, SC_ROLE_Y, SC_INOUT, mlp->z.piece[piece]);
}

static void residual(struct mlp *mlp, int piece)
{
    struct sc_op *item = op(mlp, SC_DROPOUT, "residual", SC_PASS_FORWARD, piece);
    item->p.dropout.probability = 0.1f;
    item->p.dropout.row = (struct sc_index){piece * PIECE, 0, -1};
    operand(mlp, SC_ROLE_X, SC_IN, mlp->z.piece[piece]);
    operand(mlp, SC_ROLE_BIAS, SC_IN, mlp->b2);
    operand(mlp, SC_ROLE_RESIDUAL, SC_IN, mlp->x.piece[piece]);
    operand(mlp, SC_ROLE_STATE, SC_IN, mlp->state);
    operand(mlp, SC_ROLE_Y, SC_OUT, mlp->y.piece[piece]);
}

/* The loss is half the square of y: dy = y. Then through dropout. */
static void loss(struct mlp *mlp, int piece)
{
    op(mlp, SC_SCALE, "loss", SC_PASS_BACKWARD, piece)->p.scale.factor = 1;
    operand(mlp, SC_ROLE_X, SC_IN, mlp->y.piece[piece]);
    operand(mlp, SC_ROLE_Y, SC_OUT, mlp->dy.piece[piece]);
    struct sc_op *item = op(mlp, SC_DROPOUT_BACKWARD, "residual", SC_PASS_BACKWARD, piece);
    item->p.dropout.probability = 0.1f;
    item->p.dropout.row = (struct sc_index){piece * PIECE, 0, -1};
    operand(mlp, SC_ROLE_DY, SC_IN, mlp->dy.piece[piece]);
    operand(mlp, SC_ROLE_STATE, SC_IN, mlp->state);
    operand(mlp, SC_ROLE_DX, SC_OUT, mlp->dz.piece[piece]);
    operand(mlp, SC_ROLE_BIAS_GRADIENT, gradient_access(piece), mlp->gb2);
}

static void down_data(struct mlp *mlp, int piece)
{
    gemm(mlp, "down", SC_PASS_BACKWARD_DATA, piece, mlp->dz.piece[piece], mlp->w2);
    operand(mlp, SC_ROLE_C, SC_OUT, mlp->da.piece[piece]);
}

static void down_weight(struct mlp *mlp, int piece)
{
    gemm(mlp, "down", SC_PASS_BACKWARD_WEIGHT, piece, mlp->dz.piece[piece], mlp->a.piece[piece])
        ->p.gemm.transpose_a = true;
    operand(mlp, SC_ROLE_C, gradient_access(piece), mlp->gw2);
}

static void gelu_backward(struct mlp *mlp, int piece)
{
    op(mlp, SC_ACTIVATION_BACKWARD, "gelu", SC_PASS_BACKWARD, piece)->p.activation.kind =
        SC_GELU_TANH;
    operand(mlp, SC_ROLE_X, SC_IN, mlp->u.piece[piece]);
    operand(mlp, SC_ROLE_DX, SC_INOUT, mlp->da.piece[piece]);
}

static void up_data(struct mlp *mlp, int piece)
{
    gemm(mlp, "up", SC_PASS_BACKWARD_DATA, piece, mlp->da.piece[piece], mlp->w1);
    operand(mlp, SC_ROLE_C, SC_OUT, mlp->dn.piece[piece]);
    op(mlp, SC_ALL_REDUCE, "up", SC_PASS_BACKWARD_DATA, piece);
    operand(mlp, SC_ROLE_Y, SC_INOUT, mlp->dn.piece[piece]);
}

static void up_weight(struct mlp *mlp, int piece)
{
    gemm(mlp, "up", SC_PASS_BACKWARD_WEIGHT, piece, mlp->da.piece[piece], mlp->n.piece[piece])
        ->p.gemm.transpose_a = true;
    operand(mlp, SC_ROLE_C, gradient_access(piece), mlp->gw1);
    operand(mlp, SC_ROLE_BIAS_GRADIENT, gradient_access(piece), mlp->gb1);
}

static void norm_backward(struct mlp *mlp, int piece)
{
    op(mlp, SC_NORM_BACKWARD, "norm", SC_PASS_BACKWARD, piece)->p.norm.kind = SC_LAYER_NORM;
    operand(mlp, SC_ROLE_DY, SC_IN, mlp->dn.piece[piece]);
    operand(mlp, SC_ROLE_X, SC_IN, mlp->x.piece[piece]);
    operand(mlp, SC_ROLE_STAT, SC_IN, mlp->stat.piece[piece]);
    operand(mlp, SC_ROLE_GAMMA, SC_IN, mlp->gamma);
    operand(mlp, SC_ROLE_DX, SC_INOUT, mlp->dy.piece[piece]);
    operand(mlp, SC_ROLE_DGAMMA, gradient_access(piece), mlp->ggamma);
    operand(mlp, SC_ROLE_DBETA, gradient_access(piece), mlp->gbeta);
}

static void adam(struct mlp *mlp)
{
    struct sc_op *item = op(mlp, SC_ADAM, "optimizer", SC_PASS_NONE, -1);
    item->p.flat.beta1 = 0.9;
    item->p.flat.beta2 = 0.999;
    item->p.flat.epsilon = 1e-8f;
    operand(mlp, SC_ROLE_GRADIENT, SC_IN, mlp->gradient);
    operand(mlp, SC_ROLE_STATE, SC_IN, mlp->state);
    operand(mlp, SC_ROLE_PARAMETER, SC_INOUT, mlp->parameter);
    operand(mlp, SC_ROLE_M, SC_INOUT, mlp->m);
    operand(mlp, SC_ROLE_V, SC_INOUT, mlp->v);
}

static void forward(struct mlp *mlp)
{
    norm(mlp, 0);
    up(mlp, 0);
    gelu(mlp, 0);
    norm(mlp, 1);
    down(mlp, 0);
    up(mlp, 1);
    gelu(mlp, 1);
    residual(mlp, 0);
    down(mlp, 1);
    residual(mlp, 1);
}

static void backward(struct mlp *mlp)
{
    loss(mlp, 1);
    down_data(mlp, 1);
    down_weight(mlp, 1);
    loss(mlp, 0);
    gelu_backward(mlp, 1);
    up_data(mlp, 1);
    up_weight(mlp, 1);
    down_data(mlp, 0);
    down_weight(mlp, 0);
    norm_backward(mlp, 1);
    gelu_backward(mlp, 0);
    up_data(mlp, 0);
    up_weight(mlp, 0);
    norm_backward(mlp, 0);
}

static struct sc_program *finished(struct sc_program *program)
{
    struct sc_error err = SC_ERROR_INIT;
    if (sc_program_finish(program, &err) != SC_OK) {
        sc_program_destroy(&program);
    }
    return program;
}

struct sc_program *sc_worked_example(void)
{
    struct mlp mlp = {0};
    struct sc_mesh mesh;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(2, 1, 1, 1, &mesh);
    if (sc_program_create(&mesh, &mlp.program, &err) != SC_OK) {
        return NULL;
    }
    strcpy(mlp.program->name, "mlp_tp2_domino2");
    mlp.program->global_batch = 2;
    mlp.program->sequence_length = 4;
    sc_add_stream(mlp.program, "data", SC_ENGINE_HOST, 0);
    sc_add_stream(mlp.program, "copy_in", SC_ENGINE_DEVICE, 0);
    sc_add_stream(mlp.program, "compute", SC_ENGINE_DEVICE, 0);
    sc_add_stream(mlp.program, "tensor_comm", SC_ENGINE_DEVICE, 1);
    mlp.group = sc_add_group(mlp.program, "tensor", SC_AXIS_MASK(SC_TENSOR));
    mlp.class = sc_add_class(mlp.program, "all", 0, NULL);
    mlp.list = &mlp.class->step;
    add_values(&mlp);
    input(&mlp);
    forward(&mlp);
    backward(&mlp);
    adam(&mlp);
    return finished(mlp.program);
}

double sc_worked_example_us(enum sc_op_kind kind)
{
    static const double prices[SC_OP_KIND_COUNT] = {
        [SC_NEXT_BATCH] = 50,
        [SC_COPY] = 40,
        [SC_SCALAR] = 1,
        [SC_NORM_FORWARD] = 10,
        [SC_GEMM] = 100,
        [SC_ACTIVATION_FORWARD] = 20,
        [SC_ALL_REDUCE] = 120,
        [SC_DROPOUT] = 15,
        [SC_SCALE] = 5,
        [SC_DROPOUT_BACKWARD] = 15,
        [SC_ACTIVATION_BACKWARD] = 20,
        [SC_NORM_BACKWARD] = 20,
        [SC_ADAM] = 30,
    };
    return prices[kind];
}

/* ---- the delayed update ------------------------------------------------------------------ */

enum delayed_stream { CPU, DEVICE, OUT, IN };

static uint32_t flat(struct mlp *mlp, const char *text, enum sc_place place, int versions)
{
    uint32_t buffer = persistent(mlp, text, place, versions, FLAT * 4);
    return value(mlp, text, buffer, 0, 1, FLAT);
}

static void delayed_op(struct mlp *mlp, enum sc_op_kind kind, enum delayed_stream stream,
                       const char *text)
{
    sc_add_op(mlp->program, mlp->list, kind, stream, -1, name(mlp, text));
}

static void delayed_step(struct mlp *mlp, uint32_t host_gradient, uint32_t host_parameter)
{
    uint32_t buffer = sc_add_buffer(mlp->program, mlp->class, name(mlp, "activation"), SC_DEVICE,
                                    SC_STEP, 1, FLAT * 4);
    uint32_t activation = value(mlp, "activation", buffer, 0, 1, FLAT);
    uint32_t master = flat(mlp, "master", SC_HOST, 1);
    delayed_op(mlp, SC_ADAM, CPU, "optimizer");
    sc_add_operand_version(mlp->program, mlp->list, SC_ROLE_GRADIENT, SC_IN, host_gradient,
                           SC_OTHER);
    operand(mlp, SC_ROLE_STATE, SC_IN, mlp->state);
    operand(mlp, SC_ROLE_PARAMETER, SC_OUT, host_parameter);
    operand(mlp, SC_ROLE_MASTER, SC_INOUT, master);
    operand(mlp, SC_ROLE_M, SC_INOUT, mlp->m);
    operand(mlp, SC_ROLE_V, SC_INOUT, mlp->v);
    delayed_op(mlp, SC_SCALE, DEVICE, "forward");
    operand(mlp, SC_ROLE_X, SC_IN, mlp->parameter);
    operand(mlp, SC_ROLE_Y, SC_OUT, activation);
    delayed_op(mlp, SC_ADD, DEVICE, "backward");
    operand(mlp, SC_ROLE_A, SC_IN, mlp->parameter);
    operand(mlp, SC_ROLE_B, SC_IN, activation);
    operand(mlp, SC_ROLE_C, SC_OUT, mlp->gradient);
    delayed_op(mlp, SC_COPY, OUT, "gradients");
    operand(mlp, SC_ROLE_X, SC_IN, mlp->gradient);
    operand(mlp, SC_ROLE_Y, SC_OUT, host_gradient);
    delayed_op(mlp, SC_COPY, IN, "parameters");
    operand(mlp, SC_ROLE_X, SC_IN, host_parameter);
    operand(mlp, SC_ROLE_Y, SC_OUT, mlp->parameter);
}

struct sc_program *sc_delayed_update_example(bool two_versions)
{
    struct mlp mlp = {0};
    struct sc_mesh mesh;
    struct sc_error err = SC_ERROR_INIT;
    sc_mesh_make(1, 1, 1, 1, &mesh);
    if (sc_program_create(&mesh, &mlp.program, &err) != SC_OK) {
        return NULL;
    }
    strcpy(mlp.program->name, "delayed_update");
    sc_add_stream(mlp.program, "cpu", SC_ENGINE_HOST, 0);
    sc_add_stream(mlp.program, "compute", SC_ENGINE_DEVICE, 0);
    sc_add_stream(mlp.program, "copy_out", SC_ENGINE_DEVICE, 0);
    sc_add_stream(mlp.program, "copy_in", SC_ENGINE_DEVICE, 0);
    mlp.class = sc_add_class(mlp.program, "all", 0, NULL);
    mlp.list = &mlp.class->step;
    mlp.parameter = flat(&mlp, "param", SC_DEVICE, 1);
    mlp.gradient = flat(&mlp, "grad", SC_DEVICE, 1);
    mlp.m = flat(&mlp, "m", SC_HOST, 1);
    mlp.v = flat(&mlp, "v", SC_HOST, 1);
    uint32_t state = persistent(&mlp, "step_state", SC_HOST, 1, 256);
    mlp.state = value(&mlp, "step_state", state, 0, 1, 64);
    mlp.program->state_value = mlp.state;
    int versions = two_versions ? 2 : 1;
    delayed_step(&mlp, flat(&mlp, "grad_host", SC_HOST, versions),
                 flat(&mlp, "param_host", SC_HOST, versions));
    return finished(mlp.program);
}

double sc_delayed_update_ms(uint32_t op_number, double adam_ms)
{
    static const double times[] = {0, 100, 200, 60, 40};
    return op_number == 0 ? adam_ms : times[op_number];
}
