/* Fills slots with blocks and launches their batches. Each slot has a stream, memory for the blocks
 * of one batch, and events. Blocks are copied as they arrive. A batch is launched when the next
 * block does not fit, or at a flush. The launch copies the table, expands compressed sections and
 * multiplies all tiles of the batch. */
#include "gpu/cuda/check.h"
#include "gpu/decode/expand.h"
#include "gpu/device/state.h"

extern "C" {
#include "base/memory/checked.h"
}

/* ---- times */

enum slc_status slc_gpu_span_open(struct slc_gpu_span *span, struct slc_error *err)
{
    SLC_GPU_TRY(cudaEventCreateWithFlags(&span->begin, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&span->end, cudaEventDefault), err);
    return SLC_OK;
}

void slc_gpu_span_close(struct slc_gpu_span *span)
{
    slc_gpu_event_close(&span->begin);
    slc_gpu_event_close(&span->end);
}

static void add_times(struct slc_gpu *gpu, struct slc_spans *kind, float begin_ms, float end_ms)
{
    SLC_PLANT_OTHER(spans_summed, slc_spans_add(kind, begin_ms * 1e-3, end_ms * 1e-3),
                    kind->folded_seconds += (end_ms - begin_ms) * 1e-3);
    slc_spans_add(&gpu->times.busy, begin_ms * 1e-3, end_ms * 1e-3);
}

enum slc_status slc_gpu_add_span(struct slc_gpu *gpu,
                                 struct slc_spans *kind,
                                 const struct slc_gpu_span *span,
                                 struct slc_error *err)
{
    float begin_ms = 0, end_ms = 0;

    SLC_GPU_TRY(cudaEventElapsedTime(&begin_ms, gpu->times.epoch, span->begin), err);
    SLC_GPU_TRY(cudaEventElapsedTime(&end_ms, gpu->times.epoch, span->end), err);
    add_times(gpu, kind, begin_ms, end_ms);
    return SLC_OK;
}

/* Adds the time of copy number `copy` of the slot, which has ended. */
static enum slc_status
add_copy(struct slc_gpu *gpu, struct slc_gpu_slot *slot, uint32_t copy, struct slc_error *err)
{
    const struct slc_gpu_span *span = &slot->copies[copy % SLC_GPU_COPIES];
    float begin_ms = slot->timed_ms, end_ms = 0;

    if (!slot->follows[copy % SLC_GPU_COPIES]) {
        SLC_GPU_TRY(cudaEventElapsedTime(&begin_ms, gpu->times.epoch, span->begin), err);
    }
    SLC_GPU_TRY(cudaEventElapsedTime(&end_ms, gpu->times.epoch, span->end), err);
    add_times(gpu, &gpu->times.copy, begin_ms, end_ms);
    slot->timed_ms = end_ms;
    return SLC_OK;
}

/* Waits for the first `count` copies of the batch and adds their times. */
static enum slc_status
time_copies(struct slc_gpu *gpu, struct slc_gpu_slot *slot, uint32_t count, struct slc_error *err)
{
    while (slot->copies_timed < count) {
        const struct slc_gpu_span *copy = &slot->copies[slot->copies_timed % SLC_GPU_COPIES];
        enum slc_status status;

        SLC_GPU_TRY(cudaEventSynchronize(copy->end), err);
        status = add_copy(gpu, slot, slot->copies_timed, err);
        if (status != SLC_OK) {
            return status;
        }
        slot->copies_timed++;
    }
    return SLC_OK;
}

/* ---- choosing and retiring slots */

enum slc_status
slc_gpu_slot_retire(struct slc_gpu *gpu, struct slc_gpu_slot *slot, struct slc_error *err)
{
    SLC_PLANT(slot_overwritten, SLC_GPU_TRY(cudaEventSynchronize(slot->computing.end), err));
    SLC_TRY(time_copies(gpu, slot, slot->copy_count, err));
    SLC_TRY(slc_gpu_add_span(gpu, &gpu->times.compute, &slot->computing, err));
    slot->state = SLC_GPU_SLOT_FREE;
    gpu->job.nnz_done += slot->nnz;
    return SLC_OK;
}

