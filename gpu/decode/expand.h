/*
 * Expanding LZ4 sections of blocks on the device. Private to gpu/.
 */
#ifndef SLC_GPU_EXPAND_H
#define SLC_GPU_EXPAND_H

#include "gpu/cuda/batch.h"

/*
 * Expands the compressed section of each of these tiles, where it has one, to the place in its
 * block's expanded bytes. Both arrays lie in the device's memory. What does not expand to what it
 * should goes to *fault.
 */
cudaError_t slc_gpu_expand(const struct slc_gpu_tile *tiles,
                           uint32_t tile_count,
                           struct slc_gpu_fault *fault,
                           cudaStream_t stream);

#endif
