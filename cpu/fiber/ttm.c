/* Computes TTM with the kernels of MTTKRP. A run of a fiber is summed as in an MTTKRP of order 2,
 * because there are no other factors. A single nonzero is added to its row as in an MTTKRP with a
 * single factor. For rank 1, MTTKRP has separate kernels that compute dot products over runs. */
#include "cpu/fiber/ttm.h"

#include "base/memory/checked.h"
#include "cpu/mttkrp/mttkrp.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

const char *slc_ttm_form_name(enum slc_ttm_form form)
{
    static const char *const names[SLC_TTM_FORMS] = {"fibers", "nonzeros"};

    return form < SLC_TTM_FORMS ? names[form] : "?";
}

/* Returns true if the matrix is larger than half of the cache. The rows of such a matrix are
 * prefetched, like the rows of factors in MTTKRP. */
static bool exceeds_cache(const struct slc_matrix *matrix)
{
    uint64_t bytes;

    return !slc_mul_u64(matrix->rows, matrix->pitch * slc_value_bytes(matrix->type), &bytes) ||
           bytes > slc_cpu_cache_bytes() / 2;
}

/* Sizes in bytes of an output's arrays, each a multiple of a cache line, and their total. */
struct parts {
    uint64_t rows, coords, words;
    uint64_t bytes;
};

/* Computes the sizes of an output's arrays. Returns false on overflow. */
static bool count_parts(const struct slc_ttm_job *job, uint64_t capacity, struct parts *parts)
{
    const uint64_t line_words = 64 / sizeof(uint64_t);
    const uint64_t others = job->order - 1;

    *parts = (struct parts){.bytes = 0};
    capacity = slc_div_up_u64(capacity, line_words) * line_words;
    /* One word per nonzero of a chunk, and at least one more for the end of the last run. */
    parts->words = (SLC_CHUNK_NNZ + UINT64_C(64)) * sizeof(uint32_t);
    return capacity <= UINT32_MAX &&
           slc_mul_u64(capacity * sizeof(double), job->matrix->pitch, &parts->rows) &&
           slc_mul_u64(capacity * sizeof(uint64_t), others, &parts->coords) &&
           slc_add_u64(parts->rows, parts->coords, &parts->bytes) &&
           slc_add_u64(parts->bytes, (job->order + 2) * parts->words, &parts->bytes);
}

uint64_t slc_ttm_output_bytes(const struct slc_ttm_job *job, uint64_t capacity)
{
    struct parts parts;

    return count_parts(job, capacity, &parts) ? slc_buffer_footprint(parts.bytes, SLC_PAGES_SMALL)
                                              : UINT64_MAX;
}

enum slc_status slc_ttm_output_create(struct slc_ttm_output *output,
                                      const struct slc_ttm_job *job,
                                      uint64_t capacity,
                                      struct slc_error *err)
{
    struct parts parts;
    unsigned other = 0;

    assert(capacity > SLC_TTM_CHUNK_FIBERS);
    memset(output, 0, sizeof *output);
    if (!count_parts(job, capacity, &parts)) {
        return slc_fail(err, SLC_ERR_MEMORY,
                        "%" PRIu64 " rows of %" PRIu32 " columns exceed the address space",
                        capacity, job->matrix->cols);
    }
    SLC_TRY(slc_buffer_create(&output->buffer, parts.bytes, SLC_PAGES_SMALL, err));
    output->capacity = capacity;
    output->pitch = job->matrix->pitch;
    output->kernels = slc_kernels();
    output->prefetch = exceeds_cache(job->matrix);
    unsigned char *at = output->buffer.data;
    output->rows = (double *)(void *)at;
    at += parts.rows + parts.coords;
    output->begin = (uint32_t *)(void *)at;
    output->differs = (uint32_t *)(void *)(at + parts.words);
    output->row_of = (uint32_t *)(void *)(at + 2 * parts.words);
    for (unsigned m = 0; m < job->order; m++) {
        if (m != job->mode) {
            output->coords[m] = (uint64_t *)(void *)(output->rows) + parts.rows / sizeof(uint64_t) +
                                other * (parts.coords / sizeof(uint64_t) / (job->order - 1));
            output->run_offset[m] = (uint32_t *)(void *)(at + (3 + other) * parts.words);
            other++;
        }
    }
    return SLC_OK;
}

