/* Cuts the rows and results of dense algebra into parts, and computes the scratch for the parts.
 * Used by kernel launches and, in every build, to compute how much memory a device needs. Private
 * to gpu/. */
#ifndef SLC_GPU_DENSE_CUTS_H
#define SLC_GPU_DENSE_CUTS_H

#include "base/memory/checked.h"
#include "gpu/cuda/records.h"

#include <stdint.h>

/* Rows cut into groups of group_rows rows. The last group may be shorter. */
struct slc_gpu_row_cut {
    uint64_t rows, group_rows;
    uint32_t groups;
};

static inline struct slc_gpu_row_cut
slc_gpu_row_cut(uint64_t rows, uint64_t unit_rows, uint32_t groups_max)
{
    const uint64_t units = slc_div_up_u64(rows, unit_rows);
    struct slc_gpu_row_cut cut = {rows, unit_rows, 0};

    if (units > 0) {
        cut.group_rows = slc_div_up_u64(units, slc_min_u64(units, groups_max)) * unit_rows;
        cut.groups = (uint32_t)slc_div_up_u64(rows, cut.group_rows);
    }
    return cut;
}

/* Returns the largest number of groups that a cut of up to `rows` rows can have. */
static inline uint64_t slc_gpu_groups_most(uint64_t rows, uint64_t unit_rows, uint32_t groups_max)
{
    return slc_min_u64(slc_div_up_u64(rows, unit_rows), groups_max);
}

/* Returns the number of columns of a packed solver: the rank rounded up to a multiple of eight,
 * because eight columns are solved together (dense_update.cu). */
static inline uint32_t slc_gpu_solver_width(uint32_t rank)
{
    return (rank + 7) / 8 * 8;
}

/* Returns the bytes of a packed solver: two square matrices of slc_gpu_solver_width(rank) columns,
 * and their diagonals. */
static inline uint64_t slc_gpu_solver_bytes(uint32_t rank)
{
    const uint64_t width = slc_gpu_solver_width(rank);

    return 2 * (width * width + width) * sizeof(double);
}

/* ---- the update (dense_update.cu) */

enum {
    SLC_UPDATE_LANE_ROWS = 2,
    SLC_UPDATE_PANEL_ROWS = SLC_UPDATE_LANE_ROWS * SLC_WARP,
    /* Panels up to this width are in shared memory. A panel of this width needs 33 KiB, so six
     * panels fit in a multiprocessor. */
    SLC_UPDATE_SHARED_WIDTH = 64,
    /* Elements from one column of a panel to the next. The number is odd, so that warp lanes that
     * access different columns of a row use different banks. */
    SLC_UPDATE_PANEL_PITCH = SLC_UPDATE_PANEL_ROWS + 1,
    /* Maximum number of groups: several times the number of warps that the largest devices run at
     * once, so that the last warps end at about the same time. */
    SLC_UPDATE_GROUPS_MAX = 8192,
    SLC_UPDATE_GROUPS_LEAST = 256,
    /* Limit for the column results of all groups: 2^20 elements, which are 8 MiB. Above rank 2048,
     * SLC_UPDATE_GROUPS_LEAST groups need more. */
    SLC_UPDATE_COLUMN_ELEMENTS = 1 << 20,
    /* Limits for panels in scratch: 2^24 elements, which are 128 MiB, and 1024 panels, which are
     * about 8 per multiprocessor of the largest devices. */
    SLC_UPDATE_PANEL_ELEMENTS = 1 << 24,
    SLC_UPDATE_PANELS_MAX = 1024
};

/* Returns the number of elements that a group has for each of the two column results: one per
 * column, but at least one per warp lane. */
SLC_HOST_DEVICE static inline uint32_t slc_gpu_update_columns(uint32_t rank)
{
    return rank < SLC_WARP ? (uint32_t)SLC_WARP : rank;
}

static inline uint32_t slc_gpu_update_groups_max(uint32_t rank)
{
    return (uint32_t)slc_min_u64(
        slc_max_u64(SLC_UPDATE_COLUMN_ELEMENTS / (2 * slc_gpu_update_columns(rank)),
                    SLC_UPDATE_GROUPS_LEAST),
        SLC_UPDATE_GROUPS_MAX);
}

