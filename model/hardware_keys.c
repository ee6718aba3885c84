/* Every key of stepcast.hw/1: its unit, its range, where it goes. */
#include "model/hardware_keys.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* A rate, share or capacity is never zero: what is not there is left out. */
#define LEAST 1e-6
/* Bytes are counted in 64 bits; 1e18 is more than any machine has. */
#define MOST_BYTES 1e18
#define US (1.0 / SC_US_PER_S)
#define NS (1.0 / SC_GIGA)

#define OF(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#define END                                                                                        \
    {                                                                                              \
        NULL, SC_KEY_INT, 0, 0, false, 0.0, 0.0, 0.0, NULL                                         \
    }
#define NUMBER(name, type, member, required, unit, min, max)                                       \
    {                                                                                              \
        name, SC_KEY_NUMBER, OF(type, member), required, unit, min, max, NULL                      \
    }
#define WHOLE(name, type, member, required, min, max)                                              \
    {                                                                                              \
        name, SC_KEY_INT, OF(type, member), required, 1.0, min, max, NULL                          \
    }
#define TEXT(name, type, member)                                                                   \
    {                                                                                              \
        name, SC_KEY_TEXT, OF(type, member), false, 1.0, 0.0, 0.0, NULL                            \
    }
#define NAMED(name, type, member, names)                                                           \
    {                                                                                              \
        name, SC_KEY_ENUM, OF(type, member), false, 1.0, 0.0, 0.0, names                           \
    }
#define FLAG(name, type, member)                                                                   \
    {                                                                                              \
        name, SC_KEY_BOOL, OF(type, member), false, 1.0, 0.0, 1.0, NULL                            \
    }
#define BANDWIDTH(name, type, member, required)                                                    \
    NUMBER(name, type, member, required, SC_GIGA, LEAST, SC_LARGEST)
#define SHARE(name, type, member, required) NUMBER(name, type, member, required, 1.0, LEAST, 2.0)
#define TIME_US(name, type, member, required)                                                      \
    NUMBER(name, type, member, required, US, 0.0, SC_LARGEST)
#define TIME_NS(name, type, member) NUMBER(name, type, member, false, NS, 0.0, SC_LARGEST)
#define BYTES(name, type, member, required)                                                        \
    NUMBER(name, type, member, required, 1.0, 0.0, MOST_BYTES)

const char *const sc_hw_place_names[SC_HW_PLACE_COUNT + 1] = {"device", "pinned", "host", "disk",
                                                              NULL};
const char *const sc_hw_peak_names[SC_PEAK_COUNT + 1] = {"fp32", "tf32", "bf16", "fp16",
                                                         "fp8",  "int8", NULL};
const char *const sc_hw_layout_names[SC_LAYOUT_COUNT + 1] = {"socket", "pcie_switch", "rail", NULL};
static const char *const per_names[SC_PER_COUNT + 1] = {"device", "node", NULL};
static const char *const generation_names[SC_HW_GENERATION_COUNT + 1] = {
    "volta", "ampere", "hopper", "blackwell", NULL};
static const char *const cpu_names[SC_HW_CPU_COUNT + 1] = {"intel", "amd", NULL};
static const char *const intra_names[SC_HW_INTRA_COUNT + 1] = {"nvlink", "pci", NULL};
static const char *const device_kind_names[SC_DEVICE_KIND_COUNT + 1] = {"accelerator", "cores",
                                                                        NULL};

/* ---- sections ---- */

#define HW struct sc_hardware

const struct sc_key sc_hw_root_keys[] = {TEXT("name", HW, name), END};

