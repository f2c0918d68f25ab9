/* See factor_rows.h. */
#include "report/factors/factor_rows.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/model/npy.h"

/* Numbers read at a time, about: more than that makes reading no faster. */
enum { PIECE_NUMBERS = 64 * 1024 };

static uint64_t piece_rows(uint32_t rank)
{
    return slc_max_u64(1, PIECE_NUMBERS / rank);
}

uint64_t slc_factor_rows_memory_bytes(uint32_t rank)
{
    return slc_buffer_footprint(piece_rows(rank) * rank * sizeof(double), SLC_PAGES_SMALL);
}

enum slc_status slc_factor_rows_each(
    const struct slc_factor_rows *factor,
    void (*add)(void *context, const double *values, uint64_t first, uint64_t rows),
    void *context,
    struct slc_error *err)
{
    const uint64_t step = piece_rows(factor->rank);
    struct slc_npy_rows *rows = NULL;
    struct slc_buffer values = SLC_BUFFER_INIT;
    enum slc_status status = factor->path == NULL
                                 ? SLC_OK
                                 : slc_npy_rows_open(factor->files, factor->path, factor->length,
                                                     factor->rank, &rows, err);

    if (status == SLC_OK) {
        status =
            slc_buffer_create(&values, step * factor->rank * sizeof(double), SLC_PAGES_SMALL, err);
    }
    for (uint64_t first = 0, more; first < factor->length && status == SLC_OK; first += more) {
        more = slc_min_u64(step, factor->length - first);
        if (factor->path == NULL) {
            slc_matrix_get_rows(factor->matrix, first, more, values.data);
        } else {
            status = slc_npy_rows_read(rows, first, more, values.data, err);
        }
        if (status == SLC_OK) {
            add(context, values.data, first, more);
        }
    }
    slc_buffer_destroy(&values);
    slc_npy_rows_close(rows);
    return status;
}
