/*
 * A machine: stepcast.hw/1. Nodes of equal devices, the places where bytes live, the links between
 * them, and what calibration found about operations. Nothing here knows a product: every number is
 * the profile's. Rates are per direction and per instance, in bytes a second; times in seconds;
 * capacities in bytes.
 *
 * Two kinds of device. An *accelerator* is what the node has `devices` of. *Cores* is a node
 * without accelerators: a rank owns cores / ranks of the node's cores; peaks are then per core, and
 * sc_hardware_divide turns the profile into one of `ranks` equal devices.
 *
 * The struct holds no pointers into itself and may be copied by value (sensitivity does).
 */
#ifndef STEPCAST_MODEL_HARDWARE_H
#define STEPCAST_MODEL_HARDWARE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "model/architecture.h"
#include "model/dtype.h"
#include "model/identity.h"

#define SC_HW_LINKS_MAX 16
#define SC_HW_LEVELS_MAX 8
#define SC_HW_VARIANTS_MAX 16
#define SC_HW_TILES_MAX 8
#define SC_HW_KINDS_MAX 48
#define SC_HW_DEVICES_MAX 256
#define SC_HW_CORES_MAX 256
#define SC_HW_NAME_SIZE 64

/* Same order as the text of the design: device, pinned, host, disk. */
enum sc_hw_place { SC_HW_DEVICE, SC_HW_PINNED, SC_HW_HOST, SC_HW_DISK, SC_HW_PLACE_COUNT };
extern const char *const sc_hw_place_names[SC_HW_PLACE_COUNT + 1];

/* Who shares one instance of a thing. */
enum sc_hw_per { SC_PER_DEVICE, SC_PER_NODE, SC_PER_COUNT };

/* Rates of arithmetic that a data sheet lists; SC_PEAK_COUNT entries, 0: not stated. */
enum sc_hw_peak {
    SC_PEAK_FP32,
    SC_PEAK_TF32,
    SC_PEAK_BF16,
    SC_PEAK_FP16,
    SC_PEAK_FP8,
    SC_PEAK_INT8,
    SC_PEAK_COUNT
};
extern const char *const sc_hw_peak_names[SC_PEAK_COUNT + 1];

enum sc_hw_device_kind { SC_ACCELERATOR, SC_CORES, SC_DEVICE_KIND_COUNT };

/* Rows of device_layout: which socket, switch, rail each device of a node hangs on. */
enum sc_hw_layout { SC_LAYOUT_SOCKET, SC_LAYOUT_PCIE_SWITCH, SC_LAYOUT_RAIL, SC_LAYOUT_COUNT };

struct sc_hw_place_info {
    bool present;
    enum sc_hw_per per; /* who shares the capacity, and the bandwidth if there is one */
    double capacity_bytes;
    double bandwidth;                       /* host: bytes a second; 0 elsewhere */
    double read_bandwidth, write_bandwidth; /* disk; 0 elsewhere */
    double raw_bandwidth;                   /* reports only; 0: not stated */
};

struct sc_hw_link {
    char name[SC_HW_NAME_SIZE];
    int64_t level; /* 1: between devices of a node, 2: between nodes; 0: carries no collectives */
    char transport[SC_HW_NAME_SIZE]; /* "" : any */
    enum sc_hw_per per;
    int64_t count;        /* instances in a node */
    double bandwidth;     /* one instance, one direction */
    double raw_bandwidth; /* reports only; 0: not stated */
    double latency_s;
    bool to_host;          /* copies between device and host go over it; neutral: "pcie" does */
    double pageable_share; /* of its bandwidth, when the host side is not pinned */
};

/* time = latency_s + per_step_s (steps - node_steps) + per_node_step_s node_steps + moved / bus;
 * steps = members - 1, node_steps = nodes - 1, both doubled for an all-reduce. */
struct sc_hw_alpha_beta {
    double latency_s, per_step_s, per_node_step_s;
    double bus_bandwidth;
};

/* Figures that hold for some groups only: the first variant whose ranges contain the group wins;
 * what it does not state stays as the level has it. */
struct sc_hw_variant {
    int64_t minimum_members_per_node, maximum_members_per_node;
    int64_t minimum_nodes, maximum_nodes;
    double minimum_bytes, maximum_bytes; /* of the whole tensor; the maximum is exclusive */
    bool has_all_reduce, has_other, has_held;
    struct sc_hw_alpha_beta all_reduce, other;
    double held_multiprocessors;
};

/* Whose constants NCCL's model takes. */
enum sc_hw_generation {
    SC_HW_VOLTA,
    SC_HW_AMPERE,
    SC_HW_HOPPER,
    SC_HW_BLACKWELL,
    SC_HW_GENERATION_COUNT
};
enum sc_hw_cpu { SC_HW_INTEL, SC_HW_AMD, SC_HW_CPU_COUNT };
enum sc_hw_intra { SC_HW_INTRA_NVLINK, SC_HW_INTRA_PCI, SC_HW_INTRA_COUNT };

