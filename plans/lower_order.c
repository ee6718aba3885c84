/*
 * The order of parts. A micro-batch's forward order is a list; its backward order is the same list
 * read backwards (what automatic differentiation does), so one rule gives both.
 *
 * A sub-layer of a piece is an *item*: in, out (which issues the all-reduce), end (which waits for
 * it), then the norm of the next item. With several pieces the order is software-pipelined: the end
 * and norm of an item come between "in" and "out" of the next one, so that the all-reduce of one
 * piece runs behind the products of another.
 */
#include "plans/lowering.h"

static void put(struct sc_lowering *l, enum sc_part_kind kind, int layer, int piece)
{
    l->order[l->parts++] =
        (struct sc_part){.kind = (uint8_t)kind, .layer = (int16_t)layer, .piece = (int16_t)piece};
}

/* Item number n of a micro-batch, counted in issue order: (layer, sub-layer, piece). Items -pieces
 * to -1 are the embedding's: their end is nothing but the first norm. */
static void put_end(struct sc_lowering *l, int64_t item)
{
    int pieces = (int)l->pieces;
    int piece = (int)((item + pieces) % pieces);
    if (item < 0) {
        put(l, PART_NORM1, 0, piece);
        return;
    }
    int layer = (int)(item / (2 * pieces));
    if (item / pieces % 2 == 0) {
        put(l, PART_END1, layer, piece);
        put(l, PART_NORM2, layer, piece);
    } else {
        put(l, PART_END2, layer, piece);
        put(l, PART_NORM1, layer + 1, piece);
    }
}

static void order_plain(struct sc_lowering *l)
{
    for (int layer = 0; layer < l->model->layers; layer++)
        for (int kind = PART_NORM1; kind <= PART_END2; kind++)
            put(l, (enum sc_part_kind)kind, layer, 0);
    put(l, PART_NORM1, (int)l->model->layers, 0);
}

/* techniques: the windows of an item's all-reduce are "in" of the next item. */
static void order_inter_layer(struct sc_lowering *l)
{
    int64_t pieces = l->pieces, items = 2 * l->model->layers * pieces;
    for (int64_t item = -pieces; item < -1; item++)
        put_end(l, item);
    for (int64_t item = 0; item < items; item++) {
        int layer = (int)(item / (2 * pieces)), piece = (int)(item % pieces);
        bool attention = item / pieces % 2 == 0;
        put(l, attention ? PART_IN1 : PART_IN2, layer, piece);
        put_end(l, item - 1);
        put(l, attention ? PART_OUT1 : PART_OUT2, layer, piece);
    }
    put_end(l, items - 1);
}

/* Nothing crosses the end of a layer; the attention's pieces follow each other whole. */
static void order_intra_layer(struct sc_lowering *l)
{
    int pieces = (int)l->pieces;
    for (int layer = 0; layer < l->model->layers; layer++) {
        for (int i = 0; i < pieces; i++) {
            put(l, PART_NORM1, layer, i);
            put(l, PART_IN1, layer, i);
            put(l, PART_OUT1, layer, i);
        }
        for (int i = 0; i < pieces; i++) {
            if (i == 0) {
                put(l, PART_END1, layer, 0);
                put(l, PART_NORM2, layer, 0);
            }
            put(l, PART_IN2, layer, i);
            if (i + 1 < pieces) {
                put(l, PART_END1, layer, i + 1);
                put(l, PART_NORM2, layer, i + 1);
            }
            put(l, PART_OUT2, layer, i);
        }
        for (int i = 0; i < pieces; i++)
            put(l, PART_END2, layer, i);
    }
    for (int i = 0; i < pieces; i++)
        put(l, PART_NORM1, (int)l->model->layers, i);
}

static void find_spans(struct sc_lowering *l)
{
    for (size_t i = 0; i < l->parts; i++) {
        if (l->order[i].layer >= l->model->layers) /* the final norm */
            continue;
        struct sc_layer_span *span = &l->spans[l->order[i].layer];
        if (span->end == 0)
            span->first = (uint32_t)i;
        span->end = (uint32_t)i + 1;
    }
}

enum sc_status sc_lower_order(struct sc_lowering *l, struct sc_error *err)
{
    size_t room = ((size_t)l->model->layers * 8 + 1) * (size_t)l->pieces;
    size_t layers = (size_t)l->model->layers;
    l->order = sc_arena_alloc(&l->arena, room, sizeof(*l->order));
    l->layers = sc_arena_alloc(&l->arena, layers, sizeof(*l->layers));
    l->x = sc_arena_alloc(&l->arena, layers + 1, sizeof(*l->x));
    l->spans = sc_arena_alloc(&l->arena, layers, sizeof(*l->spans));
    if (!l->order || !l->layers || !l->x || !l->spans)
        return sc_fail_memory(err, room * sizeof(*l->order));
    if (l->pieces == 1)
        order_plain(l);
    else if (l->plan->domino.schedule == SC_DOMINO_INTER_LAYER)
        order_inter_layer(l);
    else
        order_intra_layer(l);
    find_spans(l);
    return SC_OK;
}

void sc_lower_forward(struct sc_lowering *l)
{
    uint32_t first = SC_NONE;
    for (int64_t i = 0; i < l->model->layers; i++)
        sc_lower_forget_layer(l, (int)i);
    for (size_t i = 0; i < l->parts; i++) {
        struct sc_part part = l->order[i];
        if (part.kind == PART_IN1 && part.piece == 0) {
            if (first != SC_NONE)
                sc_mark_segment(l->program, l->class, first, (uint32_t)l->list->ops.count);
            first = (uint32_t)l->list->ops.count;
        }
        sc_lower_part_forward(l, part, SC_PASS_FORWARD);
    }
}

/* A layer's activations again: its own parts in the order that they had. */
static void lower_recompute(struct sc_lowering *l, int layer)
{
    sc_lower_forget_layer(l, layer);
    for (size_t i = l->spans[layer].first; i < l->spans[layer].end; i++)
        if (l->order[i].layer == layer)
            sc_lower_part_forward(l, l->order[i], SC_PASS_RECOMPUTE);
}

void sc_lower_backward(struct sc_lowering *l)
{
    uint32_t first = SC_NONE;
    int again = (int)l->model->layers; /* layers from here on have their activations */
    if (l->plan->recompute.granularity == SC_RECOMPUTE_NONE)
        again = 0;
    for (size_t i = l->parts; i-- > 0;) {
        struct sc_part part = l->order[i];
        if (part.kind == PART_END2 && part.piece == l->pieces - 1) {
            if (first != SC_NONE)
                sc_mark_segment(l->program, l->class, first, (uint32_t)l->list->ops.count);
            first = (uint32_t)l->list->ops.count;
        }
        if (part.layer < again) {
            again = part.layer;
            lower_recompute(l, again);
        }
        sc_lower_part_backward(l, part);
    }
}
