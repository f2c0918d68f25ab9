/* Updates a factor in one sweep over the rows: solve, Gram matrix, largest magnitudes and inner
 * products with the MTTKRP.
 *
 * For ranks up to SLC_BLOCK_RANK, all steps are performed block by block, while the rows are in the
 * L1 cache (dense_kernels.h); the remaining cost is one read of the MTTKRP and one write of the
 * factor. For higher ranks, BLAS solves panels, and the Gram matrix needs a second sweep; each
 * sweep performs `rank` operations per number read.
 *
 * Sums are computed from the factor's stored numbers, after rounding to its type. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/dense/dense_state.h"
#include "cpu/kernel/dense_kernels.h"
#include "cpu/kernel/kernels.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <string.h>

struct update {
    bool solves, sums; /* the steps to perform */
    struct slc_dense *dense;
    const struct slc_solver *solver;
    const struct slc_matrix *mttkrp;
    struct slc_matrix *factor;
    const struct slc_dense_kernels *kernels;
    struct slc_triangles triangles;
    uint32_t width; /* number of columns of a group's sums */
    struct slc_row_cut cut;
};

/* Returns the largest magnitudes of a group, which are followed by its inner products. */
static double *group_columns(const struct update *update, uint64_t group)
{
    return update->dense->columns + group * 2 * update->width;
}

/* Copies of rows, for blocks that cannot be processed in place. */
struct block {
    double m[SLC_BLOCK_ROWS * SLC_BLOCK_RANK] __attribute__((aligned(64)));
    double x[SLC_BLOCK_ROWS * SLC_BLOCK_RANK] __attribute__((aligned(64)));
};

/* Copies rows [row, row + rows) to a block; clears the other rows of the block. */
static void load_block(const struct update *update,
                       const struct slc_matrix *matrix,
                       uint64_t row,
                       uint64_t rows,
                       double *to)
{
    const uint64_t width = update->width;

    if (matrix->type == SLC_F32 && rows == SLC_BLOCK_ROWS) {
        update->kernels->widen(slc_matrix_row_f32(matrix, row), matrix->pitch, matrix->cols,
                               update->width, to);
        return;
    }
    for (uint64_t i = 0; i < rows; i++) {
        slc_dense_load(matrix, row + i, row + i + 1, 0, matrix->cols, to + i * width);
    }
    memset(to + rows * width, 0, (SLC_BLOCK_ROWS - rows) * width * sizeof *to);
}

static void
store_block(const struct update *update, uint64_t row, uint64_t rows, const double *from)
{
    struct slc_matrix *factor = update->factor;

    if (factor->type == SLC_F32 && rows == SLC_BLOCK_ROWS) {
        update->kernels->narrow(from, update->width, factor->cols, factor->pitch,
                                slc_matrix_row_f32(factor, row));
        return;
    }
    for (uint64_t i = 0; i < rows; i++) {
        slc_dense_store(factor, row + i, row + i + 1, from + i * update->width);
    }
}

/* Computes the rows X of a block if V is singular: M times the matrix solver->forward (D V^+ E). */
static void multiply_block(const struct update *update, const double *m, double *x)
{
    const struct slc_solver *solver = update->solver;

    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SLC_BLOCK_ROWS, (int)solver->rank,
                (int)solver->rank, 1.0, m, (int)update->width, solver->forward, (int)solver->size,
                0.0, x, (int)update->width);
}

/* Returns true if the rows of a block can be processed in place. */
static bool block_in_place(const struct update *update, uint64_t rows)
{
    return update->factor->type == SLC_F64 && rows == SLC_BLOCK_ROWS &&
           update->factor->pitch == update->width;
}

/* Performs the steps of the update on a block. `gram` and `columns` are used only if sums are
 * computed; `gram` may be NULL. */
static void update_block(const struct update *update,
                         uint64_t row,
                         uint64_t rows,
                         struct block *block,
                         double *gram,
                         double *columns)
{
    const bool in_place = block_in_place(update, rows);
    const double *m = in_place ? slc_matrix_row_f64(update->mttkrp, row) : block->m;
    double *x = in_place ? slc_matrix_row_f64(update->factor, row) : block->x;
    const struct slc_triangles *triangles =
        update->solves && !update->solver->singular ? &update->triangles : NULL;

    if (!in_place) {
        load_block(update, update->mttkrp, row, rows, block->m);
    }
    if (update->solves && triangles == NULL) {
        multiply_block(update, m, x);
    }
    if (!in_place) {
        if (update->solves) {
            update->kernels->update(triangles, m, update->width, x, NULL, NULL);
            store_block(update, row, rows, x);
        }
        triangles = NULL;
        /* Sums are computed from the stored numbers, after rounding. */
        if (update->sums && (update->factor->type == SLC_F32 || !update->solves)) {
            load_block(update, update->factor, row, rows, x);
        }
    }
    update->kernels->update(triangles, m, update->width, x, update->sums ? gram : NULL,
                            update->sums ? columns : NULL);
}

