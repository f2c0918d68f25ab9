/* Memory of an open device: measured and taken by the same walk over its parts. See memory.h. */
#include "gpu/memory.h"

#include "gpu/check.h"
#include "gpu/dense.h"
#include "gpu/piece.h"

extern "C" {
#include "base/checked.h"
}

#include <cinttypes>

static void matrix_part(struct slc_gpu_piece *piece,
                        enum slc_value_type type,
                        uint64_t rows,
                        uint32_t cols,
                        struct slc_gpu_matrix *matrix)
{
    const uint32_t together = 16 / slc_value_bytes(type);
    const uint32_t pitch = (cols + together - 1) / together * together;
    uint64_t bytes;

    if (!slc_mul_u64(rows, (uint64_t)pitch * slc_value_bytes(type), &bytes)) {
        piece->overflow = true;
        bytes = 0;
    }
    *matrix = {slc_gpu_part<unsigned char>(piece, bytes), rows, cols, pitch};
}

static uint64_t longest(const struct slc_device_problem *problem)
{
    uint64_t length = 0;

    for (unsigned n = 0; n < problem->order; n++) {
        length = slc_max_u64(length, problem->dims[n]);
    }
    return length;
}

/* Two numbers per column and a Gram matrix. */
static uint64_t sums_count(const struct slc_device_problem *problem)
{
    return (uint64_t)problem->rank * problem->rank + 2 * (uint64_t)problem->rank;
}

static void device_parts(const struct slc_device_problem *problem,
                         struct slc_gpu_piece *piece,
                         struct slc_gpu_memory *memory)
{
    const uint64_t rows = longest(problem);
    const uint64_t rank = problem->rank;

    for (unsigned n = 0; n < problem->order; n++) {
        matrix_part(piece, problem->precision, problem->dims[n], problem->rank, &memory->factor[n]);
    }
    matrix_part(piece, SLC_F64, rows, problem->rank, &memory->output);
    if (problem->deterministic) {
        const uint64_t words = slc_exact_sum_words(rows, problem->rank);

        memory->exact.words = slc_gpu_part<unsigned long long>(piece, words);
        memory->exact.scale = slc_gpu_part<double>(piece, rank);
        memory->largest = slc_gpu_part<double>(piece, problem->order * rank);
    }
    memory->layouts = slc_gpu_part<struct slc_encoded_layout>(piece, problem->layout_count);
    memory->fault = slc_gpu_part<struct slc_gpu_fault>(piece, 1);
    memory->solver = reinterpret_cast<double *>(
        slc_gpu_part<unsigned char>(piece, slc_gpu_solver_bytes(problem->rank)));
    memory->sums = slc_gpu_part<double>(piece, sums_count(problem));
    memory->scratch =
        slc_gpu_part<unsigned char>(piece, slc_gpu_dense_scratch_bytes(rows, problem->rank));
    for (unsigned s = 0; s < problem->streams; s++) {
        struct slc_gpu_slot_memory *slot = &memory->slot[s];

        slot->data = slc_gpu_part<uint8_t>(piece, problem->slot_bytes);
        slot->expanded = slc_gpu_part<uint8_t>(piece, problem->expanded_bytes);
        slot->tiles = slc_gpu_part<struct slc_gpu_tile>(piece, problem->slot_tiles);
        slot->chunk_begin = slc_gpu_part<uint32_t>(piece, (uint64_t)problem->slot_tiles + 1);
    }
    memory->resident = slc_gpu_part<uint8_t>(piece, problem->resident_bytes);
    memory->resident_tiles = slc_gpu_part<struct slc_gpu_tile>(piece, problem->resident_tiles);
    memory->resident_chunk_begin = slc_gpu_part<uint32_t>(piece, slc_gpu_resident_table(problem));
    memory->units = slc_gpu_part<struct slc_row_span>(piece, problem->unit_most);
    memory->unit_columns = slc_gpu_part<double>(piece, (uint64_t)problem->unit_most * 2 * rank);
    memory->arrival = slc_gpu_part<uint8_t>(
        piece, problem->unit_most > 0 || problem->adds_host ? SLC_GPU_ARRIVAL_BYTES : 0);
    memory->refused = slc_gpu_part<unsigned long long>(
        piece, problem->unit_most > 0 && problem->deterministic ? rank : 0);
}

