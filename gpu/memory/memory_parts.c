/* Divides an open device's memory into parts. The same function computes the sizes of the parts and
 * places the parts. */
#include "gpu/memory/memory.h"

#include "gpu/dense/dense_cuts.h"

/* Maximum number of tiles of a slot. A tile has up to 128 runs, and the number of runs of all tiles
 * must fit in 32 bits. */
enum { SLOT_TILES_MAX = 1 << 24 };

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
    *matrix = (struct slc_gpu_matrix){slc_gpu_part(piece, bytes, 1), rows, cols, pitch, 0};
}

/* Returns the bytes of the largest table of a batch: its tiles and their chunks. */
static uint64_t slot_table_bytes(const struct slc_device_problem *problem)
{
    return problem->slot_tiles * (uint64_t)(sizeof(struct slc_gpu_tile) + sizeof(uint32_t)) +
           sizeof(uint32_t);
}

static uint64_t longest(const struct slc_device_problem *problem)
{
    uint64_t length = 0;

    for (unsigned n = 0; n < problem->order; n++) {
        length = slc_max_u64(length, problem->dims[n]);
    }
    return length;
}

/* Returns the number of elements of `sums`: two numbers per column, and a Gram matrix. */
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

        memory->exact.words = slc_gpu_part(piece, words, sizeof(unsigned long long));
        memory->exact.scale = slc_gpu_part(piece, rank, sizeof(double));
        memory->largest = slc_gpu_part(piece, problem->order * rank, sizeof(double));
    }
    memory->layouts = slc_gpu_part(piece, problem->layout_count, sizeof(struct slc_encoded_layout));
    memory->fault = slc_gpu_part(piece, 1, sizeof(struct slc_gpu_fault));
    memory->solver = slc_gpu_part(piece, slc_gpu_solver_bytes(problem->rank), 1);
    memory->sums = slc_gpu_part(piece, sums_count(problem), sizeof(double));
    memory->scratch = slc_gpu_part(piece, slc_gpu_dense_scratch_bytes(rows, problem->rank), 1);
    for (unsigned s = 0; s < problem->streams; s++) {
        struct slc_gpu_slot_memory *slot = &memory->slot[s];

        slot->data = slc_gpu_part(piece, problem->slot_bytes, 1);
        slot->expanded = slc_gpu_part(piece, problem->expanded_bytes, 1);
        slot->tiles = slc_gpu_part(piece, slot_table_bytes(problem), 1);
    }
    memory->resident = slc_gpu_part(piece, problem->resident_bytes, 1);
    memory->resident_tiles =
        slc_gpu_part(piece, problem->resident_tiles, sizeof(struct slc_gpu_tile));
    memory->resident_chunk_begin =
        slc_gpu_part(piece, slc_gpu_resident_table(problem), sizeof(uint32_t));
    memory->units = slc_gpu_part(piece, problem->unit_most, sizeof(struct slc_row_span));
    memory->unit_columns =
        slc_gpu_part(piece, (uint64_t)problem->unit_most * 2 * rank, sizeof(double));
    memory->arrival = slc_gpu_part(
        piece, problem->unit_most > 0 || problem->adds_host ? SLC_GPU_ARRIVAL_BYTES : 0, 1);
    memory->refused =
        slc_gpu_part(piece, problem->unit_most > 0 && problem->deterministic ? rank : 0,
                     sizeof(unsigned long long));
}

static void registered_parts(const struct slc_device_problem *problem,
                             struct slc_gpu_piece *piece,
                             struct slc_gpu_memory *memory)
{
    memory->piece[0] = slc_gpu_part(piece, SLC_GPU_PIECE_BYTES, 1);
    memory->piece[1] = slc_gpu_part(piece, SLC_GPU_PIECE_BYTES, 1);
    memory->host_solver = slc_gpu_part(
        piece,
        slc_max_u64(slc_gpu_solver_bytes(problem->rank), sums_count(problem) * sizeof(double)), 1);
    memory->host_fault = slc_gpu_part(piece, 1, sizeof(struct slc_gpu_fault));
    for (unsigned s = 0; s < problem->streams; s++) {
        struct slc_gpu_slot_memory *slot = &memory->slot[s];

        slot->host_tiles = slc_gpu_part(piece, slot_table_bytes(problem), 1);
    }
    memory->host_resident_chunk_begin =
        slc_gpu_part(piece, slc_gpu_resident_table(problem), sizeof(uint32_t));
}

static void plain_parts(const struct slc_device_problem *problem,
                        struct slc_gpu_piece *piece,
                        struct slc_gpu_memory *memory)
{
    memory->resident_blocks =
        slc_gpu_part(piece, problem->resident_tiles, sizeof(struct slc_gpu_resident_block));
    memory->resident_nnz = slc_gpu_part(piece, problem->resident_tiles, sizeof(uint32_t));
}

bool slc_gpu_memory_lay_out(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory,
                            slc_gpu_gap gap)
{
    struct slc_gpu_piece device = {
        .begin = (uintptr_t)memory->device, .gap_bytes = SLC_GPU_GAP_BYTES, .gap = gap};
    struct slc_gpu_piece registered = {.begin = (uintptr_t)memory->registered.data};
    struct slc_gpu_piece plain = {.begin = (uintptr_t)memory->plain.data};

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
    *memory = (struct slc_gpu_memory){.device = NULL};
    return slc_gpu_memory_lay_out(problem, memory, NULL);
}

bool slc_gpu_problem_sound(const struct slc_device_problem *problem)
{
    bool good = problem->order >= 1 && problem->order <= SLC_MAX_ORDER && problem->rank >= 1 &&
                problem->rank <= SLC_MAX_RANK &&
                (problem->precision == SLC_F64 || problem->precision == SLC_F32) &&
                problem->layout_count >= 1 && problem->streams >= 1 &&
                problem->streams <= SLC_DEVICE_STREAMS && problem->slot_bytes >= 1 &&
                problem->slot_tiles >= 1 && problem->slot_tiles <= SLOT_TILES_MAX;

    for (unsigned n = 0; good && n < problem->order; n++) {
        good = problem->dims[n] >= 1 && problem->dims[n] <= SLC_MAX_MODE_LENGTH;
    }
    return good;
}

uint64_t slc_gpu_memory_bytes(const struct slc_device *device,
                              const struct slc_device_problem *problem)
{
    struct slc_gpu_memory memory;

    (void)device;
    return slc_gpu_problem_sound(problem) && slc_gpu_memory_measure(problem, &memory)
               ? memory.device_bytes
               : UINT64_MAX;
}

uint64_t slc_gpu_host_bytes(const struct slc_device *device,
                            const struct slc_device_problem *problem)
{
    struct slc_gpu_memory memory;

    (void)device;
    if (!slc_gpu_problem_sound(problem) || !slc_gpu_memory_measure(problem, &memory)) {
        return UINT64_MAX;
    }
    return slc_buffer_footprint(memory.registered_bytes, SLC_PAGES_SMALL) +
           slc_buffer_footprint(memory.plain_bytes, SLC_PAGES_SMALL);
}
