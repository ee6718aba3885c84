/*
 * Causal fused attention: softmax(scale Q K^T) V without a score matrix in memory (FlashAttention,
 * Dao et al. 2022, with whole rows of scores a block of queries at a time instead of the online
 * softmax: what a core's cache holds makes that the better trade).
 *
 * Operands (fp32, row-major, token-major, `sequence` rows a batch):
 *   qkv  [batch sequence, (heads + 2 kv_heads) head_size]: query heads, key heads, value heads
 *   o    [batch sequence, heads head_size]
 *   lse  [batch heads sequence]: log sum exp of the scaled scores, saved for the backward
 * Query head i uses key and value head i / (heads / kv_heads).
 * Dropout: element (b, head, i, j) of the probabilities has the global index
 *   (((batch_base + b) total_heads + head_base + head) sequence + i) sequence + j.
 */
#ifndef STEPCAST_EXEC_HOST_ATTENTION_H
#define STEPCAST_EXEC_HOST_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "exec/host/team.h"
#include "exec/kernels/kernels.h"

struct sc_attention {
    int64_t batch, sequence, heads, kv_heads, head_size;
    int64_t qkv_stride, o_stride; /* elements between rows */
    float scale;                  /* usually 1 / sqrt(head_size) */
    const float *qkv;
    float *o;         /* backward: read */
    float *lse;       /* backward: read */
    const float *d_o; /* backward: gradient of o, o_stride */
    float *dqkv;      /* backward: written, qkv_stride */
    float *workspace; /* sc_attention_workspace bytes for each member of the team */
    int64_t batch_base, head_base, total_heads; /* dropout only */
    struct sc_draw draw;                        /* probability 0: none */
};

/*
 * Bytes of workspace for one member of a team (multiple of 64); the whole workspace is that times
 * the team's size, one behind the other.
 */
size_t sc_attention_workspace(int64_t sequence);

/*
 * Units of (batch, head) forward and (batch, key head) backward are dealt to the members; every
 * unit is computed by one, in one order: the same bits for every team. No allocation, cannot fail.
 * FLOPs (causal half): forward 2, backward 5 products of batch heads sequence^2 head_size each.
 */
void sc_attention_forward(struct sc_team *team, const struct sc_attention *a);
void sc_attention_backward(struct sc_team *team, const struct sc_attention *a);

#endif
