/*
 * Work on a processor's cores, where a rank owns some of them and one operation is shared out among
 * those. model/cost_compute.h calls these for device kind "cores"; what each form means:
 *
 * Products. A library copies blocks of the operands before it multiplies them, and reads some
 * layouts faster than others. With the part m' x n' of C that one core computes (sc_product_grid):
 *     seconds = fixed + team + (2 m' n' k / share of the layout) / (peak share)
 *               + operand_s (m' k + k n') + transposed_b_s k n', all but fixed and team divided by
 *               the cores' parallel efficiency.
 * Attention. Its products, and what each query and each of its elements costs beside them.
 * Memory-bound kinds. seconds = fixed + team + elements s_per_element / speed + (bytes - cache) /
 * (share of a rank's part of the memory bandwidth): a core waits for its memory, so the terms add
 * up. s_per_element and share hold while every rank does the same; with the memory to itself a rank
 * gets its last term faster, up to what its cores can draw.
 */
#ifndef STEPCAST_MODEL_COST_CORES_H
#define STEPCAST_MODEL_COST_CORES_H

#include "base/status.h"
#include "model/cost.h"
#include "model/cost_compute.h"
#include "model/hardware.h"

enum sc_status sc_cost_cores_gemm(const struct sc_hardware *hardware,
                                  const struct sc_gemm_work *work, struct sc_cost *out,
                                  struct sc_error *err);
enum sc_status sc_cost_cores_attention(const struct sc_hardware *hardware,
                                       const struct sc_attention_work *work, struct sc_cost *out,
                                       struct sc_error *err);
/* `kind` with its figures filled in; nothing in it is a neutral value. */
void sc_cost_cores_memory_bound(const struct sc_hardware *hardware, const struct sc_hw_kind *kind,
                                double bytes, double elements, struct sc_cost *out);

/*
 * Rows x columns of parts in which `parts` cores compute C[m, n]. Copying takes all of A for each
 * column of parts and all of B for each row of them, so the factorisation with the least m columns
 * + n rows, among those that leave every part SC_PRODUCT_GRAIN rows and columns, is the cheapest.
 * The host backend divides products by the same function.
 */
#define SC_PRODUCT_GRAIN 48
void sc_product_grid(int64_t m, int64_t n, int parts, int *rows, int *columns);

#endif
