/* Chooses a variant of the MTTKRP kernel, and transcodes resident blocks if the variant needs
 * transcoded tiles. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

extern "C" {
#include "gpu/device/variants.h"
}

extern "C" unsigned slc_gpu_variants(void)
{
    unsigned count;

    (void)slc_gpu_mttkrp_variant_list(&count);
    return count;
}

extern "C" const char *slc_gpu_variant_name(unsigned variant)
{
    unsigned count;
    const struct slc_gpu_named_variant *list = slc_gpu_mttkrp_variant_list(&count);

    return variant < count ? list[variant].name : "?";
}

/* Transcodes the resident blocks, which must all belong to one layout. */
static enum slc_status transcode(struct slc_gpu *gpu, struct slc_error *err)
{
    const struct slc_gpu_residents *residents = &gpu->residents;
    const struct slc_gpu_resident_block *blocks = gpu->memory.resident_blocks;

    if (residents->block_count == 0) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "device %d has no resident blocks to transcode",
                        gpu->ordinal);
    }
    for (uint32_t b = 1; b < residents->block_count; b++) {
        if (blocks[b].layout != blocks[0].layout) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "device %d has resident blocks of several layouts: a variant needs "
                            "blocks of one layout",
                            gpu->ordinal);
        }
    }
    SLC_GPU_TRY(cudaMemsetAsync(gpu->memory.fault, 0, sizeof *gpu->memory.fault, gpu->main), err);
    SLC_GPU_TRY(slc_gpu_transcode(gpu->memory.resident_tiles, residents->tile_count,
                                  blocks[0].layout, gpu->problem.order, gpu->memory.fault,
                                  &gpu->transcoded, gpu->main),
                err);
    SLC_GPU_TRY(cudaMemcpyAsync(gpu->memory.host_fault, gpu->memory.fault,
                                sizeof *gpu->memory.fault, cudaMemcpyDeviceToHost, gpu->main),
                err);
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    return gpu->memory.host_fault->kind == SLC_GPU_SOUND
               ? SLC_OK
               : slc_gpu_fail_damaged(gpu->memory.host_fault, err);
}

extern "C" enum slc_status
slc_gpu_variant_use(struct slc_device *device, unsigned variant, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    unsigned count;
    const struct slc_gpu_named_variant *list = slc_gpu_mttkrp_variant_list(&count);
    enum slc_status status = slc_gpu_enter(gpu, err);

    if (status != SLC_OK) {
        return status;
    }
    if (gpu->job.active) {
        return slc_fail(err, SLC_ERR_USAGE, "device %d: the variant cannot change during a job",
                        gpu->ordinal);
    }
    if (variant >= count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "variant %u does not exist: there are %u variants, and numbers start at 0",
                        variant, count);
    }
    gpu->variant = {};
    slc_gpu_transcoded_destroy(&gpu->transcoded);
    if (variant > 0 && (gpu->problem.deterministic || gpu->problem.precision != SLC_F64)) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "variant %s needs f64 factors and sums that are not deterministic",
                        list[variant].name);
    }
    if ((list[variant].variant.flags & SLC_MTTKRP_TRANSCODED) != 0) {
        status = transcode(gpu, err);
        if (status != SLC_OK) {
            slc_gpu_wait(gpu);
            slc_gpu_transcoded_destroy(&gpu->transcoded);
            return status;
        }
    }
    gpu->variant = list[variant].variant;
    return SLC_OK;
}
