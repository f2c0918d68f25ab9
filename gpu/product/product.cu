/* Opens and closes a device that multiplies tiles. */
#include "gpu/product/product.h"

#include "gpu/cuda/check.h"

extern "C" {
#include "base/error/clock.h"
#include "base/memory/checked.h"
}

#include <cinttypes>
#include <cstring>

/* Allocates the state of a product, which has about 80 KiB and is too large for a stack. Returns
 * NULL if memory does not suffice. Ownership: release with slc_free. */
static struct slc_gpu_product *create_record(void)
{
    return static_cast<struct slc_gpu_product *>(slc_calloc(1, sizeof(slc_gpu_product)));
}

/* ---- open */

static enum slc_status allocate_memory(struct slc_gpu_product *made, struct slc_error *err)
{
    SLC_TRY(slc_buffer_create(&made->registered, made->registered_bytes, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_gpu_device_memory_allocate(made->device_bytes, &made->device, err));
    SLC_GPU_TRY(
        cudaHostRegister(made->registered.data, made->registered.bytes, cudaHostRegisterPortable),
        err);
    made->is_registered = true;
    (void)slc_gpu_product_lay_out(made, slc_memory_gap);
    return SLC_OK;
}

static enum slc_status
open_lane(const struct slc_gpu_product *made, struct slc_gpu_lane *lane, struct slc_error *err)
{
    SLC_GPU_TRY(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lane->begun, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lane->copied, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&lane->done, cudaEventDefault), err);
    /* The host copies more bytes of a result than a tile fills, and kernels that decode a damaged
     * tile may read more bytes of the input than the tile has. The other bytes are zeroed, because
     * memory checkers would report them as uninitialized. */
    SLC_GPU_TRY(cudaMemsetAsync(lane->job.result, 0,
                                slc_product_result_bytes(made, made->product.room), lane->stream),
                err);
    SLC_GPU_TRY(cudaMemsetAsync(lane->memory.input, 0, slc_product_input_bytes(&made->product),
                                lane->stream),
                err);
    return SLC_OK;
}

/* Sets the members of a lane's job that do not depend on the tile. */
static void prepare_lane(const struct slc_gpu_product *made, struct slc_gpu_lane *lane)
{
    auto *input = reinterpret_cast<struct slc_product_input *>(lane->memory.input);
    struct slc_product_job *job = &lane->job;

    job->list = lane->memory.list;
    job->carry_fiber = lane->memory.carry_fiber;
    job->carries = lane->memory.carries;
    job->result = lane->memory.result;
    job->tile = &input->tile;
    job->fault = &input->fault;
    job->layout = made->layout;
    job->cols = made->cols;
    job->room = made->product.room;
    job->precision = made->product.precision;
    job->pitch = made->pitch;
    for (unsigned n = 0; n < made->product.order; n++) {
        if (made->sums_over[n]) {
            job->summed_mode[job->summed++] = (uint8_t)n;
        } else {
            job->kept_mode[job->kept++] = (uint8_t)n;
        }
    }
}

/* Copies `bytes` bytes from the start of the registered memory to `to` in device memory. Waits for
 * the copy, so that the registered memory can be reused after the call. */
static enum slc_status
send_bytes(struct slc_gpu_product *made, void *to, uint64_t bytes, struct slc_error *err)
{
    struct slc_gpu_lane *lane = &made->lanes[0];

    SLC_GPU_TRY(
        cudaMemcpyAsync(to, made->registered.data, bytes, cudaMemcpyHostToDevice, lane->stream),
        err);
    SLC_GPU_TRY(cudaStreamSynchronize(lane->stream), err);
    lane->stats.bytes_to_device += bytes;
    return SLC_OK;
}

