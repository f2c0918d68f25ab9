/* Copies matrices between the device and any host memory. A matrix in registered memory whose rows
 * have the same bytes on device and host is copied directly. Other matrices are copied through two
 * pieces of registered memory: while one piece is packed or unpacked, the other piece is
 * transferred. The row pitch may then differ between device and host. */
#include "gpu/cuda/check.h"
#include "gpu/device/state.h"

extern "C" {
#include "base/memory/checked.h"
}

#include <cinttypes>
#include <cstring>

/* Moves `count` rows, starting at row `first`, between a piece and host memory. */
typedef void (*move_rows)(unsigned char *piece, uint64_t first, uint64_t count, void *context);

static enum slc_status to_device(struct slc_gpu *gpu,
                                 void *to,
                                 uint64_t rows,
                                 uint64_t row_bytes,
                                 move_rows pack,
                                 void *context,
                                 struct slc_error *err)
{
    const uint64_t step = SLC_GPU_PIECE_BYTES / row_bytes;
    unsigned turn = 0;

    for (uint64_t first = 0; first < rows; first += step, turn ^= 1U) {
        const uint64_t count = slc_min_u64(step, rows - first);
        unsigned char *piece = gpu->memory.piece[turn];

        SLC_PLANT(piece_overwritten, SLC_GPU_TRY(cudaEventSynchronize(gpu->piece_done[turn]), err));
        pack(piece, first, count, context);
        SLC_GPU_TRY(cudaMemcpyAsync(static_cast<unsigned char *>(to) + first * row_bytes, piece,
                                    count * row_bytes, cudaMemcpyHostToDevice, gpu->main),
                    err);
        SLC_GPU_TRY(cudaEventRecord(gpu->piece_done[turn], gpu->main), err);
    }
    gpu->stats.bytes_to_device += rows * row_bytes;
    return SLC_OK;
}

static enum slc_status to_host(struct slc_gpu *gpu,
                               const void *from,
                               uint64_t rows,
                               uint64_t row_bytes,
                               move_rows unpack,
                               void *context,
                               struct slc_error *err)
{
    const uint64_t step = SLC_GPU_PIECE_BYTES / row_bytes;
    const uint64_t pieces = slc_div_up_u64(rows, step);

    /* Piece p is transferred while piece p - 1 is unpacked. */
    for (uint64_t p = 0; p <= pieces; p++) {
        const unsigned turn = p % 2;

        if (p < pieces) {
            const uint64_t count = slc_min_u64(step, rows - p * step);

            /* A copy to the device may still be reading this piece. */
            SLC_GPU_TRY(cudaEventSynchronize(gpu->piece_done[turn]), err);
            SLC_GPU_TRY(
                cudaMemcpyAsync(gpu->memory.piece[turn],
                                static_cast<const unsigned char *>(from) + p * step * row_bytes,
                                count * row_bytes, cudaMemcpyDeviceToHost, gpu->main),
                err);
            SLC_GPU_TRY(cudaEventRecord(gpu->piece_done[turn], gpu->main), err);
        }
        if (p > 0) {
            const uint64_t first = (p - 1) * step;

            SLC_GPU_TRY(cudaEventSynchronize(gpu->piece_done[turn ^ 1U]), err);
            unpack(gpu->memory.piece[turn ^ 1U], first, slc_min_u64(step, rows - first), context);
        }
    }
    gpu->stats.bytes_to_host += rows * row_bytes;
    return SLC_OK;
}

/* ---- matrices */

struct matrix_rows {
    struct slc_matrix *host;
    enum slc_value_type type; /* type of the elements in device memory */
    uint32_t pitch;           /* pitch of the rows in device memory */
    uint32_t split;           /* order of the columns in device memory */
};

static uint64_t row_bytes(const struct matrix_rows *rows)
{
    return (uint64_t)rows->pitch * slc_value_bytes(rows->type);
}

static uint64_t host_row_bytes(const struct slc_matrix *host)
{
    return (uint64_t)host->pitch * slc_value_bytes(host->type);
}