/* What NCCL's search finds for a group of all devices of each node, and what its model needs to
 * know beside it (model/collective_nccl.h). */
struct sc_hw_nccl {
    enum sc_hw_generation generation;
    enum sc_hw_cpu cpu;
    enum sc_hw_intra intra;                           /* what joins devices of a node */
    int64_t ring_channels, tree_channels, nvls_heads; /* 0: no tree, no NVLS */
    double ring_bandwidth, tree_bandwidth;            /* of one channel */
    double nvls_bandwidth, nvls_inter_bandwidth;      /* of one head; inter 0: no limit */
    int64_t nvls_multiprocessors;                     /* that NVLS holds */
    /* On NCCL's limits of trees between nodes, which stand for a generation's usual network. */
    double network_limit_factor;
    double efficiency; /* factor on bandwidths; neutral 1 */
    double call_s;     /* on top of NCCL's latency */
};

struct sc_hw_level {
    char name[SC_HW_NAME_SIZE];
    int link; /* index of the link of that name */
    /* Bus bandwidth 0: not stated, NCCL's model prices it. A level has either or both. */
    struct sc_hw_alpha_beta all_reduce, other;
    bool has_nccl;
    struct sc_hw_nccl nccl;
    /* Taken from the device's units while a collective runs (of a core that several ranks share,
     * that part of each rank's share); negative: not stated, what NCCL's model says or nothing. */
    double held_multiprocessors;
    /* How much longer a collective takes while the device computes (1: not at all), and bytes of
     * device memory that it moves for each byte on the wire. */
    double slowdown_beside_compute, memory_bytes_per_byte;
    int variant_count;
    struct sc_hw_variant variants[SC_HW_VARIANTS_MAX];
};

/* A correction for one kind of memory-bound operation. */
struct sc_hw_kind {
    char name[SC_HW_NAME_SIZE]; /* the operation kind's name: "activation", "norm", ... */
    double bandwidth_share;     /* 0: as compute.memory_bound */
    double s_per_element;       /* 0: memory is the only bound; on cores: of one core */
    /* Cores: operands of one operation up to so many bytes stay in a core's part of the cache; only
     * what is beyond counts as memory traffic. */
    double cache_bytes;
    double fixed_s; /* negative: as compute.memory_bound */
};

/* Standard deviations of ln(measured / priced): how far prices are off. */
struct sc_hw_deviation {
    char name[SC_HW_NAME_SIZE]; /* an operation kind or a variant of one, as in compute's kinds */
    double deviation;
};

struct sc_hw_uncertainty {
    double machine; /* common to everything: another day, another machine of the kind */
    double neutral; /* of one shape of a kind that is not listed */
    int kind_count;
    struct sc_hw_deviation kinds[SC_HW_KINDS_MAX]; /* of one shape */
};

