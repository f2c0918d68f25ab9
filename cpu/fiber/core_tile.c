#include "cpu/fiber/core_tile.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <cblas.h>
#include <string.h>

enum {
    CHUNK_NNZ = 4 * SLC_GROUP_NNZ,
    /* Number of elements of P and Q (core_tile.h) per batch. They fit in an L2 cache together with
     * the columns of G. */
    BATCH_ELEMENTS = 1 << 15,
    BATCH_LEAST = 8
};

static uint64_t power(uint32_t rank, unsigned exponent)
{
    uint64_t result = 1;

    for (unsigned k = 0; k < exponent; k++) {
        if (!slc_mul_u64(result, rank, &result)) {
            return UINT64_MAX;
        }
    }
    return result;
}

uint64_t slc_core_elements(unsigned order, uint32_t rank)
{
    return power(rank, order);
}

static uint64_t batch_nnz(uint64_t wide, uint64_t narrow)
{
    const uint64_t fitting = BATCH_ELEMENTS / (wide + narrow);

    return slc_min_u64(slc_max_u64(fitting, BATCH_LEAST), CHUNK_NNZ);
}

uint64_t slc_core_scratch_elements(unsigned order, uint32_t rank)
{
    const uint64_t wide = power(rank, (order + 1) / 2), narrow = power(rank, order / 2);
    uint64_t sum, elements;

    if (!slc_add_u64(wide, narrow, &sum) || sum == UINT64_MAX ||
        !slc_mul_u64(sum, batch_nnz(wide, narrow), &elements)) {
        return UINT64_MAX;
    }
    return elements;
}

/* Replaces the `count` numbers at `row` with their count * rank products with the numbers at
 * `by`. */
static void multiply_kronecker(double *row, uint64_t count, const double *by, uint32_t rank)
{
    /* The loop runs backwards, so that no element is overwritten before it is read. */
    for (uint64_t k = count; k-- > 0;) {
        const double number = row[k];

        for (uint32_t r = 0; r < rank; r++) {
            row[k * rank + r] = number * by[r];
        }
    }
}

/* Sets `row` to row[0] times the Kronecker product of matrix rows: for each mode in [first, end),
 * the row that nonzero `i` of the chunk selects. */
static void fill_row(const struct slc_tile_view *tile,
                     const struct slc_chunk_view *chunk,
                     uint32_t i,
                     const struct slc_matrix *matrices,
                     unsigned first,
                     unsigned end,
                     uint32_t rank,
                     double *row)
{
    uint64_t count = 1;

    for (unsigned n = first; n < end; n++) {
        multiply_kronecker(row, count,
                           slc_matrix_row_f64(&matrices[n], tile->corner[n] + chunk->offset[n][i]),
                           rank);
        count *= rank;
    }
}

enum slc_status slc_core_tile(struct slc_tile_view *tile,
                              uint32_t rank,
                              const struct slc_matrix *matrices,
                              double *scratch,
                              double *core,
                              struct slc_error *err)
{
    const unsigned half = (tile->order + 1) / 2;
    const uint64_t wide = power(rank, half), narrow = power(rank, tile->order / 2);
    const uint64_t batch = batch_nnz(wide, narrow);
    double *left = scratch, *right = scratch + batch * wide;
    struct slc_chunk_view chunk = {.nnz = 1};

    assert(tile->value_type == SLC_F64);
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        for (uint32_t begin = 0; begin < chunk.nnz; begin += (uint32_t)batch) {
            const uint32_t count = (uint32_t)slc_min_u64(chunk.nnz - begin, batch);

            for (uint32_t k = 0; k < count; k++) {
                left[k * wide] = ((const double *)chunk.values)[begin + k];
                right[k * narrow] = 1.0;
                fill_row(tile, &chunk, begin + k, matrices, 0, half, rank, left + k * wide);
                fill_row(tile, &chunk, begin + k, matrices, half, tile->order, rank,
                         right + k * narrow);
            }
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)wide, (int)narrow, (int)count,
                        1.0, left, (int)wide, right, (int)narrow, 1.0, core, (int)narrow);
        }
    }
    return SLC_OK;
}
