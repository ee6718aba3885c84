/* The worked example with everything that it takes to run it, and its plain arithmetic. */
#include "tests/support/run_example.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/worked_example.h"

enum { ROWS = SC_EXAMPLE_ROWS, HIDDEN = SC_EXAMPLE_HIDDEN, FFN = SC_EXAMPLE_FFN, FLAT = 512 };

static const double rate = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, drop = 0.1f;
static const uint64_t seed = 77;

static const struct {
    const char *name, *gradient;
    int rows, cols; /* of the tensor */
    bool rows_split, cols_split;
    enum sc_tensor_init init;
} shapes[EXAMPLE_TENSORS] = {
    {"W1", "gW1", FFN, HIDDEN, true, false, SC_INIT_NORMAL},
    {"b1", "gb1", FFN, 1, true, false, SC_INIT_NORMAL},
    {"W2", "gW2", HIDDEN, FFN, false, true, SC_INIT_NORMAL},
    {"b2", "gb2", HIDDEN, 1, false, false, SC_INIT_NORMAL},
    {"gamma", "ggamma", HIDDEN, 1, false, false, SC_INIT_ONE},
    {"beta", "gbeta", HIDDEN, 1, false, false, SC_INIT_ZERO},
};

int sc_example_elements(enum sc_example_tensor tensor)
{
    return shapes[tensor].rows * shapes[tensor].cols;
}

/* ---- the program ----------------------------------------------------------------------------- */

static uint32_t value_named(const struct sc_program *program, const char *name)
{
    const struct sc_class *class = &program->classes.items[0];
    for (size_t i = 0; i < class->values.count; i++)
        if (!strcmp(program->names.items[class->values.items[i].label.name], name))
            return (uint32_t)i;
    return 0;
}

static struct sc_index split(bool on, int64_t stride)
{
    return (struct sc_index){0, on ? stride : 0, on ? SC_TENSOR : -1};
}

static bool add_tensor(struct sc_program *program, int number)
{
    struct sc_tensor *tensor = sc_array_push(&program->tensors);
    struct sc_parameter *p = sc_array_push(&program->parameters);
    struct sc_block *block = sc_array_push(&program->blocks);
    if (!tensor || !p || !block)
        return false;
    bool rows_split = shapes[number].rows_split, cols_split = shapes[number].cols_split;
    int64_t rows = shapes[number].rows / (rows_split ? 2 : 1);
    int64_t cols = shapes[number].cols / (cols_split ? 2 : 1);
    *tensor = (struct sc_tensor){.name = shapes[number].name,
                                 .rows = shapes[number].rows,
                                 .cols = shapes[number].cols,
                                 .vector = shapes[number].cols == 1,
                                 .init = shapes[number].init,
                                 .deviation = 0.5f};
    p->value = value_named(program, shapes[number].name);
    p->gradient = value_named(program, shapes[number].gradient);
    p->flat = (int64_t)program->classes.items[0].values.items[p->value].offset / 4;
    p->rows = rows;
    p->cols = cols;
    p->first_block = (uint32_t)program->blocks.count - 1;
    p->blocks = 1;
    *block = (struct sc_block){.tensor = (uint32_t)number,
                               .rows = rows,
                               .cols = cols,
                               .row = split(rows_split, rows),
                               .column = split(cols_split, cols)};
    return true;
}

static void add_init(struct sc_program *program, const char *name, bool parameters)
{
    struct sc_class *class = &program->classes.items[0];
    struct sc_op *op =
        sc_add_op(program, &class->init, SC_INITIALIZE, 2, -1, sc_label(program, name));
    op->p.initialize.parameters = parameters;
    op->p.initialize.seed = seed;
    op->p.initialize.first = (struct sc_index){0, 0, -1};
    sc_add_operand(program, &class->init, SC_ROLE_Y, SC_OUT, value_named(program, name));
}

