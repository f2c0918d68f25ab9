/* Builds the fibers of a mode, multiplies them, and checks the results. */
#include "tools/bench/product/ttm_fibers.h"

#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "tools/bench/measure/resident.h"

#include <math.h>
#include <string.h>

static enum slc_status number_rows(struct ttm_fibers *fibers, struct slc_error *err)
{
    const struct slc_csf *csf = &fibers->csf;

    SLC_TRY(slc_buffer_create(&fibers->row_of, csf->nnz * sizeof(uint32_t), SLC_PAGES_HUGE, err));
    uint32_t *row_of = fibers->row_of.data;
    for (uint32_t f = 0; f < csf->fibers; f++) {
        for (uint32_t i = csf->fiber_begin[f]; i < csf->fiber_begin[f + 1]; i++) {
            row_of[i] = f;
        }
    }
    return SLC_OK;
}

enum slc_status ttm_fibers_create(struct ttm_fibers *fibers,
                                  struct ttm_mode *mode,
                                  uint64_t memory_bytes,
                                  bool *fits,
                                  struct slc_error *err)
{
    const struct slc_reader *reader = mode->order.reader;
    const struct slc_layout_info *info = slc_reader_info(reader);
    const enum slc_value_type type = mode->matrix.type;
    struct slc_csf_list from = {
        .order = info->order, .dims = info->dims, .nnz = info->nnz, .type = type};
    const uint64_t row_bytes = slc_matrix_row_bytes(&mode->matrix);
    const uint64_t list_bytes = slc_csf_bytes(&from, false) + info->nnz * sizeof(uint32_t);

    *fits = info->nnz < UINT32_MAX && list_bytes <= memory_bytes;
    for (unsigned m = 0; m < info->order; m++) {
        *fits = *fits && info->dims[m] <= UINT32_MAX;
    }
    if (!*fits) {
        return SLC_OK;
    }
    fibers->mode = mode;
    SLC_TRY(bench_list_layout(mode->stream, 0, reader, type, &fibers->list, err));
    from.coords = fibers->list.coords.data;
    from.values = fibers->list.values.data;
    SLC_TRY(slc_csf_create_fibers(&fibers->csf, &from, mode->options.mode, err));
    *fits = fibers->csf.fibers <= (memory_bytes - list_bytes) / row_bytes;
    if (!*fits) {
        return SLC_OK;
    }
    SLC_TRY(number_rows(fibers, err));
    return slc_matrix_create(&fibers->rows, type, fibers->csf.fibers, mode->matrix.cols, err);
}

void ttm_fibers_destroy(struct ttm_fibers *fibers)
{
    slc_matrix_destroy(&fibers->rows);
    slc_buffer_destroy(&fibers->row_of);
    slc_csf_destroy(&fibers->csf);
    slc_coo_destroy(&fibers->list);
    memset(fibers, 0, sizeof *fibers);
}

enum slc_status
ttm_fibers_run(struct ttm_fibers *fibers, enum slc_xplat_kernel kernel, struct slc_error *err)
{
    return slc_xplat_ttm(&fibers->csf, kernel, &fibers->mode->matrix, &fibers->rows,
                         fibers->mode->options.threads, err);
}

/* Returns the first fiber of a worker: that of nonzero nnz * worker / workers, or the next one if
 * this fiber begins earlier. */
static uint32_t first_fiber(const struct ttm_fibers *fibers, unsigned worker, unsigned workers)
{
    const struct slc_csf *csf = &fibers->csf;
    const uint64_t i = csf->nnz * worker / workers;
    const uint32_t *row_of = fibers->row_of.data;

    if (i == csf->nnz) {
        return (uint32_t)csf->fibers;
    }
    return row_of[i] + (csf->fiber_begin[row_of[i]] < i);
}

static void loop_share(void *context, unsigned worker, unsigned workers)
{
    const struct ttm_fibers *fibers = context;
    const struct slc_csf *csf = &fibers->csf;
    const struct slc_matrix *matrix = &fibers->mode->matrix;
    const uint32_t first = first_fiber(fibers, worker, workers);
    const uint32_t end = first_fiber(fibers, worker + 1, workers);
    const uint32_t *row_of = fibers->row_of.data;
    const double *values = csf->values;

    memset(slc_matrix_row_f64(&fibers->rows, first), 0,
           (end - first) * slc_matrix_row_bytes(&fibers->rows));
    for (uint32_t i = csf->fiber_begin[first]; i < csf->fiber_begin[end]; i++) {
        const double *restrict from = slc_matrix_row_f64(matrix, csf->index[i]);
        double *restrict to = slc_matrix_row_f64(&fibers->rows, row_of[i]);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            to[r] += values[i] * from[r];
        }
    }
}

enum slc_status ttm_fibers_loop(struct ttm_fibers *fibers, struct slc_error *err)
{
    return slc_team_run(fibers->mode->options.threads, loop_share, fibers, err);
}

/* Returns true if nonzeros i - 1 and i of the list are of one fiber. */
static bool same_fiber(const struct ttm_fibers *fibers, uint64_t i)
{
    const unsigned order = fibers->list.shape.order;
    const uint32_t *coords = (const uint32_t *)fibers->list.coords.data + i * order;
    bool same = true;

    for (unsigned m = 0; m < order; m++) {
        same = same && (m == fibers->mode->options.mode || coords[m] == (coords - order)[m]);
    }
    return same;
}

/* Returns the error of column `column` of the row of nonzeros begin to end - 1. */
static double element_error(
    const struct ttm_fibers *fibers, uint64_t begin, uint64_t end, uint64_t row, uint32_t column)
{
    const struct slc_coo *list = &fibers->list;
    const uint32_t *index = (const uint32_t *)list->coords.data + fibers->mode->options.mode;
    double sum = 0, magnitude = 0;

    for (uint64_t i = begin; i < end; i++) {
        const double value = list->type == SLC_F32 ? (double)((const float *)list->values.data)[i]
                                                   : ((const double *)list->values.data)[i];
        const double product =
            value * slc_matrix_get(&fibers->mode->matrix, index[i * list->shape.order], column);

        sum += product;
        magnitude += fabs(product);
    }
    const double difference = fabs(slc_matrix_get(&fibers->rows, row, column) - sum);

    return difference == 0 ? 0 : isnan(difference) ? INFINITY : difference / magnitude;
}

double ttm_fibers_error(const struct ttm_fibers *fibers)
{
    const uint64_t nnz = fibers->list.shape.nnz;
    uint64_t row = 0;
    double error = 0;

    for (uint64_t begin = 0, end; begin < nnz; begin = end, row++) {
        for (end = begin + 1; end < nnz && same_fiber(fibers, end);) {
            end++;
        }
        for (uint32_t r = 0; r < fibers->rows.cols && row < fibers->rows.rows; r++) {
            error = fmax(error, element_error(fibers, begin, end, row, r));
        }
    }
    return row == fibers->rows.rows ? error : INFINITY;
}
