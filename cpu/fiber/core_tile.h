/* Projects a tensor by one small matrix per mode to its core, tile by tile:
 *   G(r1 .. rN) = sum of (x * U1(i1, r1) * .. * UN(iN, rN)) over the nonzeros x
 * which is X x_1 U1^T .. x_N UN^T ([Kolda2009] section 2.5) and has R^N numbers for any tensor
 * size. */
#ifndef SLC_CPU_CORE_TILE_H
#define SLC_CPU_CORE_TILE_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

/* Returns R^N, or UINT64_MAX on overflow. */
uint64_t slc_core_elements(unsigned order, uint32_t rank);

/* Returns the number of elements of scratch that slc_core_tile needs, or UINT64_MAX on overflow. */
uint64_t slc_core_scratch_elements(unsigned order, uint32_t rank);

/* Adds the sum over the tile's nonzeros to `core`, which has R^N numbers; the index of the last
 * mode varies fastest.
 * Math: the nonzeros of a run, which differ in one mode only, are summed first: x times the row of
 * this mode. A row of P is the Kronecker product of the rows of the first half of the modes, and a
 * row of Q that of the other modes, where the sum takes the place of the row of the run's mode.
 * Then BLAS computes G += P^T Q for a batch of runs, which is nearly all of the work.
 * Needs: `matrices` are f64, with `rank` columns and a row for each index; the values of the tile
 * are f64.
 * Order: sums add in the order of the nonzeros, so the result is deterministic. Cost: 2 nnz R and
 * 2 runs * R^N flops.
 * Errors: those of decoding. */
enum slc_status slc_core_tile(struct slc_tile_view *tile,
                              uint32_t rank,
                              const struct slc_matrix *matrices,
                              double *scratch,
                              double *core,
                              struct slc_error *err) SLC_NODISCARD;

#endif
