/*
 * One operation to do: its operands as addresses and shapes, and the machine that does it.
 *
 * What an operation is made of (which kernels with which arguments) is the same on every machine
 * and stands in op_functions.h; what differs is how a kernel is started, rows are copied, bytes are
 * cleared. Each of these appends to the call's stream or does it at once: within one call they
 * follow one another.
 */
#ifndef STEPCAST_EXEC_OP_CALL_H
#define STEPCAST_EXEC_OP_CALL_H

#include "exec/rank_data.h"

/* `rows` runs of `bytes`, at distances of `from_pitch` and `to_pitch` bytes. */
struct sc_row_copy {
    const void *from;
    void *to;
    size_t bytes, from_pitch, to_pitch;
    int64_t rows;
};

struct sc_call;

struct sc_call_machine {
    /* The kernel over 0..count of its range. `args` is its struct; `columns` is the width of a row,
     * for the shape of a device's grid. */
    enum sc_status (*kernel)(const struct sc_call *call, enum sc_kernel_id kernel, const void *args,
                             int64_t count, int64_t columns, struct sc_error *err);
    /* Between any two places; `from` may also be memory of the process that stays as it is. */
    enum sc_status (*copy)(const struct sc_call *call, const struct sc_row_copy *copy,
                           struct sc_error *err);
    enum sc_status (*clear)(const struct sc_call *call, void *to, size_t bytes,
                            struct sc_error *err);
};

struct sc_call {
    const struct sc_rank_data *rank;
    const struct sc_list *list;
    const struct sc_op *op;
    uint32_t index; /* of the operation in its list */
    int64_t step;
    const struct sc_call_machine *machine;
    void *where;   /* the machine's own: a team of threads, a stream */
    char *scratch; /* sc_op_scratch bytes that kernels can use */
};

/* An operand of a call: its data and shape; data NULL where the operation has none. */
struct sc_view {
    char *data;
    const struct sc_value *value;
    bool accumulate; /* the operand is inout */
};
struct sc_view sc_call_view(const struct sc_call *call, enum sc_role role);

int64_t sc_call_index(const struct sc_call *call, const struct sc_index *index);
/* Where a call's random words come from. */
struct sc_draw sc_call_draw(const struct sc_call *call, uint32_t site, float probability);
/* out[columns] (+)= sum over the rows of x. */
enum sc_status sc_call_column_sums(const struct sc_call *call, const struct sc_view *x,
                                   const struct sc_view *out, struct sc_error *err);
/* Copies the rows of one view into another of the same shape and type. */
enum sc_status sc_call_copy(const struct sc_call *call, const struct sc_view *from,
                            const struct sc_view *to, struct sc_error *err);
/* "rank 1: operation 17 (gemm, layer 0 / ...) in step 2: " before a failure's text. */
enum sc_status sc_call_name_failure(const struct sc_call *call, enum sc_status status,
                                    struct sc_error *err);

/* sc_start_<kernel>(call, args, count, columns, err). */
#define SC_START_KERNEL(name, type, range)                                                         \
    static inline enum sc_status sc_start_##name(const struct sc_call *call,                       \
                                                 const struct type *args, int64_t count,           \
                                                 int64_t columns, struct sc_error *err)            \
    {                                                                                              \
        return call->machine->kernel(call, SC_KERNEL_##name, args, count, columns, err);           \
    }
SC_KERNEL_LIST(SC_START_KERNEL)
#undef SC_START_KERNEL

#endif