struct sc_hardware {
    char name[SC_NAME_SIZE];
    struct sc_identity measured_on; /* empty: the profile was not measured on one machine */
    struct {
        int64_t devices; /* on cores: ranks of the node, set by sc_hardware_divide */
        int64_t sockets, cores;
    } node;
    struct {
        char name[SC_NAME_SIZE];
        enum sc_hw_device_kind kind;
        /* As the profile states them; on cores: of one core. */
        double stated_peak[SC_PEAK_COUNT];
        double memory_bandwidth;      /* of one instance of place `device` */
        double core_memory_bandwidth; /* cores: what one core can draw; 0: no such limit */
        int parallel_efficiency_count;
        double parallel_efficiency[SC_HW_CORES_MAX]; /* cores: entry c - 1 holds for c cores */
        /* Of one device (on cores: of one rank), derived by sc_hardware_divide. On accelerators
         * multiprocessors is the profile's. */
        double multiprocessors;     /* units that collectives may hold; on cores: cores */
        double peak[SC_PEAK_COUNT]; /* FLOP/s; 0: not stated */
        double memory_draw;         /* bytes a second that the device reaches alone */
        double units_speed;         /* of one core: cores x their parallel efficiency; else 1 */
    } device;
    struct sc_hw_place_info places[SC_HW_PLACE_COUNT];
    struct {
        double context, per_communicator, workspace; /* bytes of the device beside the arena */
    } reserved;
    int link_count;
    struct sc_hw_link links[SC_HW_LINKS_MAX];
    bool has_layout[SC_LAYOUT_COUNT];
    int32_t layout[SC_LAYOUT_COUNT][SC_HW_DEVICES_MAX];
    char transport[SC_HW_NAME_SIZE]; /* collectives.transport: the neutral choice; "" : any link */
    int level_count;
    struct sc_hw_level levels[SC_HW_LEVELS_MAX];
    struct {
        double gemm_peak_share[SC_PEAK_COUNT]; /* 0: not stated */
        double gemm_fixed_s;
        /* Accelerators: rows and columns of the tiles that a multiprocessor computes at a time, and
         * what starting and ending one costs, in steps of k. None: no structure. */
        int gemm_tile_count;
        int64_t gemm_tiles[SC_HW_TILES_MAX][2];
        double gemm_k_offset;
        double attention_forward_share, attention_backward_share, attention_fixed_s;
        double memory_bound_share, memory_bound_fixed_s;
        double adam_share, adam_fixed_s, adam_s_per_element, adam_cache_bytes;
        /* Cores alone; model/cost_cores.h says how they are used. */
        struct {
            /* Factors on peak_share where A or B is read transposed, and where a transposed A's
             * rows are whole pages apart (they fall on one another in the caches). */
            double gemm_transposed_a_share, gemm_transposed_b_share, gemm_page_stride_share;
            double gemm_operand_s, gemm_transposed_b_s; /* copying an element, on one core */
            double attention_s_per_query[2];            /* forward, backward; on one core */
            double attention_s_per_element[2];          /* of the queries */
            double gemm_team_s, memory_bound_team_s;    /* sharing an operation out among cores */
            double memory_bound_efficiency;             /* of all cores together, for one rank */
        } cores;
        int kind_count;
        struct sc_hw_kind kinds[SC_HW_KINDS_MAX];
    } compute;
    struct {
        double kernel_s, collective_s, copy_s, captured_s; /* host time to issue one operation */
        /* From the end of an operation on another stream to the start of one that stood waiting for
         * it: what signalling between streams takes. */
        double kernel_wait_s, collective_wait_s;
        int64_t steps_ahead;
    } issue;
    struct {
        double bytes_per_parameter, bandwidth_share; /* of places.host.bandwidth */
    } host_adam;
    struct sc_hw_uncertainty uncertainty;
};

/* Reads a shipped name ("dgx-h100") or a file; `relative_to` is the file that names it (NULL: the
 * current folder). `set` holds "path=value" strings; those that begin with "hw." are applied with
 * that prefix removed, the others are skipped; bus bandwidths follow a link that is changed
 * (model/hardware_scale.h). A cores profile comes divided by its node.devices. */
enum sc_status sc_hardware_load(const char *name_or_file, const char *relative_to,
                                const char *const *set, int set_count, struct sc_hardware *out,
                                struct sc_error *err);
/* The same from an open document. A number that is needed and missing is an error. */
enum sc_status sc_hardware_parse(const struct sc_json *root, struct sc_hardware *out,
                                 struct sc_error *err);
void sc_hardware_free(struct sc_hardware *hardware);
/* stepcast.hw/1 without sources; reading it back gives the same struct. The caller deletes it with
 * cJSON_Delete. NULL when out of memory. */
cJSON *sc_hardware_to_json(const struct sc_hardware *hardware);

/* On cores: divides the node among `ranks` ranks (peaks, units and draw become a rank's,
 * node.devices becomes `ranks`); works on the profile as loaded or divided before. On accelerators:
 * only checks that a node has that many devices. */
enum sc_status sc_hardware_divide(struct sc_hardware *hardware, int64_t ranks,
                                  struct sc_error *err);
/* Bytes of a place that one device (rank) may use: a node's capacity is divided among its devices.
 * 0 when the profile does not have the place. */
double sc_hardware_capacity(const struct sc_hardware *hardware, enum sc_hw_place place);
/* Chooses the links of a transport ("threads", "mpi"); fails with the names that the profile has.
 */
enum sc_status sc_hardware_use_transport(struct sc_hardware *hardware, const char *transport,
                                         struct sc_error *err);

/* Calls `each` with every shipped profile, sorted by name (`stepcast list`). */
typedef enum sc_status (*sc_hardware_fn)(void *context, const char *name,
                                         const struct sc_hardware *hardware, struct sc_error *err);
enum sc_status sc_hardware_list(sc_hardware_fn each, void *context, struct sc_error *err);

/* The rate of arithmetic of a dtype. */
enum sc_hw_peak sc_hardware_peak_of(enum sc_dtype dtype);
/* NULL when the profile has none of that name. */
const struct sc_hw_link *sc_hardware_link(const struct sc_hardware *hardware, const char *name);
const struct sc_hw_kind *sc_hardware_kind(const struct sc_hardware *hardware, const char *kind);
/* How far the price of one shape of an operation is off: of its cost name ("activation_swiglu"),
 * else of its kind, else the neutral figure. */
double sc_hardware_deviation(const struct sc_hardware *hardware, const char *cost_name,
                             const char *kind);
/* Index of the link that joins device and host, or -1. */
int sc_hardware_host_link(const struct sc_hardware *hardware);

#endif
