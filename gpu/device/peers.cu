/* Moves rows between the devices of a group: rows of factors are copied, rows of outputs are added.
 *
 * The driver copies rows of another device directly if the two devices can access each other, and
 * otherwise through the host. If a factor's rows are in several spans and the devices can access
 * each other, one kernel copies all spans, because every copy by the driver takes several
 * microseconds. Rows to be added are first copied to a buffer, so that results do not
 * depend on the path of the copy. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

extern "C" {
#include "base/memory/checked.h"
}

#include <cinttypes>

enum {
    ADD_THREADS = 256,
    /* Maximum number of thread blocks, several times the number that the largest devices run at
     * once. With more elements, each thread block adds elements at a stride. */
    ADD_BLOCKS_MAX = 8192,
    COPY_THREADS = 256,
    /* thread blocks that share a span, and the maximum for all spans */
    COPY_BLOCKS_EACH = 8,
    COPY_SPANS_MAX = 4096,
    /* Minimum number of spans for which one kernel copies all spans. */
    COPY_SPANS_LEAST = 3
};

/* Copies spans of rows. A row has `pairs` pairs of f64, which are 16 bytes each. */
__global__ static void copy_spans(double2 *to,
                                  const double2 *from,
                                  const struct slc_row_span *spans,
                                  uint32_t count,
                                  uint32_t pairs)
{
    for (uint32_t s = blockIdx.x; s < count; s += gridDim.x) {
        const uint64_t end = spans[s].end * pairs;
        uint64_t i = spans[s].first * pairs + (uint64_t)blockIdx.y * COPY_THREADS + threadIdx.x;

        for (; i < end; i += (uint64_t)gridDim.y * COPY_THREADS) {
            to[i] = from[i];
        }
    }
}

__global__ static void add_arrived(double *to, const double *from, uint64_t count)
{
    for (uint64_t i = (uint64_t)blockIdx.x * ADD_THREADS + threadIdx.x; i < count;
         i += (uint64_t)gridDim.x * ADD_THREADS) {
        to[i] += from[i];
    }
}

/* Adds rows of the host to the output, whose columns may be reordered. The warp lanes of a row add
 * its columns. */
template <typename T>
__global__ static void
add_host_rows(struct slc_gpu_matrix to, const T *from, uint64_t rows, uint32_t pitch)
{
    const unsigned lanes = to.cols <= 8 ? 8 : to.cols <= 16 ? 16 : SLC_WARP;
    const uint64_t step = (uint64_t)gridDim.x * (ADD_THREADS / lanes);
    uint64_t row = ((uint64_t)blockIdx.x * ADD_THREADS + threadIdx.x) / lanes;

    for (; row < rows; row += step) {
        for (uint32_t c = threadIdx.x % lanes; c < to.cols; c += lanes) {
            double *sum = static_cast<double *>(to.data) + row * to.pitch +
                          slc_gpu_place_of_column(to.cols, to.split, c);

            *sum += (double)from[row * pitch + c];
        }
    }
}

/* Checks that the devices were opened for the same problem. */
static enum slc_status
enter(const struct slc_gpu *gpu, const struct slc_device *from, struct slc_error *err)
{
    const enum slc_status status = slc_gpu_enter(gpu, err);
    const struct slc_gpu *other = slc_gpu_of(from);

    if (status != SLC_OK) {
        return status;
    }
    if (from->ops != gpu->device.ops || other == gpu || !other->is_open ||
        gpu->problem.unit_most == 0 || other->problem.order != gpu->problem.order ||
        memcmp(other->problem.dims, gpu->problem.dims, sizeof gpu->problem.dims) != 0 ||
        other->problem.rank != gpu->problem.rank ||
        other->problem.precision != gpu->problem.precision ||
        other->problem.deterministic != gpu->problem.deterministic || gpu->job.active) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "device %d and the device that sends it rows were opened for different problems",
            gpu->ordinal);
    }
    return SLC_OK;
}

static uint64_t ordinal_bit(const struct slc_gpu *other)
{
    return other->ordinal < 64 ? UINT64_C(1) << other->ordinal : 0;
}

/* Returns true if kernels of the device can read memory of the device `other`. */
static bool reaches(const struct slc_gpu *gpu, const struct slc_gpu *other)
{
    return other->ordinal == gpu->ordinal || (gpu->peers_reached & ordinal_bit(other)) != 0;
}

/* Enables direct copies from the device `other`, if possible. */
static enum slc_status
enable_peer_access(struct slc_gpu *gpu, const struct slc_gpu *other, struct slc_error *err)
{
    const uint64_t bit = ordinal_bit(other);
    int can = 0;

    if (other->ordinal == gpu->ordinal || (gpu->peers_tried & bit) != 0) {
        return SLC_OK;
    }
    SLC_GPU_TRY(cudaDeviceCanAccessPeer(&can, gpu->ordinal, other->ordinal), err);
    if (can != 0) {
        const cudaError_t error = cudaDeviceEnablePeerAccess(other->ordinal, 0);

        /* If enabling fails, copies go through the host. Clears the error. */
        (void)cudaGetLastError();
        if (error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled) {
            gpu->peers_reached |= bit;
        }
    }
    gpu->peers_tried |= bit;
    return SLC_OK;
}

