/*
 * Regions of bytes and whether two meet. On a grid of rows of `pitch` bytes a region is at most
 * three rectangles; rectangles are compared. Regions of two different pitches are compared by
 * extents, a shard beside anything but its like by everything it can be.
 */
#include "plans/program_verify.h"

struct sc_region sc_region_of(const struct sc_verify *verify, uint32_t value, uint32_t slot,
                              bool addresses)
{
    const struct sc_value *v = &verify->class->values.items[value];
    const struct sc_buffer *buffer = &verify->class->buffers.items[v->buffer];
    uint64_t element = sc_dtype_bytes(v->dtype);
    struct sc_region region = {.axis = -1, .pieces = 1, .rows = 1, .width = 1};
    region.space = SC_PLACE_COUNT + v->buffer;
    if (buffer->token) {
        return region;
    }
    region.begin = v->offset + slot * ((buffer->bytes + SC_ALIGN - 1) / SC_ALIGN * SC_ALIGN);
    if (addresses) {
        region.begin += buffer->offset;
        region.space = buffer->place;
    }
    region.rows = (uint64_t)v->rows;
    region.width = (uint64_t)v->cols * element;
    region.pitch = (uint64_t)v->row_stride * element;
    if (region.rows == 1 || region.pitch == region.width) { /* one run */
        region.width *= region.rows;
        region.rows = 1;
        region.pitch = 0;
    }
    if (v->shard_axis >= 0) {
        region.axis = v->shard_axis;
        region.stride = v->shard_stride;
        region.pieces = (uint64_t)verify->program->mesh.size[v->shard_axis];
    }
    return region;
}

uint64_t sc_region_end(const struct sc_region *region)
{
    return region->begin + (region->rows - 1) * region->pitch + region->width;
}

uint64_t sc_region_whole_end(const struct sc_region *region)
{
    return sc_region_end(region) + (region->pieces - 1) * region->stride;
}

/* Rows [row, row_end) and columns [col, col_end) of the grid. */
struct rectangle {
    uint64_t row, row_end, col, col_end;
};

static int cut_run(const struct sc_region *region, uint64_t pitch, struct rectangle out[3])
{
    uint64_t end = region->begin + region->width;
    uint64_t first = region->begin / pitch, last = (end - 1) / pitch;
    if (first == last) {
        out[0] = (struct rectangle){first, first + 1, region->begin % pitch,
                                    region->begin % pitch + region->width};
        return 1;
    }
    out[0] = (struct rectangle){first, first + 1, region->begin % pitch, pitch};
    out[1] = (struct rectangle){first + 1, last, 0, pitch}; /* may be empty */
    out[2] = (struct rectangle){last, last + 1, 0, end - last * pitch};
    return 3;
}

static int cut_rows(const struct sc_region *region, uint64_t pitch, struct rectangle out[3])
{
    uint64_t row = region->begin / pitch, col = region->begin % pitch;
    uint64_t col_end = col + region->width;
    out[0] = (struct rectangle){row, row + region->rows, col, col_end < pitch ? col_end : pitch};
    if (col_end <= pitch) {
        return 1;
    }
    out[1] = (struct rectangle){row + 1, row + 1 + region->rows, 0, col_end - pitch};
    return 2;
}

static int cut(const struct sc_region *region, uint64_t pitch, struct rectangle out[3])
{
    return region->rows == 1 ? cut_run(region, pitch, out) : cut_rows(region, pitch, out);
}

static bool rectangles_meet(const struct rectangle *a, const struct rectangle *b)
{
    return a->row < b->row_end && b->row < a->row_end && a->col < b->col_end && b->col < a->col_end;
}

static bool meet_on_grid(const struct sc_region *a, const struct sc_region *b, uint64_t pitch)
{
    struct rectangle left[3], right[3];
    int lefts = cut(a, pitch, left), rights = cut(b, pitch, right);
    for (int i = 0; i < lefts; ++i) {
        for (int j = 0; j < rights; ++j) {
            if (rectangles_meet(&left[i], &right[j])) {
                return true;
            }
        }
    }
    return false;
}

bool sc_regions_meet(const struct sc_region *a, const struct sc_region *b)
{
    if (a->space != b->space) {
        return false;
    }
    if (a->axis != b->axis || a->stride != b->stride) {
        return a->begin < sc_region_whole_end(b) && b->begin < sc_region_whole_end(a);
    }
    if (a->begin >= sc_region_end(b) || b->begin >= sc_region_end(a)) {
        return false;
    }
    if (a->rows == 1 && b->rows == 1) {
        return true;
    }
    uint64_t pitch = a->rows == 1 ? b->pitch : a->pitch;
    return (b->rows > 1 && b->pitch != pitch) || meet_on_grid(a, b, pitch);
}