/* Returns the largest number of panels in scratch that an update of up to `rows` rows uses. */
static inline uint64_t slc_gpu_update_panels_most(uint64_t rows, uint32_t rank)
{
    const uint32_t width = slc_gpu_solver_width(rank);
    const uint64_t elements = (uint64_t)SLC_UPDATE_PANEL_PITCH * width;

    if (width <= SLC_UPDATE_SHARED_WIDTH) {
        return 0;
    }
    return slc_min_u64(
        slc_gpu_groups_most(rows, SLC_UPDATE_PANEL_ROWS, slc_gpu_update_groups_max(rank)),
        slc_min_u64(SLC_UPDATE_PANEL_ELEMENTS / elements, SLC_UPDATE_PANELS_MAX));
}

static inline uint64_t slc_gpu_update_scratch_bytes(uint64_t rows, uint32_t rank)
{
    const uint64_t groups =
        slc_gpu_groups_most(rows, SLC_UPDATE_PANEL_ROWS, slc_gpu_update_groups_max(rank));
    const uint64_t panel_elements = (uint64_t)SLC_UPDATE_PANEL_PITCH * slc_gpu_solver_width(rank);

    return (2 * groups * slc_gpu_update_columns(rank) +
            slc_gpu_update_panels_most(rows, rank) * panel_elements) *
           sizeof(double);
}

/* ---- Gram matrices (dense_gram.cu) */

enum {
    SLC_GRAM_SQUARE = 4,
    SLC_GRAM_SQUARE_ELEMENTS = SLC_GRAM_SQUARE * SLC_GRAM_SQUARE,
    SLC_GRAM_STRIP = 64,
    /* Elements of a strip that are in shared memory at a time, which need 16 KiB. Two strips are
     * loaded at a time. */
    SLC_GRAM_STAGE_ELEMENTS = 2048,
    /* The number of rows of a group is a multiple of this number, which is the number of rows of a
     * stage at ranks up to 4. */
    SLC_GRAM_GROUP_UNIT = SLC_GRAM_STAGE_ELEMENTS / SLC_GRAM_SQUARE,
    /* Upper limit for groups times tiles: twice the number of thread blocks that the largest
     * devices run at once. */
    SLC_GRAM_PIECES_MAX = 1024
};

/* Cut of a Gram matrix into tiles of one strip by one strip. */
struct slc_gpu_gram_tiles {
    /* columns of a strip: the rank rounded up to a multiple of SLC_GRAM_SQUARE, at most
     * SLC_GRAM_STRIP */
    uint32_t width;
    uint32_t strips, count;
    uint32_t elements; /* elements of a tile, stored square by square */
};

static inline struct slc_gpu_gram_tiles slc_gpu_gram_tiles(uint32_t rank)
{
    struct slc_gpu_gram_tiles tiles;

    tiles.strips = (rank + SLC_GRAM_STRIP - 1) / SLC_GRAM_STRIP;
    tiles.count = tiles.strips * (tiles.strips + 1) / 2;
    if (tiles.strips > 1) {
        tiles.width = SLC_GRAM_STRIP;
        tiles.elements = SLC_GRAM_STRIP * SLC_GRAM_STRIP;
    } else {
        const uint32_t squares = (rank + SLC_GRAM_SQUARE - 1) / SLC_GRAM_SQUARE;

        tiles.width = squares * SLC_GRAM_SQUARE;
        tiles.elements = squares * (squares + 1) / 2 * SLC_GRAM_SQUARE_ELEMENTS;
    }
    return tiles;
}

static inline uint32_t slc_gpu_gram_groups_max(const struct slc_gpu_gram_tiles *tiles)
{
    return tiles->count < SLC_GRAM_PIECES_MAX ? SLC_GRAM_PIECES_MAX / tiles->count : 1;
}

static inline uint64_t slc_gpu_gram_scratch_bytes(uint64_t rows, uint32_t rank)
{
    const struct slc_gpu_gram_tiles tiles = slc_gpu_gram_tiles(rank);

    return slc_gpu_groups_most(rows, SLC_GRAM_GROUP_UNIT, slc_gpu_gram_groups_max(&tiles)) *
           tiles.count * tiles.elements * sizeof(double);
}

/* Returns the bytes of scratch that suffice for every operation on matrices of `rank` columns and
 * up to `rows` rows. The scratch must be aligned to 256 bytes. */
static inline uint64_t slc_gpu_dense_scratch_bytes(uint64_t rows, uint32_t rank)
{
    return slc_max_u64(slc_gpu_update_scratch_bytes(rows, rank),
                       slc_gpu_gram_scratch_bytes(rows, rank));
}

#endif