static unsigned char *host_row(const struct slc_matrix *host, uint64_t row)
{
    return static_cast<unsigned char *>(host->buffer.data) + row * host_row_bytes(host);
}

/* Copies a row of sums to host memory. Sums in device memory are f64, and their columns may be
 * reordered; sums in host memory are f64 or rounded to f32. */
static void unpack_sums(const struct matrix_rows *rows, uint64_t row, const double *from)
{
    struct slc_matrix *host = rows->host;

    for (uint32_t r = 0; r < host->cols; r++) {
        const double sum = from[slc_gpu_place_of_column(host->cols, rows->split, r)];

        if (host->type == SLC_F64) {
            slc_matrix_row_f64(host, row)[r] = sum;
        } else {
            slc_matrix_row_f32(host, row)[r] = (float)sum;
        }
    }
}

/* Returns true if rows have the same bytes in device and host memory. */
static bool same_rows(const struct matrix_rows *rows)
{
    return rows->host->type == rows->type && rows->split <= 1;
}

static void pack_matrix(unsigned char *piece, uint64_t first, uint64_t count, void *context)
{
    const struct matrix_rows *rows = static_cast<const struct matrix_rows *>(context);
    const uint64_t bytes = row_bytes(rows);
    const uint64_t used = (uint64_t)rows->host->cols * slc_value_bytes(rows->type);

    for (uint64_t i = 0; i < count; i++) {
        memcpy(piece + i * bytes, host_row(rows->host, first + i), used);
        memset(piece + i * bytes + used, 0, bytes - used);
    }
}

static void unpack_matrix(unsigned char *piece, uint64_t first, uint64_t count, void *context)
{
    const struct matrix_rows *rows = static_cast<const struct matrix_rows *>(context);
    const uint64_t bytes = row_bytes(rows);
    const uint64_t used = (uint64_t)rows->host->cols * slc_value_bytes(rows->type);

    for (uint64_t i = 0; i < count; i++) {
        if (same_rows(rows)) {
            memcpy(host_row(rows->host, first + i), piece + i * bytes, used);
        } else {
            unpack_sums(rows, first + i, reinterpret_cast<const double *>(piece + i * bytes));
        }
    }
}

/* After an error, waits for all work, because pending work could access the pieces later. Returns
 * `status`. */
static enum slc_status drain_on_error(struct slc_gpu *gpu, enum slc_status status)
{
    if (status != SLC_OK) {
        slc_gpu_drain(gpu);
    }
    return status;
}

/* Returns true if the first `count` rows are in registered memory and have the same bytes on device
 * and host, so that they can be copied without a piece. */
static bool
copies_directly(const struct slc_gpu *gpu, const struct matrix_rows *rows, uint64_t count)
{
    const struct slc_matrix *host = rows->host;

    return same_rows(rows) && host->pitch == rows->pitch && host->cols == host->pitch &&
           slc_gpu_is_registered(gpu, host->buffer.data, count * row_bytes(rows));
}

static enum slc_status matrix_to_host(struct slc_gpu *gpu,
                                      const void *from,
                                      uint64_t count,
                                      struct matrix_rows *rows,
                                      struct slc_error *err)
{
    const uint64_t bytes = count * row_bytes(rows);

    gpu->stats.factor_bytes_to_host += bytes;
    if (!copies_directly(gpu, rows, count)) {
        return to_host(gpu, from, count, row_bytes(rows), unpack_matrix, rows, err);
    }
    SLC_GPU_TRY(
        cudaMemcpyAsync(rows->host->buffer.data, from, bytes, cudaMemcpyDeviceToHost, gpu->main),
        err);
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    gpu->stats.bytes_to_host += bytes;
    gpu->stats.direct_bytes += bytes;
    return SLC_OK;
}

/* Copies from registered host memory. The memory must stay unchanged until the caller has waited
 * for the stream. */
static enum slc_status send_directly(
    struct slc_gpu *gpu, void *to, const void *from, uint64_t bytes, struct slc_error *err)
{
    SLC_GPU_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, gpu->main), err);
    gpu->stats.bytes_to_device += bytes;
    gpu->stats.direct_bytes += bytes;
    return SLC_OK;
}

