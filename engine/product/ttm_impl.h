/* Sizes that the files of tensor times matrix share. Private to engine/product/ttm*.c. */
#ifndef SLC_ENGINE_TTM_IMPL_H
#define SLC_ENGINE_TTM_IMPL_H

#include "base/memory/checked.h"
#include "engine/product/ttm.h"

/* Number of fibers whose coordinates are copied to a stage at once. */
enum { SLC_TTM_STAGE_FIBERS = 1024 };

/* Returns the number of rows that are converted to f32 at once: a few KiB of rows, or a single
 * row. */
static inline uint32_t slc_ttm_stage_rows(const struct slc_ttm_job *job)
{
    enum { STAGE_NUMBERS = 4096 };

    return (uint32_t)slc_max_u64(STAGE_NUMBERS / job->matrix->pitch, 1);
}

/* Returns the number of f64 elements of a carried row, rounded up so that the next row starts at a
 * cache line. */
static inline uint64_t slc_ttm_row_doubles(const struct slc_ttm_job *job)
{
    return slc_div_up_u64(job->matrix->pitch, 8) * 8;
}

static inline uint64_t slc_ttm_coord_doubles(const struct slc_ttm_job *job)
{
    return slc_div_up_u64((uint64_t)SLC_TTM_STAGE_FIBERS * (job->order - 1), 8) * 8;
}

static inline uint64_t slc_ttm_narrow_doubles(const struct slc_ttm_job *job)
{
    return job->matrix->type == SLC_F32 ? slc_ttm_stage_rows(job) * slc_ttm_row_doubles(job) / 2 + 8
                                        : 0;
}

/* Returns the bytes of all workers' stages, and of the row that is carried from tile to tile. */
static inline uint64_t slc_ttm_small_bytes(const struct slc_ttm_job *job, unsigned workers)
{
    const uint64_t each =
        slc_ttm_row_doubles(job) + slc_ttm_coord_doubles(job) + slc_ttm_narrow_doubles(job);

    return (slc_ttm_row_doubles(job) + workers * each) * sizeof(double);
}

#endif
