/* Contracts a tile, chunk by chunk; a chunk fits in the first-level cache. First a chunk is
 * converted to terms. A term is the product of a nonzero, or of the dot product of a fiber run, and
 * the elements of the other vectors. If a device multiplied the tile, its sums are the terms. Then
 * the terms are divided into runs of equal coordinates, and each run is summed in order. The last
 * run of a chunk may continue in the next chunk. Cost: several times less than sorting or encoding
 * the results. */
#include "engine/product/contract_tile.h"

#include "base/memory/checked.h"
#include "cpu/fiber/fiber_dots.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK_NNZ = 1024,
    /* Maximum number of sums that are passed to the sink at once. Many sums per call keep the cost
     * of calls small. */
    ROWS = 4096,
    /* Bytes for the text of a list of coordinates: the longest list has SLC_MAX_ORDER numbers of 20
     * digits. */
    FIBER_BYTES = (SLC_MAX_ORDER + 2) * 22
};

/* Terms of a chunk and their coordinates. */
struct terms {
    uint32_t count; /* 0 at the end of the tile */
    const uint32_t *offset[SLC_MAX_ORDER];
};

/* The state of one call of slc_contract_tile. */
struct work {
    const struct slc_contraction *contraction;
    struct slc_tile_view *tile;
    unsigned worker;
    struct slc_contract_given *given; /* NULL if the tile is decoded */
    uint32_t taken;                   /* number of `given` fibers that have been used */
    bool partial;                     /* true if some sums of the tile may be outside of the part */
    uint64_t *coords[SLC_MAX_ORDER];  /* ROWS coordinates per kept mode */
    double *sums;                     /* ROWS sums */
    double *product;                  /* CHUNK_NNZ terms */
    /* one element per term: not 0 if the term begins a run; CHUNK_NNZ elements */
    uint32_t *differs;
    uint32_t count; /* number of sums not yet passed to the sink */
    uint64_t zeros;
    bool open; /* true if the last run may continue in the next chunk */
    uint32_t open_offset[SLC_MAX_ORDER];
    double open_sum;
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

/* Returns the index, as in the input, of a nonzero whose offset in `mode` is `offset`. */
static inline uint64_t
index_of(const struct slc_tile_view *tile, const uint32_t *index, unsigned mode, uint32_t offset)
{
    const uint64_t coord = tile->corner[mode] + offset;

    return index != NULL ? index[coord] : coord;
}

/* Multiplies the terms by the elements of all vectors except vector `done`. */
static void multiply_terms(struct work *work, const struct terms *terms, unsigned done)
{
    const struct slc_contraction *contraction = work->contraction;

    for (unsigned k = 0; k < contraction->vector_count; k++) {
        const unsigned mode = contraction->vector_mode[k];
        const uint32_t *offset = terms->offset[mode];
        const double *vector = contraction->vector[k] + work->tile->corner[mode];

        for (uint32_t i = 0; k != done && i < terms->count; i++) {
            work->product[i] *= vector[offset[i]];
        }
    }
}

static enum slc_status next_nonzeros(struct work *work, struct terms *terms, struct slc_error *err)
{
    struct slc_chunk_view chunk;

    SLC_TRY(work->tile->next(work->tile, CHUNK_NNZ, &chunk, err));
    terms->count = chunk.nnz;
    memcpy(terms->offset, chunk.offset, work->tile->order * sizeof *terms->offset);
    memcpy(work->product, chunk.values, chunk.nnz * sizeof *work->product);
    multiply_terms(work, terms, SLC_MAX_ORDER);
    return SLC_OK;
}

static enum slc_status next_runs(struct work *work, struct terms *terms, struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    const unsigned k = contraction->fiber_vector;
    struct slc_fiber_view fibers;

    SLC_TRY(work->tile->next_fibers(work->tile, CHUNK_NNZ, &fibers, err));
    terms->count = fibers.nnz > 0 ? fibers.runs : 0;
    memcpy(terms->offset, fibers.offset, work->tile->order * sizeof *terms->offset);
    if (terms->count > 0) {
        assert(fibers.mode == contraction->vector_mode[k]);
        slc_fiber_dots(&fibers, contraction->vector[k] + work->tile->corner[fibers.mode],
                       work->product);
        multiply_terms(work, terms, k);
    }
    return SLC_OK;
}

static enum slc_status next_given(struct work *work, struct terms *terms, struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    const struct slc_tile_products *products = work->given->products;
    struct slc_device_fibers *fibers = &work->given->fibers;

    while (work->taken == fibers->count && fibers->more) {
        SLC_TRY(products->more(products->self, work->worker, fibers, err));
        work->taken = 0;
    }
    terms->count = (uint32_t)slc_min_u64(fibers->count - work->taken, CHUNK_NNZ);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        terms->offset[mode] = fibers->offset[mode] + work->taken;
    }
    memcpy(work->product, fibers->sums + work->taken, terms->count * sizeof *work->product);
    work->taken += terms->count;
    return SLC_OK;
}

static enum slc_status next_terms(struct work *work, struct terms *terms, struct slc_error *err)
{
    if (work->given != NULL) {
        return next_given(work, terms, err);
    }
    return work->contraction->fiber_tiles && work->tile->next_fibers != NULL
               ? next_runs(work, terms, err)
               : next_nonzeros(work, terms, err);
}

