/* Opens and closes a device: its memory, streams and events. */
#include "gpu/cuda/check.h"
#include "gpu/product/product.h"

#include <cinttypes>
#include <cstring>

static enum slc_status check_problem(const struct slc_gpu *gpu,
                                     const struct slc_device_problem *problem,
                                     struct slc_error *err)
{
    const uint64_t mib = UINT64_C(1) << 20;
    uint64_t need;

    if (gpu->is_open || gpu->product != nullptr) {
        return slc_fail(err, SLC_ERR_USAGE, "device %d is already open", gpu->ordinal);
    }
    if (!slc_gpu_problem_sound(problem)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a device cannot be opened for %u modes, rank %" PRIu32
                        ", %u layouts, %u streams with slots of %" PRIu64 " bytes and %" PRIu32
                        " tiles: mode sizes must not be 0, the rank must be 1 to %d, the number of "
                        "streams 1 to %d, and factors f32 or f64",
                        problem->order, problem->rank, problem->layout_count, problem->streams,
                        problem->slot_bytes, problem->slot_tiles, SLC_MAX_RANK, SLC_DEVICE_STREAMS);
    }
    need = slc_gpu_memory_bytes(&gpu->device, problem);
    if (need > gpu->cap_bytes) {
        return slc_fail_field(
            err, SLC_ERR_BUDGET, SLC_FIELD_DEVICE_MEMORY,
            "factors, output, %u slots and resident blocks on device %d need %" PRIu64
            " MiB of device memory or more; the limit is %" PRIu64 ".%" PRIu64 " MiB",
            problem->streams, gpu->ordinal, need / mib + (need % mib != 0), gpu->cap_bytes / mib,
            gpu->cap_bytes % mib * 10 / mib);
    }
    return SLC_OK;
}

static enum slc_status open_slot(struct slc_gpu_slot *slot, struct slc_error *err)
{
    int least = 0, greatest = 0;

    /* The streams of slots have a higher priority than the stream of resident blocks, so that
     * copied blocks are computed first. The emulation ignores priorities. */
    SLC_GPU_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest), err);
    SLC_GPU_TRY(cudaStreamCreateWithPriority(&slot->stream, cudaStreamNonBlocking, greatest), err);
    SLC_TRY(slc_gpu_span_open(&slot->computing, err));
    for (unsigned c = 0; c < SLC_GPU_COPIES; c++) {
        SLC_TRY(slc_gpu_span_open(&slot->copies[c], err));
    }
    return SLC_OK;
}

static enum slc_status open_streams(struct slc_gpu *gpu, struct slc_error *err)
{
    SLC_GPU_TRY(cudaStreamCreateWithFlags(&gpu->main, cudaStreamNonBlocking), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&gpu->begun, cudaEventDisableTiming), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&gpu->times.epoch, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&gpu->piece_done[0], cudaEventDisableTiming), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&gpu->piece_done[1], cudaEventDisableTiming), err);
    for (unsigned s = 0; s < gpu->problem.streams; s++) {
        const enum slc_status status = open_slot(&gpu->slots[s], err);

        if (status != SLC_OK) {
            return status;
        }
        gpu->slots[s].memory = gpu->memory.slot[s];
    }
    return gpu->problem.resident_tiles > 0 ? slc_gpu_residents_open(gpu, err) : SLC_OK;
}

static enum slc_status clear_matrix(struct slc_gpu *gpu,
                                    const struct slc_gpu_matrix *matrix,
                                    enum slc_value_type type,
                                    struct slc_error *err)
{
    SLC_GPU_TRY(cudaMemsetAsync(matrix->data, 0,
                                matrix->rows * matrix->pitch * (uint64_t)slc_value_bytes(type),
                                gpu->main),
                err);
    return SLC_OK;
}

/* Clears the factors and the output. Copies of their rows include the padding, to which no kernel
 * writes. */
static enum slc_status clear_matrices(struct slc_gpu *gpu, struct slc_error *err)
{
    for (unsigned n = 0; n < gpu->problem.order; n++) {
        SLC_TRY(clear_matrix(gpu, &gpu->memory.factor[n], gpu->problem.precision, err));
    }
    return clear_matrix(gpu, &gpu->memory.output, SLC_F64, err);
}

static enum slc_status open_memory(struct slc_gpu *gpu, struct slc_error *err)
{
    const struct slc_encoded_layout *layouts = gpu->problem.layouts;
    enum slc_status status;

    SLC_GPU_TRY(cudaSetDevice(gpu->ordinal), err);
    status = slc_gpu_memory_allocate(&gpu->problem, &gpu->memory, err);
    SLC_THEN(status, open_streams(gpu, err));
    SLC_THEN(status, clear_matrices(gpu, err));
    SLC_THEN(status, slc_gpu_layouts_write(gpu, layouts, err));
    gpu->problem.layouts = nullptr;
    return status;
}

enum slc_status slc_gpu_open(struct slc_device *device,
                             const struct slc_device_problem *problem,
                             struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    enum slc_status status;

    SLC_TRY(check_problem(gpu, problem, err));
    gpu->problem = *problem;
    gpu->is_open = true;
    gpu->stats = {};
    status = open_memory(gpu, err);
    if (status != SLC_OK) {
        slc_gpu_close(device);
    }
    return status;
}

void slc_gpu_event_close(cudaEvent_t *event)
{
    if (*event != nullptr) {
        (void)cudaEventDestroy(*event);
        *event = nullptr;
    }
}

static void close_slot(struct slc_gpu_slot *slot)
{
    for (unsigned c = 0; c < SLC_GPU_COPIES; c++) {
        slc_gpu_span_close(&slot->copies[c]);
    }
    slc_gpu_span_close(&slot->computing);
    if (slot->stream != nullptr) {
        (void)cudaStreamDestroy(slot->stream);
    }
    *slot = {};
}

void slc_gpu_close(struct slc_device *device)
{
    struct slc_gpu *gpu = slc_gpu_of(device);

    slc_gpu_product_close(gpu);
    if (!gpu->is_open) {
        return;
    }
    slc_gpu_drain(gpu);
    for (unsigned s = 0; s < SLC_DEVICE_STREAMS; s++) {
        close_slot(&gpu->slots[s]);
    }
    slc_gpu_residents_close(gpu);
    slc_gpu_transcoded_destroy(&gpu->transcoded);
    gpu->transcoded_blocks = 0;
    slc_gpu_event_close(&gpu->begun);
    slc_gpu_event_close(&gpu->times.epoch);
    slc_gpu_event_close(&gpu->piece_done[0]);
    slc_gpu_event_close(&gpu->piece_done[1]);
    if (gpu->main != nullptr) {
        (void)cudaStreamDestroy(gpu->main);
        gpu->main = nullptr;
    }
    slc_gpu_memory_release(&gpu->memory);
    /* Discard the errors of the calls above. */
    (void)cudaGetLastError();
    gpu->is_open = false;
    gpu->batches = 0;
    gpu->times = {};
    gpu->job = {};
    memset(gpu->largest_known, 0, sizeof gpu->largest_known);
}
