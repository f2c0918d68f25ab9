/* Random tensors served as tiles. */
#include "fake_tiles.h"

#include "base/random.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_MOST = 4096, CHUNK_SLACK = 16 };

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

void fake_tensor_random(struct fake_tensor *tensor,
                        unsigned order,
                        const uint64_t *dims,
                        uint64_t nnz,
                        bool integers,
                        uint64_t stream)
{
    const uint64_t seed = slc_test_seed();
    uint64_t draw = 0;

    memset(tensor, 0, sizeof *tensor);
    tensor->order = order;
    tensor->nnz = nnz;
    tensor->tile_nnz = SLC_TILE_NNZ;
    tensor->chunk_nnz = CHUNK_MOST;
    tensor->fail_tile = UINT64_MAX;
    tensor->values = must(calloc(nnz + 1, sizeof *tensor->values));
    for (unsigned m = 0; m < order; m++) {
        tensor->dims[m] = dims[m];
        tensor->coords[m] = must(calloc(nnz + 1, sizeof *tensor->coords[m]));
        for (uint64_t i = 0; i < nnz; i++) {
            if (i > 0 && slc_random_below(seed, stream, draw++, 2) == 0) {
                tensor->coords[m][i] = tensor->coords[m][i - 1];
            } else {
                tensor->coords[m][i] = slc_random_below(seed, stream, draw++, dims[m]);
            }
        }
    }
    for (uint64_t i = 0; i < nnz; i++) {
        const double uniform = slc_random_f64(seed, stream, draw++);

        tensor->values[i] =
            integers ? (double)((int)(uniform * 7.0) - 3) : (double)(float)(2.0 * uniform - 1.0);
    }
}

void fake_tensor_runs(struct fake_tensor *tensor, unsigned mode, unsigned mean, uint64_t stream)
{
    tensor->in_runs = true;
    tensor->run_mode = mode;
    for (uint64_t i = 1; i < tensor->nnz; i++) {
        if (slc_random_below(slc_test_seed(), stream, i, mean) == 0) {
            continue;
        }
        for (unsigned m = 0; m < tensor->order; m++) {
            if (m != mode) {
                tensor->coords[m][i] = tensor->coords[m][i - 1];
            }
        }
    }
}

/* Sorts the nonzeros by `mode`, stably. */
static void sort_by_mode(struct fake_tensor *tensor, unsigned mode)
{
    const uint64_t rows = tensor->dims[mode];
    uint64_t *end = must(calloc(rows + 1, sizeof *end));
    uint64_t *place = must(malloc((tensor->nnz + 1) * sizeof *place));
    uint64_t *moved = must(malloc((tensor->nnz + 1) * sizeof *moved));

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        end[tensor->coords[mode][i] + 1]++;
    }
    for (uint64_t r = 0; r < rows; r++) {
        end[r + 1] += end[r];
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        place[i] = end[tensor->coords[mode][i]]++;
    }
    for (unsigned m = 0; m <= tensor->order; m++) {
        void *column = m < tensor->order ? (void *)tensor->coords[m] : (void *)tensor->values;

        for (uint64_t i = 0; i < tensor->nnz; i++) {
            memcpy(&moved[place[i]], (uint64_t *)column + i, sizeof *moved);
        }
        memcpy(column, moved, tensor->nnz * sizeof *moved);
    }
    free(moved);
    free(place);
    free(end);
}

/* Appends the tiles of a partition. */
static void cut_tiles(struct fake_tensor *tensor, uint64_t begin, uint64_t end, bool continued)
{
    for (uint64_t i = begin; i < end; i += tensor->tile_nnz) {
        tensor->cuts[tensor->tiles++] = (struct fake_cut){i, tensor->partitions, continued};
    }
    tensor->partitions++;
}

void fake_tensor_partition(struct fake_tensor *tensor, unsigned mode, uint64_t nnz)
{
    const uint64_t *rows = tensor->coords[mode];
    uint64_t begin = 0;
    uint64_t row_end;

    sort_by_mode(tensor, mode);
    tensor->cuts = must(calloc(tensor->nnz + 1, sizeof *tensor->cuts));
    for (uint64_t row = 0; row < tensor->nnz; row = row_end) {
        for (row_end = row; row_end < tensor->nnz && rows[row_end] == rows[row];) {
            row_end++;
        }
        if (row > begin && row_end - begin > nnz) {
            cut_tiles(tensor, begin, row, false);
            begin = row;
        }
        for (uint64_t piece = row; row_end - row > nnz && piece < row_end; piece += nnz) {
            begin = piece + nnz < row_end ? piece + nnz : row_end;
            cut_tiles(tensor, piece, begin, piece > row);
        }
    }
    if (begin < tensor->nnz) {
        cut_tiles(tensor, begin, tensor->nnz, false);
    }
    tensor->cuts[tensor->tiles] = (struct fake_cut){tensor->nnz, tensor->partitions, false};
}

void fake_tensor_free(struct fake_tensor *tensor)
{
    free(tensor->cuts);
    for (unsigned m = 0; m < tensor->order; m++) {
        free(tensor->coords[m]);
    }
    free(tensor->values);
}

void fake_tensor_view(const struct fake_tensor *tensor, struct slc_coo_view *view)
{
    memset(view, 0, sizeof *view);
    view->order = tensor->order;
    view->nnz = tensor->nnz;
    view->values = tensor->values;
    for (unsigned m = 0; m < tensor->order; m++) {
        view->coords[m] = tensor->coords[m];
    }
}

uint64_t fake_tensor_tiles(const struct fake_tensor *tensor)
{
    return tensor->cuts != NULL ? tensor->tiles
                                : (tensor->nnz + tensor->tile_nnz - 1) / tensor->tile_nnz;
}

