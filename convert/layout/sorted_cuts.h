/* Cuts a sorted-n layout into partitions: runs of mode-n rows with about the same number of
 * nonzeros, and pieces of rows that are too large for one partition. The cuts depend only on the
 * nonzeros, so the bytes of a layout do not depend on memory or threads. */
#ifndef SLC_CONVERT_SORTED_CUTS_H
#define SLC_CONVERT_SORTED_CUTS_H

#include "base/error/error.h"
#include "storage/scan/tile_scan.h"

#include <stdbool.h>
#include <stdint.h>

/* Nonzeros are counted per run of rows. A run is short enough to cut the mode into partitions of
 * bounded size; a row with many nonzeros is a run of its own. */

/* Consecutive rows with nonzeros. */
struct slc_row_run {
    uint64_t first_row;
    uint64_t rows;
    uint64_t nnz;
};

struct slc_row_counts {
    struct slc_row_run *runs; /* ascending; rows without nonzeros may be missing */
    uint64_t count;
    unsigned scans; /* number of reads of the file */
};

/* Returns the smallest memory for slc_row_count with this number of workers, in bytes. */
uint64_t
slc_row_count_memory_bytes(const struct slc_layout_info *info, uint64_t run_nnz, unsigned workers);

/* Counts the nonzeros per run of rows of scan->mode; the scan must not set a range of rows. In the
 * result, a run with more than `run_nnz` nonzeros is a single row. The runs depend only on the
 * nonzeros and run_nnz. Cost: no scan if all nonzeros fit one run; otherwise one scan. If the mode
 * has more than 65,536 rows, blocks are scanned again if they contain rows of a run that has
 * several rows and more than `run_nnz` nonzeros. Ownership: release with slc_row_counts_destroy,
 * which accepts an all-zero struct. Errors: those of slc_tile_scan. */
enum slc_status slc_row_count(const struct slc_tile_scan_options *scan,
                              uint64_t run_nnz,
                              struct slc_row_counts *counts,
                              struct slc_error *err) SLC_NODISCARD;
void slc_row_counts_destroy(struct slc_row_counts *counts);

struct slc_sorted_part {
    uint64_t first_row, last_row; /* rows outside all partitions are empty */
    uint64_t nnz;                 /* 1 or more */
    bool continued;               /* the first row continues from the previous partition */
};

struct slc_sorted_cuts {
    struct slc_sorted_part *parts; /* ascending */
    uint64_t count;
    uint64_t split_rows; /* number of rows that are cut into pieces */
};

/* Largest number of nonzeros per partition: 1/64 of the tensor, but at least 8 Ki and at most 1 Mi.
 * Partitions are distributed over threads and devices, and each thread or device needs several of
 * them. A partition of 1 Mi nonzeros fills about one block on disk, and a fused pass keeps a
 * partition in memory while both of its updates use the nonzeros. Partitions with fewer than 8 Ki
 * nonzeros would be mostly padding, because a partition fills whole pages. */
uint64_t slc_sorted_part_nnz(uint64_t nnz);

/* Cuts counted runs into partitions. A run with more than `part_nnz` nonzeros must be a single row.
 * Runs are added to a partition while its nonzeros do not exceed `part_nnz`. A row of more than
 * `part_nnz` nonzeros is cut into as few pieces as possible, of equal size except for the last
 * piece. Ownership: release with slc_sorted_cuts_destroy, which accepts an all-zero struct. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_sorted_cut(const struct slc_row_counts *counts,
                               uint64_t part_nnz,
                               struct slc_sorted_cuts *cuts,
                               struct slc_error *err) SLC_NODISCARD;
void slc_sorted_cuts_destroy(struct slc_sorted_cuts *cuts);

/* Returns the maximum bytes that the cuts of a tensor with `nnz` nonzeros need. */
uint64_t slc_sorted_cuts_memory_bytes(uint64_t nnz);

#endif