static bool set_parameters(struct sc_program *program)
{
    struct sc_list *list = &program->classes.items[0].step;
    struct sc_flat_range *range = sc_array_push(&program->ranges);
    if (!range)
        return false;
    *range = (struct sc_flat_range){.first = 0, .count = FLAT, .weight = 1};
    for (size_t i = 0; i < list->ops.count; i++) {
        struct sc_op *op = &list->ops.items[i];
        if (op->kind == SC_ADAM) {
            op->p.flat.first_range = 0;
            op->p.flat.ranges = 1;
            op->p.flat.shard = (struct sc_index){0, 0, -1};
        }
        if (op->kind == SC_SCALAR) {
            op->p.scalar.advance.schedule = SC_SCHEDULE_CONSTANT;
            op->p.scalar.advance.learning_rate = rate;
            op->p.scalar.advance.beta1 = beta1;
            op->p.scalar.advance.beta2 = beta2;
            op->p.scalar.advance.seed = seed;
        }
        if (op->kind == SC_NEXT_BATCH) {
            op->p.next_batch.batch = 2;
            op->p.next_batch.length = ROWS / 2;
            op->p.next_batch.sequence = (struct sc_index){0, 0, -1};
        }
    }
    return true;
}

struct sc_program *sc_run_example(void)
{
    static const uint64_t unlimited[SC_PLACE_COUNT] = {0};
    static const char *const zeros[] = {"grad", "m", "v", "step_state"};
    struct sc_error err = SC_ERROR_INIT;
    struct sc_program *program = sc_worked_example();
    bool made = program != NULL;
    for (int t = 0; made && t < EXAMPLE_TENSORS; t++)
        made = add_tensor(program, t);
    made = made && set_parameters(program);
    if (made) {
        program->steps_ahead = 2;
        add_init(program, "param", true);
        for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
            add_init(program, zeros[i], false);
        made = sc_program_finish(program, &err) == SC_OK &&
               sc_program_prepare(program, unlimited, true, &err) == SC_OK;
    }
    if (!made)
        sc_program_destroy(&program);
    return program;
}

/* ---- its input ------------------------------------------------------------------------------- */

static float input(int64_t step, int i)
{
    uint32_t word[4];
    sc_philox(5, (uint64_t)i, 1, (uint32_t)step, word);
    return 2 * sc_uniform(word[0]) - 1;
}

static enum sc_status next(void *context, int64_t step, int64_t sequence, int64_t batch,
                           int64_t length, int32_t *index, int32_t *target, struct sc_error *err)
{
    (void)context;
    (void)sequence;
    (void)target;
    (void)err;
    float *x = (float *)index; /* the example's input is rows of numbers, not tokens */
    for (int i = 0; i < batch * length * HIDDEN; i++)
        x[i] = input(step, i);
    return SC_OK;
}

void sc_run_example_options(struct sc_run_options *options, int64_t steps)
{
    sc_run_options_neutral(options);
    options->warmup = 0;
    options->steps = steps;
    options->data.next = next;
}

/* ---- plain arithmetic ------------------------------------------------------------------------ */

struct forward {
    double x[ROWS][HIDDEN], n[ROWS][HIDDEN], deviation[ROWS]; /* deviation: 1 / sqrt(var) */
    double normal[ROWS][HIDDEN];                              /* before gamma and beta */
    double u[ROWS][FFN], a[ROWS][FFN], y[ROWS][HIDDEN], keep[ROWS][HIDDEN];
};

static void layer_norm(const struct sc_example_state *s, struct forward *f)
{
    for (int r = 0; r < ROWS; r++) {
        double mean = 0, var = 0;
        for (int c = 0; c < HIDDEN; c++)
            mean += f->x[r][c] / HIDDEN;
        for (int c = 0; c < HIDDEN; c++)
            var += (f->x[r][c] - mean) * (f->x[r][c] - mean) / HIDDEN;
        f->deviation[r] = 1 / sqrt(var + 1e-5);
        for (int c = 0; c < HIDDEN; c++) {
            f->normal[r][c] = (f->x[r][c] - mean) * f->deviation[r];
            f->n[r][c] =
                f->normal[r][c] * s->parameter[EXAMPLE_GAMMA][c] + s->parameter[EXAMPLE_BETA][c];
        }
    }
}

static const double root = 0.7978845608028654; /* sqrt(2 / pi) */

static double gelu(double u)
{
    return 0.5 * u * (1 + tanh(root * (u + 0.044715 * u * u * u)));
}

