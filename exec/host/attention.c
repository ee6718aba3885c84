/* Causal fused attention from library products and the kernels in between. */
#include "exec/host/attention.h"

#include "exec/host/blas.h"

/* Queries of one block: the score blocks of a unit then fit a core's second-level cache. */
#define BLOCK 64

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Rows of scores keep a distance that is no multiple of a page, for the sake of the caches. */
static int64_t score_stride(int64_t sequence)
{
    return (sequence + 15) / 16 * 16 + 16;
}

size_t sc_attention_workspace(int64_t sequence)
{
    size_t floats = (size_t)(2 * BLOCK * score_stride(sequence) + BLOCK);
    return (floats * sizeof(float) + 63) / 64 * 64;
}

/* One (batch, head) and a member's scratch. */
struct unit {
    const struct sc_attention *a;
    const struct sc_kernels *kernels;
    const struct sc_blas *blas;
    int64_t head;
    const float *q, *k, *v;
    float *o;
    const float *d_o;
    float *lse;
    float *dq, *dk, *dv;
    float *scores, *dp, *delta;
    int64_t stride;   /* of scores and dp */
    uint64_t index;   /* global index of the unit's first score */
    bool first_group; /* dk and dv are written, not added to */
};

static struct unit unit_of(const struct sc_attention *a, int part, int64_t batch, int64_t head)
{
    const int64_t d = a->head_size, group = a->heads / a->kv_heads, kv = head / group;
    const int64_t row = batch * a->sequence;
    const int64_t q = row * a->qkv_stride + head * d;
    const int64_t k = row * a->qkv_stride + (a->heads + kv) * d, v = k + a->kv_heads * d;
    const int64_t o = row * a->o_stride + head * d;
    const int64_t plane = (a->batch_base + batch) * a->total_heads + a->head_base + head;
    struct unit u = {
        .a = a,
        .kernels = sc_kernels_select(),
        .blas = sc_blas_get(),
        .head = head,
        .q = a->qkv + q,
        .k = a->qkv + k,
        .v = a->qkv + v,
        .o = a->o + o,
        .lse = a->lse + (batch * a->heads + head) * a->sequence,
        .stride = score_stride(a->sequence),
        .index = (uint64_t)plane * (uint64_t)(a->sequence * a->sequence),
        .first_group = head % group == 0,
    };
    u.scores = a->workspace + (size_t)part * (sc_attention_workspace(a->sequence) / sizeof(float));
    u.dp = u.scores + BLOCK * u.stride;
    u.delta = u.dp + BLOCK * u.stride;
    if (a->dqkv) {
        u.d_o = a->d_o + o;
        u.dq = a->dqkv + q;
        u.dk = a->dqkv + k;
        u.dv = a->dqkv + v;
    }
    return u;
}

/* A block of queries [first, first + rows) sees the first `columns` keys. */
struct block {
    int64_t first, rows, columns;
};

static struct sc_attention_block_args block_args(const struct unit *u, struct block b)
{
    const int64_t sequence = u->a->sequence;
    struct sc_attention_block_args args = {
        .scores = u->scores,
        .dp = u->dp,
        .lse = u->lse + b.first,
        .delta = u->delta,
        .columns = b.columns,
        .stride = u->stride,
        .dp_stride = u->stride,
        .first_query = b.first,
        .index = u->index + (uint64_t)(b.first * sequence),
        .index_stride = (uint64_t)sequence,
        .draw = u->a->draw,
    };
    return args;
}

/* out[rows, columns] = alpha x y^T, x a block of query-like rows, y key-like rows. */
static void scores_of(const struct unit *u, struct block b, float alpha, const float *x,
                      int64_t x_stride, const float *y, float *out)
{
    struct sc_sgemm g = {
        .transpose_b = true,
        .m = b.rows,
        .n = b.columns,
        .k = u->a->head_size,
        .lda = x_stride,
        .ldb = u->a->qkv_stride,
        .ldc = u->stride,
        .alpha = alpha,
        .a = x + b.first * x_stride,
        .b = y,
        .c = out,
    };
    u->blas->sgemm(&g);
}

/* out[rows, head_size] = alpha p y: rows of probabilities times key-like rows. */
static void gather(const struct unit *u, struct block b, float alpha, const float *p,
                   const float *y, float *out, int64_t out_stride)
{
    struct sc_sgemm g = {
        .m = b.rows,
        .n = u->a->head_size,
        .k = b.columns,
        .lda = u->stride,
        .ldb = u->a->qkv_stride,
        .ldc = out_stride,
        .alpha = alpha,
        .a = p,
        .b = y,
        .c = out + b.first * out_stride,
    };
    u->blas->sgemm(&g);
}

