/*
 * Slots: each a stream, memory for the blocks of one batch, and events. Blocks are copied as they
 * come; a batch is launched when the next block finds no room, or at a flush: its tables, the
 * expansion of what is compressed, and one MTTKRP of all its tiles.
 */
#include "gpu/check.h"
#include "gpu/expand.h"
#include "gpu/state.h"

extern "C" {
#include "base/checked.h"
}

/* ---- times */

static enum slc_status
add_seconds(double *seconds, cudaEvent_t begin, cudaEvent_t end, struct slc_error *err)
{
    float milliseconds = 0;

    SLC_GPU_TRY(cudaEventElapsedTime(&milliseconds, begin, end), err);
    *seconds += milliseconds * 1e-3;
    return SLC_OK;
}

/* Waits for the first `count` copies of the batch and adds up how long they took. */
static enum slc_status
time_copies(struct slc_gpu *gpu, struct slc_gpu_slot *slot, uint32_t count, struct slc_error *err)
{
    while (slot->copies_timed < count) {
        const struct slc_gpu_copy *copy = &slot->copies[slot->copies_timed % SLC_GPU_COPIES];
        enum slc_status status;

        SLC_GPU_TRY(cudaEventSynchronize(copy->end), err);
        status = add_seconds(&gpu->stats.copy_seconds, copy->begin, copy->end, err);
        if (status != SLC_OK) {
            return status;
        }
        slot->copies_timed++;
    }
    return SLC_OK;
}

/* ---- taking and giving back */

enum slc_status
slc_gpu_slot_retire(struct slc_gpu *gpu, struct slc_gpu_slot *slot, struct slc_error *err)
{
    enum slc_status status;

    SLC_PLANT(slot_overwritten, SLC_GPU_TRY(cudaEventSynchronize(slot->done), err));
    status = time_copies(gpu, slot, slot->copy_count, err);
    if (status == SLC_OK) {
        status = add_seconds(&gpu->stats.compute_seconds, slot->computing, slot->done, err);
    }
    if (status == SLC_OK) {
        slot->state = SLC_GPU_SLOT_FREE;
        gpu->job.nnz_done += slot->nnz;
    }
    return status;
}

void slc_gpu_wait(struct slc_gpu *gpu)
{
    (void)cudaSetDevice(gpu->ordinal);
    for (unsigned s = 0; s < SLC_DEVICE_STREAMS; s++) {
        if (gpu->slots[s].stream != nullptr) {
            (void)cudaStreamSynchronize(gpu->slots[s].stream);
        }
    }
    if (gpu->main != nullptr) {
        (void)cudaStreamSynchronize(gpu->main);
    }
    (void)cudaGetLastError();
}

void slc_gpu_settle(struct slc_gpu *gpu)
{
    slc_gpu_wait(gpu);
    for (unsigned s = 0; s < SLC_DEVICE_STREAMS; s++) {
        gpu->slots[s].state = SLC_GPU_SLOT_FREE;
    }
    gpu->residents.lost = gpu->residents.lost || (gpu->filling != nullptr && gpu->filling->keeps);
    gpu->filling = nullptr;
}

enum slc_status slc_gpu_slots_look(struct slc_gpu *gpu, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned s = 0; s < gpu->problem.streams && status == SLC_OK; s++) {
        struct slc_gpu_slot *slot = &gpu->slots[s];
        bool reached = false;

        if (slot->state == SLC_GPU_SLOT_LAUNCHED) {
            status = slc_gpu_reached(slot->done, &reached, err);
            if (status == SLC_OK && reached) {
                status = slc_gpu_slot_retire(gpu, slot, err);
            }
        }
    }
    return status;
}

