/* Variants of kinds that cost differently. */
#include "plans/op_cost_name.h"

#include "model/architecture.h"

static const char *const norms[2][SC_NORM_COUNT] = {
    {[SC_LAYER_NORM] = "norm", [SC_RMS_NORM] = "norm_rms"},
    {[SC_LAYER_NORM] = "norm_backward", [SC_RMS_NORM] = "norm_backward_rms"},
};

static const char *const activations[2][SC_ACTIVATION_COUNT] = {
    {[SC_GELU_TANH] = "activation",
     [SC_GELU_ERF] = "activation_gelu_erf",
     [SC_RELU] = "activation_relu",
     [SC_SWIGLU] = "activation_swiglu"},
    {[SC_GELU_TANH] = "activation_backward",
     [SC_GELU_ERF] = "activation_backward_gelu_erf",
     [SC_RELU] = "activation_backward_relu",
     [SC_SWIGLU] = "activation_backward_swiglu"},
};

const char *sc_op_cost_name(const struct sc_op *op)
{
    switch (op->kind) {
    case SC_NORM_FORWARD:
        return norms[0][op->p.norm.kind];
    case SC_NORM_BACKWARD:
        return norms[1][op->p.norm.kind];
    case SC_ACTIVATION_FORWARD:
        return activations[0][op->p.activation.kind];
    case SC_ACTIVATION_BACKWARD:
        return activations[1][op->p.activation.kind];
    case SC_DROPOUT:
        return op->p.dropout.probability > 0 ? "dropout_drawn" : "dropout";
    case SC_DROPOUT_BACKWARD:
        return op->p.dropout.probability > 0 ? "dropout_backward_drawn" : "dropout_backward";
    default:
        return sc_op_kind_name((enum sc_op_kind)op->kind);
    }
}
