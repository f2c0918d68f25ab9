/* Builds BLCO's form of a list on the host, copies it to the device, or streams it over queues. */
#include "tools/bench/rivals/gpu/blco.h"

#include "gpu/cuda/staged_copy.h"

#include <string.h>

extern "C" {
#include "base/error/clock.h"
#include "base/key.h"
#include "base/spans.h"
}

/* Chooses the bits of each mode that an index has: the lowest `index_bits` bits of keys in ALTO
 * order. From its lowest bit up, such a key has bit 0 of every coordinate, then bit 1 of every
 * coordinate, and so on, each time from the last mode to the first. */
static void divide_bits(struct slc_gpu_blco *blco, const uint64_t *dims, unsigned index_bits)
{
    unsigned left = index_bits, shift = 0;

    for (unsigned level = 0; level < 32; level++) {
        for (unsigned m = blco->order; m-- > 0;) {
            if (left > 0 && slc_bits_for_length(dims[m]) > level) {
                blco->bits[m]++;
                left--;
            }
        }
    }
    for (unsigned m = 0; m < blco->order; m++) {
        blco->shift[m] = static_cast<uint8_t>(shift < 64 ? shift : 63);
        shift += blco->bits[m];
    }
}

static uint32_t lower_mask(const struct slc_gpu_blco *blco, unsigned mode)
{
    return blco->bits[mode] == 32 ? ~0U : (1U << blco->bits[mode]) - 1U;
}

/* Returns true if nonzero i differs from nonzero i - 1 in bits that are not in the index. */
static bool leaves_block(const struct slc_gpu_blco *blco, const uint32_t *coords, uint64_t i)
{
    for (unsigned m = 0; m < blco->order; m++) {
        const uint32_t *here = coords + i * blco->order + m;

        if (((here[0] ^ *(here - blco->order)) & ~lower_mask(blco, m)) != 0) {
            return true;
        }
    }
    return false;
}

static uint64_t index_of(const struct slc_gpu_blco *blco, const uint32_t *coords)
{
    uint64_t index = 0;

    for (unsigned m = 0; m < blco->order; m++) {
        index |= static_cast<uint64_t>(coords[m] & lower_mask(blco, m)) << blco->shift[m];
    }
    return index;
}

/* Returns the number of blocks. Describes each block in `blocks` unless it is NULL. */
static uint64_t find_blocks(const struct slc_gpu_blco *blco,
                            const uint32_t *coords,
                            uint64_t block_nnz,
                            struct slc_gpu_blco_block *blocks)
{
    uint64_t count = 0, first = 0;

    for (uint64_t i = 0; i < blco->nnz; i++) {
        if (i > 0 && i - first < block_nnz && !leaves_block(blco, coords, i)) {
            continue;
        }
        first = i;
        if (blocks != nullptr) {
            blocks[count].first = i;
            for (unsigned m = 0; m < blco->order; m++) {
                blocks[count].upper[m] = coords[i * blco->order + m] & ~lower_mask(blco, m);
            }
        }
        count++;
    }
    return count;
}

