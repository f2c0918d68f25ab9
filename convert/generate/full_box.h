/* Computes the box that a best-case tensor fills. Among all sets of nnz cells, the cells of a full
 * box share the most factor rows. Among all boxes, a box whose sides are as equal as the mode sizes
 * allow touches the fewest rows.
 *
 * For a box with sides s_m, an MTTKRP touches sum(s_m) rows. For a given product of the sides, this
 * sum is smallest if the sides are equal (inequality of arithmetic and geometric means). A TTM in
 * mode n reads s_n rows of its matrix and writes one row per fiber, nnz / s_n rows. The total is
 * smallest if s_n is the square root of nnz. */
#ifndef SLC_CONVERT_FULL_BOX_H
#define SLC_CONVERT_FULL_BOX_H

#include "base/memory/limits.h"

#include <stdint.h>

/* Sets the sides of the box that touches the fewest rows in MTTKRPs (if ttm_mode is 0) or in a TTM
 * in mode ttm_mode (modes start at 1). Each side is at least 1 and at most its mode size, and their
 * product is at least `nnz`. Needs: nnz >= 1; the product of `dims` is at least `nnz`, or exceeds
 * 64 bits. */
void slc_full_box_sides(
    unsigned order, const uint64_t *dims, uint64_t nnz, unsigned ttm_mode, uint64_t *sides);

#endif
