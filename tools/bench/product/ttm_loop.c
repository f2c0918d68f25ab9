/* See ttm_loop.h. Tiles begin rows of their own, so that threads share none. */
#include "tools/bench/product/ttm_loop.h"

#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "tools/bench/measure/scan.h"

#include <string.h>

static double *values_of(const struct ttm_loop *loop)
{
    return loop->list.data;
}

static uint32_t *indices_of(const struct ttm_loop *loop)
{
    return (uint32_t *)(void *)(values_of(loop) + loop->nnz);
}

static uint32_t *rows_of(const struct ttm_loop *loop)
{
    return indices_of(loop) + loop->nnz;
}

struct listing {
    const struct ttm_loop *loop;
    unsigned mode;
};

/* Whether two neighbours of a chunk are of different fibers. */
static bool differs(const struct slc_chunk_view *chunk, unsigned order, unsigned mode, uint32_t i)
{
    uint32_t difference = 0;

    for (unsigned m = 0; m < order; m++) {
        difference |= m != mode ? chunk->offset[m][i] ^ chunk->offset[m][i - 1] : 0;
    }
    return difference != 0;
}

static enum slc_status
list_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct listing *listing = context;
    const struct ttm_loop *loop = listing->loop;
    uint64_t at = tile->ordinal * SLC_TILE_NNZ;
    uint32_t last[SLC_MAX_ORDER] = {0};
    struct slc_chunk_view chunk = {.nnz = 1};
    uint32_t row = 0;

    (void)worker;
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, BENCH_CHUNK_NNZ, &chunk, err));
        for (uint32_t i = 0; i < chunk.nnz; i++, at++) {
            bool fresh = at == tile->ordinal * SLC_TILE_NNZ;

            for (unsigned m = 0; i == 0 && !fresh && m < tile->order; m++) {
                fresh = m != listing->mode && chunk.offset[m][0] != last[m];
            }
            fresh = i > 0 ? differs(&chunk, tile->order, listing->mode, i) : fresh;
            row += fresh;
            values_of(loop)[at] = ((const double *)chunk.values)[i];
            indices_of(loop)[at] =
                (uint32_t)(tile->corner[listing->mode] + chunk.offset[listing->mode][i]);
            rows_of(loop)[at] = row - 1;
        }
        for (unsigned m = 0; chunk.nnz > 0 && m < tile->order; m++) {
            last[m] = chunk.offset[m][chunk.nnz - 1];
        }
    }
    ((uint64_t *)loop->base.data)[tile->ordinal + 1] = row;
    return SLC_OK;
}

enum slc_status ttm_loop_create(
    struct ttm_loop *loop, struct ttm_mode *mode, uint64_t room, bool *fits, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(mode->order.reader);
    const uint64_t list_bytes = info->nnz * (sizeof(double) + 2 * sizeof(uint32_t));
    struct listing listing = {loop, mode->options.mode};
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = list_tile, .context = &listing}}};
    enum slc_status status;
    uint64_t *base;

    *loop = (struct ttm_loop){.threads = mode->options.threads,
                              .nnz = info->nnz,
                              .tiles = info->tile_count,
                              .cols = mode->matrix.cols,
                              .matrix = &mode->matrix};
    *fits = mode->matrix.type == SLC_F64 && mode->matrix.rows <= UINT32_MAX &&
            info->tile_count == slc_div_up_u64(info->nnz, SLC_TILE_NNZ) && list_bytes <= room;
    if (!*fits) {
        return SLC_OK;
    }
    status = slc_buffer_create(&loop->list, list_bytes, SLC_PAGES_HUGE, err);
    if (status == SLC_OK) {
        status = slc_buffer_create(&loop->base, (loop->tiles + 1) * sizeof(uint64_t),
                                   SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK) {
        status = slc_stream_pass(mode->stream, &pass, err);
    }
    base = loop->base.data;
    for (uint64_t t = 0; t < loop->tiles && status == SLC_OK; t++) {
        base[t + 1] += base[t];
        loop->fibers = base[t + 1];
    }
    *fits = status != SLC_OK || loop->fibers <= (room - list_bytes) / sizeof(double) / loop->cols;
    SLC_TRY(status);
    if (*fits) {
        SLC_TRY(slc_buffer_create(&loop->rows, loop->fibers * loop->cols * sizeof(double),
                                  SLC_PAGES_HUGE, err));
    }
    return SLC_OK;
}

void ttm_loop_destroy(struct ttm_loop *loop)
{
    slc_buffer_destroy(&loop->list);
    slc_buffer_destroy(&loop->base);
    slc_buffer_destroy(&loop->rows);
    memset(loop, 0, sizeof *loop);
}

/* The tiles of one worker. */
static void multiply(void *context, unsigned worker, unsigned workers)
{
    const struct ttm_loop *loop = context;
    const uint64_t *base = loop->base.data;
    const uint64_t begin = loop->tiles * worker / workers;
    const uint64_t end = loop->tiles * (worker + 1) / workers;
    const double *values = values_of(loop);
    const uint32_t *indices = indices_of(loop), *rows = rows_of(loop);
    const uint32_t cols = loop->cols;
    double *result = loop->rows.data;

    memset(result + base[begin] * cols, 0, (base[end] - base[begin]) * cols * sizeof *result);
    for (uint64_t t = begin; t < end; t++) {
        const uint64_t last = slc_min_u64((t + 1) * SLC_TILE_NNZ, loop->nnz);

        for (uint64_t i = t * SLC_TILE_NNZ; i < last; i++) {
            const double *restrict from = slc_matrix_row_f64(loop->matrix, indices[i]);
            double *restrict to = result + (base[t] + rows[i]) * cols;
            const double value = values[i];

            for (uint32_t r = 0; r < cols; r++) {
                to[r] += value * from[r];
            }
        }
    }
}

enum slc_status ttm_loop_run(struct ttm_loop *loop, struct slc_error *err)
{
    return slc_team_run(loop->threads, multiply, loop, err);
}
