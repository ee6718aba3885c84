/* GELU (tanh and erf forms), ReLU, SwiGLU. */
#include "exec/kernels/kernel_source.h"

INLINE float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* 0.5 x (1 + tanh(u)) = x sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3): one exp. */
#define GELU_SLOPE 1.5957691216057308f /* 2 sqrt(2/pi) */
#define GELU_CUBIC 0.044715f

INLINE float gelu_tanh(float x)
{
    return x * sigmoid(GELU_SLOPE * (x + GELU_CUBIC * x * x * x));
}

INLINE float gelu_tanh_slope(float x)
{
    float s = sigmoid(GELU_SLOPE * (x + GELU_CUBIC * x * x * x));
    return s + x * s * (1.0f - s) * GELU_SLOPE * (1.0f + 3.0f * GELU_CUBIC * x * x);
}

#define ROOT_HALF 0.70710678118654752f         /* 1 / sqrt(2) */
#define ROOT_HALF_OVER_PI 0.39894228040143268f /* 1 / sqrt(2 pi) */

INLINE float gelu_erf(float x)
{
    return 0.5f * x * (1.0f + erff(x * ROOT_HALF));
}

INLINE float gelu_erf_slope(float x)
{
    return 0.5f * (1.0f + erff(x * ROOT_HALF)) + x * ROOT_HALF_OVER_PI * expf(-0.5f * x * x);
}

INLINE float relu(float x)
{
    return x > 0.0f ? x : 0.0f;
}

INLINE float relu_slope(float x)
{
    return x > 0.0f ? 1.0f : 0.0f;
}

#define FORWARD(f)                                                                                 \
    FOR_ROW(r)                                                                                     \
    {                                                                                              \
        const elem *x = const_row_of(a.x, r, a.x_stride);                                          \
        elem *y = row_of(a.y, r, a.y_stride);                                                      \
        FOR_COL(c, a.columns)                                                                      \
        {                                                                                          \
            store(y, c, f(load(x, c)));                                                            \
        }                                                                                          \
    }

#define BACKWARD(slope)                                                                            \
    FOR_ROW(r)                                                                                     \
    {                                                                                              \
        const elem *x = const_row_of(a.x, r, a.x_stride);                                          \
        const elem *dy = const_row_of(a.dy, r, a.dy_stride);                                       \
        elem *dx = row_of(a.dx, r, a.dx_stride);                                                   \
        FOR_COL(c, a.columns)                                                                      \
        {                                                                                          \
            store(dx, c, load(dy, c) * slope(load(x, c)));                                         \
        }                                                                                          \
    }

INLINE void swiglu_row(const elem *x, elem *y, int64_t columns)
{
    FOR_COL(c, columns)
    {
        float gate = load(x, c);
        store(y, c, gate * sigmoid(gate) * load(x, columns + c));
    }
}

INLINE void swiglu_backward_row(const elem *x, const elem *dy, elem *dx, int64_t columns)
{
    FOR_COL(c, columns)
    {
        float gate = load(x, c), up = load(x, columns + c), d = load(dy, c), s = sigmoid(gate);
        store(dx, c, d * up * s * (1.0f + gate * (1.0f - s)));
        store(dx, columns + c, d * gate * s);
    }
}

KERNEL(activation_forward, sc_activation_args)
{
    switch (a.kind) {
    case SC_KERNEL_GELU_TANH:
        FORWARD(gelu_tanh)
        break;
    case SC_KERNEL_GELU_ERF:
        FORWARD(gelu_erf)
        break;
    case SC_KERNEL_RELU:
        FORWARD(relu)
        break;
    default:
        FOR_ROW(r)
        {
            swiglu_row(const_row_of(a.x, r, a.x_stride), row_of(a.y, r, a.y_stride), a.columns);
        }
    }
}

KERNEL(activation_backward, sc_activation_args)
{
    switch (a.kind) {
    case SC_KERNEL_GELU_TANH:
        BACKWARD(gelu_tanh_slope)
        break;
    case SC_KERNEL_GELU_ERF:
        BACKWARD(gelu_erf_slope)
        break;
    case SC_KERNEL_RELU:
        BACKWARD(relu_slope)
        break;
    default:
        FOR_ROW(r)
        {
            swiglu_backward_row(const_row_of(a.x, r, a.x_stride),
                                const_row_of(a.dy, r, a.dy_stride), row_of(a.dx, r, a.dx_stride),
                                a.columns);
        }
    }
}
#undef FORWARD
#undef BACKWARD