/* Copies rows of a matrix to registered memory, with the pitch of matrices on the device. */
static void
pack_rows(const struct slc_gpu_product *made, unsigned mode, uint64_t first, uint64_t count)
{
    const struct slc_matrix *from = made->product.matrix[mode];
    const uint64_t element = slc_value_bytes(from->type);
    const uint64_t used = slc_min_u64(from->pitch, made->pitch) * element;
    const auto *source = static_cast<const unsigned char *>(from->buffer.data);
    auto *to = static_cast<unsigned char *>(made->registered.data);

    for (uint64_t row = 0; row < count; row++, to += made->pitch * element) {
        memcpy(to, source + (first + row) * from->pitch * element, used);
        memset(to + used, 0, made->pitch * element - used);
    }
}

/* Copies a matrix to the device. Needs: at least one row fits in the registered memory. */
static enum slc_status
write_matrix(struct slc_gpu_product *made, unsigned mode, struct slc_error *err)
{
    const uint64_t row_bytes =
        (uint64_t)made->pitch * slc_value_bytes(made->product.matrix[mode]->type);
    const uint64_t step = made->registered_bytes / row_bytes;
    const uint64_t rows = made->product.matrix[mode]->rows;

    for (uint64_t first = 0; first < rows; first += step) {
        const uint64_t count = slc_min_u64(step, rows - first);

        pack_rows(made, mode, first, count);
        SLC_TRY(send_bytes(made,
                           static_cast<unsigned char *>(made->matrix[mode]) + first * row_bytes,
                           count * row_bytes, err));
    }
    return SLC_OK;
}

/* Copies any number of bytes to the device. */
static enum slc_status write_bytes(struct slc_gpu_product *made,
                                   void *device_bytes,
                                   const void *host_bytes,
                                   uint64_t bytes,
                                   struct slc_error *err)
{
    const auto *from = static_cast<const unsigned char *>(host_bytes);
    auto *to = static_cast<unsigned char *>(device_bytes);
    enum slc_status status = SLC_OK;

    for (uint64_t at = 0; at < bytes && status == SLC_OK;) {
        const uint64_t count = slc_min_u64(made->registered_bytes, bytes - at);

        memcpy(made->registered.data, from + at, count);
        status = send_bytes(made, to + at, count, err);
        at += count;
    }
    return status;
}

/* Copies the matrix of a contracted mode, and its map of used indices if there is one. */
static enum slc_status
write_mode(struct slc_gpu_product *made, unsigned mode, struct slc_error *err)
{
    const struct slc_used *used = &made->product.used[mode];

    SLC_TRY(write_matrix(made, mode, err));
    return used->end == 0 ? SLC_OK
                          : write_bytes(made, made->used[mode], used->words,
                                        slc_used_words(used) * sizeof *used->words, err);
}

static enum slc_status
open_lanes(const struct slc_gpu *gpu, struct slc_gpu_product *made, struct slc_error *err)
{
    enum slc_status status;

    SLC_GPU_TRY(cudaSetDevice(gpu->ordinal), err);
    status = allocate_memory(made, err);
    for (unsigned l = 0; l < made->product.lanes && status == SLC_OK; l++) {
        made->lanes[l].memory = made->lane_memory[l];
        prepare_lane(made, &made->lanes[l]);
        status = open_lane(made, &made->lanes[l], err);
    }
    SLC_THEN(status,
             write_bytes(made, made->layout, made->product.layout, sizeof *made->layout, err));
    for (unsigned n = 0; n < made->product.order && status == SLC_OK; n++) {
        status = made->sums_over[n] ? write_mode(made, n, err) : SLC_OK;
        made->product.matrix[n] = nullptr;
    }
    made->product.layout = nullptr;
    return status;
}

/* Checks a product before opening, and computes the memory that it needs. */
static enum slc_status check_product(const struct slc_gpu *gpu,
                                     const struct slc_device_product *product,
                                     struct slc_error *err)
{
    const uint64_t mib = UINT64_C(1) << 20;

