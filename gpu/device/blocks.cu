/* Copies blocks to a slot or to the memory for resident blocks, and returns tickets. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

extern "C" {
#include "base/memory/checked.h"
}

#include <cinttypes>

/* A ticket consists of the number of a batch, the number of its slot and the number of the copy
 * within the batch. Ticket 0 means that no copy was needed. */
enum { TICKET_COPY_BITS = 24, TICKET_SLOT_BITS = 3 };

static_assert(SLC_DEVICE_STREAMS <= 1 << TICKET_SLOT_BITS, "a ticket names any slot");

static uint64_t ticket_of(const struct slc_gpu *gpu, const struct slc_gpu_slot *slot)
{
    const uint64_t number = (uint64_t)(slot - gpu->slots);

    return ((slot->batch << TICKET_SLOT_BITS | number) << TICKET_COPY_BITS) |
           (slot->copy_count - 1);
}

static enum slc_status
check_block(const struct slc_gpu *gpu, const struct slc_encoded_block *block, struct slc_error *err)
{
    const struct slc_device_problem *problem = &gpu->problem;
    enum slc_status status = SLC_OK;

    if (block->bytes > problem->slot_bytes || block->expanded_bytes > problem->expanded_bytes ||
        block->tile_count > problem->slot_tiles) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the block has %" PRIu64 " bytes, %" PRIu64 " expanded bytes and %" PRIu32
                          " tiles; slots of device %d were opened for %" PRIu64 ", %" PRIu64
                          " and %" PRIu32,
                          block->bytes, block->expanded_bytes, block->tile_count, gpu->ordinal,
                          problem->slot_bytes, problem->expanded_bytes, problem->slot_tiles);
    } else if (!slc_gpu_is_registered(gpu, block->data, block->bytes)) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the block's memory was not registered with device %d", gpu->ordinal);
    }
    if (status != SLC_OK) {
        slc_error_locate_block(err, nullptr, block->block, block->offset);
    }
    return status;
}

/* Returns true if the block fits in the slot together with the blocks that are already in the
 * slot. */
static bool fits_slot(const struct slc_gpu *gpu,
                      const struct slc_gpu_slot *slot,
                      const struct slc_encoded_block *block,
                      bool kept)
{
    const struct slc_device_problem *problem = &gpu->problem;

    return block->tile_count <= problem->slot_tiles - slot->tile_count &&
           (kept || (block->bytes <= problem->slot_bytes - slot->data_used &&
                     block->expanded_bytes <= problem->expanded_bytes - slot->expanded_used));
}

/* Returns the offset of the next block after a block of `bytes` bytes at offset `used`. The offset
 * is rounded up to the alignment, and is at most `end`. */
static uint64_t next_position(uint64_t used, uint64_t bytes, uint64_t end)
{
    uint64_t next;

    return slc_round_up_u64(used + bytes, SLC_DEVICE_ALIGN, &next) && next <= end ? next : end;
}

static void add_tiles(struct slc_gpu_slot *slot,
                      const struct slc_encoded_block *block,
                      const uint8_t *data,
                      const uint8_t *expanded)
{
    struct slc_gpu_tile *tiles = slot->memory.host_tiles + slot->tile_count;

    for (uint32_t t = 0; t < block->tile_count; t++) {
        tiles[t] = {data, expanded, block->block, block->offset, block->tiles[t]};
    }
}

static enum slc_status add_block(struct slc_gpu *gpu,
                                 struct slc_gpu_slot *slot,
                                 const struct slc_encoded_block *block,
                                 uint8_t *data,
                                 uint8_t *expanded,
                                 uint32_t *keep,
                                 struct slc_error *err)
{
    const struct slc_device_problem *problem = &gpu->problem;
    const bool kept = keep != nullptr;

    SLC_TRY(slc_gpu_slot_copy(gpu, slot, data, block->data, block->bytes, err));
    add_tiles(slot, block, data, expanded);
    if (kept) {
        SLC_TRY(slc_gpu_resident_keep(gpu, slot, block, slot->memory.host_tiles + slot->tile_count,
                                      keep, err));
    } else {
        slot->data_used = next_position(slot->data_used, block->bytes, problem->slot_bytes);
        slot->expanded_used =
            next_position(slot->expanded_used, block->expanded_bytes, problem->expanded_bytes);
    }
    slot->tile_count += block->tile_count;
    slot->expands = slot->expands || block->expanded_bytes > 0;
    slot->keeps = slot->keeps || kept;
    slot->nnz += block->nnz;
    gpu->stats.blocks++;
    gpu->stats.nnz += block->nnz;
    return SLC_OK;
}

