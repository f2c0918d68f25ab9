/* Arguments of kernels that compute from encoded blocks: the tiles of a batch, cut into chunks.
 * Private to gpu/. */
#ifndef SLC_GPU_BATCH_H
#define SLC_GPU_BATCH_H

#include "gpu/cuda/cuda.h"

struct slc_gpu_transcoded; /* gpu/decode/transcode.h */

/* Tiles of one launch, cut into chunks of `chunk_runs` runs of SLC_RUN_NNZ nonzeros. The last chunk
 * of a tile may be shorter. Tile t has chunks [chunk_begin[t], chunk_begin[t + 1]). */
struct slc_gpu_batch {
    const struct slc_gpu_tile *tiles;
    const uint32_t *chunk_begin; /* tile_count + 1 */
    uint32_t tile_count, chunk_count, chunk_runs;
    /* Number of thread blocks, as a multiple of the thread blocks that the device runs at a time.
     * With 1, the launch occupies the whole device until it ends. With more, other launches can
     * start whenever thread blocks of this launch end. */
    uint32_t waves;
    const struct slc_encoded_layout *layout; /* in device memory */
    /* one element per tile, or NULL; used instead of the encoded bytes, unless sums are exact */
    const struct slc_gpu_transcoded *transcoded;
    struct slc_gpu_fault *fault;
};

/* Returns the tile of a chunk: the last tile whose first chunk is not after this chunk. */
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

/* Shared memory of a warp that decodes. The warp scatters the high parts of exceptions to this
 * memory, and each warp lane reads the high parts of its own numbers. */
struct alignas(16) slc_decode_scratch {
    uint32_t parts[SLC_GROUP_NNZ];
};

enum slc_gpu_fault_kind {
    SLC_GPU_SOUND,
    SLC_GPU_FAULT_OFFSET, /* a coordinate is outside the tile */
    /* keys do not ascend, or contradict the bases or the tile's first or last key */
    SLC_GPU_FAULT_KEYS,
    /* a value is zero, infinite or NaN, or its index is not in the dictionary */
    SLC_GPU_FAULT_VALUE,
    SLC_GPU_FAULT_LZ4, /* compressed bytes do not expand to their stated size */
    /* the positions of a group's exceptions do not ascend, or a high part is zero */
    SLC_GPU_FAULT_PATCH
};

#endif