cudaError_t slc_gpu_blco_encode(struct slc_gpu_blco *blco,
                                const struct slc_gpu_host_list *list,
                                const uint64_t *dims,
                                unsigned index_bits,
                                uint64_t block_nnz)
{
    uint64_t *indices;

    blco->order = list->order;
    blco->type = list->type;
    blco->nnz = list->nnz;
    blco->host_values = list->values;
    for (unsigned m = 0; m < list->order; m++) {
        if (dims[m] > UINT32_MAX) {
            return cudaErrorInvalidValue;
        }
    }
    divide_bits(blco, dims, index_bits);
    blco->block_count = find_blocks(blco, list->coords, block_nnz, nullptr);
    if (blco->block_count > UINT32_MAX) {
        return cudaErrorInvalidValue;
    }
    if (slc_buffer_create(&blco->host_indices, blco->nnz * sizeof *indices, SLC_PAGES_HUGE,
                          nullptr) != SLC_OK ||
        slc_buffer_create(&blco->host_blocks, blco->block_count * sizeof(struct slc_gpu_blco_block),
                          SLC_PAGES_SMALL, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    (void)find_blocks(blco, list->coords, block_nnz,
                      static_cast<struct slc_gpu_blco_block *>(blco->host_blocks.data));
    indices = static_cast<uint64_t *>(blco->host_indices.data);
    for (uint64_t i = 0; i < blco->nnz; i++) {
        indices[i] = index_of(blco, list->coords + i * blco->order);
    }
    return cudaSuccess;
}

cudaError_t slc_gpu_blco_upload_blocks(struct slc_gpu_blco *blco, cudaStream_t stream)
{
    return slc_staged_create(reinterpret_cast<void **>(&blco->blocks), blco->host_blocks.data,
                             blco->block_count * sizeof *blco->blocks, stream);
}

cudaError_t slc_gpu_blco_upload(struct slc_gpu_blco *blco, cudaStream_t stream)
{
    SLC_CUDA_TRY(slc_gpu_blco_upload_blocks(blco, stream));
    SLC_CUDA_TRY(slc_staged_create(reinterpret_cast<void **>(&blco->indices),
                                   blco->host_indices.data, blco->nnz * sizeof *blco->indices,
                                   stream));
    slc_buffer_destroy(&blco->host_indices);
    return slc_staged_create(&blco->values, blco->host_values,
                             blco->nnz * slc_value_bytes(blco->type), stream);
}

/* ---- maps */

/* Returns the number of work-groups. Describes each work-group in `groups` unless it is NULL. */
static uint64_t
find_groups(const struct slc_gpu_blco *blco, uint32_t elements, struct slc_gpu_blco_group *groups)
{
    const struct slc_gpu_blco_block *blocks =
        static_cast<const struct slc_gpu_blco_block *>(blco->host_blocks.data);
    uint64_t count = 0;

    for (uint64_t b = 0; b < blco->block_count; b++) {
        const uint64_t end = b + 1 < blco->block_count ? blocks[b + 1].first : blco->nnz;

        for (uint64_t first = blocks[b].first; first < end; first += elements) {
            const uint64_t left = end - first;

            if (groups != nullptr) {
                groups[count].first = first;
                groups[count].count = static_cast<uint32_t>(left < elements ? left : elements);
                groups[count].block = static_cast<uint32_t>(b);
            }
            count++;
        }
    }
    return count;
}

const struct slc_gpu_blco_map *slc_gpu_blco_find_map(const struct slc_gpu_blco *blco,
                                                     uint32_t elements)
{
    for (unsigned k = 0; k < SLC_BLCO_MAPS; k++) {
        if (blco->maps[k].elements == elements) {
            return &blco->maps[k];
        }
    }
    return nullptr;
}

static cudaError_t make_map(struct slc_gpu_blco_map *map,
                            const struct slc_gpu_blco *blco,
                            uint32_t elements,
                            cudaStream_t stream)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    map->count = find_groups(blco, elements, nullptr);
    if (map->count > INT32_MAX) {
        return cudaErrorInvalidValue;
    }
    if (slc_buffer_create(&map->host, map->count * sizeof(struct slc_gpu_blco_group),
                          SLC_PAGES_HUGE, nullptr) != SLC_OK) {
        return cudaErrorMemoryAllocation;
    }
    (void)find_groups(blco, elements, static_cast<struct slc_gpu_blco_group *>(map->host.data));
    error = slc_staged_create(reinterpret_cast<void **>(&map->groups), map->host.data,
                              map->count * sizeof *map->groups, stream);
    if (error != cudaSuccess) {
        slc_buffer_destroy(&map->host);
        return error;
    }
    map->elements = elements;
    map->seconds = slc_seconds_since(start_ns);
    return cudaSuccess;
}

cudaError_t slc_gpu_blco_map(struct slc_gpu_blco *blco,
                             uint32_t elements,
                             cudaStream_t stream,
                             const struct slc_gpu_blco_map **map)
{
    cudaError_t error;

    *map = slc_gpu_blco_find_map(blco, elements);
    if (*map != nullptr) {
        return cudaSuccess;
    }
    for (unsigned k = 0; k < SLC_BLCO_MAPS; k++) {
        if (blco->maps[k].elements == 0) {
            error = make_map(&blco->maps[k], blco, elements, stream);
            *map = error == cudaSuccess ? &blco->maps[k] : nullptr;
            return error;
        }
    }
    return cudaErrorInvalidValue;
}

struct slc_gpu_blco_part slc_gpu_blco_whole(const struct slc_gpu_blco *blco,
                                            const struct slc_gpu_blco_map *map)
{
    struct slc_gpu_blco_part part = {};

    part.order = blco->order;
    part.type = blco->type;
    memcpy(part.shift, blco->shift, sizeof part.shift);
    memcpy(part.bits, blco->bits, sizeof part.bits);
    part.indices = blco->indices;
    part.values = blco->values;
    part.blocks = blco->blocks;
    part.groups = map->groups;
    part.group_count = static_cast<uint32_t>(map->count);
    return part;
}

void slc_gpu_blco_destroy(struct slc_gpu_blco *blco)
{
    (void)cudaFree(blco->indices);
    (void)cudaFree(blco->values);
    (void)cudaFree(blco->blocks);
    slc_buffer_destroy(&blco->host_indices);
    slc_buffer_destroy(&blco->host_blocks);
    for (unsigned k = 0; k < SLC_BLCO_MAPS; k++) {
        (void)cudaFree(blco->maps[k].groups);
        slc_buffer_destroy(&blco->maps[k].host);
    }
    memset(blco, 0, sizeof *blco);
}

/* ---- queues */

/* Tenths of the free device memory that queues may use; the rest is for the CUDA runtime. */
static const uint64_t free_tenths = 9;
/* Least number of nonzeros for which a queue has memory. */
static const uint64_t nnz_least = 1024;

cudaError_t slc_gpu_blco_queue_nnz(const struct slc_gpu_host_list *list,
                                   unsigned queues,
                                   uint64_t block_nnz,
                                   uint64_t *nnz)
{
    size_t free_bytes, total_bytes;
    uint64_t fits;

    SLC_CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
    fits =
        free_bytes / 10 * free_tenths / (queues * (sizeof(uint64_t) + slc_value_bytes(list->type)));
    fits = fits > nnz_least ? fits : nnz_least;
    *nnz = block_nnz < fits ? block_nnz : fits;
    if (*nnz > list->nnz) {
        *nnz = list->nnz > 0 ? list->nnz : 1;
    }
    return cudaSuccess;
}

/* ---- batches */

static struct slc_gpu_blco_batch *batch_of(const struct slc_gpu_blco_queues *queues, uint64_t b)
{
    return static_cast<struct slc_gpu_blco_batch *>(queues->batches.data) + b;
}

/* Returns the number of batches, which consist of consecutive blocks that fit in a queue together.
 * Describes each batch in `batches` unless it is NULL. */
static uint64_t find_batches(const struct slc_gpu_blco_queues *queues,
                             struct slc_gpu_blco_batch *batches)
{
    const struct slc_gpu_blco *blco = &queues->blco;
    const struct slc_gpu_blco_block *blocks =
        static_cast<const struct slc_gpu_blco_block *>(blco->host_blocks.data);
    uint64_t count = 0, first = 0;

    for (uint64_t b = 0; b < blco->block_count; b++) {
        const uint64_t end = b + 1 < blco->block_count ? blocks[b + 1].first : blco->nnz;
        const uint64_t next_end = b + 2 < blco->block_count ? blocks[b + 2].first : blco->nnz;

        if (b + 1 < blco->block_count && next_end - first <= queues->nnz_each) {
            continue;
        }
        if (batches != nullptr) {
            batches[count].first = first;
            batches[count].nnz = end - first;
        }
        first = end;
        count++;
    }
    return count;
}

static cudaError_t create_batches(struct slc_gpu_blco_queues *queues)
{
    queues->batch_count = find_batches(queues, nullptr);
    if (slc_buffer_create(&queues->batches, queues->batch_count * sizeof(struct slc_gpu_blco_batch),
                          SLC_PAGES_SMALL, nullptr) != SLC_OK) {
        queues->batch_count = 0;
        return cudaErrorMemoryAllocation;
    }
    /* The buffer is all-zero, and 0 means that an event was not created. */
    (void)find_batches(queues, batch_of(queues, 0));
    for (uint64_t b = 0; b < queues->batch_count; b++) {
        for (cudaEvent_t &event : batch_of(queues, b)->events) {
            SLC_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDefault));
        }
    }
    return cudaSuccess;
}

