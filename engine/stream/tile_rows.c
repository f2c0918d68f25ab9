#include "engine/stream/tile_rows.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <string.h>

/* Nonzeros per chunk, a multiple of a group. With four modes, offsets and values of a chunk need 24
 * KiB, which fit in a first-level cache. */
enum { CUT_NNZ = 8 * SLC_GROUP_NNZ };

/* Consumers may read up to 64 bytes after the end of each array of a chunk (base/block.h). */
enum { SLACK_BYTES = 64 };

uint64_t slc_tile_rows_memory_bytes(unsigned order)
{
    const uint64_t array_bytes = CUT_NNZ * sizeof(uint32_t) + SLACK_BYTES;

    return slc_buffer_footprint(order * array_bytes + CUT_NNZ * sizeof(double) + SLACK_BYTES,
                                SLC_PAGES_SMALL);
}

enum slc_status
slc_tile_rows_create(struct slc_tile_rows *rows, unsigned order, struct slc_error *err)
{
    const uint64_t array_bytes = CUT_NNZ * sizeof(uint32_t) + SLACK_BYTES;

    memset(rows, 0, sizeof *rows);
    SLC_TRY(
        slc_buffer_create(&rows->buffer, slc_tile_rows_memory_bytes(order), SLC_PAGES_SMALL, err));
    unsigned char *next = rows->buffer.data;
    rows->values = next;
    next += CUT_NNZ * sizeof(double) + SLACK_BYTES;
    for (unsigned m = 0; m < order; m++, next += array_bytes) {
        rows->offset[m] = (uint32_t *)(void *)next;
    }
    return SLC_OK;
}

void slc_tile_rows_destroy(struct slc_tile_rows *rows)
{
    slc_buffer_destroy(&rows->buffer);
}

/* Copies the nonzeros of `chunk` that are in the selected rows, and returns their number. */
static uint32_t pick_rows(const struct slc_tile_rows *rows, const struct slc_chunk_view *chunk)
{
    const uint32_t *row = chunk->offset[rows->mode];
    const uint32_t span = rows->last - rows->first;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        for (unsigned m = 0; m < rows->inner.order; m++) {
            rows->offset[m][kept] = chunk->offset[m][i];
        }
        if (rows->inner.value_type == SLC_F32) {
            ((float *)rows->values)[kept] = ((const float *)chunk->values)[i];
        } else {
            ((double *)rows->values)[kept] = ((const double *)chunk->values)[i];
        }
        /* If row[i] < first, the unsigned difference is larger than `span`. */
        kept += row[i] - rows->first <= span;
    }
    return kept;
}

static enum slc_status cut_next(struct slc_tile_view *tile,
                                uint32_t max_nnz,
                                struct slc_chunk_view *chunk,
                                struct slc_error *err)
{
    struct slc_tile_rows *rows = tile->decoder;
    const uint32_t most = (uint32_t)slc_min_u64(max_nnz, CUT_NNZ);

    do {
        const enum slc_status status = rows->inner.next(&rows->inner, most, chunk, err);

        if (status != SLC_OK || chunk->nnz == 0) {
            return status;
        }
        chunk->nnz = pick_rows(rows, chunk);
    } while (chunk->nnz == 0);
    for (unsigned m = 0; m < rows->inner.order; m++) {
        chunk->offset[m] = rows->offset[m];
    }
    chunk->values = rows->values;
    return SLC_OK;
}

void slc_tile_rows_cut(struct slc_tile_rows *rows,
                       unsigned mode,
                       uint64_t first_row,
                       uint64_t end_row,
                       struct slc_tile_view *tile)
{
    const uint64_t corner = tile->corner[mode];
    const uint64_t extent = tile->extent[mode];

    assert(first_row <= corner + extent && end_row > corner && first_row < end_row);
    rows->inner = *tile;
    rows->mode = mode;
    rows->first = (uint32_t)(first_row > corner ? first_row - corner : 0);
    rows->last = (uint32_t)slc_min_u64(end_row - 1 - corner, extent);
    tile->next = cut_next;
    tile->next_fibers = NULL;
    tile->describe = NULL;
    tile->decoder = rows;
}