static enum slc_status next_chunk(struct slc_tile_view *view,
                                  uint32_t max_nnz,
                                  struct slc_chunk_view *chunk,
                                  struct slc_error *err)
{
    struct fake_tile *tile = view->decoder;
    const struct fake_tensor *tensor = tile->tensor;
    uint64_t nnz = tile->end - tile->next;

    if (tile->chunks++ == 1 && view->ordinal == tensor->fail_tile) {
        return slc_fail(err, SLC_ERR_DAMAGED, "the fake tile is damaged");
    }
    nnz = nnz < max_nnz ? nnz : max_nnz;
    nnz = nnz < tensor->chunk_nnz ? nnz : tensor->chunk_nnz;
    memset(chunk, 0, sizeof *chunk);
    chunk->nnz = (uint32_t)nnz;
    for (unsigned m = 0; m < tensor->order; m++) {
        for (uint64_t i = 0; i < nnz; i++) {
            tile->offset[m][i] = (uint32_t)(tensor->coords[m][tile->next + i] - view->corner[m]);
        }
        chunk->offset[m] = tile->offset[m];
    }
    for (uint64_t i = 0; i < nnz; i++) {
        const double value = tensor->values[tile->next + i];

        if (view->value_type == SLC_F32) {
            ((float *)tile->values)[i] = (float)value;
        } else {
            ((double *)tile->values)[i] = value;
        }
    }
    chunk->values = tile->values;
    tile->next += nnz;
    return SLC_OK;
}

static bool run_begins(const struct fake_tensor *tensor, uint64_t i)
{
    for (unsigned m = 0; m < tensor->order; m++) {
        if (m != tensor->run_mode && tensor->coords[m][i] != tensor->coords[m][i - 1]) {
            return true;
        }
    }
    return false;
}

static enum slc_status next_fibers(struct slc_tile_view *view,
                                   uint32_t max_nnz,
                                   struct slc_fiber_view *fibers,
                                   struct slc_error *err)
{
    struct fake_tile *tile = view->decoder;
    const struct fake_tensor *tensor = tile->tensor;
    const uint64_t first = tile->next;
    struct slc_chunk_view chunk;
    const enum slc_status status = next_chunk(view, max_nnz, &chunk, err);

    memset(fibers, 0, sizeof *fibers);
    if (status != SLC_OK) {
        return status;
    }
    fibers->nnz = chunk.nnz;
    fibers->mode = tensor->run_mode;
    fibers->begin = tile->begin;
    fibers->values = chunk.values;
    for (uint32_t i = 0; i < chunk.nnz; i++) {
        if (i > 0 && !run_begins(tensor, first + i)) {
            continue;
        }
        for (unsigned m = 0; m < tensor->order; m++) {
            if (m != tensor->run_mode) {
                tile->offset[m][fibers->runs] = tile->offset[m][i];
            }
        }
        tile->begin[fibers->runs++] = i;
    }
    tile->begin[fibers->runs] = chunk.nnz;
    for (unsigned m = 0; m < tensor->order; m++) {
        fibers->offset[m] = tile->offset[m];
    }
    return SLC_OK;
}

void fake_tile_create(struct fake_tile *tile,
                      const struct fake_tensor *tensor,
                      enum slc_value_type type)
{
    memset(tile, 0, sizeof *tile);
    tile->tensor = tensor;
    tile->view.order = tensor->order;
    tile->view.value_type = type;
    tile->view.next = next_chunk;
    tile->view.next_fibers = tensor->in_runs ? next_fibers : NULL;
    tile->view.decoder = tile;
    tile->begin = must(malloc((CHUNK_MOST + CHUNK_SLACK) * sizeof(uint32_t)));
    tile->values = must(malloc((CHUNK_MOST + CHUNK_SLACK) * sizeof(double)));
    for (unsigned m = 0; m < tensor->order; m++) {
        /* Garbage after the end of a chunk must never be used. */
        tile->offset[m] = must(malloc((CHUNK_MOST + CHUNK_SLACK) * sizeof(uint32_t)));
        memset(tile->offset[m], 0xee, (CHUNK_MOST + CHUNK_SLACK) * sizeof(uint32_t));
    }
}

void fake_tile_open(struct fake_tile *tile, uint64_t ordinal)
{
    const struct fake_tensor *tensor = tile->tensor;

    tile->next = ordinal * tensor->tile_nnz;
    tile->end = tile->next + tensor->tile_nnz;
    tile->end = tile->end < tensor->nnz ? tile->end : tensor->nnz;
    if (tensor->cuts != NULL) {
        tile->next = tensor->cuts[ordinal].begin;
        tile->end = tensor->cuts[ordinal + 1].begin;
        tile->view.partition = tensor->cuts[ordinal].partition;
        tile->view.continued = tensor->cuts[ordinal].continued;
    }
    tile->chunks = 0;
    tile->view.ordinal = ordinal;
    tile->view.nnz = (uint32_t)(tile->end - tile->next);
    for (unsigned m = 0; m < tensor->order; m++) {
        uint64_t least = UINT64_MAX;
        uint64_t most = 0;

        for (uint64_t i = tile->next; i < tile->end; i++) {
            const uint64_t coord = tensor->coords[m][i];
            least = coord < least ? coord : least;
            most = coord > most ? coord : most;
        }
        tile->view.corner[m] = least;
        tile->view.extent[m] = (uint32_t)(most - least);
    }
}

void fake_tile_destroy(struct fake_tile *tile)
{
    for (unsigned m = 0; m < tile->tensor->order; m++) {
        free(tile->offset[m]);
    }
    free(tile->begin);
    free(tile->values);
}
