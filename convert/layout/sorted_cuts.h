/*
 * Where the layout sorted-n is cut into partitions: runs of mode-n rows with about the same number
 * of nonzeros each, and rows that are too large for one, in pieces. The cuts depend on the nonzeros
 * alone, so that a layout has the same bytes whatever memory and threads it was built with.
 */
#ifndef SLC_CONVERT_SORTED_CUTS_H
#define SLC_CONVERT_SORTED_CUTS_H

#include "base/error/error.h"
#include "storage/scan/tile_scan.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How many nonzeros the rows of a mode hold, counted as finely as somebody who cuts the mode into
 * parts of at most so many nonzeros needs it: runs of rows that hold few are counted together.
 */

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

struct slc_sorted_part {
    uint64_t first_row, last_row; /* what lies outside of all partitions is empty */
    uint64_t nnz;                 /* 1 or more */
    bool continued;               /* a further piece of the row of the partition before */
};

struct slc_sorted_cuts {
    struct slc_sorted_part *parts; /* ascending */
    uint64_t count;
    uint64_t split_rows; /* rows in pieces */
};

/*
 * Nonzeros of a partition at most: a 64th of the tensor, 8 Ki to 1 Mi of them. Partitions are what
 * threads and devices own, so there have to be several for each; one of 1 Mi is about a block on
 * disk, and what two updates share in memory; smaller ones than 8 Ki would be padding to a good
 * part, since each fills whole pages.
 */
uint64_t slc_sorted_part_nnz(uint64_t nnz);

/*
 * Cuts counted runs, none of which has more than `part_nnz` nonzeros but in one row alone. A
 * partition takes runs until the next would be too much for it. A row of more than `part_nnz`
 * nonzeros is cut into as few pieces as possible, equal but for the last.
 * Owns: slc_sorted_cuts_destroy, which takes an all-zero struct. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_sorted_cut(const struct slc_row_counts *counts,
                               uint64_t part_nnz,
                               struct slc_sorted_cuts *cuts,
                               struct slc_error *err) SLC_NODISCARD;
void slc_sorted_cuts_destroy(struct slc_sorted_cuts *cuts);

/* The most that cuts of `nnz` nonzeros take. */
uint64_t slc_sorted_cuts_memory_bytes(uint64_t nnz);

#endif
