/*
 * The device mesh: rank <-> coordinates. The first axis of the plan's order is innermost:
 * rank = c0 + n0 (c1 + n1 (c2 + n2 c3)). A group is the set of ranks that differ only along the
 * axes of a mask.
 */
#ifndef STEPCAST_PLANS_MESH_H
#define STEPCAST_PLANS_MESH_H

#include <stdint.h>

#include "plans/plan.h"

struct sc_mesh {
    enum sc_axis order[SC_AXIS_COUNT];
    int64_t size[SC_AXIS_COUNT]; /* by axis */
    int64_t ranks;
};

#define SC_AXIS_MASK(axis) (1u << (axis))

void sc_mesh_from_plan(const struct sc_plan *plan, struct sc_mesh *out);
/* A mesh in the default order, for programs made by hand. */
void sc_mesh_make(int64_t tensor, int64_t context, int64_t data, int64_t pipeline,
                  struct sc_mesh *out);
void sc_mesh_coordinates(const struct sc_mesh *mesh, int64_t rank, int64_t out[SC_AXIS_COUNT]);
int64_t sc_mesh_rank(const struct sc_mesh *mesh, const int64_t coordinates[SC_AXIS_COUNT]);
/* Number of ranks in a group along the axes of the mask. */
int64_t sc_mesh_group_size(const struct sc_mesh *mesh, unsigned axis_mask);
/* Position of a rank in its group, counted in rank order. */
int64_t sc_mesh_group_index(const struct sc_mesh *mesh, unsigned axis_mask, int64_t rank);
/* The ranks of the group that contains `rank`, ascending; `out` has room for the group's size. */
void sc_mesh_group_members(const struct sc_mesh *mesh, unsigned axis_mask, int64_t rank,
                           int64_t *out);

#endif
