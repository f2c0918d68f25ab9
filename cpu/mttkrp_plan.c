/*
 * What a job will use: strategy, and the places of its scratch.
 *
 * Both follow from the shape of the job alone, so that a plan made before any matrix exists says
 * what mttkrp_begin will do.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "cpu/mttkrp.h"

#include <string.h>

/*
 * Output rows of a tile summed before they are committed: a second-level cache. Twice as much
 * gained nothing, half of it sorted tiles that now are dense (6.8 against 4.6 ns a nonzero,
 * fb15k-237).
 */
#define WINDOW_BYTES (UINT64_C(2) << 20)
/*
 * What private copies may cost at most, in bytes of others' copies per nonzero: zeroing a copy and
 * adding it up takes about 0.3 ns a byte, tile-local sums and locks 15 to 30 ns a nonzero. Measured
 * with two workers, R = 16: 3.0 against 9.3 ms where a copy takes 41 bytes a nonzero (wordnet), 149
 * against 291 where it takes 13 (3 x 1 M rows, 10 M nonzeros).
 */
#define PRIVATE_BYTES_PER_NNZ 64
/* f32 outputs up to this size have wide sums even where they are tile-local. */
#define WIDE_BYTES_MAX (UINT64_C(8) << 20)
/* Copies up to this size stay in the second-level cache and cost next to nothing to add up. */
#define PRIVATE_BYTES_FREE (UINT64_C(256) << 10)
/*
 * Rows of private copies are zeroed and added up in pieces of this size: small against the rows of
 * a tile of a long mode, large against the cost of handing out a piece.
 */
#define PIECE_BYTES (UINT64_C(64) << 10)
/* Larger scratch gains from huge pages. */
#define LARGE_BYTES (UINT64_C(4) << 20)

uint64_t slc_mttkrp_stride(const struct slc_mttkrp_job *job, enum slc_value_type type)
{
    return (uint64_t)slc_matrix_pitch(type, job->rank) * slc_value_bytes(type);
}

uint64_t slc_mttkrp_sum_stride(const struct slc_mttkrp_job *job, enum slc_value_type type)
{
    return (uint64_t)slc_matrix_pitch(type, job->rank) * sizeof(double);
}

enum slc_conflict
slc_mttkrp_choose(const struct slc_mttkrp_job *job, enum slc_value_type type, uint64_t output_rows)
{
    const uint64_t others = job->workers > 0 ? job->workers - 1 : 0;
    uint64_t copy_bytes;
    uint64_t all_bytes;

    if (job->deterministic) {
        return SLC_CONFLICT_ORDERED;
    }
    if (job->conflict != SLC_CONFLICT_AUTO) {
        return job->conflict;
    }
    if (others == 0) {
        return SLC_CONFLICT_DIRECT;
    }
    if (!slc_mul_u64(output_rows, slc_mttkrp_sum_stride(job, type), &copy_bytes) ||
        !slc_mul_u64(copy_bytes, others, &all_bytes)) {
        return SLC_CONFLICT_LOCKED;
    }
    if (copy_bytes <= PRIVATE_BYTES_FREE || all_bytes / PRIVATE_BYTES_PER_NNZ <= job->nnz) {
        return SLC_CONFLICT_PRIVATE;
    }
    return SLC_CONFLICT_LOCKED;
}

/* Gives the next area of a worker's scratch `bytes` bytes, on a page of its own. */
static uint64_t place(uint64_t *end, uint64_t bytes)
{
    const uint64_t at = *end;
    uint64_t rounded;

    if (!slc_round_up_u64(bytes, SLC_PAGE_BYTES, &rounded) || !slc_add_u64(at, rounded, end)) {
        *end = UINT64_MAX;
    }
    return at;
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
    const bool tile_local = conflict == SLC_CONFLICT_LOCKED || conflict == SLC_CONFLICT_ORDERED;
    uint64_t end = 0;
    uint64_t copy_bytes;

    memset(layout, 0, sizeof *layout);
    if (!slc_mul_u64(output_rows, stride, &copy_bytes)) {
        copy_bytes = UINT64_MAX;
    }
    /*
     * Tile-local sums are exact enough for an f32 output to take one rounding per tile; only rows
     * of short modes meet so many tiles that it would show, and short modes cost little.
     */
    if (type == SLC_F32 && (!tile_local || copy_bytes <= WIDE_BYTES_MAX)) {
        (void)place(&layout->wide_bytes, copy_bytes);
    }
    layout->piece_rows = slc_max_u64(PIECE_BYTES / stride, 1);
    if (conflict == SLC_CONFLICT_PRIVATE) {
        layout->first_copy = 1;
        layout->private_at = place(&end, copy_bytes);
        layout->pieces_at = place(&end, slc_div_up_u64(output_rows, layout->piece_rows));
    } else if (tile_local) {
        layout->tile_nnz_max = (uint32_t)nnz;
        layout->window_rows = slc_min_u64(slc_min_u64(WINDOW_BYTES / stride, nnz), output_rows);
        layout->window_rows = slc_max_u64(layout->window_rows, 1);
        layout->window_at = place(&end, layout->window_rows * stride);
        layout->rows_at = place(&end, layout->window_rows * sizeof(uint32_t));
        layout->staged_at = place(&end, nnz * job->order * sizeof(uint32_t));
        layout->values_at = place(&end, nnz * value_bytes);
        layout->sort_at = place(&end, nnz * 2 * sizeof(uint64_t));
        layout->gather_at =
            place(&end, SLC_CHUNK_NNZ * ((job->order + 1) * sizeof(uint32_t) + value_bytes));
    }
    layout->worker_bytes = end;
}

/* What the scratch of all workers takes; UINT64_MAX where that cannot be counted. */
uint64_t slc_mttkrp_total_bytes(const struct slc_mttkrp_layout *layout,
                                const struct slc_mttkrp_job *job,
                                enum slc_conflict conflict)
{
    /* Worker 0's private copy is the output itself, or its wide copy. */
    const uint64_t copies =
        conflict == SLC_CONFLICT_PRIVATE && job->workers > 0 ? job->workers - 1 : job->workers;
    uint64_t bytes;

    if (!slc_mul_u64(layout->worker_bytes, copies, &bytes) ||
        !slc_add_u64(bytes, layout->wide_bytes, &bytes)) {
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
    const enum slc_conflict conflict = slc_mttkrp_choose(job, type, output_rows);
    struct slc_mttkrp_layout layout;
    uint64_t bytes;

    slc_mttkrp_layout_init(&layout, job, type, conflict, output_rows);
    bytes = slc_mttkrp_total_bytes(&layout, job, conflict);
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
