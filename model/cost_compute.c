/* Rooflines of products, attention, memory-bound work and Adam. */
#include "model/cost_compute.h"

#include "model/cost_cores.h"
#include "model/gemm_tiles.h"

#define PRODUCTS_FORWARD 2.0  /* scores, values */
#define PRODUCTS_BACKWARD 5.0 /* scores again, dV, dP, dQ, dK */
#define FLOP_PER_ENTRY 2.0    /* a multiplication and an addition */
#define FP32_BYTES 4.0

static enum sc_status fail_missing(const struct sc_hardware *hardware, const char *path,
                                   enum sc_hw_peak peak, struct sc_error *err)
{
    return sc_fail(err, SC_BAD_INPUT, "hardware %s: %s.%s: found nothing, expected a number",
                   hardware->name, path, sc_hw_peak_names[peak]);
}

static void use_memory(const struct sc_hardware *hardware, double bytes, double share,
                       struct sc_cost *out)
{
    out->use[SC_COST_MEMORY].amount = bytes;
    out->use[SC_COST_MEMORY].rate = hardware->device.memory_draw * share;
}

static enum sc_status use_flops(const struct sc_hardware *hardware, enum sc_dtype dtype,
                                double flops, double share, struct sc_cost *out,
                                struct sc_error *err)
{
    enum sc_hw_peak peak = sc_hardware_peak_of(dtype);
    if (!(hardware->device.peak[peak] > 0.0)) {
        return fail_missing(hardware, "device.peak_tflop_per_s", peak, err);
    }
    out->use[SC_COST_COMPUTE].amount = flops;
    out->use[SC_COST_COMPUTE].rate = hardware->device.peak[peak] * share;
    return SC_OK;
}

static bool on_cores(const struct sc_hardware *hardware)
{
    return hardware->device.kind == SC_CORES;
}

/* ---- products ---- */

double sc_gemm_flops(const struct sc_gemm_work *work)
{
    return FLOP_PER_ENTRY * (double)work->batch * (double)work->m * (double)work->n *
           (double)work->k;
}

double sc_gemm_bytes(const struct sc_gemm_work *work)
{
    double input = sc_dtype_bytes(work->input), output = sc_dtype_bytes(work->output);
    double m = (double)work->m, n = (double)work->n, k = (double)work->k;
    double passes = work->accumulate ? 2.0 : 1.0;
    return (double)work->batch * ((m * k + k * n) * input + m * n * output * passes) +
           work->epilogue_bytes;
}

enum sc_status sc_cost_gemm(const struct sc_hardware *hardware, const struct sc_gemm_work *work,
                            struct sc_cost *out, struct sc_error *err)
{
    enum sc_hw_peak peak = sc_hardware_peak_of(work->input);
    double share = hardware->compute.gemm_peak_share[peak];
    struct sc_cost cost;
    if (on_cores(hardware)) {
        return sc_cost_cores_gemm(hardware, work, out, err);
    }
    sc_cost_clear(&cost);
    if (!(share > 0.0)) {
        return fail_missing(hardware, "compute.gemm.peak_share", peak, err);
    }
    SC_TRY(
        use_flops(hardware, work->input, sc_gemm_tiled_flops(hardware, work), share, &cost, err));
    use_memory(hardware, sc_gemm_bytes(work), hardware->compute.memory_bound_share, &cost);
    cost.latency_s = hardware->compute.gemm_fixed_s;
    sc_cost_set_bound(hardware, &cost);
    *out = cost;
    return SC_OK;
}

/* ---- attention ---- */

double sc_attention_flops(const struct sc_attention_work *work)
{
    double q = (double)work->query_length, k = (double)work->key_length;
    double pairs = work->causal ? q * k - q * q / 2.0 : q * k;
    double products = work->backward ? PRODUCTS_BACKWARD : PRODUCTS_FORWARD;
    return products * FLOP_PER_ENTRY * (double)work->batch * (double)work->query_heads * pairs *
           (double)work->head_size;
}

double sc_attention_bytes(const struct sc_attention_work *work)
{
    double size = sc_dtype_bytes(work->dtype), d = (double)work->head_size;
    double query_rows = (double)work->query_heads * (double)work->query_length;
    double key_rows = (double)work->key_value_heads * (double)work->key_length;
    double forward = 2.0 * (query_rows + key_rows) * d * size; /* q, out; k, v */
    double passes = work->backward ? 2.0 : 1.0;                /* and their gradients */
    return (double)work->batch * (passes * forward + FP32_BYTES * query_rows);
}

