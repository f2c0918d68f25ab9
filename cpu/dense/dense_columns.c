/* Implements operations on columns of factors: norms, scaling, reordering, random filling. */
#include "base/memory/checked.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "cpu/dense/dense_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A sum of squares larger than this is accurate for any number of rows: the squares that underflow
 * (below 2.2e-308) do not matter. Smaller sums occur for components that vanish in CP-ALS. */
#define SQUARES_LEAST 1e-270

/* State of a sweep over the rows. An operation sets only the members that it needs. */
struct column_sweep {
    struct slc_dense *dense;
    struct slc_matrix *matrix;  /* matrix that is written */
    const struct slc_matrix *a; /* matrix that is read */
    const double *scale;
    const uint32_t *order;
    uint64_t seed, stream;
    struct slc_row_cut cut;
};

static void scale_row(struct slc_matrix *matrix, uint64_t row, const double *scale)
{
    if (matrix->type == SLC_F64) {
        double *values = slc_matrix_row_f64(matrix, row);
        for (uint32_t r = 0; r < matrix->cols; r++) {
            values[r] *= scale[r];
        }
    } else {
        float *values = slc_matrix_row_f32(matrix, row);
        for (uint32_t r = 0; r < matrix->cols; r++) {
            values[r] = (float)((double)values[r] * scale[r]);
        }
    }
}

void slc_dense_scale_rows(struct slc_matrix *matrix,
                          uint64_t begin,
                          uint64_t end,
                          const double *scale)
{
    assert(begin <= end && end <= matrix->rows);
    for (uint64_t i = begin; i < end; i++) {
        scale_row(matrix, i, scale);
    }
}

static void scale_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct column_sweep *sweep = context;

    (void)worker;
    slc_dense_scale_rows(sweep->matrix, begin, end, sweep->scale);
}

enum slc_status slc_dense_scale(struct slc_dense *dense,
                                struct slc_matrix *matrix,
                                const double *scale,
                                struct slc_error *err)
{
    struct column_sweep sweep = {.dense = dense, .matrix = matrix, .scale = scale};

    SLC_TRY(slc_dense_check(dense, matrix, err));
    return slc_team_for(dense->workers, matrix->rows, SLC_PANEL_ROWS, scale_rows, &sweep, err);
}

/* Updates *largest, the element of largest magnitude so far (the first of several equal elements),
 * and *opposite, the largest magnitude of the elements of the opposite sign, with an element. */
static void add_extreme(double value, double *largest, double *opposite)
{
    const bool opposes = value != 0.0 && signbit(value) != signbit(*largest);

    if (fabs(value) > fabs(*largest)) {
        *opposite = opposes ? fabs(*largest) : *opposite;
        *largest = value;
    } else if (opposes) {
        *opposite = fmax(*opposite, fabs(value));
    }
}

/* Computes for each group the sums of squares and the extremes of the columns (add_extreme). If
 * `scale` is set, the elements are first divided by `scale`. */
static void norm_groups(void *context, uint64_t first, uint64_t last, unsigned worker)
{
    const struct column_sweep *sweep = context;
    const uint32_t cols = sweep->a->cols;
    double *row = slc_dense_panel(sweep->dense, worker, 0);

    for (uint64_t group = first; group < last; group++) {
        const uint64_t limit = slc_group_end(&sweep->cut, group);
        double *sums = sweep->dense->columns + group * 2 * cols;
        double *largest = sums + cols;
        double *opposite = sweep->dense->grams + group * cols;

        memset(sums, 0, 2 * (uint64_t)cols * sizeof *sums);
        memset(opposite, 0, cols * sizeof *opposite);
        for (uint64_t i = group * sweep->cut.group_rows; i < limit; i++) {
            slc_dense_load(sweep->a, i, i + 1, 0, cols, row);
            for (uint32_t r = 0; r < cols && sweep->scale != NULL; r++) {
                row[r] /= sweep->scale[r];
            }
            for (uint32_t r = 0; r < cols; r++) {
                sums[r] += row[r] * row[r];
                add_extreme(row[r], &largest[r], &opposite[r]);
            }
        }
    }
}

static double sum_of_groups(const struct column_sweep *sweep, uint32_t column)
{
    const uint32_t cols = sweep->a->cols;
    double total = 0.0;

    for (uint64_t group = 0; group < sweep->cut.groups; group++) {
        total += sweep->dense->columns[group * 2 * cols + column];
    }
    return total;
}

/* Returns the element of largest magnitude of a column. Sets *opposite to the largest magnitude of
 * the elements of the opposite sign. */
static double
extremes_of_groups(const struct column_sweep *sweep, uint32_t column, double *opposite)
{
    const uint32_t cols = sweep->a->cols;
    double largest = 0.0;

    *opposite = 0.0;
    for (uint64_t group = 0; group < sweep->cut.groups; group++) {
        const double candidate = sweep->dense->columns[(group * 2 + 1) * cols + column];

        add_extreme(candidate, &largest, opposite);
        add_extreme(-copysign(sweep->dense->grams[group * cols + column], candidate), &largest,
                    opposite);
    }
    return largest;
}

/* Computes the columns' 2-norms, with the columns divided by their largest magnitudes, so that
 * squares do not underflow or overflow. */
static enum slc_status scaled_norms(struct column_sweep *sweep,
                                    const double *largest,
                                    double *norms,
                                    struct slc_error *err)
{
    const uint32_t cols = sweep->a->cols;

