/* Expands LZ4 sections of blocks on the device. Private to gpu/. */
#ifndef SLC_GPU_EXPAND_H
#define SLC_GPU_EXPAND_H

#include "gpu/cuda/batch.h"

/* Expands the compressed section of each tile, if the tile has a compressed section, to the
 * expanded bytes of the tile's block. `tiles` and `fault` are in device memory. A section that does
 * not expand to its stated size sets *fault, and its missing bytes become zero. */
cudaError_t slc_gpu_expand(const struct slc_gpu_tile *tiles,
                           uint32_t tile_count,
                           struct slc_gpu_fault *fault,
                           cudaStream_t stream);

#endif
