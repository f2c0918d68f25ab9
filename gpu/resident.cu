/*
 * Blocks that stay in the device's memory: their bytes and expanded bytes one behind the other,
 * their tiles in one table, so that blocks that follow one another are one range of it.
 */
#include "gpu/check.h"
#include "gpu/state.h"

extern "C" {
#include "base/checked.h"
}

#include <cinttypes>

/* Bytes of a part of a block, to where the next one begins. */
static bool padded(uint64_t *end, uint64_t bytes)
{
    uint64_t sum;

    return slc_add_u64(*end, bytes, &sum) && slc_round_up_u64(sum, SLC_DEVICE_ALIGN, end);
}

bool slc_gpu_resident_room(const struct slc_gpu *gpu,
                           const struct slc_encoded_block *block,
                           uint8_t **data,
                           uint8_t **expanded)
{
    const struct slc_gpu_residents *residents = &gpu->residents;
    uint64_t data_end = residents->used_bytes, end;

    if (block->tile_count > gpu->problem.resident_tiles - residents->tile_count ||
        !padded(&data_end, block->bytes)) {
        return false;
    }
    end = data_end;
    if (!padded(&end, block->expanded_bytes) || end > gpu->problem.resident_bytes) {
        return false;
    }
    *data = gpu->memory.resident + residents->used_bytes;
    *expanded = gpu->memory.resident + data_end;
    return true;
}

enum slc_status slc_gpu_resident_keep(struct slc_gpu *gpu,
                                      struct slc_gpu_slot *slot,
                                      const struct slc_encoded_block *block,
                                      const struct slc_gpu_tile *tiles,
                                      uint32_t *keep,
                                      struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;
    const uint64_t tile_bytes = block->tile_count * sizeof *tiles;
    const uint32_t first = residents->tile_count;

    SLC_GPU_TRY(cudaMemcpyAsync(gpu->memory.resident_tiles + first, tiles, tile_bytes,
                                cudaMemcpyHostToDevice, slot->stream),
                err);
    gpu->stats.bytes_to_device += tile_bytes;
    gpu->memory.resident_blocks[residents->block_count] = {
        first,      block->tile_count, block->bytes, block->nnz, (unsigned)(slot - gpu->slots),
        slot->batch};
    for (uint32_t t = 0; t < block->tile_count; t++) {
        gpu->memory.resident_nnz[first + t] = block->tiles[t].nnz;
    }
    (void)padded(&residents->used_bytes, block->bytes);
    (void)padded(&residents->used_bytes, block->expanded_bytes);
    residents->tile_count += block->tile_count;
    *keep = residents->block_count++;
    return SLC_OK;
}

/* Puts the block's tiles behind those of the slot's other residents. */
static void add_range(struct slc_gpu_slot *slot, const struct slc_gpu_resident_block *block)
{
    struct slc_gpu_range *last =
        slot->range_count > 0 ? &slot->memory.ranges[slot->range_count - 1] : nullptr;

    if (last != nullptr && last->first + last->count == block->first_tile) {
        last->count += block->tile_count;
    } else {
        slot->memory.ranges[slot->range_count++] = {block->first_tile, block->tile_count};
    }
    slot->range_tiles += block->tile_count;
}

/* The block may have come by a batch of another stream that is under way. */
static enum slc_status await_arrival(const struct slc_gpu *gpu,
                                     const struct slc_gpu_slot *slot,
                                     const struct slc_gpu_resident_block *block,
                                     struct slc_error *err)
{
    const struct slc_gpu_slot *by = &gpu->slots[block->slot];

    if (by != slot && by->batch == block->batch && by->state == SLC_GPU_SLOT_LAUNCHED) {
        SLC_PLANT(resident_not_awaited,
                  SLC_GPU_TRY(cudaStreamWaitEvent(slot->stream, by->done, 0), err));
    }
    return SLC_OK;
}

static enum slc_status
take(struct slc_gpu *gpu, const struct slc_gpu_resident_block *block, struct slc_error *err)
{
    struct slc_gpu_slot *slot = gpu->filling;
    enum slc_status status = SLC_OK;

    if (slot != nullptr &&
        block->tile_count > gpu->problem.slot_tiles - slot->tile_count - slot->range_tiles) {
        status = slc_gpu_slot_launch(gpu, err);
    }
    if (status == SLC_OK) {
        status = slc_gpu_slot_fill(gpu, &slot, err);
    }
    if (status == SLC_OK) {
        status = await_arrival(gpu, slot, block, err);
    }
    if (status == SLC_OK) {
        add_range(slot, block);
        slot->nnz += block->nnz;
        gpu->stats.blocks++;
        gpu->stats.nnz += block->nnz;
        gpu->stats.resident_bytes += block->bytes;
    }
    return status;
}

enum slc_status slc_gpu_resident(struct slc_device *device, uint32_t keep, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = slc_gpu_enter_job(gpu, err);

    if (status == SLC_OK && keep >= gpu->residents.block_count) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "device %d keeps %" PRIu32 " blocks: there is no number %" PRIu32,
                          gpu->ordinal, gpu->residents.block_count, keep);
    } else if (status == SLC_OK) {
        status = take(gpu, &gpu->memory.resident_blocks[keep], err);
    }
    return slc_gpu_leave_job(gpu, status);
}