static void update_groups_by_blocks(void *context, uint64_t first, uint64_t last, unsigned worker)
{
    const struct update *update = context;
    const uint64_t width = update->width;
    struct block block;

    (void)worker;
    /* Columns after the rank stay zero. */
    memset(&block, 0, sizeof block);
    for (uint64_t group = first; group < last; group++) {
        const uint64_t limit = slc_group_end(&update->cut, group);
        double *gram = update->dense->grams + group * width * width;
        double *columns = group_columns(update, group);

        memset(gram, 0, width * width * sizeof *gram);
        memset(columns, 0, 2 * width * sizeof *columns);
        for (uint64_t row = group * update->cut.group_rows; row < limit; row += SLC_BLOCK_ROWS) {
            update_block(update, row, slc_min_u64(limit - row, SLC_BLOCK_ROWS), &block, gram,
                         columns);
        }
    }
}

/* Computes `rows` rows of X, at `x`, from the same rows of M, at `m`. */
static void
solve_panel(const struct slc_solver *solver, int rows, const double *m, double *x, int pitch)
{
    const int n = (int)solver->rank;
    const int size = (int)solver->size;

    if (solver->singular) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, n, n, 1.0, m, pitch,
                    solver->forward, size, 0.0, x, pitch);
        return;
    }
    if (x != m) {
        memcpy(x, m, (uint64_t)rows * (uint64_t)pitch * sizeof *x);
    }
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, n, 1.0,
                solver->forward, size, x, pitch);
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, rows, n, 1.0,
                solver->backward, size, x, pitch);
}

static void update_panel(
    const struct update *update, uint64_t row, uint64_t end, unsigned worker, double *columns)
{
    const uint32_t cols = update->factor->cols;
    const bool in_place = update->factor->type == SLC_F64;
    const uint64_t pitch = in_place ? update->factor->pitch : cols;
    double *m = slc_dense_panel(update->dense, worker, 0);
    double *x = slc_dense_panel(update->dense, worker, 1);

    if (in_place) {
        m = slc_matrix_row_f64(update->mttkrp, row);
        x = slc_matrix_row_f64(update->factor, row);
    } else {
        slc_dense_load(update->mttkrp, row, end, 0, cols, m);
    }
    if (update->solves) {
        solve_panel(update->solver, (int)(end - row), m, x, (int)pitch);
        if (!in_place) {
            slc_dense_store(update->factor, row, end, x);
        }
    }
    if (!update->sums) {
        return;
    }
    if (!in_place) {
        slc_dense_load(update->factor, row, end, 0, cols, x);
    }
    for (uint64_t i = 0; i < end - row; i++, m += pitch, x += pitch) {
        for (uint32_t r = 0; r < cols; r++) {
            columns[r] = fabs(x[r]) > columns[r] ? fabs(x[r]) : columns[r];
            columns[update->width + r] += m[r] * x[r];
        }
    }
}

/* Computes only the Gram matrices, for a factor that is already solved. */
static void gram_groups_by_blocks(void *context, uint64_t first, uint64_t last, unsigned worker)
{
    const struct update *update = context;
    const uint64_t width = update->width;
    struct block block;

    (void)worker;
    memset(&block, 0, sizeof block);
    for (uint64_t group = first; group < last; group++) {
        const uint64_t limit = slc_group_end(&update->cut, group);
        double *gram = update->dense->grams + group * width * width;

        memset(gram, 0, width * width * sizeof *gram);
        for (uint64_t row = group * update->cut.group_rows; row < limit; row += SLC_BLOCK_ROWS) {
            const uint64_t rows = slc_min_u64(limit - row, SLC_BLOCK_ROWS);
            double *x = block.x;

            if (block_in_place(update, rows)) {
                x = slc_matrix_row_f64(update->factor, row);
            } else {
                load_block(update, update->factor, row, rows, block.x);
            }
            update->kernels->update(NULL, NULL, update->width, x, gram, NULL);
        }
    }
}