static enum slc_status await_main(struct slc_gpu *gpu, struct slc_error *err)
{
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    return SLC_OK;
}

static enum slc_status
write_factor(struct slc_gpu *gpu, unsigned mode, struct slc_matrix *host, struct slc_error *err)
{
    const struct slc_gpu_matrix *factor = &gpu->memory.factor[mode];
    struct matrix_rows rows = {host, host->type, factor->pitch, 0};

    if (!copies_directly(gpu, &rows, factor->rows)) {
        return to_device(gpu, factor->data, factor->rows, row_bytes(&rows), pack_matrix, &rows,
                         err);
    }
    SLC_TRY(
        send_directly(gpu, factor->data, host->buffer.data, factor->rows * row_bytes(&rows), err));
    return await_main(gpu, err);
}

/* Checks the arguments of a copy of a factor in either direction. */
static enum slc_status enter_factor(const struct slc_gpu *gpu,
                                    unsigned mode,
                                    const struct slc_matrix *host,
                                    struct slc_error *err)
{
    SLC_TRY(slc_gpu_enter(gpu, err));
    if (gpu->job.active || mode >= gpu->problem.order || host->type != gpu->problem.precision ||
        host->rows != gpu->problem.dims[mode] || host->cols != gpu->problem.rank) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a matrix of %" PRIu64 " x %" PRIu32
                        " does not match the factor of mode %u on device %d, or an MTTKRP is in "
                        "progress on the device",
                        host->rows, host->cols, mode, gpu->ordinal);
    }
    return SLC_OK;
}

enum slc_status slc_gpu_factor_write(struct slc_device *device,
                                     unsigned mode,
                                     const struct slc_matrix *from,
                                     struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    struct slc_matrix host = *from;
    enum slc_status status = enter_factor(gpu, mode, from, err);

    if (status == SLC_OK) {
        gpu->largest_known[mode] = false;
        status = drain_on_error(gpu, write_factor(gpu, mode, &host, err));
    }
    return status;
}

enum slc_status slc_gpu_factor_read(struct slc_device *device,
                                    unsigned mode,
                                    struct slc_matrix *to,
                                    struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status = enter_factor(gpu, mode, to, err);

    if (status == SLC_OK) {
        const struct slc_gpu_matrix *factor = &gpu->memory.factor[mode];
        struct matrix_rows rows = {to, to->type, factor->pitch, 0};

        status = drain_on_error(gpu, matrix_to_host(gpu, factor->data, factor->rows, &rows, err));
    }
    return status;
}

/* Checks the arguments of a function that reads or changes the output. */
static enum slc_status
enter_output(struct slc_gpu *gpu, const struct slc_matrix *to, struct slc_error *err)
{
    const struct slc_gpu_matrix *output = &gpu->job.mttkrp.output;

    SLC_TRY(slc_gpu_enter(gpu, err));
    if (!gpu->job.has_output || to->rows != output->rows || to->cols != output->cols) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a matrix of %" PRIu64 " x %" PRIu32
                        " does not match the output of a completed MTTKRP on device %d",
                        to->rows, to->cols, gpu->ordinal);
    }
    return drain_on_error(gpu, slc_gpu_output_finish(gpu, err));
}

enum slc_status slc_gpu_output_rows(struct slc_device *device,
                                    const struct slc_row_span *rows,
                                    uint64_t count,
                                    struct slc_matrix *to,
                                    struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    const struct slc_gpu_matrix *output = &gpu->job.mttkrp.output;

    SLC_TRY(enter_output(gpu, to, err));
    for (uint64_t i = 0; i < count; i++) {
        struct slc_matrix part = *to;
        struct matrix_rows moved = {&part, SLC_F64, output->pitch, output->split};

        part.buffer.data = host_row(to, rows[i].first);
        part.rows = rows[i].end - rows[i].first;
        SLC_TRY(drain_on_error(gpu, matrix_to_host(gpu,
                                                   static_cast<unsigned char *>(output->data) +
                                                       rows[i].first * row_bytes(&moved),
                                                   part.rows, &moved, err)));
    }
    return SLC_OK;
}