    if (!slc_gpu_product_measure(product, gpu->product)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a device cannot multiply tiles of %u modes in %u lanes, %" PRIu32
                        " fibers at a time: the rows of each matrix must match its mode size, all "
                        "matrices must have the same type and number of columns, lanes must be 1 "
                        "to %d, and memory must fit in 64 bits",
                        product->order, product->lanes, product->room, SLC_DEVICE_LANES);
    }
    if (gpu->product->device_bytes > gpu->cap_bytes) {
        return slc_fail_field(
            err, SLC_ERR_BUDGET, SLC_FIELD_DEVICE_MEMORY,
            "matrices and %u lanes on device %d need %" PRIu64
            " MiB of device memory or more; the limit is %" PRIu64 ".%" PRIu64 " MiB",
            product->lanes, gpu->ordinal, slc_div_up_u64(gpu->product->device_bytes, mib),
            gpu->cap_bytes / mib, gpu->cap_bytes % mib * 10 / mib);
    }
    return SLC_OK;
}

enum slc_status slc_gpu_product_open(struct slc_device *device,
                                     const struct slc_device_product *product,
                                     struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status;

    if (gpu->is_open || gpu->product != nullptr) {
        return slc_fail(err, SLC_ERR_USAGE, "device %d is already open", gpu->ordinal);
    }
    gpu->product = create_record();
    if (gpu->product == nullptr) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the lanes of device %d", gpu->ordinal);
    }
    pthread_mutex_init(&gpu->product->times_mutex, nullptr);
    gpu->product->opened_ns = slc_clock_ns();
    status = check_product(gpu, product, err);
    if (status == SLC_OK) {
        gpu->stats = {};
        status = open_lanes(gpu, gpu->product, err);
    }
    if (status != SLC_OK) {
        slc_gpu_product_close(gpu);
    }
    return status;
}

/* ---- close */

static void close_lane(struct slc_gpu_lane *lane)
{
    cudaEvent_t *const events[] = {&lane->begun, &lane->copied, &lane->done};

    for (cudaEvent_t *event : events) {
        if (*event != nullptr) {
            (void)cudaEventDestroy(*event);
        }
    }
    if (lane->stream != nullptr) {
        (void)cudaStreamSynchronize(lane->stream);
        (void)cudaStreamDestroy(lane->stream);
    }
}

uint64_t slc_gpu_product_bytes(const struct slc_gpu *gpu)
{
    return gpu->product != nullptr ? gpu->product->device_bytes : 0;
}

void slc_gpu_product_stats(const struct slc_gpu *gpu, struct slc_device_stats *stats)
{
    for (unsigned l = 0; gpu->product != nullptr && l < SLC_DEVICE_LANES; l++) {
        const struct slc_device_stats *lane = &gpu->product->lanes[l].stats;

        stats->launches += lane->launches;
        stats->blocks += lane->blocks;
        stats->nnz += lane->nnz;
        stats->block_bytes += lane->block_bytes;
        stats->bytes_to_device += lane->bytes_to_device;
        stats->bytes_to_host += lane->bytes_to_host;
    }
    if (gpu->product != nullptr) {
        pthread_mutex_lock(&gpu->product->times_mutex);
        stats->copy_seconds += slc_spans_seconds(&gpu->product->copy);
        stats->compute_seconds += slc_spans_seconds(&gpu->product->compute);
        stats->busy_seconds += slc_spans_seconds(&gpu->product->busy);
        pthread_mutex_unlock(&gpu->product->times_mutex);
    }
}

void slc_gpu_product_close(struct slc_gpu *gpu)
{
    struct slc_gpu_product *product = gpu->product;

    if (product == nullptr) {
        return;
    }
    (void)cudaSetDevice(gpu->ordinal);
    slc_gpu_product_stats(gpu, &gpu->stats);
    for (unsigned l = 0; l < SLC_DEVICE_LANES; l++) {
        close_lane(&product->lanes[l]);
    }
    if (product->is_registered) {
        (void)cudaHostUnregister(product->registered.data);
    }
    if (product->device != nullptr) {
        (void)cudaFree(product->device);
    }
    /* Discard the errors of the calls above. */
    (void)cudaGetLastError();
    slc_buffer_destroy(&product->registered);
    pthread_mutex_destroy(&product->times_mutex);
    slc_free(product);
    gpu->product = nullptr;
}