static void update_groups_by_panels(void *context, uint64_t first, uint64_t last, unsigned worker)
{
    const struct update *update = context;

    for (uint64_t group = first; group < last; group++) {
        const uint64_t limit = slc_group_end(&update->cut, group);
        double *columns = group_columns(update, group);

        memset(columns, 0, 2 * (uint64_t)update->width * sizeof *columns);
        for (uint64_t row = group * update->cut.group_rows; row < limit;) {
            const uint64_t end = slc_panel_end(&update->cut, row, limit);

            update_panel(update, row, end, worker, columns);
            row = end;
        }
    }
}

void slc_dense_solve_block(const struct slc_solver *solver, double *m, double *x)
{
    const struct slc_triangles triangles = {solver->size, solver->forward, solver->forward_inverse,
                                            solver->backward, solver->backward_inverse};
    const uint32_t width = slc_block_width(solver->rank);

    if (solver->rank <= SLC_BLOCK_RANK && !solver->singular) {
        slc_kernels()->dense->update(&triangles, m, width, x, NULL, NULL);
    } else {
        solve_panel(solver, SLC_BLOCK_ROWS, m, x, (int)width);
    }
}

uint64_t slc_dense_columns_elements(uint32_t rank)
{
    return 2 * (uint64_t)slc_block_width(rank);
}

void slc_dense_columns_join(uint32_t rank,
                            const double *columns,
                            uint64_t count,
                            const struct slc_update_sums *sums)
{
    const uint64_t width = slc_block_width(rank);

    memset(sums->largest, 0, rank * sizeof *sums->largest);
    memset(sums->inner, 0, rank * sizeof *sums->inner);
    for (uint64_t part = 0; part < count; part++, columns += 2 * width) {
        for (uint32_t r = 0; r < rank; r++) {
            sums->largest[r] = fmax(sums->largest[r], columns[r]);
            sums->inner[r] += columns[width + r];
        }
    }
}

/* Adds up the Gram matrices of the groups, in the order of the groups, in `gram`. */
static void combine_grams(const struct update *update, double *gram)
{
    const uint64_t rank = update->factor->cols;
    const uint64_t width = update->width;

    memset(gram, 0, rank * rank * sizeof *gram);
    for (uint64_t group = 0; group < update->cut.groups; group++) {
        const double *sums = update->dense->grams + group * width * width;

        for (uint64_t i = 0; i < rank; i++) {
            for (uint64_t j = i; j < rank; j++) {
                gram[i * rank + j] += sums[i * width + j];
            }
        }
    }
    for (uint64_t i = 0; i < rank; i++) {
        for (uint64_t j = 0; j < i; j++) {
            gram[i * rank + j] = gram[j * rank + i];
        }
    }
}

static struct update make_update(struct slc_dense *dense,
                                 const struct slc_solver *solver,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_matrix *factor)
{
    return (struct update){.solves = true,
                           .sums = true,
                           .dense = dense,
                           .solver = solver,
                           .mttkrp = mttkrp,
                           .factor = factor,
                           .kernels = slc_kernels()->dense,
                           .triangles = {solver->size, solver->forward, solver->forward_inverse,
                                         solver->backward, solver->backward_inverse},
                           .width = slc_block_width(solver->rank)};
}

static enum slc_status check_shapes(const struct update *update, struct slc_error *err)
{
    const struct slc_matrix *mttkrp = update->mttkrp;
    const struct slc_matrix *factor = update->factor;

    assert(mttkrp != factor);
    if (mttkrp->rows != factor->rows || mttkrp->cols != factor->cols ||
        mttkrp->type != factor->type || update->solver->rank != factor->cols) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "an MTTKRP of %llu x %u and a solver of rank %u do not match a factor of %llu x %u",
            (unsigned long long)mttkrp->rows, mttkrp->cols, update->solver->rank,
            (unsigned long long)factor->rows, factor->cols);
    }
    return slc_dense_check(update->dense, factor, err);
}

