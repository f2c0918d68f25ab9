/* Contracts a tile, chunk by chunk; a chunk fits in the first-level cache. First a chunk is
 * converted to terms, for each result. A term is the product of a nonzero, or of the dot product of
 * a fiber run, and the elements of the other vectors. If a device multiplied the tile, its sums are
 * the terms. Then the terms are divided into runs of equal coordinates, and each run is summed in
 * order. The last run of a chunk may continue in the next chunk. Cost: several times less than
 * sorting or encoding the results. */
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

/* A chunk from which terms are computed, one list of terms per result. */
struct chunk {
    uint32_t count; /* number of terms; 0 at the end of the tile */
    /* per mode: for kept modes the offset of each term from the tile's corner, for contracted modes
     * the position of each element relative to first[k] */
    const uint32_t *offset[SLC_MAX_ORDER];
    uint64_t first[SLC_MAX_ORDER]; /* per vector: position of the first element for the tile */
    const double *values;          /* values of nonzeros, or sums of a device */
    bool is_runs;                  /* terms are dot products of the runs of `fibers` */
    struct slc_fiber_view fibers;
};

/* The sums of one result. */
struct sums {
    uint64_t *coords[SLC_MAX_ORDER]; /* ROWS coordinates per kept mode */
    double *values;                  /* ROWS sums */
    uint32_t count;                  /* number of sums not yet passed to the sink */
    uint32_t passed;                 /* number of sums passed to the sink */
    uint64_t zeros;
    bool open; /* true if the last run may continue in the next chunk */
    uint32_t open_offset[SLC_MAX_ORDER];
    double open_sum;
};

/* The state of one call of slc_contract_tile. */
struct work {
    const struct slc_contraction *contraction;
    struct slc_tile_view *tile;
    unsigned worker;
    struct slc_contract_given *given; /* NULL if the tile is decoded */
    uint32_t taken;                   /* number of `given` fibers that have been used */
    bool partial;                     /* true if some sums of the tile may be outside of the part */
    double *product;                  /* CHUNK_NNZ terms */
    /* one element per term: not 0 if the term begins a run; CHUNK_NNZ elements */
    uint32_t *differs;
    uint32_t *places; /* CHUNK_NNZ positions per vector, for short vectors */
    struct sums sums[SLC_CONTRACT_RESULTS_MAX];
};

uint64_t slc_contract_tile_bytes(const struct slc_contraction *contraction)
{
    return contraction->results * (contraction->kept_count + UINT64_C(1)) * ROWS *
               sizeof(uint64_t) +
           CHUNK_NNZ *
               (sizeof(double) + (1 + (uint64_t)contraction->vector_count) * sizeof(uint32_t));
}

static void divide_memory(struct work *work, void *memory)
{
    double *at = memory;

    for (unsigned r = 0; r < work->contraction->results; r++) {
        struct sums *sums = &work->sums[r];

        memset(sums, 0, sizeof *sums);
        for (unsigned k = 0; k < work->contraction->kept_count; k++, at += ROWS) {
            sums->coords[k] = (uint64_t *)(void *)at;
        }
        sums->values = at;
        at += ROWS;
    }
    work->product = at;
    work->differs = (uint32_t *)(void *)(at + CHUNK_NNZ);
    work->places = work->differs + CHUNK_NNZ;
}

/* Returns the index, as in the input, of a nonzero whose offset in `mode` is `offset`. */
static inline uint64_t
index_of(const struct slc_tile_view *tile, const uint32_t *index, unsigned mode, uint32_t offset)
{
    const uint64_t coord = tile->corner[mode] + offset;

    return index != NULL ? index[coord] : coord;
}

static enum slc_status next_nonzeros(struct work *work, struct chunk *chunk, struct slc_error *err)
{
    struct slc_chunk_view view;

    SLC_TRY(work->tile->next(work->tile, CHUNK_NNZ, &view, err));
    chunk->count = view.nnz;
    chunk->values = view.values;
    memcpy(chunk->offset, view.offset, work->tile->order * sizeof *chunk->offset);
    return SLC_OK;
}

static enum slc_status next_runs(struct work *work, struct chunk *chunk, struct slc_error *err)
{
    SLC_TRY(work->tile->next_fibers(work->tile, CHUNK_NNZ, &chunk->fibers, err));
    chunk->count = chunk->fibers.nnz > 0 ? chunk->fibers.runs : 0;
    memcpy(chunk->offset, chunk->fibers.offset, work->tile->order * sizeof *chunk->offset);
    return SLC_OK;
}

static enum slc_status next_given(struct work *work, struct chunk *chunk, struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    const struct slc_tile_products *products = work->given->products;
    struct slc_device_fibers *fibers = &work->given->fibers;

    while (work->taken == fibers->count && fibers->more) {
        SLC_TRY(products->more(products->self, work->worker, fibers, err));
        work->taken = 0;
    }
    chunk->count = (uint32_t)slc_min_u64(fibers->count - work->taken, CHUNK_NNZ);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        chunk->offset[mode] = fibers->offset[mode] + work->taken;
    }
    chunk->values = fibers->sums + (uint64_t)work->taken * contraction->results;
    work->taken += chunk->count;
    return SLC_OK;
}