/* A free slot, one that has just become so, or the one whose batch began first. */
static enum slc_status
choose(struct slc_gpu *gpu, struct slc_gpu_slot **chosen, struct slc_error *err)
{
    struct slc_gpu_slot *oldest = nullptr;
    const enum slc_status status = slc_gpu_slots_look(gpu, err);

    if (status != SLC_OK) {
        return status;
    }
    for (unsigned s = 0; s < gpu->problem.streams; s++) {
        struct slc_gpu_slot *slot = &gpu->slots[s];

        if (oldest == nullptr ||
            (slot->state == SLC_GPU_SLOT_FREE) > (oldest->state == SLC_GPU_SLOT_FREE) ||
            (slot->state == oldest->state && slot->batch < oldest->batch)) {
            oldest = slot;
        }
    }
    *chosen = oldest;
    return oldest->state == SLC_GPU_SLOT_FREE ? SLC_OK : slc_gpu_slot_retire(gpu, oldest, err);
}

enum slc_status
slc_gpu_slot_fill(struct slc_gpu *gpu, struct slc_gpu_slot **slot, struct slc_error *err)
{
    if (gpu->filling == nullptr) {
        struct slc_gpu_slot *chosen = nullptr;
        const enum slc_status status = choose(gpu, &chosen, err);

        if (status != SLC_OK) {
            return status;
        }
        chosen->state = SLC_GPU_SLOT_FILLING;
        chosen->batch = ++gpu->batches;
        chosen->data_used = chosen->expanded_used = 0;
        chosen->tile_count = chosen->range_count = chosen->range_tiles = 0;
        chosen->copy_count = chosen->copies_timed = 0;
        chosen->nnz = 0;
        chosen->expands = chosen->keeps = false;
        gpu->filling = chosen;
    }
    *slot = gpu->filling;
    return SLC_OK;
}

/* ---- copies of blocks */

static enum slc_status copy(struct slc_gpu_slot *slot,
                            const struct slc_gpu_copy *copy,
                            void *to,
                            const void *from,
                            uint64_t bytes,
                            struct slc_error *err)
{
    SLC_GPU_TRY(cudaEventRecord(copy->begin, slot->stream), err);
    SLC_GPU_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, slot->stream), err);
    SLC_GPU_TRY(cudaEventRecord(copy->end, slot->stream), err);
    return SLC_OK;
}

enum slc_status slc_gpu_slot_copy(struct slc_gpu *gpu,
                                  struct slc_gpu_slot *slot,
                                  void *to,
                                  const void *from,
                                  uint64_t bytes,
                                  struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    /* The events of a copy are used again when its time is known. */
    if (slot->copy_count >= SLC_GPU_COPIES) {
        status = time_copies(gpu, slot, slot->copy_count - SLC_GPU_COPIES + 1, err);
    }
    if (status == SLC_OK) {
        status = copy(slot, &slot->copies[slot->copy_count % SLC_GPU_COPIES], to, from, bytes, err);
    }
    if (status == SLC_OK) {
        slot->copy_count++;
        gpu->stats.block_bytes += bytes;
    }
    return status;
}

/* ---- launching a batch */

static uint32_t chunks_of(uint32_t nnz, uint32_t chunk_runs)
{
    const uint32_t chunk_nnz = chunk_runs * SLC_RUN_NNZ;

    return nnz / chunk_nnz + (nnz % chunk_nnz != 0);
}

/* Where the chunks of each tile begin. Returns how many there are. */
static uint32_t cut_chunks(const struct slc_gpu *gpu, struct slc_gpu_slot *slot)
{
    uint32_t *begin = slot->memory.host_chunk_begin;
    uint32_t tile = 0;

    begin[0] = 0;
    for (; tile < slot->tile_count; tile++) {
        begin[tile + 1] =
            begin[tile] + chunks_of(slot->memory.host_tiles[tile].tile.nnz, gpu->job.chunk_runs);
    }
    for (uint32_t r = 0; r < slot->range_count; r++) {
        const struct slc_gpu_range *range = &slot->memory.ranges[r];

        for (uint32_t i = 0; i < range->count; i++, tile++) {
            begin[tile + 1] = begin[tile] + chunks_of(gpu->memory.resident_nnz[range->first + i],
                                                      gpu->job.chunk_runs);
        }
    }
    return begin[tile];
}

