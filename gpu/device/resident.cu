/* Manages blocks that are resident in device memory. The bytes and expanded bytes of resident
 * blocks are stored consecutively, and their tiles are in one table. A job marks the blocks that it
 * needs. All marked blocks are launched together, so that neighbours in memory form one launch,
 * regardless of the order in which they were marked. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

extern "C" {
#include "base/memory/checked.h"
}

#include <cinttypes>

/* Least and largest number of waves of a launch of resident blocks while other blocks are copied.
 * With eight waves, a thread block runs for an eighth of the launch's time. A batch of copied
 * blocks has priority, so the batch waits at most for one wave. */
enum { WAVES_LEAST = 8, WAVES_MOST = 32 };

/* Returns the number of waves of a launch of `bytes` bytes of resident blocks. If possible, a wave
 * has at most the bytes of two slots, so that a batch does not wait much longer than its copy
 * takes. */
static uint32_t waves_of(const struct slc_gpu *gpu, uint64_t bytes)
{
    const uint64_t waves = bytes / (2 * gpu->problem.slot_bytes);

    return !gpu->job.copies      ? 1
           : waves < WAVES_LEAST ? (uint32_t)WAVES_LEAST
                                 : (uint32_t)slc_min_u64(waves, WAVES_MOST);
}

enum slc_status slc_gpu_residents_open(struct slc_gpu *gpu, struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;

    SLC_GPU_TRY(cudaStreamCreateWithFlags(&residents->stream, cudaStreamNonBlocking), err);
    for (unsigned l = 0; l < SLC_GPU_COPIES; l++) {
        SLC_TRY(slc_gpu_span_open(&residents->computing[l], err));
    }
    return SLC_OK;
}

void slc_gpu_residents_close(struct slc_gpu *gpu)
{
    struct slc_gpu_residents *residents = &gpu->residents;

    for (struct slc_gpu_span &span : residents->computing) {
        slc_gpu_span_close(&span);
    }
    if (residents->stream != nullptr) {
        (void)cudaStreamDestroy(residents->stream);
    }
    *residents = {};
}

void slc_gpu_residents_reset(struct slc_gpu *gpu)
{
    struct slc_gpu_residents *residents = &gpu->residents;

    for (uint32_t b = residents->marked_begin; b < residents->marked_end; b++) {
        gpu->memory.resident_blocks[b].marked = false;
    }
    residents->marked_begin = residents->marked_end = 0;
    residents->launched = residents->timed = 0;
    residents->table_used = 0;
}

/* ---- making blocks resident */

/* Adds the bytes of a part of a block to *end, and rounds *end up to the offset of the next
 * part. */
static bool add_padded(uint64_t *end, uint64_t bytes)
{
    uint64_t sum;

    return slc_add_u64(*end, bytes, &sum) && slc_round_up_u64(sum, SLC_DEVICE_ALIGN, end);
}