static const struct sc_key node_keys[] = {
    WHOLE("devices", HW, node.devices, true, 1, SC_HW_DEVICES_MAX),
    WHOLE("sockets", HW, node.sockets, false, 1, 64),
    WHOLE("cores", HW, node.cores, false, 1, 1 << 16),
    END,
};
static const struct sc_key device_keys[] = {
    TEXT("name", HW, device.name),
    NAMED("kind", HW, device.kind, device_kind_names),
    NUMBER("multiprocessors", HW, device.multiprocessors, false, 1.0, 1.0, 1e6),
    BANDWIDTH("memory_bandwidth_gb_per_s", HW, device.memory_bandwidth, true),
    BANDWIDTH("core_memory_bandwidth_gb_per_s", HW, device.core_memory_bandwidth, false),
    END,
};
static const struct sc_key measured_on_keys[] = {
    TEXT("processor", HW, measured_on.processor),
    WHOLE("cores", HW, measured_on.cores, false, 1, 1 << 16),
    TEXT("library", HW, measured_on.library),
    END,
};
static const struct sc_key reserved_keys[] = {
    BYTES("context", HW, reserved.context, false),
    BYTES("per_communicator", HW, reserved.per_communicator, false),
    BYTES("workspace", HW, reserved.workspace, false),
    END,
};
static const struct sc_key collectives_keys[] = {TEXT("transport", HW, transport), END};
static const struct sc_key no_keys[] = {END};
static const struct sc_key gemm_keys[] = {
    TIME_US("fixed_us", HW, compute.gemm_fixed_s, true),
    NUMBER("k_offset", HW, compute.gemm_k_offset, false, 1.0, 0.0, 1e6),
    END,
};
static const struct sc_key attention_keys[] = {
    SHARE("forward_peak_share", HW, compute.attention_forward_share, true),
    SHARE("backward_peak_share", HW, compute.attention_backward_share, true),
    TIME_US("fixed_us", HW, compute.attention_fixed_s, false),
    END,
};
static const struct sc_key memory_bound_keys[] = {
    SHARE("bandwidth_share", HW, compute.memory_bound_share, true),
    TIME_US("fixed_us", HW, compute.memory_bound_fixed_s, true),
    END,
};
static const struct sc_key adam_keys[] = {
    NUMBER("bandwidth_share", HW, compute.adam_share, true, 1.0, LEAST, 100.0),
    TIME_US("fixed_us", HW, compute.adam_fixed_s, false),
    TIME_NS("ns_per_element", HW, compute.adam_s_per_element),
    BYTES("cache_bytes", HW, compute.adam_cache_bytes, false),
    END,
};
static const struct sc_key cores_keys[] = {
    SHARE("gemm_transposed_a_share", HW, compute.cores.gemm_transposed_a_share, false),
    SHARE("gemm_transposed_b_share", HW, compute.cores.gemm_transposed_b_share, false),
    SHARE("gemm_page_stride_share", HW, compute.cores.gemm_page_stride_share, false),
    TIME_NS("gemm_operand_ns_per_element", HW, compute.cores.gemm_operand_s),
    TIME_NS("gemm_transposed_b_ns_per_element", HW, compute.cores.gemm_transposed_b_s),
    TIME_US("gemm_team_us", HW, compute.cores.gemm_team_s, false),
    TIME_NS("attention_forward_ns_per_query", HW, compute.cores.attention_s_per_query[0]),
    TIME_NS("attention_backward_ns_per_query", HW, compute.cores.attention_s_per_query[1]),
    TIME_NS("attention_forward_ns_per_element", HW, compute.cores.attention_s_per_element[0]),
    TIME_NS("attention_backward_ns_per_element", HW, compute.cores.attention_s_per_element[1]),
    TIME_US("memory_bound_team_us", HW, compute.cores.memory_bound_team_s, false),
    SHARE("memory_bound_parallel_efficiency", HW, compute.cores.memory_bound_efficiency, false),
    END,
};
static const struct sc_key issue_keys[] = {
    TIME_US("kernel_us", HW, issue.kernel_s, true),
    TIME_US("collective_us", HW, issue.collective_s, true),
    TIME_US("copy_us", HW, issue.copy_s, true),
    TIME_US("captured_us", HW, issue.captured_s, false),
    TIME_US("kernel_wait_us", HW, issue.kernel_wait_s, false),
    TIME_US("collective_wait_us", HW, issue.collective_wait_s, false),
    WHOLE("steps_ahead", HW, issue.steps_ahead, false, 1, 2),
    END,
};
static const struct sc_key host_adam_keys[] = {
    NUMBER("bytes_per_parameter", HW, host_adam.bytes_per_parameter, true, 1.0, LEAST, 1e6),
    SHARE("bandwidth_share", HW, host_adam.bandwidth_share, true),
    END,
};

static const char *const device_others[] = {"peak_tflop_per_s", "parallel_efficiency", NULL};
static const char *const collectives_others[] = {"convention", "levels", NULL};
static const char *const compute_others[] = {"gemm", "attention", "memory_bound",
                                             "adam", "cores",     NULL};
static const char *const gemm_others[] = {"peak_share", "tiles", NULL};
static const char *const memory_bound_others[] = {"kinds", NULL};

