/* Computes the memory of a tensor times matrix, without the matrix and the stream: rows of tiles
 * that the CPU multiplies, and buffers of the result. */
#include "engine/product/ttm_impl.h"

#include "base/memory/memory.h"

#include <assert.h>

enum {
    /* Bytes of a result buffer, enough for a drive to write at its full rate. */
    BUFFER_BYTES = 1 << 20,
    /* Maximum number of fibers in an output: a whole tile of fibers with one nonzero each, so that
     * a worker waits for its turn only at the end of a tile. */
    ROOM_MAX = SLC_TILE_NNZ + SLC_TTM_CHUNK_FIBERS,
    /* Maximum number of additional buffers per file. More buffers would not fill up even while the
     * drive pauses. */
    BUFFERS_MAX = 256
};

uint64_t slc_ttm_memory_bytes(const struct slc_ttm_job *job,
                              unsigned workers,
                              const struct slc_ttm_division *division)
{
    const uint64_t parts[] = {
        slc_buffer_footprint(slc_ttm_small_bytes(job, workers), SLC_PAGES_SMALL),
        slc_output_ring_memory_bytes(division->buffer_bytes, division->coord_buffers),
        slc_output_ring_memory_bytes(division->buffer_bytes, division->row_buffers)};
    uint64_t bytes;
    bool fits = slc_mul_u64(division->outputs, slc_ttm_output_bytes(job, division->room), &bytes);

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        fits = fits && slc_add_u64(bytes, parts[i], &bytes);
    }
    return fits ? bytes : UINT64_MAX;
}

static struct slc_ttm_division least_division(unsigned outputs)
{
    return (struct slc_ttm_division){.outputs = outputs,
                                     .room = SLC_TTM_CHUNK_FIBERS + 1,
                                     .buffer_bytes = BUFFER_BYTES,
                                     .coord_buffers = SLC_OUTPUT_RING_BUFFERS_MIN,
                                     .row_buffers = SLC_OUTPUT_RING_BUFFERS_MIN};
}

uint64_t slc_ttm_memory_min(const struct slc_ttm_job *job, unsigned workers, unsigned outputs)
{
    const struct slc_ttm_division division = least_division(outputs);

    return slc_ttm_memory_bytes(job, workers, &division);
}

/* Assigns half of `bytes` to the outputs. The other half is for buffers, so that workers continue
 * while the drive is slow. */
static void
widen_outputs(const struct slc_ttm_job *job, uint64_t bytes, struct slc_ttm_division *division)
{
    const uint64_t fiber_bytes = (job->matrix->pitch + job->order - UINT64_C(1)) * sizeof(double);
    const uint64_t most = division->outputs > 0 ? bytes / 2 / division->outputs / fiber_bytes : 0;

    /* An output rounds its number of fibers up to a multiple of eight, and its memory to whole
     * pages. */
    if (most > 2 * SLC_PAGE_BYTES / fiber_bytes + 8) {
        division->room = slc_min_u64(division->room + most / 8 * 8, ROOM_MAX);
    }
}

void slc_ttm_divide(const struct slc_ttm_job *job,
                    unsigned workers,
                    unsigned outputs,
                    uint64_t bytes,
                    struct slc_ttm_division *division)
{
    const uint64_t least = slc_ttm_memory_min(job, workers, outputs);
    const uint64_t row = (uint64_t)job->matrix->cols * slc_value_bytes(job->matrix->type);
    const uint64_t coords = (job->order - UINT64_C(1)) * sizeof(int64_t);

    *division = least_division(outputs);
    if (bytes <= least) {
        return;
    }
    widen_outputs(job, bytes - least, division);
    assert(slc_ttm_memory_bytes(job, workers, division) <= bytes);
    uint64_t buffers = (bytes - slc_ttm_memory_bytes(job, workers, division)) / BUFFER_BYTES;
    division->row_buffers += (uint32_t)slc_min_u64(buffers * row / (row + coords), BUFFERS_MAX);
    division->coord_buffers +=
        (uint32_t)slc_min_u64(buffers * coords / (row + coords), BUFFERS_MAX);
}
