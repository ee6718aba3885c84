/* Ranks as numbers in a mixed radix: one digit an axis, the plan's first axis innermost. */
#include "plans/mesh.h"

#include <stdbool.h>

static void set_ranks(struct sc_mesh *mesh)
{
    mesh->ranks = 1;
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
        mesh->ranks *= mesh->size[axis];
    }
}

void sc_mesh_from_plan(const struct sc_plan *plan, struct sc_mesh *out)
{
    for (int i = 0; i < SC_AXIS_COUNT; i++) {
        out->order[i] = plan->mesh.order[i];
        out->size[i] = plan->mesh.size[i];
    }
    set_ranks(out);
}

void sc_mesh_make(int64_t tensor, int64_t context, int64_t data, int64_t pipeline,
                  struct sc_mesh *out)
{
    *out = (struct sc_mesh){
        .order = {SC_TENSOR, SC_CONTEXT, SC_DATA, SC_PIPELINE},
        .size = {tensor, context, data, pipeline},
    };
    set_ranks(out);
}

void sc_mesh_coordinates(const struct sc_mesh *mesh, int64_t rank, int64_t out[SC_AXIS_COUNT])
{
    for (int i = 0; i < SC_AXIS_COUNT; i++) {
        enum sc_axis axis = mesh->order[i];
        out[axis] = rank % mesh->size[axis];
        rank /= mesh->size[axis];
    }
}

int64_t sc_mesh_rank(const struct sc_mesh *mesh, const int64_t coordinates[SC_AXIS_COUNT])
{
    int64_t rank = 0;
    for (int i = SC_AXIS_COUNT - 1; i >= 0; i--) {
        enum sc_axis axis = mesh->order[i];
        rank = rank * mesh->size[axis] + coordinates[axis];
    }
    return rank;
}

static bool in_mask(unsigned axis_mask, enum sc_axis axis)
{
    return (axis_mask & SC_AXIS_MASK(axis)) != 0;
}

int64_t sc_mesh_group_size(const struct sc_mesh *mesh, unsigned axis_mask)
{
    int64_t size = 1;
    for (int axis = 0; axis < SC_AXIS_COUNT; axis++) {
        size *= in_mask(axis_mask, (enum sc_axis)axis) ? mesh->size[axis] : 1;
    }
    return size;
}

/* The digits of the axes in the mask, read as a number of their own: ascending with the rank, since
 * the other digits are equal within a group. */
int64_t sc_mesh_group_index(const struct sc_mesh *mesh, unsigned axis_mask, int64_t rank)
{
    int64_t index = 0, weight = 1;
    for (int i = 0; i < SC_AXIS_COUNT; i++) {
        enum sc_axis axis = mesh->order[i];
        if (in_mask(axis_mask, axis)) {
            index += rank % mesh->size[axis] * weight;
            weight *= mesh->size[axis];
        }
        rank /= mesh->size[axis];
    }
    return index;
}

void sc_mesh_group_members(const struct sc_mesh *mesh, unsigned axis_mask, int64_t rank,
                           int64_t *out)
{
    int64_t coordinates[SC_AXIS_COUNT], size = sc_mesh_group_size(mesh, axis_mask);
    sc_mesh_coordinates(mesh, rank, coordinates);
    for (int64_t k = 0; k < size; k++) {
        int64_t rest = k;
        for (int i = 0; i < SC_AXIS_COUNT; i++) {
            enum sc_axis axis = mesh->order[i];
            if (in_mask(axis_mask, axis)) {
                coordinates[axis] = rest % mesh->size[axis];
                rest /= mesh->size[axis];
            }
        }
        out[k] = sc_mesh_rank(mesh, coordinates);
    }
}