    for (uint32_t r = 0; r < cols; r++) {
        norms[r] = largest[r] == 0.0 ? 1.0 : fabs(largest[r]);
    }
    sweep->scale = norms;
    SLC_TRY(slc_team_for(sweep->dense->workers, sweep->cut.groups, 1, norm_groups, sweep, err));
    for (uint32_t r = 0; r < cols; r++) {
        norms[r] *= sqrt(sum_of_groups(sweep, r));
    }
    return SLC_OK;
}

enum slc_status slc_dense_column_norms(struct slc_dense *dense,
                                       const struct slc_matrix *matrix,
                                       double *norms,
                                       double *signs,
                                       double *opposites,
                                       struct slc_error *err)
{
    struct column_sweep sweep = {.dense = dense, .a = matrix};
    bool in_range = true;

    SLC_TRY(slc_dense_check(dense, matrix, err));
    sweep.cut = slc_row_cut(matrix->rows, slc_panel_rows(matrix->cols), SLC_DENSE_GROUPS);
    enum slc_status status =
        slc_team_for(dense->workers, sweep.cut.groups, 1, norm_groups, &sweep, err);
    SLC_TRY(status);
    for (uint32_t r = 0; r < matrix->cols; r++) {
        const double squares = sum_of_groups(&sweep, r);

        signs[r] = extremes_of_groups(&sweep, r, &opposites[r]);
        opposites[r] /= signs[r] != 0.0 ? fabs(signs[r]) : 1.0;
        norms[r] = sqrt(squares);
        in_range = in_range && (signs[r] == 0.0 || (squares > SQUARES_LEAST && isfinite(squares)));
    }
    if (!in_range) {
        status = scaled_norms(&sweep, signs, norms, err);
    }
    for (uint32_t r = 0; r < matrix->cols; r++) {
        signs[r] = signs[r] < 0.0 ? -1.0 : 1.0;
    }
    return status;
}

/* Computes the sums of magnitudes of the columns for each group. */
static void sum_groups(void *context, uint64_t first, uint64_t last, unsigned worker)
{
    const struct column_sweep *sweep = context;
    const uint32_t cols = sweep->a->cols;
    double *row = slc_dense_panel(sweep->dense, worker, 0);

    for (uint64_t group = first; group < last; group++) {
        const uint64_t limit = slc_group_end(&sweep->cut, group);
        double *sums = sweep->dense->columns + group * 2 * cols;

        memset(sums, 0, cols * sizeof *sums);
        for (uint64_t i = group * sweep->cut.group_rows; i < limit; i++) {
            slc_dense_load(sweep->a, i, i + 1, 0, cols, row);
            for (uint32_t r = 0; r < cols; r++) {
                sums[r] += fabs(row[r]);
            }
        }
    }
}

enum slc_status slc_dense_column_sums(struct slc_dense *dense,
                                      const struct slc_matrix *matrix,
                                      double *sums,
                                      struct slc_error *err)
{
    struct column_sweep sweep = {.dense = dense, .a = matrix};

    SLC_TRY(slc_dense_check(dense, matrix, err));
    sweep.cut = slc_row_cut(matrix->rows, slc_panel_rows(matrix->cols), SLC_DENSE_GROUPS);
    SLC_TRY(slc_team_for(dense->workers, sweep.cut.groups, 1, sum_groups, &sweep, err));
    for (uint32_t r = 0; r < matrix->cols; r++) {
        sums[r] = sum_of_groups(&sweep, r);
    }
    return SLC_OK;
}

static void permute_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct column_sweep *sweep = context;
    struct slc_matrix *matrix = sweep->matrix;
    double *old = slc_dense_panel(sweep->dense, worker, 0);

    for (uint64_t i = begin; i < end; i++) {
        slc_dense_load(matrix, i, i + 1, 0, matrix->cols, old);
        if (matrix->type == SLC_F64) {
            double *row = slc_matrix_row_f64(matrix, i);
            for (uint32_t r = 0; r < matrix->cols; r++) {
                row[r] = old[sweep->order[r]];
            }
        } else {
            float *row = slc_matrix_row_f32(matrix, i);
            for (uint32_t r = 0; r < matrix->cols; r++) {
                row[r] = (float)old[sweep->order[r]];
            }
        }
    }
}

enum slc_status slc_dense_permute(struct slc_dense *dense,
                                  struct slc_matrix *matrix,
                                  const uint32_t *order,
                                  struct slc_error *err)
{
    struct column_sweep sweep = {.dense = dense, .matrix = matrix, .order = order};

    SLC_TRY(slc_dense_check(dense, matrix, err));
    for (uint32_t r = 0; r < matrix->cols; r++) {
        assert(order[r] < matrix->cols);
    }
    return slc_team_for(dense->workers, matrix->rows, SLC_PANEL_ROWS, permute_rows, &sweep, err);
}

static void fill_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct column_sweep *sweep = context;
    struct slc_matrix *matrix = sweep->matrix;
    const uint32_t cols = matrix->cols;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            const double value = slc_random_f64(sweep->seed, sweep->stream, i * cols + r);

            if (matrix->type == SLC_F64) {
                slc_matrix_row_f64(matrix, i)[r] = value;
            } else {
                slc_matrix_row_f32(matrix, i)[r] = (float)value;
            }
        }
    }
}

enum slc_status slc_dense_fill_uniform(struct slc_dense *dense,
                                       struct slc_matrix *matrix,
                                       uint64_t seed,
                                       uint64_t stream,
                                       struct slc_error *err)
{
    struct column_sweep sweep = {.dense = dense, .matrix = matrix, .seed = seed, .stream = stream};

    SLC_TRY(slc_dense_check(dense, matrix, err));
    return slc_team_for(dense->workers, matrix->rows, SLC_PANEL_ROWS, fill_rows, &sweep, err);
}
