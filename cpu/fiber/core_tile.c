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

static uint64_t batch_rows(uint64_t wide, uint64_t narrow)
{
    const uint64_t fitting = BATCH_ELEMENTS / (wide + narrow);

    return slc_min_u64(slc_max_u64(fitting, BATCH_LEAST), CHUNK_NNZ);
}

uint64_t slc_core_scratch_elements(unsigned order, uint32_t rank)
{
    const uint64_t wide = power(rank, (order + 1) / 2), narrow = power(rank, order / 2);
    uint64_t sum, elements;

    if (!slc_add_u64(wide, narrow, &sum) || sum == UINT64_MAX ||
        !slc_mul_u64(sum, batch_rows(wide, narrow), &elements) ||
        !slc_add_u64(elements, rank, &elements)) {
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

/* Nonzeros begin .. end - 1 of a chunk, which differ in one mode only. */
struct run {
    uint32_t begin, end;
    unsigned mode; /* any mode if the run has one nonzero */
};

static const double *matrix_row(const struct slc_tile_view *tile,
                                const struct slc_chunk_view *chunk,
                                const struct slc_matrix *matrices,
                                unsigned mode,
                                uint32_t i)
{
    return slc_matrix_row_f64(&matrices[mode], tile->corner[mode] + chunk->offset[mode][i]);
}

/* Returns true if the nonzeros i and i + 1 differ in `mode` only. */
static bool differ_in(unsigned order, const struct slc_chunk_view *chunk, uint32_t i, unsigned mode)
{
    for (unsigned n = 0; n < order; n++) {
        if (n != mode && chunk->offset[n][i] != chunk->offset[n][i + 1]) {
            return false;
        }
    }
    return true;
}

/* Returns the longest run that begins at `begin`. */
static struct run find_run(unsigned order, const struct slc_chunk_view *chunk, uint32_t begin)
{
    struct run run = {.begin = begin, .end = begin + 1};

    if (run.end == chunk->nnz) {
        return run;
    }
    while (run.mode + 1 < order &&
           chunk->offset[run.mode][begin] == chunk->offset[run.mode][run.end]) {
        run.mode++;
    }
    while (run.end < chunk->nnz && differ_in(order, chunk, run.end - 1, run.mode)) {
        run.end++;
    }
    return run;
}

/* Sets `sum` to the sum of the run's matrix rows, each times the value. */
static void add_run(const struct slc_tile_view *tile,
                    const struct slc_chunk_view *chunk,
                    const struct run *run,
                    const struct slc_matrix *matrices,
                    uint32_t rank,
                    double *sum)
{
    memset(sum, 0, rank * sizeof *sum);
    for (uint32_t i = run->begin; i < run->end; i++) {
        const double *row = matrix_row(tile, chunk, matrices, run->mode, i);
        const double value = ((const double *)chunk->values)[i];

        for (uint32_t r = 0; r < rank; r++) {
            sum[r] += value * row[r];
        }
    }
}

/* Sets `row` to the Kronecker product of a row per mode in [first, end): `sum` for the mode of the
 * run, and the common matrix row of the run for each other mode. */
static void fill_row(const struct slc_tile_view *tile,
                     const struct slc_chunk_view *chunk,
                     const struct run *run,
                     const struct slc_matrix *matrices,
                     const double *sum,
                     unsigned first,
                     unsigned end,
                     uint32_t rank,
                     double *row)
{
    uint64_t count = 1;

    row[0] = 1.0;
    for (unsigned n = first; n < end; n++) {
        multiply_kronecker(row, count,
                           n == run->mode ? sum : matrix_row(tile, chunk, matrices, n, run->begin),
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
    const uint64_t batch = batch_rows(wide, narrow);
    double *left = scratch, *right = left + batch * wide, *sum = right + batch * narrow;
    struct slc_chunk_view chunk = {.nnz = 1};

    assert(tile->value_type == SLC_F64);
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        for (uint32_t begin = 0; begin < chunk.nnz;) {
            uint32_t count = 0;

            for (; count < batch && begin < chunk.nnz; count++) {
                const struct run run = find_run(tile->order, &chunk, begin);

                add_run(tile, &chunk, &run, matrices, rank, sum);
                fill_row(tile, &chunk, &run, matrices, sum, 0, half, rank, left + count * wide);
                fill_row(tile, &chunk, &run, matrices, sum, half, tile->order, rank,
                         right + count * narrow);
                begin = run.end;
            }
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)wide, (int)narrow, (int)count,
                        1.0, left, (int)wide, right, (int)narrow, 1.0, core, (int)narrow);
        }
    }
    return SLC_OK;
}