bool slc_gpu_resident_fits(const struct slc_gpu *gpu,
                           const struct slc_encoded_block *block,
                           uint8_t **data,
                           uint8_t **expanded)
{
    const struct slc_gpu_residents *residents = &gpu->residents;
    uint64_t data_end = residents->used_bytes, end;

    if (block->tile_count > gpu->problem.resident_tiles - residents->tile_count ||
        !add_padded(&data_end, block->bytes)) {
        return false;
    }
    end = data_end;
    if (!add_padded(&end, block->expanded_bytes) || end > gpu->problem.resident_bytes) {
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
    gpu->memory.resident_blocks[residents->block_count] = {first,
                                                           block->tile_count,
                                                           block->bytes,
                                                           block->nnz,
                                                           (unsigned)(slot - gpu->slots),
                                                           slot->batch,
                                                           false,
                                                           gpu->job.layout};
    for (uint32_t t = 0; t < block->tile_count; t++) {
        gpu->memory.resident_nnz[first + t] = block->tiles[t].nnz;
    }
    (void)add_padded(&residents->used_bytes, block->bytes);
    (void)add_padded(&residents->used_bytes, block->expanded_bytes);
    residents->tile_count += block->tile_count;
    *keep = residents->block_count++;
    return SLC_OK;
}

/* ---- marking */

/* Returns true if the block arrives with a batch of this job whose slot is in state `state`. */
static bool arrives(const struct slc_gpu *gpu,
                    const struct slc_gpu_resident_block *block,
                    enum slc_gpu_slot_state state)
{
    const struct slc_gpu_slot *by = &gpu->slots[block->slot];

    return by->batch == block->batch && by->state == state;
}

static enum slc_status mark_block(struct slc_gpu *gpu, uint32_t keep, struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;
    struct slc_gpu_resident_block *block = &gpu->memory.resident_blocks[keep];

    if (arrives(gpu, block, SLC_GPU_SLOT_FILLING)) {
        SLC_TRY(slc_gpu_slot_launch(gpu, err));
    }
    if (block->marked) {
        /* A block that is marked a second time in a job needs a second launch. */
        SLC_TRY(slc_gpu_residents_launch(gpu, err));
    }
    block->marked = true;
    if (residents->marked_begin == residents->marked_end) {
        residents->marked_begin = keep;
        residents->marked_end = keep + 1;
    } else if (keep < residents->marked_begin) {
        residents->marked_begin = keep;
    } else if (keep >= residents->marked_end) {
        residents->marked_end = keep + 1;
    }
    gpu->stats.blocks++;
    gpu->stats.nnz += block->nnz;
    gpu->stats.resident_bytes += block->bytes;
    return SLC_OK;
}

enum slc_status slc_gpu_resident(struct slc_device *device, uint32_t keep, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = slc_gpu_enter_job(gpu, err);

    if (status == SLC_OK && keep >= gpu->residents.block_count) {
        status =
            slc_fail(err, SLC_ERR_USAGE,
                     "device %d has %" PRIu32 " resident blocks, but none with number %" PRIu32,
                     gpu->ordinal, gpu->residents.block_count, keep);
    } else if (status == SLC_OK) {
        status = mark_block(gpu, keep, err);
    }
    return slc_gpu_leave_job(gpu, status);
}

/* ---- launching */

enum slc_status slc_gpu_residents_poll(struct slc_gpu *gpu, bool wait, struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;

    while (residents->timed < residents->launched) {
        const uint32_t which = residents->timed % SLC_GPU_COPIES;
        const struct slc_gpu_span *span = &residents->computing[which];
        bool reached = true;
        enum slc_status status = SLC_OK;

        if (wait) {
            SLC_GPU_TRY(cudaEventSynchronize(span->end), err);
        } else {
            status = slc_gpu_reached(span->end, &reached, err);
        }
        if (status == SLC_OK && reached) {
            status = slc_gpu_add_span(gpu, &gpu->times.compute, span, err);
        }
        if (status != SLC_OK || !reached) {
            return status;
        }
        gpu->job.nnz_done += residents->nnz[which];
        residents->timed++;
    }
    residents->table_used = 0;
    return SLC_OK;
}

enum slc_status slc_gpu_residents_join(struct slc_gpu *gpu, struct slc_error *err)
{
    const struct slc_gpu_residents *residents = &gpu->residents;

    if (residents->timed < residents->launched) {
        const uint32_t last = (residents->launched - 1) % SLC_GPU_COPIES;

        SLC_GPU_TRY(cudaStreamWaitEvent(gpu->main, residents->computing[last].end, 0), err);
    }
    return SLC_OK;
}

/* Allocates `entries` entries of the table of chunks. Waits for pending launches if they use too
 * many entries. */
static enum slc_status
allocate_table(struct slc_gpu *gpu, uint64_t entries, uint64_t *at, struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;
    enum slc_status status = SLC_OK;

    if (residents->launched - residents->timed == SLC_GPU_COPIES ||
        entries > slc_gpu_resident_table(&gpu->problem) - residents->table_used) {
        status = slc_gpu_residents_poll(gpu, true, err);
    }
    *at = residents->table_used;
    residents->table_used += entries;
    return status;
}

/* Makes the stream of resident blocks wait until the blocks [first, end) have arrived. */
static enum slc_status
await_arrivals(const struct slc_gpu *gpu, uint32_t first, uint32_t end, struct slc_error *err)
{
    for (uint32_t b = first; b < end; b++) {
        const struct slc_gpu_resident_block *block = &gpu->memory.resident_blocks[b];

        if (arrives(gpu, block, SLC_GPU_SLOT_LAUNCHED)) {
            SLC_PLANT(resident_not_awaited,
                      SLC_GPU_TRY(cudaStreamWaitEvent(gpu->residents.stream,
                                                      gpu->slots[block->slot].computing.end, 0),
                                  err));
        }
    }
    return SLC_OK;
}

/* Enqueues the kernel of a batch, between two events, on the stream of resident blocks. The stream
 * first waits until the job has begun: until its output is zeroed and its factors are written. */
static enum slc_status compute_batch(struct slc_gpu *gpu,
                                     const struct slc_gpu_batch *batch,
                                     const struct slc_gpu_span *span,
                                     struct slc_error *err)
{
    const cudaStream_t stream = gpu->residents.stream;

    SLC_GPU_TRY(cudaStreamWaitEvent(stream, gpu->times.epoch, 0), err);
    SLC_PLANT(residents_before_begun, SLC_GPU_TRY(cudaStreamWaitEvent(stream, gpu->begun, 0), err));
    SLC_GPU_TRY(cudaEventRecord(span->begin, stream), err);
    SLC_GPU_TRY(slc_gpu_mttkrp_batch(&gpu->job.mttkrp, batch, &gpu->machine, stream), err);
    SLC_GPU_TRY(cudaEventRecord(span->end, stream), err);
    return SLC_OK;
}

/* Launches the blocks [first, end), all of which are marked. */
static enum slc_status
launch_blocks(struct slc_gpu *gpu, uint32_t first, uint32_t end, struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;
    const struct slc_gpu_resident_block *blocks = gpu->memory.resident_blocks;
    struct slc_gpu_batch batch = slc_gpu_batch_of(gpu);
    const uint32_t first_tile = blocks[first].first_tile;
    uint32_t *begin;
    uint64_t at = 0, nnz = 0, bytes = 0;
    enum slc_status status;

    for (uint32_t b = first; b < end; b++) {
        bytes += blocks[b].bytes;
    }
    batch.tile_count = blocks[end - 1].first_tile + blocks[end - 1].tile_count - first_tile;
    status = allocate_table(gpu, (uint64_t)batch.tile_count + 1, &at, err);
    SLC_THEN(status, await_arrivals(gpu, first, end, err));
    if (status != SLC_OK) {
        return status;
    }
    begin = gpu->memory.host_resident_chunk_begin + at;
    begin[0] = 0;
    for (uint32_t t = 0; t < batch.tile_count; t++) {
        const uint32_t tile_nnz = gpu->memory.resident_nnz[first_tile + t];

        begin[t + 1] = begin[t] + slc_gpu_chunks_of(tile_nnz, gpu->job.chunk_runs);
        nnz += tile_nnz;
    }
    batch.tiles = gpu->memory.resident_tiles + first_tile;
    batch.chunk_begin = gpu->memory.resident_chunk_begin + at;
    batch.chunk_count = begin[batch.tile_count];
    batch.waves = waves_of(gpu, bytes);
    if (first_tile + batch.tile_count <= gpu->transcoded.count) {
        batch.transcoded = gpu->transcoded.tiles + first_tile;
    }
    const uint64_t table_bytes = ((uint64_t)batch.tile_count + 1) * sizeof *begin;

    SLC_GPU_TRY(cudaMemcpyAsync(gpu->memory.resident_chunk_begin + at, begin, table_bytes,
                                cudaMemcpyHostToDevice, residents->stream),
                err);
    gpu->stats.bytes_to_device += table_bytes;
    residents->nnz[residents->launched % SLC_GPU_COPIES] = nnz;
    status = compute_batch(gpu, &batch, &residents->computing[residents->launched % SLC_GPU_COPIES],
                           err);
    residents->launched += status == SLC_OK;
    gpu->stats.launches += status == SLC_OK;
    return status;
}

enum slc_status slc_gpu_residents_launch(struct slc_gpu *gpu, struct slc_error *err)
{
    struct slc_gpu_residents *residents = &gpu->residents;
    struct slc_gpu_resident_block *blocks = gpu->memory.resident_blocks;
    enum slc_status status = SLC_OK;

    for (uint32_t first = residents->marked_begin, end = first;
         first < residents->marked_end && status == SLC_OK; first = end) {
        for (end = first; end < residents->marked_end && blocks[end].marked; end++) {
            blocks[end].marked = false;
        }
        if (end > first) {
            status = launch_blocks(gpu, first, end, err);
        } else {
            end++;
        }
    }
    SLC_TRY(status);
    residents->marked_begin = residents->marked_end = 0;
    return SLC_OK;
}
