/* Builds the fibers of a mode for the kernels of [XPLAT], and checks their results. */
#include "tools/bench/product/ttm_xplat.h"

#include "base/memory/checked.h"
#include "tools/bench/measure/resident.h"

#include <math.h>
#include <string.h>

enum slc_status ttm_xplat_create(struct ttm_xplat *xplat,
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
    const uint64_t list_bytes = slc_csf_bytes(&from, false);

    *fits = info->nnz < UINT32_MAX && list_bytes <= memory_bytes;
    for (unsigned m = 0; m < info->order; m++) {
        *fits = *fits && info->dims[m] <= UINT32_MAX;
    }
    if (!*fits) {
        return SLC_OK;
    }
    xplat->mode = mode;
    SLC_TRY(bench_list_layout(mode->stream, 0, reader, type, &xplat->list, err));
    from.coords = xplat->list.coords.data;
    from.values = xplat->list.values.data;
    SLC_TRY(slc_csf_create_fibers(&xplat->csf, &from, mode->options.mode, err));
    *fits = xplat->csf.fibers <= (memory_bytes - list_bytes) / row_bytes;
    return *fits ? slc_matrix_create(&xplat->rows, type, xplat->csf.fibers, mode->matrix.cols, err)
                 : SLC_OK;
}

void ttm_xplat_destroy(struct ttm_xplat *xplat)
{
    slc_matrix_destroy(&xplat->rows);
    slc_csf_destroy(&xplat->csf);
    slc_coo_destroy(&xplat->list);
    memset(xplat, 0, sizeof *xplat);
}

enum slc_status
ttm_xplat_run(struct ttm_xplat *xplat, enum slc_xplat_kernel kernel, struct slc_error *err)
{
    return slc_xplat_ttm(&xplat->csf, kernel, &xplat->mode->matrix, &xplat->rows,
                         xplat->mode->options.threads, err);
}

/* Returns true if nonzeros i - 1 and i of the list are of one fiber. */
static bool same_fiber(const struct ttm_xplat *xplat, uint64_t i)
{
    const unsigned order = xplat->list.shape.order;
    const uint32_t *coords = (const uint32_t *)xplat->list.coords.data + i * order;
    bool same = true;

    for (unsigned m = 0; m < order; m++) {
        same = same && (m == xplat->mode->options.mode || coords[m] == (coords - order)[m]);
    }
    return same;
}

/* Returns the error of column `column` of the row of nonzeros begin to end - 1. */
static double element_error(
    const struct ttm_xplat *xplat, uint64_t begin, uint64_t end, uint64_t row, uint32_t column)
{
    const struct slc_coo *list = &xplat->list;
    const uint32_t *index = (const uint32_t *)list->coords.data + xplat->mode->options.mode;
    double sum = 0, magnitude = 0;

    for (uint64_t i = begin; i < end; i++) {
        const double value = list->type == SLC_F32 ? (double)((const float *)list->values.data)[i]
                                                   : ((const double *)list->values.data)[i];
        const double product =
            value * slc_matrix_get(&xplat->mode->matrix, index[i * list->shape.order], column);

        sum += product;
        magnitude += fabs(product);
    }
    const double difference = fabs(slc_matrix_get(&xplat->rows, row, column) - sum);

    return difference == 0 ? 0 : isnan(difference) ? INFINITY : difference / magnitude;
}

double ttm_xplat_error(const struct ttm_xplat *xplat)
{
    const uint64_t nnz = xplat->list.shape.nnz;
    uint64_t row = 0;
    double error = 0;

    for (uint64_t begin = 0, end; begin < nnz; begin = end, row++) {
        for (end = begin + 1; end < nnz && same_fiber(xplat, end);) {
            end++;
        }
        for (uint32_t r = 0; r < xplat->rows.cols && row < xplat->rows.rows; r++) {
            error = fmax(error, element_error(xplat, begin, end, row, r));
        }
    }
    return row == xplat->rows.rows ? error : INFINITY;
}