static void find_runs(struct work *work, const struct terms *terms)
{
    const struct slc_contraction *contraction = work->contraction;

    memset(work->differs, 0, terms->count * sizeof *work->differs);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const uint32_t *offset = terms->offset[contraction->kept_mode[k]];

        for (uint32_t i = 1; i < terms->count; i++) {
            work->differs[i] |= offset[i] ^ offset[i - 1];
        }
    }
}

/* Formats the coordinates of sum `row` for a message: 1-based indices, and a star for each
 * contracted mode. */
static void describe_fiber(const struct work *work, uint32_t row, char *text)
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

/* Returns true if the sum of the open run belongs to the part. */
static bool is_in_part(const struct work *work)
{
    const struct slc_contraction *contraction = work->contraction;
    uint64_t coords[SLC_MAX_ORDER] = {0};

    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        coords[mode] = work->tile->corner[mode] + work->open_offset[k];
    }
    return slc_part_holds(contraction->part, coords);
}

/* Ends the open run, if there is one, and appends its sum unless the sum is zero or outside of the
 * part. */
static enum slc_status close_run(struct work *work, struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    const double sum = work->open_sum;

    if (!work->open) {
        return SLC_OK;
    }
    work->open = false;
    if (work->partial && !is_in_part(work)) {
        return SLC_OK;
    }
    if (sum == 0) {
        work->zeros++;
        return SLC_OK;
    }
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        work->coords[k][work->count] =
            index_of(work->tile, contraction->index[mode], mode, work->open_offset[k]);
    }
    if (!isfinite(sum)) {
        char fiber[FIBER_BYTES];

        describe_fiber(work, work->count, fiber);
        return slc_fail(err, SLC_ERR_INPUT,
                        "the products at (%s) (indices start at 1) add up to %g, beyond the range "
                        "of f64: scale the vectors",
                        fiber, sum);
    }
    work->sums[work->count++] = sum;
    return SLC_OK;
}

/* Returns true if the chunk's first term belongs to the open run. */
static bool continues_run(const struct work *work, const struct terms *terms)
{
    const struct slc_contraction *contraction = work->contraction;

    for (unsigned k = 0; k < contraction->kept_count; k++) {
        if (work->open_offset[k] != terms->offset[contraction->kept_mode[k]][0]) {
            return false;
        }
    }
    return work->open;
}

/* Adds the terms begin .. end - 1, whose coordinates are equal, to the open run if they continue
 * it. Otherwise ends the open run, and makes these terms the open run. */
static enum slc_status append_run(struct work *work,
                                  const struct terms *terms,
                                  uint32_t begin,
                                  uint32_t end,
                                  struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    double sum = work->product[begin];

    for (uint32_t i = begin + 1; i < end; i++) {
        sum += work->product[i];
    }
    if (begin == 0 && continues_run(work, terms)) {
        work->open_sum += sum;
        return SLC_OK;
    }
    enum slc_status status = close_run(work, err);
    work->open = true;
    work->open_sum = sum;
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        work->open_offset[k] = terms->offset[contraction->kept_mode[k]][begin];
    }
    return status;
}

static enum slc_status
append_terms(struct work *work, const struct terms *terms, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint32_t begin = 0;

    find_runs(work, terms);
    for (uint32_t i = 1; i <= terms->count && status == SLC_OK; i++) {
        if (i == terms->count || work->differs[i] != 0) {
            status = append_run(work, terms, begin, i, err);
            begin = i;
        }
    }
    return status;
}

/* Returns whether the sums of the tile belong to the part. */
static enum slc_part_overlap tile_overlap(const struct slc_contraction *contraction,
                                          const struct slc_tile_view *tile)
{
    uint64_t most[SLC_MAX_ORDER];

    if (contraction->part == NULL) {
        return SLC_PART_ALL;
    }
    for (unsigned n = 0; n < tile->order; n++) {
        most[n] = tile->corner[n] + tile->extent[n];
    }
    return slc_part_overlap(contraction->part, tile->corner, most);
}

enum slc_status slc_contract_tile(const struct slc_contraction *contraction,
                                  struct slc_tile_view *tile,
                                  struct slc_contract_given *given,
                                  void *memory,
                                  slc_contract_sink_fn *sink,
                                  void *context,
                                  unsigned worker,
                                  uint64_t *zeros,
                                  struct slc_error *err)
{
    struct work work = {.contraction = contraction, .tile = tile, .worker = worker, .given = given};
    struct slc_entries entries = {.order = contraction->kept_count, .sequence = tile->ordinal};
    struct terms terms = {.count = 1};
    enum slc_status status = SLC_OK;
    const enum slc_part_overlap overlap = tile_overlap(contraction, tile);

    if (overlap == SLC_PART_NONE) {
        return SLC_OK;
    }
    work.partial = overlap == SLC_PART_SOME;
    divide_memory(&work, memory);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        entries.coords[k] = work.coords[k];
    }
    entries.values = work.sums;
    while (status == SLC_OK && terms.count > 0) {
        status = next_terms(&work, &terms, err);
        SLC_THEN(status,
                 terms.count > 0 ? append_terms(&work, &terms, err) : close_run(&work, err));
        if (status == SLC_OK && work.count > 0 &&
            (terms.count == 0 || ROWS - work.count <= CHUNK_NNZ)) {
            entries.count = work.count;
            status = sink(context, worker, &entries, err);
            entries.first += work.count;
            work.count = 0;
        }
    }
    *zeros += work.zeros;
    return status;
}
