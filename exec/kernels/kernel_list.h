/*
 * Every kernel: X(name, argument struct, range). kernels.h describes them one by one.
 *
 * The range says how a device's grid covers [begin, end):
 *   ROWS      a thread block takes a row (or a block of rows), its threads share the columns
 *   ELEMENTS  a thread takes single elements
 *   SHARES    a thread block takes an even share of the range, its threads share the columns
 * Any grid does the whole range; blocks have a multiple of 32 threads, at most 1024. By the C
 * compiler a range is split over a team in multiples of a row or of SC_ELEMENT_GRAIN elements.
 *
 * A kernel is started with three arguments: its struct by value, int64_t begin, int64_t end; its
 * symbol is sc_<name>.
 */
#ifndef STEPCAST_EXEC_KERNELS_KERNEL_LIST_H
#define STEPCAST_EXEC_KERNELS_KERNEL_LIST_H

enum sc_kernel_range_kind { SC_RANGE_ROWS, SC_RANGE_ELEMENTS, SC_RANGE_SHARES };

#define SC_KERNEL_LIST(X)                                                                          \
    X(norm_forward, sc_norm_args, ROWS)                                                            \
    X(norm_backward, sc_norm_backward_args, ROWS)                                                  \
    X(activation_forward, sc_activation_args, ROWS)                                                \
    X(activation_backward, sc_activation_args, ROWS)                                               \
    X(softmax_forward, sc_softmax_args, ROWS)                                                      \
    X(softmax_backward, sc_softmax_args, ROWS)                                                     \
    X(attention_dropout, sc_attention_dropout_args, ROWS)                                          \
    X(attention_softmax, sc_attention_block_args, ROWS)                                            \
    X(attention_gradient, sc_attention_block_args, ROWS)                                           \
    X(attention_delta, sc_attention_block_args, ROWS)                                              \
    X(cross_entropy_max, sc_cross_entropy_args, ROWS)                                              \
    X(cross_entropy_sum, sc_cross_entropy_args, ROWS)                                              \
    X(cross_entropy_loss, sc_cross_entropy_args, ROWS)                                             \
    X(embedding_forward, sc_embedding_args, ROWS)                                                  \
    X(embedding_backward, sc_embedding_backward_args, SHARES)                                      \
    X(add, sc_add_args, ROWS)                                                                      \
    X(scale, sc_scale_args, ROWS)                                                                  \
    X(cast, sc_cast_args, ELEMENTS)                                                                \
    X(fill, sc_fill_args, ELEMENTS)                                                                \
    X(reduce_rows, sc_reduce_rows_args, ELEMENTS)                                                  \
    X(rope, sc_rope_args, ROWS)                                                                    \
    X(dropout_forward, sc_dropout_args, ROWS)                                                      \
    X(dropout_backward, sc_dropout_args, ROWS)                                                     \
    X(adamw, sc_adamw_args, ELEMENTS)                                                              \
    X(norm_squares, sc_norm_squares_args, ROWS)                                                    \
    X(squares_sum, sc_squares_sum_args, ROWS)                                                      \
    X(state_advance, sc_state_advance_args, ELEMENTS)                                              \
    X(state_clip, sc_state_clip_args, ELEMENTS)                                                    \
    X(init_normal, sc_init_normal_args, ROWS)

/* Numbers of the kernels: SC_KERNEL_norm_forward, ... */
enum sc_kernel_id {
#define SC_KERNEL_ID(kernel, type, range) SC_KERNEL_##kernel,
    SC_KERNEL_LIST(SC_KERNEL_ID)
#undef SC_KERNEL_ID
        SC_KERNEL_COUNT
};

enum { SC_ELEMENT_GRAIN = 64 };

#endif