/* Finds the elements of the vectors that the chunk uses. */
static void locate_elements(struct work *work, struct chunk *chunk)
{
    const struct slc_contraction *contraction = work->contraction;

    for (unsigned k = 0; k < contraction->vector_count; k++) {
        const unsigned mode = contraction->vector_mode[k];
        const bool has_runs = chunk->is_runs && k == contraction->fiber_vector;
        const uint32_t count = has_runs ? chunk->fibers.nnz : chunk->count;
        const uint64_t corner = work->tile->corner[mode];
        const struct slc_used *used = contraction->used[k];
        const uint32_t *offset = chunk->offset[mode];
        uint32_t *places = work->places + k * (size_t)CHUNK_NNZ;

        chunk->first[k] = used == NULL ? corner : slc_used_position(used, corner);
        for (uint32_t i = 0; used != NULL && i < count; i++) {
            places[i] = (uint32_t)(slc_used_position(used, corner + offset[i]) - chunk->first[k]);
        }
        chunk->offset[mode] = used == NULL ? offset : places;
        chunk->fibers.offset[mode] = chunk->offset[mode];
    }
}

static enum slc_status next_chunk(struct work *work, struct chunk *chunk, struct slc_error *err)
{
    if (work->given != NULL) {
        return next_given(work, chunk, err);
    }
    chunk->is_runs = work->contraction->fiber_tiles && work->tile->next_fibers != NULL;
    SLC_TRY(chunk->is_runs ? next_runs(work, chunk, err) : next_nonzeros(work, chunk, err));
    if (chunk->count > 0) {
        locate_elements(work, chunk);
    }
    return SLC_OK;
}

/* Returns the elements of vector k of a result, as located for the chunk. */
static const double *elements_of(const struct slc_contraction *contraction,
                                 const struct chunk *chunk,
                                 unsigned k,
                                 unsigned result)
{
    const double *vector =
        k == 0 && result > 0 ? contraction->more_vector[result - 1] : contraction->vector[k];

    return vector + chunk->first[k];
}

/* Computes the terms of a result. */
static void compute_terms(struct work *work, const struct chunk *chunk, unsigned result)
{
    const struct slc_contraction *contraction = work->contraction;
    unsigned done = SLC_MAX_ORDER; /* vector that is already multiplied */

    if (work->given != NULL) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            work->product[i] = chunk->values[(uint64_t)i * contraction->results + result];
        }
        return;
    }
    if (chunk->is_runs) {
        done = contraction->fiber_vector;
        assert(chunk->fibers.mode == contraction->vector_mode[done]);
        slc_fiber_dots(&chunk->fibers, elements_of(contraction, chunk, done, result),
                       work->product);
    } else {
        memcpy(work->product, chunk->values, chunk->count * sizeof *work->product);
    }
    for (unsigned k = 0; k < contraction->vector_count; k++) {
        const uint32_t *offset = chunk->offset[contraction->vector_mode[k]];
        const double *elements = elements_of(contraction, chunk, k, result);

        for (uint32_t i = 0; k != done && i < chunk->count; i++) {
            work->product[i] *= elements[offset[i]];
        }
    }
}

static void find_runs(struct work *work, const struct chunk *chunk)
{
    const struct slc_contraction *contraction = work->contraction;

    memset(work->differs, 0, chunk->count * sizeof *work->differs);
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const uint32_t *offset = chunk->offset[contraction->kept_mode[k]];

        for (uint32_t i = 1; i < chunk->count; i++) {
            work->differs[i] |= offset[i] ^ offset[i - 1];
        }
    }
}

/* Formats the coordinates of sum `row` for a message: 1-based indices, and a star for each
 * contracted mode. */
static void
describe_fiber(const struct work *work, const struct sums *sums, uint32_t row, char *text)
{
    const struct slc_contraction *contraction = work->contraction;
    size_t used = 0;
    unsigned k = 0;

    for (unsigned mode = 0; mode < contraction->order; mode++) {
        const char *comma = mode == 0 ? "" : ", ";

        if (k < contraction->kept_count && contraction->kept_mode[k] == mode) {
            used += (size_t)snprintf(text + used, FIBER_BYTES - used, "%s%" PRIu64, comma,
                                     sums->coords[k++][row] + 1);
        } else {
            used += (size_t)snprintf(text + used, FIBER_BYTES - used, "%s*", comma);
        }
    }
}

/* Returns true if the sum of the open run belongs to the part. */
static bool is_in_part(const struct work *work, const struct sums *sums)
{
    const struct slc_contraction *contraction = work->contraction;
    uint64_t coords[SLC_MAX_ORDER] = {0};

    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        coords[mode] = work->tile->corner[mode] + sums->open_offset[k];
    }
    return slc_part_holds(contraction->part, coords);
}