void slc_ttm_output_destroy(struct slc_ttm_output *output)
{
    slc_buffer_destroy(&output->buffer);
    memset(output, 0, sizeof *output);
}

void slc_ttm_keep_last(struct slc_ttm_output *output)
{
    const uint64_t last = output->count - 1;

    if (output->count < 2) {
        return;
    }
    memcpy(output->rows, output->rows + last * output->pitch, output->pitch * sizeof *output->rows);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        if (output->coords[m] != NULL) {
            output->coords[m][0] = output->coords[m][last];
        }
    }
    output->count = 1;
}

static enum slc_status
check_tile(const struct slc_ttm_job *job, const struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_matrix *matrix = job->matrix;

    if (tile->order != job->order || job->mode >= job->order) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a tile of %u modes does not match a product in mode %u of %u modes",
                        tile->order, job->mode + 1, job->order);
    }
    if (tile->value_type != matrix->type) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the tile's values and the matrix have different types");
    }
    if (tile->corner[job->mode] >= matrix->rows ||
        matrix->rows - tile->corner[job->mode] <= tile->extent[job->mode]) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the tile has indices up to %" PRIu64
                        " in mode %u, but the matrix has %" PRIu64 " rows",
                        tile->corner[job->mode] + tile->extent[job->mode], job->mode + 1,
                        matrix->rows);
    }
    return SLC_OK;
}

/* Divides a chunk into runs, as next_fibers does, but accepts nonzeros in any order. The loop has
 * no branches, because branches would be mispredicted with short runs. */
static void find_runs(const struct slc_ttm_job *job,
                      const struct slc_chunk_view *chunk,
                      struct slc_ttm_output *output,
                      struct slc_fiber_view *fibers)
{
    uint32_t runs = 1;

    *fibers = (struct slc_fiber_view){
        .nnz = chunk->nnz, .mode = job->mode, .begin = output->begin, .values = chunk->values};
    memset(output->differs, 0, chunk->nnz * sizeof *output->differs);
    for (unsigned m = 0; m < job->order; m++) {
        for (uint32_t i = 1; m != job->mode && i < chunk->nnz; i++) {
            output->differs[i] |= chunk->offset[m][i] ^ chunk->offset[m][i - 1];
        }
    }
    output->begin[0] = 0;
    for (uint32_t i = 1; i < chunk->nnz; i++) {
        output->begin[runs] = i;
        runs += output->differs[i] != 0;
    }
    output->begin[runs] = chunk->nnz;
    fibers->runs = runs;
    for (unsigned m = 0; m < job->order; m++) {
        fibers->offset[m] = chunk->offset[m];
        if (m != job->mode) {
            for (uint32_t r = 0; r < runs; r++) {
                output->run_offset[m][r] = chunk->offset[m][output->begin[r]];
            }
            fibers->offset[m] = output->run_offset[m];
        }
    }
}

/* Reads the next chunk of the tile as runs of fibers of the job's mode. */
static enum slc_status next_runs(const struct slc_ttm_job *job,
                                 struct slc_tile_view *tile,
                                 struct slc_ttm_output *output,
                                 struct slc_fiber_view *fibers,
                                 struct slc_error *err)
{
    struct slc_chunk_view chunk;
    enum slc_status status;

    if (job->fiber_tiles && tile->next_fibers != NULL) {
        status = tile->next_fibers(tile, SLC_CHUNK_NNZ, fibers, err);
        if (status == SLC_OK && fibers->nnz > 0 && fibers->mode != job->mode) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the tile keeps fibers of mode %u together, not those of mode %u",
                            fibers->mode + 1, job->mode + 1);
        }
        return status;
    }
    SLC_TRY(tile->next(tile, SLC_CHUNK_NNZ, &chunk, err));
    fibers->nnz = chunk.nnz;
    if (chunk.nnz > 0) {
        find_runs(job, &chunk, output, fibers);
    }
    return SLC_OK;
}

/* Returns true if the first run continues the last fiber of the output. */
static bool continues_last(const struct slc_tile_view *tile,
                           const struct slc_fiber_view *fibers,
                           const struct slc_ttm_output *output)
{
    if (output->count == 0) {
        return false;
    }
    for (unsigned m = 0; m < tile->order; m++) {
        const uint64_t *coords = output->coords[m];

        assert(coords == NULL || fibers->offset[m] != NULL);
        if (coords != NULL && coords[output->count - 1] != tile->corner[m] + fibers->offset[m][0]) {
            return false;
        }
    }
    return true;
}

