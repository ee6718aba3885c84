/* Linear products, forward and backward, and what a tensor group sums behind them. */
#include "plans/lowering.h"

void sc_lower_parameter_in(struct sc_lowering *l, enum sc_role role, uint32_t parameter)
{
    if (parameter != SC_NONE)
        sc_lower_in(l, role, sc_lower_parameter(l, parameter));
}

void sc_lower_gradient_out(struct sc_lowering *l, enum sc_role role, uint32_t parameter)
{
    if (parameter != SC_NONE)
        sc_lower_gradient(l, role, parameter);
}

void sc_lower_linear(struct sc_lowering *l, struct sc_label label, uint32_t in, uint32_t weight,
                     uint32_t bias, uint32_t out)
{
    struct sc_op *op = sc_lower_op(l, SC_GEMM, label);
    op->p.gemm.transpose_b = true;
    op->p.gemm.alpha = 1;
    sc_lower_in(l, SC_ROLE_A, in);
    sc_lower_parameter_in(l, SC_ROLE_B, weight);
    sc_lower_parameter_in(l, SC_ROLE_BIAS, bias);
    sc_lower_out(l, SC_ROLE_C, out);
}

void sc_lower_linear_data(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                          uint32_t weight, uint32_t din)
{
    label.pass = SC_PASS_BACKWARD_DATA;
    sc_lower_op(l, SC_GEMM, label)->p.gemm.alpha = 1;
    sc_lower_in(l, SC_ROLE_A, dout);
    sc_lower_parameter_in(l, SC_ROLE_B, weight);
    sc_lower_out(l, SC_ROLE_C, din);
}

void sc_lower_linear_weight(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                            uint32_t in, uint32_t weight, uint32_t bias, bool ordered)
{
    label.pass = SC_PASS_BACKWARD_WEIGHT;
    struct sc_op *op = sc_lower_op(l, SC_GEMM, label);
    op->p.gemm.transpose_a = true;
    op->p.gemm.alpha = 1;
    sc_lower_in(l, SC_ROLE_A, dout);
    sc_lower_in(l, SC_ROLE_B, in);
    sc_lower_gradient(l, SC_ROLE_C, weight);
    sc_lower_gradient_out(l, SC_ROLE_BIAS_GRADIENT, bias);
    if (ordered)
        sc_lower_in(l, SC_ROLE_TOKEN, l->tensor_order);
    sc_lower_gradients_final(l);
}

void sc_lower_column_parallel_backward(struct sc_lowering *l, struct sc_label label, uint32_t dout,
                                       uint32_t in, uint32_t weight, uint32_t bias, uint32_t din,
                                       int64_t ranks)
{
    bool ordered = ranks > 1 && l->plan->mesh.synchronous_backward;
    sc_lower_linear_data(l, label, dout, weight, din);
    label.pass = SC_PASS_BACKWARD_DATA;
    if (ranks > 1)
        sc_lower_tensor_all_reduce(l, din, SC_SUM, label, ordered);
    sc_lower_linear_weight(l, label, dout, in, weight, bias, ordered);
}