enum slc_status
slc_gpu_output_read(struct slc_device *device, struct slc_matrix *to, struct slc_error *err)
{
    const struct slc_row_span all = {0, to->rows};

    return slc_gpu_output_rows(device, &all, 1, to, err);
}

/* Adds rows of the host, which must fit in the arrival buffer, to the output, starting at its row
 * `first`. The rows arrive as they are in host memory. */
static enum slc_status add_rows(struct slc_gpu *gpu,
                                uint64_t first,
                                const struct slc_matrix *rows,
                                bool direct,
                                struct slc_error *err)
{
    const uint64_t bytes = host_row_bytes(rows);

    SLC_TRY(
        direct ? send_directly(gpu, gpu->memory.arrival, rows->buffer.data, rows->rows * bytes, err)
               : slc_gpu_rows_send(gpu, gpu->memory.arrival, rows->buffer.data, rows->rows, bytes,
                                   err));
    SLC_GPU_TRY(slc_gpu_output_add_host_rows(gpu, first, rows), err);
    return SLC_OK;
}

enum slc_status slc_gpu_output_add_host(struct slc_device *device,
                                        const struct slc_matrix *from,
                                        struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);

    SLC_TRY(enter_output(gpu, from, err));
    if (!gpu->problem.adds_host || gpu->problem.deterministic) {
        SLC_TRY(
            slc_fail(err, SLC_ERR_USAGE,
                     "device %d was not opened with adds_host, so sums of the host cannot be added",
                     gpu->ordinal));
    }
    struct slc_matrix part = *from;
    const uint64_t bytes = host_row_bytes(from), step = SLC_GPU_ARRIVAL_BYTES / bytes;
    const bool direct = slc_gpu_is_registered(gpu, from->buffer.data, from->rows * bytes);

    for (uint64_t first = 0; first < from->rows; first += step) {
        part.buffer.data = host_row(from, first);
        part.rows = slc_min_u64(step, from->rows - first);
        SLC_TRY(drain_on_error(gpu, add_rows(gpu, first, &part, direct, err)));
    }
    return direct ? drain_on_error(gpu, await_main(gpu, err)) : SLC_OK;
}

/* ---- plain rows */

/* Rows in host memory. */
struct plain_rows {
    unsigned char *host;
    uint64_t row_bytes;
};

static void pack_plain(unsigned char *piece, uint64_t first, uint64_t count, void *context)
{
    const struct plain_rows *rows = static_cast<const struct plain_rows *>(context);

    memcpy(piece, rows->host + first * rows->row_bytes, count * rows->row_bytes);
}

static void unpack_plain(unsigned char *piece, uint64_t first, uint64_t count, void *context)
{
    const struct plain_rows *rows = static_cast<const struct plain_rows *>(context);

    memcpy(rows->host + first * rows->row_bytes, piece, count * rows->row_bytes);
}

enum slc_status slc_gpu_rows_send(struct slc_gpu *gpu,
                                  void *to,
                                  const void *from,
                                  uint64_t rows,
                                  uint64_t row_bytes,
                                  struct slc_error *err)
{
    struct plain_rows plain = {static_cast<unsigned char *>(const_cast<void *>(from)), row_bytes};

    return to_device(gpu, to, rows, row_bytes, pack_plain, &plain, err);
}

enum slc_status slc_gpu_rows_receive(struct slc_gpu *gpu,
                                     void *to,
                                     const void *from,
                                     uint64_t rows,
                                     uint64_t row_bytes,
                                     struct slc_error *err)
{
    struct plain_rows plain = {static_cast<unsigned char *>(to), row_bytes};

    return to_host(gpu, from, rows, row_bytes, unpack_plain, &plain, err);
}

enum slc_status slc_gpu_layouts_write(struct slc_gpu *gpu,
                                      const struct slc_encoded_layout *layouts,
                                      struct slc_error *err)
{
    return slc_gpu_rows_send(gpu, gpu->memory.layouts, layouts, gpu->problem.layout_count,
                             sizeof *layouts, err);
}