/* Enqueues a copy from the memory of the device `other`. */
static enum slc_status copy_from_peer(struct slc_gpu *gpu,
                                      const struct slc_gpu *other,
                                      void *to,
                                      const void *from,
                                      uint64_t bytes,
                                      struct slc_error *err)
{
    if (other->ordinal == gpu->ordinal) {
        SLC_GPU_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gpu->main), err);
    } else {
        SLC_GPU_TRY(cudaMemcpyPeerAsync(to, gpu->ordinal, from, other->ordinal, bytes, gpu->main),
                    err);
    }
    gpu->stats.bytes_from_devices += bytes;
    return SLC_OK;
}

static enum slc_status copy_by_kernel(struct slc_gpu *gpu,
                                      const struct slc_gpu_matrix *to,
                                      const struct slc_gpu_matrix *from,
                                      const struct slc_row_span *rows,
                                      uint32_t count,
                                      uint64_t row_bytes,
                                      struct slc_error *err)
{
    const dim3 grid(count < COPY_SPANS_MAX ? count : (uint32_t)COPY_SPANS_MAX, COPY_BLOCKS_EACH);

    SLC_TRY(slc_gpu_rows_send(gpu, gpu->memory.units, rows, count, sizeof *rows, err));
    SLC_GPU_TRY(slc_launch(copy_spans, grid, COPY_THREADS, 0, gpu->main,
                           static_cast<double2 *>(to->data),
                           static_cast<const double2 *>(from->data), gpu->memory.units, count,
                           (uint32_t)(row_bytes / sizeof(double2))),
                err);
    for (uint32_t i = 0; i < count; i++) {
        gpu->stats.bytes_from_devices += (rows[i].end - rows[i].first) * row_bytes;
    }
    return SLC_OK;
}

static enum slc_status copy_factor(struct slc_gpu *gpu,
                                   unsigned mode,
                                   const struct slc_gpu *other,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err)
{
    const struct slc_gpu_matrix *to = &gpu->memory.factor[mode],
                                *from = &other->memory.factor[mode];
    const uint64_t row_bytes = to->pitch * (uint64_t)slc_value_bytes(gpu->problem.precision);

    SLC_TRY(enable_peer_access(gpu, other, err));
    if (count >= COPY_SPANS_LEAST && count <= gpu->problem.unit_most && reaches(gpu, other)) {
        SLC_TRY(copy_by_kernel(gpu, to, from, rows, (uint32_t)count, row_bytes, err));
        count = 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = rows[i].first * row_bytes;

        SLC_TRY(copy_from_peer(gpu, other, static_cast<unsigned char *>(to->data) + at,
                               static_cast<const unsigned char *>(from->data) + at,
                               (rows[i].end - rows[i].first) * row_bytes, err));
    }
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    return SLC_OK;
}

enum slc_status slc_gpu_factor_copy(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_device *from,
                                    const struct slc_row_span *rows,
                                    uint64_t count,
                                    struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status;

    SLC_TRY(enter(gpu, from, err));
    if (mode >= gpu->problem.order) {
        return slc_fail(err, SLC_ERR_USAGE, "there is no factor of mode %u on device %d", mode,
                        gpu->ordinal);
    }
    gpu->largest_known[mode] = false;
    status = copy_factor(gpu, mode, slc_gpu_of(from), rows, count, err);
    if (status != SLC_OK) {
        slc_gpu_drain(gpu);
    }
    return status;
}

/* ---- sums */

/* Adds `bytes` bytes of the arrival buffer to the output, starting at byte `at` of the output. */
static cudaError_t add_output_bytes(const struct slc_gpu *gpu, uint64_t at, uint64_t bytes)
{
    const struct slc_gpu_mttkrp *job = &gpu->job.mttkrp;
    const uint64_t count = bytes / sizeof(double);
    const unsigned blocks =
        (unsigned)slc_min_u64(slc_div_up_u64(count, ADD_THREADS), ADD_BLOCKS_MAX);
    unsigned char *output = static_cast<unsigned char *>(job->output.data) + at;
    const void *arrived = gpu->memory.arrival;

    return slc_launch(add_arrived, blocks, ADD_THREADS, 0, gpu->main,
                      reinterpret_cast<double *>(output), static_cast<const double *>(arrived),
                      count);
}