/* Sweeps once over all rows, in groups, and combines the sums of the groups. */
static enum slc_status
sweep_rows(struct update *update, const struct slc_update_sums *sums, struct slc_error *err)
{
    const bool by_blocks = update->solver->rank <= SLC_BLOCK_RANK;

    SLC_TRY(check_shapes(update, err));
    update->cut = slc_row_cut(update->factor->rows,
                              by_blocks ? SLC_GRAM_ROWS : slc_panel_rows(update->factor->cols),
                              SLC_DENSE_GROUPS);
    SLC_TRY(slc_team_for(update->dense->workers, update->cut.groups, 1,
                         by_blocks ? update_groups_by_blocks : update_groups_by_panels, update,
                         err));
    slc_dense_columns_join(update->factor->cols, update->dense->columns, update->cut.groups, sums);
    if (by_blocks) {
        combine_grams(update, sums->gram);
        return SLC_OK;
    }
    return slc_dense_gram(update->dense, update->factor, sums->gram, err);
}

enum slc_status slc_dense_update(struct slc_dense *dense,
                                 const struct slc_solver *solver,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_matrix *factor,
                                 const struct slc_update_sums *sums,
                                 struct slc_error *err)
{
    struct update update = make_update(dense, solver, mttkrp, factor);

    if (solver->rows != NULL) {
        SLC_TRY(check_shapes(&update, err));
        SLC_TRY(slc_dense_apply_all(dense, solver, mttkrp, factor, err));
        update.solves = false;
    }
    return sweep_rows(&update, sums, err);
}

/* Processes rows [begin, end) on one worker; `columns` is used only if sums are computed. */
static void update_range(
    const struct update *update, uint64_t begin, uint64_t end, unsigned worker, double *columns)
{
    struct block block;

    assert(begin <= end && end <= update->factor->rows && worker < update->dense->workers);
    if (update->solver->rank > SLC_BLOCK_RANK) {
        const uint64_t panel_rows = slc_panel_rows(update->factor->cols);

        for (uint64_t row = begin; row < end; row += panel_rows) {
            update_panel(update, row, slc_min_u64(row + panel_rows, end), worker, columns);
        }
        return;
    }
    memset(&block, 0, sizeof block);
    for (uint64_t row = begin; row < end; row += SLC_BLOCK_ROWS) {
        update_block(update, row, slc_min_u64(end - row, SLC_BLOCK_ROWS), &block, NULL, columns);
    }
}

enum slc_status slc_dense_update_rows(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      uint64_t begin,
                                      uint64_t end,
                                      unsigned worker,
                                      struct slc_error *err)
{
    struct update update = make_update(dense, solver, mttkrp, factor);

    SLC_TRY(check_shapes(&update, err));
    if (solver->rows != NULL) {
        return slc_dense_apply(dense, solver, mttkrp, factor, begin, end, worker, err);
    }
    update.sums = false;
    update_range(&update, begin, end, worker, NULL);
    return SLC_OK;
}

enum slc_status slc_dense_update_part(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      uint64_t begin,
                                      uint64_t end,
                                      unsigned worker,
                                      double *columns,
                                      struct slc_error *err)
{
    struct update update = make_update(dense, solver, mttkrp, factor);

    SLC_TRY(check_shapes(&update, err));
    if (solver->rows != NULL) {
        SLC_TRY(slc_dense_apply(dense, solver, mttkrp, factor, begin, end, worker, err));
        update.solves = false;
    }
    memset(columns, 0, slc_dense_columns_elements(solver->rank) * sizeof *columns);
    update_range(&update, begin, end, worker, columns);
    return SLC_OK;
}

enum slc_status slc_dense_update_sums(struct slc_dense *dense,
                                      const struct slc_solver *solver,
                                      const struct slc_matrix *mttkrp,
                                      struct slc_matrix *factor,
                                      const struct slc_update_sums *sums,
                                      struct slc_error *err)
{
    struct update update = make_update(dense, solver, mttkrp, factor);

    update.solves = false;
    return sweep_rows(&update, sums, err);
}

enum slc_status slc_dense_update_gram(struct slc_dense *dense,
                                      struct slc_matrix *factor,
                                      double *gram,
                                      struct slc_error *err)
{
    struct update update = {.dense = dense,
                            .factor = factor,
                            .kernels = slc_kernels()->dense,
                            .width = slc_block_width(factor->cols)};

    SLC_TRY(slc_dense_check(dense, factor, err));
    if (factor->cols > SLC_BLOCK_RANK) {
        return slc_dense_gram(dense, factor, gram, err);
    }
    update.cut = slc_row_cut(factor->rows, SLC_GRAM_ROWS, SLC_DENSE_GROUPS);
    SLC_TRY(
        slc_team_for(dense->workers, update.cut.groups, 1, gram_groups_by_blocks, &update, err));
    combine_grams(&update, gram);
    return SLC_OK;
}
