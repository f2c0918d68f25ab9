/*
 * Tiles transcoded once for kernels that read them repeatedly: offsets of each mode in as many bits
 * as the tile's extent has, consecutively, and values in f64. A nonzero is found by its number,
 * without keys or sums over earlier nonzeros. Device code, included by kernels.
 *
 * Larger than the encoded tile (8 bytes and the sum of the extents' bits per nonzero), so it is
 * meant for resident blocks if the device has enough memory.
 */
#ifndef SLC_GPU_TRANSCODE_H
#define SLC_GPU_TRANSCODE_H

#include "gpu/cuda/batch.h"

/* A transcoded tile. Each mode has one spare word, so that a read of two words never leaves it. */
struct slc_gpu_transcoded {
    const double *values;
    const uint32_t *words[SLC_MAX_ORDER];
    uint8_t bits[SLC_MAX_ORDER];
};

#if defined(SLC_EMULATED) || defined(__CUDACC__)

/* The bits [at, at + bits) of a string of words; bits up to 32. */
__device__ static inline uint32_t
slc_transcoded_number(const uint32_t *words, uint32_t at, uint32_t bits)
{
    const uint32_t *from = words + at / 32;
    const uint64_t both = (uint64_t)__ldg(from + 1) << 32 | __ldg(from);

    return (uint32_t)(both >> at % 32) & (bits == 32 ? ~0U : (1U << bits) - 1);
}

/* Loads nonzeros [first, first + count) of a tile into offsets[n * stride ..] and values. Called by
 * a thread block of `threads`. */
__device__ static inline void slc_transcoded_read(const struct slc_gpu_transcoded *tile,
                                                  unsigned order,
                                                  uint32_t first,
                                                  uint32_t count,
                                                  uint32_t threads,
                                                  uint32_t *offsets,
                                                  uint32_t stride,
                                                  double *values)
{
    for (uint32_t i = threadIdx.x; i < count; i += threads) {
        values[i] = __ldg(tile->values + first + i);
    }
    SLC_ROLL
    for (unsigned n = 0; n < order; n++) {
        const uint32_t *words = tile->words[n];
        const uint32_t bits = tile->bits[n];

        for (uint32_t i = threadIdx.x; i < count; i += threads) {
            offsets[(size_t)n * stride + i] =
                slc_transcoded_number(words, (first + i) * bits, bits);
        }
    }
}

#endif

/* Tiles in this form, in the device's memory. */
struct slc_gpu_transcoded_tiles {
    struct slc_gpu_transcoded *tiles;
    uint32_t count;
    uint64_t bytes; /* of all of it */
    void *memory;
};

/*
 * Transcodes `count` tiles of a layout; everything is in the device's memory. Contradictions of a
 * tile's description set *fault, as in computing. Needs: *made all-zero. Owns: release with
 * slc_gpu_transcoded_destroy, also after an error. Waits for the stream. Errors:
 * cudaErrorMemoryAllocation, also for the host's memory.
 */
cudaError_t slc_gpu_transcode(const struct slc_gpu_tile *tiles,
                              uint32_t count,
                              const struct slc_encoded_layout *layout,
                              unsigned order,
                              struct slc_gpu_fault *fault,
                              struct slc_gpu_transcoded_tiles *made,
                              cudaStream_t stream);
/* Accepts an all-zero struct. */
void slc_gpu_transcoded_destroy(struct slc_gpu_transcoded_tiles *made);

#endif