static void registered_parts(const struct slc_device_problem *problem,
                             struct slc_gpu_piece *piece,
                             struct slc_gpu_memory *memory)
{
    memory->piece[0] = slc_gpu_part<uint8_t>(piece, SLC_GPU_PIECE_BYTES);
    memory->piece[1] = slc_gpu_part<uint8_t>(piece, SLC_GPU_PIECE_BYTES);
    memory->host_solver = reinterpret_cast<double *>(
        slc_gpu_part<unsigned char>(piece, slc_max_u64(slc_gpu_solver_bytes(problem->rank),
                                                       sums_count(problem) * sizeof(double))));
    memory->host_fault = slc_gpu_part<struct slc_gpu_fault>(piece, 1);
    for (unsigned s = 0; s < problem->streams; s++) {
        struct slc_gpu_slot_memory *slot = &memory->slot[s];

        slot->host_tiles = slc_gpu_part<struct slc_gpu_tile>(piece, problem->slot_tiles);
        slot->host_chunk_begin = slc_gpu_part<uint32_t>(piece, (uint64_t)problem->slot_tiles + 1);
    }
    memory->host_resident_chunk_begin =
        slc_gpu_part<uint32_t>(piece, slc_gpu_resident_table(problem));
}

static void plain_parts(const struct slc_device_problem *problem,
                        struct slc_gpu_piece *piece,
                        struct slc_gpu_memory *memory)
{
    memory->resident_blocks =
        slc_gpu_part<struct slc_gpu_resident_block>(piece, problem->resident_tiles);
    memory->resident_nnz = slc_gpu_part<uint32_t>(piece, problem->resident_tiles);
}

static bool lay_out(const struct slc_device_problem *problem, struct slc_gpu_memory *memory)
{
    struct slc_gpu_piece device = {reinterpret_cast<uintptr_t>(memory->device), 0,
                                   SLC_GPU_GAP_BYTES, false};
    struct slc_gpu_piece registered = {reinterpret_cast<uintptr_t>(memory->registered.data), 0, 0,
                                       false};
    struct slc_gpu_piece plain = {reinterpret_cast<uintptr_t>(memory->plain.data), 0, 0, false};

    device_parts(problem, &device, memory);
    registered_parts(problem, &registered, memory);
    plain_parts(problem, &plain, memory);
    memory->device_bytes = device.used;
    memory->registered_bytes = registered.used;
    memory->plain_bytes = plain.used;
    return !device.overflow && !registered.overflow && !plain.overflow;
}

bool slc_gpu_memory_measure(const struct slc_device_problem *problem, struct slc_gpu_memory *memory)
{
    *memory = {};
    return lay_out(problem, memory);
}

enum slc_status slc_gpu_device_memory_take(uint64_t bytes, void **memory, struct slc_error *err)
{
    const cudaError_t error = cudaMalloc(memory, bytes);

    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return slc_fail(err, SLC_ERR_MEMORY,
                        "the device has no %" PRIu64 " MiB left in one piece: others use it, or "
                        "--device-memory leaves nothing for what CUDA takes itself",
                        slc_div_up_u64(bytes, UINT64_C(1) << 20));
    }
    return error == cudaSuccess ? SLC_OK : slc_gpu_fail(error, "cudaMalloc", err);
}

enum slc_status slc_gpu_memory_take(const struct slc_device_problem *problem,
                                    struct slc_gpu_memory *memory,
                                    struct slc_error *err)
{
    enum slc_status status;

    if (!slc_gpu_memory_measure(problem, memory)) {
        return slc_fail(err, SLC_ERR_MEMORY,
                        "the parts of the device's memory add up to more than 2^64 bytes");
    }
    status = slc_buffer_create(&memory->plain, memory->plain_bytes, SLC_PAGES_SMALL, err);
    if (status == SLC_OK) {
        status =
            slc_buffer_create(&memory->registered, memory->registered_bytes, SLC_PAGES_SMALL, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    status = slc_gpu_device_memory_take(memory->device_bytes, &memory->device, err);
    if (status != SLC_OK) {
        return status;
    }
    SLC_GPU_TRY(cudaHostRegister(memory->registered.data, memory->registered.bytes,
                                 cudaHostRegisterPortable),
                err);
    memory->is_registered = true;
    (void)lay_out(problem, memory);
    return SLC_OK;
}

void slc_gpu_memory_release(struct slc_gpu_memory *memory)
{
    if (memory->is_registered) {
        (void)cudaHostUnregister(memory->registered.data);
    }
    if (memory->device != nullptr) {
        (void)cudaFree(memory->device);
    }
    slc_buffer_destroy(&memory->registered);
    slc_buffer_destroy(&memory->plain);
    *memory = {};
}
