/* Chooses the fiber run of the keys of a sorted-n layout (base/key.h): the mode whose fibers form
 * the fewest pieces. Pieces are counted as in convert/build/sort/fibers.h, but the borders of
 * partitions also cut the fibers of mode n. Therefore the chosen mode is rarely mode n. */
#ifndef SLC_CONVERT_SORTED_RUN_H
#define SLC_CONVERT_SORTED_RUN_H

#include "base/error/error.h"
#include "convert/layout/sorted_cuts.h"
#include "storage/scan/tile_scan.h"

#include <stdint.h>

/* Returns the memory that the choice needs with this number of workers, in bytes. */
uint64_t slc_sorted_run_memory_bytes(const struct slc_layout_info *info, unsigned workers);

/* Chooses the run for the partitions of scan->mode from all nonzeros, in one scan (or none if there
 * are very few nonzeros), and adds the number of scans to *scans. The result depends only on the
 * nonzeros and the cuts. The run of the input file is kept if the best run has only slightly fewer
 * pieces. Errors: those of slc_tile_scan. */
enum slc_status slc_sorted_run_choose(const struct slc_tile_scan_options *scan,
                                      const struct slc_sorted_cuts *cuts,
                                      struct slc_fiber_run *run,
                                      unsigned *scans,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
