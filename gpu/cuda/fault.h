/* Functions with which kernels report bytes that contradict their description. Device code. */
#ifndef SLC_GPU_FAULT_H
#define SLC_GPU_FAULT_H

#include "gpu/cuda/batch.h"

/* Sets *met to `kind` unless `sound` is true or *met already has a fault. *met is the first fault
 * of a warp lane; SLC_GPU_SOUND means no fault so far. */
__device__ static inline void slc_gpu_note(unsigned *met, bool sound, unsigned kind)
{
    *met = sound || *met != SLC_GPU_SOUND ? *met : kind;
}

/* Reports the faults of a warp. All warp lanes call the function together, each with its own fault,
 * or with SLC_GPU_SOUND. Only the first fault that any warp reports is kept: the warp lane that
 * sets `kind` also writes the other members. The host reads *fault after the kernel has ended. */
__device__ static inline void
slc_gpu_report(struct slc_gpu_fault *fault, const struct slc_gpu_tile *tile, unsigned kind)
{
    const unsigned faulty = __ballot_sync(SLC_ALL_LANES, kind != SLC_GPU_SOUND);

    if (faulty == 0 || threadIdx.x % SLC_WARP != (unsigned)__ffs((int)faulty) - 1U) {
        return;
    }
    if (atomicCAS(&fault->kind, (unsigned)SLC_GPU_SOUND, kind) == SLC_GPU_SOUND) {
        fault->tile = (uint32_t)tile->tile.ordinal;
        fault->block_number = tile->block_number;
        fault->block_offset = tile->block_offset;
    }
}

#endif