void slc_gpu_wait(struct slc_gpu *gpu)
{
    (void)cudaSetDevice(gpu->ordinal);
    for (unsigned s = 0; s < SLC_DEVICE_STREAMS; s++) {
        if (gpu->slots[s].stream != nullptr) {
            (void)cudaStreamSynchronize(gpu->slots[s].stream);
        }
    }
    if (gpu->residents.stream != nullptr) {
        (void)cudaStreamSynchronize(gpu->residents.stream);
    }
    if (gpu->main != nullptr) {
        (void)cudaStreamSynchronize(gpu->main);
    }
    (void)cudaGetLastError();
}

void slc_gpu_drain(struct slc_gpu *gpu)
{
    slc_gpu_wait(gpu);
    for (unsigned s = 0; s < SLC_DEVICE_STREAMS; s++) {
        gpu->slots[s].state = SLC_GPU_SLOT_FREE;
    }
    gpu->residents.lost = gpu->residents.lost || (gpu->filling != nullptr && gpu->filling->keeps);
    gpu->filling = nullptr;
    slc_gpu_residents_reset(gpu);
}

enum slc_status slc_gpu_slots_poll(struct slc_gpu *gpu, struct slc_error *err)
{
    for (unsigned s = 0; s < gpu->problem.streams; s++) {
        struct slc_gpu_slot *slot = &gpu->slots[s];
        bool reached = false;

        if (slot->state == SLC_GPU_SLOT_LAUNCHED) {
            SLC_TRY(slc_gpu_reached(slot->computing.end, &reached, err));
            if (reached) {
                SLC_TRY(slc_gpu_slot_retire(gpu, slot, err));
            }
        }
    }
    return slc_gpu_residents_poll(gpu, false, err);
}

/* Chooses a free slot, or a slot whose batch has just ended, or otherwise the slot whose batch
 * began first. */
static enum slc_status
choose_slot(struct slc_gpu *gpu, struct slc_gpu_slot **chosen, struct slc_error *err)
{
    struct slc_gpu_slot *oldest = nullptr;

    SLC_TRY(slc_gpu_slots_poll(gpu, err));
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
        const enum slc_status status = choose_slot(gpu, &chosen, err);

        if (status != SLC_OK) {
            return status;
        }
        chosen->state = SLC_GPU_SLOT_FILLING;
        chosen->batch = ++gpu->batches;
        chosen->data_used = chosen->expanded_used = 0;
        chosen->tile_count = 0;
        chosen->copy_count = chosen->copies_timed = 0;
        chosen->nnz = 0;
        chosen->expands = chosen->keeps = false;
        gpu->filling = chosen;
        *slot = chosen;
        SLC_GPU_TRY(cudaStreamWaitEvent(chosen->stream, gpu->times.epoch, 0), err);
    }
    *slot = gpu->filling;
    return SLC_OK;
}

/* ---- copies of blocks */

/* Sets *follows to true if the last copy of the slot is still pending, so that the next copy begins
 * when the last copy ends. The next copy then needs no event for its begin. (Events between copies
 * delay the copies.) */
static enum slc_status
follows_copy(const struct slc_gpu_slot *slot, bool *follows, struct slc_error *err)
{
    bool reached = true;
    enum slc_status status = SLC_OK;

    if (slot->copy_count > slot->copies_timed) {
        status = slc_gpu_reached(slot->copies[(slot->copy_count - 1) % SLC_GPU_COPIES].end,
                                 &reached, err);
    }
    *follows = !reached;
    return status;
}

