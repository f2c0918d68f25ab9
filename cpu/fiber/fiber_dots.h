/* Computes sums over runs of fibers for contractions: sums[r] = sum of (value *
 * vector[offset[mode]]) over the nonzeros of run r, in f64, by the rank-1 kernel of MTTKRP over
 * fibers.
 * Order: eight partial sums are added as a tree, so all instruction sets return the same bits.
 * Cost: one multiplication and one addition per nonzero. Needs: fibers->runs is at most
 * SLC_CHUNK_NNZ, and values are f64. */
#ifndef SLC_CPU_FIBER_DOTS_H
#define SLC_CPU_FIBER_DOTS_H

#include "base/block.h"

void slc_fiber_dots(const struct slc_fiber_view *fibers, const double *vector, double *sums);

#endif