/* ---- memory */

/* Registers memory unless it is already registered. */
static cudaError_t register_memory(void **registered, const void *memory, uint64_t bytes)
{
    void *pages = const_cast<void *>(memory);
    cudaError_t error;

    if (bytes == 0) {
        return cudaSuccess;
    }
    error = cudaHostRegister(pages, bytes, cudaHostRegisterDefault);
    if (error == cudaErrorHostMemoryAlreadyRegistered) {
        (void)cudaGetLastError();
        return cudaSuccess;
    }
    *registered = error == cudaSuccess ? pages : nullptr;
    return error;
}

static cudaError_t
create_queue(struct slc_gpu_blco_queue *queue, enum slc_value_type type, uint64_t nnz)
{
    SLC_CUDA_TRY(cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking));
    SLC_CUDA_TRY(cudaEventCreateWithFlags(&queue->ended, cudaEventDisableTiming));
    SLC_CUDA_TRY(cudaMalloc(reinterpret_cast<void **>(&queue->indices), nnz * sizeof(uint64_t)));
    return cudaMalloc(&queue->values, nnz * slc_value_bytes(type));
}

cudaError_t
slc_gpu_blco_queues_create(struct slc_gpu_blco_queues *queues, unsigned count, cudaStream_t stream)
{
    struct slc_gpu_blco *blco = &queues->blco;
    const cudaError_t error = create_batches(queues);

    /* There is at most one queue per batch, but at least one, because a count of 0 means "not
     * created". */
    queues->count =
        queues->batch_count < count ? static_cast<unsigned>(queues->batch_count) : count;
    queues->count = queues->count > 0 ? queues->count : 1;
    SLC_CUDA_TRY(error);
    SLC_CUDA_TRY(cudaEventCreateWithFlags(&queues->begun, cudaEventDefault));
    SLC_CUDA_TRY(slc_gpu_blco_upload_blocks(blco, stream));
    SLC_CUDA_TRY(register_memory(&queues->registered[0], blco->host_indices.data,
                                 blco->nnz * sizeof(uint64_t)));
    SLC_CUDA_TRY(register_memory(&queues->registered[1], blco->host_values,
                                 blco->nnz * slc_value_bytes(blco->type)));
    for (unsigned q = 0; q < queues->count; q++) {
        SLC_CUDA_TRY(create_queue(&queues->queue[q], blco->type, queues->nnz_each));
    }
    return cudaSuccess;
}

