/* Transcodes resident blocks once (gpu/decode/transcode.h), so that later MTTKRPs need not decode
 * them, if the memory that the device may use suffices. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

/* Returns true if all resident blocks belong to one layout. */
static bool one_layout(const struct slc_gpu *gpu)
{
    const struct slc_gpu_resident_block *blocks = gpu->memory.resident_blocks;

    for (uint32_t b = 1; b < gpu->residents.block_count; b++) {
        if (blocks[b].layout != blocks[0].layout) {
            return false;
        }
    }
    return true;
}

static enum slc_status transcode(struct slc_gpu *gpu, struct slc_error *err)
{
    struct slc_gpu_transcoded_tiles *made = &gpu->transcoded;
    const struct slc_gpu_residents *residents = &gpu->residents;

    SLC_GPU_TRY(cudaMemsetAsync(gpu->memory.fault, 0, sizeof *gpu->memory.fault, gpu->main), err);
    const cudaError_t error = slc_gpu_transcode(
        gpu->memory.resident_tiles, residents->tile_count, gpu->memory.resident_blocks[0].layout,
        gpu->problem.order, gpu->problem.transcoded_bytes, gpu->memory.fault, made, gpu->main);

    if (error == cudaErrorMemoryAllocation) {
        /* The blocks are decoded in every MTTKRP. Clears the error. */
        (void)cudaGetLastError();
        slc_gpu_transcoded_destroy(made);
        return SLC_OK;
    }
    SLC_GPU_TRY(error, err);
    SLC_GPU_TRY(cudaMemcpyAsync(gpu->memory.host_fault, gpu->memory.fault,
                                sizeof *gpu->memory.fault, cudaMemcpyDeviceToHost, gpu->main),
                err);
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    if (gpu->memory.host_fault->kind != SLC_GPU_SOUND) {
        return slc_gpu_fail_damaged(gpu->memory.host_fault, err);
    }
    gpu->stats.transcoded_bytes = made->bytes;
    return SLC_OK;
}

enum slc_status slc_gpu_transcode_residents(struct slc_gpu *gpu, struct slc_error *err)
{
    const uint32_t blocks = gpu->residents.block_count;

    if (blocks == gpu->transcoded_blocks || gpu->problem.transcoded_bytes == 0 ||
        gpu->problem.deterministic || !one_layout(gpu)) {
        return SLC_OK;
    }
    gpu->transcoded_blocks = blocks;
    gpu->stats.transcoded_bytes = 0;
    slc_gpu_transcoded_destroy(&gpu->transcoded);
    const enum slc_status status = transcode(gpu, err);

    if (status != SLC_OK) {
        slc_gpu_wait(gpu);
        slc_gpu_transcoded_destroy(&gpu->transcoded);
    }
    return status;
}
