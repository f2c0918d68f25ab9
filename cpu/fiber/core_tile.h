/*
 * The core of a tensor under one small matrix per mode, tile by tile:
 *
 *     G(r1 .. rN) = sum over the nonzeros x of x * U1(i1, r1) * .. * UN(iN, rN)
 *
 * which is X x_1 U1^T .. x_N UN^T (KB section 2.5), with R^N numbers whatever the tensor's size.
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
 * core += the tile's part, R^N numbers, the last mode's index fastest.
 * Math: nonzeros are taken in batches, of which a row of P is x times the Kronecker product of the
 * rows of the first half of the modes, and one of Q that of the others; then G += P^T Q, which is
 * nearly all of the work, at the rate of BLAS.
 * Needs: `matrices` f64 with `rank` columns and a row for each index; values of the tile f64.
 * Order: in that of the nonzeros, the same bits every time. Cost: 2 nnz * R^N flops.
 * Errors: those of decoding.
 */
enum slc_status slc_core_tile(struct slc_tile_view *tile,
                              uint32_t rank,
                              const struct slc_matrix *matrices,
                              double *scratch,
                              double *core,
                              struct slc_error *err) SLC_NODISCARD;

#endif