/* Residents that follow one another have a table already. */
static bool is_one_range(const struct slc_gpu_slot *slot)
{
    return slot->tile_count == 0 && slot->range_count == 1;
}

/* The slot's table of tiles: what came, then residents. */
static enum slc_status
copy_tables(struct slc_gpu *gpu, struct slc_gpu_slot *slot, struct slc_error *err)
{
    const struct slc_gpu_slot_memory *memory = &slot->memory;
    const uint64_t tile_bytes = slot->tile_count * sizeof *memory->tiles;
    const uint64_t begin_bytes =
        ((uint64_t)slot->tile_count + slot->range_tiles + 1) * sizeof *memory->chunk_begin;
    uint32_t tile = slot->tile_count;

    SLC_GPU_TRY(cudaMemcpyAsync(memory->chunk_begin, memory->host_chunk_begin, begin_bytes,
                                cudaMemcpyHostToDevice, slot->stream),
                err);
    if (tile_bytes > 0) {
        SLC_GPU_TRY(cudaMemcpyAsync(memory->tiles, memory->host_tiles, tile_bytes,
                                    cudaMemcpyHostToDevice, slot->stream),
                    err);
    }
    gpu->stats.bytes_to_device += begin_bytes + tile_bytes;
    for (uint32_t r = 0; r < slot->range_count && !is_one_range(slot); r++) {
        const struct slc_gpu_range *range = &memory->ranges[r];

        SLC_GPU_TRY(cudaMemcpyAsync(memory->tiles + tile, gpu->memory.resident_tiles + range->first,
                                    range->count * sizeof *memory->tiles, cudaMemcpyDeviceToDevice,
                                    slot->stream),
                    err);
        tile += range->count;
    }
    return SLC_OK;
}

static enum slc_status launch(struct slc_gpu *gpu, struct slc_gpu_slot *slot, struct slc_error *err)
{
    struct slc_gpu_batch batch = {};
    enum slc_status status;

    batch.tiles = is_one_range(slot) ? gpu->memory.resident_tiles + slot->memory.ranges[0].first
                                     : slot->memory.tiles;
    batch.chunk_begin = slot->memory.chunk_begin;
    batch.tile_count = slot->tile_count + slot->range_tiles;
    batch.chunk_count = cut_chunks(gpu, slot);
    batch.chunk_runs = gpu->job.chunk_runs;
    batch.layout = gpu->job.layout;
    batch.fault = gpu->memory.fault;
    status = copy_tables(gpu, slot, err);
    if (status != SLC_OK) {
        return status;
    }
    /* The output's zeros, and whatever the factors come from. */
    SLC_PLANT(batch_before_begun,
              SLC_GPU_TRY(cudaStreamWaitEvent(slot->stream, gpu->begun, 0), err));
    SLC_GPU_TRY(cudaEventRecord(slot->computing, slot->stream), err);
    if (slot->expands) {
        SLC_GPU_TRY(
            slc_gpu_expand(slot->memory.tiles, slot->tile_count, gpu->memory.fault, slot->stream),
            err);
    }
    SLC_GPU_TRY(slc_gpu_mttkrp_batch(&gpu->job.mttkrp, &batch, &gpu->machine, slot->stream), err);
    SLC_GPU_TRY(cudaEventRecord(slot->done, slot->stream), err);
    slot->state = SLC_GPU_SLOT_LAUNCHED;
    gpu->filling = nullptr;
    gpu->stats.launches++;
    return SLC_OK;
}

enum slc_status slc_gpu_slot_launch(struct slc_gpu *gpu, struct slc_error *err)
{
    return gpu->filling == nullptr ? SLC_OK : launch(gpu, gpu->filling, err);
}