/* ---- runs */

/* Returns the number of the first work-group that starts at nonzero `first` or later in a map. */
static uint32_t group_from(const struct slc_gpu_blco_map *map, uint64_t first)
{
    const struct slc_gpu_blco_group *groups =
        static_cast<const struct slc_gpu_blco_group *>(map->host.data);
    uint64_t low = 0, high = map->count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (groups[middle].first < first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return static_cast<uint32_t>(low);
}

static cudaError_t copy_batch(const struct slc_gpu_blco *blco,
                              const struct slc_gpu_blco_batch *batch,
                              const struct slc_gpu_blco_queue *queue)
{
    const size_t value_bytes = slc_value_bytes(blco->type);

    SLC_CUDA_TRY(cudaEventRecord(batch->events[SLC_BLCO_BEGUN], queue->stream));
    SLC_CUDA_TRY(cudaMemcpyAsync(
        queue->indices, static_cast<const uint64_t *>(blco->host_indices.data) + batch->first,
        batch->nnz * sizeof(uint64_t), cudaMemcpyHostToDevice, queue->stream));
    SLC_CUDA_TRY(cudaMemcpyAsync(queue->values,
                                 static_cast<const unsigned char *>(blco->host_values) +
                                     batch->first * value_bytes,
                                 batch->nnz * value_bytes, cudaMemcpyHostToDevice, queue->stream));
    return cudaEventRecord(batch->events[SLC_BLCO_COPIED], queue->stream);
}

static cudaError_t run_batch(const struct slc_gpu_blco_queues *queues,
                             const struct slc_gpu_blco_map *map,
                             uint64_t b,
                             slc_gpu_blco_launch *launch,
                             const void *context)
{
    const struct slc_gpu_blco_batch *batch = batch_of(queues, b);
    const struct slc_gpu_blco_queue *queue = &queues->queue[b % queues->count];
    const uint32_t first = group_from(map, batch->first);
    struct slc_gpu_blco_part part = slc_gpu_blco_whole(&queues->blco, map);

    SLC_CUDA_TRY(copy_batch(&queues->blco, batch, queue));
    part.indices = queue->indices;
    part.values = queue->values;
    part.base = batch->first;
    part.groups += first;
    part.group_count = group_from(map, batch->first + batch->nnz) - first;
    SLC_CUDA_TRY(launch(context, &part, queue->stream));
    return cudaEventRecord(batch->events[SLC_BLCO_COMPUTED], queue->stream);
}

/* If `begin`, makes all queues wait for `stream`; otherwise makes `stream` wait for all queues. */
static cudaError_t meet(const struct slc_gpu_blco_queues *queues, bool begin, cudaStream_t stream)
{
    if (begin) {
        SLC_CUDA_TRY(cudaEventRecord(queues->begun, stream));
    }
    for (unsigned q = 0; q < queues->count; q++) {
        const struct slc_gpu_blco_queue *queue = &queues->queue[q];

        if (begin) {
            SLC_CUDA_TRY(cudaStreamWaitEvent(queue->stream, queues->begun, 0));
            continue;
        }
        SLC_CUDA_TRY(cudaEventRecord(queue->ended, queue->stream));
        SLC_PLANT(blco_queue_not_awaited,
                  SLC_CUDA_TRY(cudaStreamWaitEvent(stream, queue->ended, 0)));
    }
    return cudaSuccess;
}

cudaError_t slc_gpu_blco_queues_run(const struct slc_gpu_blco_queues *queues,
                                    const struct slc_gpu_blco_map *map,
                                    slc_gpu_blco_launch *launch,
                                    const void *context,
                                    cudaStream_t stream)
{
    cudaError_t error = meet(queues, true, stream);

    for (uint64_t b = 0; b < queues->batch_count && error == cudaSuccess; b++) {
        error = run_batch(queues, map, b, launch, context);
    }
    if (error == cudaSuccess) {
        error = meet(queues, false, stream);
    }
    for (unsigned q = 0; q < queues->count && error != cudaSuccess; q++) {
        (void)cudaStreamSynchronize(queues->queue[q].stream);
    }
    return error;
}

/* ---- times */

cudaError_t slc_gpu_blco_queues_times(const struct slc_gpu_blco_queues *queues,
                                      struct slc_gpu_blco_times *times)
{
    struct slc_spans copies = {}, kernels = {};

    for (uint64_t b = 0; b < queues->batch_count; b++) {
        double at[SLC_BLCO_EVENTS]; /* time of each event in seconds since the start of the run */

        for (unsigned k = 0; k < SLC_BLCO_EVENTS; k++) {
            float milliseconds = 0;

            SLC_CUDA_TRY(
                cudaEventElapsedTime(&milliseconds, queues->begun, batch_of(queues, b)->events[k]));
            at[k] = static_cast<double>(milliseconds) * 1e-3;
        }
        slc_spans_add(&copies, at[SLC_BLCO_BEGUN], at[SLC_BLCO_COPIED]);
        slc_spans_add(&kernels, at[SLC_BLCO_COPIED], at[SLC_BLCO_COMPUTED]);
    }
    times->copy_seconds = slc_spans_seconds(&copies);
    times->kernel_seconds = slc_spans_seconds(&kernels);
    return cudaSuccess;
}

void slc_gpu_blco_queues_destroy(struct slc_gpu_blco_queues *queues)
{
    for (unsigned q = 0; q < queues->count; q++) {
        (void)cudaFree(queues->queue[q].indices);
        (void)cudaFree(queues->queue[q].values);
        slc_event_destroy(queues->queue[q].ended);
        slc_stream_destroy(queues->queue[q].stream);
    }
    for (uint64_t b = 0; b < queues->batch_count; b++) {
        for (cudaEvent_t event : batch_of(queues, b)->events) {
            slc_event_destroy(event);
        }
    }
    for (void *registered : queues->registered) {
        if (registered != nullptr) {
            (void)cudaHostUnregister(registered);
        }
    }
    slc_event_destroy(queues->begun);
    slc_buffer_destroy(&queues->batches);
    slc_gpu_blco_destroy(&queues->blco);
    memset(queues, 0, sizeof *queues);
}