/* Ends the open run, if there is one, and appends its sum unless the sum is zero or outside of the
 * part. */
static enum slc_status close_run(const struct work *work, struct sums *sums, struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    const double sum = sums->open_sum;

    if (!sums->open) {
        return SLC_OK;
    }
    sums->open = false;
    if (work->partial && !is_in_part(work, sums)) {
        return SLC_OK;
    }
    if (sum == 0) {
        sums->zeros++;
        return SLC_OK;
    }
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        const unsigned mode = contraction->kept_mode[k];

        sums->coords[k][sums->count] =
            index_of(work->tile, contraction->index[mode], mode, sums->open_offset[k]);
    }
    if (!isfinite(sum)) {
        char fiber[FIBER_BYTES];

        describe_fiber(work, sums, sums->count, fiber);
        return slc_fail(err, SLC_ERR_INPUT,
                        "the products at (%s) (indices start at 1) add up to %g, beyond the range "
                        "of f64: scale the vectors",
                        fiber, sum);
    }
    sums->values[sums->count++] = sum;
    return SLC_OK;
}

/* Returns true if the chunk's first term belongs to the open run. */
static bool continues_run(const struct slc_contraction *contraction,
                          const struct sums *sums,
                          const struct chunk *chunk)
{

    for (unsigned k = 0; k < contraction->kept_count; k++) {
        if (sums->open_offset[k] != chunk->offset[contraction->kept_mode[k]][0]) {
            return false;
        }
    }
    return sums->open;
}

/* Adds the terms begin .. end - 1, whose coordinates are equal, to the open run if they continue
 * it. Otherwise ends the open run, and makes these terms the open run. */
static enum slc_status append_run(const struct work *work,
                                  struct sums *sums,
                                  const struct chunk *chunk,
                                  uint32_t begin,
                                  uint32_t end,
                                  struct slc_error *err)
{
    const struct slc_contraction *contraction = work->contraction;
    double sum = work->product[begin];

    for (uint32_t i = begin + 1; i < end; i++) {
        sum += work->product[i];
    }
    if (begin == 0 && continues_run(contraction, sums, chunk)) {
        sums->open_sum += sum;
        return SLC_OK;
    }
    enum slc_status status = close_run(work, sums, err);
    sums->open = true;
    sums->open_sum = sum;
    for (unsigned k = 0; k < contraction->kept_count; k++) {
        sums->open_offset[k] = chunk->offset[contraction->kept_mode[k]][begin];
    }
    return status;
}

static enum slc_status append_terms(const struct work *work,
                                    struct sums *sums,
                                    const struct chunk *chunk,
                                    struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint32_t begin = 0;

    for (uint32_t i = 1; i <= chunk->count && status == SLC_OK; i++) {
        if (i == chunk->count || work->differs[i] != 0) {
            status = append_run(work, sums, chunk, begin, i, err);
            begin = i;
        }
    }
    return status;
}

/* Adds the terms of a result to its sums, and passes sums to the sink. */
static enum slc_status add_chunk(struct work *work,
                                 const struct chunk *chunk,
                                 unsigned result,
                                 slc_contract_sink_fn *sink,
                                 void *context,
                                 struct slc_error *err)
{
    struct sums *sums = &work->sums[result];
    struct slc_entries entries = {.order = work->contraction->kept_count,
                                  .sequence = work->tile->ordinal,
                                  .first = sums->passed,
                                  .values = sums->values};

    if (chunk->count > 0) {
        compute_terms(work, chunk, result);
        SLC_TRY(append_terms(work, sums, chunk, err));
    } else {
        SLC_TRY(close_run(work, sums, err));
    }
    if (sums->count == 0 || (chunk->count > 0 && ROWS - sums->count > CHUNK_NNZ)) {
        return SLC_OK;
    }
    for (unsigned k = 0; k < entries.order; k++) {
        entries.coords[k] = sums->coords[k];
    }
    entries.count = sums->count;
    sums->passed += sums->count;
    sums->count = 0;
    return sink(context, work->worker, result, &entries, err);
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
    struct work work;
    struct chunk chunk = {.count = 1};
    enum slc_status status = SLC_OK;
    const enum slc_part_overlap overlap = tile_overlap(contraction, tile);

    if (overlap == SLC_PART_NONE) {
        return SLC_OK;
    }
    work.contraction = contraction;
    work.tile = tile;
    work.worker = worker;
    work.given = given;
    work.taken = 0;
    work.partial = overlap == SLC_PART_SOME;
    divide_memory(&work, memory);
    while (status == SLC_OK && chunk.count > 0) {
        status = next_chunk(&work, &chunk, err);
        if (status == SLC_OK) {
            find_runs(&work, &chunk);
        }
        for (unsigned r = 0; r < contraction->results && status == SLC_OK; r++) {
            status = add_chunk(&work, &chunk, r, sink, context, err);
        }
    }
    for (unsigned r = 0; r < contraction->results; r++) {
        zeros[r] += work.sums[r].zeros;
    }
    return status;
}
