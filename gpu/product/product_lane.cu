/* Multiplies tiles in the lanes of a device. */
#include "gpu/product/product.h"

#include "gpu/cuda/check.h"

extern "C" {
#include "base/error/clock.h"
#include "base/memory/checked.h"
}

#include <cinttypes>
#include <cstring>

/* Bytes of the first request for a result of unknown size. The transfer of this number of bytes
 * lasts as long as starting a copy. */
static const uint64_t first_bytes = 64 << 10;

static enum slc_status
check_block(const struct slc_gpu *gpu, const struct slc_encoded_block *block, struct slc_error *err)
{
    const struct slc_device_product *product = &gpu->product->product;
    const struct slc_encoded_tile *tile = block->tiles;
    enum slc_status status = SLC_OK;

    if (block->tile_count != 1 || tile->nnz < 1 || tile->nnz > SLC_TILE_NNZ ||
        block->bytes > product->tile_bytes || block->expanded_bytes > product->expanded_bytes) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the block has %" PRIu32 " tiles, %" PRIu64 " bytes and %" PRIu64
                          " expanded bytes, but device %d was opened for one tile, %" PRIu64
                          " bytes and %" PRIu64 " expanded bytes",
                          block->tile_count, block->bytes, block->expanded_bytes, gpu->ordinal,
                          product->tile_bytes, product->expanded_bytes);
    }
    if (status == SLC_OK && block->expanded_bytes > 0 && block->expanded == nullptr) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "tile %" PRIu64 " has not been expanded", tile->ordinal);
    }
    for (unsigned n = 0; n < product->order && status == SLC_OK; n++) {
        const struct slc_used *used = &product->used[n];
        const uint64_t first = used->first, end = used->end > 0 ? used->end : product->dims[n];

        if (tile->corner[n] < first || tile->corner[n] >= end ||
            tile->extent[n] >= end - tile->corner[n]) {
            status = slc_fail(err, SLC_ERR_USAGE,
                              "tile %" PRIu64 " has indices %" PRIu64 " to %" PRIu64
                              " in mode %u, whose size is %" PRIu64,
                              tile->ordinal, tile->corner[n], tile->corner[n] + tile->extent[n],
                              n + 1, product->dims[n]);
        }
    }
    if (status != SLC_OK) {
        slc_error_locate_block(err, nullptr, block->block, block->offset);
    }
    return status;
}

/* Assembles the tile in the lane's registered memory and sends the tile to the device. */
static enum slc_status
send_tile(struct slc_gpu_lane *lane, const struct slc_encoded_block *block, struct slc_error *err)
{
    auto *input = reinterpret_cast<struct slc_product_input *>(lane->memory.host_input);
    const uint64_t expanded_at = slc_product_expanded_at(block->bytes);
    const uint64_t bytes = block->expanded_bytes > 0 ? expanded_at + block->expanded_bytes
                                                     : SLC_PRODUCT_DATA_AT + block->bytes;

    input->tile = {lane->memory.input + SLC_PRODUCT_DATA_AT, lane->memory.input + expanded_at,
                   block->block, block->offset, block->tiles[0]};
    input->fault = {};
    memcpy(lane->memory.host_input + SLC_PRODUCT_DATA_AT, block->data, block->bytes);
    if (block->expanded_bytes > 0) {
        memcpy(lane->memory.host_input + expanded_at, block->expanded, block->expanded_bytes);
    }
    SLC_GPU_TRY(cudaEventRecord(lane->begun, lane->stream), err);
    SLC_GPU_TRY(cudaMemcpyAsync(lane->memory.input, lane->memory.host_input, bytes,
                                cudaMemcpyHostToDevice, lane->stream),
                err);
    SLC_GPU_TRY(cudaEventRecord(lane->copied, lane->stream), err);
    lane->stats.block_bytes += bytes;
    return SLC_OK;
}

static enum slc_status decode_tile(const struct slc_gpu_product *product,
                                   struct slc_gpu_lane *lane,
                                   const struct slc_encoded_block *block,
                                   struct slc_error *err)
{
    const struct slc_encoded_tile *tile = block->tiles;
    const uint64_t element = slc_value_bytes(product->product.precision);
    struct slc_product_job *job = &lane->job;