static enum slc_status enqueue_block(struct slc_gpu *gpu,
                                     const struct slc_encoded_block *block,
                                     uint32_t *keep,
                                     uint64_t *ticket,
                                     struct slc_error *err)
{
    uint8_t *data = nullptr, *expanded = nullptr;
    const bool kept = keep != nullptr && slc_gpu_resident_fits(gpu, block, &data, &expanded);
    struct slc_gpu_slot *slot = nullptr;
    enum slc_status status = SLC_OK;

    if (gpu->filling != nullptr && !fits_slot(gpu, gpu->filling, block, kept)) {
        status = slc_gpu_slot_launch(gpu, err);
    }
    SLC_THEN(status, slc_gpu_slot_fill(gpu, &slot, err));
    if (status != SLC_OK) {
        return status;
    }
    if (!kept) {
        data = slot->memory.data + slot->data_used;
        expanded = slot->memory.expanded + slot->expanded_used;
    }
    SLC_TRY(add_block(gpu, slot, block, data, expanded, kept ? keep : nullptr, err));
    *ticket = ticket_of(gpu, slot);
    return SLC_OK;
}

enum slc_status slc_gpu_block(struct slc_device *device,
                              const struct slc_encoded_block *block,
                              uint32_t *keep,
                              uint64_t *ticket,
                              struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = slc_gpu_enter_job(gpu, err);

    *ticket = 0;
    if (keep != nullptr) {
        *keep = SLC_NOT_RESIDENT;
    }
    if (status == SLC_OK && block->tile_count > 0) {
        status = check_block(gpu, block, err);
        SLC_THEN(status, enqueue_block(gpu, block, keep, ticket, err));
    }
    return slc_gpu_leave_job(gpu, status);
}

enum slc_status slc_gpu_flush(struct slc_device *device, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = slc_gpu_enter_job(gpu, err);

    SLC_THEN(status, slc_gpu_slot_launch(gpu, err));
    SLC_THEN(status, slc_gpu_residents_launch(gpu, err));
    return slc_gpu_leave_job(gpu, status);
}

enum slc_status slc_gpu_copied(
    struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    const uint32_t number = ticket & ((1U << TICKET_COPY_BITS) - 1);
    const unsigned of_slot = ticket >> TICKET_COPY_BITS & ((1U << TICKET_SLOT_BITS) - 1);
    const uint64_t batch = ticket >> (TICKET_COPY_BITS + TICKET_SLOT_BITS);
    const struct slc_gpu_slot *slot = &gpu->slots[of_slot];
    enum slc_status status = slc_gpu_enter(gpu, err);

    *done = false;
    if (status != SLC_OK) {
        return status;
    }
    if (slot->batch != batch || slot->state == SLC_GPU_SLOT_FREE || number < slot->copies_timed) {
        *done = true;
        return SLC_OK;
    }
    cudaEvent_t end = slot->copies[number % SLC_GPU_COPIES].end;

    if (wait) {
        SLC_PLANT(copy_not_awaited, SLC_GPU_TRY(cudaEventSynchronize(end), err));
        *done = true;
        return SLC_OK;
    }
    return slc_gpu_reached(end, done, err);
}

static unsigned free_slots(const struct slc_gpu *gpu)
{
    unsigned count = 0;

    for (unsigned s = 0; s < gpu->problem.streams; s++) {
        count += gpu->slots[s].state == SLC_GPU_SLOT_FREE;
    }
    return count;
}

static enum slc_status read_progress(struct slc_gpu *gpu,
                                     const struct slc_encoded_block *next,
                                     struct slc_device_progress *progress,
                                     struct slc_error *err)
{
    enum slc_status status = slc_gpu_slots_poll(gpu, err);

    progress->fits =
        next != nullptr && gpu->filling != nullptr && fits_slot(gpu, gpu->filling, next, false);
    if (status == SLC_OK && next != nullptr && !progress->fits && free_slots(gpu) == 0) {
        status = slc_gpu_slot_launch(gpu, err);
    }
    progress->nnz = gpu->job.nnz_done;
    progress->free_slots = free_slots(gpu);
    progress->busy = false;
    for (unsigned s = 0; s < gpu->problem.streams; s++) {
        progress->busy = progress->busy || gpu->slots[s].state == SLC_GPU_SLOT_LAUNCHED;
    }
    progress->busy = progress->busy || gpu->residents.timed < gpu->residents.launched;
    return status;
}

enum slc_status slc_gpu_poll(struct slc_device *device,
                             const struct slc_encoded_block *next,
                             struct slc_device_progress *progress,
                             struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = slc_gpu_enter_job(gpu, err);

    SLC_THEN(status, read_progress(gpu, next, progress, err));
    return slc_gpu_leave_job(gpu, status);
}