/* Appends the fibers of the runs, with sums of zero, and returns the row of the first run. */
static uint64_t append_fibers(const struct slc_tile_view *tile,
                              const struct slc_fiber_view *fibers,
                              struct slc_ttm_output *output)
{
    const uint32_t known = continues_last(tile, fibers, output);
    const uint64_t first = output->count - known;
    const uint64_t fresh = fibers->runs - known;

    memset(output->rows + output->count * output->pitch, 0,
           fresh * output->pitch * sizeof *output->rows);
    for (unsigned m = 0; m < tile->order; m++) {
        const uint32_t *offset = fibers->offset[m];
        uint64_t *coords = output->coords[m];

        assert(coords == NULL || offset != NULL);
        for (uint32_t r = known; coords != NULL && r < fibers->runs; r++) {
            coords[first + r] = tile->corner[m] + offset[r];
        }
    }
    output->count += fresh;
    return first;
}

static void add_runs(const struct slc_ttm_job *job,
                     const struct slc_fiber_view *fibers,
                     const unsigned char *matrix_rows,
                     double *rows,
                     struct slc_ttm_output *output)
{
    const uint64_t stride = (uint64_t)job->matrix->pitch * slc_value_bytes(job->matrix->type);
    const struct slc_fiber_span span = {.runs = fibers->runs,
                                        .prefetch = output->prefetch,
                                        .long_runs =
                                            slc_mttkrp_long_runs(fibers->nnz, fibers->runs),
                                        .stride = stride,
                                        .row_bytes = stride,
                                        .begin = fibers->begin,
                                        .values = fibers->values,
                                        .run_offset = fibers->offset[job->mode],
                                        .run_factor = matrix_rows,
                                        .rows = output->row_of,
                                        .output = (unsigned char *)rows};

    for (uint32_t r = 0; r < fibers->runs; r++) {
        output->row_of[r] = r;
    }
    slc_panels_add_fibers(output->kernels, job->matrix->type, &span);
}

static void add_nonzeros(const struct slc_ttm_job *job,
                         const struct slc_fiber_view *fibers,
                         const unsigned char *matrix_rows,
                         double *rows,
                         struct slc_ttm_output *output)
{
    const uint64_t stride = (uint64_t)job->matrix->pitch * slc_value_bytes(job->matrix->type);
    const struct slc_mttkrp_span span = {.nnz = fibers->nnz,
                                         .factor_count = 1,
                                         .prefetch = output->prefetch,
                                         .stride = stride,
                                         .row_bytes = stride,
                                         .values = fibers->values,
                                         .rows = output->row_of,
                                         .offset = {fibers->offset[job->mode]},
                                         .factor = {matrix_rows},
                                         .output = (unsigned char *)rows};

    for (uint32_t r = 0; r < fibers->runs; r++) {
        for (uint32_t i = fibers->begin[r]; i < fibers->begin[r + 1]; i++) {
            output->row_of[i] = r;
        }
    }
    slc_panels_add(output->kernels, job->matrix->type, &span);
}

enum slc_status slc_ttm_next(const struct slc_ttm_job *job,
                             struct slc_tile_view *tile,
                             struct slc_ttm_output *output,
                             uint32_t *nnz,
                             struct slc_error *err)
{
    const struct slc_matrix *matrix = job->matrix;
    const unsigned char *matrix_rows = matrix->buffer.data;
    struct slc_fiber_view fibers;
    enum slc_status status = check_tile(job, tile, err);

    assert(slc_ttm_has_capacity(output) && output->pitch == matrix->pitch);
    SLC_THEN(status, next_runs(job, tile, output, &fibers, err));
    SLC_TRY(status);
    *nnz = fibers.nnz;
    if (fibers.nnz == 0) {
        return SLC_OK;
    }
    double *rows = output->rows + append_fibers(tile, &fibers, output) * output->pitch;
    matrix_rows += tile->corner[job->mode] * matrix->pitch * slc_value_bytes(matrix->type);
    if (job->form == SLC_TTM_FIBERS) {
        add_runs(job, &fibers, matrix_rows, rows, output);
    } else {
        add_nonzeros(job, &fibers, matrix_rows, rows, output);
    }
    return SLC_OK;
}
