/* Prices on a processor's cores. */
#include "model/cost_cores.h"

#include <math.h>

static enum sc_status fail_missing(const struct sc_hardware *hardware, const char *path,
                                   enum sc_hw_peak peak, struct sc_error *err)
{
    return sc_fail(err, SC_BAD_INPUT, "hardware %s: %s.%s: found nothing, expected a number",
                   hardware->name, path, sc_hw_peak_names[peak]);
}

/* ---- a rank's cores ---- */

static double cores_of(const struct sc_hardware *hardware)
{
    return hardware->device.multiprocessors;
}

/* A rank with several cores shares an operation out among them. */
static double team_seconds(const struct sc_hardware *hardware, double team_s)
{
    return cores_of(hardware) > 1.0 ? team_s : 0.0;
}

/* How many cores' worth of memory-bound work a rank does: efficiency falls from one core to all. */
static double memory_bound_speed(const struct sc_hardware *hardware)
{
    double cores = cores_of(hardware), all = (double)hardware->node.cores;
    double loss = 1.0 - hardware->compute.cores.memory_bound_efficiency;
    double part = all > 1.0 && cores > 1.0 ? (cores - 1.0) / (all - 1.0) : 0.0;
    return cores * (1.0 - loss * fmin(part, 1.0));
}

/* ---- products ---- */

static bool divides(int64_t size, int parts)
{
    return size >= (int64_t)parts * SC_PRODUCT_GRAIN;
}

void sc_product_grid(int64_t m, int64_t n, int parts, int *rows, int *columns)
{
    int64_t best = -1;
    for (int r = 1; r <= parts; r++) {
        if (parts % r != 0) {
            continue;
        }
        int c = parts / r;
        int64_t cost = m * c + n * r;
        cost += divides(m, r) ? 0 : (int64_t)1 << 40;
        cost += divides(n, c) ? 0 : (int64_t)1 << 40;
        if (best < 0 || cost < best) {
            best = cost;
            *rows = r;
            *columns = c;
        }
    }
}

/* Of the peak share, by how the operands lie. */
static double layout_share(const struct sc_hardware *hardware, const struct sc_gemm_work *work)
{
    double share = 1.0;
    share *= work->transpose_b ? hardware->compute.cores.gemm_transposed_b_share : 1.0;
    share *= work->transpose_a ? hardware->compute.cores.gemm_transposed_a_share : 1.0;
    share *= work->page_stride ? hardware->compute.cores.gemm_page_stride_share : 1.0;
    return share;
}

/* What one core copies, in seconds. */
static double copy_seconds(const struct sc_hardware *hardware, const struct sc_gemm_work *work,
                           double m, double n)
{
    double k = (double)work->k, batch = (double)work->batch;
    double copied = m * k + k * n, transposed = work->transpose_b ? k * n : 0.0;
    return batch * (copied * hardware->compute.cores.gemm_operand_s +
                    transposed * hardware->compute.cores.gemm_transposed_b_s);
}

static void use_memory(const struct sc_hardware *hardware, double bytes, struct sc_cost *out)
{
    out->use[SC_COST_MEMORY].amount = bytes;
    out->use[SC_COST_MEMORY].rate =
        hardware->device.memory_draw * hardware->compute.memory_bound_share;
}

enum sc_status sc_cost_cores_gemm(const struct sc_hardware *hardware,
                                  const struct sc_gemm_work *work, struct sc_cost *out,
                                  struct sc_error *err)
{
    enum sc_hw_peak peak = sc_hardware_peak_of(work->input);
    double share = hardware->compute.gemm_peak_share[peak];
    double rate = hardware->device.peak[peak] * share;
    int rows = 1, columns = 1, cores = (int)fmax(cores_of(hardware), 1.0);
    if (!(rate > 0.0)) {
        return fail_missing(hardware,
                            share > 0.0 ? "device.peak_tflop_per_s" : "compute.gemm.peak_share",
                            peak, err);
    }
    sc_product_grid(work->m, work->n, cores, &rows, &columns);
    double one_core = hardware->device.stated_peak[peak] * share;
    double copies = copy_seconds(hardware, work, (double)work->m / rows, (double)work->n / columns);
    sc_cost_clear(out);
    out->use[SC_COST_COMPUTE].amount =
        sc_gemm_flops(work) / layout_share(hardware, work) + copies * one_core * cores;
    out->use[SC_COST_COMPUTE].rate = rate;
    use_memory(hardware, sc_gemm_bytes(work), out);
    out->latency_s = hardware->compute.gemm_fixed_s +
                     team_seconds(hardware, hardware->compute.cores.gemm_team_s);
    sc_cost_set_bound(hardware, out);
    return SC_OK;
}

/* ---- attention ---- */

enum sc_status sc_cost_cores_attention(const struct sc_hardware *hardware,
                                       const struct sc_attention_work *work, struct sc_cost *out,
                                       struct sc_error *err)
{
    int way = work->backward ? 1 : 0;
    enum sc_hw_peak peak = sc_hardware_peak_of(work->dtype);
    double share = work->backward ? hardware->compute.attention_backward_share
                                  : hardware->compute.attention_forward_share;
    double rate = hardware->device.peak[peak] * share;
    double fixed = hardware->compute.attention_fixed_s;
    if (!(share > 0.0)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "hardware %s: compute.attention: found nothing, expected an object",
                       hardware->name);
    }
    if (!(rate > 0.0)) {
        return fail_missing(hardware, "device.peak_tflop_per_s", peak, err);
    }
    double queries = (double)work->batch * (double)work->query_heads * (double)work->query_length;
    double beside =
        queries * (hardware->compute.cores.attention_s_per_query[way] +
                   (double)work->head_size * hardware->compute.cores.attention_s_per_element[way]);
    sc_cost_clear(out);
    out->use[SC_COST_COMPUTE].amount =
        sc_attention_flops(work) + beside * rate / hardware->device.units_speed;
    out->use[SC_COST_COMPUTE].rate = rate;
    use_memory(hardware, sc_attention_bytes(work), out);
    out->latency_s = (fixed >= 0.0 ? fixed : hardware->compute.gemm_fixed_s) +
                     team_seconds(hardware, hardware->compute.cores.memory_bound_team_s);
    sc_cost_set_bound(hardware, out);
    return SC_OK;
}

/* ---- memory-bound work ---- */

void sc_cost_cores_memory_bound(const struct sc_hardware *hardware, const struct sc_hw_kind *kind,
                                double bytes, double elements, struct sc_cost *out)
{
    double part = hardware->device.memory_bandwidth / (double)hardware->node.devices;
    double crowd = fmax(hardware->device.memory_draw / part, 1.0);
    double beyond = fmax(bytes - kind->cache_bytes * cores_of(hardware), 0.0);
    double arithmetic = elements * kind->s_per_element / memory_bound_speed(hardware);
    double memory = beyond / (part * kind->bandwidth_share);
    double alone = arithmetic + memory / crowd;
    sc_cost_clear(out);
    out->latency_s =
        kind->fixed_s + team_seconds(hardware, hardware->compute.cores.memory_bound_team_s);
    out->use[SC_COST_COMPUTE].amount = alone; /* the cores are busy, or wait, all the time */
    out->use[SC_COST_COMPUTE].rate = 1.0;
    if (memory > 0.0) {
        /* Demanding the memory for this long makes it last arithmetic + memory where all ranks do
         * the same at once. */
        out->use[SC_COST_MEMORY].amount = beyond;
        out->use[SC_COST_MEMORY].rate = beyond * crowd / (arithmetic + memory);
    }
    out->bound = memory > arithmetic ? "memory" : "compute";
}
