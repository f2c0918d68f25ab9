/* See variants.h. */
#include "gpu/check.h"
#include "gpu/state.h"

extern "C" {
#include "gpu/variants.h"
}

/* Each differs from the default in one respect but for the last. */
static const struct {
    const char *name;
    struct slc_gpu_mttkrp_form form;
} variants[] = {
    {"default", {0, 0, false}},
    {"chunks-2", {0, 2, false}},
    {"chunks-8", {0, 8, false}},
    {"interleaved", {0, 0, true}},
    {"no-stash", {SLC_MTTKRP_WITHOUT_STASH, 0, false}},
    {"full-sectors", {SLC_MTTKRP_FULL_SECTORS, 0, false}},
    {"shared-fields", {SLC_MTTKRP_SHARED_FIELDS, 0, false}},
    {"transcoded", {SLC_MTTKRP_TRANSCODED, 0, false}},
    /* Without the registers of decoding three blocks of a multiprocessor have enough. */
    {"transcoded-3",
     {SLC_MTTKRP_TRANSCODED | SLC_MTTKRP_WITHOUT_STASH | SLC_MTTKRP_THREE_BLOCKS, 2, false}},
};

extern "C" unsigned slc_gpu_variants(void)
{
    return sizeof variants / sizeof variants[0];
}

extern "C" const char *slc_gpu_variant_name(unsigned variant)
{
    return variant < slc_gpu_variants() ? variants[variant].name : "?";
}

/* Copies the resident blocks, which have to be of one layout. */
static enum slc_status transcode(struct slc_gpu *gpu, struct slc_error *err)
{
    const struct slc_gpu_residents *residents = &gpu->residents;
    const struct slc_gpu_resident_block *blocks = gpu->memory.resident_blocks;

    if (residents->block_count == 0) {
        return SLC_OK;
    }
    for (uint32_t b = 1; b < residents->block_count; b++) {
        if (blocks[b].layout != blocks[0].layout) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "device %d has blocks of several layouts: ask for one of them",
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
    enum slc_status status = slc_gpu_enter(gpu, err);

    if (status != SLC_OK) {
        return status;
    }
    if (gpu->job.active || variant >= slc_gpu_variants()) {
        return slc_fail(err, SLC_ERR_USAGE, "device %d cannot compute by variant %u of %u%s",
                        gpu->ordinal, variant, slc_gpu_variants(),
                        gpu->job.active ? " in the midst of a job" : "");
    }
    gpu->form = {};
    slc_gpu_transcoded_destroy(&gpu->transcoded);
    if (variant > 0 && (gpu->problem.deterministic || gpu->problem.precision != SLC_F64)) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "variant %s is of f64 factors and sums in any order alone",
                        variants[variant].name);
    }
    if ((variants[variant].form.code & SLC_MTTKRP_TRANSCODED) != 0) {
        status = transcode(gpu, err);
        if (status != SLC_OK) {
            slc_gpu_wait(gpu);
            slc_gpu_transcoded_destroy(&gpu->transcoded);
            return status;
        }
    }
    gpu->form = variants[variant].form;
    return SLC_OK;
}