const struct sc_hw_section sc_hw_sections[] = {
    {NULL, "measured_on", false, measured_on_keys, NULL},
    {NULL, "node", true, node_keys, NULL},
    {NULL, "device", true, device_keys, device_others},
    {NULL, "reserved_bytes", false, reserved_keys, NULL},
    {NULL, "collectives", false, collectives_keys, collectives_others},
    {NULL, "compute", true, no_keys, compute_others},
    {"compute", "gemm", true, gemm_keys, gemm_others},
    {"compute", "attention", false, attention_keys, NULL},
    {"compute", "memory_bound", true, memory_bound_keys, memory_bound_others},
    {"compute", "adam", true, adam_keys, NULL},
    {"compute", "cores", false, cores_keys, NULL},
    {NULL, "issue", true, issue_keys, NULL},
    {NULL, "host_adam", false, host_adam_keys, NULL},
    {NULL, NULL, false, NULL, NULL},
};

/* ---- lists ---- */

#define PLACE struct sc_hw_place_info
#define PLACE_COMMON                                                                               \
    NUMBER("capacity_bytes", PLACE, capacity_bytes, true, 1.0, 1.0, MOST_BYTES),                   \
        NAMED("per", PLACE, per, per_names)

const struct sc_key sc_hw_place_keys[SC_HW_PLACE_COUNT][8] = {
    {PLACE_COMMON, END},
    {PLACE_COMMON, END},
    {PLACE_COMMON, BANDWIDTH("bandwidth_gb_per_s", PLACE, bandwidth, true),
     BANDWIDTH("raw_bandwidth_gb_per_s", PLACE, raw_bandwidth, false), END},
    {PLACE_COMMON, BANDWIDTH("read_bandwidth_gb_per_s", PLACE, read_bandwidth, true),
     BANDWIDTH("write_bandwidth_gb_per_s", PLACE, write_bandwidth, true),
     BANDWIDTH("raw_bandwidth_gb_per_s", PLACE, raw_bandwidth, false), END},
};

#define LINK struct sc_hw_link
const struct sc_key sc_hw_link_keys[] = {
    WHOLE("level", LINK, level, false, 0, 2),
    TEXT("transport", LINK, transport),
    NAMED("per", LINK, per, per_names),
    WHOLE("count", LINK, count, false, 1, 1 << 16),
    BANDWIDTH("raw_bandwidth_gb_per_s", LINK, raw_bandwidth, false),
    BANDWIDTH("bandwidth_gb_per_s", LINK, bandwidth, true),
    TIME_US("latency_us", LINK, latency_s, true),
    FLAG("to_host", LINK, to_host),
    NUMBER("pageable_share", LINK, pageable_share, false, 1.0, LEAST, 1.0),
    END,
};

#define ALPHA_BETA struct sc_hw_alpha_beta
const struct sc_key sc_hw_alpha_beta_keys[] = {
    TIME_US("latency_us", ALPHA_BETA, latency_s, true),
    TIME_US("latency_us_per_step", ALPHA_BETA, per_step_s, false),
    TIME_US("latency_us_per_node_step", ALPHA_BETA, per_node_step_s, false),
    BANDWIDTH("bus_bandwidth_gb_per_s", ALPHA_BETA, bus_bandwidth, true),
    END,
};

#define LEVEL struct sc_hw_level
const struct sc_key sc_hw_level_keys[] = {
    NUMBER("held_multiprocessors", LEVEL, held_multiprocessors, false, 1.0, 0.0, 1e6),
    NUMBER("slowdown_beside_compute", LEVEL, slowdown_beside_compute, false, 1.0, 1.0, 1e6),
    NUMBER("memory_bytes_per_byte", LEVEL, memory_bytes_per_byte, false, 1.0, 0.0, 1e6),
    END,
};

#define VARIANT struct sc_hw_variant
#define MOST_RANKS (1 << 30)
const struct sc_key sc_hw_variant_keys[] = {
    WHOLE("minimum_members_per_node", VARIANT, minimum_members_per_node, false, 1, MOST_RANKS),
    WHOLE("maximum_members_per_node", VARIANT, maximum_members_per_node, false, 1, MOST_RANKS),
    WHOLE("minimum_nodes", VARIANT, minimum_nodes, false, 1, MOST_RANKS),
    WHOLE("maximum_nodes", VARIANT, maximum_nodes, false, 1, MOST_RANKS),
    NUMBER("minimum_bytes", VARIANT, minimum_bytes, false, 1.0, 0.0, SC_LARGEST),
    NUMBER("maximum_bytes", VARIANT, maximum_bytes, false, 1.0, 0.0, SC_LARGEST),
    END,
};

