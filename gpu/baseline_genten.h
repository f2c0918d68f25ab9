/*
 * What GenTen's kernels share: teams of threads, and panels of columns in registers. Device code,
 * included by the kernels.
 */
#ifndef SLC_GPU_BASELINE_GENTEN_H
#define SLC_GPU_BASELINE_GENTEN_H

#include "gpu/baseline.h"

enum {
    SLC_GENTEN_TEAM = 128, /* threads of a block */
    SLC_GENTEN_TILE = 128, /* nonzeros that a vector of threads takes one after the other */
    SLC_GENTEN_PANEL = 4,  /* columns that a thread has in registers, at most */
    /* Blocks of a multiprocessor for which registers are given out: without saying, nvcc 13 makes
     * room for more and spills. */
    SLC_GENTEN_TEAMS = 8
};

/* Threads that compute one nonzero: the largest power of two that is no more than the rank. */
static inline uint32_t slc_genten_vector(uint32_t rank, uint32_t most)
{
    uint32_t vector = 1;

    while (vector * 2 <= rank && vector * 2 <= most) {
        vector *= 2;
    }
    return vector;
}

/* Columns of the panels, for each thread of a vector: 1, 2 or 4. */
static inline uint32_t slc_genten_panel(uint32_t rank, uint32_t vector)
{
    return rank <= vector ? 1 : rank <= 2 * vector ? 2 : SLC_GENTEN_PANEL;
}

/* product[k] = value times the elements of column `column` + k * vector, for those below the rank.
 */
template <typename Element, typename Sum, int panel>
__device__ static inline void slc_genten_product(const struct slc_baseline_job *job,
                                                 const uint32_t *coords,
                                                 Sum value,
                                                 uint32_t column,
                                                 Sum *product)
{
    for (int k = 0; k < panel; k++) {
        product[k] = value;
    }
    for (unsigned f = 0; f < job->others; f++) {
        const Element *row = static_cast<const Element *>(job->factor[f]) +
                             static_cast<uint64_t>(coords[job->mode_of[f]]) * job->factor_pitch[f];

        for (int k = 0; k < panel; k++) {
            const uint32_t c = column + static_cast<uint32_t>(k) * blockDim.x;

            if (c < job->rank) {
                product[k] *= static_cast<Sum>(row[c]);
            }
        }
    }
}

/* Adds a panel of sums to a row, atomically or not. */
template <typename Sum, int panel>
__device__ static inline void slc_genten_add(
    const struct slc_baseline_job *job, uint32_t row, uint32_t column, const Sum *sum, bool atomic)
{
    Sum *to = slc_baseline_row<Sum>(job, row);

    for (int k = 0; k < panel; k++) {
        const uint32_t c = column + static_cast<uint32_t>(k) * blockDim.x;

        if (c < job->rank && atomic) {
            SLC_PLANT_OTHER(genten_plain_add, atomicAdd(to + c, sum[k]), to[c] += sum[k]);
        } else if (c < job->rank) {
            to[c] += sum[k];
        }
    }
}

#endif