static double gelu_slope(double u)
{
    double t = tanh(root * (u + 0.044715 * u * u * u));
    return 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * root * (1 + 3 * 0.044715 * u * u);
}

/* Element i of all rows is kept where word i % 4 of philox(seed, i / 4, site 0, step) says so; the
 * step counts from 1. */
static double keep(int64_t step, int i)
{
    uint32_t word[4];
    sc_philox(seed, (uint64_t)i / 4, 0, (uint32_t)step + 1, word);
    return (double)sc_uniform(word[i % 4]) >= drop ? 1 / (1 - drop) : 0;
}

static void forward(const struct sc_example_state *s, int64_t step, struct forward *f)
{
    for (int i = 0; i < ROWS * HIDDEN; i++) {
        f->x[i / HIDDEN][i % HIDDEN] = (double)input(step, i);
        f->keep[i / HIDDEN][i % HIDDEN] = keep(step, i);
    }
    layer_norm(s, f);
    for (int r = 0; r < ROWS; r++) {
        for (int j = 0; j < FFN; j++) {
            f->u[r][j] = s->parameter[EXAMPLE_B1][j];
            for (int c = 0; c < HIDDEN; c++)
                f->u[r][j] += f->n[r][c] * s->parameter[EXAMPLE_W1][j * HIDDEN + c];
            f->a[r][j] = gelu(f->u[r][j]);
        }
        for (int c = 0; c < HIDDEN; c++) {
            double z = s->parameter[EXAMPLE_B2][c];
            for (int j = 0; j < FFN; j++)
                z += f->a[r][j] * s->parameter[EXAMPLE_W2][c * FFN + j];
            f->y[r][c] = f->x[r][c] + f->keep[r][c] * z;
        }
    }
}

/* The loss is half the square of y, so its gradient is y. */
static void backward(struct sc_example_state *s, const struct forward *f)
{
    memset(s->gradient, 0, sizeof s->gradient);
    for (int r = 0; r < ROWS; r++) {
        double dz[HIDDEN], dn[HIDDEN] = {0};
        for (int c = 0; c < HIDDEN; c++) {
            dz[c] = f->keep[r][c] * f->y[r][c];
            s->gradient[EXAMPLE_B2][c] += dz[c];
        }
        for (int j = 0; j < FFN; j++) {
            double da = 0;
            for (int c = 0; c < HIDDEN; c++) {
                da += dz[c] * s->parameter[EXAMPLE_W2][c * FFN + j];
                s->gradient[EXAMPLE_W2][c * FFN + j] += dz[c] * f->a[r][j];
            }
            double du = da * gelu_slope(f->u[r][j]);
            s->gradient[EXAMPLE_B1][j] += du;
            for (int c = 0; c < HIDDEN; c++) {
                dn[c] += du * s->parameter[EXAMPLE_W1][j * HIDDEN + c];
                s->gradient[EXAMPLE_W1][j * HIDDEN + c] += du * f->n[r][c];
            }
        }
        for (int c = 0; c < HIDDEN; c++) {
            s->gradient[EXAMPLE_GAMMA][c] += dn[c] * f->normal[r][c];
            s->gradient[EXAMPLE_BETA][c] += dn[c];
        }
    }
}

/* Adam without decay, as torch.optim.AdamW: p -= rate mhat / (sqrt(vhat) + epsilon). */
static void adam(struct sc_example_state *s, int64_t step)
{
    double c1 = 1 - pow(beta1, (double)step + 1), c2 = 1 - pow(beta2, (double)step + 1);
    for (int t = 0; t < EXAMPLE_TENSORS; t++)
        for (int i = 0; i < sc_example_elements((enum sc_example_tensor)t); i++) {
            double g = s->gradient[t][i];
            s->m[t][i] = beta1 * s->m[t][i] + (1 - beta1) * g;
            s->v[t][i] = beta2 * s->v[t][i] + (1 - beta2) * g * g;
            s->parameter[t][i] -= rate * (s->m[t][i] / c1) / (sqrt(s->v[t][i] / c2) + epsilon);
        }
}

void sc_example_step(struct sc_example_state *state, int64_t step)
{
    struct forward f;
    forward(state, step, &f);
    backward(state, &f);
    adam(state, step);
}
