/*
 * See convert/contract_tile.h. A chunk that fits the first-level cache is multiplied by one vector
 * after the other, cut into runs of equal coordinates one mode after the other, and summed run by
 * run, in the order of its nonzeros. Sorting what comes out costs several times as much.
 */
#include "convert/contract_tile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK_NNZ = 1024,
    /* Sums that are handed on together, at most: a push has costs of its own. */
    ROWS = 4096,
    /* Two 20-digit numbers more than the longest list of coordinates. */
    FIBER_BYTES = (SLC_MAX_ORDER + 2) * 22
};

/* A worker's memory. */
struct work {
    const struct slc_contraction *contraction;
    struct slc_tile_view *tile;
    uint64_t *coords[SLC_MAX_ORDER]; /* ROWS of each kept mode */
    double *sums;                    /* ROWS */
    double *product;                 /* CHUNK_NNZ */
    uint32_t *differs;               /* CHUNK_NNZ: whether a nonzero begins a run */
    uint32_t count;                  /* sums held */
    uint64_t zeros;
};

uint64_t slc_contract_tile_bytes(const struct slc_contraction *contraction)
{
    return (contraction->kept_count + UINT64_C(1)) * ROWS * sizeof(uint64_t) +
           CHUNK_NNZ * (sizeof(double) + sizeof(uint32_t));
}

static void divide_memory(struct work *work, void *memory)
{
    uint64_t *at = memory;
    void *rest;

    for (unsigned k = 0; k < work->contraction->kept_count; k++, at += ROWS) {
        work->coords[k] = at;
    }
    rest = at;
    work->sums = rest;
    work->product = work->sums + ROWS;
    rest = work->product + CHUNK_NNZ;
    work->differs = rest;
}

/* The index in the input of what stands `offset` from the tile's corner. */
static inline uint64_t
index_of(const struct slc_tile_view *tile, const uint32_t *index, unsigned mode, uint32_t offset)
{
    const uint64_t coord = tile->corner[mode] + offset;

    return index != NULL ? index[coord] : coord;
}

/* product[i] = value i times what the vectors have for it. */
static void multiply(struct work *work, const struct slc_chunk_view *chunk)
{
    const struct slc_contraction *contraction = work->contraction;

    memcpy(work->product, chunk->values, chunk->nnz * sizeof *work->product);
    for (unsigned k = 0; k < contraction->vector_count; k++) {
        const unsigned mode = contraction->vector_mode[k];
        const uint32_t *offset = chunk->offset[mode];
        const uint32_t *index = contraction->index[mode];
        const double *vector = contraction->vector[k];

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            work->product[i] *= vector[index_of(work->tile, index, mode, offset[i])];
        }
    }
}

static void find_runs(struct work *work, const struct slc_chunk_view *chunk)
{
    const struct slc_contraction *contraction = work->contraction;

    memset(work->differs, 0, chunk->nnz * sizeof *work->differs);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const uint32_t *offset = chunk->offset[contraction->kept_mode[k]];

        for (uint32_t i = 1; i < chunk->nnz; i++) {
            work->differs[i] |= offset[i] ^ offset[i - 1];
        }
    }
}

/* The fiber of sum `row`, counting from 1, with a star for each mode that is contracted. */
static void describe(const struct work *work, uint32_t row, char *text)
{
    const struct slc_contraction *contraction = work->contraction;
    size_t used = 0;
    unsigned k = 0;

    for (unsigned mode = 0; mode < contraction->order; mode++) {
        const char *comma = mode == 0 ? "" : ", ";

        if (k < contraction->kept_count && contraction->kept_mode[k] == mode) {
            used += (size_t)snprintf(text + used, FIBER_BYTES - used, "%s%" PRIu64, comma,
                                     work->coords[k++][row] + 1);
        } else {
            used += (size_t)snprintf(text + used, FIBER_BYTES - used, "%s*", comma);
        }
    }
}

/* Appends the sum of nonzeros begin .. end - 1 of the chunk, if it is not zero. */
static enum slc_status append_run(struct work *work,
                                  const struct slc_chunk_view *chunk,
                                  uint32_t begin,
                                  uint32_t end,
                                  struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    double sum = work->product[begin];

    for (uint32_t i = begin + 1; i < end; i++) {
        sum += work->product[i];
    }
    if (sum == 0) {
        work->zeros++;
        return SLC_OK;
    }
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        work->coords[k][work->count] =
            index_of(work->tile, contraction->index[mode], mode, chunk->offset[mode][begin]);
    }
    if (!isfinite(sum)) {
        char fiber[FIBER_BYTES];

        describe(work, work->count, fiber);
        return slc_fail(err, SLC_ERR_INPUT,
                        "the products at (%s), counting from 1, add up to %g, beyond the range of "
                        "f64: scale the vectors",
                        fiber, sum);
    }
    work->sums[work->count++] = sum;
    return SLC_OK;
}

static enum slc_status
append_chunk(struct work *work, const struct slc_chunk_view *chunk, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint32_t begin = 0;

    multiply(work, chunk);
    find_runs(work, chunk);
    for (uint32_t i = 1; i <= chunk->nnz && status == SLC_OK; i++) {
        if (i == chunk->nnz || work->differs[i] != 0) {
            status = append_run(work, chunk, begin, i, err);
            begin = i;
        }
    }
    return status;
}

enum slc_status slc_contract_tile(const struct slc_contraction *contraction,
                                  struct slc_tile_view *tile,
                                  void *memory,
                                  slc_contract_sink_fn *sink,
                                  void *context,
                                  unsigned worker,
                                  uint64_t *zeros,
                                  struct slc_error *err)
{
    struct work work = {.contraction = contraction, .tile = tile};
    struct slc_entries entries = {.order = contraction->kept_count, .sequence = tile->ordinal};
    struct slc_chunk_view chunk = {.nnz = 1};
    enum slc_status status = SLC_OK;

    divide_memory(&work, memory);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        entries.coords[k] = work.coords[k];
    }
    entries.values = work.sums;
    while (status == SLC_OK && chunk.nnz > 0) {
        status = tile->next(tile, CHUNK_NNZ, &chunk, err);
        if (status == SLC_OK && chunk.nnz > 0) {
            status = append_chunk(&work, &chunk, err);
        }
        if (status == SLC_OK && work.count > 0 &&
            (chunk.nnz == 0 || ROWS - work.count < CHUNK_NNZ)) {
            entries.count = work.count;
            status = sink(context, worker, &entries, err);
            entries.first += work.count;
            work.count = 0;
        }
    }
    *zeros += work.zeros;
    return status;
}
