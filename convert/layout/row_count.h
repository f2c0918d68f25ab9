/*
 * How many nonzeros the rows of a mode hold, counted as finely as somebody who cuts the mode into
 * parts of at most so many nonzeros needs it: runs of rows that hold few are counted together.
 */
#ifndef SLC_CONVERT_ROW_COUNT_H
#define SLC_CONVERT_ROW_COUNT_H

#include "base/error/error.h"
#include "storage/scan/tile_scan.h"

#include <stdint.h>

/* Consecutive rows with nonzeros. */
struct slc_row_run {
    uint64_t first_row;
    uint64_t rows;
    uint64_t nnz;
};

struct slc_row_counts {
    struct slc_row_run *runs; /* ascending; rows without nonzeros may be missing */
    uint64_t count;
    unsigned scans; /* how often the file was read for them */
};

/* What counting takes with so many workers, at least. */
uint64_t
slc_row_count_memory_bytes(const struct slc_layout_info *info, uint64_t run_nnz, unsigned workers);

/*
 * Counts the rows of scan->mode, of which the scan names none; a run with more than `run_nnz`
 * nonzeros holds one row. The runs depend on the nonzeros and run_nnz alone.
 * Cost: no scan where all nonzeros fit a run; else one, and further ones of the blocks that hold
 * runs which are too large, where the mode has more than 65,536 rows.
 * Owns: slc_row_counts_destroy, which takes an all-zero struct. Errors: those of slc_tile_scan.
 */
enum slc_status slc_row_count(const struct slc_tile_scan_options *scan,
                              uint64_t run_nnz,
                              struct slc_row_counts *counts,
                              struct slc_error *err) SLC_NODISCARD;
void slc_row_counts_destroy(struct slc_row_counts *counts);

#endif
