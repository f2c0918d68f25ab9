/* Computes Gram matrices separately from updates, for initial factors and for ranks that exceed
 * SLC_BLOCK_RANK.
 *
 * The upper triangle of the Gram matrix is divided into blocks of 128 x 128 numbers. A unit of work
 * is one block over one group of rows, so that high ranks, for which only few partial matrices fit,
 * still occupy all workers. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/dense/dense_state.h"

#include <cblas.h>
#include <string.h>

struct gram_sweep {
    struct slc_dense *dense;
    const struct slc_matrix *matrix;
    double *gram; /* result */
    struct slc_row_cut cut;
    uint64_t blocks; /* number of blocks along a side of the Gram matrix */
    uint64_t pairs;  /* number of pairs of blocks in the upper triangle */
};

/* Sets *first and *second to the first columns of the blocks of pair `pair`. Pairs are numbered row
 * by row in the upper triangle. */
static void block_pair(uint64_t blocks, uint64_t pair, uint32_t *first, uint32_t *second)
{
    uint64_t row = 0;

    while (pair >= blocks - row) {
        pair -= blocks - row;
        row++;
    }
    *first = (uint32_t)(row * SLC_GRAM_BLOCK);
    *second = (uint32_t)((row + pair) * SLC_GRAM_BLOCK);
}

/* Returns columns [column, column + cols) of rows [begin, end) in f64: in place, or converted to
 * `panel`. */
static const double *columns_f64(const struct slc_matrix *matrix,
                                 uint64_t begin,
                                 uint64_t end,
                                 uint32_t column,
                                 uint32_t cols,
                                 double *panel,
                                 int *pitch)
{
    if (matrix->type == SLC_F64) {
        *pitch = (int)matrix->pitch;
        return slc_matrix_row_f64(matrix, begin) + column;
    }
    *pitch = (int)cols;
    slc_dense_load(matrix, begin, end, column, cols, panel);
    return panel;
}

/* Computes one block of the Gram matrix, summed over one group of rows. */
static void gram_piece(const struct gram_sweep *sweep, uint64_t piece, unsigned worker)
{
    const struct slc_matrix *matrix = sweep->matrix;
    const uint32_t rank = matrix->cols;
    const uint64_t group = piece / sweep->pairs;
    const uint64_t limit = slc_group_end(&sweep->cut, group);
    double beta = 0.0;
    uint32_t i, j;

    block_pair(sweep->blocks, piece % sweep->pairs, &i, &j);
    uint32_t rows_i = (uint32_t)slc_min_u64(rank - i, SLC_GRAM_BLOCK);
    uint32_t cols_j = (uint32_t)slc_min_u64(rank - j, SLC_GRAM_BLOCK);
    double *sums = sweep->dense->grams + group * rank * rank + (uint64_t)i * rank + j;
    for (uint64_t row = group * sweep->cut.group_rows; row < limit;) {
        const uint64_t end = slc_panel_end(&sweep->cut, row, limit);
        const int rows = (int)(end - row);
        const double *b;
        int a_pitch, b_pitch;
        const double *a = columns_f64(matrix, row, end, i, rows_i,
                                      slc_dense_panel(sweep->dense, worker, 0), &a_pitch);

        if (i == j) {
            cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)rows_i, rows, 1.0, a, a_pitch,
                        beta, sums, (int)rank);
        } else {
            b = columns_f64(matrix, row, end, j, cols_j, slc_dense_panel(sweep->dense, worker, 1),
                            &b_pitch);
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)rows_i, (int)cols_j, rows,
                        1.0, a, a_pitch, b, b_pitch, beta, sums, (int)rank);
        }
        beta = 1.0;
        row = end;
    }
}

static void gram_pieces(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    for (uint64_t piece = begin; piece < end; piece++) {
        gram_piece(context, piece, worker);
    }
}

/* Adds up the groups for rows [begin, end) of the upper triangle, and copies the sums to the lower
 * triangle. */
static void add_groups(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct gram_sweep *sweep = context;
    const uint64_t rank = sweep->matrix->cols;
    double *gram = sweep->gram;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        memset(gram + i * rank + i, 0, (rank - i) * sizeof *gram);
        for (uint64_t group = 0; group < sweep->cut.groups; group++) {
            const double *sums = sweep->dense->grams + (group * rank + i) * rank;
            for (uint64_t j = i; j < rank; j++) {
                gram[i * rank + j] += sums[j];
            }
        }
        for (uint64_t j = i + 1; j < rank; j++) {
            gram[j * rank + i] = gram[i * rank + j];
        }
    }
}

enum slc_status slc_dense_gram(struct slc_dense *dense,
                               const struct slc_matrix *matrix,
                               double *gram,
                               struct slc_error *err)
{
    const uint64_t rank = matrix->cols;
    const uint64_t groups_max =
        slc_min_u64(slc_max_u64(SLC_GRAM_ELEMENTS / (rank * rank), 1), SLC_DENSE_GROUPS);
    struct gram_sweep sweep = {.dense = dense, .matrix = matrix, .gram = gram};

    SLC_TRY(slc_dense_check(dense, matrix, err));
    sweep.cut = slc_row_cut(matrix->rows, SLC_GRAM_ROWS, groups_max);
    sweep.blocks = slc_div_up_u64(rank, SLC_GRAM_BLOCK);
    sweep.pairs = sweep.blocks * (sweep.blocks + 1) / 2;
    SLC_TRY(
        slc_team_for(dense->workers, sweep.cut.groups * sweep.pairs, 1, gram_pieces, &sweep, err));
    /* A small Gram matrix is added up in microseconds, so the other workers are not woken. */
    if (rank < SLC_GRAM_BLOCK / 2) {
        add_groups(&sweep, 0, rank, 0);
        return SLC_OK;
    }
    return slc_team_for(dense->workers, rank, 8, add_groups, &sweep, err);
}
