/* Transcodes tiles once, for kernels that read tiles repeatedly. The offsets of each mode are
 * stored consecutively, each with as many bits as the tile's extent in the mode; values are stored
 * as f64. A kernel locates a nonzero by its ordinal, without decoding keys or summing over earlier
 * nonzeros. Device code, included by kernels.
 *
 * A transcoded tile is larger than the encoded tile: a nonzero needs 8 bytes plus the bits of the
 * extents of all modes. Tiles of resident blocks are transcoded if device memory suffices
 * (gpu/device/transcoding.cu). */
#ifndef SLC_GPU_TRANSCODE_H
#define SLC_GPU_TRANSCODE_H

#include "gpu/cuda/batch.h"

/* A transcoded tile. Each mode has one spare word, so that a read of two words never goes past the
 * end of the mode. */
struct slc_gpu_transcoded {
    const double *values;
    const uint32_t *words[SLC_MAX_ORDER];
    uint8_t bits[SLC_MAX_ORDER];
};

#if defined(SLC_EMULATED) || defined(__CUDACC__)

/* Returns bits [at, at + bits) of a string of words; `bits` is at most 32. */
__device__ static inline uint32_t
slc_transcoded_number(const uint32_t *words, uint32_t at, uint32_t bits)
{
    const uint32_t *from = words + at / 32;
    const uint64_t both = (uint64_t)__ldg(from + 1) << 32 | __ldg(from);

    return (uint32_t)(both >> at % 32) & (bits == 32 ? ~0U : (1U << bits) - 1);
}

/* Loads nonzeros [first, first + count) of a tile into offsets[n * stride ..] for each mode n, and
 * into values. Called by all `threads` threads of a thread block. */
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

/* Transcoded tiles in device memory. */
struct slc_gpu_transcoded_tiles {
    struct slc_gpu_transcoded *tiles;
    uint32_t count;
    uint64_t bytes; /* size of `memory` */
    void *memory;
};

/* Transcodes `count` tiles of a layout. `tiles`, `layout` and `fault` are in device memory. Bytes
 * that contradict a tile's description set *fault, as in an MTTKRP. Waits for the stream. Needs:
 * *made is all-zero. Ownership: release with slc_gpu_transcoded_destroy, also after an error.
 * Errors: cudaErrorMemoryAllocation if device or host memory does not suffice, or if the tiles need
 * more than `bytes_most`. */
cudaError_t slc_gpu_transcode(const struct slc_gpu_tile *tiles,
                              uint32_t count,
                              const struct slc_encoded_layout *layout,
                              unsigned order,
                              uint64_t bytes_most,
                              struct slc_gpu_fault *fault,
                              struct slc_gpu_transcoded_tiles *made,
                              cudaStream_t stream);
/* Accepts an all-zero struct. */
void slc_gpu_transcoded_destroy(struct slc_gpu_transcoded_tiles *made);

#endif
