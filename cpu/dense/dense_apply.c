/* Applies a row solver to the rows of a factor: converts a few rows of the MTTKRP and of the factor
 * to f64 and to the units of the solver, solves them and stores the solution. */
#include "base/memory/checked.h"
#include "base/row_solver.h"
#include "base/thread/team.h"
#include "cpu/dense/dense_state.h"
#include "cpu/kernel/dense_kernels.h"

#include <stdatomic.h>
#include <string.h>

/* Loads a row, with its columns multiplied by `scale`. */
static void
load_scaled(const struct slc_matrix *matrix, uint64_t row, const double *scale, double *to)
{
    if (matrix->type == SLC_F32) {
        const float *from = slc_matrix_row_f32(matrix, row);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            to[r] = (double)from[r] * scale[r];
        }
    } else {
        const double *from = slc_matrix_row_f64(matrix, row);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            to[r] = from[r] * scale[r];
        }
    }
}

static void
store_scaled(struct slc_matrix *matrix, uint64_t row, const double *scale, const double *from)
{
    if (matrix->type == SLC_F32) {
        float *to = slc_matrix_row_f32(matrix, row);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            to[r] = (float)(from[r] * scale[r]);
        }
    } else {
        double *to = slc_matrix_row_f64(matrix, row);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            to[r] = from[r] * scale[r];
        }
    }
}

enum slc_status slc_dense_apply(struct slc_dense *dense,
                                const struct slc_solver *solver,
                                const struct slc_matrix *mttkrp,
                                struct slc_matrix *factor,
                                uint64_t begin,
                                uint64_t end,
                                unsigned worker,
                                struct slc_error *err)
{
    const struct slc_row_solver *rows = solver->rows;
    const uint32_t width = slc_row_width(solver->rank);
    const uint64_t most = slc_min_u64(SLC_BLOCK_ROWS, dense->panel_elements / width);
    double *m = slc_dense_panel(dense, worker, 0);
    double *x = slc_dense_panel(dense, worker, 1);

    memset(m, 0, most * width * sizeof *m);
    memset(x, 0, most * width * sizeof *x);
    for (uint64_t row = begin, count; row < end; row += count) {
        count = slc_min_u64(most, end - row);
        for (uint64_t i = 0; i < count; i++) {
            load_scaled(mttkrp, row + i, solver->left, m + i * width);
            load_scaled(factor, row + i, solver->start, x + i * width);
        }
        SLC_TRY(rows->solve(rows->context, worker, row, count, width, m, x, err));
        for (uint64_t i = 0; i < count; i++) {
            store_scaled(factor, row + i, solver->right, x + i * width);
        }
    }
    return SLC_OK;
}

/* Arguments of slc_dense_apply, for a team. The first fault is kept. */
struct apply {
    struct slc_dense *dense;
    const struct slc_solver *solver;
    const struct slc_matrix *mttkrp;
    struct slc_matrix *factor;
    atomic_flag failed;
    struct slc_error fault;
};

static void apply_range(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct apply *apply = context;
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_dense_apply(apply->dense, apply->solver, apply->mttkrp, apply->factor, begin, end,
                        worker, &fault) != SLC_OK &&
        !atomic_flag_test_and_set(&apply->failed)) {
        apply->fault = fault;
    }
}

enum slc_status slc_dense_apply_all(struct slc_dense *dense,
                                    const struct slc_solver *solver,
                                    const struct slc_matrix *mttkrp,
                                    struct slc_matrix *factor,
                                    struct slc_error *err)
{
    struct apply apply = {.dense = dense,
                          .solver = solver,
                          .mttkrp = mttkrp,
                          .factor = factor,
                          .failed = ATOMIC_FLAG_INIT,
                          .fault = SLC_ERROR_INIT};

    SLC_TRY(slc_team_for(dense->workers, factor->rows, SLC_GRAM_ROWS, apply_range, &apply, err));
    slc_error_pass(err, &apply.fault);
    return apply.fault.status;
}
