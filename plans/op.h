/*
 * Operation kinds: one row a kind. A kind says which operands it takes (by role), which class of
 * work it is, and nothing about techniques. Adding a kind means a row here, a price in sim/ and an
 * implementation a backend; static assertions on SC_OP_KIND_COUNT point to each place.
 */
#ifndef STEPCAST_PLANS_OP_H
#define STEPCAST_PLANS_OP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X(name, text, class). Operands by kind (roles; * optional; ~ may be accumulated into: inout):
 *   gemm                 C~ = alpha op(A) op(B) + BIAS*; BIAS_GRADIENT*~ = column sums of A (a
 *                        weight gradient: A is dY, read transposed). op(A) [M,K], op(B) [K,N].
 *   batched_gemm         the same for every (sequence of the batch, head); an operand with
 *                        batch*heads*sequence rows is a stack of [sequence, sequence] score
 *                        matrices, one with batch*sequence rows packs its heads side by side in
 *                        columns of head_size; fewer heads than `heads` are shared by neighbours
 *   attention            QKV -> O, LSE (fp32, one a query head row)
 *   attention_backward   DO, QKV, O, LSE -> DQKV
 *   norm                 X, GAMMA, BETA* -> Y, STAT (fp32 [rows, 2]: mean, 1/deviation)
 *   norm_backward        DY, X, STAT, GAMMA -> DX~, DGAMMA~, DBETA*~ (inout DX: added to it)
 *   activation           X -> Y; gated: X is [rows, 2f] = gate | up, Y [rows, f]
 *   activation_backward  X, DY -> DX (DX may be DY itself, then inout DX and no DY; gated never)
 *   softmax              X -> Y (scale, causal mask); in place: inout Y and no X
 *   softmax_backward     Y, DX inout (holds dY before, dX after)
 *   cross_entropy_max    X (logits) -> MAX
 *   cross_entropy_sum    X, MAX, INDEX -> SUM, TARGET_LOGIT, PROBABILITIES (exp(x - max)); in
 *                        place: inout PROBABILITIES and no X
 *   cross_entropy_loss   SUM, MAX, TARGET_LOGIT, INDEX, PROBABILITIES -> LOSS, DX; in place:
 *                        inout DX and no PROBABILITIES
 *   embedding            INDEX, WEIGHT -> Y (rows outside this rank's range give zero)
 *   embedding_backward   INDEX, DY -> DWEIGHT~
 *   add                  A, B -> C (B's rows repeat cyclically)
 *   scale, cast          X -> Y
 *   reduce_rows          X -> Y~: Y[r] = factor * sum over j of X[r + j R], R = rows of Y
 *   rope                 Y inout: the query and key heads of packed rows
 *   dropout              X, BIAS*, RESIDUAL*, STATE -> Y, MASK*
 *   dropout_backward     DY, STATE or MASK -> DX, BIAS_GRADIENT*~; in place: inout DX and no DY
 *   norm_squares         GRADIENT -> NORM~ (fp32 [1,1])
 *   adam                 GRADIENT, STATE -> PARAMETER (inout; out where there is a MASTER*),
 *                        MASTER*, M, V inout
 *   scalar               STATE inout; NORM* in
 *   initialize           Y out (init list only)
 *   all_reduce, broadcast   Y inout
 *   reduce_scatter       X, Y out: this rank's shard (may be a view of X: then inout X only)
 *   all_gather           X, Y likewise; in place: inout Y, which holds this rank's shard
 *   all_to_all, exchange X -> Y
 *   copy                 X -> Y (places from the values)
 *   next_batch           INDEX, TARGET out (pinned)
 *   read_out             X in (device) -> Y (host)
 *   host_wait            nothing
 * Any kind may also take operands of role TOKEN, in or out, of values without bytes.
 */
#define SC_OP_KIND_LIST(X)                                                                         \
    X(SC_GEMM, "gemm", SC_WORK_COMPUTE)                                                            \
    X(SC_BATCHED_GEMM, "batched_gemm", SC_WORK_COMPUTE)                                            \
    X(SC_ATTENTION, "attention", SC_WORK_COMPUTE)                                                  \
    X(SC_ATTENTION_BACKWARD, "attention_backward", SC_WORK_COMPUTE)                                \
    X(SC_NORM_FORWARD, "norm", SC_WORK_MEMORY)                                                     \
    X(SC_NORM_BACKWARD, "norm_backward", SC_WORK_MEMORY)                                           \
    X(SC_ACTIVATION_FORWARD, "activation", SC_WORK_MEMORY)                                         \
    X(SC_ACTIVATION_BACKWARD, "activation_backward", SC_WORK_MEMORY)                               \
    X(SC_SOFTMAX, "softmax", SC_WORK_MEMORY)                                                       \
    X(SC_SOFTMAX_BACKWARD, "softmax_backward", SC_WORK_MEMORY)                                     \
    X(SC_CROSS_ENTROPY_MAX, "cross_entropy_max", SC_WORK_MEMORY)                                   \
    X(SC_CROSS_ENTROPY_SUM, "cross_entropy_sum", SC_WORK_MEMORY)                                   \
    X(SC_CROSS_ENTROPY_LOSS, "cross_entropy_loss", SC_WORK_MEMORY)                                 \
    X(SC_EMBEDDING, "embedding", SC_WORK_MEMORY)                                                   \
    X(SC_EMBEDDING_BACKWARD, "embedding_backward", SC_WORK_MEMORY)                                 \
    X(SC_ADD, "add", SC_WORK_MEMORY)                                                               \
    X(SC_SCALE, "scale", SC_WORK_MEMORY)                                                           \
    X(SC_CAST, "cast", SC_WORK_MEMORY)                                                             \
    X(SC_REDUCE_ROWS, "reduce_rows", SC_WORK_MEMORY)                                               \
    X(SC_ROPE, "rope", SC_WORK_MEMORY)                                                             \
    X(SC_DROPOUT, "dropout", SC_WORK_MEMORY)                                                       \
    X(SC_DROPOUT_BACKWARD, "dropout_backward", SC_WORK_MEMORY)                                     \
    X(SC_NORM_SQUARES, "norm_squares", SC_WORK_MEMORY)                                             \
    X(SC_ADAM, "adam", SC_WORK_MEMORY)                                                             \
    X(SC_SCALAR, "scalar", SC_WORK_MEMORY)                                                         \
    X(SC_INITIALIZE, "initialize", SC_WORK_MEMORY)                                                 \
    X(SC_ALL_REDUCE, "all_reduce", SC_WORK_COLLECTIVE)                                             \
    X(SC_REDUCE_SCATTER, "reduce_scatter", SC_WORK_COLLECTIVE)                                     \
    X(SC_ALL_GATHER, "all_gather", SC_WORK_COLLECTIVE)                                             \
    X(SC_ALL_TO_ALL, "all_to_all", SC_WORK_COLLECTIVE)                                             \
    X(SC_BROADCAST, "broadcast", SC_WORK_COLLECTIVE)                                               \
    X(SC_EXCHANGE, "exchange", SC_WORK_COLLECTIVE)                                                 \
    X(SC_COPY, "copy", SC_WORK_COPY)                                                               \
    X(SC_NEXT_BATCH, "next_batch", SC_WORK_HOST)                                                   \
    X(SC_READ_OUT, "read_out", SC_WORK_COPY)                                                       \
    X(SC_HOST_WAIT, "host_wait", SC_WORK_HOST)

enum sc_work { SC_WORK_COMPUTE, SC_WORK_MEMORY, SC_WORK_COLLECTIVE, SC_WORK_COPY, SC_WORK_HOST };

enum sc_op_kind {
#define SC_OP_KIND_ENUM(name, text, work) name,
    SC_OP_KIND_LIST(SC_OP_KIND_ENUM)
#undef SC_OP_KIND_ENUM
        SC_OP_KIND_COUNT
};

/* What an operand is to its operation. */
#define SC_ROLE_LIST(X)                                                                            \
    X(SC_ROLE_A, "a")                                                                              \
    X(SC_ROLE_B, "b")                                                                              \
    X(SC_ROLE_C, "c")                                                                              \
    X(SC_ROLE_BIAS, "bias")                                                                        \
    X(SC_ROLE_BIAS_GRADIENT, "bias_gradient")                                                      \
    X(SC_ROLE_X, "x")                                                                              \
    X(SC_ROLE_Y, "y")                                                                              \
    X(SC_ROLE_DX, "dx")                                                                            \
    X(SC_ROLE_DY, "dy")                                                                            \
    X(SC_ROLE_GAMMA, "gamma")                                                                      \
    X(SC_ROLE_BETA, "beta")                                                                        \
    X(SC_ROLE_DGAMMA, "dgamma")                                                                    \
    X(SC_ROLE_DBETA, "dbeta")                                                                      \
    X(SC_ROLE_STAT, "stat")                                                                        \
    X(SC_ROLE_RESIDUAL, "residual")                                                                \
    X(SC_ROLE_MASK, "mask")                                                                        \
    X(SC_ROLE_STATE, "state")                                                                      \
    X(SC_ROLE_WEIGHT, "weight")                                                                    \
    X(SC_ROLE_DWEIGHT, "dweight")                                                                  \
    X(SC_ROLE_INDEX, "index")                                                                      \
    X(SC_ROLE_TARGET, "target")                                                                    \
    X(SC_ROLE_QKV, "qkv")                                                                          \
    X(SC_ROLE_O, "o")                                                                              \
    X(SC_ROLE_LSE, "lse")                                                                          \
    X(SC_ROLE_DO, "do")                                                                            \
    X(SC_ROLE_DQKV, "dqkv")                                                                        \
    X(SC_ROLE_MAX, "max")                                                                          \
    X(SC_ROLE_SUM, "sum")                                                                          \
    X(SC_ROLE_TARGET_LOGIT, "target_logit")                                                        \
    X(SC_ROLE_PROBABILITIES, "probabilities")                                                      \
    X(SC_ROLE_LOSS, "loss")                                                                        \
    X(SC_ROLE_PARAMETER, "parameter")                                                              \
    X(SC_ROLE_GRADIENT, "gradient")                                                                \
    X(SC_ROLE_MASTER, "master")                                                                    \
    X(SC_ROLE_M, "m")                                                                              \
    X(SC_ROLE_V, "v")                                                                              \
    X(SC_ROLE_NORM, "norm")                                                                        \
    X(SC_ROLE_TOKEN, "token")

enum sc_role {
#define SC_ROLE_ENUM(name, text) name,
    SC_ROLE_LIST(SC_ROLE_ENUM)
#undef SC_ROLE_ENUM
        SC_ROLE_COUNT
};

const char *sc_op_kind_name(enum sc_op_kind kind);
enum sc_work sc_op_kind_work(enum sc_op_kind kind);
/* -1 when no kind is called so. */
int sc_op_kind_from_name(const char *name);
const char *sc_role_name(enum sc_role role);

#endif