    job->nnz = tile->nnz;
    for (uint32_t s = 0; s < job->summed; s++) {
        const unsigned mode = job->summed_mode[s];
        const bool maps = product->used[mode] != nullptr;

        job->rows[s] = static_cast<const unsigned char *>(product->matrix[mode]) +
                       (maps ? 0 : tile->corner[mode] * product->pitch * element);
        job->used[s] = product->used[mode];
        job->used_corner[s] = maps ? tile->corner[mode] - product->product.used[mode].first : 0;
    }
    SLC_GPU_TRY(slc_product_decode(job, lane->stream), err);
    return SLC_OK;
}

static const struct slc_product_header *header_of(const struct slc_gpu_lane *lane)
{
    return reinterpret_cast<const struct slc_product_header *>(lane->memory.host_result);
}

static enum slc_status
receive_fibers(struct slc_gpu_lane *lane, uint64_t first, uint64_t end, struct slc_error *err)
{
    SLC_GPU_TRY(cudaMemcpyAsync(lane->memory.host_result + first, lane->job.result + first,
                                end - first, cudaMemcpyDeviceToHost, lane->stream),
                err);
    lane->stats.bytes_to_host += end - first;
    return SLC_OK;
}

/* Adds the time of the lane's last kernels and, if `copied`, the time of the copy of the tile. */
static enum slc_status add_times(struct slc_gpu_product *product,
                                 const struct slc_gpu_lane *lane,
                                 bool copied,
                                 struct slc_error *err)
{
    const double end = slc_seconds_since(product->opened_ns);
    float copy_ms = 0, compute_ms = 0;

    SLC_GPU_TRY(cudaEventElapsedTime(&compute_ms, lane->copied, lane->done), err);
    if (copied) {
        SLC_GPU_TRY(cudaEventElapsedTime(&copy_ms, lane->begun, lane->copied), err);
    }
    const double middle = end - compute_ms * 1e-3, begin = middle - copy_ms * 1e-3;

    pthread_mutex_lock(&product->times_mutex);
    slc_spans_add(&product->copy, begin, middle);
    slc_spans_add(&product->compute, middle, end);
    slc_spans_add(&product->busy, begin, end);
    pthread_mutex_unlock(&product->times_mutex);
    return SLC_OK;
}

/* Multiplies as many fibers as fit in the result memory, starting at fiber job->first, and copies
 * the result to host memory. The first copy has lane->expected bytes. */
static enum slc_status multiply_fibers(const struct slc_gpu_product *product,
                                       struct slc_gpu_lane *lane,
                                       struct slc_error *err)
{
    const uint64_t room = lane->job.room;
    const uint64_t most = slc_product_result_bytes(product, room);
    const uint64_t requested =
        slc_min_u64(slc_max_u64(lane->expected, SLC_PRODUCT_OFFSETS_AT), most);
    uint64_t there;
    enum slc_status status;

    SLC_GPU_TRY(slc_product_multiply(&lane->job, lane->stream), err);
    SLC_GPU_TRY(cudaEventRecord(lane->done, lane->stream), err);
    status = receive_fibers(lane, 0, requested, err);
    if (status != SLC_OK) {
        return status;
    }
    SLC_PLANT(product_not_awaited, SLC_GPU_TRY(cudaStreamSynchronize(lane->stream), err));
    lane->count = header_of(lane)->count;
    there = slc_product_result_bytes(product, slc_min_u64(lane->count - lane->job.first, room));
    if (there > requested) {
        status = receive_fibers(lane, requested, there, err);
        SLC_GPU_TRY(cudaStreamSynchronize(lane->stream), err);
    }
    return status;
}

/* Points *fibers to the result of multiply_fibers. */
static void deliver(const struct slc_gpu_product *product,
                    struct slc_gpu_lane *lane,
                    struct slc_device_fibers *fibers)
{
    const uint32_t left = lane->count - lane->job.first;
    const auto *offsets =
        reinterpret_cast<const uint32_t *>(lane->memory.host_result + SLC_PRODUCT_OFFSETS_AT);