enum sc_status sc_cost_attention(const struct sc_hardware *hardware,
                                 const struct sc_attention_work *work, struct sc_cost *out,
                                 struct sc_error *err)
{
    double share = work->backward ? hardware->compute.attention_backward_share
                                  : hardware->compute.attention_forward_share;
    double fixed = hardware->compute.attention_fixed_s;
    struct sc_cost cost;
    if (on_cores(hardware)) {
        return sc_cost_cores_attention(hardware, work, out, err);
    }
    sc_cost_clear(&cost);
    if (!(share > 0.0)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "hardware %s: compute.attention: found nothing, expected an object",
                       hardware->name);
    }
    SC_TRY(use_flops(hardware, work->dtype, sc_attention_flops(work), share, &cost, err));
    use_memory(hardware, sc_attention_bytes(work), hardware->compute.memory_bound_share, &cost);
    cost.latency_s = fixed >= 0.0 ? fixed : hardware->compute.gemm_fixed_s;
    sc_cost_set_bound(hardware, &cost);
    *out = cost;
    return SC_OK;
}

/* ---- memory-bound work ---- */

/* The kind's figures, and where it has none the general ones. */
static struct sc_hw_kind figures_of(const struct sc_hardware *hardware, const char *kind)
{
    const struct sc_hw_kind *row = sc_hardware_kind(hardware, kind);
    struct sc_hw_kind out = {.bandwidth_share = hardware->compute.memory_bound_share,
                             .fixed_s = hardware->compute.memory_bound_fixed_s};
    if (row != NULL) {
        out.bandwidth_share =
            row->bandwidth_share > 0.0 ? row->bandwidth_share : out.bandwidth_share;
        out.fixed_s = row->fixed_s >= 0.0 ? row->fixed_s : out.fixed_s;
        out.s_per_element = row->s_per_element;
        out.cache_bytes = row->cache_bytes;
    }
    return out;
}

/* Bytes, and elements where the units bound them, proceed together. */
static void price_kind(const struct sc_hardware *hardware, const struct sc_hw_kind *kind,
                       double bytes, double elements, struct sc_cost *out)
{
    if (on_cores(hardware)) {
        sc_cost_cores_memory_bound(hardware, kind, bytes, elements, out);
        return;
    }
    sc_cost_clear(out);
    out->latency_s = kind->fixed_s;
    if (kind->s_per_element > 0.0) {
        out->use[SC_COST_COMPUTE].amount = elements;
        out->use[SC_COST_COMPUTE].rate = 1.0 / kind->s_per_element;
    }
    use_memory(hardware, bytes, kind->bandwidth_share, out);
    sc_cost_set_bound(hardware, out);
}

void sc_cost_memory_bound(const struct sc_hardware *hardware, const char *kind, double bytes,
                          double elements, struct sc_cost *out)
{
    const struct sc_hw_kind figures = figures_of(hardware, kind);
    price_kind(hardware, &figures, bytes, elements, out);
}

static enum sc_status host_adam(const struct sc_hardware *hardware, double parameters,
                                struct sc_cost *out, struct sc_error *err)
{
    const struct sc_hw_place_info *host = &hardware->places[SC_HW_HOST];
    if (!host->present || !(hardware->host_adam.bytes_per_parameter > 0.0)) {
        return sc_fail(err, SC_BAD_INPUT, "hardware %s: %s: found nothing, expected an object",
                       hardware->name, host->present ? "host_adam" : "places.host");
    }
    out->use[SC_COST_HOST_MEMORY].amount = parameters * hardware->host_adam.bytes_per_parameter;
    out->use[SC_COST_HOST_MEMORY].rate = host->bandwidth * hardware->host_adam.bandwidth_share;
    return SC_OK;
}

static void device_adam(const struct sc_hardware *hardware, double parameters, double bytes,
                        struct sc_cost *out)
{
    double fixed = hardware->compute.adam_fixed_s;
    const struct sc_hw_kind figures = {
        .bandwidth_share = hardware->compute.adam_share,
        .s_per_element = hardware->compute.adam_s_per_element,
        .cache_bytes = hardware->compute.adam_cache_bytes,
        .fixed_s = fixed >= 0.0 ? fixed : hardware->compute.memory_bound_fixed_s,
    };
    price_kind(hardware, &figures, bytes, parameters, out);
}

enum sc_status sc_cost_adam(const struct sc_hardware *hardware, enum sc_hw_place place,
                            double parameters, double bytes, struct sc_cost *out,
                            struct sc_error *err)
{
    struct sc_cost cost;
    sc_cost_clear(&cost);
    if (place == SC_HW_DEVICE) {
        device_adam(hardware, parameters, bytes, &cost);
    } else {
        SC_TRY(host_adam(hardware, parameters, &cost, err));
        sc_cost_set_bound(hardware, &cost);
    }
    *out = cost;
    return SC_OK;
}
