/*
 * Arguments of kernels that compute from encoded blocks: the tiles of a batch, cut into chunks.
 * Private to gpu/.
 */
#ifndef SLC_GPU_BATCH_H
#define SLC_GPU_BATCH_H

#include "gpu/cuda/cuda.h"

struct slc_gpu_transcoded; /* gpu/decode/transcode.h */

/* Tiles of one launch, cut into chunks of `chunk_runs` runs of SLC_RUN_NNZ nonzeros (the last of a
 * tile may be shorter): tile t has chunks [chunk_begin[t], chunk_begin[t + 1]). */
struct slc_gpu_batch {
    const struct slc_gpu_tile *tiles;
    const uint32_t *chunk_begin; /* tile_count + 1 */
    uint32_t tile_count, chunk_count, chunk_runs;
    /* Thread blocks, in multiples of those that the device runs at a time: 1 occupies all of it
     * until the end of the launch, more let other launches use some of it in between. */
    uint32_t waves;
    const struct slc_encoded_layout *layout;     /* in the device's memory */
    const struct slc_gpu_transcoded *transcoded; /* per tile, only for SLC_MTTKRP_TRANSCODED */
    struct slc_gpu_fault *fault;
};

/* The tile of a chunk: the last one that begins at this chunk or before. */
__device__ static inline uint32_t slc_gpu_tile_of_chunk(const struct slc_gpu_batch *batch,
                                                        uint32_t chunk)
{
    uint32_t begin = 0, end = batch->tile_count;

    while (end - begin > 1) {
        const uint32_t middle = begin + (end - begin) / 2;

        if (batch->chunk_begin[middle] <= chunk) {
            begin = middle;
        } else {
            end = middle;
        }
    }
    return begin;
}

/* Shared memory of a decoding warp: maps high parts to the lanes of their numbers. */
struct alignas(16) slc_decode_scratch {
    uint32_t parts[SLC_GROUP_NNZ];
};

enum slc_gpu_fault_kind {
    SLC_GPU_SOUND,
    SLC_GPU_FAULT_OFFSET, /* a coordinate outside the tile */
    SLC_GPU_FAULT_KEYS,   /* gaps that do not lead from base to base, or to the last key */
    SLC_GPU_FAULT_VALUE,  /* zero, infinite or not a number; an index beyond the dictionary */
    SLC_GPU_FAULT_LZ4,    /* compressed bytes that do not expand to their stated size */
    SLC_GPU_FAULT_PATCH   /* exceptions of a group at positions that do not ascend */
};

#endif
