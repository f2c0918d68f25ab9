/*
 * Decoding on the device: a warp decodes a run of up to SLC_RUN_NNZ nonzeros of a tile by itself,
 * from its base on. Device code, included by kernels.
 */
#ifndef SLC_GPU_DECODE_H
#define SLC_GPU_DECODE_H

#include "gpu/batch.h"

/* Shared memory of a warp that decodes: a group's numbers while exceptions are put in. */
struct slc_decode_scratch {
    uint64_t lo[SLC_GROUP_NNZ], hi[SLC_GROUP_NNZ];
};

/*
 * Decodes run `run` (from 0) of a tile. Called by all lanes of a warp together. Nonzero i of the
 * run goes to offsets[n * stride + i] (coordinate minus the tile's corner, of mode n; at most the
 * tile's extent, whatever the bytes) and values[i]. Returns their number. Whoever reads what other
 * lanes have written synchronizes the warp first. Contradictions go to *fault; what is delivered
 * then stays within the tile's corner and extents.
 *
 *     template <typename T>
 *     __device__ uint32_t slc_decode_run(const struct slc_encoded_layout *layout,
 *                                        const struct slc_gpu_tile *tile, uint32_t run,
 *                                        struct slc_decode_scratch *scratch,
 *                                        uint32_t *offsets, uint32_t stride, T *values,
 *                                        struct slc_gpu_fault *fault);
 */

#endif
