/*
 * The keys of stepcast.hw/1 as tables, for model/hardware*.c only. A section is a JSON object whose
 * keys are fields of struct sc_hardware; lists by name (links, levels, kinds, variants) have a
 * table for one entry.
 */
#ifndef STEPCAST_MODEL_HARDWARE_KEYS_H
#define STEPCAST_MODEL_HARDWARE_KEYS_H

#include "model/hardware.h"
#include "model/keys.h"

#define SC_HW_SCHEMA "stepcast.hw/1"

/* A plain section: where it stands and what else it holds. */
struct sc_hw_section {
    const char *parent; /* NULL: the root */
    const char *name;
    bool required;
    const struct sc_key *keys;
    const char *const *others; /* keys of it that are read elsewhere */
};
/* Ended by a NULL name. Offsets of the keys are in struct sc_hardware. */
extern const struct sc_hw_section sc_hw_sections[];

extern const struct sc_key sc_hw_root_keys[];
extern const struct sc_key sc_hw_place_keys[SC_HW_PLACE_COUNT][8]; /* in sc_hw_place_info */
extern const struct sc_key sc_hw_link_keys[];                      /* in sc_hw_link */
extern const struct sc_key sc_hw_alpha_beta_keys[];                /* in sc_hw_alpha_beta */
extern const struct sc_key sc_hw_level_keys[];                     /* in sc_hw_level */
extern const struct sc_key sc_hw_variant_keys[];                   /* in sc_hw_variant */
extern const struct sc_key sc_hw_nccl_keys[];                      /* in sc_hw_nccl */
extern const struct sc_key sc_hw_kind_keys[];                      /* in sc_hw_kind */
extern const struct sc_key sc_hw_peak_keys[];                      /* an array of peaks, TFLOP/s */
extern const struct sc_key sc_hw_share_keys[];                     /* an array of shares */
extern const char *const sc_hw_layout_names[SC_LAYOUT_COUNT + 1];

/* Of model/hardware_uncertainty.c. */
void sc_hw_uncertainty_neutral(struct sc_hw_uncertainty *out);
enum sc_status sc_hw_uncertainty_read(const struct sc_json *root, struct sc_hw_uncertainty *out,
                                      struct sc_error *err);
bool sc_hw_uncertainty_write(cJSON *root, const struct sc_hw_uncertainty *uncertainty);

/* Values before a file is read. */
void sc_hardware_neutral(struct sc_hardware *out);
void sc_hw_link_neutral(const char *name, const struct sc_hardware *hardware,
                        struct sc_hw_link *out);
void sc_hw_level_neutral(const char *name, struct sc_hw_level *out);
void sc_hw_variant_neutral(struct sc_hw_variant *out);
void sc_hw_nccl_neutral(struct sc_hw_nccl *out);
void sc_hw_kind_neutral(const char *name, struct sc_hw_kind *out);

#endif
