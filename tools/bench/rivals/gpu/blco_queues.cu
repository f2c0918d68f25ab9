/* Streams BLCO's form over queues. See blco_queues.h. */
#include "tools/bench/rivals/gpu/blco_queues.h"

#include <string.h>

extern "C" {
#include "base/spans.h"
}

/* Tenths of the free memory that queues may use: the rest is for the runtime. */
static const uint64_t free_tenths = 9;
/* A queue has memory for at least this number of nonzeros. */
static const uint64_t nnz_least = 1024;

static uint64_t bytes_per_nnz(enum slc_value_type type)
{
    return sizeof(uint64_t) + slc_value_bytes(type);
}

cudaError_t slc_gpu_blco_queue_nnz(const struct slc_gpu_host_list *list,
                                   unsigned queues,
                                   uint64_t block_nnz,
                                   uint64_t *nnz)
{
    size_t free_bytes, total_bytes;
    uint64_t fits;

    SLC_CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
    fits = free_bytes / 10 * free_tenths / (queues * bytes_per_nnz(list->type));
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

/* Counts the batches and, if `batches` is not NULL, describes each: blocks that fit together. */
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
    /* The buffer is zero, as are events that were not created. */
    (void)find_batches(queues, batch_of(queues, 0));
    for (uint64_t b = 0; b < queues->batch_count; b++) {
        for (cudaEvent_t &event : batch_of(queues, b)->events) {
            SLC_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDefault));
        }
    }
    return cudaSuccess;
}

/* ---- memory */

/* Memory that was registered before is used as it is. */
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

    /* At most one queue per batch, and at least one: a count of 0 means "not created". */
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

/* The first work-group of a map from nonzero `first` on. */
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

/* All queues wait for `stream`, or it waits for all queues. */
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
        double at[SLC_BLCO_EVENTS]; /* seconds from the run's begin */

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