#define NCCL struct sc_hw_nccl
#define MOST_CHANNELS 256
const struct sc_key sc_hw_nccl_keys[] = {
    {"generation", SC_KEY_ENUM, OF(NCCL, generation), true, 1.0, 0.0, 0.0, generation_names},
    NAMED("cpu", NCCL, cpu, cpu_names),
    NAMED("intra", NCCL, intra, intra_names),
    WHOLE("ring_channels", NCCL, ring_channels, true, 1, MOST_CHANNELS),
    BANDWIDTH("ring_bandwidth_gb_per_s", NCCL, ring_bandwidth, true),
    WHOLE("tree_channels", NCCL, tree_channels, false, 0, MOST_CHANNELS),
    BANDWIDTH("tree_bandwidth_gb_per_s", NCCL, tree_bandwidth, false),
    WHOLE("nvls_heads", NCCL, nvls_heads, false, 0, MOST_CHANNELS),
    BANDWIDTH("nvls_bandwidth_gb_per_s", NCCL, nvls_bandwidth, false),
    BANDWIDTH("nvls_inter_bandwidth_gb_per_s", NCCL, nvls_inter_bandwidth, false),
    WHOLE("nvls_multiprocessors", NCCL, nvls_multiprocessors, false, 0, MOST_CHANNELS),
    NUMBER("network_limit_factor", NCCL, network_limit_factor, false, 1.0, LEAST, 1e6),
    SHARE("efficiency", NCCL, efficiency, false),
    TIME_US("call_us", NCCL, call_s, false),
    END,
};

#define KIND struct sc_hw_kind
const struct sc_key sc_hw_kind_keys[] = {
    NUMBER("bandwidth_share", KIND, bandwidth_share, false, 1.0, LEAST, 100.0),
    TIME_NS("ns_per_element", KIND, s_per_element),
    BYTES("cache_bytes", KIND, cache_bytes, false),
    TIME_US("fixed_us", KIND, fixed_s, false),
    END,
};

#define OF_PEAK(name, peak, unit, max)                                                             \
    {                                                                                              \
        name, SC_KEY_NUMBER, (peak) * sizeof(double), sizeof(double), false, unit, LEAST, max,     \
            NULL                                                                                   \
    }
#define BY_PEAK(unit, max)                                                                         \
    {                                                                                              \
        OF_PEAK("fp32", SC_PEAK_FP32, unit, max), OF_PEAK("tf32", SC_PEAK_TF32, unit, max),        \
            OF_PEAK("bf16", SC_PEAK_BF16, unit, max), OF_PEAK("fp16", SC_PEAK_FP16, unit, max),    \
            OF_PEAK("fp8", SC_PEAK_FP8, unit, max), OF_PEAK("int8", SC_PEAK_INT8, unit, max), END  \
    }
const struct sc_key sc_hw_peak_keys[] = BY_PEAK(SC_TERA, SC_LARGEST);
const struct sc_key sc_hw_share_keys[] = BY_PEAK(1.0, 2.0);

/* ---- neutral values ---- */

void sc_hardware_neutral(struct sc_hardware *out)
{
    memset(out, 0, sizeof(*out));
    out->node.sockets = 1;
    out->compute.cores.gemm_transposed_a_share = 1.0;
    out->compute.cores.gemm_transposed_b_share = 1.0;
    out->compute.cores.gemm_page_stride_share = 1.0;
    out->compute.cores.memory_bound_efficiency = 1.0;
    out->compute.attention_fixed_s = -1.0;
    out->compute.adam_fixed_s = -1.0;
    out->issue.steps_ahead = 2;
    sc_hw_uncertainty_neutral(&out->uncertainty);
    out->places[SC_HW_PINNED].per = SC_PER_NODE;
    out->places[SC_HW_HOST].per = SC_PER_NODE;
    out->places[SC_HW_DISK].per = SC_PER_NODE;
}

void sc_hw_link_neutral(const char *name, const struct sc_hardware *hardware,
                        struct sc_hw_link *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->count = hardware->node.devices;
    out->to_host = strcmp(name, "pcie") == 0;
    out->pageable_share = 1.0;
}

void sc_hw_level_neutral(const char *name, struct sc_hw_level *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->held_multiprocessors = -1.0;
    out->slowdown_beside_compute = 1.0;
}

void sc_hw_nccl_neutral(struct sc_hw_nccl *out)
{
    memset(out, 0, sizeof(*out));
    out->network_limit_factor = 1.0;
    out->efficiency = 1.0;
}

void sc_hw_variant_neutral(struct sc_hw_variant *out)
{
    memset(out, 0, sizeof(*out));
    out->minimum_members_per_node = 1;
    out->maximum_members_per_node = MOST_RANKS;
    out->minimum_nodes = 1;
    out->maximum_nodes = MOST_RANKS;
    out->maximum_bytes = SC_LARGEST;
}

void sc_hw_kind_neutral(const char *name, struct sc_hw_kind *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->fixed_s = -1.0;
}
