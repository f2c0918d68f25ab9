/* A factor streamed piece by piece: from memory, or from its file some rows at a time. */
#ifndef SLC_REPORT_FACTOR_ROWS_H
#define SLC_REPORT_FACTOR_ROWS_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/files.h"

#include <stdint.h>

struct slc_factor_rows {
    const struct slc_files *files; /* NULL: the system's */
    const char *path;              /* of the factor, .npy; NULL: it is in memory */
    const struct slc_matrix *matrix;
    uint64_t length; /* its rows */
    uint32_t rank;   /* its columns */
};

/* What slc_factor_rows_each takes. */
uint64_t slc_factor_rows_memory_bytes(uint32_t rank);

/*
 * Calls `add` with all rows in order, `rows` from number `first` on, `rank` values each. Errors:
 * those of slc_npy_rows_read; SLC_ERR_MEMORY.
 */
enum slc_status slc_factor_rows_each(
    const struct slc_factor_rows *factor,
    void (*add)(void *context, const double *values, uint64_t first, uint64_t rows),
    void *context,
    struct slc_error *err) SLC_NODISCARD;

#endif