/* out[columns, head_size] += alpha p^T x: what a block of queries gives to the keys it sees. */
static void scatter(const struct unit *u, struct block b, float alpha, const float *p,
                    const float *x, int64_t x_stride, float *out)
{
    struct sc_sgemm g = {
        .transpose_a = true,
        .accumulate = true,
        .m = b.columns,
        .n = u->a->head_size,
        .k = b.rows,
        .lda = u->stride,
        .ldb = x_stride,
        .ldc = u->a->qkv_stride,
        .alpha = alpha,
        .a = p,
        .b = x + b.first * x_stride,
        .c = out,
    };
    u->blas->sgemm(&g);
}

static void forward_block(const struct unit *u, struct block b)
{
    const struct sc_attention *a = u->a;
    scores_of(u, b, a->scale, u->q, a->qkv_stride, u->k, u->scores);
    u->kernels->attention_softmax(block_args(u, b), 0, b.rows);
    gather(u, b, 1.0f, u->scores, u->v, u->o, a->o_stride);
}

/* delta = rowsum(do o) equals rowsum(dp p) of the dropped probabilities. */
static void row_delta(const struct unit *u, struct block b)
{
    const int64_t stride = u->a->o_stride;
    struct sc_attention_block_args args = {
        .scores = u->o + b.first * stride,
        .dp = (float *)u->d_o + b.first * stride,
        .delta = u->delta,
        .columns = u->a->head_size,
        .stride = stride,
        .dp_stride = stride,
    };
    u->kernels->attention_delta(args, 0, b.rows);
}

static void backward_block(const struct unit *u, struct block b)
{
    const struct sc_attention *a = u->a;
    row_delta(u, b);
    scores_of(u, b, a->scale, u->q, a->qkv_stride, u->k, u->scores);
    scores_of(u, b, 1.0f, u->d_o, a->o_stride, u->v, u->dp);
    u->kernels->attention_gradient(block_args(u, b), 0, b.rows);
    scatter(u, b, 1.0f, u->scores, u->d_o, a->o_stride, u->dv);
    scatter(u, b, a->scale, u->dp, u->q, a->qkv_stride, u->dk);
    gather(u, b, a->scale, u->dp, u->k, u->dq, a->qkv_stride);
}

static void clear(const struct unit *u, float *x)
{
    const struct sc_fill_args fill = {.y = x, .value = 0.0f};
    for (int64_t r = 0; r < u->a->sequence; r++)
        u->kernels->fill(fill, r * u->a->qkv_stride, r * u->a->qkv_stride + u->a->head_size);
}

static struct block block_at(const struct sc_attention *a, int64_t first)
{
    int64_t rows = least(BLOCK, a->sequence - first);
    struct block b = {first, rows, first + rows};
    return b;
}

static void forward_part(void *arg, int part, int parts)
{
    const struct sc_attention *a = arg;
    struct sc_part mine = sc_part_of(a->batch * a->heads, 1, part, parts);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        struct unit u = unit_of(a, part, i / a->heads, i % a->heads);
        for (int64_t first = 0; first < a->sequence; first += BLOCK)
            forward_block(&u, block_at(a, first));
    }
}

static void backward_head(const struct unit *u)
{
    if (u->first_group) {
        clear(u, u->dk);
        clear(u, u->dv);
    }
    for (int64_t first = 0; first < u->a->sequence; first += BLOCK)
        backward_block(u, block_at(u->a, first));
}

static void backward_part(void *arg, int part, int parts)
{
    const struct sc_attention *a = arg;
    const int64_t group = a->heads / a->kv_heads;
    struct sc_part mine = sc_part_of(a->batch * a->kv_heads, 1, part, parts);
    for (int64_t i = mine.begin; i < mine.end; i++)
        for (int64_t j = 0; j < group; j++) {
            struct unit u = unit_of(a, part, i / a->kv_heads, i % a->kv_heads * group + j);
            backward_head(&u);
        }
}

void sc_attention_forward(struct sc_team *team, const struct sc_attention *a)
{
    struct sc_attention copy = *a;
    copy.dqkv = NULL;
    sc_team_run(team, forward_part, &copy);
}

void sc_attention_backward(struct sc_team *team, const struct sc_attention *a)
{
    struct sc_attention copy = *a;
    sc_team_run(team, backward_part, &copy);
}
