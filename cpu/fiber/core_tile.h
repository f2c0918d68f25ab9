/*
 * Projects a tensor by one small matrix per mode to its core, tile by tile:
 *   G(r1 .. rN) = sum over the nonzeros x of x * U1(i1, r1) * .. * UN(iN, rN)
 * which is X x_1 U1^T .. x_N UN^T ([Kolda2009] section 2.5) and has R^N numbers for any tensor
 * size.
 */
#ifndef SLC_CPU_CORE_TILE_H
#define SLC_CPU_CORE_TILE_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

/* R^N; UINT64_MAX on overflow. */
uint64_t slc_core_elements(unsigned order, uint32_t rank);

/* Numbers of scratch that slc_core_tile needs; UINT64_MAX on overflow. */
uint64_t slc_core_scratch_elements(unsigned order, uint32_t rank);

/*
 * Adds the tile's part to `core`, which has R^N numbers with the last mode's index varying fastest.
 * Math: nonzeros are processed in batches. A row of P is x times the Kronecker product of the rows
 * of the first half of the modes, a row of Q that of the other modes; then G += P^T Q, which is
 * nearly all of the work and runs at the speed of BLAS.
 * Needs: `matrices` f64 with `rank` columns and a row for each index; values of the tile f64.
 * Order: that of the nonzeros, deterministic. Cost: 2 nnz * R^N flops.
 * Errors: those of decoding.
 */
enum slc_status slc_core_tile(struct slc_tile_view *tile,
                              uint32_t rank,
                              const struct slc_matrix *matrices,
                              double *scratch,
                              double *core,
                              struct slc_error *err) SLC_NODISCARD;

#endif
