/* Plans the scratch of a job and its offsets.
 *
 * The plan depends only on the shape of the job, so a plan that is made before any matrix exists
 * predicts the memory that mttkrp_begin allocates. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "cpu/mttkrp/mttkrp.h"

#include <string.h>

/* With tile-local sums, an f32 output has separate f64 sums if these have at most this size. */
#define WIDE_BYTES_MAX (UINT64_C(8) << 20)
/* Size of the pieces in which rows of private copies are zeroed and added up. A piece is small
 * compared with the rows that a tile spans in a large mode, and large enough that the cost of
 * assigning a piece to a worker does not matter. */
#define PIECE_BYTES (UINT64_C(64) << 10)
/* Huge pages help for scratch of at least this size. */
#define LARGE_BYTES (UINT64_C(4) << 20)

uint64_t slc_mttkrp_stride(const struct slc_mttkrp_job *job, enum slc_value_type type)
{
    return (uint64_t)slc_matrix_pitch(type, job->rank) * slc_value_bytes(type);
}

uint64_t slc_mttkrp_sum_stride(const struct slc_mttkrp_job *job, enum slc_value_type type)
{
    return (uint64_t)slc_matrix_pitch(type, job->rank) * sizeof(double);
}

/* Places the next area of a worker's scratch, an area of `bytes` bytes, and returns its
 * page-aligned offset. */
static uint64_t place_area(uint64_t *end, uint64_t bytes)
{
    const uint64_t at = *end;
    uint64_t rounded;

    if (!slc_round_up_u64(bytes, SLC_PAGE_BYTES, &rounded) || !slc_add_u64(at, rounded, end)) {
        *end = UINT64_MAX;
    }
    return at;
}

/* Reserves memory for a row number and a row of sums per partition. */
static void
place_split_rows(struct slc_mttkrp_layout *layout, uint64_t partitions, uint64_t sum_stride)
{
    uint64_t row_bytes, sum_bytes;

    if (!slc_mul_u64(partitions, sizeof(uint64_t), &row_bytes) ||
        !slc_mul_u64(partitions, sum_stride, &sum_bytes)) {
        layout->shared_bytes = UINT64_MAX;
        return;
    }
    layout->split_rows_at = place_area(&layout->shared_bytes, row_bytes);
    layout->split_sums_at = place_area(&layout->shared_bytes, sum_bytes);
}

void slc_mttkrp_layout_init(struct slc_mttkrp_layout *layout,
                            const struct slc_mttkrp_job *job,
                            enum slc_value_type type,
                            enum slc_conflict conflict,
                            uint64_t output_rows)
{
    const uint64_t stride = slc_mttkrp_sum_stride(job, type);
    const uint64_t value_bytes = slc_value_bytes(type);
    const uint64_t nnz = slc_min_u64(job->nnz, SLC_TILE_NNZ);
    const bool trial = job->rival != SLC_CONFLICT_AUTO;
    const bool tile_local =
        trial || conflict == SLC_CONFLICT_LOCKED || conflict == SLC_CONFLICT_ORDERED;
    const bool copies = trial || conflict == SLC_CONFLICT_PRIVATE;
    uint64_t end = 0;
    uint64_t copy_bytes;

    memset(layout, 0, sizeof *layout);
    if (!slc_mul_u64(output_rows, stride, &copy_bytes)) {
        copy_bytes = UINT64_MAX;
    }
    /* With tile-local sums, an f32 output may be rounded once per tile. The rounding matters only
     * for small modes, whose rows receive sums from many tiles, and small modes need little memory
     * for wide sums. */
    if (type == SLC_F32 && (copies || !tile_local || copy_bytes <= WIDE_BYTES_MAX)) {
        (void)place_area(&layout->wide_bytes, copy_bytes);
    }
    layout->shared_bytes = layout->wide_bytes;
    if (conflict == SLC_CONFLICT_ROWS) {
        place_split_rows(layout, job->partitions, stride);
    }
    layout->piece_rows = slc_max_u64(PIECE_BYTES / stride, 1);
    if (copies) {
        /* In a trial, other workers commit tiles to the output, so worker 0 needs a copy, too. */
        layout->first_copy = trial ? 0 : 1;
        layout->private_at = place_area(&end, copy_bytes);
        layout->pieces_at = place_area(&end, slc_div_up_u64(output_rows, layout->piece_rows));
    }
    if (tile_local) {
        layout->tile_nnz_max = (uint32_t)nnz;
        layout->window_rows = slc_min_u64(slc_min_u64(SLC_WINDOW_BYTES / stride, nnz), output_rows);
        layout->window_rows = slc_max_u64(layout->window_rows, 1);
        layout->window_at = place_area(&end, layout->window_rows * stride);
        layout->rows_at = place_area(&end, layout->window_rows * sizeof(uint32_t));
        layout->staged_at = place_area(&end, nnz * job->order * sizeof(uint32_t));
        layout->values_at = place_area(&end, nnz * value_bytes);
        layout->sort_at = place_area(&end, nnz * 2 * sizeof(uint64_t));
        layout->gather_at =
            place_area(&end, SLC_CHUNK_NNZ * ((job->order + 1) * sizeof(uint32_t) + value_bytes));
    }
    layout->worker_bytes = end;
}

/* Returns the bytes of scratch of all workers, or UINT64_MAX on overflow. */
uint64_t slc_mttkrp_total_bytes(const struct slc_mttkrp_layout *layout,
                                const struct slc_mttkrp_job *job)
{
    const uint64_t copies = job->workers - slc_min_u64(layout->first_copy, job->workers);
    uint64_t bytes;

    if (!slc_mul_u64(layout->worker_bytes, copies, &bytes) ||
        !slc_add_u64(bytes, layout->shared_bytes, &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

enum slc_pages slc_mttkrp_pages(uint64_t bytes)
{
    return bytes >= LARGE_BYTES ? SLC_PAGES_HUGE : SLC_PAGES_SMALL;
}

static uint64_t
scratch_for_type(const struct slc_mttkrp_job *job, enum slc_value_type type, uint64_t output_rows)
{
    struct slc_conflict_choice choice;
    struct slc_mttkrp_layout layout;

    slc_mttkrp_choose(job, type, output_rows, &choice);
    slc_mttkrp_layout_init(&layout, job, type, choice.chosen, output_rows);
    uint64_t bytes = slc_mttkrp_total_bytes(&layout, job);
    return bytes == UINT64_MAX ? bytes : slc_buffer_footprint(bytes, slc_mttkrp_pages(bytes));
}

uint64_t slc_mttkrp_scratch_bytes(const struct slc_mttkrp_job *job, uint64_t output_rows)
{
    if (job->output != NULL) {
        return scratch_for_type(job, job->output->type, output_rows);
    }
    return slc_max_u64(scratch_for_type(job, SLC_F32, output_rows),
                       scratch_for_type(job, SLC_F64, output_rows));
}