    fibers->count = left < lane->job.room ? left : lane->job.room;
    fibers->more = left > fibers->count;
    fibers->sums = reinterpret_cast<const double *>(
        lane->memory.host_result + slc_product_sums_at(fibers->count, product->kept));
    for (uint32_t k = 0; k < lane->job.kept; k++) {
        fibers->offset[lane->job.kept_mode[k]] = offsets + (uint64_t)k * fibers->count;
    }
    lane->delivered += fibers->count;
}

/* Checks that the lane exists, and makes the device current for the calling thread. */
static enum slc_status enter(const struct slc_gpu *gpu, unsigned lane, struct slc_error *err)
{
    if (gpu->product == nullptr || lane >= gpu->product->product.lanes) {
        return slc_fail(err, SLC_ERR_USAGE, "device %d has no lane %u that can multiply tiles",
                        gpu->ordinal, lane);
    }
    SLC_GPU_TRY(cudaSetDevice(gpu->ordinal), err);
    return SLC_OK;
}

/* After an error, waits for the lane's work and discards its fibers. Returns `status`. */
static enum slc_status finish_call(struct slc_gpu_lane *lane, enum slc_status status)
{
    if (status != SLC_OK) {
        (void)cudaStreamSynchronize(lane->stream);
        (void)cudaGetLastError();
        lane->count = lane->delivered = 0;
    }
    return status;
}

static enum slc_status start_tile(struct slc_gpu *gpu,
                                  struct slc_gpu_lane *lane,
                                  const struct slc_encoded_block *block,
                                  struct slc_error *err)
{
    enum slc_status status = check_block(gpu, block, err);

    lane->count = lane->delivered = 0;
    lane->job.first = 0;
    SLC_THEN(status, send_tile(lane, block, err));
    SLC_THEN(status, decode_tile(gpu->product, lane, block, err));
    if (status == SLC_OK) {
        lane->expected = slc_max_u64(lane->expected, first_bytes);
        status = multiply_fibers(gpu->product, lane, err);
    }
    if (status == SLC_OK && header_of(lane)->fault.kind != SLC_GPU_SOUND) {
        status = slc_gpu_fail_damaged(&header_of(lane)->fault, err);
    }
    return status == SLC_OK ? add_times(gpu->product, lane, true, err) : status;
}

enum slc_status slc_gpu_product_tile(struct slc_device *device,
                                     unsigned number,
                                     const struct slc_encoded_block *block,
                                     struct slc_device_fibers *fibers,
                                     struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = enter(gpu, number, err);

    *fibers = {};
    if (status != SLC_OK) {
        return status;
    }
    struct slc_gpu_lane *lane = &gpu->product->lanes[number];

    status = start_tile(gpu, lane, block, err);
    if (status == SLC_OK) {
        deliver(gpu->product, lane, fibers);
        /* For the next tile, the expected size is the size of this result plus an eighth. */
        lane->expected = slc_product_result_bytes(gpu->product, fibers->count);
        lane->expected += lane->expected / 8;
        lane->stats.launches++;
        lane->stats.blocks++;
        lane->stats.nnz += block->nnz;
    }
    return finish_call(lane, status);
}

/* Multiplies the fibers that follow the fibers already delivered. */
static enum slc_status
multiply_more(struct slc_gpu_product *product, struct slc_gpu_lane *lane, struct slc_error *err)
{
    lane->job.first = lane->delivered;
    lane->expected = slc_product_result_bytes(
        product, slc_min_u64(lane->count - lane->delivered, lane->job.room));
    SLC_GPU_TRY(cudaEventRecord(lane->copied, lane->stream), err);
    SLC_TRY(multiply_fibers(product, lane, err));
    return add_times(product, lane, false, err);
}

enum slc_status slc_gpu_product_more(struct slc_device *device,
                                     unsigned number,
                                     struct slc_device_fibers *fibers,
                                     struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = enter(gpu, number, err);

    *fibers = {};
    if (status != SLC_OK) {
        return status;
    }
    struct slc_gpu_lane *lane = &gpu->product->lanes[number];

    if (lane->delivered == lane->count) {
        return slc_fail(err, SLC_ERR_USAGE, "lane %u of device %d has no more fibers", number,
                        gpu->ordinal);
    }
    status = multiply_more(gpu->product, lane, err);
    if (status == SLC_OK) {
        deliver(gpu->product, lane, fibers);
    }
    return finish_call(lane, status);
}