cudaError_t slc_gpu_output_add_host_rows(const struct slc_gpu *gpu,
                                         uint64_t first,
                                         const struct slc_matrix *host)
{
    struct slc_gpu_matrix to = gpu->job.mttkrp.output;
    const uint64_t elements = host->rows * slc_div_up_u64(to.cols, 8) * 8;
    const unsigned blocks =
        (unsigned)slc_min_u64(slc_div_up_u64(elements, ADD_THREADS), ADD_BLOCKS_MAX);
    const void *arrived = gpu->memory.arrival;

    to.data = static_cast<double *>(to.data) + first * to.pitch;
    if (host->type == SLC_F64) {
        return slc_launch(add_host_rows<double>, blocks, ADD_THREADS, 0, gpu->main, to,
                          static_cast<const double *>(arrived), host->rows, host->pitch);
    }
    return slc_launch(add_host_rows<float>, blocks, ADD_THREADS, 0, gpu->main, to,
                      static_cast<const float *>(arrived), host->rows, host->pitch);
}

/* Adds bytes of the arrival buffer to exact sums. */
static cudaError_t add_words(const struct slc_gpu *gpu, uint64_t at, uint64_t bytes)
{
    const struct slc_exact_sum *exact = &gpu->job.mttkrp.exact;

    return slc_exact_sum_add(exact->words + at / sizeof *exact->words,
                             reinterpret_cast<const unsigned long long *>(gpu->memory.arrival),
                             bytes / sizeof *exact->words, gpu->main);
}

/* Adds bytes [begin, end) of the output of `other`, or of its exact sums, to those of `gpu`. */
static enum slc_status add_bytes(struct slc_gpu *gpu,
                                 const struct slc_gpu *other,
                                 bool exact,
                                 uint64_t begin,
                                 uint64_t end,
                                 struct slc_error *err)
{
    const struct slc_gpu_mttkrp *job = &other->job.mttkrp;
    const unsigned char *from = exact ? reinterpret_cast<const unsigned char *>(job->exact.words)
                                      : static_cast<const unsigned char *>(job->output.data);

    for (uint64_t at = begin; at < end; at += SLC_GPU_ARRIVAL_BYTES) {
        const uint64_t bytes = slc_min_u64(end - at, SLC_GPU_ARRIVAL_BYTES);
        const enum slc_status status =
            copy_from_peer(gpu, other, gpu->memory.arrival, from + at, bytes, err);

        if (status != SLC_OK) {
            return status;
        }
        SLC_GPU_TRY(exact ? add_words(gpu, at, bytes) : add_output_bytes(gpu, at, bytes), err);
    }
    return SLC_OK;
}

/* Marks the columns for which the device `other` could not add all addends. */
static enum slc_status
add_refused(struct slc_gpu *gpu, const struct slc_gpu *other, struct slc_error *err)
{
    const struct slc_gpu_mttkrp *job = &other->job.mttkrp;
    const uint64_t rank = job->rank;

    SLC_TRY(copy_from_peer(gpu, other, gpu->memory.arrival,
                           job->exact.words + 2 * job->output.rows * rank,
                           rank * sizeof *job->exact.words, err));
    SLC_GPU_TRY(slc_exact_sum_add(gpu->memory.refused,
                                  reinterpret_cast<unsigned long long *>(gpu->memory.arrival), rank,
                                  gpu->main),
                err);
    return SLC_OK;
}

static enum slc_status add_output(struct slc_gpu *gpu,
                                  const struct slc_gpu *other,
                                  const struct slc_row_span *rows,
                                  uint64_t count,
                                  struct slc_error *err)
{
    const struct slc_gpu_mttkrp *job = &gpu->job.mttkrp;
    const bool exact = gpu->problem.deterministic;
    const uint64_t row_bytes = exact ? 2 * (uint64_t)job->rank * sizeof *job->exact.words
                                     : job->output.pitch * (uint64_t)sizeof(double);

    SLC_TRY(enable_peer_access(gpu, other, err));
    if (exact) {
        SLC_TRY(add_refused(gpu, other, err));
    }
    for (uint64_t i = 0; i < count; i++) {
        SLC_TRY(
            add_bytes(gpu, other, exact, rows[i].first * row_bytes, rows[i].end * row_bytes, err));
    }
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    return SLC_OK;
}

enum slc_status slc_gpu_output_add(struct slc_device *device,
                                   const struct slc_device *from,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    const struct slc_gpu *other = slc_gpu_of(from);
    enum slc_status status;

    SLC_TRY(enter(gpu, from, err));
    if (!gpu->job.has_output || !other->job.has_output ||
        gpu->job.mttkrp.mode != other->job.mttkrp.mode ||
        gpu->job.sums_pending != gpu->problem.deterministic ||
        other->job.sums_pending != gpu->problem.deterministic) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "device %d and the device that sends it rows need outputs of the same mode; exact sums "
            "must not have been read yet",
            gpu->ordinal);
    }
    status = add_output(gpu, other, rows, count, err);
    if (status != SLC_OK) {
        slc_gpu_drain(gpu);
    }
    return status;
}
