/*
 * Which fiber run the keys of a layout sorted-n have (base/key.h): that of the mode whose fibers
 * lie in the fewest pieces, counted as convert/build/sort/fibers.h does, where partitions cut
 * fibers of mode n. So it is mostly another mode than n, for a partition has few rows.
 */
#ifndef SLC_CONVERT_SORTED_RUN_H
#define SLC_CONVERT_SORTED_RUN_H

#include "base/error/error.h"
#include "convert/layout/sorted_cuts.h"
#include "storage/scan/tile_scan.h"

#include <stdint.h>

/* What choosing takes with so many workers. */
uint64_t slc_sorted_run_memory_bytes(const struct slc_layout_info *info, unsigned workers);

/*
 * Chooses for the partitions of scan->mode from all nonzeros, in one scan unless there are hardly
 * any, which *scans goes up by; it depends on them and the cuts alone. The run of the file that is
 * read stays where another one gains little. Errors: those of slc_tile_scan.
 */
enum slc_status slc_sorted_run_choose(const struct slc_tile_scan_options *scan,
                                      const struct slc_sorted_cuts *cuts,
                                      struct slc_fiber_run *run,
                                      unsigned *scans,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
