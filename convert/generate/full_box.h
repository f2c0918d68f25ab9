/*
 * The box that a best-case tensor fills. Of all sets of nnz cells, those of a full box share the
 * most rows; of all boxes, the one with sides as equal as the mode sizes allow touches the fewest.
 *
 * Math: an MTTKRP touches the sum of s_m rows of a box with sides s_m, which for a given product is
 * least if the sides are equal (inequality of arithmetic and geometric means). A TTM in mode n
 * touches s_n rows of its matrix, and writes one row for each of the nnz / s_n fibers: least if s_n
 * is the square root of nnz.
 */
#ifndef SLC_CONVERT_FULL_BOX_H
#define SLC_CONVERT_FULL_BOX_H

#include "base/memory/limits.h"

#include <stdint.h>

/*
 * Sides of the box that touches the fewest rows in MTTKRPs (ttm_mode 0), or in a TTM in mode
 * ttm_mode (from 1); each within `dims` (1 or more), with a product of at least `nnz`. Needs: the
 * product of `dims` is at least `nnz`, or exceeds 64 bits; nnz >= 1.
 */
void slc_full_box_sides(
    unsigned order, const uint64_t *dims, uint64_t nnz, unsigned ttm_mode, uint64_t *sides);

#endif