static enum slc_status copy(struct slc_gpu_slot *slot,
                            const struct slc_gpu_span *copy,
                            bool follows,
                            void *to,
                            const void *from,
                            uint64_t bytes,
                            struct slc_error *err)
{
    if (!follows) {
        SLC_GPU_TRY(cudaEventRecord(copy->begin, slot->stream), err);
    }
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
    const uint32_t which = slot->copy_count % SLC_GPU_COPIES;
    enum slc_status status = SLC_OK;

    /* The new copy may reuse the events of an earlier copy, whose time must be known before. */
    if (slot->copy_count >= SLC_GPU_COPIES) {
        status = time_copies(gpu, slot, slot->copy_count - SLC_GPU_COPIES + 1, err);
    }
    SLC_THEN(status, follows_copy(slot, &slot->follows[which], err));
    SLC_TRY(status);
    SLC_TRY(copy(slot, &slot->copies[which], slot->follows[which], to, from, bytes, err));
    slot->copy_count++;
    gpu->stats.block_bytes += bytes;
    return SLC_OK;
}

/* ---- launching a batch */

/* Sets the first chunk of each tile, after the tiles of the batch. Returns the number of chunks. */
static uint32_t cut_chunks(const struct slc_gpu *gpu, struct slc_gpu_slot *slot)
{
    const struct slc_gpu_tile *tiles = slot->memory.host_tiles;
    uint32_t *begin = reinterpret_cast<uint32_t *>(slot->memory.host_tiles + slot->tile_count);
    uint32_t tile = 0;

    begin[0] = 0;
    for (; tile < slot->tile_count; tile++) {
        begin[tile + 1] =
            begin[tile] + slc_gpu_chunks_of(tiles[tile].tile.nnz, gpu->job.chunk_runs);
    }
    return begin[tile];
}

static enum slc_status
copy_table(struct slc_gpu *gpu, struct slc_gpu_slot *slot, struct slc_error *err)
{
    const struct slc_gpu_slot_memory *memory = &slot->memory;
    const uint64_t bytes = slot->tile_count * sizeof *memory->tiles +
                           ((uint64_t)slot->tile_count + 1) * sizeof(uint32_t);

    SLC_GPU_TRY(cudaMemcpyAsync(memory->tiles, memory->host_tiles, bytes, cudaMemcpyHostToDevice,
                                slot->stream),
                err);
    gpu->stats.bytes_to_device += bytes;
    return SLC_OK;
}

static enum slc_status
launch_slot(struct slc_gpu *gpu, struct slc_gpu_slot *slot, struct slc_error *err)
{
    struct slc_gpu_batch batch = slc_gpu_batch_of(gpu);

    batch.tiles = slot->memory.tiles;
    batch.chunk_begin = reinterpret_cast<uint32_t *>(slot->memory.tiles + slot->tile_count);
    batch.tile_count = slot->tile_count;
    batch.chunk_count = cut_chunks(gpu, slot);
    SLC_TRY(copy_table(gpu, slot, err));
    /* The slot's stream waits until the output is zeroed and the factors are written. */
    SLC_PLANT(batch_before_begun,
              SLC_GPU_TRY(cudaStreamWaitEvent(slot->stream, gpu->begun, 0), err));
    SLC_GPU_TRY(cudaEventRecord(slot->computing.begin, slot->stream), err);
    if (slot->expands) {
        SLC_GPU_TRY(
            slc_gpu_expand(slot->memory.tiles, slot->tile_count, gpu->memory.fault, slot->stream),
            err);
    }
    SLC_GPU_TRY(slc_gpu_mttkrp_batch(&gpu->job.mttkrp, &batch, &gpu->machine, slot->stream), err);
    SLC_GPU_TRY(cudaEventRecord(slot->computing.end, slot->stream), err);
    slot->state = SLC_GPU_SLOT_LAUNCHED;
    gpu->filling = nullptr;
    gpu->stats.launches++;
    return SLC_OK;
}

enum slc_status slc_gpu_slot_launch(struct slc_gpu *gpu, struct slc_error *err)
{
    return gpu->filling == nullptr ? SLC_OK : launch_slot(gpu, gpu->filling, err);
}
